//! Targets for the values of omitted callsites.

use super::NONE;
use super::omitted::Key;
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::stacks::calls::Call;
use heaptap_model::stacks::{Frame, FrameId, Function, NodeId, StackTable, TextId};

/// Name of omitted frames.
pub(super) const OTHER: &str = "(other)";

/// What sums tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The libraries on the stack, the function that owns the memory, and the allocating one.
    Functions,
    /// The libraries on the stack.
    Libraries,
    /// The library that owns the memory.
    Owners,
}

/// Target of each stack. All attempts share the same memory.
pub(super) struct Goals {
    /// By stack: a kept callsite, or [`MADE`] and the position in `made`; [`NONE`] without values.
    of: Vec<u32>,
    /// Callsites to create: their callers, as in `of`, and frames.
    pub(super) made: Vec<(u32, FrameId)>,
    /// Kept callsite whose sums are created.
    nearest: u32,
    /// Position in `made` of its first callsite.
    first: usize,
    /// Position in `made`, by caller and frame, of its callsites.
    children: Index,
    seed: Seed,
    shorts: Shorts,
}

/// Number of callsites with which an index is small.
const FEW: usize = 256;

/// Marks a callsite to create.
const MADE: u32 = 1 << 31;

/// Callsite of the tree for each stack.
pub(super) struct Targets {
    /// By stack; [`NONE`] without values.
    of: Vec<u32>,
    /// Whether all frames of the stack remain.
    is_kept: Vec<bool>,
}

impl Targets {
    /// Returns the callsite of a stack, and whether it is the stack's own; `None` without values.
    pub(super) fn of(&self, NodeId(stack): NodeId) -> Option<(NodeId, bool)> {
        let node = self.of[stack as usize];
        (node != NONE).then_some((NodeId(node), self.is_kept[stack as usize]))
    }

    /// Returns all callsites, with repetitions.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.of.iter().copied();
        nodes.filter(|node| *node != NONE).map(NodeId)
    }

    /// Returns the number of stacks of which all frames remain.
    pub(super) fn kept_count(&self) -> usize {
        self.is_kept.iter().filter(|is_kept| **is_kept).count()
    }
}

impl Goals {
    /// Creates targets for `count` stacks.
    pub(super) fn new(table: &mut StackTable, count: usize) -> Goals {
        Goals {
            of: vec![NONE; count],
            made: Vec::new(),
            nearest: NONE,
            first: 0,
            children: Index::default(),
            seed: Seed::default(),
            shorts: Shorts::of(table),
        }
    }

    /// Removes all targets.
    pub(super) fn clear(&mut self) {
        self.start(NONE);
        self.made.clear();
        self.first = 0;
    }

    /// Sets the targets of stacks: the nearest kept callsite of each, and the frames of its sum below
    /// that. Those with the same nearest callsite follow each other.
    pub(super) fn set<'p>(
        &mut self,
        table: &mut StackTable,
        stacks: impl Iterator<Item = (u32, u32, &'p [Short])>,
    ) {
        for (stack, nearest, frames) in stacks {
            if nearest != self.nearest {
                self.start(nearest);
            }
            self.of[stack as usize] = frames.iter().fold(nearest, |at, frame| {
                let frame = self.shorts.frame(table, *frame);
                self.child(at, frame)
            });
        }
    }

    /// Forgets the callees below other kept callsites, so that those of this one are in a cache.
    fn start(&mut self, nearest: u32) {
        self.nearest = nearest;
        match self.made.len() - self.first <= FEW {
            true => self.children.clear(),
            // It takes as long to clear an index as it is large.
            false => self.children = Index::default(),
        }
        self.first = self.made.len();
    }

    fn child(&mut self, parent: u32, frame: FrameId) -> u32 {
        let key = u64::from(parent) << 32 | u64::from(frame.0);
        let (hash, next) = (self.seed.number(key), self.made.len() as u32);
        let made = &self.made;
        let is_it = |at: u32| made[at as usize] == (parent, frame);
        let (at, there) = self.children.find_or_insert(hash, next, is_it);
        if !there {
            self.made.push((parent, frame));
        }
        MADE | at
    }

    /// Creates the kept callsites, then those of the sums.
    pub(super) fn enter(self, table: &mut StackTable, kept: &[Call]) -> Targets {
        for call in kept {
            table.child(NodeId(call.parent), FrameId(call.frame));
        }
        let mut real: Vec<u32> = Vec::with_capacity(self.made.len());
        let real_of = |real: &[u32], goal: u32| match goal {
            NONE => NONE,
            goal if goal & MADE != 0 => real[(goal ^ MADE) as usize],
            goal => goal,
        };
        for (parent, frame) in self.made {
            let above = real_of(&real, parent);
            // A kept callsite can have the callee already, if the profile is of an earlier page.
            let made = match parent & MADE == 0 {
                true => table.child(NodeId(above), frame),
                false => table.new_child(NodeId(above), frame),
            };
            real.push(made.0);
        }
        table.seal();
        Targets {
            is_kept: self.of.iter().map(|goal| goal & MADE == 0).collect(),
            of: self.of.iter().map(|goal| real_of(&real, *goal)).collect(),
        }
    }
}

/// Frame of a sum.
#[derive(Debug, Clone, Copy)]
pub(super) enum Short {
    /// Omitted frames of a library.
    Other(Key),
    /// A frame without its line.
    Frame(u32),
}

/// Frames without lines, and frames for omitted ones, created on demand.
struct Shorts {
    other: TextId,
    /// By frame.
    of: Vec<u32>,
    /// By key.
    others: Vec<u32>,
}

impl Shorts {
    fn of(table: &mut StackTable) -> Shorts {
        Shorts {
            other: table.text(OTHER),
            of: vec![NONE; table.frames().len()],
            others: vec![NONE; table.libraries().len() * Key::PER_LIBRARY as usize],
        }
    }

    fn frame(&mut self, table: &mut StackTable, short: Short) -> FrameId {
        match short {
            Short::Other(key) => self.other(table, key),
            Short::Frame(frame) => self.short(table, FrameId(frame)),
        }
    }

    fn short(&mut self, table: &mut StackTable, frame: FrameId) -> FrameId {
        let known = self.of[frame.0 as usize];
        if known != NONE {
            return FrameId(known);
        }
        let short = table.frame(Frame {
            line: 0,
            inlined: false,
            ..table.frames()[frame.0 as usize]
        });
        self.of[frame.0 as usize] = short.0;
        short
    }

    fn other(&mut self, table: &mut StackTable, key: Key) -> FrameId {
        let known = self.others[key.0 as usize];
        if known != NONE {
            return FrameId(known);
        }
        let function = table.function(Function {
            name: self.other,
            system_name: TextId::default(),
            library: key.library(),
            kind: key.kind(),
        });
        let frame = table.frame(Frame {
            function,
            file: TextId::default(),
            line: 0,
            inlined: false,
        });
        self.others[key.0 as usize] = frame.0;
        frame
    }
}
