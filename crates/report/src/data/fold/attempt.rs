//! The search for the most detail that has room. An attempt passes all stacks with values, so a cheaper
//! estimate comes first.

use super::NONE;
use super::goals::{Detail, Goals, Short};
use super::kept::Kept;
use super::omitted::{Omitted, Walk};
use super::weights::Weights;
use heaptap_model::parallel::{self, Pool};
use heaptap_model::profile::index::FastHash;
use heaptap_model::profile::packed::PackedStacks;
use heaptap_model::stacks::{Frame, StackTable};
use heaptap_model::touch::{BATCH, touch};
use std::collections::HashSet;

/// Attempt with the first `count` callsites.
pub(super) struct FoldAttempt<'a> {
    pub(super) stacks: &'a PackedStacks,
    pub(super) weights: &'a Weights,
    pub(super) kept: Kept<'a>,
    pub(super) walk: Walk,
    pub(super) count: usize,
    pub(super) detail: Detail,
    /// Maximum number of callsites in addition to the kept ones.
    pub(super) room: usize,
}

/// An estimate counts only what has a hash that is a multiple of this.
pub(super) const HASH_STRIDE: u64 = 64;
/// Minimum room for an estimate; below it the sampling error exceeds the margin.
const MIN_ESTIMATED_CALLSITES: usize = 1 << 16;

/// Stacks with values: the nearest kept callsite of each, and the frames of its sum below that.
#[derive(Default)]
struct Batch {
    /// Stack, nearest callsite, end of its frames.
    stacks: Vec<(u32, u32, usize)>,
    frames: Vec<Short>,
}

/// Number of stacks of a batch.
const STACKS: usize = 1 << 14;

impl Batch {
    fn iter(&self) -> impl Iterator<Item = (u32, u32, &[Short])> {
        let mut start = 0;
        self.stacks.iter().map(move |&(stack, nearest, end)| {
            let frames = &self.frames[start..end];
            start = end;
            (stack, nearest, frames)
        })
    }
}

impl FoldAttempt<'_> {
    /// Finds the targets of values for at most `most` callsites, with as much detail and then as many
    /// kept callsites as there is room for. Returns whether there is any.
    pub(super) fn search(
        &mut self,
        most: usize,
        table: &mut StackTable,
        goals: &mut Goals,
    ) -> bool {
        // Half of the room is for kept callsites and half for sums; less for callsites if there are more
        // sums.
        let counts = [0, most / 64, most / 8, most / 2];
        [Detail::Functions, Detail::Libraries, Detail::Owners]
            .into_iter()
            .any(|detail| {
                self.detail = detail;
                // The more callsites are kept, the more sums there are, and the longer it takes to find
                // both.
                let estimates = counts[1..].iter().take_while(|count| {
                    self.keep(**count, most);
                    !self.is_too_much(table)
                });
                let likely = estimates.count();
                counts[..=likely].iter().rev().any(|count| {
                    self.keep(*count, most);
                    (*count > 0 || !self.is_too_much(table)) && self.find(table, goals)
                })
            })
    }

    fn keep(&mut self, count: usize, most: usize) {
        self.kept.find(count);
        self.count = count;
        self.room = match (count, self.detail) {
            (0, Detail::Owners) => usize::MAX,
            _ => most - count,
        };
    }

    /// Reads stacks into a used batch.
    fn read(
        &self,
        walk: &mut Walk,
        callers: &[(u32, u32)],
        stacks: &[u32],
        mut batch: Batch,
    ) -> Batch {
        batch.stacks.clear();
        batch.frames.clear();
        let frames = &mut batch.frames;
        // Stacks are anywhere in memory, so they are read ahead, step by step.
        for stacks in stacks.chunks(BATCH) {
            let mut places = [(0, (0, 0), &[][..]); BATCH];
            let places = &mut places[..stacks.len()];
            for (place, stack) in places.iter_mut().zip(stacks) {
                let nearest = callers[self.kept.nearest(*stack) as usize];
                *place = (*stack, nearest, self.stacks.get(*stack));
            }
            touch(
                places
                    .iter()
                    .map(|place| place.2.first().copied().unwrap_or(0)),
            );
            for &(stack, (nearest, depth), packed) in &*places {
                if let Some(omitted) = walk.read(packed, depth) {
                    self.shorten(&omitted, walk, frames);
                }
                batch.stacks.push((stack, nearest, frames.len()));
            }
        }
        batch
    }

    fn shorten(&self, omitted: &Omitted, walk: &mut Walk, frames: &mut Vec<Short>) {
        match self.detail {
            Detail::Owners => frames.push(Short::Other(omitted.last)),
            _ => {
                let libraries = walk.libraries(omitted).iter();
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

    /// Passes stacks until `visit` returns `false`. Returns whether it never did. Reads others at the same
    /// time.
    fn each(
        &self,
        callers: &[(u32, u32)],
        stacks: &[u32],
        mut visit: impl FnMut(&Batch) -> bool,
    ) -> bool {
        let batches = Pool::default();
        parallel::in_order(
            stacks.chunks(STACKS),
            || self.walk.clone(),
            |walk, stacks| {
                let used = batches.take().unwrap_or_default();
                self.read(walk, callers, stacks, used)
            },
            |batch| {
                let goes_on = visit(&batch);
                batches.put(batch);
                goes_on
            },
        )
    }

    /// Returns the stacks with values, ordered by their nearest kept callsites.
    fn by_nearest(&self, callers: &[(u32, u32)]) -> Vec<u32> {
        let nearest = |stack: u32| callers[self.kept.nearest(stack) as usize].0 as usize;
        let mut places = vec![0; callers.len() + 1];
        let mut count = 0;
        for stack in self.weights.held() {
            places[nearest(stack) + 1] += 1;
            count += 1;
        }
        let mut sum = 0;
        for place in &mut places {
            sum += *place;
            *place = sum;
        }
        let mut sorted = vec![0; count];
        for stack in self.weights.held() {
            let place: &mut usize = &mut places[nearest(stack)];
            sorted[*place] = stack;
            *place += 1;
        }
        sorted
    }

    /// Returns whether the attempt certainly needs too much room, by an estimate, because a failed
    /// attempt costs as much as a successful one. Counts what [`FoldAttempt::find`] creates. If the first
    /// stacks, a quarter or more, need less than their share of the room, the rest is left to that.
    pub(super) fn is_too_much(&self, table: &StackTable) -> bool {
        let room = self.room;
        if room < MIN_ESTIMATED_CALLSITES || room == usize::MAX {
            return false;
        }
        // A margin of one eighth is four times the sampling error of the smallest room.
        let most = (room + room / 8) / HASH_STRIDE as usize;
        let mut sample: HashSet<u64, FastHash> = HashSet::default();
        let callers = self.kept.callers(self.count);
        let held: Vec<u32> = self.weights.held().collect();
        let mut visited = 0;
        let mut has_room = false;
        let visits_all = self.each(&callers, &held, |batch| {
            for (_, nearest, frames) in batch.iter() {
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
            visited += batch.stacks.len();
            has_room = visited >= held.len() / 4 && sample.len() * held.len() <= most * visited;
            sample.len() <= most && !has_room
        });
        !visits_all && !has_room
    }

    /// Finds the targets of values. Returns whether there is room for them.
    pub(super) fn find(&self, table: &mut StackTable, goals: &mut Goals) -> bool {
        let room = self.room;
        goals.clear();
        let callers = self.kept.callers(self.count);
        self.each(&callers, &self.by_nearest(&callers), |batch| {
            goals.set(table, batch.iter());
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
