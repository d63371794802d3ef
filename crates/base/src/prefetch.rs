//! Memory before its use. A value that is in no cache costs as much time as hundreds of instructions, and a
//! loop that decides something by each value waits for them one after the other. A short loop that
//! only reads waits for many at once; after it, they are in the first cache.

/// Number of values to read ahead: enough to hide the wait, and few enough for the first cache.
pub const BATCH: usize = 64;

/// Returns `len` zeros that have been written. Fresh memory of the system that is read before it is
/// written costs two page faults per page, and the second interrupts all other threads.
pub fn zeros<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(len);
    // Otherwise the compiler asks the allocator for fresh pages.
    all.resize(len, std::hint::black_box(T::default()));
    all
}

/// Reads all values.
#[inline]
pub fn prefetch(values: impl Iterator<Item = u8>) {
    std::hint::black_box(values.fold(0, |all, value| all ^ value));
}
