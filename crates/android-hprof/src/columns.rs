//! Columns that several threads fill at once, each its own rows. Owns the `unsafe` of treating
//! plain numbers as atomic ones, which the standard library does not offer yet.

use heaptap_model::heap_graph::Positions;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

/// A number that has an atomic type.
pub(super) trait Number: Sized {
    type Atomic;

    /// Returns a column as atomic numbers, for as long as it is borrowed exclusively. Relaxed stores
    /// cost as much as plain ones.
    fn shared(column: &mut [Self]) -> &[Self::Atomic];
}

macro_rules! number {
    ($plain:ty, $atomic:ty) => {
        impl Number for $plain {
            type Atomic = $atomic;

            fn shared(column: &mut [$plain]) -> &[$atomic] {
                // SAFETY: the atomic type has the size and bit validity of the plain one, and
                // its alignment, which the assertion below ensures; the exclusive borrow lasts
                // as long as the returned shared one.
                unsafe { &*(std::ptr::from_mut(column) as *const [$atomic]) }
            }
        }

        const _: () = assert!(align_of::<$plain>() == align_of::<$atomic>());
    };
}

number!(u8, AtomicU8);
number!(u16, AtomicU16);
number!(u32, AtomicU32);

/// File offsets by object while they are found: 4 bytes each in files below 4 GiB, 6 in larger ones.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    pub(super) low: Vec<u32>,
    /// Empty if `low` is enough.
    pub(super) high: Vec<u16>,
}

impl Offsets {
    /// Returns offsets for `objects` objects of a file of `file_bytes` bytes.
    pub(super) fn new(objects: usize, file_bytes: usize) -> Offsets {
        let wide = u32::try_from(file_bytes).is_err();
        Offsets {
            low: vec![0; objects],
            high: vec![0; if wide { objects } else { 0 }],
        }
    }

    pub(super) fn get(&self, object: usize) -> usize {
        let high = self.high.get(object).copied().unwrap_or(0);
        (u64::from(high) << 32 | u64::from(self.low[object])) as usize
    }

    /// Returns them in less memory.
    pub(super) fn into_positions(self) -> Positions {
        if self.high.is_empty() {
            return Positions::from(&self.low[..]);
        }
        let offsets = 0..self.low.len();
        offsets.map(|object| self.get(object) as u64).collect()
    }
}
