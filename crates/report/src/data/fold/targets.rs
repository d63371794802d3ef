//! Targets for the values of omitted callsites.

use super::omitted::{Key, NONE};
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::stacks::calls::Call;
use heaptap_model::stacks::{Frame, FrameId, Function, FunctionId, NodeId, StackTable, TextId};
use std::collections::HashMap;

/// Name of omitted frames.
pub(super) const OTHER: &str = "(other)";

/// Detail of sums, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The libraries on the stack, the function that owns the memory, and the allocating one.
    Functions,
    /// The libraries on the stack.
    Libraries,
    /// The library that owns the memory.
    Owners,
}

impl Detail {
    pub(super) const ALL: [Detail; 3] = [Detail::Functions, Detail::Libraries, Detail::Owners];
}

/// Target of each stack. All attempts share the same memory.
pub(super) struct FoldTargets {
    /// By stack: a kept callsite, or [`MADE`] and the position in `made`; [`NONE`] without values.
    of: Vec<u32>,
    /// Callsites to create: their callers, as in `of`, and positions of their frames in `shorts`.
    pub(super) made: Vec<(u32, u32)>,
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

impl FoldTargets {
    /// Creates targets for `count` stacks.
    pub(super) fn new(table: &StackTable, count: usize) -> FoldTargets {
        FoldTargets {
            of: vec![NONE; count],
            made: Vec::new(),
            nearest: NONE,
            first: 0,
            children: Index::default(),
            seed: Seed::default(),
            shorts: Shorts::from_table(table),
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
        table: &StackTable,
        stacks: impl Iterator<Item = (u32, u32, &'p [Short])>,
    ) {
        for (stack, nearest, frames) in stacks {
            if nearest != self.nearest {
                self.start(nearest);
            }
            self.of[stack as usize] = frames.iter().fold(nearest, |at, frame| {
                let frame = self.shorts.place(table, *frame);
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

    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let key = u64::from(parent) << 32 | u64::from(frame);
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
        let frames = self.shorts.enter(table);
        let mut real: Vec<u32> = Vec::with_capacity(self.made.len());
        let real_of = |real: &[u32], goal: u32| match goal {
            NONE => NONE,
            goal if goal & MADE != 0 => real[(goal ^ MADE) as usize],
            goal => goal,
        };
        for (parent, frame) in self.made {
            let above = real_of(&real, parent);
            let frame = frames[frame as usize];
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

/// Frames without lines, and frames for omitted ones. They are added to the table after the search.
struct Shorts {
    /// Distinct frames, in order of first use.
    all: Vec<Short>,
    /// Position in `all`, by frame.
    of: Vec<u32>,
    /// Position in `all`, by key.
    others: Vec<u32>,
    /// Position in `all`, by function and file.
    lineless: HashMap<(FunctionId, TextId), u32>,
}

impl Shorts {
    fn from_table(table: &StackTable) -> Shorts {
        Shorts {
            all: Vec::new(),
            of: vec![NONE; table.frames().len()],
            others: vec![NONE; table.libraries().len() * Key::PER_LIBRARY as usize],
            lineless: HashMap::new(),
        }
    }

    /// Returns the position of a frame, which is added if it is new.
    fn place(&mut self, table: &StackTable, short: Short) -> u32 {
        let known = match short {
            Short::Other(key) => self.others[key.0 as usize],
            Short::Frame(frame) => self.of[frame as usize],
        };
        match known {
            NONE => self.add(table, short),
            known => known,
        }
    }

    #[cold]
    fn add(&mut self, table: &StackTable, short: Short) -> u32 {
        let next = self.all.len() as u32;
        let place = match short {
            Short::Other(key) => {
                self.others[key.0 as usize] = next;
                next
            }
            Short::Frame(frame) => {
                let Frame { function, file, .. } = table.frames()[frame as usize];
                let place = *self.lineless.entry((function, file)).or_insert(next);
                self.of[frame as usize] = place;
                place
            }
        };
        if place == next {
            self.all.push(short);
        }
        place
    }

    /// Adds the frames to the table.
    fn enter(self, table: &mut StackTable) -> Vec<FrameId> {
        let other = table.text(OTHER);
        let of_short = |short| match short {
            Short::Other(key) => {
                let function = table.function(Function {
                    name: other,
                    system_name: TextId::default(),
                    library: key.library(),
                    kind: key.kind(),
                });
                table.frame(Frame {
                    function,
                    file: TextId::default(),
                    line: 0,
                    inlined: false,
                })
            }
            Short::Frame(frame) => table.frame(Frame {
                line: 0,
                inlined: false,
                ..table.frames()[frame as usize]
            }),
        };
        self.all.into_iter().map(of_short).collect()
    }
}
