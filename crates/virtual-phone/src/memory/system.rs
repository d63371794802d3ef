//! The phone's memory as a whole: used by processes, used by the kernel, and free.

use super::accounts::Memory;
use super::ram::Ram;
use super::rows::Row;
use crate::clock::{BootNs, SECOND};
use crate::events::lock;
use crate::state::State;

/// Total memory in kB: of a phone with 8 GB, and of one with 12 GB since Android 15.
const TOTAL: [u64; 2] = [7_831_084, 11_672_640];
const SWAP_TOTAL: u64 = 3_145_724;
/// Time in nanoseconds for which sums over all processes are cached.
const FRESH: u64 = 5 * SECOND;
/// Pages of the kernel, and of files that are not mapped, in kB.
const SLAB: u64 = 391_204;
const VMALLOC: u64 = 161_908;
const UNMAPPED_FILES: u64 = 1_244_160;
/// Memory in kB that drivers allocate without reporting it.
const LOST: u64 = 118_784;

impl Memory {
    /// Returns the phone's memory now; sums are recomputed after a few seconds.
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

    /// Sums the memory of all processes.
    pub(super) fn sum(&self, state: &State, now: BootNs) -> Ram {
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
            let (_, file, shmem) = ledger.resident();
            // Count shared pages only once.
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
        // A phone always keeps some memory free.
        ram.free = ram.total.saturating_sub(taken).max(ram.total / 64);
        ram
    }
}
