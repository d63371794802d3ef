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
    /// The first of the chain of objects that retain the same memory: the object itself where
    /// there is no other, or chains are not looked for.
    pub start: ObjectIndex,
    /// The last of that chain.
    pub end: ObjectIndex,
    /// Who dominates the chain; `None` where only the virtual root does, or chains are not looked
    /// for.
    pub above: Option<ObjectIndex>,
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
    let mut top = Top::new();
    let mut chains: HashMap<ObjectIndex, Large> = HashMap::new();
    if fold {
        let is_same = |above: ObjectIndex, object: ObjectIndex| {
            let above = dominators.retained(above).total_bytes();
            let own = dominators.retained(object).total_bytes();
            u128::from(own) * 100 >= u128::from(above) * u128::from(SAME_PERCENT)
        };
        // Chains are followed from their top; at most one child can retain the same. Whoever
        // retains too little is passed over, and so is all below it: the last on the line is the
        // immediate dominator.
        let mut line: Vec<(ObjectIndex, usize)> = Vec::new();
        for (place, (start, retained)) in dominators.iter().enumerate() {
            if !is_enough(&top, most, retained) {
                continue;
            }
            while line.last().is_some_and(|&(_, end)| end <= place) {
                line.pop();
            }
            let above = line.last().map(|&(above, _)| above);
            line.push((start, place + retained.count as usize));
            if above.is_some_and(|above| is_same(above, start)) {
                continue;
            }
            let (mut best, mut at, mut depth): (Option<(u8, ObjectIndex, u32)>, _, _) =
                (None, start, 0);
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
            if let Some((_, object, folded)) = best {
                let retained = dominators.retained(object);
                if is_enough(&top, most, retained) {
                    let large = Large {
                        object,
                        retained,
                        folded,
                        start,
                        end: at,
                        above,
                    };
                    chains.insert(object, large);
                    offer(&mut top, most, object, retained);
                }
            }
        }
    } else {
        for (object, retained) in dominators.iter() {
            if is_enough(&top, most, retained) && wanted.takes(object) {
                offer(&mut top, most, object, retained);
            }
        }
    }
    let large = |Reverse((_, Reverse(object)))| {
        chains.get(&object).copied().unwrap_or_else(|| Large {
            object,
            retained: dominators.retained(object),
            folded: 0,
            start: object,
            end: object,
            above: None,
        })
    };
    let mut found: Vec<Large> = top.into_iter().map(large).collect();
    found.sort_by_key(|large| (Reverse(large.retained.total_bytes()), large.object));
    found
}

/// The largest so far by bytes and number, the least of them first.
type Top = BinaryHeap<Reverse<(u64, Reverse<ObjectIndex>)>>;

/// Whether who retains that may be among the `most` largest.
fn is_enough(top: &Top, most: usize, retained: Retained) -> bool {
    let least = top.peek().filter(|_| top.len() >= most);
    least.is_none_or(|Reverse((least, _))| retained.total_bytes() >= *least)
}

fn offer(top: &mut Top, most: usize, object: ObjectIndex, retained: Retained) {
    let entry = Reverse((retained.total_bytes(), Reverse(object)));
    if top.len() < most {
        top.push(entry);
    } else if top.peek().is_some_and(|least| entry < *least) {
        top.pop();
        top.push(entry);
    }
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
