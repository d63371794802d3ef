//! A tree of calls: each call is a frame and its caller. Owns the search for a child; frames have no
//! meaning here.
//!
//! Most calls have few callees, and most callees are entered right after their caller. So the
//! callees of a call are a list, and only a long list becomes part of a hash table.

use crate::profile::index::{Index, Seed};
use crate::profile::interned::next_id;

/// A frame and its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Position of the caller, which is smaller; 0 for the root itself.
    pub parent: u32,
    /// Frame of the call; meaningless for the root.
    pub frame: u32,
}

/// Links of a call to others, by position; 0 means none, because the root is not a callee.
#[derive(Debug, Clone, Copy, Default)]
struct Links {
    /// Last entered callee, or [`HASHED`].
    callee: u32,
    /// Callee of the same caller that was entered before this one.
    sibling: u32,
}

/// Marks a call whose callees are in the hash table.
const HASHED: u32 = u32::MAX;
/// Number of callees to search before a list becomes part of the hash table.
const MAX_SEARCHED_CALLEES: usize = 8;

/// Calls, parents before children. The first one is the root.
#[derive(Debug, Clone)]
pub struct Calls {
    all: Vec<Call>,
    links: Vec<Links>,
    seed: Seed,
    index: Index,
}

impl Default for Calls {
    fn default() -> Self {
        let root = Call {
            parent: 0,
            frame: u32::MAX,
        };
        Calls {
            all: vec![root],
            links: vec![Links::default()],
            seed: Seed::default(),
            index: Index::default(),
        }
    }
}

impl Calls {
    /// Returns the call of `frame` from `parent`, which is added if it is new.
    #[inline]
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        self.relink();
        let mut at = self.links[parent as usize].callee;
        if at == HASHED {
            return self.hashed(parent, frame);
        }
        for _ in 0..MAX_SEARCHED_CALLEES {
            if at == 0 {
                break;
            }
            if self.all[at as usize].frame == frame {
                return at;
            }
            at = self.links[at as usize].sibling;
        }
        if at == 0 {
            return self.add(parent, frame);
        }
        self.hash_callees(parent);
        self.hashed(parent, frame)
    }

    /// Adds a call that does not exist yet.
    #[inline]
    pub fn add(&mut self, parent: u32, frame: u32) -> u32 {
        self.relink();
        let callee = self.links[parent as usize].callee;
        if callee == HASHED {
            return self.hashed(parent, frame);
        }
        let id = next_id(self.all.len());
        self.all.push(Call { parent, frame });
        self.links.push(Links {
            callee: 0,
            sibling: callee,
        });
        self.links[parent as usize].callee = id;
        id
    }

    #[inline]
    pub fn all(&self) -> &[Call] {
        &self.all
    }

    /// Adds the sums of each call to those of its callers (saturating).
    pub fn accumulate(&self, sums: &mut [i64]) {
        for (id, call) in self.all.iter().enumerate().skip(1).rev() {
            let value = sums[id];
            let above = &mut sums[call.parent as usize];
            *above = above.saturating_add(value);
        }
    }

    /// Frees the memory that only the search needs. A later entry restores it.
    pub fn seal(&mut self) {
        self.links = Vec::new();
        self.index = Index::default();
        self.all.shrink_to_fit();
    }

    fn hashed(&mut self, parent: u32, frame: u32) -> u32 {
        let hash = self.hash(parent, frame);
        let next = next_id(self.all.len());
        let call = Call { parent, frame };
        let all = &self.all;
        let (id, there) = self
            .index
            .find_or_insert(hash, next, |id| all[id as usize] == call);
        if !there {
            self.all.push(call);
            self.links.push(Links::default());
        }
        id
    }

    #[cold]
    fn hash_callees(&mut self, parent: u32) {
        let mut at = std::mem::replace(&mut self.links[parent as usize].callee, HASHED);
        while at != 0 {
            let hash = self.hash(parent, self.all[at as usize].frame);
            // Callees of one caller differ.
            self.index.find_or_insert(hash, at, |_| false);
            at = self.links[at as usize].sibling;
        }
    }

    fn hash(&self, parent: u32, frame: u32) -> u64 {
        self.seed.number(u64::from(parent) << 32 | u64::from(frame))
    }

    #[inline]
    fn relink(&mut self) {
        if self.links.len() < self.all.len() {
            self.restore_links();
        }
    }

    #[cold]
    fn restore_links(&mut self) {
        self.links = vec![Links::default(); self.all.len()];
        for (id, call) in self.all.iter().enumerate().skip(1) {
            let callee = &mut self.links[call.parent as usize].callee;
            let sibling = std::mem::replace(callee, id as u32);
            self.links[id].sibling = sibling;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_lists_and_in_the_table_and_after_sealing() {
        let mut calls = Calls::default();
        let enter = |calls: &mut Calls| -> Vec<u32> {
            let pairs = (0..5u32).flat_map(|of| (0..4 * of).map(move |frame| (of, frame)));
            pairs
                .map(|(of, frame)| {
                    let parent = calls.child(0, of);
                    calls.child(parent, frame)
                })
                .collect()
        };
        let first = enter(&mut calls);
        let count = calls.all().len();
        assert_eq!(count, 1 + 4 + 40, "each once");
        assert_eq!(enter(&mut calls), first);
        calls.seal();
        assert_eq!(enter(&mut calls), first);
        assert_eq!(calls.all().len(), count);
        let added = calls.add(first[0], 7);
        assert_eq!(calls.child(first[0], 7), added);
    }
}
