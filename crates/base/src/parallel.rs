//! Work shared out among the processors.

use crate::error::for_thread;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};

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
    // To count them takes several system calls, and small pieces of work ask often.
    static PROCESSORS: LazyLock<NonZero<usize>> =
        LazyLock::new(|| std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN));
    let processors = *PROCESSORS;
    NonZero::new(LIMIT.load(Ordering::Relaxed)).map_or(processors, |limit| processors.min(limit))
}

/// Locks a mutex and ignores poisoning. Use it only if a panic cannot leave the contents
/// inconsistent.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Does the same with several ranges for each thread, which takes the next one when it is done: for long
/// work during which other work slows down some threads.
///
/// # Panics
/// Panics if `work` does.
pub fn balanced<T: Send>(
    len: usize,
    worth: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    const RANGES_PER_THREAD: usize = 3;
    let threads = match len < worth.max(1) {
        true => 1,
        false => threads().get().min(MAX_THREADS).min(len),
    };
    if threads == 1 {
        return vec![work(0..len)];
    }
    let share = len.div_ceil(threads * RANGES_PER_THREAD).max(1);
    let next = AtomicUsize::new(0);
    let of_thread = |_| {
        let taken = || Some(next.fetch_add(1, Ordering::Relaxed) * share).filter(|&at| at < len);
        let results = std::iter::from_fn(taken).map(|at| (at, work(at..(at + share).min(len))));
        results.collect::<Vec<_>>()
    };
    let results = ranges(threads, 0, of_thread);
    let mut results: Vec<_> = results.into_iter().flatten().collect();
    results.sort_by_key(|&(at, _)| at);
    results.into_iter().map(|(_, result)| result).collect()
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

/// Frees a large value on a thread of its own, if two threads are allowed: giving back memory takes about as
/// long as getting it.
pub fn free<T: Send + 'static>(value: T) {
    if threads().get() > 1 {
        std::thread::spawn(for_thread(move || drop(value)));
    }
}

/// Buffers for reuse by several threads. Some allocators get each large buffer from the system and give
/// it back, which takes as long as filling it.
pub struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool(Mutex::default())
    }
}

impl<T> Pool<T> {
    /// Returns a buffer as it was put back, if there is one.
    pub fn take(&self) -> Option<T> {
        lock(&self.0).pop()
    }

    /// Puts back a buffer.
    pub fn put(&self, used: T) {
        lock(&self.0).push(used);
    }
}

/// Parts that are made before they are used.
const AHEAD: usize = 2;

/// Makes parts on another thread, if two are allowed, and uses them on this one, in order, until there
/// are no more or `use_part` returns `false`. Returns whether it never did. No thread is started for a
/// single part.
///
/// # Panics
/// Panics if one of them does.
pub fn pipe<T: Send>(
    mut make: impl FnMut() -> Option<T> + Send,
    mut use_part: impl FnMut(T) -> bool,
) -> bool {
    let Some(first) = make() else {
        return true;
    };
    let Some(second) = make() else {
        return use_part(first);
    };
    if threads().get() == 1 {
        let rest = std::iter::from_fn(make);
        return [first, second].into_iter().chain(rest).all(use_part);
    }
    let (send, receive) = mpsc::sync_channel(AHEAD);
    std::thread::scope(|scope| {
        let maker = scope.spawn(for_thread(move || {
            while let Some(part) = make()
                && send.send(part).is_ok()
            {}
        }));
        let uses_all = [first, second].into_iter().chain(receive).all(use_part);
        if let Err(panic) = maker.join() {
            std::panic::resume_unwind(panic);
        }
        uses_all
    })
}

/// Makes a part of each input, and uses them on this thread, in order, until there are no more or
/// `use_part` returns `false`. Returns whether it never did. All threads make parts, this one while the
/// next part is not there. Each has a `scratch` of its own. No thread is started for a single part.
///
/// # Panics
/// Panics if one of them does.
pub fn in_order<I: Send, T: Send, S: Send>(
    inputs: impl Iterator<Item = I> + Send,
    scratch: impl Fn() -> S,
    make: impl Fn(&mut S, I) -> T + Sync,
    mut use_part: impl FnMut(T) -> bool,
) -> bool {
    let (mut mine, mut inputs) = (scratch(), inputs.enumerate());
    let first: Vec<(usize, I)> = inputs.by_ref().take(2).collect();
    let is_single = threads().get() == 1 || first.len() < 2;
    let mut inputs = first.into_iter().chain(inputs);
    if is_single {
        return inputs.all(|(_, input)| use_part(make(&mut mine, input)));
    }
    let inputs = Mutex::new(inputs);
    let take = || lock(&inputs).next();
    let (send, receive) = mpsc::sync_channel(AHEAD);
    std::thread::scope(|scope| {
        let (make, take) = (&make, &take);
        let makers: Vec<_> = (1..threads().get().min(MAX_THREADS))
            .map(|_| {
                let (send, mut its) = (send.clone(), scratch());
                scope.spawn(for_thread(move || {
                    while let Some((at, input)) = take()
                        && send.send((at, make(&mut its, input))).is_ok()
                    {}
                }))
            })
            .collect();
        // So that the last of them ends the channel.
        drop(send);
        let mut ready = BTreeMap::new();
        let mut next = 0;
        let uses_all = loop {
            if let Some(part) = ready.remove(&next) {
                if !use_part(part) {
                    break false;
                }
                next += 1;
                continue;
            }
            let input = match receive.try_recv() {
                Ok((at, part)) => {
                    ready.insert(at, part);
                    continue;
                }
                Err(_) if ready.len() < AHEAD => take(),
                Err(_) => None,
            };
            if let Some((at, input)) = input {
                ready.insert(at, make(&mut mine, input));
            } else if let Ok((at, part)) = receive.recv() {
                ready.insert(at, part);
            } else {
                break true;
            }
        };
        drop(receive);
        for maker in makers {
            if let Err(panic) = maker.join() {
                std::panic::resume_unwind(panic);
            }
        }
        uses_all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

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
                let whole: Vec<usize> = (0..len).collect();
                let parts = ranges(len, worth, Iterator::collect::<Vec<usize>>);
                assert!(worth <= len || parts.len() == 1);
                assert_eq!(parts.concat(), whole);
                let parts = balanced(len, worth, Iterator::collect::<Vec<usize>>);
                assert!(worth <= len || parts.len() == 1);
                assert_eq!(parts.concat(), whole);
            }
        }
    }

    #[test]
    fn parts_are_used_in_order_until_one_is_refused() {
        for count in [0, 1, 2, 3, 100] {
            for last in [0, 1, 2, 50, 1000] {
                let mut parts = 0..count;
                let mut used = Vec::new();
                let use_part = |part| {
                    used.push(part);
                    part < last
                };
                let uses_all = pipe(|| parts.next(), use_part);
                assert_eq!(uses_all, last >= count);
                let expected: Vec<i32> = (0..count.min(last + 1)).collect();
                assert_eq!(used, expected);
                let mut used = Vec::new();
                let make = |made: &mut i32, part: i32| {
                    *made += 1;
                    std::thread::sleep(std::time::Duration::from_micros(part as u64 % 3 * 20));
                    (*made, part)
                };
                let use_part = |(made, part)| {
                    assert!(made > 0);
                    used.push(part);
                    part < last
                };
                assert_eq!(in_order(0..count, || 0, make, use_part), last >= count);
                assert_eq!(used, expected);
            }
        }
    }

    #[test]
    fn a_panic_of_a_thread_that_makes_parts_comes_back() {
        let mut parts = 0;
        let make = || {
            parts += 1;
            assert!(parts < 5, "five");
            Some(parts)
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| pipe(make, |_| true)));
        assert!(outcome.is_err());
        let make = |(): &mut (), part| assert!(part < 5, "five");
        let outcome = catch_unwind(|| in_order(0..100, || (), make, |()| true));
        assert!(outcome.is_err());
    }

    #[test]
    fn both_results_come_back_and_a_panic_of_either() {
        assert_eq!(both(|| 1, || 2), (1, 2));
        let of_one = catch_unwind(|| both(|| panic!("one"), || 2).1);
        assert!(of_one.is_err());
    }
}
