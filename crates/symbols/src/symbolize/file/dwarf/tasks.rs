//! Distribution of addresses to units, and of work to threads.

use super::index::Piece;
use super::units::Units;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Distributes the numbers from 0 to `count` to up to `threads` threads and returns the result of
/// each thread.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    threads: NonZero<usize>,
    work: impl Fn(&mut dyn Iterator<Item = usize>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < count).then_some(at)
    };
    let run = || work(&mut std::iter::from_fn(take));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.get().min(count))
            .map(|_| scope.spawn(run))
            .collect();
        let mut made = vec![run()];
        for other in others {
            match other.join() {
                Ok(more) => made.push(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    })
}

/// Addresses of one unit.
pub(super) struct Task {
    /// Start of the unit; `None` for addresses without one.
    pub unit: Option<usize>,
    /// Indexes of the addresses, in order.
    pub addresses: Vec<usize>,
}

/// Assigns addresses to units, large units first, so that none of them runs alone at the end.
/// Addresses without a unit form their own task.
pub(super) fn tasks(units: &Units, pieces: &[Piece], addresses: &[u64]) -> Vec<Task> {
    let mut tasks = assign(pieces, addresses, |start| units.size_of(start) > 0);
    let size = |task: &Task| task.unit.map_or(0, |start| units.size_of(start));
    tasks.sort_by_key(|task| (Reverse(size(task)), task.unit));
    tasks
}

/// Assigns addresses to those units that exist: a listed one might not.
pub(super) fn assign(
    pieces: &[Piece],
    addresses: &[u64],
    exists: impl Fn(usize) -> bool,
) -> Vec<Task> {
    let mut tasks: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut at = 0;
    for (index, address) in addresses.iter().enumerate() {
        while pieces.get(at).is_some_and(|piece| piece.high <= *address) {
            at += 1;
        }
        let holding = pieces.get(at).filter(|piece| piece.low <= *address);
        let unit = holding.map(|piece| piece.unit);
        tasks
            .entry(unit.filter(|start| exists(*start)))
            .or_default()
            .push(index);
    }
    let tasks = tasks.into_iter();
    tasks
        .map(|(unit, addresses)| Task { unit, addresses })
        .collect()
}
