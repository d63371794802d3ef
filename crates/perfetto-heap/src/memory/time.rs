//! Timestamps of a packet's clock in BOOTTIME, for many packets of the same clock: each is a search
//! in the snapshots of its clock, which are sorted once.

use std::collections::HashMap;

use crate::clocks::{Clock, Clocks};

/// A clock ID of 0 means BOOTTIME: traced_probes does not write the ID because it is the default.
const UNSAID: u32 = 0;

/// Converts timestamps.
pub(super) struct Times<'a> {
    clocks: &'a Clocks,
    pairs: HashMap<Clock, Vec<(u64, u64)>>,
    /// Offsets from BOOTTIME of clocks that share no snapshot with it.
    offsets: HashMap<Clock, Option<i128>>,
}

impl<'a> Times<'a> {
    pub(super) fn new(clocks: &'a Clocks) -> Self {
        Times {
            clocks,
            pairs: HashMap::new(),
            offsets: HashMap::new(),
        }
    }

    /// Converts `time` of the clock `id` of a sequence to BOOTTIME; `None` if no snapshots link
    /// them.
    pub(super) fn boot(&mut self, id: u32, sequence: u32, time: u64) -> Option<u64> {
        if id == UNSAID {
            return Some(time);
        }
        let clock = Clock::of(id, sequence);
        if clock == Clock::BOOTTIME {
            return Some(time);
        }
        let clocks = self.clocks;
        let pairs = self
            .pairs
            .entry(clock)
            .or_insert_with(|| clocks.pairs(clock, Clock::BOOTTIME));
        let offset = match pairs.first() {
            Some(first) => {
                let after = pairs.partition_point(|pair| pair.0 <= time);
                let (source, target) = match after.checked_sub(1) {
                    Some(last) => pairs[last],
                    None => *first,
                };
                i128::from(target) - i128::from(source)
            }
            None => {
                (*self.offsets.entry(clock).or_insert_with(|| {
                    let boot = clocks.convert(clock, time, Clock::BOOTTIME)?;
                    Some(i128::from(boot) - i128::from(time))
                }))?
            }
        };
        u64::try_from(i128::from(time) + offset).ok()
    }
}
