//! Faults drawn from a seed: each occasion of a kind strikes by chance. Owns the chances and the
//! draw. The draw depends only on the seed, the device, the kind and the number of the occasion, so
//! the same seed gives a device the same faults, whatever the other devices do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fault::{Fault, FaultKind};
use crate::events::lock;
use crate::numbers::hash;

/// Chance in a million occasions of each kind, and the smallest and largest VALUE. A run of a
/// scenario has about a hundred transports and shells, and one to five sessions and pulls.
const CHANCES: [(FaultKind, u64, (i64, i64)); 21] = [
    (FaultKind::Blink, 1_500, (20, 3_000)),
    (FaultKind::Restart, 600, (300, 3_000)),
    (FaultKind::ServerRestart, 20, (20, 1_000)),
    (FaultKind::Slow, 3_000, (50, 1_500)),
    (FaultKind::Drop, 1_000, (0, 0)),
    (FaultKind::TransportFail, 1_000, (0, 0)),
    (FaultKind::ShellHang, 2_000, (50, 3_000)),
    (FaultKind::ShellCut, 1_000, (0, 400)),
    (FaultKind::NoExit, 1_000, (0, 0)),
    (FaultKind::PullCut, 50_000, (0, 400_000)),
    (FaultKind::PullFail, 30_000, (0, 0)),
    (FaultKind::PullShort, 30_000, (0, 400_000)),
    (FaultKind::PullFlip, 30_000, (0, 100_000)),
    (FaultKind::DiskFull, 500, (0, 200_000)),
    (FaultKind::PerfettoFail, 10_000, (0, 0)),
    (FaultKind::PerfettoReject, 10_000, (0, 0)),
    (FaultKind::PerfettoDies, 30_000, (0, 8_000)),
    (FaultKind::TracedDies, 20_000, (0, 8_000)),
    (FaultKind::Reboot, 20_000, (0, 8_000)),
    (FaultKind::Truncate, 20_000, (0, 200_000)),
    (FaultKind::ClockJump, 100_000, (-86_400_000, 86_400_000)),
];

/// `SEED[@PERCENT]` of a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odds {
    /// Seed of the draws.
    pub seed: u64,
    /// Percent of the usual chances.
    pub percent: u32,
}

impl Odds {
    /// Parses `SEED[@PERCENT]`.
    pub(crate) fn parse(text: &str) -> Option<Odds> {
        let (seed, percent) = text.split_once('@').unwrap_or((text, "100"));
        Some(Odds {
            seed: seed.parse().ok()?,
            percent: percent.parse().ok().filter(|percent| *percent <= 10_000)?,
        })
    }
}

/// The draws of one device.
pub(crate) struct Draws {
    odds: Odds,
    device: u64,
    /// Occasions so far, as in [`CHANCES`].
    occasions: Mutex<[u32; CHANCES.len()]>,
    struck: Mutex<Vec<Fault>>,
    over: AtomicBool,
}

impl Draws {
    /// Creates the draws of the `device`-th device.
    pub(crate) fn new(odds: Odds, device: u64) -> Draws {
        Draws {
            odds,
            device,
            occasions: Mutex::new([0; CHANCES.len()]),
            struck: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Counts an occasion of `kind`. Returns the fault's value if it strikes.
    pub(crate) fn draw(&self, kind: FaultKind) -> Option<i64> {
        let at = CHANCES.iter().position(|(of, ..)| *of == kind)?;
        if self.over.load(Ordering::SeqCst) {
            return None;
        }
        let occasion = {
            let mut occasions = lock(&self.occasions);
            occasions[at] += 1;
            occasions[at]
        };
        let (_, chance, (low, high)) = CHANCES[at];
        // The name, and not the position, so that a new kind does not change the other draws.
        let of = (self.odds.seed, self.device, kind.name());
        let mut random = fastrand::Rng::with_seed(hash(&format!("{of:?} {occasion}")));
        if random.u64(..100_000_000) >= chance * u64::from(self.odds.percent) {
            return None;
        }
        let value = random.i64(low..=high);
        lock(&self.struck).push(Fault {
            kind,
            value: Some(value),
            occasion: Some(occasion),
        });
        Some(value)
    }

    /// Returns what has struck so far, in order.
    pub(crate) fn struck(&self) -> Vec<Fault> {
        lock(&self.struck).clone()
    }

    /// Ends the draws: from now on, nothing strikes.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What strikes in so many transports, by their number.
    fn drawn(odds: &str, device: u64) -> Vec<Fault> {
        let draws = Draws::new(Odds::parse(odds).expect("odds"), device);
        for _ in 0..100_000 {
            draws.draw(FaultKind::Blink);
            draws.draw(FaultKind::Hang);
        }
        draws.struck()
    }

    #[test]
    fn a_seed_repeats_its_faults_and_devices_differ() {
        let first = drawn("7", 1);
        assert_eq!(first, drawn("7", 1));
        assert_ne!(first, drawn("7", 2));
        assert_ne!(first, drawn("8", 1));
        // 1,500 in a million, within five standard deviations.
        assert!((90..=210).contains(&first.len()), "{}", first.len());
        assert!(first.iter().all(|fault| fault.kind == FaultKind::Blink));
        assert!(drawn("7@10", 1).len() < first.len() / 3);
        assert_eq!(drawn("7@0", 1), []);
    }

    #[test]
    fn another_kind_in_between_changes_no_draw() {
        let draws = Draws::new(Odds::parse("7").expect("odds"), 1);
        for _ in 0..100_000 {
            draws.draw(FaultKind::Drop);
            draws.draw(FaultKind::Blink);
        }
        let mut struck = draws.struck();
        struck.retain(|fault| fault.kind == FaultKind::Blink);
        assert_eq!(struck, drawn("7", 1));
        draws.end();
        let before = draws.struck().len();
        for _ in 0..10_000 {
            draws.draw(FaultKind::Blink);
        }
        assert_eq!(draws.struck().len(), before);
    }
}
