//! The phone's memory as a whole: what all processes use, what the kernel uses, what is left.

use super::Memory;
use super::rows::Row;
use crate::clock::{BootNs, SECOND};
use crate::events::lock;
use crate::state::State;

/// Of a phone with 8 GB, and of one with 12 since Android 15.
const TOTAL: [u64; 2] = [7_831_084, 11_672_640];
const SWAP_TOTAL: u64 = 3_145_724;
/// Sums over all processes are good for so long.
const FRESH: u64 = 5 * SECOND;
/// Pages of the kernel's own, and of files that nobody has mapped.
const SLAB: u64 = 391_204;
const VMALLOC: u64 = 161_908;
const UNMAPPED_FILES: u64 = 1_244_160;
/// What drivers took without telling anybody.
const LOST: u64 = 118_784;

/// What swapped pages take in memory, compressed as well as this phone's are; kB of both.
pub(crate) fn compressed(swapped: u64) -> u64 {
    swapped * 2 / 7
}

/// The phone's memory, kB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ram {
    pub(crate) total: u64,
    pub(crate) free: u64,
    pub(crate) buffers: u64,
    /// Pages of files, mapped or not.
    pub(crate) cached: u64,
    pub(crate) mapped: u64,
    pub(crate) shmem: u64,
    pub(crate) slab: u64,
    pub(crate) vmalloc: u64,
    pub(crate) stacks: u64,
    pub(crate) tables: u64,
    /// Pss of all processes without what is swapped out; of those that are cached.
    pub(crate) used: u64,
    pub(crate) cached_pss: u64,
    /// What the GPU and the screen hold.
    pub(crate) graphics: u64,
    pub(crate) swap_total: u64,
    pub(crate) swap_used: u64,
}

impl Ram {
    /// What could be had without swapping.
    pub(crate) fn available(&self) -> u64 {
        (self.free + (self.cached - self.shmem) * 3 / 4 + self.slab / 3).min(self.total)
    }

    /// What swapped pages take, compressed.
    pub(crate) fn zram(&self) -> u64 {
        compressed(self.swap_used)
    }

    /// What the kernel has for itself.
    pub(crate) fn kernel(&self) -> u64 {
        self.slab - self.slab / 3 + self.vmalloc + self.stacks + self.tables + self.shmem
    }
}

impl Memory {
    /// The phone's memory now, summed up anew after a few seconds.
    pub(crate) fn ram(&self, state: &State) -> Ram {
        let now = self.clock.boot();
        let known = *lock(&self.ram);
        if let Some((at, ram)) = known
            && at <= now
            && now - at < FRESH
        {
            return ram;
        }
        let ram = self.sum(state, now);
        *lock(&self.ram) = Some((now, ram));
        ram
    }

    /// Sums up the memory of all processes.
    fn sum(&self, state: &State, now: BootNs) -> Ram {
        let mut ram = Ram {
            total: TOTAL[usize::from(self.spec.android >= 15)],
            buffers: 5_120,
            slab: SLAB,
            vmalloc: VMALLOC,
            swap_total: SWAP_TOTAL,
            ..Ram::default()
        };
        for process in state.processes.iter() {
            let Some(ledger) = self.ledger(state, process, now) else {
                ram.stacks += 16;
                continue;
            };
            let rows = ledger.rows();
            let pss = rows.sum().pages.pss;
            ram.used += pss;
            if process.oom_score_adj >= 900 {
                ram.cached_pss += pss;
            }
            let (_, file, shmem) = ledger.resident();
            // Shared pages are counted where they are, once.
            let pages = ledger.pages();
            let part = |kb: u64| match pages.rss() {
                0 => 0,
                rss => kb * pages.pss / rss,
            };
            ram.mapped += part(file);
            ram.shmem += part(shmem);
            ram.swap_used += pages.swap_pss;
            ram.stacks += ledger.threads * 16;
            ram.tables += pages.rss() / 96;
            for row in [Row::EglMtrack, Row::GlMtrack] {
                ram.graphics += rows.row(row).pages.pss;
            }
        }
        ram.swap_used = ram.swap_used.min(SWAP_TOTAL);
        ram.cached = ram.mapped + ram.shmem + UNMAPPED_FILES;
        let kernel = ram.kernel() + ram.slab / 3 + LOST;
        let taken = ram.used + kernel + ram.zram() + UNMAPPED_FILES + ram.buffers;
        // A phone never gives its last page away.
        ram.free = ram.total.saturating_sub(taken).max(ram.total / 64);
        ram
    }
}
