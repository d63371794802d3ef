//! A set of objects, one bit each.

use super::ids::ObjectIndex;
use std::ops::Range;

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
    pub fn of(graph: usize, objects: impl IntoIterator<Item = ObjectIndex>) -> ObjectSet {
        let mut set = ObjectSet::new(graph);
        for object in objects {
            set.insert(object);
        }
        set
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
    pub fn first_in(&self, range: Range<u32>) -> Option<ObjectIndex> {
        let Range { start, end } = range;
        if start >= end {
            return None;
        }
        let words = start as usize / 64..=(end - 1) as usize / 64;
        let below = u64::MAX << (start % 64);
        let first = *words.start();
        let found = words.into_iter().find_map(|at| {
            let word = self.bits[at];
            let word = if at == first { word & below } else { word };
            (word != 0).then(|| at as u32 * 64 + word.trailing_zeros())
        })?;
        (found < end).then_some(ObjectIndex(found))
    }

    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|&word| word == 0)
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
