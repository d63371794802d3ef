//! Things that are kept once and told apart by dense ids, in order of first appearance: texts in
//! one flat string, and entries of any other kind. What the tables of all models are made of.

use super::index::{Index, Seed};
use std::ops::Range;

/// The part of a flat array that belongs to entry `id`, given where each entry ends.
#[inline]
pub fn span(ends: &[usize], id: u32) -> Range<usize> {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    start..ends[id]
}

/// The id of the entry after `len` others.
#[inline]
pub fn next_id(len: usize) -> u32 {
    u32::try_from(len).expect("a table outgrows memory before it has 2^32 entries")
}

/// Texts, each once; 0 is the empty one.
#[derive(Debug, Clone)]
pub struct Texts {
    seed: Seed,
    index: Index,
    text: String,
    ends: Vec<usize>,
}

impl Default for Texts {
    fn default() -> Self {
        let mut texts = Texts {
            seed: Seed::default(),
            index: Index::default(),
            text: String::new(),
            ends: Vec::new(),
        };
        texts.id("");
        texts
    }
}

impl Texts {
    /// The id of a text.
    pub fn id(&mut self, text: &str) -> u32 {
        let hash = self.seed.bytes(text.as_bytes());
        let next = next_id(self.ends.len());
        let (all, ends) = (&self.text, &self.ends);
        let (id, there) = self.index.find_or_insert(hash, next, |id| {
            all.as_bytes()[span(ends, id)] == *text.as_bytes()
        });
        if !there {
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
        id
    }

    /// The text of an id.
    #[inline]
    pub fn get(&self, id: u32) -> &str {
        &self.text[span(&self.ends, id)]
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Gives back what only interning needs, once nothing more will be interned.
    pub fn seal(&mut self) {
        self.index = Index::default();
        self.text.shrink_to_fit();
    }
}

/// Entries, each once.
#[derive(Debug, Clone)]
pub struct Interned<T> {
    index: Index,
    all: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned {
            index: Index::default(),
            all: Vec::new(),
        }
    }
}

impl<T: PartialEq> Interned<T> {
    /// The id of an entry; equal ones have equal hashes.
    #[inline]
    pub fn id(&mut self, hash: u64, entry: T) -> u32 {
        let next = next_id(self.all.len());
        let all = &self.all;
        let (id, there) = self
            .index
            .find_or_insert(hash, next, |id| all[id as usize] == entry);
        if !there {
            self.all.push(entry);
        }
        id
    }

    /// All, in order of their ids.
    #[inline]
    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// Gives back what only interning needs, once nothing more will be interned.
    pub fn seal(&mut self) {
        self.index = Index::default();
        self.all.shrink_to_fit();
    }
}
