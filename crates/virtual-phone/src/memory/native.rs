//! The native heap of a process at a moment: what the workload holds, what the zygote left it
//! with, and what the allocator keeps besides.

use super::mix;
use crate::clock::{BootNs, SECOND};
use crate::history::History;
use crate::workload::Blocks;
use crate::workload::LiveHeaps;
use crate::workload::rounded;

const PAGE: u64 = 4096;
/// From this size on, a block has pages of its own.
const OWN_PAGES: u64 = 64 << 10;

/// The native heap at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NativeHeap {
    /// What the process allocated itself: what heapprofd sees from its start on.
    pub(crate) own: Blocks,
    /// What was allocated before its first line: by the zygote, or the dynamic linker.
    pub(crate) inherited: Blocks,
    /// Bytes of pages that the allocator holds in memory, freed blocks among them.
    pub(crate) resident: u64,
    /// Bytes that it has reserved.
    pub(crate) mapped: u64,
    /// Of `resident`, in blocks with pages of their own.
    pub(crate) in_own_pages: u64,
}

impl NativeHeap {
    /// `mallinfo`'s allocated bytes: as given out, inherited ones included.
    pub(crate) fn allocated(&self) -> u64 {
        self.own.rounded() + self.inherited.rounded()
    }

    /// How many blocks of which size `malloc_info` tells of.
    pub(crate) fn sizes(&self) -> std::collections::BTreeMap<u64, u64> {
        let mut all = self.own.sizes.clone();
        for (size, count) in &self.inherited.sizes {
            *all.entry(*size).or_insert(0) += count;
        }
        all
    }
}

/// What every process has before it does anything, of about `bytes`.
pub(super) fn inherited(seed: u64, bytes: u64) -> Blocks {
    let mut blocks = Blocks::default();
    let mut size = 16;
    // As many bytes in each power of two: many small blocks, few large ones.
    let share = bytes / 12;
    while size <= 32 << 10 {
        let step = rounded(size + mix(&[seed, size]) % size);
        blocks.add(step, share / step);
        size *= 2;
    }
    blocks
}

/// The native heap at `now`.
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
    // What was freed a moment ago stays in memory until the allocator gives it back; after a
    // trim nothing does.
    let flow = heaps.flow("libc.malloc", OWN_PAGES);
    let emptied = history.last_trim(now).map_or(u64::MAX, |at| now - at);
    let kept = emptied.min(SECOND) as f64 / SECOND as f64;
    let runs = match history.asleep(now) {
        true => 0.0,
        false => 1.0,
    };
    // Holes between live blocks: some hundredths, which change as blocks come and go.
    let epoch = history.awake(now) / (5 * SECOND);
    let holes = 3 + mix(&[seed, epoch, 0x686f_6c65]) % 5;
    let (mut small, mut large) = (0, 0);
    for (size, count) in heap.sizes() {
        match size >= OWN_PAGES {
            // A header before each, and whole pages.
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

/// What stands before a block with pages of its own.
const GUARD: u64 = 64;
