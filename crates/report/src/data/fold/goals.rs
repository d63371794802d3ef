//! Where the values of callsites go that do not stay, and how many callsites that takes.

use super::{Key, LibrarySets, NONE, Shorts, Weights};
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::{Frame, FrameId, Kind, NodeId, StackTable};
use std::collections::{HashMap, HashSet};

/// Where the values of each callsite go. One attempt after the other uses the same memory.
pub(super) struct Goals {
    /// By callsite of the table; from its number of callsites on, those of `made`.
    of: Vec<u32>,
    /// Callsites that are still to be made: by whom they are called, and their frames.
    pub(super) made: Vec<(u32, FrameId)>,
    /// By callsite: itself if it stays, else the nearest caller that does.
    anchors: Vec<u32>,
    /// By callsite the frame below its anchor whose memory it is: not an allocator's, and the
    /// runtime's only if there is no other.
    owners: Vec<u32>,
    /// By caller and frame the callsite that is to be made.
    children: HashMap<u64, u32, FastHash>,
}

impl Goals {
    /// For so many callsites.
    pub(super) fn new(count: usize) -> Goals {
        Goals {
            of: vec![0; count],
            made: Vec::new(),
            anchors: vec![NONE; count],
            owners: vec![NONE; count],
            children: HashMap::default(),
        }
    }

    fn child(&mut self, parent: u32, frame: FrameId) -> u32 {
        let next = (self.of.len() + self.made.len()) as u32;
        let key = u64::from(parent) << 32 | u64::from(frame.0);
        let child = *self.children.entry(key).or_insert(next);
        if child == next {
            self.made.push((parent, frame));
        }
        child
    }

    /// Makes the callsites; by callsite of before where its values go.
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

/// A callsite with values that does not stay.
#[derive(Debug, Clone, Copy)]
struct FoldedCallsite {
    node: usize,
    /// The nearest caller that stays.
    anchor: u32,
    frame: FrameId,
    /// The frame whose memory it is; [`NONE`] if all below the anchor are allocators'.
    owner: u32,
    /// The library whose memory it is. It stands last: there its bytes are where functions are
    /// left out, too.
    last: Key,
}

impl FoldedCallsite {
    /// Puts the libraries between the anchor and the sum into `way`.
    fn libraries(&self, sets: &LibrarySets, way: &mut Vec<Key>) {
        way.clear();
        way.extend(sets.keys(sets.of[self.node], sets.of[self.anchor as usize]));
        way.retain(|key| *key != self.last);
        way.sort_unstable();
        way.push(self.last);
    }
}

/// One attempt: those that stay are `kept`.
pub(super) struct FoldAttempt<'a> {
    pub(super) goals: &'a mut Goals,
    pub(super) weights: &'a Weights,
    pub(super) sets: &'a LibrarySets,
    pub(super) kept: &'a [u32],
}

/// Of the sums the estimate counts those whose hash is a multiple of this.
const HASH_STRIDE: u64 = 64;
/// With less room the sampling error exceeds the margin of the estimate.
const MIN_ESTIMATED_CALLSITES: usize = 1 << 16;

impl FoldAttempt<'_> {
    /// Visits those that do not stay, callers first, until `visit` returns `false`; whether it
    /// never did.
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

    /// Whether the attempt surely takes more than `room` callsites, as an estimate tells: an attempt
    /// that fails costs as much as one that does not. Counts what [`FoldAttempt::find`] makes.
    pub(super) fn is_too_much(
        &mut self,
        table: &mut StackTable,
        functions: bool,
        room: usize,
    ) -> bool {
        if room < MIN_ESTIMATED_CALLSITES {
            return false;
        }
        // An eighth more is four times the sampling error of the smallest room.
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
                    // Lines are gone.
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

    /// Finds where values go; whether that takes at most `room` callsites beside those that stay.
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

/// A number whose bits all depend on all bits of `number`: the finalizer of SplitMix64. Unlike
/// [`FastHash`] it is the same in each run, as the page that depends on it must be.
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
