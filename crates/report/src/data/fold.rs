//! Too many callsites for a browser: those that hold the fewest bytes are summed up in their
//! callers, by function and library, so that every total stays what it was.
//!
//! What is summed up stands below its nearest caller that stays: a frame `(other)` for each library
//! that the left out frames add to the stack, below it the function whose memory it is, and the one
//! that allocates where that is another. Tables by library thus have the figures of the profile, and
//! those by function have what functions hold themselves; what is missing is which function called
//! which among the left out ones, and lines.

use super::header::Folded;
use heaptap_analyze::native::sampled::{SampledColumn, small_name};
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::{
    Dump, Frame, FrameId, Function, Kind, LibraryId, Measure, NodeId, StackProfile, StackTable,
    TextId, Unit, Values, View,
};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Callsites with which a page is shown in two seconds.
pub const MOST: usize = 1_000_000;

/// What left out frames are called.
const OTHER: &str = "(other)";

/// No frame, no node.
const NONE: u32 = u32::MAX;

/// Sums the callsites with the fewest bytes up if there are more than `most`. Returns what was
/// done; the command in it is not yet set.
pub fn fold(profile: &mut StackProfile, most: usize) -> Option<Folded> {
    if profile.table.node_count() <= most {
        return None;
    }
    let weights = Weights::of(profile);
    let mut order: Vec<u32> = (1..weights.used.len() as u32)
        .filter(|&node| weights.used[node as usize])
        .collect();
    let used = order.len();
    if used <= most {
        return None;
    }
    let sets = LibrarySets::of(&profile.table);
    let mut shorts = Shorts::of(&mut profile.table);
    // Half the room is for callsites that stay, and half for sums; less for the former if there
    // are more sums than that. Functions are given up last.
    let attempts = [true, false]
        .into_iter()
        .flat_map(|functions| [most / 2, most / 8, most / 64, 0].map(|kept| (kept, functions)));
    let mut found = None;
    for (kept, functions) in attempts {
        // Of equal ones callers come before what they call: each that stays has all its callers.
        order.select_nth_unstable_by(kept, |a, b| weights.largest_first(*a, *b));
        let is_last = kept == 0 && !functions;
        let room = if is_last { usize::MAX } else { most - kept };
        let goals = Goals::of(
            &mut profile.table,
            &weights,
            &order[..kept],
            (&sets, &mut shorts),
            (functions, room),
        );
        if let Some(goals) = goals {
            found = Some((kept, goals.enter(&mut profile.table)));
            break;
        }
    }
    let (kept, goals) = found?;
    let mut bytes = Vec::with_capacity(profile.dumps.len());
    for dump in &mut profile.dumps {
        bytes.push(folded_bytes(dump, &goals));
        add_small(dump);
        let values = &dump.values;
        let rows = values.nodes.iter().zip(0u32..);
        let rows = rows.map(|(node, row)| (NodeId(goals[node.0 as usize]), row));
        let summed = Values::sum(rows.collect(), values.columns.len(), |column, row| {
            values.columns[column][row as usize]
        });
        dump.values = summed;
        // Nobody asks for them from here on.
        dump.threads.clear();
    }
    Some(Folded {
        kept,
        of: used,
        bytes,
        command: String::new(),
    })
}

/// How much of a dump's first measure is summed up.
fn folded_bytes(dump: &Dump, goals: &[u32]) -> i64 {
    let Some(column) = dump.values.columns.get(dump.default_measure) else {
        return 0;
    };
    let rows = dump.values.nodes.iter().zip(column);
    rows.filter(|(node, _)| goals[node.0 as usize] != node.0)
        .fold(0, |sum: i64, (_, value)| sum.saturating_add(*value))
}

/// Adds columns with what the error of sums follows from, while callsites are apart.
fn add_small(dump: &mut Dump) {
    for bytes in [View::Space, View::AllocSpace] {
        let at = dump.measures.iter().position(|m| m.view == Some(bytes));
        let Some(sampled) = at.and_then(|at| SampledColumn::of(dump, at)) else {
            continue;
        };
        dump.measures.push(Measure {
            name: small_name(bytes),
            unit: Unit::Count,
            view: None,
        });
        dump.values.columns.push(sampled.small);
    }
}

/// How much each callsite holds with all below it.
struct Weights {
    /// The largest part of the page's largest total of bytes, held or allocated.
    of: Vec<f32>,
    /// Whether it or one below it has any value.
    used: Vec<bool>,
    /// Whether it has values itself.
    holds: Vec<bool>,
}

impl Weights {
    fn of(profile: &StackProfile) -> Weights {
        let table = &profile.table;
        let count = table.node_count();
        let mut weights = Weights {
            of: vec![0.0; count],
            used: vec![false; count],
            holds: vec![false; count],
        };
        for dump in &profile.dumps {
            for (row, node) in dump.values.nodes.iter().enumerate() {
                let columns = &dump.values.columns;
                weights.holds[node.0 as usize] |= columns.iter().any(|column| column[row] != 0);
            }
        }
        weights.used.clone_from(&weights.holds);
        for node in (1..count).rev() {
            if weights.used[node] {
                let parent = table.parent(NodeId(node as u32));
                weights.used[parent.0 as usize] = true;
            }
        }
        let mut largest: HashMap<&str, f64> = HashMap::new();
        let columns = profile.dumps.iter().flat_map(columns_of_bytes);
        for (name, _, column) in columns {
            let total = column.iter().map(|value| value.unsigned_abs() as f64).sum();
            let largest = largest.entry(name).or_insert(0.0);
            *largest = f64::max(*largest, total);
        }
        let mut sums = vec![0.0f64; count];
        for (name, values, column) in profile.dumps.iter().flat_map(columns_of_bytes) {
            let total = largest.get(name).copied().unwrap_or(0.0);
            if total <= 0.0 {
                continue;
            }
            sums.fill(0.0);
            for (node, value) in values.nodes.iter().zip(column) {
                sums[node.0 as usize] = value.unsigned_abs() as f64;
            }
            for node in (1..count).rev() {
                if sums[node] > 0.0 {
                    let parent = table.parent(NodeId(node as u32));
                    sums[parent.0 as usize] += sums[node];
                    weights.of[node] = weights.of[node].max((sums[node] / total) as f32);
                }
            }
        }
        weights
    }

    fn largest_first(&self, a: u32, b: u32) -> Ordering {
        let by_weight = self.of[b as usize].total_cmp(&self.of[a as usize]);
        by_weight.then(a.cmp(&b))
    }
}

/// The columns of bytes of a dump, by name; the one that is shown first if it has none.
fn columns_of_bytes(dump: &Dump) -> impl Iterator<Item = (&str, &Values, &Vec<i64>)> {
    let is_bytes = |measure: &Measure| measure.unit == Unit::Bytes;
    let has_bytes = dump.measures.iter().any(is_bytes);
    let measures = dump.measures.iter().zip(&dump.values.columns).enumerate();
    let wanted = measures.filter(move |(at, (measure, _))| match has_bytes {
        true => is_bytes(measure),
        false => *at == dump.default_measure,
    });
    wanted.map(|(_, (measure, column))| (measure.name.as_str(), &dump.values, column))
}

/// A library, and who sees it: all, or those who ask for the runtime or for allocators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u32);

impl Key {
    fn of(function: &Function) -> Key {
        let visible = match function.kind {
            Kind::Plain | Kind::Java | Kind::Class => 0,
            Kind::Runtime => 1,
            Kind::Allocator => 2,
        };
        Key(function.library.0 * 3 + visible)
    }

    fn library(self) -> LibraryId {
        LibraryId(self.0 / 3)
    }

    fn kind(self) -> Kind {
        [Kind::Plain, Kind::Runtime, Kind::Allocator][self.0 as usize % 3]
    }
}

/// Of each callsite which libraries its stack is in, in order of first appearance: a chain, which
/// those of its callees begin with.
struct LibrarySets {
    /// By callsite; 0 is the empty chain.
    of: Vec<u32>,
    /// By chain: what it is without its last key, and that key.
    links: Vec<(u32, Key)>,
}

impl LibrarySets {
    fn of(table: &StackTable) -> LibrarySets {
        let mut sets = LibrarySets {
            of: vec![0; table.node_count()],
            links: vec![(0, Key(NONE))],
        };
        let mut known: HashMap<u64, u32, FastHash> = HashMap::default();
        for node in 1..table.node_count() {
            let id = NodeId(node as u32);
            let Some(function) = table.function_of(id) else {
                continue;
            };
            let key = Key::of(&table.functions()[function.0 as usize]);
            let above = sets.of[table.parent(id).0 as usize];
            sets.of[node] = match sets.links[above as usize].1 == key {
                true => above,
                false => *known
                    .entry(u64::from(above) << 32 | u64::from(key.0))
                    .or_insert_with(|| sets.with(above, key)),
            };
        }
        sets
    }

    fn with(&mut self, chain: u32, key: Key) -> u32 {
        if self.keys(chain, 0).any(|known| known == key) {
            return chain;
        }
        self.links.push((chain, key));
        self.links.len() as u32 - 1
    }

    /// The keys of a chain, last first, down to where it was `until`.
    fn keys(&self, chain: u32, until: u32) -> impl Iterator<Item = Key> + '_ {
        let above = |at: &u32| Some(self.links[*at as usize].0);
        std::iter::successors(Some(chain), above)
            .take_while(move |at| *at != until && *at != 0)
            .map(|at| self.links[at as usize].1)
    }
}

/// Frames without their lines, and those that stand for left out ones, as far as they were made.
struct Shorts {
    other: TextId,
    /// By frame.
    of: Vec<u32>,
    others: HashMap<u32, FrameId>,
}

impl Shorts {
    fn of(table: &mut StackTable) -> Shorts {
        Shorts {
            other: table.text(OTHER),
            of: vec![NONE; table.frames().len()],
            others: HashMap::new(),
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
        let name = self.other;
        *self.others.entry(key.0).or_insert_with(|| {
            let function = table.function(Function {
                name,
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
        })
    }
}

/// Where the values of each callsite go.
struct Goals {
    /// By callsite of the table; from its number of callsites on, those of `made`.
    of: Vec<u32>,
    /// Callsites that are still to be made: by whom they are called, and their frames.
    made: Vec<(u32, FrameId)>,
}

impl Goals {
    /// `None` if that takes more than `room` callsites beside those that are kept.
    fn of(
        table: &mut StackTable,
        weights: &Weights,
        kept: &[u32],
        (sets, shorts): (&LibrarySets, &mut Shorts),
        (functions, room): (bool, usize),
    ) -> Option<Goals> {
        let count = weights.used.len();
        // By callsite: itself if it stays, else the nearest caller that does.
        let mut anchors = vec![NONE; count];
        anchors[0] = 0;
        for &node in kept {
            anchors[node as usize] = node;
        }
        // By callsite the frame below its anchor whose memory it is: not an allocator's, and the
        // runtime's only if there is no other.
        let mut owners = vec![NONE; count];
        let mut goals = Goals {
            of: vec![0; count],
            made: Vec::new(),
        };
        let mut known: HashMap<u64, u32, FastHash> = HashMap::default();
        let mut path: Vec<FrameId> = Vec::new();
        let mut added: Vec<Key> = Vec::new();
        for node in 1..count {
            if !weights.used[node] || anchors[node] == node as u32 {
                goals.of[node] = node as u32;
                continue;
            }
            let id = NodeId(node as u32);
            let Some(frame) = table.frame_of(id) else {
                continue;
            };
            let parent = table.parent(id).0 as usize;
            anchors[node] = anchors[parent];
            let key = key_of(table, frame.0);
            let above = owners[parent];
            owners[node] = match key.kind() {
                Kind::Plain => frame.0,
                Kind::Runtime if above == NONE || key_of(table, above).kind() != Kind::Plain => {
                    frame.0
                }
                _ => above,
            };
            if !weights.holds[node] {
                continue;
            }
            let anchor = anchors[node];
            // The library whose memory it is stands last: there its bytes are where functions are
            // left out, too.
            let last = match owners[node] {
                NONE => key,
                owner => key_of(table, owner),
            };
            added.clear();
            added.extend(sets.keys(sets.of[node], sets.of[anchor as usize]));
            added.retain(|key| *key != last);
            added.sort_unstable();
            added.push(last);
            path.clear();
            path.extend(added.iter().map(|key| shorts.other(table, *key)));
            if functions {
                let owner = FrameId(owners[node]);
                if owner.0 != NONE {
                    path.push(shorts.short(table, owner));
                }
                if owner != frame {
                    path.push(shorts.short(table, frame));
                }
            }
            let mut at = anchor;
            for &frame in &path {
                let next = (count + goals.made.len()) as u32;
                let key = u64::from(at) << 32 | u64::from(frame.0);
                let child = *known.entry(key).or_insert(next);
                if child == next {
                    goals.made.push((at, frame));
                }
                at = child;
            }
            if goals.made.len() > room {
                return None;
            }
            goals.of[node] = at;
        }
        Some(goals)
    }

    /// Makes the callsites; by callsite of before where its values go.
    fn enter(self, table: &mut StackTable) -> Vec<u32> {
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

fn key_of(table: &StackTable, frame: u32) -> Key {
    let function = table.frames()[frame as usize].function;
    Key::of(&table.functions()[function.0 as usize])
}

fn real_of(real: &[u32], count: usize, node: u32) -> u32 {
    (node as usize)
        .checked_sub(count)
        .map_or(node, |at| real[at])
}

#[cfg(test)]
mod tests;
