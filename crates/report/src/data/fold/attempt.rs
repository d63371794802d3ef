//! The search for the most detail that has room. An attempt passes all stacks with values, so a cheaper
//! estimate comes first, of several details at once.

use super::largest::LargestCallsites;
use super::omitted::{NONE, Omitted, Walk};
use super::targets::{Detail, FoldTargets, Short};
use super::weights::Weights;
use heaptap_base::parallel::{self, Pool};
use heaptap_base::prefetch::{BATCH, prefetch};
use heaptap_model::profile::index::FastHash;
use heaptap_model::profile::packed::PackedStacks;
use heaptap_model::stacks::calls::Call;
use heaptap_model::stacks::{Frame, StackTable};
use std::collections::HashSet;

/// Attempt with the first `count` callsites.
pub(super) struct FoldAttempt<'a> {
    table: &'a StackTable,
    stacks: &'a PackedStacks,
    weights: &'a Weights,
    kept: LargestCallsites<'a>,
    walk: Walk,
    count: usize,
    pub(super) detail: Detail,
    /// Maximum number of callsites.
    most: usize,
    /// Estimates by count: `true` for a detail that certainly needs too much room, `None` before its
    /// estimate.
    estimates: Vec<(usize, ByDetail<Option<bool>>)>,
}

/// One for each of [`Detail::ALL`].
type ByDetail<T> = [T; Detail::ALL.len()];

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

/// Number of stacks that a thread reads at once.
const STACKS: usize = 1 << 14;

impl Batch {
    /// Removes the stacks and keeps their memory.
    fn clear(&mut self) {
        self.stacks.clear();
        self.frames.clear();
    }

    fn push(&mut self, stack: u32, nearest: u32, frames: &[Short]) {
        self.frames.extend_from_slice(frames);
        self.stacks.push((stack, nearest, self.frames.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32, &[Short])> {
        let mut start = 0;
        self.stacks.iter().map(move |&(stack, nearest, end)| {
            let frames = &self.frames[start..end];
            start = end;
            (stack, nearest, frames)
        })
    }
}

impl<'a> FoldAttempt<'a> {
    /// Creates an attempt for at most `most` callsites.
    pub(super) fn new(
        table: &'a StackTable,
        stacks: &'a PackedStacks,
        weights: &'a Weights,
        most: usize,
    ) -> FoldAttempt<'a> {
        FoldAttempt {
            kept: LargestCallsites::new(stacks, weights, table.frames().len()),
            walk: Walk::from_table(table),
            table,
            stacks,
            weights,
            count: 0,
            detail: Detail::Functions,
            most,
            estimates: Vec::new(),
        }
    }

    /// Finds the targets of values with as much detail and then as many kept callsites as there is room
    /// for.
    pub(super) fn search(&mut self, goals: &mut FoldTargets) {
        // Half of the room is for kept callsites and half for sums; less for callsites if there are more
        // sums.
        let counts = [0, self.most / 64, self.most / 8, self.most / 2];
        for detail in Detail::ALL {
            self.detail = detail;
            // The more callsites are kept, the more sums there are, and the longer it takes to find both.
            let estimates = counts[1..].iter().take_while(|count| {
                self.keep(**count);
                !self.is_too_much()
            });
            let likely = estimates.count();
            for count in counts[..=likely].iter().rev() {
                self.keep(*count);
                if (*count > 0 || !self.is_too_much()) && self.find(goals) {
                    return;
                }
            }
        }
    }

    /// Returns the kept callsites and their detail.
    pub(super) fn into_kept(self) -> (Vec<Call>, Detail) {
        (self.kept.into_calls(self.count), self.detail)
    }

    pub(super) fn keep(&mut self, count: usize) {
        self.kept.find(count);
        self.count = count;
    }

    /// Returns the maximum number of callsites in addition to the kept ones.
    fn room(&self, detail: Detail) -> usize {
        match (self.count, detail) {
            (0, Detail::Owners) => usize::MAX,
            _ => self.most - self.count,
        }
    }

    /// Reads stacks. `each` gets a stack, its nearest callsite, and the frames of its sum below that.
    fn read(
        &self,
        walk: &mut Walk,
        callers: &[(u32, u32)],
        stacks: &[u32],
        mut each: impl FnMut(u32, u32, &[Short]),
    ) {
        let mut frames = Vec::new();
        // Stacks are anywhere in memory, so they are read ahead, step by step.
        for stacks in stacks.chunks(BATCH) {
            let mut places = [(0, (0, 0), &[][..]); BATCH];
            let places = &mut places[..stacks.len()];
            for (place, stack) in places.iter_mut().zip(stacks) {
                let nearest = callers[self.kept.nearest(*stack) as usize];
                *place = (*stack, nearest, self.stacks.get(*stack));
            }
            prefetch(
                places
                    .iter()
                    .map(|place| place.2.first().copied().unwrap_or(0)),
            );
            for &(stack, (nearest, depth), packed) in &*places {
                frames.clear();
                if self.detail == Detail::Owners {
                    frames.extend(walk.owner(packed, depth).map(Short::Other));
                } else if let Some(omitted) = walk.read(packed, nearest, depth) {
                    self.shorten(&omitted, walk, &mut frames);
                }
                each(stack, nearest, &frames);
            }
        }
    }

    fn shorten(&self, omitted: &Omitted, walk: &mut Walk, frames: &mut Vec<Short>) {
        let libraries = walk.libraries(omitted).iter();
        frames.extend(libraries.map(|key| Short::Other(*key)));
        if self.detail == Detail::Functions {
            if omitted.owner != NONE {
                frames.push(Short::Frame(omitted.owner));
            }
            if omitted.owner != omitted.frame {
                frames.push(Short::Frame(omitted.frame));
            }
        }
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
    /// attempt costs as much as a successful one.
    pub(super) fn is_too_much(&mut self) -> bool {
        let detail = self.detail as usize;
        let known = (self.estimates.iter()).position(|(count, _)| *count == self.count);
        let at = known.unwrap_or_else(|| {
            self.estimates.push((self.count, ByDetail::default()));
            self.estimates.len() - 1
        });
        if self.estimates[at].1[detail].is_none() {
            self.estimates[at].1 = self.estimate(self.estimates[at].1);
        }
        self.estimates[at].1[detail] == Some(true)
    }

    /// Estimates several details with the same callsites at once, because they share most of the work:
    /// from this one to the first that has room. Counts what [`FoldAttempt::find`] creates. If the first
    /// stacks, a quarter or more, need less than their share of the room, the rest is left to that.
    fn estimate(&self, mut known: ByDetail<Option<bool>>) -> ByDetail<Option<bool>> {
        let first = self.detail as usize;
        let rooms = Detail::ALL.map(|detail| self.room(detail));
        for (known, room) in known.iter_mut().zip(rooms) {
            if room < MIN_ESTIMATED_CALLSITES || room == usize::MAX {
                *known = Some(false);
            }
        }
        let is_done = |known: &ByDetail<Option<bool>>| {
            let mut asked = known[first..].iter();
            asked.find(|known| **known != Some(true)) != Some(&None)
        };
        if is_done(&known) {
            return known;
        }
        // A margin of one eighth is four times the sampling error of the smallest room.
        let most = rooms.map(|room| (room.saturating_add(room / 8)) / HASH_STRIDE as usize);
        let mut samples: ByDetail<HashSet<u64, FastHash>> = ByDetail::default();
        let callers = self.kept.callers(self.count);
        let held: Vec<u32> = self.weights.held().collect();
        let sample = |walk: &mut Walk, stacks: &[u32]| {
            let mut samples: ByDetail<Vec<u64>> = ByDetail::default();
            self.read(walk, &callers, stacks, |_, nearest, frames| {
                self.sample(nearest, frames, &mut samples);
            });
            (stacks.len(), samples)
        };
        let mut visited = 0;
        let add = |(stacks, new): (usize, ByDetail<Vec<u64>>)| {
            visited += stacks;
            let is_enough = visited >= held.len() / 4;
            let details = known.iter_mut().zip(&mut samples).zip(new).zip(most);
            for (((known, sample), new), most) in details.skip(first) {
                if known.is_some() {
                    continue;
                }
                sample.extend(new);
                if sample.len() > most {
                    *known = Some(true);
                } else if is_enough && sample.len() * held.len() <= most * visited {
                    *known = Some(false);
                }
            }
            !is_done(&known)
        };
        let parts = held.chunks(STACKS);
        if parallel::in_order(parts, || self.walk.clone(), sample, add) {
            for known in &mut known[first..] {
                known.get_or_insert(false);
            }
        }
        known
    }

    /// Adds the callsites of a sum to the sample of each detail.
    fn sample(&self, nearest: u32, frames: &[Short], samples: &mut ByDetail<Vec<u64>>) {
        let [functions, libraries, owners] = samples;
        let start = mixed(u64::from(nearest));
        let is_sampled = |at: u64| at.is_multiple_of(HASH_STRIDE);
        let mut at = start;
        let mut owner = None;
        for frame in frames {
            let step = match frame {
                Short::Other(key) => u64::from(key.0),
                Short::Frame(frame) => {
                    // Lines are omitted.
                    let Frame { function, file, .. } = self.table.frames()[*frame as usize];
                    1 << 63 | u64::from(function.0) << 32 | u64::from(file.0)
                }
            };
            at = mixed(at ^ mixed(step));
            if is_sampled(at) {
                functions.push(at);
            }
            if let Short::Other(key) = frame {
                owner = Some(key);
                if is_sampled(at) {
                    libraries.push(at);
                }
            }
        }
        // The last library is the owner's, the only frame of a sum of that detail.
        if let Some(key) = owner {
            let at = mixed(start ^ mixed(u64::from(key.0)));
            if is_sampled(at) {
                owners.push(at);
            }
        }
    }

    /// Finds the targets of values. Returns whether there is room for them.
    pub(super) fn find(&self, goals: &mut FoldTargets) -> bool {
        let room = self.room(self.detail);
        goals.clear();
        let callers = self.kept.callers(self.count);
        let sorted = self.by_nearest(&callers);
        let batches = Pool::default();
        let read = |walk: &mut Walk, stacks: &[u32]| {
            let mut batch: Batch = batches.take().unwrap_or_default();
            batch.clear();
            self.read(walk, &callers, stacks, |stack, nearest, frames| {
                batch.push(stack, nearest, frames);
            });
            batch
        };
        let set = |batch: Batch| {
            goals.set(self.table, batch.iter());
            batches.put(batch);
            goals.made.len() <= room
        };
        parallel::in_order(sorted.chunks(STACKS), || self.walk.clone(), read, set)
    }
}

/// Mixes all bits of `number`: the finalizer of SplitMix64. Unlike [`FastHash`] it is the same in
/// each run, which the page requires.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
