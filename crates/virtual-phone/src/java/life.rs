//! What an app has done up to a moment, in numbers: how many listeners it registered, thumbnails
//! it cached, objects it dropped. A pure function of time and of what happened to the process,
//! from which the heap is built.

use crate::clock::{BootNs, SECOND};
use crate::history::COLLECTION_EVERY;
use crate::history::History;

/// Listeners that are registered before anybody looks.
const LISTENERS_AT_START: u64 = 40;
/// One more each half second …
const LISTENERS_PER_SECOND: u64 = 2;
/// … until the list of screens is through.
const MOST_LISTENERS: u64 = 5_000;
/// Thumbnails in the cache at the start, and how many it holds at most; one more each second.
const THUMBNAILS_AT_START: u64 = 24;
const MOST_THUMBNAILS: u64 = 96;
/// Objects dropped each second, and what a quick collection leaves of them.
const GARBAGE_PER_SECOND: u64 = 30;
const GARBAGE_AT_LEAST: u64 = 25;

/// Numbers of one process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    /// Entries of the listener list that only grows.
    pub(crate) listeners: u32,
    /// Bitmaps in the cache.
    pub(crate) thumbnails: u32,
    /// Groups of unreachable objects that no collection has taken yet.
    pub(crate) garbage: u32,
    /// Activities that were destroyed and that the list of listeners still holds.
    pub(crate) destroyed: u32,
}

fn grown(awake: u64, start: u64, per_second: u64, most: u64) -> u32 {
    let count = u128::from(awake) * u128::from(per_second) / u128::from(SECOND);
    (start + count as u64).min(most) as u32
}

impl Life {
    /// The numbers at `moment` of a process with this history; one that sleeps stands still.
    pub(crate) fn at(history: &History, moment: BootNs) -> Life {
        let awake = history.awake(moment);
        let mut life = Life::after(awake);
        // A cache that gave way to others fills again from nothing.
        if let Some(emptied) = history.last_trim(moment) {
            life.thumbnails = grown(awake - history.awake(emptied), 0, 1, MOST_THUMBNAILS);
        }
        // A collection that was asked for takes all.
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

    /// The numbers after so many nanoseconds of activity.
    fn after(awake: u64) -> Life {
        let since_collection = awake % COLLECTION_EVERY;
        Life {
            listeners: grown(
                awake,
                LISTENERS_AT_START,
                LISTENERS_PER_SECOND,
                MOST_LISTENERS,
            ),
            thumbnails: grown(awake, THUMBNAILS_AT_START, 1, MOST_THUMBNAILS),
            garbage: (GARBAGE_AT_LEAST + since_collection * GARBAGE_PER_SECOND / SECOND) as u32,
            destroyed: 0,
        }
    }

    /// After a collection was asked for.
    pub(crate) fn collected(self) -> Life {
        Life { garbage: 0, ..self }
    }

    /// After a collection that came by itself.
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
