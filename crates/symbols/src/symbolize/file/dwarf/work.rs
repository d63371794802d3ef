//! Limit on the work that a file can cause. DWARF refers to parts of itself by offset, so each of a
//! million entries in a small file can refer to the same million ranges. In a regular file each
//! byte is read only a few times.

use super::error::DwarfError;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Allowed reads for each byte, with a margin over regular files.
const PER_BYTE: u64 = 16;

/// Remaining work of all threads, in bytes read or steps.
#[derive(Debug)]
pub(super) struct Work(AtomicU64);

impl Work {
    /// Makes a limit of this number of steps.
    pub fn from_steps(steps: u64) -> Work {
        Work(AtomicU64::new(steps))
    }

    /// Makes a limit for this many bytes of debug information that regular files never reach.
    pub fn for_debug_info(size: u64) -> Work {
        Work::from_steps((16 << 20) + size.saturating_mul(PER_BYTE))
    }

    /// Adds the work allowed for this many more bytes of debug information.
    pub fn add_debug_info(&self, size: u64) {
        self.give_back(size.saturating_mul(PER_BYTE));
    }

    fn give_back(&self, steps: u64) {
        let order = Ordering::Relaxed;
        let more = |left: u64| Some(left.saturating_add(steps));
        let _ = self.0.fetch_update(order, order, more);
    }

    /// Returns a share for one thread.
    pub fn share(&self) -> Share<'_> {
        let taken = Cell::new(0);
        Share { work: self, taken }
    }
}

/// Share of one thread, taken from the total in large pieces to reduce contention on the counter.
#[derive(Debug)]
pub(super) struct Share<'work> {
    work: &'work Work,
    taken: Cell<u64>,
}

impl Share<'_> {
    const PIECE: u64 = 1 << 16;

    /// Takes steps from the share.
    ///
    /// # Errors
    /// Returns an error if not enough work is left.
    #[inline]
    pub fn take(&self, steps: usize) -> Result<(), DwarfError> {
        let steps = steps as u64;
        match self.taken.get().checked_sub(steps) {
            Some(left) => {
                self.taken.set(left);
                Ok(())
            }
            None => self.fetch(steps),
        }
    }

    #[cold]
    fn fetch(&self, steps: u64) -> Result<(), DwarfError> {
        let order = Ordering::Relaxed;
        for piece in [steps.saturating_add(Self::PIECE), steps] {
            let less = |left: u64| left.checked_sub(piece);
            if self.work.0.fetch_update(order, order, less).is_ok() {
                self.taken.set(self.taken.get() + piece - steps);
                return Ok(());
            }
        }
        Err(DwarfError::TooMuchWork)
    }
}

impl Drop for Share<'_> {
    /// Returns unused steps to the total, because each split unit has a share.
    fn drop(&mut self) {
        self.work.give_back(self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_many_units_cost_what_they_used() {
        let work = Work::from_steps(2 * Share::PIECE);
        for _ in 0..10_000 {
            work.share().take(10).unwrap();
        }
        let last = work.share();
        last.take(2 * Share::PIECE as usize - 100_000).unwrap();
        assert_eq!(last.take(1), Err(DwarfError::TooMuchWork));
    }

    #[test]
    fn what_is_taken_is_gone_for_all() {
        let work = Work::from_steps(Share::PIECE + 100);
        let (one, two) = (work.share(), work.share());
        one.take(10).unwrap();
        assert_eq!(two.take(200), Err(DwarfError::TooMuchWork));
        two.take(80).unwrap();
        one.take(Share::PIECE as usize).unwrap();
        assert_eq!(one.take(100), Err(DwarfError::TooMuchWork));
    }
}
