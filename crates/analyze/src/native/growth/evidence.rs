//! Values of each callsite or function over the dumps of a heap. Holds at most four dumps at a
//! time, regardless of the length of the series.

use super::HeapSeries;
use crate::native::shown::{Shown, ShownId};
use crate::sampling::poisson::Z95;
use crate::sampling::verdict::turns_over;
use crate::sampling::{Counters, Interval, Sampled, Turnover};
use heaptap_model::stacks::{Dump, View};

/// Callsites of a shown tree that have values of their own in any dump.
#[derive(Debug)]
pub(super) struct Callsites {
    /// Shown callsites in order.
    pub ids: Vec<ShownId>,
    /// Index into `ids`, by callsite of the tree.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Callsites {
    pub fn of(shown: &Shown<'_>, heaps: &[HeapSeries<'_>]) -> Callsites {
        let mut places = vec![NOWHERE; shown.len()];
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        for node in dumps.flat_map(|(dump, _)| &dump.values.nodes) {
            if let Some(ShownId(target)) = shown.target(*node) {
                places[target as usize] = 0;
            }
        }
        let mut ids = Vec::new();
        for (at, place) in places.iter_mut().enumerate() {
            if *place != NOWHERE {
                *place = ids.len() as u32;
                ids.push(ShownId(at as u32));
            }
        }
        Callsites { ids, places }
    }

    fn place(&self, id: ShownId) -> Option<usize> {
        let place = self.places[id.0 as usize];
        (place != NOWHERE).then_some(place as usize)
    }
}

/// Values by unit: a callsite or a group of callsites.
#[derive(Debug)]
pub(super) struct Units {
    /// Turnover from the first dump to the last.
    pub whole: Vec<Turnover>,
    /// Turnover from the first dump to the middle one, and from there to the last; empty for fewer
    /// than two iterations.
    halves: [Vec<Turnover>; 2],
    /// Iterations in each half.
    pub rounds: [u32; 2],
    /// Whether the unit certainly grew in each iteration.
    pub in_every_iteration: Vec<bool>,
    /// Unreleased in the last dump.
    pub held: Vec<Sampled>,
    /// Allocated from the first dump to the last.
    pub allocated: Vec<Sampled>,
    /// Bytes freed from the first dump to the last.
    pub freed: Vec<i64>,
    /// Number of callsites with any sample in the first or last dump, or in between.
    pub callsites: Vec<u32>,
    /// Unit by callsite; `None` if each callsite is a unit.
    unit_of: Option<Vec<usize>>,
}

/// Values of a dump by callsite.
struct Step {
    counters: Vec<Counters>,
    interval: Interval,
}

impl Step {
    fn of(shown: &Shown<'_>, callsites: &Callsites, (dump, interval): &(&Dump, Interval)) -> Step {
        let mut counters = vec![Counters::default(); callsites.ids.len()];
        let column = |view| dump.column(view);
        let (space, objects) = (column(View::Space), column(View::Objects));
        let (alloc_space, alloc_objects) = (column(View::AllocSpace), column(View::AllocObjects));
        for (at, node) in dump.values.nodes.iter().enumerate() {
            let target = shown.target(*node).and_then(|id| callsites.place(id));
            let Some(target) = target else {
                continue;
            };
            // Without counts, each hit can be a separate sample, which gives the widest error.
            let by_bytes = |bytes: i64| bytes / i64::try_from(interval.bytes()).unwrap_or(i64::MAX);
            let of = |column: Option<&[i64]>, or: i64| column.map_or(or, |column| column[at]);
            let space = of(space, 0);
            let alloc_space = of(alloc_space, space);
            let here = &mut counters[target];
            *here = here.plus(Counters {
                space,
                objects: of(objects, by_bytes(space)),
                alloc_space,
                alloc_objects: of(alloc_objects, by_bytes(alloc_space)),
                small: None,
            });
        }
        Step {
            counters,
            interval: *interval,
        }
    }
}

impl Units {
    /// Reads the dumps of a heap. `groups` contains the unit of each callsite and the number of
    /// units.
    pub fn of(
        shown: &Shown<'_>,
        callsites: &Callsites,
        heap: &HeapSeries<'_>,
        groups: Option<(&[usize], usize)>,
    ) -> Units {
        let count = groups.map_or(callsites.ids.len(), |(_, count)| count);
        let interval = heap
            .dumps
            .iter()
            .map(|(_, interval)| *interval)
            .reduce(Interval::wider)
            .expect("a series has dumps");
        let nothing = vec![Turnover::nothing(interval); count];
        let none = vec![Sampled::nothing(interval); count];
        let rounds = heap.dumps.len() - 1;
        let middle = rounds / 2;
        let mut units = Units {
            whole: Vec::new(),
            halves: [Vec::new(), Vec::new()],
            rounds: [middle as u32, (rounds - middle) as u32],
            in_every_iteration: vec![rounds > 0; count],
            held: none.clone(),
            allocated: none,
            freed: vec![0; count],
            callsites: vec![0; count],
            unit_of: groups.map(|(unit_of, _)| unit_of.to_vec()),
        };
        let between = |units: &Units, before: &Step, after: &Step| {
            let mut sums = nothing.clone();
            let pairs = before.counters.iter().zip(&after.counters);
            for (at, (old, new)) in pairs.enumerate() {
                if *old == Counters::default() && *new == Counters::default() {
                    continue;
                }
                let turnover = if heap.paired {
                    Turnover::paired(old, new, before.interval.wider(after.interval))
                } else {
                    Turnover::independent(old.held(before.interval), new.held(after.interval))
                };
                let sum = &mut sums[units.unit(at)];
                *sum = sum.plus(turnover);
            }
            sums
        };
        let mut steps = heap
            .dumps
            .iter()
            .map(|dump| Step::of(shown, callsites, dump));
        let first = steps.next().expect("a series has dumps");
        let mut half: Option<Step> = None;
        let mut used: Vec<bool> = first.counters.iter().map(is_used).collect();
        let mut last: Option<Step> = None;
        for (at, step) in steps.enumerate() {
            for (used, counters) in used.iter_mut().zip(&step.counters) {
                *used |= is_used(counters);
            }
            let before = last.take();
            // In very long series, hardly any unit grows in each and every iteration.
            if rounds <= MOST_ROUNDS {
                let round = between(&units, before.as_ref().unwrap_or(&first), &step);
                for (all, round) in units.in_every_iteration.iter_mut().zip(&round) {
                    *all = *all && round.net() > 0 && round.limits(Z95).0 > 0.0;
                }
            }
            if let Some(before) = before
                && at == middle
            {
                half = Some(before);
            }
            last = Some(step);
        }
        if rounds > MOST_ROUNDS {
            units.in_every_iteration = vec![false; count];
        }
        let last = last.as_ref().unwrap_or(&first);
        units.whole = between(&units, &first, last);
        if let Some(half) = &half {
            units.halves = [between(&units, &first, half), between(&units, half, last)];
        }
        for (at, used) in used.into_iter().enumerate() {
            if used {
                let unit = units.unit(at);
                units.callsites[unit] += 1;
                units.add(unit, &first, last, at, heap.paired);
            }
        }
        units
    }

    fn add(&mut self, unit: usize, first: &Step, last: &Step, at: usize, paired: bool) {
        let after = &last.counters[at];
        self.held[unit] = self.held[unit].plus(after.held(last.interval));
        let since = match paired {
            true => first.counters[at],
            false => Counters::default(),
        };
        let allocated = Counters {
            alloc_space: after.alloc_space.saturating_sub(since.alloc_space).max(0),
            alloc_objects: after
                .alloc_objects
                .saturating_sub(since.alloc_objects)
                .max(0),
            ..Counters::default()
        };
        self.allocated[unit] = self.allocated[unit].plus(allocated.allocated(last.interval));
        let freed = after.freed().saturating_sub(since.freed()).max(0);
        self.freed[unit] = self.freed[unit].saturating_add(freed);
    }

    /// Returns whether a unit replaces its allocations.
    pub fn turns_over(&self, unit: usize) -> bool {
        turns_over(&self.whole[unit], &self.allocated[unit], self.freed[unit])
    }

    /// Returns the halves of a unit.
    pub fn halves(&self, unit: usize) -> Option<[Turnover; 2]> {
        let [first, second] = &self.halves;
        Some([*first.get(unit)?, *second.get(unit)?])
    }

    fn unit(&self, callsite: usize) -> usize {
        self.unit_of.as_ref().map_or(callsite, |of| of[callsite])
    }

    /// Returns the unreleased bytes of the selected units in each dump.
    pub fn held_of(
        &self,
        shown: &Shown<'_>,
        callsites: &Callsites,
        heap: &HeapSeries<'_>,
        wanted: &[usize],
    ) -> HeldBytes {
        let mut held = HeldBytes {
            places: vec![NOWHERE; self.whole.len()],
            dumps: heap.dumps.len(),
            bytes: vec![0; wanted.len() * heap.dumps.len()],
        };
        if wanted.is_empty() {
            return held;
        }
        for (place, unit) in (0..).zip(wanted) {
            held.places[*unit] = place;
        }
        for (at, (dump, _)) in heap.dumps.iter().enumerate() {
            let space = dump.column(View::Space).unwrap_or(&[]);
            for (node, bytes) in dump.values.nodes.iter().zip(space) {
                let target = shown.target(*node).and_then(|id| callsites.place(id));
                let place = target.map_or(NOWHERE, |target| held.places[self.unit(target)]);
                if place != NOWHERE {
                    let sum = &mut held.bytes[place as usize * held.dumps + at];
                    *sum = sum.saturating_add(*bytes);
                }
            }
        }
        held
    }
}

/// Unreleased bytes of some units in each dump.
pub(super) struct HeldBytes {
    /// Index of the unit's `bytes`; [`NOWHERE`] for units that are not selected.
    places: Vec<u32>,
    dumps: usize,
    /// Bytes by index, then by dump.
    bytes: Vec<i64>,
}

impl HeldBytes {
    /// Returns the bytes of a unit in each dump.
    ///
    /// # Panics
    /// Panics if the unit is not selected.
    pub fn of(&self, unit: usize) -> &[i64] {
        let start = self.places[unit] as usize * self.dumps;
        &self.bytes[start..start + self.dumps]
    }
}

/// Maximum number of iterations for the test of each iteration; a longer series is judged by its
/// halves only.
const MOST_ROUNDS: usize = 200;

fn is_used(counters: &Counters) -> bool {
    *counters != Counters::default()
}
