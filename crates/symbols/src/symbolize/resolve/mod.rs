//! Symbolization of all libraries of a recording: for each, lookups in its files, best first.
//! Defines the order of lookups, the distribution to threads, and the cached results.
//! [`crate::symbolize::find`] finds the files, and [`crate::symbolize::file`] reads them.
//!
//! Libraries are processed in parallel, at most one for each core, and a file is closed as soon as
//! its addresses are done. An error in one library, even a panic in reading its file, does not
//! affect others. If addresses are unknown in the best file, the next one is used, as long as both
//! are verified or neither is.

mod lines;
mod one;
mod outcome;
mod stored;

pub use one::Resolver;
pub use outcome::{Applied, FileFailure, LibraryOutcome, Symbolized, UsedFile};

use crate::symbolize::library::Library;
use heaptap_base::parallel::lock;
use std::cmp::Reverse;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of addresses from which a library is distributed to all threads although there are
/// others.
const LARGE: usize = 1024;
/// Stack size in bytes, because demanglers and DWARF parsers recurse.
const STACK: usize = 16 << 20;

/// Report about a finished library.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Number of finished libraries.
    pub done: usize,
    /// Total number of libraries.
    pub libraries: usize,
}

impl Resolver<'_> {
    /// Symbolizes `libraries`; blocks until all are done. `tell` is called from any thread.
    pub fn resolve(&self, libraries: Vec<Library>, tell: &(dyn Fn(Progress) + Sync)) -> Symbolized {
        let count = libraries.len();
        // Largest first, so that the last ones to start are short.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| Reverse(libraries[at].addresses.len()));
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::with_capacity(count));
        let threads = self.threads.get().min(count.max(1));
        let budget = Budget::new(self.threads, threads);
        let work = || {
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(&at) = order.get(position) else {
                    return;
                };
                let library = &libraries[at];
                let is_large = count < self.threads.get() || library.addresses.len() >= LARGE;
                let inner = budget.share(is_large);
                let outcome = match self.cancel.load(Ordering::Relaxed) {
                    true => LibraryOutcome::unasked(library.clone()),
                    false => self.one(library, inner),
                };
                budget.give_back(inner);
                lock(&outcomes).push((at, outcome));
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                tell(Progress {
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

/// Additional threads for large libraries, beyond one for each, shared by all of them: in total at
/// most as many as there are workers.
struct Budget {
    spare: AtomicUsize,
    threads: usize,
    is_alone: bool,
}

impl Budget {
    fn new(threads: NonZero<usize>, workers: usize) -> Self {
        Budget {
            spare: AtomicUsize::new(threads.get()),
            threads: threads.get(),
            is_alone: workers <= 1,
        }
    }

    /// Returns the threads for a library, including its worker. The largest libraries come first
    /// and get most: half of the remaining ones.
    fn share(&self, is_large: bool) -> NonZero<usize> {
        let part = |spare: usize| match (is_large, self.is_alone) {
            (false, _) => 0,
            (true, true) => spare.min(self.threads - 1),
            (true, false) => spare.div_ceil(2).min(self.threads - 1),
        };
        let order = Ordering::Relaxed;
        let before = self
            .spare
            .fetch_update(order, order, |spare| Some(spare - part(spare)));
        NonZero::<usize>::MIN.saturating_add(before.map_or(0, part))
    }

    /// Returns the threads of a finished library.
    fn give_back(&self, share: NonZero<usize>) {
        self.spare.fetch_add(share.get() - 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
