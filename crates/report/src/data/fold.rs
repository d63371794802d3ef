//! Reduction of the number of callsites for a browser: those with the fewest bytes are summed in
//! their callers, by function and library, so every total stays the same.
//!
//! Sums are below the nearest remaining caller: a frame `(other)` for each library that the omitted
//! frames add to the stack, below it the function that owns the memory, and the allocating function
//! if that is another one. Tables by library thus have the values of the profile, and tables by
//! function have the own values of functions. Missing are the calls among omitted functions, and
//! lines.

mod goals;

use super::header::Folded;
use goals::{FoldAttempt, Goals};
use heaptap_analyze::native::sampled::SmallSamples;
use heaptap_model::stacks::{
    Dump, Frame, FrameId, Function, Kind, LibraryId, Measure, NodeId, StackProfile, StackTable,
    TextId, Unit, Values, View,
};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Number of callsites with which a page opens in two seconds.
pub const MOST: usize = 1_000_000;

/// Name of omitted frames.
const OTHER: &str = "(other)";

/// No frame or node.
const NONE: u32 = u32::MAX;

/// Sums the callsites with the fewest bytes so that at most `most` are left. Returns the result
/// without its command. Returns `None` if there are not many more callsites than that: half of them
/// would lose their callers so that a page opens a tenth sooner.
pub fn fold(profile: &mut StackProfile, most: usize) -> Option<Folded> {
    let few = most + most / 8;
    if profile.table.node_count() <= few {
        return None;
    }
    let mut weights = Weights::of(profile);
    let mut order = std::mem::take(&mut weights.nodes);
    let used = order.len();
    if used <= few {
        return None;
    }
    // Half of the room is for remaining callsites and half for sums; less for callsites if there
    // are more sums. Functions are given up last.
    let counts = [most / 2, most / 8, most / 64, 0];
    // Among equal callsites, callers come before callees, so each remaining callsite has all its
    // callers. A smaller selection is a subset of a larger one.
    let mut within = used;
    for kept in counts {
        if kept < within {
            order[..within].select_nth_unstable_by(kept, |a, b| weights.largest_first(*a, *b));
        }
        within = kept;
    }
    let sets = LibrarySets::of(&profile.table);
    let mut shorts = Shorts::of(&mut profile.table);
    let mut goals = Goals::new(weights.used.len());
    let attempts = [true, false]
        .into_iter()
        .flat_map(|functions| counts.map(|kept| (kept, functions)));
    let mut found = None;
    for (kept, functions) in attempts {
        let is_last = kept == 0 && !functions;
        let room = if is_last { usize::MAX } else { most - kept };
        let mut attempt = FoldAttempt {
            goals: &mut goals,
            weights: &weights,
            sets: &sets,
            kept: &order[..kept],
        };
        if !is_last && attempt.is_too_much(&mut profile.table, functions, room) {
            continue;
        }
        if attempt.find(&mut profile.table, &mut shorts, functions, room) {
            found = Some((kept, functions));
            break;
        }
    }
    let (kept, functions) = found?;
    drop((order, sets, shorts));
    let goals = goals.enter(&mut profile.table);
    let mut sums = Sums::of(goals, &weights.listed, profile.table.node_count());
    drop(weights);
    let mut bytes = Vec::with_capacity(profile.dumps.len());
    for dump in &mut profile.dumps {
        bytes.push(sums.take(dump));
        // The threads are not used from here on.
        dump.threads.clear();
    }
    Some(Folded {
        kept,
        of: used,
        functions,
        bytes,
        command: String::new(),
    })
}

/// Sums of a dump's rows by target. All dumps have the same few targets, so each target has an
/// index and no dump needs sorting.
struct Sums {
    /// Targets, ascending.
    nodes: Vec<NodeId>,
    /// Index in `nodes` by callsite; [`NONE`] for callsites without a row.
    places: Vec<u32>,
    /// Values of all columns by index, adjacent.
    values: Vec<i64>,
    /// Whether the dump has a row, by index.
    has_row: Vec<bool>,
}

impl Sums {
    /// Creates sums. `goals` is the target of each callsite, below `node_count`. `listed` is
    /// whether any dump has a row of it.
    fn of(goals: Vec<u32>, listed: &[bool], node_count: usize) -> Sums {
        let mut place_of = vec![NONE; node_count];
        for (goal, _) in goals.iter().zip(listed).filter(|(_, listed)| **listed) {
            place_of[*goal as usize] = 0;
        }
        let mut nodes = Vec::new();
        for (node, place) in (0..).zip(&mut place_of) {
            if *place != NONE {
                *place = nodes.len() as u32;
                nodes.push(NodeId(node));
            }
        }
        let mut places = goals;
        for place in &mut places {
            *place = place_of[*place as usize];
        }
        Sums {
            has_row: vec![false; nodes.len()],
            values: Vec::new(),
            nodes,
            places,
        }
    }

    /// Replaces a dump's values with sums. Adds columns for the error of sums, while callsites are
    /// still separate. Returns the summed part of the first measure.
    fn take(&mut self, dump: &mut Dump) -> i64 {
        let small = [View::Space, View::AllocSpace].map(|bytes| {
            let at = dump.measures.iter().position(|m| m.view == Some(bytes))?;
            Some((bytes, SmallSamples::of(dump, at)?))
        });
        let small: Vec<(View, SmallSamples<'_>)> = small.into_iter().flatten().collect();
        let columns = &dump.values.columns;
        let width = columns.len() + small.len();
        self.values.clear();
        self.values.resize(self.nodes.len() * width, 0);
        self.has_row.fill(false);
        let mut summed = 0i64;
        for (row, node) in dump.values.nodes.iter().enumerate() {
            let place = self.places[node.0 as usize] as usize;
            self.has_row[place] = true;
            let own = columns.iter().map(|column| column[row]);
            let own = own.chain(small.iter().map(|(_, small)| small.at(row)));
            for (sum, value) in self.values[place * width..][..width].iter_mut().zip(own) {
                *sum = sum.saturating_add(value);
            }
            if self.nodes[place] != *node
                && let Some(column) = columns.get(dump.default_measure)
            {
                summed = summed.saturating_add(column[row]);
            }
        }
        let measures: Vec<Measure> = small
            .into_iter()
            .map(|(bytes, _)| Measure::small_samples(bytes))
            .collect();
        dump.measures.extend(measures);
        let count = self.has_row.iter().filter(|has_row| **has_row).count();
        let mut sums = Values {
            nodes: Vec::with_capacity(count),
            columns: (0..width).map(|_| Vec::with_capacity(count)).collect(),
        };
        for (place, _) in self.has_row.iter().enumerate().filter(|(_, has)| **has) {
            sums.nodes.push(self.nodes[place]);
            let own = &self.values[place * width..][..width];
            for (column, value) in sums.columns.iter_mut().zip(own) {
                column.push(*value);
            }
        }
        dump.values = sums;
        summed
    }
}

/// Weight of each callsite, including its descendants.
struct Weights {
    /// Largest share of any total of unreleased or allocated bytes on the page.
    of: Vec<f32>,
    /// Whether it or a descendant has any value.
    used: Vec<bool>,
    /// Used callsites, ascending, without the root.
    nodes: Vec<u32>,
    /// Whether it has values itself.
    holds: Vec<bool>,
    /// Whether a dump has a row of it, even of zeros.
    listed: Vec<bool>,
}

impl Weights {
    fn of(profile: &StackProfile) -> Weights {
        let table = &profile.table;
        let count = table.node_count();
        let mut weights = Weights {
            of: vec![0.0; count],
            used: Vec::new(),
            nodes: Vec::new(),
            holds: vec![false; count],
            listed: vec![false; count],
        };
        for dump in &profile.dumps {
            for (row, node) in dump.values.nodes.iter().enumerate() {
                let columns = &dump.values.columns;
                weights.listed[node.0 as usize] = true;
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
        let all = 1..count as u32;
        let used = all.filter(|&node| weights.used[node as usize]);
        weights.nodes = used.collect();
        let mut largest: HashMap<&str, f64> = HashMap::new();
        let columns = profile.dumps.iter().flat_map(columns_of_bytes);
        for (name, column) in columns {
            let total = column.iter().map(|value| value.unsigned_abs() as f64).sum();
            let largest = largest.entry(name).or_insert(0.0);
            *largest = f64::max(*largest, total);
        }
        // Two columns at once, because walking all callsites takes longer than adding.
        let mut sums = vec![[0.0f64; 2]; count];
        for dump in &profile.dumps {
            let columns = columns_of_bytes(dump).filter_map(|(name, column)| {
                let total = largest.get(name).copied();
                Some((column, total.filter(|total| *total > 0.0)?))
            });
            let columns: Vec<(&Vec<i64>, f64)> = columns.collect();
            for pair in columns.chunks(2) {
                weights.add(table, dump, pair, &mut sums);
            }
        }
        weights
    }

    /// Adds up to two columns of a dump, each with the total of which it is a part. `sums` is zero
    /// before and after.
    fn add(
        &mut self,
        table: &StackTable,
        dump: &Dump,
        pair: &[(&Vec<i64>, f64)],
        sums: &mut [[f64; 2]],
    ) {
        let mut totals = [1.0; 2];
        for (at, (column, total)) in pair.iter().enumerate() {
            totals[at] = *total;
            for (node, value) in dump.values.nodes.iter().zip(*column) {
                sums[node.0 as usize][at] = value.unsigned_abs() as f64;
            }
        }
        for &node in self.nodes.iter().rev() {
            let own = std::mem::take(&mut sums[node as usize]);
            if own == [0.0; 2] {
                continue;
            }
            let above = &mut sums[table.parent(NodeId(node)).0 as usize];
            let weight = &mut self.of[node as usize];
            for ((own, above), total) in own.into_iter().zip(above).zip(totals) {
                *above += own;
                *weight = weight.max((own / total) as f32);
            }
        }
        sums[0] = [0.0; 2];
    }

    fn largest_first(&self, a: u32, b: u32) -> Ordering {
        let by_weight = self.of[b as usize].total_cmp(&self.of[a as usize]);
        by_weight.then(a.cmp(&b))
    }
}

/// Returns the byte columns of a dump by name; if it has none, the column shown first.
fn columns_of_bytes(dump: &Dump) -> impl Iterator<Item = (&str, &Vec<i64>)> {
    let is_bytes = |measure: &Measure| measure.unit == Unit::Bytes;
    let has_bytes = dump.measures.iter().any(is_bytes);
    let measures = dump.measures.iter().zip(&dump.values.columns).enumerate();
    let wanted = measures.filter(move |(at, (measure, _))| match has_bytes {
        true => is_bytes(measure),
        false => *at == dump.default_measure,
    });
    wanted.map(|(_, (measure, column))| (measure.name.as_str(), column))
}

/// Library with its visibility: always, or only with the runtime or with allocators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u32);

impl Key {
    const PER_LIBRARY: u32 = 3;

    fn of(function: &Function) -> Key {
        let visible = match function.kind {
            Kind::Plain | Kind::Java | Kind::Class => 0,
            Kind::Runtime => 1,
            Kind::Allocator => 2,
        };
        Key(function.library.0 * Key::PER_LIBRARY + visible)
    }

    fn library(self) -> LibraryId {
        LibraryId(self.0 / Key::PER_LIBRARY)
    }

    fn kind(self) -> Kind {
        [Kind::Plain, Kind::Runtime, Kind::Allocator][(self.0 % Key::PER_LIBRARY) as usize]
    }
}

/// Libraries on the stack of each callsite in order of first appearance, as chains. The chain of a
/// caller is a prefix of its callees' chains.
struct LibrarySets {
    /// By frame.
    keys: Vec<Key>,
    /// By callsite; 0 is the empty chain.
    of: Vec<u32>,
    /// By chain; several can contain the same keys.
    links: Vec<Link>,
}

/// Link of a chain.
struct Link {
    /// Chain without the last key; 0 is the empty chain.
    above: u32,
    /// Last key.
    key: Key,
    /// Number of keys.
    length: u32,
    /// Bloom filter: a key whose bit is not set is not in the chain.
    bits: u32,
}

/// Maximum number of keys in a chain, more libraries than any real stack has. Further libraries are
/// not distinguished in sums, because time depends on the length of a chain.
const LONGEST_CHAIN: u32 = 256;

impl LibrarySets {
    fn of(table: &StackTable) -> LibrarySets {
        let functions = table.functions();
        let frames = table.frames().iter();
        let mut sets = LibrarySets {
            keys: frames
                .map(|frame| Key::of(&functions[frame.function.0 as usize]))
                .collect(),
            of: vec![0; table.node_count()],
            links: vec![Link {
                above: 0,
                key: Key(NONE),
                length: 0,
                bits: 0,
            }],
        };
        for node in 1..table.node_count() {
            let id = NodeId(node as u32);
            let above = sets.of[table.parent(id).0 as usize];
            sets.of[node] = match table.frame_of(id) {
                Some(frame) => sets.with(above, sets.key(frame.0)),
                None => above,
            };
        }
        sets
    }

    /// Returns the key of a frame that was in the table originally.
    fn key(&self, frame: u32) -> Key {
        self.keys[frame as usize]
    }

    fn with(&mut self, chain: u32, key: Key) -> u32 {
        let last = &self.links[chain as usize];
        let (length, bits) = (last.length, last.bits);
        let bit = 1 << (key.0 % u32::BITS);
        if last.key == key
            || bits & bit != 0 && self.keys(chain, 0).any(|known| known == key)
            || length == LONGEST_CHAIN
        {
            return chain;
        }
        self.links.push(Link {
            above: chain,
            key,
            length: length + 1,
            bits: bits | bit,
        });
        self.links.len() as u32 - 1
    }

    /// Returns the keys of a chain, last first, down to the chain `until`.
    fn keys(&self, chain: u32, until: u32) -> impl Iterator<Item = Key> + '_ {
        let above = |at: &u32| Some(self.links[*at as usize].above);
        std::iter::successors(Some(chain), above)
            .take_while(move |at| *at != until && *at != 0)
            .map(|at| self.links[at as usize].key)
    }
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

#[cfg(test)]
mod tests;
