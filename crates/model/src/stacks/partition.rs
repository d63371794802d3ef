//! Stacks parted among the nodes of their tree, one node at a time: a node that is not asked for
//! costs nothing. Frames have no meaning here.

use heaptap_base::prefetch::{BATCH, prefetch};
use std::ops::Range;

/// A stack with the owner's position on it.
#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    stack: T,
    /// Position of the child among its siblings, or [`NONE`].
    next: u32,
}

/// Child of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Frame of the call.
    pub frame: u32,
    /// Stacks that pass here.
    pub range: Range<usize>,
}

/// Stacks, so that those through a node are adjacent, in their original order. `T` is a stack with a
/// position on it.
#[derive(Debug)]
pub struct StackPartition<T> {
    entries: Vec<Entry<T>>,
    /// Room for sorting.
    spare: Vec<Entry<T>>,
    /// Of the last node.
    children: Vec<Child>,
    /// Position among the siblings, by frame; [`NONE`] between calls.
    places: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<T: Copy> StackPartition<T> {
    /// Begins at the root. Frames are less than `frames`.
    pub fn new(stacks: impl Iterator<Item = T>, frames: usize) -> StackPartition<T> {
        let entry = |stack| Entry { stack, next: NONE };
        StackPartition {
            entries: stacks.map(entry).collect(),
            spare: Vec::new(),
            children: Vec::new(),
            places: vec![NONE; frames],
        }
    }

    /// Returns the number of stacks.
    #[allow(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the stacks of a node.
    pub fn stacks(&self, range: Range<usize>) -> impl Iterator<Item = &T> {
        self.entries[range].iter().map(|entry| &entry.stack)
    }

    /// Returns the stacks of a part, to move them.
    pub fn stacks_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut T> {
        self.entries[range].iter_mut().map(|entry| &mut entry.stack)
    }

    /// Moves the stacks of a node to their next frames. Returns the children in order of their first
    /// stacks. If `sorts`, the stacks of each child become adjacent, and those that end at the node
    /// come before them.
    ///
    /// `next` moves a stack to its next frame. `each` gets each stack, and the index of its child
    /// unless it ends here. `ahead` reads something of what these two will read ([`prefetch`]).
    pub fn part(
        &mut self,
        range: Range<usize>,
        sorts: bool,
        ahead: impl Fn(&T) -> u8,
        next: impl Fn(&mut T) -> Option<u32>,
        mut each: impl FnMut(&T, Option<usize>),
    ) -> &[Child] {
        let children = &mut self.children;
        children.clear();
        let mut start = range.start;
        for entries in self.entries[range.clone()].chunks_mut(BATCH) {
            prefetch(entries.iter().map(|entry| ahead(&entry.stack)));
            for Entry { stack, next: to } in entries {
                let Some(frame) = next(stack) else {
                    *to = NONE;
                    start += 1;
                    each(stack, None);
                    continue;
                };
                let place = &mut self.places[frame as usize];
                if *place == NONE {
                    *place = children.len() as u32;
                    children.push(Child { frame, range: 0..0 });
                }
                *to = *place;
                // Its length until all are counted.
                children[*place as usize].range.end += 1;
                each(stack, Some(*place as usize));
            }
        }
        for child in children {
            self.places[child.frame as usize] = NONE;
            let end = start + child.range.end;
            child.range = start..end;
            start = end;
        }
        if sorts {
            self.sort(range);
        }
        &self.children
    }

    fn sort(&mut self, range: Range<usize>) {
        let children = &mut self.children;
        let end = children
            .first()
            .map_or(range.end, |child| child.range.start);
        if end == range.start && children.len() == 1 {
            return;
        }
        let mut ended = range.start;
        self.spare.clear();
        self.spare.extend_from_slice(&self.entries[range]);
        for entry in &self.spare {
            let place = match entry.next {
                NONE => &mut ended,
                // Each start moves to the end, and back.
                next => &mut children[next as usize].range.start,
            };
            self.entries[*place] = *entry;
            *place += 1;
        }
        let mut start = ended;
        for child in children {
            child.range.start = std::mem::replace(&mut start, child.range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_a_child_are_adjacent_and_in_order() {
        let stacks: [&[u32]; 6] = [&[1, 2], &[0], &[1], &[1, 3, 3], &[], &[1, 2]];
        let mut parting = StackPartition::new((0..6).map(|row| (row, 0)), 4);
        let next = |(row, at): &mut (usize, usize)| {
            let frame = stacks[*row].get(*at).copied();
            *at += 1;
            frame
        };
        let frames =
            |children: &[Child]| -> Vec<u32> { children.iter().map(|c| c.frame).collect() };
        let mut rows = Vec::new();
        let each = |stack: &(usize, usize), child| rows.push((stack.0, child));
        let children = parting.part(0..6, true, |_| 0, next, each).to_vec();
        assert_eq!(frames(&children), [1, 0]);
        assert_eq!(rows[1..=2], [(1, Some(1)), (2, Some(0))]);
        assert_eq!(rows[4], (4, None));
        let rows = |parting: &StackPartition<(usize, usize)>, range| -> Vec<usize> {
            parting.stacks(range).map(|(row, _)| *row).collect()
        };
        assert_eq!(rows(&parting, 0..6), [4, 0, 2, 3, 5, 1]);
        assert_eq!(children[1].range, 5..6);
        let first = children[0].range.clone();
        assert_eq!(first, 1..5);
        let children = parting.part(first.clone(), true, |_| 0, next, |_, _| ());
        assert_eq!(frames(children), [2, 3]);
        assert_eq!(rows(&parting, first), [2, 0, 5, 3]);
    }
}
