//! Past activity of an app in numbers: registered listeners, cached thumbnails, dropped objects. A
//! pure function of time and of the process's events; the heap is built from it.

use crate::clock::{BootNs, SECOND};
use crate::history::{COLLECTION_EVERY, History};

/// Number of listeners at the start of the process.
const LISTENERS_AT_START: u64 = 40;
/// One more listener every half second …
const LISTENERS_PER_SECOND: u64 = 2;
/// … up to this number, when the list of screens is exhausted.
const MAX_LISTENERS: u64 = 5_000;
/// Number of thumbnails in the cache at the start, and its maximum; one more is added every second.
const THUMBNAILS_AT_START: u64 = 24;
const MAX_THUMBNAILS: u64 = 96;
/// Number of objects dropped every second, and how many of them a quick collection leaves.
const GARBAGE_PER_SECOND: u64 = 30;
const GARBAGE_AT_LEAST: u64 = 25;

/// Numbers of one process at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    /// Length of the listener list, which only grows.
    pub(crate) listeners: u32,
    /// Bitmaps in the cache.
    pub(crate) thumbnails: u32,
    /// Groups of unreachable objects that no collection has freed yet.
    pub(crate) garbage: u32,
    /// Destroyed activities that the list of listeners still holds.
    pub(crate) destroyed: u32,
}

fn grown(awake: u64, start: u64, per_second: u64, most: u64) -> u32 {
    let count = u128::from(awake) * u128::from(per_second) / u128::from(SECOND);
    (start + count as u64).min(most) as u32
}

impl Life {
    /// Returns the numbers at `moment` of a process with this history; a sleeping process does not
    /// change.
    pub(crate) fn at(history: &History, moment: BootNs) -> Life {
        let awake = history.awake(moment);
        let mut life = Life::after(awake);
        // A cache that was emptied fills again from zero.
        if let Some(emptied) = history.last_trim(moment) {
            life.thumbnails = grown(awake - history.awake(emptied), 0, 1, MAX_THUMBNAILS);
        }
        // A requested collection frees all garbage.
        let natural = awake / COLLECTION_EVERY * COLLECTION_EVERY;
        if let Some(asked) = history.last_request(moment) {
            let asked = history.awake(asked);
            if asked >= natural {
                life.garbage = ((awake - asked) * GARBAGE_PER_SECOND / SECOND) as u32;
            }
        }
        life.destroyed = u32::try_from(history.destroyed(moment)).unwrap_or(u32::MAX);
        life
    }

    /// Returns the numbers after this many nanoseconds of activity.
    fn after(awake: u64) -> Life {
        let since_collection = awake % COLLECTION_EVERY;
        Life {
            listeners: grown(
                awake,
                LISTENERS_AT_START,
                LISTENERS_PER_SECOND,
                MAX_LISTENERS,
            ),
            thumbnails: grown(awake, THUMBNAILS_AT_START, 1, MAX_THUMBNAILS),
            garbage: (GARBAGE_AT_LEAST + since_collection * GARBAGE_PER_SECOND / SECOND) as u32,
            destroyed: 0,
        }
    }

    /// Returns the numbers after a requested collection.
    pub(crate) fn collected(self) -> Life {
        Life { garbage: 0, ..self }
    }

    /// Returns the numbers after an automatic collection.
    pub(crate) fn swept(self) -> Life {
        Life {
            garbage: self.garbage.min(GARBAGE_AT_LEAST as u32),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_grows_and_the_cache_fills() {
        let (first, later) = (Life::after(0), Life::after(10 * SECOND));
        assert_eq!((first.listeners, first.thumbnails), (40, 24));
        assert_eq!((later.listeners, later.thumbnails), (60, 34));
        let old = Life::after(u64::MAX / 4);
        assert_eq!((old.listeners, old.thumbnails), (5_000, 96));
        assert_eq!(old.collected().garbage, 0);
    }
}
