//! Relation of the device's wall clock to its BOOTTIME: the log uses the former, everything else
//! the latter. The device reads both at the start of each round, the uptime first, with a
//! resolution of 10 ms. Their difference is up to 10 ms too large, so the smallest of the last
//! minute is used. Setting the wall clock starts a new era; earlier lines of the log keep the old
//! one.

use std::collections::VecDeque;

use android_memory::gc::Stamp;

/// Number of rounds that count.
const ROUNDS: usize = 60;
/// Minimum change of the difference that means that the clock was set.
const JUMP_NS: i128 = 500_000_000;
/// Maximum number of kept eras.
const ERAS: usize = 32;
/// Maximum age of a log line before the round in which it is read.
const EARLIER_NS: i128 = 2_000_000_000;

/// Relation of the wall clock to BOOTTIME.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    eras: VecDeque<Era>,
}

#[derive(Debug, Clone)]
struct Era {
    /// BOOTTIME at its first round.
    from_ns: i128,
    /// Wall clock minus BOOTTIME, of the last rounds.
    offsets: VecDeque<i128>,
}

impl Era {
    fn offset(&self) -> i128 {
        self.offsets.iter().copied().min().unwrap_or(0)
    }
}

impl Clock {
    /// Adds both clocks of a round.
    pub(super) fn round(&mut self, boot_ns: u64, epoch_ns: u64) {
        let (boot, epoch) = (i128::from(boot_ns), i128::from(epoch_ns));
        let offset = epoch - boot;
        if let Some(era) = self.eras.back_mut()
            && (offset - era.offset()).abs() <= JUMP_NS
        {
            era.offsets.push_back(offset);
            if era.offsets.len() > ROUNDS {
                era.offsets.pop_front();
            }
            return;
        }
        self.eras.push_back(Era {
            from_ns: boot,
            offsets: VecDeque::from([offset]),
        });
        if self.eras.len() > ERAS {
            self.eras.pop_front();
        }
    }

    /// Converts the time of a log line to BOOTTIME; `None` before the first round, or without a year.
    pub(super) fn boot_ns_of(&self, stamp: Stamp) -> Option<u64> {
        match stamp {
            // The clock of a device without a network can be near 1970.
            Stamp::Epoch(ns) | Stamp::Monotonic(ns) => self.boot_ns(ns),
            Stamp::Wall { .. } => None,
        }
    }

    fn boot_ns(&self, epoch_ns: u64) -> Option<u64> {
        let first = self.eras.front()?;
        let at = |era: &Era| i128::from(epoch_ns) - era.offset();
        let mut eras = self.eras.iter();
        let era = eras.rfind(|era| at(era) >= era.from_ns - EARLIER_NS);
        let era = era.unwrap_or(first);
        Some(u64::try_from(at(era).max(0)).unwrap_or(u64::MAX))
    }

    /// Converts a BOOTTIME to the wall clock; 0 before the first round.
    pub(super) fn epoch_ns(&self, boot_ns: u64) -> u64 {
        let boot = i128::from(boot_ns);
        let era = self.eras.iter().rfind(|era| boot >= era.from_ns);
        let era = era.or(self.eras.front());
        era.map_or(0, |era| u64::try_from(boot + era.offset()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn the_smallest_difference_of_rounds_is_the_best() {
        let mut clock = Clock::default();
        assert_eq!(clock.boot_ns(5), None);
        let offset = 1_700_000_000 * S;
        for (round, late) in [7, 3, 9, 1, 8].into_iter().enumerate() {
            // The uptime is truncated to 10 ms: the true one is later by `late`.
            let boot = (100 + round as u64) * S;
            clock.round(boot, boot + late * MS + offset);
        }
        let line = offset + 102 * S + MS;
        assert_eq!(clock.boot_ns(line), Some(102 * S));
        assert_eq!(clock.epoch_ns(102 * S), line);
    }

    #[test]
    fn a_clock_that_is_set_leaves_lines_before_it_where_they_were() {
        let mut clock = Clock::default();
        let (old, new) = (1_700_000_000 * S, 1_700_003_600 * S);
        clock.round(100 * S, 100 * S + old);
        clock.round(200 * S, 200 * S + new);
        let at = |boot: u64, offset: u64| boot * S + offset;
        assert_eq!(clock.boot_ns(at(150, old)), Some(150 * S));
        assert_eq!(clock.boot_ns(at(250, new)), Some(250 * S));
        assert_eq!(clock.boot_ns(at(50, old)), Some(50 * S));
        // The clock is set back.
        clock.round(300 * S, 300 * S + old);
        assert_eq!(clock.boot_ns(at(310, old)), Some(310 * S));
    }

    #[test]
    fn clocks_that_make_no_sense_do_no_harm() {
        let mut clock = Clock::default();
        for round in 0..100 {
            clock.round(u64::MAX - round, round % 2 * u64::MAX / 2);
            clock.round(0, u64::MAX);
        }
        assert!(clock.eras.len() <= ERAS);
        for line in [0, i64::MAX as u64, u64::MAX] {
            assert!(clock.boot_ns(line).is_some());
        }
    }
}
