//! What an app has done up to a moment, in numbers: how many listeners it registered, thumbnails
//! it cached, objects it dropped. A pure function of time, from which the heap is built.

use crate::phone::clock::{BootNs, SECOND};
use crate::phone::kernel::Kernel;
use crate::phone::process::Process;
use crate::phone::screen::Deed;

/// Listeners that are registered before anybody looks.
const LISTENERS_AT_START: u64 = 40;
/// One more each half second …
const LISTENERS_PER_SECOND: u64 = 2;
/// … until the list of screens is through.
const MOST_LISTENERS: u64 = 5_000;
/// Thumbnails in the cache at the start, and how many it holds at most; one more each second.
const THUMBNAILS_AT_START: u64 = 24;
const MOST_THUMBNAILS: u64 = 96;
/// Objects dropped each second, and the seconds between two collections.
const GARBAGE_PER_SECOND: u64 = 30;
const COLLECTION_EVERY: u64 = 10;
const GARBAGE_AT_LEAST: u64 = 25;

/// Requests to save memory on which `com.example.app` drops what it can load again.
const EMPTIES_CACHES: [u32; 5] = [10, 15, 40, 60, 80];

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

impl Life {
    /// The numbers of `process` at `moment`; a process that sleeps stands still.
    pub(crate) fn of(kernel: &Kernel, process: &Process, moment: BootNs) -> Life {
        let since = process.started.max(kernel.clock.appeared());
        let asleep = process.frozen || process.idle || process.stopped;
        let awake = if asleep {
            0
        } else {
            moment.saturating_sub(since)
        };
        let state = kernel.state();
        let mut life = Life::after(awake);
        for (at, deed) in state.screen.deeds(process.pid, moment) {
            match deed {
                Deed::Destroyed => life.destroyed += 1,
                // The cache is emptied, and fills again.
                Deed::Trimmed(level) if !asleep && EMPTIES_CACHES.contains(&level) => {
                    let since = (moment - at) / SECOND;
                    life.thumbnails = since.min(MOST_THUMBNAILS) as u32;
                }
                Deed::Trimmed(_) => {}
            }
        }
        life
    }

    /// The numbers after so many nanoseconds of activity.
    fn after(awake: u64) -> Life {
        let grown = |start: u64, per_second, most: u64| {
            let count = start + (u128::from(awake) * per_second / u128::from(SECOND)) as u64;
            count.min(most) as u32
        };
        let since_collection = awake % (COLLECTION_EVERY * SECOND);
        Life {
            listeners: grown(
                LISTENERS_AT_START,
                u128::from(LISTENERS_PER_SECOND),
                MOST_LISTENERS,
            ),
            destroyed: 0,
            thumbnails: grown(THUMBNAILS_AT_START, 1, MOST_THUMBNAILS),
            garbage: (GARBAGE_AT_LEAST + since_collection * GARBAGE_PER_SECOND / SECOND) as u32,
        }
    }

    /// After a collection was asked for.
    pub(crate) fn collected(self) -> Life {
        Life { garbage: 0, ..self }
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
