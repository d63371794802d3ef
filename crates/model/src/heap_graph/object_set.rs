//! Sets of objects, one bit each.

use super::ids::ObjectIndex;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set of objects of one graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectSet {
    bits: Vec<u64>,
}

impl ObjectSet {
    /// Creates an empty set for a graph with that many objects.
    pub fn new(objects: usize) -> ObjectSet {
        ObjectSet {
            bits: vec![0; objects.div_ceil(64)],
        }
    }

    /// Creates a set of these objects of a graph with `graph` objects.
    pub fn from_graph(graph: usize, objects: impl IntoIterator<Item = ObjectIndex>) -> ObjectSet {
        let mut set = ObjectSet::new(graph);
        for object in objects {
            set.insert(object);
        }
        set
    }

    /// Creates a set of those objects of a graph with `objects` objects that `has` selects: faster than to
    /// add most of them.
    pub fn from_fn(objects: usize, has: impl Fn(ObjectIndex) -> bool) -> ObjectSet {
        let word = |at: usize| {
            let first = at * 64;
            (first..objects.min(first + 64)).fold(0, |word, object| {
                word | u64::from(has(ObjectIndex(object as u32))) << (object - first)
            })
        };
        ObjectSet {
            bits: (0..objects.div_ceil(64)).map(word).collect(),
        }
    }

    /// Removes the objects that are not in another set of the same graph.
    pub fn retain(&mut self, other: &ObjectSet) {
        for (word, other) in self.bits.iter_mut().zip(&other.bits) {
            *word &= other;
        }
    }

    /// Sorts different objects of a graph with `objects` objects, in linear time if they are many.
    pub fn sort(objects: usize, list: &mut Vec<ObjectIndex>) {
        if list.len() > objects / 64 {
            let set = ObjectSet::from_graph(objects, list.drain(..));
            list.extend(set.iter());
        } else {
            list.sort_unstable();
        }
    }

    /// Returns whether the set contains the object.
    #[inline]
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.bits[object.at() / 64] >> (object.at() % 64) & 1 == 1
    }

    /// Adds an object; returns `false` if the set already contains it.
    #[inline]
    pub fn insert(&mut self, object: ObjectIndex) -> bool {
        let word = &mut self.bits[object.at() / 64];
        let bit = 1 << (object.at() % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Returns the first object in the set within a range of indices.
    #[inline]
    pub fn first_in(&self, range: Range<u32>) -> Option<ObjectIndex> {
        let Range { start, end } = range;
        if start >= end {
            return None;
        }
        let (first, last) = (start / 64, (end - 1) / 64);
        let from = u64::MAX << (start % 64);
        let to = u64::MAX >> (63 - (end - 1) % 64);
        let found =
            |at: u32, word: u64| (word != 0).then(|| ObjectIndex(at * 64 + word.trailing_zeros()));
        let word = self.bits[first as usize] & from;
        if first == last {
            return found(first, word & to);
        }
        let between = (first + 1..last).map(|at| (at, self.bits[at as usize]));
        let mut words = std::iter::once((first, word))
            .chain(between)
            .chain(std::iter::once((last, self.bits[last as usize] & to)));
        words.find_map(|(at, word)| found(at, word))
    }

    /// Adds an object, or leaves the set as it is: without a branch, which is faster if neither is rare.
    #[inline]
    pub fn insert_if(&mut self, is_wanted: bool, object: ObjectIndex) {
        self.bits[object.at() / 64] |= u64::from(is_wanted) << (object.at() % 64);
    }

    /// Returns the number of objects in the set.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// Returns the objects in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        of_bits(self.bits.iter().copied())
    }

    /// Returns the objects of a graph with `objects` objects that are not in the set, ascending.
    pub fn missing(&self, objects: usize) -> impl Iterator<Item = ObjectIndex> + '_ {
        let missing = of_bits(self.bits.iter().map(|word| !word));
        missing.take_while(move |object| object.at() < objects)
    }
}

/// A set of objects of one graph to which several threads add at once.
#[derive(Debug)]
pub struct SharedObjectSet {
    bits: Vec<AtomicU64>,
}

impl SharedObjectSet {
    /// Creates an empty set for a graph with that many objects.
    pub fn new(objects: usize) -> SharedObjectSet {
        let words = 0..objects.div_ceil(64);
        SharedObjectSet {
            bits: words.map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Adds an object; returns `false` if the set already contains it.
    #[inline]
    pub fn insert(&self, object: ObjectIndex) -> bool {
        let bit = 1 << (object.at() % 64);
        let before = self.bits[object.at() / 64].fetch_or(bit, Ordering::Relaxed);
        before & bit == 0
    }

    /// Returns whether the set contains the object.
    #[inline]
    pub fn contains(&self, object: ObjectIndex) -> bool {
        let word = self.bits[object.at() / 64].load(Ordering::Relaxed);
        word >> (object.at() % 64) & 1 == 1
    }
}

fn of_bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = ObjectIndex> {
    words.enumerate().flat_map(|(at, word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(ObjectIndex(at as u32 * 64 + bit))
        })
    })
}
