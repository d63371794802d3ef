//! The memory of a phone as plain figures.

/// Returns the memory of swapped pages after compression, with this phone's ratio; both in kB.
fn compressed(swapped: u64) -> u64 {
    swapped * 2 / 7
}

/// The phone's memory in kB.
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
    /// Pss of all processes without swapped-out memory; and of cached processes.
    pub(crate) used: u64,
    /// Memory of the GPU and the screen.
    pub(crate) graphics: u64,
    pub(crate) swap_total: u64,
    pub(crate) swap_used: u64,
}

impl Ram {
    /// Returns the memory available without swapping.
    pub(crate) fn available(&self) -> u64 {
        (self.free + (self.cached - self.shmem) * 3 / 4 + self.slab / 3).min(self.total)
    }

    /// Returns the memory of compressed swapped pages.
    pub(crate) fn zram(&self) -> u64 {
        compressed(self.swap_used)
    }

    /// Returns the kernel's own memory.
    pub(crate) fn kernel(&self) -> u64 {
        self.slab - self.slab / 3 + self.vmalloc + self.stacks + self.tables + self.shmem
    }
}
