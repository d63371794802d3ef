//! Timestamps of a packet's clock in BOOTTIME.

use crate::clocks::{Clock, Clocks, ToClock};

/// A clock ID of 0 means BOOTTIME: traced_probes does not write the ID because it is the default.
const UNSAID: u32 = 0;

/// Converts timestamps.
pub(super) struct Times(ToClock);

impl Times {
    pub(super) fn new(clocks: &Clocks) -> Self {
        Times(clocks.to(Clock::BOOTTIME))
    }

    /// Converts `time` of the clock `id` of a sequence to BOOTTIME; `None` if no snapshots link
    /// them.
    pub(super) fn boot(&self, id: u32, sequence: u32, time: u64) -> Option<u64> {
        match id {
            UNSAID => Some(time),
            id => self.0.convert(Clock::new(id, sequence), time),
        }
    }
}
