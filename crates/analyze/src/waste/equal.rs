//! Sets of equal contents: candidates by hash, then compared byte by byte.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use heaptap_model::heap_graph::ObjectIndex;
use heaptap_model::profile::index::{is_equal, last_word};

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
    sets: HashMap<u64, Same, BuildHasherDefault<AsItIs>>,
    /// Whether some keys are not hashes.
    has_moved: bool,
}

/// Random hash seed of each run, so that a dump cannot force collisions.
pub(super) struct Seed(u64);

impl Seed {
    pub fn new() -> Seed {
        Seed(RandomState::new().hash_one(0) | 1)
    }
}

impl Equal {
    /// Counts objects with a content: its type, which separates equal bytes of different types, and its
    /// bytes. `of` returns the content of an object counted before. Returns whether the content is new.
    pub fn put<'b>(
        &mut self,
        same: Same,
        content: (u64, &[u8]),
        seed: &Seed,
        of: impl Fn(ObjectIndex) -> Option<(u64, &'b [u8])>,
    ) -> bool {
        let mut key = hash(seed.0 ^ content.0.wrapping_mul(PRIME), content.1);
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
        seed: &Seed,
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
                self.put(same, content, seed, &of);
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

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a hash, reading eight bytes at a time. Its quality suffices to find candidates.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64) ^ (wide >> 64) as u64
    };
    let mut state = mix(seed ^ bytes.len() as u64, PRIME);
    let words = bytes.as_chunks::<8>().0;
    let (pairs, last) = words.as_chunks::<2>();
    for [a, b] in pairs {
        let (a, b) = (u64::from_le_bytes(*a), u64::from_le_bytes(*b));
        state = mix(a ^ seed, b ^ state ^ PRIME);
    }
    for word in last {
        state = mix(u64::from_le_bytes(*word) ^ seed, state ^ PRIME);
    }
    mix(last_word(bytes) ^ seed, state ^ PRIME)
}

/// Identity hasher for keys that are hashes.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(self.0, bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_apart_by_their_bytes_even_where_hashes_collide() {
        let contents: [&[u8]; 4] = [b"same", b"same", b"other", b""];
        let of = |object: ObjectIndex| Some((0, contents[object.at()]));
        // A seed of 0 mixes zero bytes to 0, so all such lengths would share a slot.
        for seed in [Seed(0), Seed(1), Seed::new()] {
            let (mut one, mut two) = (Equal::default(), Equal::default());
            for (at, content) in contents.iter().enumerate() {
                let set = if at % 2 == 0 { &mut one } else { &mut two };
                let same = Same::one(ObjectIndex(at as u32), true);
                assert!(set.put(same, (0, content), &seed, of));
                assert!(at > 0 || !set.put(same, (0, content), &seed, of));
            }
            one.merge(two, &seed, of);
            assert_eq!(one.len(), 3);
            let repeated: Vec<Same> = one.repeated().collect();
            assert_eq!(repeated.len(), 1);
            assert_eq!((repeated[0].count, repeated[0].arrays), (3, 3));
        }
    }

    #[test]
    fn each_byte_and_the_length_change_the_hash() {
        for len in 0..70 {
            let bytes = vec![7; len];
            let whole = hash(1, &bytes);
            assert_ne!(whole, hash(1, &[bytes.clone(), vec![0]].concat()));
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert_ne!(whole, hash(1, &other), "{len} {at}");
            }
        }
    }
}
