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

/// Threads that large libraries are divided among beyond one each, shared by all of them: in all
/// at most as many again as there are workers.
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

    /// Threads for a library, its worker among them. The largest libraries come first and get
    /// most: half of what is left.
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

    /// The library is done.
    fn give_back(&self, share: NonZero<usize>) {
        self.spare.fetch_add(share.get() - 1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
