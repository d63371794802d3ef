//! An open-addressing index from content to dense IDs: the one hash table of all tables of the
//! model. Owns hashing and probing. The content itself stays in the caller's arena, so an entry
//! costs eight bytes and no allocation of its own.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Hash function for short byte and word strings. The seed is different for each process, so that a
/// crafted file cannot cause collisions; no output depends on the order of hashes.
#[derive(Debug, Clone, Copy)]
pub struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(RandomState::new().hash_one(0x6865_6170u32))
    }
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Seed {
    /// Returns the hash of a byte string.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> u64 {
        let mut hash = self.0 ^ bytes.len() as u64;
        let (pairs, last) = bytes.as_chunks::<8>().0.as_chunks::<2>();
        for [one, other] in pairs {
            let (one, other) = (u64::from_le_bytes(*one), u64::from_le_bytes(*other));
            hash = fold(one ^ MULTIPLIER ^ self.0, hash ^ other);
        }
        for word in last {
            hash = fold(hash ^ u64::from_le_bytes(*word), MULTIPLIER ^ self.0);
        }
        fold(hash ^ last_word(bytes), MULTIPLIER)
    }

    /// Returns the hash of a string of 32-bit words.
    #[inline]
    pub fn words(self, words: &[u32]) -> u64 {
        let mut hash = self.0 ^ words.len() as u64;
        let mut pairs = words.chunks_exact(2);
        for pair in &mut pairs {
            let word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            hash = fold(hash ^ word, MULTIPLIER ^ self.0);
        }
        let last = pairs.remainder().first().copied().map_or(0, u64::from);
        fold(hash ^ last, MULTIPLIER)
    }

    /// Returns the hash of one number.
    #[inline]
    pub fn number(self, number: u64) -> u64 {
        fold(number ^ self.0, MULTIPLIER)
    }
}

/// The hash of [`Seed::number`] for standard maps with numbers as keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct FastHash(Seed);

/// Hasher of [`FastHash`].
#[derive(Debug)]
pub struct FastHasher {
    seed: Seed,
    hash: u64,
}

impl BuildHasher for FastHash {
    type Hasher = FastHasher;

    fn build_hasher(&self) -> FastHasher {
        FastHasher {
            seed: self.0,
            hash: 0,
        }
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.hash = self.seed.number(self.hash ^ self.seed.bytes(bytes));
    }

    fn write_u64(&mut self, number: u64) {
        self.hash = self.seed.number(self.hash ^ number);
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

/// Returns the last eight bytes, or all if there are fewer, for a hash of whole words and this one. It
/// overlaps the word before: to copy so few bytes takes far longer.
#[inline]
pub fn last_word(bytes: &[u8]) -> u64 {
    match bytes.last_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Length from which the C library's comparison is faster.
const LONG: usize = 256;

/// Compares strings of bytes, short ones word by word: the C library's function takes longer, and that
/// of musl compares single bytes.
#[inline]
pub fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.last_chunk::<8>(), other.last_chunk()) {
        _ if one.len() >= LONG => one == other,
        (Some(last), Some(other_last)) => {
            let (words, others) = (one.as_chunks::<8>().0, other.as_chunks().0);
            last == other_last && words.iter().zip(others).all(|(word, other)| word == other)
        }
        _ => one.iter().eq(other),
    }
}

const EMPTY: u32 = u32::MAX;

/// Index from hash to ID; the caller compares the content.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Upper half of the hash, and the ID; the length is a power of two or zero.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Index {
    /// Returns the ID of the entry for which `same` is true, or inserts `next`. The flag is true if
    /// the entry existed.
    #[inline]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        next: u32,
        mut same: impl FnMut(u32) -> bool,
    ) -> (u32, bool) {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let (found, id) = self.slots[at];
            if id == EMPTY {
                self.slots[at] = (tag, next);
                self.used += 1;
                return (next, false);
            }
            if found == tag && same(id) {
                return (id, true);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the ID of the entry that has probably this hash, without a search: in the first place
    /// that it can have.
    #[inline]
    pub fn likely(&self, hash: u64) -> Option<u32> {
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len().wrapping_sub(1);
        let (found, id) = *self.slots.get(tag as usize & mask)?;
        (found == tag && id != EMPTY).then_some(id)
    }

    /// Makes room for `more` entries, so that the next ones have their places now.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        while (self.used + more) * 4 > self.slots.len() * 3 {
            self.grow();
        }
    }

    /// Removes all entries. The memory stays for others.
    pub fn clear(&mut self) {
        self.slots.fill((0, EMPTY));
        self.used = 0;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, EMPTY); size]);
        for (tag, id) in old.into_iter().filter(|slot| slot.1 != EMPTY) {
            let mut at = tag as usize & (size - 1);
            while self.slots[at].1 != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = (tag, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_gets_one_id_through_growth() {
        let seed = Seed::default();
        let mut index = Index::default();
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for round in 0..2 {
            for n in 0..1000u32 {
                let text = format!("name {n}").into_bytes();
                let (id, there) =
                    index.find_or_insert(seed.bytes(&text), kept.len() as u32, |id| {
                        kept[id as usize] == text
                    });
                assert_eq!((id, there), (n, round == 1));
                if !there {
                    kept.push(text);
                }
            }
        }
    }

    #[test]
    fn each_byte_and_the_length_change_the_hash() {
        let seed = Seed::default();
        for len in 0..70 {
            let bytes = vec![7; len];
            let whole = seed.bytes(&bytes);
            assert_ne!(whole, seed.bytes(&[bytes.clone(), vec![0]].concat()));
            for at in 0..len {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                assert_ne!(whole, seed.bytes(&other), "{len} {at}");
            }
        }
        assert_ne!(seed.bytes(b"a"), seed.bytes(b"a\0"));
        assert_ne!(seed.words(&[1, 2]), seed.words(&[2, 1]));
        assert_ne!(seed.words(&[1]), seed.words(&[1, 0]));
    }
}
