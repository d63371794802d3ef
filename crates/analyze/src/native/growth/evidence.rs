//! Values of each callsite and line over the dumps of a heap. Holds at most four dumps at a
//! time, regardless of the length of the series.

use super::callsites::{Callsites, NOWHERE};
use super::series::HeapSeries;
use crate::sampling::poisson::Z95;
use crate::sampling::verdict::turns_over;
use crate::sampling::{Counters, Interval, Sampled, Turnover};
use heaptap_base::parallel;
use heaptap_base::prefetch::zeros;
use heaptap_model::stacks::{Dump, View};
use std::sync::atomic::{AtomicBool, Ordering};

/// Kind of the units of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    /// Each callsite is a unit.
    Callsites,
    /// All callsites with one line of app code are a unit.
    Lines,
}

/// Figures of a unit over the dumps of a heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    /// Turnover from the first dump to the last.
    pub whole: Turnover,
    /// Whether the unit certainly grew in each iteration.
    pub in_every_iteration: bool,
    /// Unreleased in the last dump.
    pub held: Sampled,
    /// Allocated from the first dump to the last.
    pub allocated: Sampled,
    /// Bytes freed from the first dump to the last.
    pub freed: i64,
    /// Number of callsites with any sample in any dump.
    pub callsites: u32,
}

impl Figures {
    fn add(&mut self, other: &Figures) {
        self.whole = self.whole.plus(other.whole);
        self.held = self.held.plus(other.held);
        self.allocated = self.allocated.plus(other.allocated);
        self.freed = self.freed.saturating_add(other.freed);
        self.callsites += other.callsites;
    }
}

/// Counters of a dump by callsite: unreleased bytes and samples, allocated bytes and samples.
#[derive(Debug)]
struct Step {
    rows: Vec<[i64; 4]>,
    interval: Interval,
}

const NO_SAMPLES: [i64; 4] = [0; 4];

impl Step {
    fn new(callsites: &Callsites, (dump, interval): &(&Dump, Interval)) -> Step {
        let mut rows: Vec<[i64; 4]> = zeros(callsites.len());
        let column = |view| dump.column(view);
        let (space, objects) = (column(View::Space), column(View::Objects));
        let (alloc_space, alloc_objects) = (column(View::AllocSpace), column(View::AllocObjects));
        // Without counts, each hit can be a separate sample, which gives the widest error.
        let hit = i64::try_from(interval.bytes()).unwrap_or(i64::MAX);
        for (at, node) in dump.values.nodes.iter().enumerate() {
            let Some(target) = callsites.place(*node) else {
                continue;
            };
            let of = |column: Option<&[i64]>, or: i64| column.map_or(or, |column| column[at]);
            let space = of(space, 0);
            let alloc_space = of(alloc_space, space);
            let row = [
                space,
                of(objects, space / hit),
                alloc_space,
                of(alloc_objects, alloc_space / hit),
            ];
            for (sum, value) in rows[target].iter_mut().zip(row) {
                *sum = sum.saturating_add(value);
            }
        }
        Step {
            rows,
            interval: *interval,
        }
    }

    fn counters(&self, callsite: usize) -> Counters {
        let [space, objects, alloc_space, alloc_objects] = self.rows[callsite];
        Counters {
            space,
            objects,
            alloc_space,
            alloc_objects,
            small: None,
        }
    }

    /// Returns the turnover of a callsite from an earlier dump to this one.
    fn since(&self, before: &Step, callsite: usize, paired: bool) -> Turnover {
        let (old, new) = (before.counters(callsite), self.counters(callsite));
        match paired {
            true => Turnover::paired(&old, &new, before.interval.wider(self.interval)),
            false => Turnover::independent(old.held(before.interval), new.held(self.interval)),
        }
    }
}

/// Values of a heap by unit. Of callsites, which can be millions, only the counters are stored.
#[derive(Debug)]
pub(super) struct Units {
    first: Step,
    /// `None` for fewer than two iterations.
    middle: Option<Step>,
    last: Step,
    /// Whether the dumps are of one recording.
    paired: bool,
    /// No turnover, at the most conservative interval of all dumps.
    pub nothing: Turnover,
    /// Iterations in each half.
    pub rounds: [u32; 2],
    /// Whether the callsite has any sample in any dump.
    used: Vec<bool>,
    /// Whether the callsite certainly grew in each iteration.
    in_every_iteration: Vec<bool>,
    lines: Vec<Line>,
}

/// Figures of a line, and the turnover in each half of the series.
#[derive(Debug, Clone)]
struct Line {
    figures: Figures,
    halves: Option<[Turnover; 2]>,
}

impl Units {
    /// Reads the dumps of a heap. `line_of` contains the line of each callsite, less than `lines`.
    pub fn new(
        callsites: &Callsites,
        heap: &HeapSeries<'_>,
        line_of: &[u32],
        lines: usize,
    ) -> Units {
        let intervals = heap.dumps.iter().map(|(_, interval)| *interval);
        let interval = intervals.reduce(Interval::wider);
        let nothing = Turnover::nothing(interval.expect("a series has dumps"));
        let rounds = heap.dumps.len() - 1;
        let middle = rounds / 2;
        // In very long series, hardly any unit grows in each and every iteration.
        let tests_rounds = rounds <= MAX_ROUNDS;
        let grew = std::iter::repeat_with(|| AtomicBool::new(tests_rounds));
        let grew: Vec<AtomicBool> = grew.take(line_of.len()).collect();
        let mut lines_grew = vec![tests_rounds; lines];
        let mut steps = heap.dumps.iter().map(|dump| Step::new(callsites, dump));
        let first = steps.next().expect("a series has dumps");
        let mut used = vec![false; line_of.len()];
        mark_used(&mut used, &first);
        let (mut half, mut last) = (None, None);
        for (at, step) in steps.enumerate() {
            mark_used(&mut used, &step);
            let before = last.take();
            if tests_rounds {
                let before = before.as_ref().unwrap_or(&first);
                let turnover = |at: usize| match (before.rows[at], step.rows[at]) {
                    (NO_SAMPLES, NO_SAMPLES) => None,
                    _ => Some(nothing.plus(step.since(before, at, heap.paired))),
                };
                // A callsite has one line, so one thread.
                let lines_grow = by_line(line_of, lines, nothing, |sum: &mut Turnover, at| {
                    let (grew, line_grew) = (&grew[at], lines_grew[line_of[at] as usize]);
                    let is_open = grew.load(Ordering::Relaxed);
                    if !is_open && !line_grew {
                        return;
                    }
                    let turnover = turnover(at);
                    if is_open {
                        let grows = turnover.as_ref().is_some_and(grew_surely);
                        grew.store(grows, Ordering::Relaxed);
                    }
                    if let Some(turnover) = turnover.filter(|_| line_grew) {
                        *sum = sum.plus(turnover);
                    }
                });
                lines_grew = lines_grow.iter().map(grew_surely).collect();
            }
            if at == middle {
                half = before;
            }
            last = Some(step);
        }
        let mut units = Units {
            first,
            middle: half,
            last: last.expect("a series has at least two dumps"),
            paired: heap.paired,
            nothing,
            rounds: [middle as u32, (rounds - middle) as u32],
            used,
            in_every_iteration: grew.into_iter().map(AtomicBool::into_inner).collect(),
            lines: Vec::new(),
        };
        let none = Line {
            figures: units.no_figures(),
            halves: units.middle.as_ref().map(|_| [nothing; 2]),
        };
        units.lines = by_line(line_of, lines, none, |sum: &mut Line, at| {
            if units.used[at] {
                sum.figures.add(&units.figures(Level::Callsites, at));
                let halves = sum.halves.zip(units.halves(Level::Callsites, at));
                sum.halves = halves.map(|([a, b], [c, d])| [a.plus(c), b.plus(d)]);
            }
        });
        for (line, grew) in units.lines.iter_mut().zip(lines_grew) {
            line.figures.in_every_iteration = grew;
        }
        units
    }

    fn no_figures(&self) -> Figures {
        Figures {
            whole: self.nothing,
            in_every_iteration: false,
            held: self.nothing.kept(),
            allocated: self.nothing.kept(),
            freed: 0,
            callsites: 0,
        }
    }

    /// Returns the number of units of a level.
    pub fn len(&self, level: Level) -> usize {
        match level {
            Level::Callsites => self.used.len(),
            Level::Lines => self.lines.len(),
        }
    }

    /// Returns the number of a unit's callsites with any sample in any dump.
    pub fn callsites(&self, level: Level, unit: usize) -> u32 {
        match level {
            Level::Callsites => u32::from(self.used[unit]),
            Level::Lines => self.lines[unit].figures.callsites,
        }
    }

    /// Returns the turnover of a unit from the first dump to the last.
    pub fn whole(&self, level: Level, unit: usize) -> Turnover {
        match level {
            Level::Callsites => self.between(&self.first, &self.last, unit),
            Level::Lines => self.lines[unit].figures.whole,
        }
    }

    /// Returns the [`Evidence::halves`] of a unit.
    ///
    /// [`Evidence::halves`]: crate::sampling::verdict::Evidence::halves
    pub fn halves(&self, level: Level, unit: usize) -> Option<[Turnover; 2]> {
        if level == Level::Lines {
            return self.lines[unit].halves;
        }
        let middle = self.middle.as_ref()?;
        let first = self.between(&self.first, middle, unit);
        Some([first, self.between(middle, &self.last, unit)])
    }

    /// Returns whether a unit replaces its allocations.
    pub fn turns_over(&self, level: Level, unit: usize) -> bool {
        let figures = self.figures(level, unit);
        turns_over(&figures.whole, &figures.allocated, figures.freed)
    }

    pub fn figures(&self, level: Level, unit: usize) -> Figures {
        if level == Level::Lines {
            return self.lines[unit].figures;
        }
        let after = self.last.counters(unit);
        let since = match self.paired {
            true => self.first.counters(unit),
            false => Counters::default(),
        };
        let grown = |after: i64, before: i64| after.saturating_sub(before).max(0);
        let allocated = Counters {
            alloc_space: grown(after.alloc_space, since.alloc_space),
            alloc_objects: grown(after.alloc_objects, since.alloc_objects),
            ..Counters::default()
        };
        let nothing = self.nothing.kept();
        Figures {
            whole: self.whole(level, unit),
            in_every_iteration: self.in_every_iteration[unit],
            held: nothing.plus(after.held(self.last.interval)),
            allocated: nothing.plus(allocated.allocated(self.last.interval)),
            freed: grown(after.freed(), since.freed()),
            callsites: self.callsites(level, unit),
        }
    }

    fn between(&self, before: &Step, after: &Step, callsite: usize) -> Turnover {
        let turnover = after.since(before, callsite, self.paired);
        self.nothing.plus(turnover)
    }

    /// Returns the growth of the whole heap, and its unreleased bytes in the last dump.
    pub fn total(&self) -> (Turnover, i64) {
        // Each callsite with samples is part of a line.
        let all = self.lines.iter().map(|line| line.figures.whole);
        let held = self.last.rows.iter().map(|row| row[0]);
        (
            all.fold(self.nothing, Turnover::plus),
            held.fold(0, i64::saturating_add),
        )
    }
}

fn mark_used(used: &mut [bool], step: &Step) {
    for (used, row) in used.iter_mut().zip(&step.rows) {
        *used |= *row != NO_SAMPLES;
    }
}

fn grew_surely(turnover: &Turnover) -> bool {
    turnover.net() > 0 && turnover.lower_limit(Z95) > 0.0
}

/// Sums over the callsites of each line, in their order. Each thread sums its own lines.
fn by_line<T: Clone + Send + Sync>(
    line_of: &[u32],
    lines: usize,
    nothing: T,
    add: impl Fn(&mut T, usize) + Sync,
) -> Vec<T> {
    let worth = match line_of.len() {
        0..WORTH_THREADS => usize::MAX,
        _ => 0,
    };
    let parts = parallel::ranges(lines, worth, |range| {
        let mut sums = vec![nothing.clone(); range.len()];
        for (at, line) in line_of.iter().enumerate() {
            let line = *line as usize;
            if range.contains(&line) {
                add(&mut sums[line - range.start], at);
            }
        }
        sums
    });
    parts.concat()
}

/// Unreleased bytes of some units in each dump.
pub(super) struct HeldBytes {
    dumps: usize,
    /// Bytes by index of the unit, then by dump.
    bytes: Vec<i64>,
}

impl HeldBytes {
    /// Reads the dumps of a heap. `unit_of` contains the unit of each callsite, less than `units`.
    pub fn new(
        callsites: &Callsites,
        heap: &HeapSeries<'_>,
        wanted: &[u32],
        (unit_of, units): (impl Fn(usize) -> usize, usize),
    ) -> HeldBytes {
        let mut held = HeldBytes {
            dumps: heap.dumps.len(),
            bytes: zeros(wanted.len() * heap.dumps.len()),
        };
        if wanted.is_empty() {
            return held;
        }
        let mut places = vec![NOWHERE; units];
        for (place, unit) in (0..).zip(wanted) {
            places[*unit as usize] = place;
        }
        for (at, (dump, _)) in heap.dumps.iter().enumerate() {
            let space = dump.column(View::Space).unwrap_or(&[]);
            for (node, bytes) in dump.values.nodes.iter().zip(space) {
                let target = callsites.place(*node);
                let place = target.map_or(NOWHERE, |target| places[unit_of(target)]);
                if place != NOWHERE {
                    let sum = &mut held.bytes[place as usize * held.dumps + at];
                    *sum = sum.saturating_add(*bytes);
                }
            }
        }
        held
    }

    /// Returns the bytes in each dump of the unit at that index of the selected ones.
    pub fn at(&self, index: usize) -> &[i64] {
        &self.bytes[index * self.dumps..][..self.dumps]
    }
}

/// Maximum number of iterations for the test of each iteration; a longer series is judged by its
/// halves only.
const MAX_ROUNDS: usize = 200;

/// Number of callsites below which one thread is faster than two.
pub(super) const WORTH_THREADS: usize = if cfg!(test) { 4 } else { 100_000 };
