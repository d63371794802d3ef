//! Maps by ID. IDs are addresses, and each pass over a dump looks up the class of every object, so
//! the hash is one multiplication. A random number for each process prevents a hostile dump from
//! choosing IDs that collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

pub(super) type IdMap<V> = HashMap<u64, V, IdState>;

pub(super) type IdSet = HashSet<u64, IdState>;

/// Hash state of [`IdMap`].
#[derive(Debug, Clone, Copy)]
pub(super) struct IdState(u64);

impl Default for IdState {
    fn default() -> IdState {
        static DRAWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        IdState(*DRAWN)
    }
}

impl BuildHasher for IdState {
    type Hasher = IdHasher;

    #[inline]
    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.0)
    }
}

/// Hasher of [`IdMap`].
#[derive(Debug, Clone, Copy)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, id: u64) {
        let product = u128::from(self.0 ^ id) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
