//! Columns that several threads fill at once, each its own rows. Owns the `unsafe` of treating
//! plain numbers as atomic ones, which the standard library does not offer yet.

use std::sync::atomic::{AtomicU8, AtomicU32};

/// Returns a column as atomic numbers, for as long as it is borrowed exclusively. Relaxed stores
/// cost as much as plain ones.
pub(super) fn shared(column: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: `AtomicU32` has the size, alignment and bit validity of `u32`, and the exclusive
    // borrow lasts as long as the returned shared one.
    unsafe { &*(std::ptr::from_mut(column) as *const [AtomicU32]) }
}

/// Returns a column of bytes as atomic ones.
pub(super) fn shared_bytes(column: &mut [u8]) -> &[AtomicU8] {
    // SAFETY: as for `shared`; `AtomicU8` is to `u8` what `AtomicU32` is to `u32`.
    unsafe { &*(std::ptr::from_mut(column) as *const [AtomicU8]) }
}

/// File offsets by object: 4 bytes each in files below 4 GiB, 5 in larger ones, of up to 1 TiB.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    pub(super) low: Vec<u32>,
    /// Empty if `low` is enough.
    pub(super) high: Vec<u8>,
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

    /// Bytes of the largest file whose offsets fit.
    pub(super) const MOST_FILE_BYTES: u64 = 1 << 40;

    pub(super) fn get(&self, object: usize) -> usize {
        let high = self.high.get(object).copied().unwrap_or(0);
        (u64::from(high) << 32 | u64::from(self.low[object])) as usize
    }
}
