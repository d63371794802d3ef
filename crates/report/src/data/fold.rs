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
//! | `largest` | the largest callsites: a part of the tree, found without the rest |
//! | `omitted` | the frames of a stack below its nearest remaining caller |
//! | `targets` | the targets of the values |
//! | `attempt` | how much detail has room |
//! | `sums` | the sums of values by target |

mod attempt;
mod largest;
mod omitted;
mod sums;
mod targets;
mod weights;

use super::header::Folded;
use attempt::{FoldAttempt, HASH_STRIDE};
use heaptap_base::parallel;
use heaptap_model::profile::index::{FastHash, Seed};
use heaptap_model::profile::packed::{self, PackedStacks};
use heaptap_model::stacks::calls::{Call, Calls};
use heaptap_model::stacks::{FrameId, NodeId, StackProfile};
use std::borrow::Cow;
use std::collections::HashSet;
use sums::{ROWS, Sums};
use targets::{Detail, FoldTargets};
use weights::Weights;

/// Number of callsites with which a page opens in two seconds.
pub const MAX_COUNT: usize = 1_000_000;

/// Returns the number of stacks from which a list is better than a tree for a page of `most`
/// callsites: their tree is usually too large for it.
pub fn list_from(most: usize) -> usize {
    most / 4
}

/// The callsites of a page, found and not yet applied: a tree of all of them, or of the largest ones
/// with sums of the others. Finding them only reads the profile.
pub struct Reduction {
    /// Stack of each callsite, if those of the profile are a tree.
    stack_of: Option<Vec<NodeId>>,
    form: Form,
}

enum Form {
    /// All callsites, and that of each stack; the root for stacks without values.
    All(Calls, Vec<NodeId>),
    /// The largest callsites, and the targets of the values of the others.
    Sums {
        kept: Vec<Call>,
        goals: FoldTargets,
        detail: Detail,
        /// Number of stacks with values.
        stacks: usize,
    },
}

impl Reduction {
    /// Finds the callsites of a page. Sums those with the fewest bytes if there are many more than
    /// `most`, so that at most `most` are left. If there are not many more, half of them would lose
    /// their callers so that a page opens a tenth sooner. Returns `None` if the callsites are a tree
    /// already, without too many.
    pub fn new(profile: &StackProfile, most: usize) -> Option<Reduction> {
        let few = most.saturating_add(most / 8);
        let table = &profile.table;
        if table.list().is_none() && table.node_count() - 1 <= few {
            return None;
        }
        let (stacks, stack_of) = stacks_of(profile);
        let weights = Weights::new(profile, stacks.len(), stack_of.as_deref());
        let form = match tree_within(&stacks, &weights, few) {
            Some((calls, nodes)) => Form::All(calls, nodes),
            None => {
                let mut attempt = FoldAttempt::new(table, &stacks, &weights, most);
                let mut goals = FoldTargets::new(table, stacks.len());
                attempt.search(&mut goals);
                let (kept, detail) = attempt.into_kept();
                Form::Sums {
                    kept,
                    goals,
                    detail,
                    stacks: weights.held().count(),
                }
            }
        };
        Some(Reduction { stack_of, form })
    }

    /// Replaces the callsites of `profile`, which must be the profile given to [`Reduction::new`], with this
    /// tree. Returns what was summed, without the command that writes all callsites.
    pub fn apply(self, profile: &mut StackProfile) -> Option<Folded> {
        // The old callsites would need memory until the new ones are there.
        profile.table.set_tree(Calls::default());
        if let Some(stacks) = self.stack_of {
            for dump in &mut profile.dumps {
                dump.move_to(&stacks);
            }
        }
        match self.form {
            Form::All(calls, nodes) => {
                profile.table.set_tree(calls);
                for dump in &mut profile.dumps {
                    dump.move_to(&nodes);
                }
                None
            }
            Form::Sums {
                kept,
                goals,
                detail,
                stacks,
            } => {
                let targets = goals.enter(&mut profile.table, &kept);
                drop(kept);
                let mut sums = Sums::new(&targets, profile.table.node_count());
                let bytes = profile.dumps.iter_mut().map(|dump| {
                    // The threads are not used from here on.
                    dump.threads.clear();
                    sums.take(dump)
                });
                Some(Folded {
                    kept: targets.kept_count(),
                    of: stacks,
                    functions: detail == Detail::Functions,
                    libraries: detail != Detail::Owners,
                    bytes: bytes.collect(),
                    command: String::new(),
                })
            }
        }
    }
}

/// Returns the stacks of the callsites; if these are a tree, those with values, and the stack of each
/// callsite.
fn stacks_of(profile: &StackProfile) -> (Cow<'_, PackedStacks>, Option<Vec<NodeId>>) {
    let table = &profile.table;
    if let Some(list) = table.list() {
        return (Cow::Borrowed(list), None);
    }
    let mut used = vec![false; table.node_count()];
    for node in profile.dumps.iter().flat_map(|dump| &dump.values.nodes) {
        used[node.0 as usize] = true;
    }
    let mut stacks = PackedStacks::default();
    let mut ids = vec![NodeId::ROOT; used.len()];
    let mut frames = Vec::new();
    for (node, used) in (0..).map(NodeId).zip(used) {
        if used {
            frames.clear();
            let stack = table.stack(node);
            frames.extend(stack.filter_map(|node| table.frame_of(node)));
            let outermost_first = frames.iter().rev().map(|frame: &FrameId| frame.0);
            ids[node.0 as usize] = NodeId(stacks.id(outermost_first));
        }
    }
    (Cow::Owned(stacks), Some(ids))
}

/// Returns a tree of the stacks with values, unless it has more than `most` callsites, and the callsite
/// of each stack; the root for those without values.
fn tree_within(
    stacks: &PackedStacks,
    weights: &Weights,
    most: usize,
) -> Option<(Calls, Vec<NodeId>)> {
    // A margin of one sixteenth is four times the sampling error of the smallest estimate.
    let is_estimated = most >= 1 << 18;
    if is_estimated && has_more_than(most.saturating_add(most / 16), stacks, weights) {
        return None;
    }
    let mut calls = Calls::default();
    let mut nodes = vec![NodeId::ROOT; stacks.len()];
    for stack in weights.held() {
        let mut packed = stacks.get(stack);
        let mut node = 0;
        while let Some(frame) = packed::first(&mut packed) {
            node = calls.child(node, frame);
        }
        nodes[stack as usize] = NodeId(node);
        if calls.all().len() - 1 > most {
            return None;
        }
    }
    calls.seal();
    Some((calls, nodes))
}

/// Returns whether the stacks with values have about more than `most` callsites. Counts only those with a
/// hash that is a multiple of [`HASH_STRIDE`].
fn has_more_than(most: usize, stacks: &PackedStacks, weights: &Weights) -> bool {
    let seed = Seed::default();
    let most = most / HASH_STRIDE as usize;
    let parts = parallel::ranges(stacks.len(), ROWS, |range| {
        let mut sample: HashSet<u64, FastHash> = HashSet::default();
        let all = range.start as u32..range.end as u32;
        for stack in all.filter(|stack| weights.holds(*stack)) {
            let (mut packed, mut at) = (stacks.get(stack), 0);
            while let Some(frame) = packed::first(&mut packed) {
                at = seed.number(at ^ u64::from(frame));
                if at.is_multiple_of(HASH_STRIDE) {
                    sample.insert(at);
                }
            }
            if sample.len() > most {
                break;
            }
        }
        sample
    });
    let all: HashSet<u64, FastHash> = parts.into_iter().flatten().collect();
    all.len() > most
}

#[cfg(test)]
mod tests;
