//! The objects that retain most, each once: of a chain of objects that retain the same memory,
//! the one whose name says most.

use super::filter::Filter;
use super::label;
use crate::heap_graph::{ClassIndex, Dominators, HeapGraph, ObjectIndex, Retained};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// An object and what it retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Large {
    /// The object.
    pub object: ObjectIndex,
    /// What would be free without it.
    pub retained: Retained,
    /// How many of its dominators were left out because they retain the same memory.
    pub folded: u32,
    /// The last of the chain of objects that retain the same memory: the object itself where
    /// there is no other.
    pub end: ObjectIndex,
}

/// Objects of one class that make up most of what an object retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Members {
    /// Their class.
    pub class: ClassIndex,
    /// How many.
    pub count: u64,
    /// What they retain.
    pub retained: Retained,
}

/// Objects of one class make up an object where they retain at least so many of 100 bytes.
const MOST_PERCENT: u64 = 70;

/// Objects of one class, more than one, right below `end` in the dominator tree, that make up
/// most of what it retains; `None` where there are none.
pub fn members(graph: &HeapGraph, dominators: &Dominators, end: ObjectIndex) -> Option<Members> {
    let mut classes: HashMap<ClassIndex, Members> = HashMap::new();
    for object in dominators.children(end) {
        let class = graph.class_of(object);
        let members = classes.entry(class).or_insert(Members {
            class,
            count: 0,
            retained: Retained::default(),
        });
        members.count += 1;
        members.retained.add(dominators.retained(object));
    }
    let most = classes
        .into_values()
        .max_by_key(|members| (members.retained.total_bytes(), Reverse(members.class)))?;
    let whole = u128::from(dominators.retained(end).total_bytes());
    let part = u128::from(most.retained.total_bytes());
    (most.count > 1 && part * 100 >= whole * u128::from(MOST_PERCENT)).then_some(most)
}

/// An object that retains at least so many of 100 bytes of what its dominator retains stands
/// for the same memory.
const SAME_PERCENT: u64 = 95;

/// The `most` objects that retain most of those that `filter` takes, largest first. With
/// `fold`, one of each chain of objects that retain (nearly) the same.
pub fn largest(
    graph: &HeapGraph,
    dominators: &Dominators,
    filter: &Filter,
    most: usize,
    fold: bool,
) -> Vec<Large> {
    let wanted = filter.of(graph);
    let mut top: BinaryHeap<Reverse<(u64, Reverse<ObjectIndex>)>> = BinaryHeap::new();
    let mut offer = |object: ObjectIndex| {
        let bytes = dominators.retained(object).total_bytes();
        let entry = Reverse((bytes, Reverse(object)));
        if top.len() < most {
            top.push(entry);
        } else if top.peek().is_some_and(|least| entry < *least) {
            top.pop();
            top.push(entry);
        }
    };
    let mut chains: HashMap<ObjectIndex, (u32, ObjectIndex)> = HashMap::new();
    if fold {
        let is_same = |above: ObjectIndex, object: ObjectIndex| {
            let above = dominators.retained(above).total_bytes();
            let own = dominators.retained(object).total_bytes();
            u128::from(own) * 100 >= u128::from(above) * u128::from(SAME_PERCENT)
        };
        // Chains are followed from their top; at most one child can retain the same.
        for &object in dominators.order() {
            let continues = dominators
                .idom(object)
                .is_some_and(|above| is_same(above, object));
            if continues {
                continue;
            }
            let (mut best, mut at, mut depth): (Option<(u8, ObjectIndex, u32)>, _, _) =
                (None, object, 0);
            loop {
                if wanted.takes(at) {
                    let rank = telling(graph, at);
                    // Of those that say as much, of the app's own the innermost.
                    if best.is_none_or(|(other, ..)| rank > other || rank == other && rank > 1) {
                        best = Some((rank, at, depth));
                    }
                }
                let same = dominators.children(at).find(|&child| is_same(at, child));
                match same {
                    Some(child) => (at, depth) = (child, depth + 1),
                    None => break,
                }
            }
            if let Some((_, object, depth)) = best {
                if at != object {
                    chains.insert(object, (depth, at));
                }
                offer(object);
            }
        }
    } else {
        for &object in dominators.order() {
            if wanted.takes(object) {
                offer(object);
            }
        }
    }
    let mut found: Vec<Large> = top
        .into_iter()
        .map(|Reverse((_, Reverse(object)))| {
            let (folded, end) = chains.get(&object).copied().unwrap_or((0, object));
            Large {
                object,
                retained: dominators.retained(object),
                folded,
                end,
            }
        })
        .collect();
    found.sort_by_key(|large| (Reverse(large.retained.total_bytes()), large.object));
    found
}

/// How much the name of an object says: arrays and classes of the runtime least.
fn telling(graph: &HeapGraph, object: ObjectIndex) -> u8 {
    let (name, is_class) = match label::class_behind(graph, object) {
        Some(name) => (name, true),
        None => (graph.class(graph.class_of(object)).shown(), false),
    };
    const RUNTIME: [&str; 9] = [
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "kotlin.",
        "kotlinx.",
        "dalvik.",
        "libcore.",
        "androidx.collection.",
    ];
    if name.ends_with("[]") {
        0
    } else if RUNTIME.iter().any(|prefix| name.starts_with(prefix)) {
        if is_class { 0 } else { 1 }
    } else {
        2
    }
}
