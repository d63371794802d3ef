//! Amounts of work of the simulations: quick and full.

use std::io::Write as _;

/// Amount of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Runs of each case.
    pub(super) runs: u32,
    /// Possible deviation of a percentage by chance: four standard deviations.
    pub(super) slack: f64,
    /// Repetitions with 2,000 callsites.
    pub(super) heaps: u64,
    /// Whether to print tables in addition to checking them.
    shows: bool,
}

impl Effort {
    pub(super) fn show(self, text: &str) {
        if self.shows {
            let written = std::io::stdout().write_all(text.as_bytes());
            written.expect("stdout is writable");
        }
    }
}

pub(super) const QUICK: Effort = Effort {
    runs: 800,
    slack: 3.6,
    heaps: 3,
    shows: false,
};

pub(super) const FULL: Effort = Effort {
    runs: 40_000,
    slack: 0.5,
    heaps: 100,
    shows: true,
};
