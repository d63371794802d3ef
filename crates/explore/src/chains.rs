//! Ends of long chains, such as the path through a list of millions of nodes. Owns the shortcuts, so
//! that the chains of many objects that share most of their links are not followed link by link.

use heaptap_model::heap_graph::ObjectIndex;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Number of links after which a chain gets a shortcut.
const STRIDE: usize = 4096;

/// Chains of one relation.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// By object, an object further up and the number of links to it.
    shortcuts: Mutex<HashMap<ObjectIndex, (ObjectIndex, usize)>>,
}

/// Ends of a chain from an object to its top.
pub(crate) struct Ends {
    /// Number of objects.
    pub length: usize,
    bottom: Vec<ObjectIndex>,
    top: VecDeque<ObjectIndex>,
}

impl Ends {
    /// Returns the object in a place, counted from the top; `None` between the ends.
    pub fn get(&self, place: usize) -> Option<ObjectIndex> {
        let from_top = self.top.iter().rev().nth(place);
        let from_bottom = || self.bottom.get((self.length - 1).checked_sub(place)?);
        from_top.or_else(from_bottom).copied()
    }
}

impl Chains {
    /// Returns at most `most` objects at either end of the chain of `object`.
    pub fn ends(
        &self,
        object: ObjectIndex,
        most: usize,
        up: impl Fn(ObjectIndex) -> Option<ObjectIndex>,
    ) -> Ends {
        let shortcuts = self.shortcuts.lock();
        let mut shortcuts = shortcuts.unwrap_or_else(PoisonError::into_inner);
        let (mut bottom, mut top) = (Vec::new(), VecDeque::new());
        let (mut length, mut walked) = (0, 0);
        let mut marks = Vec::new();
        let mut next = Some(object);
        while let Some(at) = next {
            if bottom.len() < most {
                bottom.push(at);
            } else if let Some(&(above, links)) = shortcuts.get(&at) {
                length += links;
                top.clear();
                next = Some(above);
                continue;
            }
            top.push_back(at);
            if top.len() > most {
                top.pop_front();
            }
            if walked % STRIDE == 0 {
                marks.push((at, length));
            }
            length += 1;
            walked += 1;
            next = up(at);
        }
        for pair in marks.windows(2) {
            let [(below, from), (above, to)] = [pair[0], pair[1]];
            // The top end is never skipped.
            if length - to > STRIDE {
                shortcuts.insert(below, (above, to - from));
            }
        }
        Ends {
            length,
            bottom,
            top,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_those_of_the_whole_chain_whatever_was_asked_before() {
        // Branches join a chain of 50,000 objects at each hundredth.
        let chain = 50_000;
        let up = |ObjectIndex(at): ObjectIndex| match at {
            0 => None,
            at if at <= chain => Some(ObjectIndex(at - 1)),
            at => Some(ObjectIndex((at - chain) * 100)),
        };
        let chains = Chains::default();
        for object in [chain, chain + 499, 7, 0, chain + 250, chain - 4096, chain] {
            let object = ObjectIndex(object);
            let mut whole: Vec<_> = std::iter::successors(Some(object), |&at| up(at)).collect();
            whole.reverse();
            for most in [1, 9, 201] {
                let ends = chains.ends(object, most, up);
                assert_eq!(ends.length, whole.len());
                let left_out = most..whole.len().saturating_sub(most);
                for place in (0..whole.len()).filter(|place| !left_out.contains(place)) {
                    assert_eq!(ends.get(place), Some(whole[place]), "{object:?} {place}");
                }
            }
        }
        let steps = std::cell::Cell::new(0);
        let counted = |at| {
            steps.set(steps.get() + 1);
            up(at)
        };
        chains.ends(ObjectIndex(chain + 480), 9, counted);
        assert!(steps.get() < 4 * STRIDE, "{}", steps.get());
    }
}
