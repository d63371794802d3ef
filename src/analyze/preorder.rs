//! The dominator tree laid out in preorder, so that what an object dominates is the range of
//! positions behind it: no lists of children, no recursion however deep the tree is.

use crate::heap_graph::{Dominators, HeapGraph, ObjectIndex};
use std::ops::Range;

/// Reachable objects in preorder of the dominator tree, siblings in the order of
/// [`Dominators::order`].
pub struct Preorder {
    objects: Vec<ObjectIndex>,
}

impl Preorder {
    /// Lays the tree out.
    pub fn of(graph: &HeapGraph, dominators: &Dominators) -> Preorder {
        let order = dominators.order();
        let mut objects = vec![ObjectIndex::NONE; order.len()];
        // By object, where its next child goes; above all, where the next top goes.
        let mut next = vec![0u32; graph.len()];
        let mut next_top = 0u32;
        for &object in order {
            let place = match dominators.idom(object) {
                Some(above) => &mut next[above.at()],
                None => &mut next_top,
            };
            let at = *place;
            *place += dominators.retained_count(object);
            objects[at as usize] = object;
            next[object.at()] = at + 1;
        }
        Preorder { objects }
    }

    /// The objects, each before those it dominates.
    pub fn objects(&self) -> &[ObjectIndex] {
        &self.objects
    }

    /// Positions of what the object at `at` dominates, itself included.
    pub fn subtree(&self, dominators: &Dominators, at: usize) -> Range<usize> {
        at..at + dominators.retained_count(self.objects[at]) as usize
    }

    /// Positions of the objects right below the one at `at`; of the tops for `None`.
    pub fn children<'a>(
        &'a self,
        dominators: &'a Dominators,
        at: Option<usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        let (mut next, end) = match at {
            None => (0, self.objects.len()),
            Some(at) => (at + 1, self.subtree(dominators, at).end),
        };
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.subtree(dominators, child).end;
            Some(child)
        })
    }
}
