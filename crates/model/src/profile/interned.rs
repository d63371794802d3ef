//! Interned values with dense IDs in order of first appearance: texts in one flat string, and
//! entries of any other type. All tables of the models use them.

use super::index::{Index, Seed};
use std::ops::Range;

/// Returns the range of entry `id` in a flat array, given the end of each entry.
#[inline]
pub fn span(ends: &[usize], id: u32) -> Range<usize> {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    start..ends[id]
}

/// Returns the ID of the entry after `len` others.
#[inline]
pub fn next_id(len: usize) -> u32 {
    u32::try_from(len).expect("a table exhausts memory before it has 2^32 entries")
}

/// Interned texts; ID 0 is the empty one.
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
    /// Returns the ID of a text, which is added if it is new.
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

    /// Returns the text of an ID.
    #[inline]
    pub fn get(&self, id: u32) -> &str {
        &self.text[span(&self.ends, id)]
    }

    /// Returns the number of texts.
    #[allow(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Frees the memory that only interning needs, after the last text.
    pub fn seal(&mut self) {
        self.index = Index::default();
        self.text.shrink_to_fit();
    }
}

/// Interned entries.
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
    /// Returns the ID of an entry, which is added if it is new; equal entries have equal hashes.
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

    /// Returns all entries, in order of their IDs.
    #[inline]
    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// Frees the memory that only interning needs, after the last entry.
    pub fn seal(&mut self) {
        self.index = Index::default();
        self.all.shrink_to_fit();
    }
}
