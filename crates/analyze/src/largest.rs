//! The objects that retain most, each once: of a chain of objects that retain the same memory,
//! the one whose name says most, of a list its head.

use super::filter::Filter;
use super::label;
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, HeapGraph, ObjectIndex, ObjectSet, Retained,
};
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
    /// How many objects of its class are on the chain, itself one of them: links of a list.
    pub links: u64,
    /// The first of the chain of objects that retain the same memory: the object itself where
    /// there is no other, or chains are not looked for.
    pub start: ObjectIndex,
    /// The last of that chain that retains nearly the same, not merely a link.
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
    /// Whether they hold one another, the first of them all others.
    pub are_links: bool,
}

/// Objects of one class make up an object where they retain at least so many of 100 bytes.
const MOST_PERCENT: u64 = 70;

/// So many links make a list.
const LIST: u64 = 3;

/// Objects of one class, more than one, that make up most of what a large one retains: links of
/// the list that it is the head of, else those right below its chain in the dominator tree;
/// `None` where there are none.
pub fn members(graph: &HeapGraph, dominators: &Dominators, large: &Large) -> Option<Members> {
    if large.links >= LIST {
        return Some(Members {
            class: graph.class_of(large.object),
            count: large.links,
            are_links: true,
        });
    }
    let end = large.end;
    let mut classes: HashMap<ClassIndex, (u64, Retained)> = HashMap::new();
    for object in dominators.children(end) {
        let (count, retained) = classes.entry(graph.class_of(object)).or_default();
        *count += 1;
        retained.add(dominators.retained(object));
    }
    let (class, (count, retained)) = classes
        .into_iter()
        .max_by_key(|(class, (_, retained))| (retained.total_bytes(), Reverse(*class)))?;
    let whole = dominators.retained(end).total_bytes();
    let is_most = percent_of(retained.total_bytes(), whole, MOST_PERCENT);
    (count > 1 && is_most).then_some(Members {
        class,
        count,
        are_links: false,
    })
}

/// An object that retains at least so many of 100 bytes of what the first of a chain retains
/// stands for the same memory.
const SAME_PERCENT: u64 = 95;

/// The chain below an object, one object at a time: those that retain nearly what the first
/// retains, and links of a list, however little the last of them retain.
struct Chain<'a> {
    graph: &'a HeapGraph,
    dominators: &'a Dominators,
    /// What the first retains.
    whole: u64,
    /// The last so far.
    at: ObjectIndex,
    /// The classes up to the last, of a long chain those near it: the class of object `n` stands
    /// at `n % LINE`.
    line: [Option<ClassIndex>; LINE],
    /// How many objects there are so far.
    objects: usize,
}

/// So many objects make up a round of a list at most: links of several classes in turn.
const LONGEST_ROUND: usize = 4;
/// Links of several classes are told from objects that happen to nest by so many rounds.
const ROUNDS: usize = 3;
/// Objects near the last one whose classes tell whether another is a link.
const LINE: usize = LONGEST_ROUND * ROUNDS;

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

    /// Whether an object of a class goes on the list of links that the chain ends with.
    fn is_link(&self, class: Option<ClassIndex>) -> bool {
        let back = |steps: usize| match steps {
            0 => class,
            // The last is one step back.
            n if n <= LINE => {
                let at = self.objects.checked_sub(n);
                at.and_then(|at| self.line[at % LINE])
            }
            _ => None,
        };
        let repeats = |round: usize, objects: usize| {
            (0..objects).all(|at| back(at).is_some() && back(at) == back(at + round))
        };
        repeats(1, 1) || (2..=LONGEST_ROUND).any(|round| repeats(round, round * (ROUNDS - 1)))
    }
}

impl Iterator for Chain<'_> {
    type Item = ObjectIndex;

    fn next(&mut self) -> Option<ObjectIndex> {
        let bytes = |object| self.dominators.retained(object).total_bytes();
        let above = bytes(self.at);
        // More than half: at most one does.
        let next = self.dominators.children(self.at).find(|&child| {
            let own = bytes(child);
            let is_same = percent_of(own, self.whole, SAME_PERCENT);
            is_same || percent_of(own, above, 50) && self.is_link(class_of(self.graph, child))
        })?;
        self.push(next);
        Some(next)
    }
}

/// The class of an object; `None` for class objects, which are never links of a list.
fn class_of(graph: &HeapGraph, object: ObjectIndex) -> Option<ClassIndex> {
    let is_class = label::class_behind(graph, object).is_some();
    (!is_class).then(|| graph.class_of(object))
}

/// Whether a part is at least so many percent of a whole.
fn percent_of(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// What is known of a class on the chain that is followed.
#[derive(Debug, Clone, Copy, Default)]
struct OnChain {
    /// Which chain: the place of its start, from 1. What is known of another is void.
    chain: usize,
    /// How many objects of the class are on it.
    links: u64,
    /// One of them was offered.
    is_offered: bool,
}

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
        // Chains are followed from their top; what is on one begins none. Whoever retains too
        // little is passed over, and so is all below it: the last on the line is the immediate
        // dominator.
        let mut line: Vec<(ObjectIndex, usize)> = Vec::new();
        let mut on_chains = ObjectSet::new(graph.len());
        // Of the chain that is followed the first object of each class that is wanted and retains
        // nearly the same; and what is known of its classes, by class.
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
                end = at;
                // Objects of one class may lie in several heaps: the first one need not be wanted.
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
                let class = class_of(graph, large.object);
                large.links = class.map_or(1, |class| classes[class.at()].links);
            }
            if let Some(large) = said_best(&firsts)
                && is_enough(&top, most, large.retained)
            {
                offer(&mut top, most, large.object, large.retained);
                chains.insert(large.object, large);
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

/// Which of a chain stands for it: of those whose names say most the outermost, of the app's own
/// the innermost, of links of a list the head.
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
