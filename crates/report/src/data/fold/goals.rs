//! Targets for the values of omitted callsites, and the number of callsites that they need.

use super::{Key, LibrarySets, NONE, Shorts, Weights};
use heaptap_model::profile::index::{FastHash, Index, Seed};
use heaptap_model::stacks::{Frame, FrameId, Kind, NodeId, StackTable};
use std::collections::HashSet;

/// Target of each callsite. All attempts share the same memory.
pub(super) struct Goals {
    /// By callsite of the table; numbers above those refer to `made`.
    of: Vec<u32>,
    /// Callsites to create: their callers and frames.
    pub(super) made: Vec<(u32, FrameId)>,
    /// By callsite: itself if it is kept, otherwise the nearest kept caller.
    anchors: Vec<u32>,
    /// By callsite, the frame below its anchor that owns the memory: not an allocator's, and the
    /// runtime's only if there is no other.
    owners: Vec<u32>,
    /// Position in `made`, by caller and frame.
    children: Index,
    seed: Seed,
}

impl Goals {
    /// Creates targets for `count` callsites.
    pub(super) fn new(count: usize) -> Goals {
        Goals {
            of: vec![0; count],
            made: Vec::new(),
            anchors: vec![NONE; count],
            owners: vec![NONE; count],
            children: Index::default(),
            seed: Seed::default(),
        }
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
        self.of.len() as u32 + at
    }

    /// Creates the callsites. Returns the target of each original callsite.
    pub(super) fn enter(self, table: &mut StackTable) -> Vec<u32> {
        let count = self.of.len();
        let mut real: Vec<u32> = Vec::with_capacity(self.made.len());
        for (parent, frame) in self.made {
            let parent = real_of(&real, count, parent);
            real.push(table.child(NodeId(parent), frame).0);
        }
        let goals = self.of.into_iter();
        goals.map(|goal| real_of(&real, count, goal)).collect()
    }
}

/// Omitted callsite with values.
#[derive(Debug, Clone, Copy)]
struct FoldedCallsite {
    node: usize,
    /// Nearest kept caller.
    anchor: u32,
    frame: FrameId,
    /// Frame that owns the memory; [`NONE`] if all frames below the anchor are allocators'.
    owner: u32,
    /// Library that owns the memory. It comes last, so it has its bytes even if functions are
    /// omitted.
    last: Key,
}

impl FoldedCallsite {
    /// Writes the libraries between the anchor and the sum to `way`.
    fn libraries(&self, sets: &LibrarySets, way: &mut Vec<Key>) {
        way.clear();
        way.extend(sets.keys(sets.of[self.node], sets.of[self.anchor as usize]));
        way.retain(|key| *key != self.last);
        way.sort_unstable();
        way.push(self.last);
    }
}

/// Attempt with a set of `kept` callsites.
pub(super) struct FoldAttempt<'a> {
    pub(super) goals: &'a mut Goals,
    pub(super) weights: &'a Weights,
    pub(super) sets: &'a LibrarySets,
    pub(super) kept: &'a [u32],
}

/// The estimate counts only sums whose hash is a multiple of this.
const HASH_STRIDE: u64 = 64;
/// Minimum room for an estimate; below it the sampling error exceeds the margin.
const MIN_ESTIMATED_CALLSITES: usize = 1 << 16;

impl FoldAttempt<'_> {
    /// Visits the omitted callsites, callers first, until `visit` returns `false`. Returns whether
    /// it never did.
    fn each(
        &mut self,
        table: &mut StackTable,
        mut visit: impl FnMut(&mut StackTable, &mut Goals, FoldedCallsite) -> bool,
    ) -> bool {
        let goals = &mut *self.goals;
        goals.owners.fill(NONE);
        goals.anchors.fill(NONE);
        goals.anchors[0] = 0;
        for &node in self.kept {
            goals.anchors[node as usize] = node;
        }
        for node in 1..goals.of.len() {
            if !self.weights.used[node] || goals.anchors[node] == node as u32 {
                continue;
            }
            let id = NodeId(node as u32);
            let Some(frame) = table.frame_of(id) else {
                continue;
            };
            let parent = table.parent(id).0 as usize;
            goals.anchors[node] = goals.anchors[parent];
            let key = self.sets.key(frame.0);
            let above = goals.owners[parent];
            goals.owners[node] = match key.kind() {
                Kind::Plain => frame.0,
                Kind::Runtime if above == NONE || self.sets.key(above).kind() != Kind::Plain => {
                    frame.0
                }
                _ => above,
            };
            if !self.weights.holds[node] {
                continue;
            }
            let owner = goals.owners[node];
            let callsite = FoldedCallsite {
                node,
                anchor: goals.anchors[node],
                frame,
                owner,
                last: match owner {
                    NONE => key,
                    owner => self.sets.key(owner),
                },
            };
            if !visit(table, goals, callsite) {
                return false;
            }
        }
        true
    }

    /// Returns whether the attempt certainly needs more than `room` callsites, by an estimate,
    /// because a failed attempt costs as much as a successful one. Counts what
    /// [`FoldAttempt::find`] creates.
    pub(super) fn is_too_much(
        &mut self,
        table: &mut StackTable,
        functions: bool,
        room: usize,
    ) -> bool {
        if room < MIN_ESTIMATED_CALLSITES {
            return false;
        }
        // A margin of one eighth is four times the sampling error of the smallest room.
        let most = (room + room / 8) / HASH_STRIDE as usize;
        let sets = self.sets;
        let mut way = Vec::new();
        let mut sample: HashSet<u64, FastHash> = HashSet::default();
        let fits = self.each(table, |table, _, callsite| {
            let mut at = mixed(u64::from(callsite.anchor));
            let mut count = |step: u64| {
                at = mixed(at ^ mixed(step));
                if at.is_multiple_of(HASH_STRIDE) {
                    sample.insert(at);
                }
            };
            callsite.libraries(sets, &mut way);
            for key in &way {
                count(u64::from(key.0));
            }
            if functions {
                let mut count_short = |frame: u32| {
                    // Lines are omitted.
                    let Frame { function, file, .. } = table.frames()[frame as usize];
                    count(1 << 63 | u64::from(function.0) << 32 | u64::from(file.0));
                };
                if callsite.owner != NONE {
                    count_short(callsite.owner);
                }
                if callsite.owner != callsite.frame.0 {
                    count_short(callsite.frame.0);
                }
            }
            sample.len() <= most
        });
        !fits
    }

    /// Finds the targets of values. Returns whether they need at most `room` callsites in addition
    /// to the kept ones.
    pub(super) fn find(
        &mut self,
        table: &mut StackTable,
        shorts: &mut Shorts,
        functions: bool,
        room: usize,
    ) -> bool {
        self.goals.made.clear();
        self.goals.children.clear();
        let used = self.weights.used.iter();
        for ((node, of), used) in (0..).zip(&mut self.goals.of).zip(used) {
            *of = if *used { 0 } else { node };
        }
        for node in self.kept {
            self.goals.of[*node as usize] = *node;
        }
        let sets = self.sets;
        let mut added: Vec<Key> = Vec::new();
        self.each(table, |table, goals, callsite| {
            callsite.libraries(sets, &mut added);
            let mut at = callsite.anchor;
            for key in &added {
                at = goals.child(at, shorts.other(table, *key));
            }
            if functions {
                let owner = FrameId(callsite.owner);
                if owner.0 != NONE {
                    at = goals.child(at, shorts.short(table, owner));
                }
                if owner != callsite.frame {
                    at = goals.child(at, shorts.short(table, callsite.frame));
                }
            }
            goals.of[callsite.node] = at;
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

fn real_of(real: &[u32], count: usize, node: u32) -> u32 {
    (node as usize)
        .checked_sub(count)
        .map_or(node, |at| real[at])
}
