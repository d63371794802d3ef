//! How much work a file may cause. DWARF refers to itself by offset: in a small file a million
//! entries may each name the same million ranges. An honest one has its bytes read a few times.

use super::DwarfError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps that are left, for all threads.
#[derive(Debug)]
pub(super) struct Work(AtomicU64);

/// Steps that a thread takes at once, not to fight for the count.
const SHARE: u64 = 1 << 16;

impl Work {
    /// For sections of this size in bytes.
    pub fn of(size: u64) -> Work {
        Work(AtomicU64::new((16 << 20) + size.saturating_mul(8)))
    }

    /// The share of one thread, empty at first.
    pub fn share(&self) -> Share<'_> {
        Share { all: self, left: 0 }
    }
}

/// Steps that one thread has taken for itself.
#[derive(Debug)]
pub(super) struct Share<'w> {
    all: &'w Work,
    left: u64,
}

impl Share<'_> {
    /// Spends steps, each about the reading of a byte.
    ///
    /// # Errors
    /// Where as many are not left.
    #[inline]
    pub fn spend(&mut self, steps: u64) -> Result<(), DwarfError> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.refill(steps),
        }
    }

    #[cold]
    fn refill(&mut self, steps: u64) -> Result<(), DwarfError> {
        let wanted = steps.saturating_add(SHARE);
        let order = Ordering::Relaxed;
        let taken = self.all.0.fetch_update(order, order, |left| {
            (left >= steps).then(|| left - left.min(wanted))
        });
        let taken = taken.map_err(|_| DwarfError::TooMuchWork)?.min(wanted);
        self.left = self.left.saturating_add(taken - steps);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_spend_no_more_than_there_is() {
        let work = Work::of(0);
        let (mut one, mut other) = (work.share(), work.share());
        one.spend(8 << 20).unwrap();
        other.spend(7 << 20).unwrap();
        assert!(matches!(one.spend(2 << 20), Err(DwarfError::TooMuchWork)));
        // What others took in advance is theirs, and nothing appears from nowhere.
        let mut spent = 0u64;
        while one.spend(1000).is_ok() || other.spend(1000).is_ok() {
            spent += 1000;
        }
        assert!(spent <= 1 << 20, "{spent}");
    }
}
