//! Sets of equal contents: candidates by hash, then compared byte by byte.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use heaptap_model::heap_graph::ObjectIndex;
use heaptap_model::profile::index::{FastHash, is_equal};

/// Objects with equal contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Same {
    pub first: ObjectIndex,
    /// Number of objects.
    pub count: u32,
    /// Number of arrays; fewer if objects share an array.
    pub arrays: u32,
}

impl Same {
    pub fn one(object: ObjectIndex, has_new_array: bool) -> Same {
        Same {
            first: object,
            count: 1,
            arrays: u32::from(has_new_array),
        }
    }
}

/// Contents seen so far, with their counts.
#[derive(Default)]
pub(super) struct Equal {
    /// By hash, or the next free number if another content has the same hash.
    sets: HashMap<u64, Same, FastHash>,
    /// Whether some keys are not hashes.
    has_moved: bool,
}

impl Equal {
    /// Counts objects with a content of this hash: its type, which separates equal bytes of different
    /// types, and its bytes. `of` returns the content of an object counted before. Returns whether the
    /// content is new.
    pub fn put<'b>(
        &mut self,
        same: Same,
        content: (u64, &[u8]),
        hash: u64,
        of: impl Fn(ObjectIndex) -> Option<(u64, &'b [u8])>,
    ) -> bool {
        let mut key = hash;
        loop {
            let Some(set) = self.sets.get_mut(&key) else {
                self.sets.insert(key, same);
                return true;
            };
            let is_same =
                |known: (u64, &[u8])| known.0 == content.0 && is_equal(known.1, content.1);
            if of(set.first).is_some_and(is_same) {
                set.count = set.count.saturating_add(same.count);
                set.arrays = set.arrays.saturating_add(same.arrays);
                return false;
            }
            // Two contents with the same hash: probe the next slot.
            key = key.wrapping_add(1);
            self.has_moved = true;
        }
    }

    /// Merges the contents of another range of objects.
    pub fn merge<'b>(
        &mut self,
        other: Equal,
        hash: impl Fn((u64, &[u8])) -> u64,
        of: impl Fn(ObjectIndex) -> Option<(u64, &'b [u8])>,
    ) {
        for (key, same) in other.sets {
            // Contents with different hashes differ, so most need not be read again.
            if !self.has_moved
                && !other.has_moved
                && let Entry::Vacant(free) = self.sets.entry(key)
            {
                free.insert(same);
            } else if let Some(content) = of(same.first) {
                self.put(same, content, hash(content), &of);
            }
        }
    }

    /// Returns the number of distinct contents.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Returns the contents that occur more than once.
    pub fn repeated(&self) -> impl Iterator<Item = Same> + '_ {
        self.sets.values().filter(|same| same.count > 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_apart_by_their_bytes_even_where_hashes_collide() {
        let contents: [&[u8]; 4] = [b"same", b"same", b"other", b""];
        let of = |object: ObjectIndex| Some((0, contents[object.at()]));
        for collide in [false, true] {
            let hash = |content: (u64, &[u8])| match collide {
                true => 7,
                false => content.1.len() as u64,
            };
            let (mut one, mut two) = (Equal::default(), Equal::default());
            for (at, content) in contents.iter().enumerate() {
                let set = if at % 2 == 0 { &mut one } else { &mut two };
                let same = Same::one(ObjectIndex(at as u32), true);
                let content = (0, *content);
                assert!(set.put(same, content, hash(content), of));
                assert!(at > 0 || !set.put(same, content, hash(content), of));
            }
            one.merge(two, hash, of);
            assert_eq!(one.len(), 3);
            let repeated: Vec<Same> = one.repeated().collect();
            assert_eq!(repeated.len(), 1);
            assert_eq!((repeated[0].count, repeated[0].arrays), (3, 3));
        }
    }
}
