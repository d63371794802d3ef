//! Paths through a tree of groups, one for each stack: its groups after folding, from the root or
//! from the allocating method.

use std::ops::Range;

use super::super::groups::{GroupId, Groups};
use super::super::visible_tree::VisibleTree;
use heaptap_base::parallel;
use heaptap_model::profile::packed;
use heaptap_model::stacks::{FrameId, Values};

/// End of which a tree grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Root,
    /// The allocating method.
    Leaf,
}

impl Origin {
    /// Returns the number of ancestors to search for earlier calls of a function.
    fn reach(self) -> usize {
        match self {
            Origin::Root => 16,
            Origin::Leaf => 0,
        }
    }
}

/// Paths of the stacks that have values.
#[derive(Debug, Default)]
pub(super) struct Paths {
    parts: Vec<Part>,
}

/// Paths of consecutive rows of values.
#[derive(Debug)]
struct Part {
    /// First row.
    start: u32,
    /// Packed groups of each path, and [`END`].
    packed: Vec<u8>,
    /// Row and beginning of each path.
    starts: Vec<(u32, usize)>,
    /// Rows whose stacks have folded calls.
    folded: Vec<u32>,
}

/// Ends a path: no packed group begins with it.
const END: u8 = 0;

/// Number of rows from which threads are started; few in tests, so that they start some.
const WORTH_THREADS: usize = if cfg!(test) { 4 } else { 1 << 14 };

impl Paths {
    /// Returns the paths of all stacks that pass the filter, up to `depth` groups.
    pub(super) fn new(
        shown: &VisibleTree<'_>,
        groups: &Groups<'_>,
        values: &Values,
        origin: Origin,
        depth: usize,
    ) -> Paths {
        let part = |rows: Range<usize>| {
            let mut part = Part {
                start: rows.start as u32,
                packed: Vec::new(),
                starts: Vec::with_capacity(rows.len()),
                folded: Vec::new(),
            };
            let mut stacks = Stacks::new(shown, groups, origin);
            let mut path = Path::new(groups, origin);
            for row in rows {
                let has_values = values.columns.iter().any(|column| column[row] != 0);
                if origin == Origin::Leaf && !has_values {
                    continue;
                }
                let Some(frames) = stacks.get(values, row) else {
                    continue;
                };
                path.clear();
                let mut folds = false;
                for group in frames {
                    folds |= path.step(group).is_folded;
                }
                if folds {
                    part.folded.push(row as u32);
                }
                part.starts.push((row as u32, part.packed.len()));
                for group in path.groups.iter().take(depth) {
                    packed::pack(group.0, |byte| part.packed.push(byte));
                }
                part.packed.push(END);
            }
            part
        };
        Paths {
            parts: parallel::ranges(values.nodes.len(), WORTH_THREADS, part),
        }
    }

    /// Returns the beginnings of all paths.
    pub(super) fn cursors(&self) -> impl Iterator<Item = Cursor> {
        let starts = self.parts.iter().flat_map(|part| &part.starts);
        starts.map(|&(row, at)| Cursor { at, row })
    }

    /// Returns the next group of a path; `None` at its end.
    #[inline]
    pub(super) fn next(&self, cursor: &mut Cursor) -> Option<GroupId> {
        let mut packed = self.rest(cursor);
        if packed.first() == Some(&END) {
            return None;
        }
        let length = packed.len();
        let group = packed::first(&mut packed).map(GroupId);
        cursor.at += length - packed.len();
        group
    }

    /// Returns the first byte of the rest of a path.
    #[inline]
    pub(super) fn first_byte(&self, cursor: &Cursor) -> u8 {
        self.rest(cursor).first().copied().unwrap_or(END)
    }

    /// Returns the packed groups of the rest of a path, and what follows.
    #[inline]
    fn rest(&self, cursor: &Cursor) -> &[u8] {
        let after = self.parts.partition_point(|part| part.start <= cursor.row);
        &self.parts[after - 1].packed[cursor.at..]
    }

    /// Returns the rows whose stacks have folded calls.
    pub(super) fn folded(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flat_map(|part| &part.folded).copied()
    }
}

/// Position on a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    at: usize,
    pub(super) row: u32,
}

/// Reads the groups of stacks.
pub(super) struct Stacks<'a> {
    shown: &'a VisibleTree<'a>,
    groups: &'a Groups<'a>,
    origin: Origin,
    frames: Vec<FrameId>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(shown: &'a VisibleTree<'a>, groups: &'a Groups<'a>, origin: Origin) -> Self {
        Stacks {
            shown,
            groups,
            origin,
            frames: Vec::new(),
        }
    }

    /// Returns the groups of the stack of a row, with repetitions; `None` if it is excluded.
    pub(super) fn get(
        &mut self,
        values: &Values,
        row: usize,
    ) -> Option<impl Iterator<Item = GroupId>> {
        self.frames.clear();
        let is_shown = self.shown.frames_of(values.nodes[row], &mut self.frames);
        let from_leaf = self.origin == Origin::Leaf;
        if from_leaf {
            self.frames.reverse();
        }
        // Without a method, nothing is allocated by it.
        let is_shown = is_shown && !(from_leaf && self.frames.is_empty());
        is_shown.then(|| self.frames.iter().map(|frame| self.groups.group(*frame)))
    }
}

/// Path of one stack while it is read.
pub(super) struct Path {
    pub(super) groups: Vec<GroupId>,
    reach: usize,
    /// Number of the last path with the group: only then there is a search.
    last: Vec<u32>,
    number: u32,
}

/// Effect of a call on a path.
pub(super) struct Step {
    /// Whether an earlier call of the path absorbs it: the last one that remains.
    pub(super) is_folded: bool,
}

impl Path {
    pub(super) fn new(groups: &Groups<'_>, origin: Origin) -> Path {
        Path {
            groups: Vec::new(),
            reach: origin.reach(),
            last: vec![0; groups.len()],
            number: 0,
        }
    }

    /// Begins a path.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.number += 1;
    }

    /// Adds a call.
    #[inline]
    pub(super) fn step(&mut self, group: GroupId) -> Step {
        let last = &mut self.last[group.0 as usize];
        let is_known = std::mem::replace(last, self.number) == self.number;
        if is_known && let Some(length) = self.again(group) {
            self.groups.truncate(length);
            return Step { is_folded: true };
        }
        self.groups.push(group);
        Step { is_folded: false }
    }

    /// Returns the length of the path up to the call that absorbs a call of `group`: the last one,
    /// or the nearest of two.
    fn again(&self, group: GroupId) -> Option<usize> {
        if self.groups.last() == Some(&group) {
            return Some(self.groups.len());
        }
        let calls = self.groups.iter().enumerate().rev().take(self.reach);
        let mut earlier = calls.filter(|(_, call)| **call == group);
        let (nearest, _) = earlier.next()?;
        earlier.next().map(|_| nearest + 1)
    }
}
