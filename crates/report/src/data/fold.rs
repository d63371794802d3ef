//! Reduction of the number of callsites for a browser: those with the fewest bytes are summed in
//! their callers, by function and library, so every total stays the same.
//!
//! Sums are below the nearest remaining caller: a frame `(other)` for each library that the omitted
//! frames add to the stack, below it the function that owns the memory, and the allocating function
//! if that is another one. Tables by library thus have the values of the profile, and tables by
//! function have the own values of functions. Missing are the calls among omitted functions, and
//! lines. If that is too much, sums are without functions, and then only by the library that owns the
//! memory.
//!
//! | file | owns |
//! |---|---|
//! | `weights` | the weight of each stack |
//! | `kept` | the largest callsites: a part of the tree, found without the rest |
//! | `omitted` | the frames of a stack below its nearest remaining caller |
//! | `goals` | the targets of the values |
//! | `attempt` | how much detail has room |

mod attempt;
mod goals;
mod kept;
mod omitted;
mod weights;

use super::header::Folded;
use attempt::{FoldAttempt, HASH_STRIDE};
use goals::{Detail, Goals, Targets};
use heaptap_analyze::native::sampled::SmallSamples;
use heaptap_model::parallel::{self, Pool};
use heaptap_model::profile::index::{FastHash, Seed};
use heaptap_model::profile::packed::{self, PackedStacks};
use heaptap_model::stacks::{
    Dump, FrameId, Measure, NodeId, StackProfile, StackTable, Values, View,
};
use heaptap_model::touch::{BATCH, touch};
use kept::Kept;
use omitted::Walk;
use std::collections::HashSet;
use std::ops::Range;
use weights::Weights;

/// Number of callsites with which a page opens in two seconds.
pub const MOST: usize = 1_000_000;

/// Returns the number of stacks from which a list is better than a tree for a page of `most`
/// callsites: their tree is usually too large for it.
pub fn list_from(most: usize) -> usize {
    most / 4
}

/// No callsite or frame.
const NONE: u32 = u32::MAX;
/// Number of rows of a dump that are read while others are summed.
const ROWS: usize = 1 << 14;

/// Makes the callsites a tree. Sums those with the fewest bytes if there are many more than `most`, so
/// that at most `most` are left, and returns the result without its command. If there are not many
/// more, half of them would lose their callers so that a page opens a tenth sooner.
pub fn fold(profile: &mut StackProfile, most: usize) -> Option<Folded> {
    let few = most.saturating_add(most / 8);
    if profile.table.list().is_none() && profile.table.node_count() - 1 <= few {
        return None;
    }
    let stacks = take_stacks(profile);
    let weights = Weights::of(profile, stacks.len());
    if let Some(nodes) = tree_within(&mut profile.table, &stacks, &weights, few) {
        for dump in &mut profile.dumps {
            dump.move_to(&nodes);
        }
        return None;
    }
    let mut goals = Goals::new(&mut profile.table, stacks.len());
    let mut attempt = FoldAttempt {
        stacks: &stacks,
        weights: &weights,
        kept: Kept::new(&stacks, &weights, profile.table.frames().len()),
        walk: Walk::of(&profile.table),
        count: 0,
        detail: Detail::Functions,
        room: 0,
    };
    attempt
        .search(most, &mut profile.table, &mut goals)
        .then_some(())?;
    let FoldAttempt {
        kept,
        count,
        detail,
        ..
    } = attempt;
    let of = weights.held().count();
    let kept = kept.into_calls(count);
    drop((stacks, weights));
    let targets = goals.enter(&mut profile.table, &kept);
    drop(kept);
    let mut folded = Folded {
        kept: targets.kept_count(),
        of,
        functions: detail == Detail::Functions,
        libraries: detail != Detail::Owners,
        bytes: Vec::with_capacity(profile.dumps.len()),
        command: String::new(),
    };
    let mut sums = Sums::of(&targets, profile.table.node_count());
    for dump in &mut profile.dumps {
        folded.bytes.push(sums.take(dump));
        // The threads are not used from here on.
        dump.threads.clear();
    }
    Some(folded)
}

/// Takes the stacks out of the table. The callsites of the dumps are then those of the result.
fn take_stacks(profile: &mut StackProfile) -> PackedStacks {
    if profile.table.list().is_some() {
        return profile.table.take_callsites().unwrap_or_default();
    }
    let mut used = vec![false; profile.table.node_count()];
    for node in profile.dumps.iter().flat_map(|dump| &dump.values.nodes) {
        used[node.0 as usize] = true;
    }
    let mut stacks = PackedStacks::default();
    let mut ids = vec![NodeId::ROOT; used.len()];
    let mut frames = Vec::new();
    for (node, used) in (0..).map(NodeId).zip(used) {
        if used {
            frames.clear();
            let stack = profile.table.stack(node);
            frames.extend(stack.filter_map(|node| profile.table.frame_of(node)));
            let outermost_first = frames.iter().rev().map(|frame: &FrameId| frame.0);
            ids[node.0 as usize] = NodeId(stacks.id(outermost_first));
        }
    }
    for dump in &mut profile.dumps {
        dump.move_to(&ids);
    }
    profile.table.take_callsites();
    stacks
}

/// Enters the stacks with values, unless they have more than `most` callsites. Returns the callsite of
/// each stack; the root for those without values.
fn tree_within(
    table: &mut StackTable,
    stacks: &PackedStacks,
    weights: &Weights,
    most: usize,
) -> Option<Vec<NodeId>> {
    // A margin of one eighth is eight times the sampling error of the smallest estimate.
    let is_estimated = most >= 1 << 18;
    if is_estimated && least_callsites(stacks, weights) > most.saturating_add(most / 8) {
        return None;
    }
    let mut nodes = vec![NodeId::ROOT; stacks.len()];
    for stack in weights.held() {
        let mut packed = stacks.get(stack);
        let mut node = NodeId::ROOT;
        while let Some(frame) = packed::first(&mut packed) {
            node = table.child(node, FrameId(frame));
        }
        nodes[stack as usize] = node;
        if table.node_count() - 1 > most {
            table.take_callsites();
            return None;
        }
    }
    table.seal();
    Some(nodes)
}

/// Returns about how many callsites are the ends of stacks with values, or call such ends: a tree has
/// these and others.
fn least_callsites(stacks: &PackedStacks, weights: &Weights) -> usize {
    let seed = Seed::default();
    let parts = parallel::ranges(stacks.len(), ROWS, |range| {
        let mut sample: HashSet<u64, FastHash> = HashSet::default();
        let all = range.start as u32..range.end as u32;
        for stack in all.filter(|stack| weights.holds(*stack)) {
            let end = stacks.get(stack);
            let mut caller = end;
            packed::last(&mut caller);
            let hashes = [end, caller].map(|packed| seed.bytes(packed));
            sample.extend(
                hashes
                    .into_iter()
                    .filter(|hash| hash.is_multiple_of(HASH_STRIDE)),
            );
        }
        sample
    });
    let all: HashSet<u64, FastHash> = parts.into_iter().flatten().collect();
    all.len() * HASH_STRIDE as usize
}

/// Sums of a dump's rows by target. All dumps have the same few targets, so each target has an
/// index and no dump needs sorting.
struct Sums<'a> {
    targets: &'a Targets,
    /// Targets, ascending.
    nodes: Vec<NodeId>,
    /// Index in `nodes` by callsite of the tree.
    places: Vec<u32>,
    /// Values of all columns by index, adjacent.
    values: Vec<i64>,
    /// Whether the dump has a row of it, by index.
    has_row: Vec<bool>,
}

impl<'a> Sums<'a> {
    /// Creates sums in a tree of `node_count` callsites.
    fn of(targets: &'a Targets, node_count: usize) -> Sums<'a> {
        let mut places = vec![NONE; node_count];
        for node in targets.nodes() {
            places[node.0 as usize] = 0;
        }
        let mut nodes = Vec::new();
        for (node, place) in (0..).zip(&mut places) {
            if *place != NONE {
                *place = nodes.len() as u32;
                nodes.push(NodeId(node));
            }
        }
        Sums {
            targets,
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
        // A dump without columns has no stack with values.
        let width = (columns.len() + small.len()).max(1);
        self.values.clear();
        self.values.resize(self.nodes.len() * width, 0);
        self.has_row.fill(false);
        let mut summed = 0i64;
        let (targets, places) = (self.targets, &self.places);
        let rows = dump.values.nodes.len();
        let parts = (0..rows)
            .step_by(ROWS)
            .map(|start| start..rows.min(start + ROWS));
        let buffers = Pool::default();
        let read = |_: &mut (), rows: Range<usize>| {
            let (mut held, mut values): (Vec<_>, Vec<_>) = buffers.take().unwrap_or_default();
            held.clear();
            values.clear();
            held.extend(rows.filter_map(|row| {
                let (target, is_kept) = targets.of(dump.values.nodes[row])?;
                Some((row, places[target.0 as usize] as usize, is_kept))
            }));
            for &(row, ..) in &held {
                values.extend(columns.iter().map(|column| column[row]));
                values.extend(small.iter().map(|(_, small)| small.at(row)));
            }
            (held, values)
        };
        parallel::in_order(
            parts,
            || (),
            read,
            |(held, values)| {
                for (held, values) in held.chunks(BATCH).zip(values.chunks(BATCH * width)) {
                    touch(
                        held.iter()
                            .map(|(_, place, _)| self.values[place * width] as u8),
                    );
                    for (&(row, place, is_kept), values) in held.iter().zip(values.chunks(width)) {
                        self.has_row[place] = true;
                        let sums = &mut self.values[place * width..][..width];
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum = sum.saturating_add(*value);
                        }
                        if !is_kept && let Some(column) = columns.get(dump.default_measure) {
                            summed = summed.saturating_add(column[row]);
                        }
                    }
                }
                buffers.put((held, values));
                true
            },
        );
        let measures: Vec<Measure> = small
            .into_iter()
            .map(|(bytes, _)| Measure::small_samples(bytes))
            .collect();
        dump.measures.extend(measures);
        let count = self.has_row.iter().filter(|has_row| **has_row).count();
        let mut sums = Values {
            nodes: Vec::with_capacity(count),
            columns: (0..dump.measures.len())
                .map(|_| Vec::with_capacity(count))
                .collect(),
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

#[cfg(test)]
mod tests;
