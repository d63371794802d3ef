//! The largest objects of a list, found in one pass.

use heaptap_model::heap_graph::ObjectIndex;
use std::cmp::Reverse;

/// Objects of a list that are the largest so far; equal ones in the order of their IDs.
pub(crate) struct Top {
    most: usize,
    /// At most twice as many as wanted, the others are removed at times.
    kept: Vec<(Reverse<u64>, ObjectIndex)>,
    /// Place of an object among the largest: none that comes later is one of them.
    last: (Reverse<u64>, ObjectIndex),
}

impl Top {
    pub(crate) fn new(most: usize) -> Top {
        Top {
            most,
            kept: Vec::new(),
            last: (Reverse(0), ObjectIndex::NONE),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, object: ObjectIndex, bytes: u64) {
        let (Reverse(least), last) = self.last;
        // Most objects are too small, so a branch for them is faster than a comparison of places.
        if bytes < least || bytes == least && object > last {
            return;
        }
        if self.most > 0 {
            self.keep((Reverse(bytes), object));
        }
    }

    #[cold]
    fn keep(&mut self, place: (Reverse<u64>, ObjectIndex)) {
        if self.kept.len() == 2 * self.most {
            let (_, &mut last, _) = self.kept.select_nth_unstable(self.most - 1);
            self.kept.truncate(self.most);
            self.last = last;
        }
        self.kept.push(place);
    }

    pub(crate) fn join(&mut self, other: Top) {
        self.kept.extend(other.kept);
    }

    /// Returns the largest objects in order.
    pub(crate) fn into_sorted(mut self) -> Vec<ObjectIndex> {
        self.kept.sort_unstable();
        self.kept.truncate(self.most);
        self.kept.into_iter().map(|(_, object)| object).collect()
    }
}
