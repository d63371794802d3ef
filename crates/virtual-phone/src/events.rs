//! Waiting inside the phone: every blocked command of a phone waits on one event counter. A signal,
//! a byte in a pipe or an ended process wakes all of them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks; a panic in another thread must not end the whole phone.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counter of events. Read [`Events::seen`], check the state, then wait past it: this never misses
/// an event in between.
#[derive(Default)]
pub(crate) struct Events {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Events {
    pub(crate) fn seen(&self) -> u64 {
        *lock(&self.count)
    }

    /// Signals an event.
    pub(crate) fn notify(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
    }

    /// Waits until an event follows `seen`, at most for `limit`.
    pub(crate) fn wait(&self, seen: u64, limit: Option<Duration>) {
        let count = lock(&self.count);
        if *count == seen {
            // A wake-up without an event is harmless: callers check again.
            let limit = limit.unwrap_or(Duration::from_secs(3_600));
            drop(self.changed.wait_timeout(count, limit));
        }
    }
}
