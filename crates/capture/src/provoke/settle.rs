//! Detection of an idle app: the same activity is in the foreground, and its CPU time and
//! anonymous memory do not change any more.

use std::time::Duration;

use super::read::Pulse;

/// Options of waiting until an app is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settle {
    /// Maximum waiting time, by the device's clock.
    pub limit: Duration,
    /// Time without any change that counts as idle.
    pub rest: Duration,
}

impl Default for Settle {
    fn default() -> Settle {
        Settle {
            limit: Duration::from_secs(20),
            rest: REST,
        }
    }
}

/// Default time without any change.
pub const REST: Duration = Duration::from_secs(2);
/// Interval between two samples.
pub(super) const PAUSE: Duration = Duration::from_millis(500);
/// CPU time that counts as idle, percent of one processor.
const BUSY_PERCENT: u64 = 3;
/// Kernel ticks per second, on every Android.
const TICKS: u64 = 100;
/// Memory can change by one part in this many.
const STEADY: u64 = 100;

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) boot_ns: u64,
    pub(super) front: Option<String>,
    pub(super) pulse: Option<Pulse>,
}

/// Samples of one wait.
#[derive(Debug)]
pub(super) struct Resting {
    /// Time without any change that counts as idle, ns.
    rest_ns: u64,
    samples: Vec<Sample>,
}

impl Resting {
    /// Begins a wait for `rest` without any change.
    pub(super) fn from_rest(rest: Duration) -> Resting {
        Resting {
            rest_ns: u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX),
            samples: Vec::new(),
        }
    }

    /// Adds a sample; returns `Ok` if nothing has changed for long enough, otherwise the reason.
    pub(super) fn add(&mut self, sample: Sample) -> Result<(), String> {
        let Some(pulse) = &sample.pulse else {
            self.samples.clear();
            return Err("it is not running".to_owned());
        };
        let mut why = "it was not observed for long enough".to_owned();
        // The latest sample that differs from now ends the idle time.
        let mut samples = self.samples.iter().enumerate().rev();
        let moved = samples.find_map(|(at, before)| {
            let reason = Resting::moved(before, &sample, pulse)?;
            Some((at, reason))
        });
        if let Some((at, reason)) = moved {
            why = reason;
            self.samples.drain(..=at);
        }
        self.samples.push(sample);
        let first = self.samples.first().map_or(0, |s| s.boot_ns);
        let last = self.samples.last().map_or(0, |s| s.boot_ns);
        match last.saturating_sub(first) >= self.rest_ns {
            true => Ok(()),
            false => Err(why),
        }
    }

    fn moved(before: &Sample, now: &Sample, pulse: &Pulse) -> Option<String> {
        let Some(then) = &before.pulse else {
            return Some("it has just started".to_owned());
        };
        if (then.pid, then.started) != (pulse.pid, pulse.started) {
            return Some("it has just restarted".to_owned());
        }
        if before.front != now.front {
            return Some("another activity came to the foreground".to_owned());
        }
        let passed = now.boot_ns.saturating_sub(before.boot_ns) / 1_000_000;
        let ticks = pulse.ticks.saturating_sub(then.ticks);
        let allowed = (passed * TICKS * BUSY_PERCENT / 100_000).max(2);
        if ticks > allowed {
            let percent = (ticks * 100_000)
                .checked_div(passed.max(1) * TICKS)
                .unwrap_or(0);
            return Some(format!("it is still busy ({percent}% of a processor)"));
        }
        if let (Some(a), Some(b)) = (then.resident, pulse.resident)
            && a.abs_diff(b) > a.max(b) / STEADY
        {
            let kib = a.abs_diff(b) / 1024;
            let word = if b > a { "grown" } else { "shrunk" };
            return Some(format!("its memory has {word} by {kib} KiB"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ms: u64, ticks: u64, kib: u64, front: &str) -> Sample {
        Sample {
            boot_ns: ms * 1_000_000,
            front: Some(front.to_owned()),
            pulse: Some(Pulse {
                pid: 7,
                uid: None,
                ticks,
                started: 1,
                resident: Some(kib * 1024),
            }),
        }
    }

    #[test]
    fn rest_is_two_seconds_without_movement() {
        let mut resting = Resting::from_rest(REST);
        assert!(resting.add(sample(0, 100, 1000, "a")).is_err());
        assert!(resting.add(sample(1000, 102, 1005, "a")).is_err());
        assert_eq!(resting.add(sample(2000, 104, 1009, "a")), Ok(()));
    }

    #[test]
    fn what_moves_is_told_and_begins_it_anew() {
        let mut resting = Resting::from_rest(REST);
        let _ = resting.add(sample(0, 100, 1000, "a"));
        let why = resting.add(sample(1000, 160, 1000, "a")).unwrap_err();
        assert!(why.contains("60% of a processor"), "{why}");
        let why = resting.add(sample(2000, 161, 1100, "a")).unwrap_err();
        assert!(why.contains("grown by 100 KiB"), "{why}");
        let why = resting.add(sample(3000, 161, 1100, "b")).unwrap_err();
        assert!(why.contains("another activity"), "{why}");
        assert!(resting.add(sample(4000, 161, 1100, "b")).is_err());
        assert_eq!(resting.add(sample(5000, 161, 1100, "b")), Ok(()));
        let gone = Sample {
            boot_ns: 1,
            front: None,
            pulse: None,
        };
        assert_eq!(resting.add(gone), Err("it is not running".to_owned()));
    }
}
