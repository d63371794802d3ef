//! The request to end a statement, by another thread or by the deadline. SQLite asks only between
//! its instructions, and one instruction can compute a whole table: long loops ask, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use heaptap_base::parallel::lock;

/// Request to end the running statement, shared by the database and its tables.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_interrupted: AtomicBool,
    is_late: AtomicBool,
    deadline: Mutex<Option<Instant>>,
}

/// End of a computation because the statement is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Iterations of a loop between two looks at the request: some microseconds to milliseconds.
const STRIDE: usize = 1 << 10;

impl Stop {
    /// Ends the running statement and those after it.
    pub(super) fn interrupt(&self) {
        self.0.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Forgets earlier interrupts.
    pub(super) fn forget_interrupts(&self) {
        self.0.is_interrupted.store(false, Ordering::Relaxed);
    }

    /// Begins a statement with its deadline.
    pub(super) fn begin(&self, deadline: Option<Instant>) {
        self.0.is_late.store(false, Ordering::Relaxed);
        *lock(&self.0.deadline) = deadline;
    }

    /// Removes the deadline, for cleaning up after the statement.
    pub(super) fn end(&self) {
        *lock(&self.0.deadline) = None;
    }

    /// Returns whether the deadline has passed.
    fn is_due(&self) -> bool {
        let deadline = lock(&self.0.deadline);
        let is_due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_due {
            self.0.is_late.store(true, Ordering::Relaxed);
        }
        is_due
    }

    /// Returns whether a look at the request has found one. Does not look at the clock.
    pub(super) fn is_found(&self) -> bool {
        self.0.is_interrupted.load(Ordering::Relaxed) || self.0.is_late.load(Ordering::Relaxed)
    }

    /// Returns whether the statement is to end.
    pub fn is_requested(&self) -> bool {
        self.is_found() || self.is_due()
    }

    /// Returns an error if the statement is to end. The statement then fails with the reason, not
    /// with this error.
    ///
    /// # Errors
    /// Returns an error if an end is requested.
    pub fn check(&self) -> Result<(), Stopped> {
        match self.is_requested() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }

    /// As [`Stop::check`], in some iterations of a loop over positions.
    ///
    /// # Errors
    /// Returns an error if an end is requested.
    #[inline]
    pub fn check_at(&self, at: usize) -> Result<(), Stopped> {
        match at.is_multiple_of(STRIDE) {
            true => self.check(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_looks_at_the_request_in_some_iterations() {
        let stop = Stop::default();
        assert_eq!((0..3 * STRIDE).find(|&at| stop.check_at(at).is_err()), None);
        stop.interrupt();
        let found = (1..3 * STRIDE).find(|&at| stop.check_at(at).is_err());
        assert_eq!(found, Some(STRIDE));
    }

    #[test]
    fn passed_deadline_is_found_until_the_next_statement() {
        let stop = Stop::default();
        stop.begin(Some(Instant::now()));
        assert!(!stop.is_found());
        assert!(stop.is_requested());
        stop.end();
        assert!(stop.is_found());
        stop.begin(None);
        assert!(!stop.is_requested());
    }
}
