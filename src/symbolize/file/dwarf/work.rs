//! How much work a file may cause. DWARF refers to parts of itself by offset: a small file can
//! have each of a million entries name the same million ranges. An honest file has its bytes
//! read a few times.

use super::unit::DwarfError;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Work that is left for all threads, in bytes read or steps made.
#[derive(Debug)]
pub(super) struct Work(AtomicU64);

impl Work {
    /// So much.
    pub fn of(steps: u64) -> Work {
        Work(AtomicU64::new(steps))
    }

    /// What an honest file with so many bytes of debug information does not come near to.
    pub fn for_debug_info(size: u64) -> Work {
        Work::of((16 << 20) + size.saturating_mul(16))
    }

    /// A thread's part of it.
    pub fn share(&self) -> Share<'_> {
        let taken = Cell::new(0);
        Share { work: self, taken }
    }
}

/// What one thread has taken of the work, in large pieces, so that threads do not meet at the
/// counter.
#[derive(Debug)]
pub(super) struct Share<'work> {
    work: &'work Work,
    taken: Cell<u64>,
}

impl Share<'_> {
    const PIECE: u64 = 1 << 16;

    /// Takes some of the work.
    ///
    /// # Errors
    /// Where there is not as much left.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone_for_all() {
        let work = Work::of(Share::PIECE + 100);
        let (one, two) = (work.share(), work.share());
        one.take(10).unwrap();
        assert_eq!(two.take(200), Err(DwarfError::TooMuchWork));
        two.take(80).unwrap();
        one.take(Share::PIECE as usize).unwrap();
        assert_eq!(one.take(100), Err(DwarfError::TooMuchWork));
    }
}
