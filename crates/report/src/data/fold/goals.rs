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
    /// By anchor, chain of libraries and the one that stands last: the frame of that one. Most
    /// callsites share these, and the way there is gone once.
    lasts: HashMap<(u64, u64), u32, FastHash>,
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
            lasts: HashMap::default(),
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
struct Left {
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

/// One attempt: those that stay are `kept`.
pub(super) struct LeftOut<'a> {
    pub(super) goals: &'a mut Goals,
    pub(super) weights: &'a Weights,
    pub(super) sets: &'a LibrarySets,
    pub(super) kept: &'a [u32],
}

/// Of so many sums one is counted, by its hash.
const COUNTED: u64 = 64;
/// Less room is not worth an estimate, and the estimate would be none.
const ESTIMATED: usize = 1 << 16;

impl LeftOut<'_> {
    /// Visits those that do not stay, callers first, until `visit` returns `false`; whether it
    /// never did.
    fn each(
        &mut self,
        table: &mut StackTable,
        mut visit: impl FnMut(&mut StackTable, &mut Goals, Left) -> bool,
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
            let key = key_of(table, frame.0);
            let above = goals.owners[parent];
            goals.owners[node] = match key.kind() {
                Kind::Plain => frame.0,
                Kind::Runtime if above == NONE || key_of(table, above).kind() != Kind::Plain => {
                    frame.0
                }
                _ => above,
            };
            if !self.weights.holds[node] {
                continue;
            }
            let owner = goals.owners[node];
            let left = Left {
                node,
                anchor: goals.anchors[node],
                frame,
                owner,
                last: match owner {
                    NONE => key,
                    owner => key_of(table, owner),
                },
            };
            if !visit(table, goals, left) {
                return false;
            }
        }
        true
    }

    /// Whether sums by function surely take more than `room` callsites, as an estimate tells: an
    /// attempt that fails costs as much as one that does not.
    pub(super) fn is_too_much(&mut self, table: &mut StackTable, room: usize) -> bool {
        if room < ESTIMATED {
            return false;
        }
        // An eighth more is four times the error of the least room that is estimated.
        let most = (room + room / 8) / COUNTED as usize;
        let sets = self.sets;
        let mut counted: HashSet<u64, FastHash> = HashSet::default();
        let fits = self.each(table, |table, _, left| {
            let set = sets.of[left.node];
            // A set has the same sum in any order.
            let below = sets.keys(set, sets.of[left.anchor as usize]);
            let libraries = below.filter(|key| *key != left.last);
            let libraries =
                libraries.fold(0u64, |sum, key| sum.wrapping_add(mixed(u64::from(key.0))));
            let place = u64::from(left.anchor) << 32 | u64::from(left.last.0);
            let mut at = mixed(libraries ^ mixed(place));
            for frame in [left.owner, left.frame.0] {
                if frame != NONE {
                    // Lines are gone.
                    let Frame { function, file, .. } = table.frames()[frame as usize];
                    let frame = u64::from(function.0) << 32 | u64::from(file.0);
                    at = mixed(at ^ mixed(frame));
                    if at.is_multiple_of(COUNTED) {
                        counted.insert(at);
                    }
                }
                if left.owner == left.frame.0 {
                    break;
                }
            }
            counted.len() <= most
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
        self.goals.lasts.clear();
        let used = self.weights.used.iter();
        for ((node, of), used) in (0..).zip(&mut self.goals.of).zip(used) {
            *of = if *used { 0 } else { node };
        }
        for node in self.kept {
            self.goals.of[*node as usize] = *node;
        }
        let sets = self.sets;
        let mut added: Vec<Key> = Vec::new();
        self.each(table, |table, goals, left| {
            let (anchor, set) = (left.anchor, sets.of[left.node]);
            let way = (
                u64::from(anchor) << 32 | u64::from(set),
                u64::from(left.last.0),
            );
            let mut at = match goals.lasts.get(&way) {
                Some(known) => *known,
                None => {
                    added.clear();
                    added.extend(sets.keys(set, sets.of[anchor as usize]));
                    added.retain(|key| *key != left.last);
                    added.sort_unstable();
                    added.push(left.last);
                    let mut at = anchor;
                    for key in &added {
                        at = goals.child(at, shorts.other(table, *key));
                    }
                    goals.lasts.insert(way, at);
                    at
                }
            };
            if functions {
                let owner = FrameId(left.owner);
                if owner.0 != NONE {
                    at = goals.child(at, shorts.short(table, owner));
                }
                if owner != left.frame {
                    at = goals.child(at, shorts.short(table, left.frame));
                }
            }
            goals.of[left.node] = at;
            goals.made.len() <= room
        })
    }
}

/// A number whose bits all depend on all bits of `number`: the finalizer of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

fn key_of(table: &StackTable, frame: u32) -> Key {
    let function = table.frames()[frame as usize].function;
    Key::of(&table.functions()[function.0 as usize])
}

fn real_of(real: &[u32], count: usize, node: u32) -> u32 {
    (node as usize)
        .checked_sub(count)
        .map_or(node, |at| real[at])
}
