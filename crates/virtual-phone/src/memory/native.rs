//! The native heap of a process at one time: the allocations of the workload, those inherited from
//! the zygote, and the additional memory of the allocator.

use super::numbers::mix;
use crate::clock::{BootNs, SECOND};
use crate::history::History;
use crate::workload::{Blocks, LiveHeaps, rounded};

const PAGE: u64 = 4096;
/// Minimum size in bytes of a block with its own pages.
const OWN_PAGES: u64 = 64 << 10;

/// The native heap at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NativeHeap {
    /// Allocations of the process itself: those that heapprofd sees from the process's start on.
    pub(crate) own: Blocks,
    /// Allocations before its first line of code: by the zygote, or by the dynamic linker.
    pub(crate) inherited: Blocks,
    /// Bytes of the allocator's resident pages, including freed blocks.
    pub(crate) resident: u64,
    /// Bytes that the allocator has reserved.
    pub(crate) mapped: u64,
    /// Bytes of `resident` in blocks with their own pages.
    pub(crate) in_own_pages: u64,
}

impl NativeHeap {
    /// Returns `mallinfo`'s allocated bytes, including inherited ones.
    pub(crate) fn allocated(&self) -> u64 {
        self.own.rounded() + self.inherited.rounded()
    }

    /// Returns the number of blocks by size that `malloc_info` reports.
    pub(crate) fn sizes(&self) -> std::collections::BTreeMap<u64, u64> {
        let mut all = self.own.sizes.clone();
        for (size, count) in &self.inherited.sizes {
            *all.entry(*size).or_insert(0) += count;
        }
        all
    }
}

/// Returns the initial blocks of every process, of about `bytes`.
pub(super) fn inherited(seed: u64, bytes: u64) -> Blocks {
    let mut blocks = Blocks::default();
    let mut size = 16;
    // Each power of two has the same number of bytes: many small blocks, few large ones.
    let share = bytes / 12;
    while size <= 32 << 10 {
        let step = rounded(size + mix(&[seed, size]) % size);
        blocks.add(step, share / step);
        size *= 2;
    }
    blocks
}

/// Returns the native heap at `now`.
pub(super) fn at(
    heaps: &mut LiveHeaps,
    inherited: Blocks,
    history: &History,
    now: BootNs,
    seed: u64,
) -> NativeHeap {
    let own = heaps.at("libc.malloc", history, now);
    let mut heap = NativeHeap {
        own,
        inherited,
        ..NativeHeap::default()
    };
    // Memory freed recently stays resident until the allocator releases it; a trim releases all.
    let flow = heaps.flow("libc.malloc", OWN_PAGES);
    let emptied = history.last_trim(now).map_or(u64::MAX, |at| now - at);
    let kept = emptied.min(SECOND) as f64 / SECOND as f64;
    let runs = match history.asleep(now) {
        true => 0.0,
        false => 1.0,
    };
    // Holes between live blocks: a few percent, which change as blocks are allocated and freed.
    let epoch = history.awake(now) / (5 * SECOND);
    let holes = 3 + mix(&[seed, epoch, 0x686f_6c65]) % 5;
    let (mut small, mut large) = (0, 0);
    for (size, count) in heap.sizes() {
        match size >= OWN_PAGES {
            // Each has a header and whole pages.
            true => large += (size + GUARD).next_multiple_of(PAGE) * count,
            false => small += size * count,
        }
    }
    let freed_small = (flow.small.1 * 0.4 * kept * runs) as u64;
    let freed_large = (flow.large.1 * 0.5 * kept * runs) as u64;
    let small = (small + small * holes / 100 + freed_small).next_multiple_of(PAGE);
    let large = (large + freed_large).next_multiple_of(PAGE);
    heap.in_own_pages = large;
    heap.resident = small + large;
    heap.mapped = (small + small / 12).next_multiple_of(256 << 10) + large;
    heap
}

/// Size in bytes of the header of a block with its own pages.
const GUARD: u64 = 64;
