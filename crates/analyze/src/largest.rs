//! Objects with the largest retained size, each once: of a chain of objects that retain the same
//! memory, the one with the most descriptive name; of a list, its head.

use super::filter::Filter;
use super::label;
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, HeapGraph, ObjectIndex, ObjectSet, Retained,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Object with its retained size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Large {
    pub object: ObjectIndex,
    /// Retained size.
    pub retained: Retained,
    /// Number of its dominators that were omitted because they retain the same memory.
    pub folded: u32,
    /// Number of links of the list that it heads; 1 if it does not head one.
    pub links: u64,
    /// First object of the chain that retains the same memory: the object itself if the chain has
    /// no other, or if chains are not folded.
    pub start: ObjectIndex,
    /// Last object of that chain that retains nearly the same and is not merely a link.
    pub end: ObjectIndex,
    /// Dominator of the chain; `None` if it is the virtual root, or if chains are not folded.
    pub above: Option<ObjectIndex>,
}

/// Objects of one class that make up most of the retained size of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Members {
    pub class: ClassIndex,
    /// Number of objects, with those of the class that they hold: a bucket of a hash table holds its
    /// other entries.
    pub count: u64,
    /// Retained size of all of them.
    pub bytes: u64,
    /// Whether they refer to one another, so that the first one holds all others.
    pub are_links: bool,
}

impl Members {
    /// Returns whether a member with that retained size is similar to the others. One that stands
    /// out retains a fifth of all, and half as much again as the average.
    pub fn are_similar_to(&self, retained: Retained) -> bool {
        let own = retained.total_bytes();
        let average_percent = 100 / self.count.max(1);
        !percent_of(own, self.bytes, 20.max(average_percent * 3 / 2))
    }
}

/// Minimum share of the retained size, in percent, that objects of one class must have to make up
/// an object.
const MAX_PERCENT: u64 = 70;

/// Minimum number of links in a list.
const LIST: u64 = 3;

/// Returns the objects of one class, more than one, that make up most of the retained size of
/// `large`: the links of the list that it heads, otherwise the children of its chain in the
/// dominator tree. Returns `None` if no class makes up most of it. Class objects are no members,
/// because each has other static fields.
pub fn members(graph: &HeapGraph, dominators: &Dominators, large: &Large) -> Option<Members> {
    if large.links >= LIST {
        return Some(Members {
            class: graph.class_of(large.object),
            count: large.links,
            bytes: large.retained.total_bytes(),
            are_links: true,
        });
    }
    let end = large.end;
    let mut classes: HashMap<ClassIndex, (u64, Retained)> = HashMap::new();
    for (object, retained) in dominators.retained_below(Some(end)) {
        let Some(class) = class_of(graph, object) else {
            continue;
        };
        let (count, sum) = classes.entry(class).or_default();
        *count += 1;
        sum.add(retained);
    }
    let (class, (count, retained)) = classes
        .into_iter()
        .max_by_key(|(class, (_, retained))| (retained.total_bytes(), Reverse(*class)))?;
    let whole = dominators.retained(end).total_bytes();
    let is_most = percent_of(retained.total_bytes(), whole, MAX_PERCENT);
    (count > 1 && is_most).then(|| Members {
        class,
        count: connected(graph, dominators, end, class),
        bytes: retained.total_bytes(),
        are_links: false,
    })
}

/// Returns the number of objects of a class below another object in the dominator tree, without
/// those below other classes.
fn connected(
    graph: &HeapGraph,
    dominators: &Dominators,
    above: ObjectIndex,
    class: ClassIndex,
) -> u64 {
    let mut count = 0;
    let mut open = vec![above];
    while let Some(at) = open.pop() {
        let before = open.len();
        open.extend(
            dominators
                .children(at)
                .filter(|&object| graph.class_of(object) == class),
        );
        count += (open.len() - before) as u64;
    }
    count
}

/// Minimum share, in percent of what the first object of a chain retains, at which another one is
/// considered to retain the same memory.
const SAME_PERCENT: u64 = 95;

/// Chain below an object, one object at a time: objects that retain nearly as much as the first
/// one, and links of a list, however little the last links retain.
struct Chain<'a> {
    graph: &'a HeapGraph,
    dominators: &'a Dominators,
    /// Retained bytes of the first object.
    whole: u64,
    /// Last object so far.
    at: ObjectIndex,
    /// Classes of the last [`LINE`] objects: the class of object `n` is at `n % LINE`.
    line: [Option<ClassIndex>; LINE],
    /// Number of objects so far.
    objects: usize,
}

/// Maximum number of classes that alternate in the links of a list.
const MAX_ROUND_LENGTH: usize = 4;
/// Number of repetitions that distinguishes links of several classes from objects that happen to
/// nest.
const ROUNDS: usize = 3;
/// Number of last objects whose classes decide whether the next one is a link.
const LINE: usize = MAX_ROUND_LENGTH * ROUNDS;

impl<'a> Chain<'a> {
    fn from(graph: &'a HeapGraph, dominators: &'a Dominators, start: ObjectIndex) -> Chain<'a> {
        let mut chain = Chain {
            graph,
            dominators,
            whole: dominators.retained(start).total_bytes(),
            at: start,
            line: [None; LINE],
            objects: 0,
        };
        chain.push(start);
        chain
    }

    fn push(&mut self, object: ObjectIndex) {
        self.at = object;
        self.line[self.objects % LINE] = class_of(self.graph, object);
        self.objects += 1;
    }

    /// Returns whether an object of a class continues the list of links at the end of the chain.
    fn is_link(&self, class: Option<ClassIndex>) -> bool {
        let back = |steps: usize| match steps {
            0 => class,
            // The last object is one step back.
            n if n <= LINE => {
                let at = self.objects.checked_sub(n);
                at.and_then(|at| self.line[at % LINE])
            }
            _ => None,
        };
        let repeats = |round: usize, objects: usize| {
            (0..objects).all(|at| back(at).is_some() && back(at) == back(at + round))
        };
        repeats(1, 1) || (2..=MAX_ROUND_LENGTH).any(|round| repeats(round, round * (ROUNDS - 1)))
    }
}

impl Iterator for Chain<'_> {
    type Item = ObjectIndex;

    fn next(&mut self) -> Option<ObjectIndex> {
        let bytes = |object| self.dominators.retained(object).total_bytes();
        let above = bytes(self.at);
        // More than half: at most one child can satisfy this.
        let next = self.dominators.children(self.at).find(|&child| {
            let own = bytes(child);
            let is_same = percent_of(own, self.whole, SAME_PERCENT);
            is_same || percent_of(own, above, 50) && self.is_link(class_of(self.graph, child))
        })?;
        self.push(next);
        Some(next)
    }
}

/// Returns the class of an object; `None` for class objects, which are never links of a list.
fn class_of(graph: &HeapGraph, object: ObjectIndex) -> Option<ClassIndex> {
    let is_class = label::class_behind(graph, object).is_some();
    (!is_class).then(|| graph.class_of(object))
}

/// Returns whether a part is at least `percent` percent of a whole.
fn percent_of(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// State of a class on the current chain.
#[derive(Debug, Clone, Copy, Default)]
struct OnChain {
    /// Number of the chain, from 1: the position of its start. State of another chain is invalid.
    chain: usize,
    /// Number of objects of the class on the chain.
    links: u64,
    /// Number of those that retain nearly as much as the start.
    same: u64,
    /// Whether one of them is a candidate already.
    is_offered: bool,
}

/// Returns the `most` objects with the largest retained size among those that `filter` selects,
/// largest first. With `fold`, returns one object of each chain that retains (nearly) the same.
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
        // Chains are followed from their top, so an object on a chain does not begin another one.
        // An object that retains too little is skipped with everything below it. The last entry of
        // the line is the immediate dominator.
        let mut line: Vec<(ObjectIndex, usize)> = Vec::new();
        let mut on_chains = ObjectSet::new(graph.len());
        // Of the current chain: the first selected object of each class that retains nearly the
        // same, and the state of its classes.
        let mut firsts: Vec<(u8, Large)> = Vec::new();
        let mut classes = vec![OnChain::default(); graph.classes().len()];
        for (place, (start, retained)) in dominators.iter().enumerate() {
            if !is_enough(&top, most, retained) {
                continue;
            }
            while line.last().is_some_and(|&(_, end)| end <= place) {
                line.pop();
            }
            let above = line.last().map(|&(above, _)| above);
            line.push((start, place + retained.count as usize));
            if on_chains.contains(start) {
                continue;
            }
            let mut end = start;
            firsts.clear();
            let chain = Chain::from(graph, dominators, start);
            for (depth, at) in std::iter::once(start).chain(chain).enumerate() {
                on_chains.insert(at);
                let (own, whole) = (dominators.retained(at), retained.total_bytes());
                let mut class = class_of(graph, at).map(|class| &mut classes[class.at()]);
                if let Some(class) = &mut class {
                    if class.chain != place + 1 {
                        **class = OnChain {
                            chain: place + 1,
                            ..OnChain::default()
                        };
                    }
                    class.links += 1;
                }
                if !percent_of(own.total_bytes(), whole, SAME_PERCENT) {
                    continue;
                }
                if let Some(class) = &mut class {
                    class.same += 1;
                }
                end = at;
                // Objects of one class can be in several heaps, so the filter can reject the first
                // one.
                if !class.as_ref().is_some_and(|class| class.is_offered) && wanted.takes(at) {
                    if let Some(class) = class {
                        class.is_offered = true;
                    }
                    let large = Large {
                        object: at,
                        retained: own,
                        folded: u32::try_from(depth).unwrap_or(u32::MAX),
                        links: 1,
                        start,
                        end,
                        above,
                    };
                    firsts.push((telling(graph, at), large));
                }
            }
            for (_, large) in &mut firsts {
                large.end = end;
                if let Some(class) = class_of(graph, large.object) {
                    let OnChain { links, same, .. } = classes[class.at()];
                    // If all retain the same, the memory is behind the last one.
                    large.links = if links > same { links } else { 1 };
                }
            }
            if let Some(large) = said_best(&firsts)
                && is_enough(&top, most, large.retained)
            {
                chains.insert(large.object, large);
                // Ties are offered, too, as many as there are objects: only the largest stay.
                if let Some(left) = offer(&mut top, most, large.object, large.retained) {
                    chains.remove(&left);
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
            links: 1,
            start: object,
            end: object,
            above: None,
        })
    };
    let mut found: Vec<Large> = top.into_iter().map(large).collect();
    found.sort_by_key(|large| (Reverse(large.retained.total_bytes()), large.object));
    found
}

/// Largest objects so far by bytes and number, smallest on top.
type Top = BinaryHeap<Reverse<(u64, Reverse<ObjectIndex>)>>;

/// Returns whether an object with that retained size can be among the `most` largest.
fn is_enough(top: &Top, most: usize, retained: Retained) -> bool {
    let least = top.peek().filter(|_| top.len() >= most);
    least.is_none_or(|Reverse((least, _))| retained.total_bytes() >= *least)
}

/// Adds an object if it is among the `most` largest. Returns the object that is not among them then:
/// the smallest one so far, or this one.
fn offer(
    top: &mut Top,
    most: usize,
    object: ObjectIndex,
    retained: Retained,
) -> Option<ObjectIndex> {
    top.push(Reverse((retained.total_bytes(), Reverse(object))));
    if top.len() <= most {
        return None;
    }
    let Reverse((_, Reverse(least))) = top.pop()?;
    Some(least)
}

/// Returns the object that represents a chain: the outermost of those with the most descriptive
/// names; among the app's own classes the innermost; of a list the head.
fn said_best(firsts: &[(u8, Large)]) -> Option<Large> {
    let most = firsts.iter().map(|(rank, _)| *rank).max()?;
    let mut best = firsts.iter().filter(|(rank, _)| *rank == most);
    let innermost = firsts.iter().rfind(|(rank, _)| *rank == most)?.1;
    let found = match innermost.links >= LIST {
        true => best.find(|(_, large)| large.links >= LIST),
        false if most > 1 => return Some(innermost),
        false => best.next(),
    };
    found.map(|(_, large)| *large)
}

/// Returns how descriptive the name of an object is: arrays and runtime classes are the least.
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
