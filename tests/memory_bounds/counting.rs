//! An allocator that counts live bytes and their maximum, and the limit for readers of hostile
//! input. `fuzz/` uses both, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Counting;

/// Constant part of the limit for a reader.
const BASE: usize = 64 << 20;
/// Bytes of memory for each byte read.
const PER_BYTE: usize = 16;

/// Returns the memory that a reader may use for an input of `bytes` bytes.
pub fn limit(bytes: usize) -> usize {
    BASE + PER_BYTE * bytes
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

/// Restarts counting; returns the live bytes.
pub fn restart() -> usize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    live
}

/// Returns the maximum of live bytes since the restart.
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

// SAFETY: forwards to the system's allocator, with the same requirements.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as of this function.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match size.checked_sub(layout.size()) {
            Some(grown) => more(grown),
            None => drop(LIVE.fetch_sub(layout.size() - size, Relaxed)),
        }
        // SAFETY: as of this function.
        unsafe { System.realloc(place, layout, size) }
    }
}
