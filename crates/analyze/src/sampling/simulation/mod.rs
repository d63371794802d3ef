//! Simulation of the exact sampler against the formulas: coverage of intervals and error rate of
//! verdicts. Seeds are fixed. A quick version runs with every test. The full version
//! (`docs/internals/analysis.md` contains its table) runs with
//! `cargo test --release -p heaptap-analyze --lib sampling::simulation -- --ignored --nocapture`.

mod coverage;
mod discoveries;
pub(crate) mod sampler;

use std::fmt::Write as _;
use std::io::Write as _;

/// Amount of work.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Runs of each case.
    runs: u32,
    /// Possible deviation of a percentage by chance: four standard deviations.
    slack: f64,
    /// Repetitions with 2,000 callsites.
    heaps: u64,
    /// Whether to print tables in addition to checking them.
    shows: bool,
}

impl Effort {
    fn show(self, text: &str) {
        if self.shows {
            let written = std::io::stdout().write_all(text.as_bytes());
            written.expect("stdout is writable");
        }
    }
}

const QUICK: Effort = Effort {
    runs: 800,
    slack: 3.6,
    heaps: 3,
    shows: false,
};
const FULL: Effort = Effort {
    runs: 40_000,
    slack: 0.5,
    heaps: 100,
    shows: true,
};

/// Bounds of a case, in percent.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    low: f64,
    high: f64,
}

/// Few hits, large blocks, churn: the true value is inside, but the width is not limited.
const AT_LEAST_93: Bounds = Bounds {
    low: 93.0,
    high: 100.0,
};
/// From about 10 hits, without large blocks.
const FROM_93_TO_97: Bounds = Bounds {
    low: 93.0,
    high: 97.0,
};

/// One row of the table.
#[derive(Debug)]
struct Row {
    name: String,
    percent: f64,
    bounds: Bounds,
    slack: f64,
}

impl Row {
    fn fails(&self) -> bool {
        self.percent < self.bounds.low - self.slack || self.percent > self.bounds.high + self.slack
    }
}

/// Prints and checks the table. Panics after printing if a row fails.
fn check(effort: Effort, title: &str, rows: &[Row]) {
    let mut text = format!("\n| {title} | % | wanted |\n|---|---|---|\n");
    for row in rows {
        let Bounds { low, high } = row.bounds;
        let mark = if row.fails() { " FAILS" } else { "" };
        let (name, percent) = (&row.name, row.percent);
        writeln!(text, "| {name} | {percent:.1}{mark} | {low}-{high} |")
            .expect("writing to a String cannot fail");
    }
    effort.show(&text);
    assert!(!rows.iter().any(Row::fails), "{text}");
}

#[test]
fn intervals_hold_the_true_size() {
    coverage::all(QUICK);
}

#[test]
#[ignore = "minutes; see docs/internals/analysis.md"]
fn intervals_hold_the_true_size_in_full() {
    coverage::all(FULL);
}

#[test]
fn healthy_sites_are_not_accused() {
    discoveries::all(QUICK);
}

#[test]
#[ignore = "minutes; see docs/internals/analysis.md"]
fn healthy_sites_are_not_accused_in_full() {
    discoveries::all(FULL);
}
