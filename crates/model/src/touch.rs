//! Reading ahead. A value that is in no cache costs as much time as hundreds of instructions, and a
//! loop that decides something by each value waits for them one after the other. A short loop that
//! only reads waits for many at once; after it, they are in the first cache.

/// Number of values to read ahead: enough to hide the wait, and few enough for the first cache.
pub const BATCH: usize = 64;

/// Reads all values.
#[inline]
pub fn touch(values: impl Iterator<Item = u8>) {
    std::hint::black_box(values.fold(0, |all, value| all ^ value));
}
