//! Ends of long chains, such as the path through a list of millions of nodes. Owns the shortcuts, so
//! that the chains of many objects that share most of their links are not followed link by link.

use heaptap_base::parallel::lock;
use heaptap_model::heap_graph::ObjectIndex;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// Number of links after which a chain gets a shortcut. Shorter chains need none.
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
    /// The whole chain, if it is short.
    bottom: Vec<ObjectIndex>,
    /// Empty if the chain is short.
    top: VecDeque<ObjectIndex>,
}

impl Ends {
    /// Returns the object in a place, counted from the top; `None` between the ends.
    pub fn get(&self, place: usize) -> Option<ObjectIndex> {
        let from_bottom = || self.bottom.get((self.length - 1).checked_sub(place)?);
        match self.top.len().checked_sub(place + 1) {
            Some(at) => self.top.get(at).copied(),
            None => from_bottom().copied(),
        }
    }
}

impl Chains {
    /// Returns at least `most` objects at either end of the chain of `object`, or the whole chain.
    pub fn ends(
        &self,
        object: ObjectIndex,
        most: usize,
        up: impl Fn(ObjectIndex) -> Option<ObjectIndex>,
    ) -> Ends {
        let mut bottom = Vec::new();
        let mut next = Some(object);
        while let Some(at) = next
            && bottom.len() < STRIDE.max(most)
        {
            bottom.push(at);
            next = up(at);
        }
        let mut length = bottom.len();
        let mut top = VecDeque::new();
        if let Some(first) = next {
            top.extend(bottom.iter().rev().take(most).rev());
            length += self.follow(first, &mut top, most, up);
        }
        Ends {
            length,
            bottom,
            top,
        }
    }

    /// Follows a long chain from `first`, and leaves its `most` last objects in `top`. Returns the
    /// number of objects.
    fn follow(
        &self,
        first: ObjectIndex,
        top: &mut VecDeque<ObjectIndex>,
        most: usize,
        up: impl Fn(ObjectIndex) -> Option<ObjectIndex>,
    ) -> usize {
        let mut shortcuts = lock(&self.shortcuts);
        let (mut length, mut walked) = (0, 0);
        let mut marks = Vec::new();
        let mut next = Some(first);
        while let Some(at) = next {
            if let Some(&(above, links)) = shortcuts.get(&at) {
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
            if length - to > STRIDE.max(most) {
                shortcuts.insert(below, (above, to - from));
            }
        }
        length
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
