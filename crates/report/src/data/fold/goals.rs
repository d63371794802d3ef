//! Targets for the values of omitted callsites, and the number of callsites that they need.

use super::NONE;
use super::kept::Kept;
use super::omitted::{Key, Walk};
use super::weights::Weights;
use heaptap_model::parallel;
use heaptap_model::profile::index::{FastHash, Index, Seed};
use heaptap_model::stacks::calls::Call;
use heaptap_model::stacks::{Frame, FrameId, Function, NodeId, StackTable, TextId};
use heaptap_model::touch::{BATCH, touch};
use std::collections::HashSet;

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
    /// Position in `made`, by caller and frame.
    children: Index,
    seed: Seed,
    shorts: Shorts,
}

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
            children: Index::default(),
            seed: Seed::default(),
            shorts: Shorts::of(table),
        }
    }

    fn hash(&self, parent: u32, frame: FrameId) -> u64 {
        self.seed
            .number(u64::from(parent) << 32 | u64::from(frame.0))
    }

    /// Reads what the search for the targets of these stacks will read, as far as they are created
    /// already: one frame of all stacks after the other.
    fn read_ahead(&self, part: &Part<'_>) {
        let mut stacks: Vec<(u32, &[Short])> = part.iter().map(|(_, at, of)| (at, of)).collect();
        while !stacks.is_empty() {
            stacks.retain_mut(|(at, frames)| {
                let Some((frame, rest)) = frames.split_first() else {
                    return false;
                };
                let known = self.shorts.known(*frame);
                let found = known.and_then(|frame| self.children.likely(self.hash(*at, frame)));
                *frames = rest;
                *at = MADE | found.unwrap_or(0);
                found.is_some()
            });
            let made = stacks.iter().map(|(at, _)| (at ^ MADE) as usize);
            touch(made.map(|at| self.made[at].0 as u8));
        }
    }

    fn child(&mut self, parent: u32, frame: FrameId) -> u32 {
        let (hash, next) = (self.hash(parent, frame), self.made.len() as u32);
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

/// Attempt with the first `count` callsites.
pub(super) struct FoldAttempt<'a, 'w> {
    pub(super) weights: &'a Weights,
    pub(super) kept: &'a Kept,
    pub(super) walk: &'a mut Walk<'w>,
    pub(super) count: usize,
    pub(super) detail: Detail,
    /// Maximum number of callsites in addition to the kept ones.
    pub(super) room: usize,
}

/// The estimate counts only sums whose hash is a multiple of this.
const HASH_STRIDE: u64 = 64;
/// Minimum room for an estimate; below it the sampling error exceeds the margin.
const MIN_ESTIMATED_CALLSITES: usize = 1 << 16;

/// Frame of a sum.
#[derive(Debug, Clone, Copy)]
enum Short {
    /// Omitted frames of a library.
    Other(Key),
    /// A frame without its line.
    Frame(u32),
}

/// Stacks with values: the nearest kept callsite of each, and the frames of its sum below that.
#[derive(Default)]
struct Batch {
    /// Stack, nearest callsite, end of its frames.
    stacks: Vec<(u32, u32, usize)>,
    frames: Vec<Short>,
}

/// Number of stacks of a batch.
const STACKS: usize = 1 << 14;

/// Adjacent stacks of a batch, few enough to read ahead for all of them.
struct Part<'a> {
    batch: &'a Batch,
    /// Beginning of the frames of the first one.
    start: usize,
    stacks: &'a [(u32, u32, usize)],
}

impl Batch {
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut start = 0;
        self.stacks.chunks(BATCH).map(move |stacks| {
            let end = stacks.last().map_or(start, |stack| stack.2);
            Part {
                batch: self,
                start: std::mem::replace(&mut start, end),
                stacks,
            }
        })
    }
}

impl Part<'_> {
    fn iter(&self) -> impl Iterator<Item = (u32, u32, &[Short])> {
        let mut start = self.start;
        self.stacks.iter().map(move |&(stack, nearest, end)| {
            let frames = &self.batch.frames[start..end];
            start = end;
            (stack, nearest, frames)
        })
    }
}

impl FoldAttempt<'_, '_> {
    /// Reads the next stacks.
    fn read(&mut self, callers: &[(u32, u32)], stacks: &mut impl Iterator<Item = u32>) -> Batch {
        let mut batch = Batch::default();
        let frames = &mut batch.frames;
        for stack in stacks.take(STACKS) {
            let (nearest, depth) = callers[self.kept.nearest(stack) as usize];
            if let Some(omitted) = self.walk.read(stack, depth) {
                match self.detail {
                    Detail::Owners => frames.push(Short::Other(omitted.last)),
                    _ => {
                        let libraries = self.walk.libraries(&omitted).iter();
                        frames.extend(libraries.map(|key| Short::Other(*key)));
                    }
                }
                if self.detail == Detail::Functions {
                    if omitted.owner != NONE {
                        frames.push(Short::Frame(omitted.owner));
                    }
                    if omitted.owner != omitted.frame {
                        frames.push(Short::Frame(omitted.frame));
                    }
                }
            }
            batch.stacks.push((stack, nearest, frames.len()));
        }
        batch
    }

    /// Passes the stacks with values until `visit` returns `false`. Returns whether it never did. Reads
    /// the next ones at the same time.
    fn each(&mut self, mut visit: impl FnMut(&Part<'_>) -> bool) -> bool {
        let weights = self.weights;
        let mut stacks = weights.held();
        let callers = self.kept.callers(self.count);
        let mut batch = self.read(&callers, &mut stacks);
        while !batch.stacks.is_empty() {
            let visited = || batch.parts().all(|part| visit(&part));
            let (next, goes_on) = parallel::both(|| self.read(&callers, &mut stacks), visited);
            if !goes_on {
                return false;
            }
            batch = next;
        }
        true
    }

    /// Returns whether the attempt certainly needs too much room, by an estimate, because a failed
    /// attempt costs as much as a successful one. Counts what [`FoldAttempt::find`] creates. If the first
    /// stacks, a quarter or more, need less than their share of the room, the rest is left to that.
    pub(super) fn is_too_much(&mut self, table: &StackTable) -> bool {
        let room = self.room;
        if room < MIN_ESTIMATED_CALLSITES || room == usize::MAX {
            return false;
        }
        // A margin of one eighth is four times the sampling error of the smallest room.
        let most = (room + room / 8) / HASH_STRIDE as usize;
        let mut sample: HashSet<u64, FastHash> = HashSet::default();
        let count = self.weights.held().count();
        let mut visited = 0;
        let mut has_room = false;
        let visits_all = self.each(|part| {
            for (_, nearest, frames) in part.iter() {
                let mut at = mixed(u64::from(nearest));
                for frame in frames {
                    let step = match frame {
                        Short::Other(key) => u64::from(key.0),
                        Short::Frame(frame) => {
                            // Lines are omitted.
                            let Frame { function, file, .. } = table.frames()[*frame as usize];
                            1 << 63 | u64::from(function.0) << 32 | u64::from(file.0)
                        }
                    };
                    at = mixed(at ^ mixed(step));
                    if at.is_multiple_of(HASH_STRIDE) {
                        sample.insert(at);
                    }
                }
            }
            visited += part.stacks.len();
            has_room = visited >= count / 4 && sample.len() * count <= most * visited;
            sample.len() <= most && !has_room
        });
        !visits_all && !has_room
    }

    /// Finds the targets of values. Returns whether there is room for them.
    pub(super) fn find(&mut self, table: &mut StackTable, goals: &mut Goals) -> bool {
        let room = self.room;
        goals.made.clear();
        goals.children.clear();
        self.each(|part| {
            goals.read_ahead(part);
            for (stack, nearest, frames) in part.iter() {
                goals.of[stack as usize] = frames.iter().fold(nearest, |at, frame| {
                    let frame = goals.shorts.frame(table, *frame);
                    goals.child(at, frame)
                });
            }
            goals.made.len() <= room
        })
    }
}

/// Mixes all bits of `number`: the finalizer of SplitMix64. Unlike [`FastHash`] it is the same in
/// each run, which the page requires.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
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

    /// Returns the frame of a sum, unless it is not created yet.
    fn known(&self, short: Short) -> Option<FrameId> {
        let known = match short {
            Short::Other(key) => self.others[key.0 as usize],
            Short::Frame(frame) => self.of[frame as usize],
        };
        (known != NONE).then_some(FrameId(known))
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
