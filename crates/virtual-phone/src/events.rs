//! Waiting inside the phone: one counter of events on which every blocked command of a phone
//! waits, so that a signal, a byte in a pipe and an ended process wake whoever it concerns.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks; a panic elsewhere must not take the whole phone with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts what happened. Read [`Events::seen`], look at the world, then wait past it: what
/// happens in between is never missed.
#[derive(Default)]
pub(crate) struct Events {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Events {
    pub(crate) fn seen(&self) -> u64 {
        *lock(&self.count)
    }

    /// Something happened.
    pub(crate) fn notify(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
    }

    /// Waits until something happens after `seen`, at most `limit`.
    pub(crate) fn wait(&self, seen: u64, limit: Option<Duration>) {
        let count = lock(&self.count);
        if *count != seen {
            return;
        }
        // A wake-up without cause does no harm: callers look again.
        match limit {
            Some(limit) => drop(
                self.changed
                    .wait_timeout(count, limit)
                    .unwrap_or_else(PoisonError::into_inner),
            ),
            None => drop(
                self.changed
                    .wait(count)
                    .unwrap_or_else(PoisonError::into_inner),
            ),
        }
    }
}
