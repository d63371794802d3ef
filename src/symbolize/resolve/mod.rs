//! All libraries of a recording at once: for each the files that know it, asked best first, and
//! lines for its addresses. Owns the order of asking, the division among threads, and what the
//! cache keeps of the answers; where files come from is [`crate::symbolize::find`]'s, what they
//! say [`crate::symbolize::file`]'s.
//!
//! Libraries are worked on in parallel, at most one a core, and a file is closed as soon as its
//! addresses are done. What is wrong with one library, up to a panic in reading its file, is
//! that library's own failure. Of what the best file does not know, the next one is asked, as
//! long as both are verified or neither is.

mod lines;
mod one;
mod outcome;
mod stored;

pub use outcome::{Applied, FileFailure, LibraryOutcome, Symbolized, UsedFile};

use crate::symbolize::cache::Cache;
use crate::symbolize::find::Finder;
use crate::symbolize::library::Library;
use std::cmp::Reverse;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// From so many addresses on, a library is divided among all threads though there are others.
const LARGE: usize = 1024;
/// Demanglers and readers of DWARF recurse.
const STACK: usize = 16 << 20;

/// How libraries are resolved.
pub struct Resolver<'a> {
    /// Finds their files.
    pub finder: &'a Finder,
    /// Keeps answers for the next time.
    pub cache: Option<&'a Cache>,
    /// How many threads may run.
    pub threads: NonZero<usize>,
    /// Set from anywhere: libraries that were not begun then stay without names.
    pub cancel: &'a AtomicBool,
}

/// A library is done.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Its path on the device.
    pub path: &'a str,
    /// How many are done.
    pub done: usize,
    /// Of how many.
    pub libraries: usize,
}

impl Resolver<'_> {
    /// Resolves `libraries`; blocks until all are done. `tell` is called from any thread.
    pub fn resolve(
        &self,
        libraries: Vec<Library>,
        tell: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Symbolized {
        let count = libraries.len();
        // The largest first: the last to be begun should be a short one.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| Reverse(libraries[at].addresses.len()));
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::with_capacity(count));
        let threads = self.threads.get().min(count.max(1));
        let work = || {
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(&at) = order.get(position) else {
                    return;
                };
                let library = &libraries[at];
                let alone = count < self.threads.get() || library.addresses.len() >= LARGE;
                let inner = if alone {
                    self.threads
                } else {
                    NonZero::<usize>::MIN
                };
                let outcome = match self.cancel.load(Ordering::Relaxed) {
                    true => LibraryOutcome::unasked(library.clone()),
                    false => self.one(library, inner),
                };
                lock(&outcomes).push((at, outcome));
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                tell(Progress {
                    path: &library.path,
                    done,
                    libraries: count,
                });
            }
        };
        std::thread::scope(|scope| {
            let spawned = (0..threads).filter(|_| {
                let builder = std::thread::Builder::new().stack_size(STACK);
                builder.spawn_scoped(scope, work).is_ok()
            });
            if spawned.count() == 0 {
                work();
            }
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(|e| e.into_inner());
        outcomes.sort_by_key(|(at, _)| *at);
        Symbolized {
            libraries: outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
            cancelled: self.cancel.load(Ordering::Relaxed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
