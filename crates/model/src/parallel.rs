//! Work shared out among the processors.

use crate::error::for_thread;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of threads for [`ranges`]: each has sums of its own.
pub const MAX_THREADS: usize = 8;

/// Limit of [`limit`]; 0 if there is none.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Sets the maximum number of threads that share one piece of work.
pub fn limit(threads: NonZero<usize>) {
    LIMIT.store(threads.get(), Ordering::Relaxed);
}

/// Returns the number of threads that share one piece of work: the processors, within the limit.
pub fn threads() -> NonZero<usize> {
    let processors = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    NonZero::new(LIMIT.load(Ordering::Relaxed)).map_or(processors, |limit| processors.min(limit))
}

/// Calls `work` for consecutive ranges that cover `0..len`, all at once, and returns the results in
/// order. There is one range if `len` is less than `worth`, and at most [`MAX_THREADS`].
///
/// # Panics
/// Panics if `work` does.
pub fn ranges<T: Send>(
    len: usize,
    worth: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = match len < worth {
        true => 1,
        false => threads().get(),
    };
    let share = len.div_ceil(threads.min(MAX_THREADS)).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (share.min(len)..len)
            .step_by(share)
            .map(|start| {
                let range = start..(start + share).min(len);
                scope.spawn(for_thread(move || work(range)))
            })
            .collect();
        let mut results = vec![work(0..share.min(len))];
        let others = others.into_iter().map(|other| other.join());
        results
            .extend(others.map(|of| of.unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        results
    })
}

/// Returns the results of `of` for `0..len` that are not `None`, in order. Shares the work as
/// [`ranges`] does.
///
/// # Panics
/// Panics if `of` does.
pub fn filter_map<T: Clone + Send>(
    len: usize,
    worth: usize,
    of: impl Fn(usize) -> Option<T> + Sync,
) -> Vec<T> {
    ranges(len, worth, |range| {
        range.filter_map(&of).collect::<Vec<T>>()
    })
    .concat()
}

/// Calls both at once, if two threads are allowed, and returns the results.
///
/// # Panics
/// Panics if one of them does.
pub fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    if threads().get() == 1 {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let one = scope.spawn(for_thread(one));
        let other = other();
        let one = one.join();
        (
            one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            other,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_everything_once_in_order() {
        for len in [0, 1, 7, 8, 9, 100] {
            for worth in [0, 50] {
                let odd = |at: usize| (at % 2 == 1).then_some(at);
                assert!(
                    filter_map(len, worth, odd)
                        .into_iter()
                        .eq((0..len).filter_map(odd))
                );
                let parts = ranges(len, worth, Iterator::collect::<Vec<usize>>);
                assert!(worth <= len || parts.len() == 1);
                assert_eq!(parts.concat(), (0..len).collect::<Vec<usize>>());
            }
        }
    }

    #[test]
    fn both_results_come_back_and_a_panic_of_either() {
        assert_eq!(both(|| 1, || 2), (1, 2));
        let of_one = std::panic::catch_unwind(|| both(|| panic!("one"), || 2).1);
        assert!(of_one.is_err());
    }
}
