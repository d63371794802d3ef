//! Tests and verdicts of all callsites and lines.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use super::callsites::CallsiteId;
use super::evidence::{Figures, HeldBytes, Level, Units, WORTH_THREADS};
use super::series::HeapSeries;
use super::site::{Judgement, Site, Unit, churned};
use super::{Growth, Total};
use crate::native::groups::GroupId;
use crate::sampling::plan;
use crate::sampling::poisson::Z95_ONE_SIDED;
use crate::sampling::verdict::{
    Course, Evidence, FALSE_DISCOVERIES, InconclusiveReason, MIN_HITS_TO_TEST, Terms, Verdict,
    benjamini_hochberg, judge, steady,
};
use crate::sampling::{Sampled, Turnover, growth};
use heaptap_base::parallel;

/// Test results for the units of a level.
pub(super) struct Tested {
    /// Whether it certainly grew.
    significant: Vec<bool>,
    /// Whether it rises steadily.
    steady: Vec<bool>,
}

impl Growth<'_> {
    /// Tests all units of a level and heap together.
    pub(super) fn test(&mut self, heaps: &[HeapSeries<'_>]) -> Vec<[Tested; 2]> {
        let mut p_values = Vec::new();
        let mut places = Vec::new();
        let mut all: Vec<[Tested; 2]> = Vec::new();
        for (heap, series) in heaps.iter().enumerate() {
            let mut steps = [Vec::new(), Vec::new()];
            let tested = [Level::Callsites, Level::Lines].map(|level| {
                let units = &self.units[heap];
                let testable = testable(units, level);
                p_values.extend(testable.iter().map(|(_, p)| *p));
                places.extend(testable.iter().map(|(unit, _)| (heap, level, *unit)));
                let wanted: Vec<u32> = testable.into_iter().map(|(unit, _)| unit).collect();
                let unit_of = |callsite: usize| match level {
                    Level::Callsites => callsite,
                    Level::Lines => self.line_of[callsite] as usize,
                };
                let unit_of = (unit_of, units.len(level));
                let held = HeldBytes::new(&self.callsites, series, &wanted, unit_of);
                let course = |at: usize| Course {
                    trend: growth::trend(&thinned(held.at(at))),
                    turns_over: units.turns_over(level, wanted[at] as usize),
                };
                let courses =
                    parallel::filter_map(wanted.len(), WORTH_THREADS, |at| Some(course(at)));
                let rises = steady(&courses, self.rounds[heap]);
                let mut tested = Tested {
                    significant: vec![false; units.len(level)],
                    steady: vec![false; units.len(level)],
                };
                for (at, (unit, rises)) in wanted.iter().zip(rises).enumerate() {
                    tested.steady[*unit as usize] = rises;
                    let step = step_of(held.at(at));
                    steps[level as usize].extend(step.map(|step| (*unit, step)));
                }
                tested
            });
            self.steps.push(steps);
            all.push(tested);
        }
        self.tested = p_values.len() as u64;
        let rejected = benjamini_hochberg(&p_values, FALSE_DISCOVERIES);
        for (rejected, (heap, level, unit)) in rejected.into_iter().zip(places) {
            all[heap][level as usize].significant[unit as usize] = rejected;
        }
        all
    }

    /// Judges a heap.
    pub(super) fn judge(&mut self, heap: usize, series: &HeapSeries<'_>, tested: &[Tested; 2]) {
        let units = &self.units[heap];
        let terms = Terms {
            tolerance: self.rule.tolerance * self.iterations(heap),
            incomplete: series.incomplete,
        };
        let spans = spans_of(series);
        let verdict = |level: Level, unit: usize, figures: &Figures| {
            let tested = &tested[level as usize];
            let significant = tested.significant[unit];
            let evidence = Evidence {
                whole: figures.whole,
                halves: significant.then(|| units.halves(level, unit)).flatten(),
                rounds: units.rounds,
                spans,
                in_every_iteration: figures.in_every_iteration,
                steady: tested.steady[unit],
                significant,
            };
            let is_lost = level == Level::Callsites && self.lost == Some(unit);
            match judge(&evidence, &terms) {
                verdict if is_lost && verdict.is_suspect() => {
                    Verdict::CantTell(InconclusiveReason::Incomplete)
                }
                verdict => verdict,
            }
        };
        // Index of the callsite, and its verdict.
        let callsite = |at: usize| {
            let figures = units.figures(Level::Callsites, at);
            let grown = figures.whole.estimate();
            let judgement = Judgement {
                heap: heap as u32,
                unit: Unit::Callsite(CallsiteId(at as u32)),
                verdict: verdict(Level::Callsites, at, &figures),
                grown: grown.value,
                low: grown.low,
                churned: churned(&figures.allocated, figures.freed),
            };
            (figures.callsites > 0).then_some((at, judgement))
        };
        let callsites = parallel::ranges(units.len(Level::Callsites), WORTH_THREADS, |range| {
            range.filter_map(callsite).collect::<Vec<_>>()
        });
        let callsites = || callsites.iter().flatten();
        // Growing callsites by line.
        let mut growing: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, _) in callsites().filter(|(_, of)| of.verdict.grows()) {
            growing.entry(self.line_of[*at]).or_default().push(*at);
        }
        // Rows of lines, and whether each is the whole line.
        let mut rows: HashMap<u32, (Site, bool)> = HashMap::new();
        // A line without app code cannot be named.
        for line in 0..self.owners.len() {
            let figures = units.figures(Level::Lines, line);
            let verdict = match tested[Level::Lines as usize].significant[line] {
                true => verdict(Level::Lines, line, &figures),
                false => continue,
            };
            if !verdict.grows() {
                continue;
            }
            let whole = Site {
                verdict,
                ..self.unjudged(heap, Level::Lines, line)
            };
            let line = line as u32;
            let row = match growing.get(&line).map_or(&[][..], Vec::as_slice) {
                [] => (whole, true),
                // It has a row of its own.
                [_] => continue,
                growing => (self.sum(whole, growing), false),
            };
            rows.insert(line, row);
        }
        let stays = |(at, of): &&(usize, Judgement)| match rows.get(&self.line_of[*at]) {
            None => true,
            // A callsite that frees what it allocates is not what makes its line grow.
            Some((_, true)) => of.churned > 0,
            Some((_, false)) => !of.verdict.grows(),
        };
        let staying = callsites().filter(stays).map(|(_, judgement)| *judgement);
        self.judgements.extend(staying);
        let (whole, held) = units.total();
        let interval = units.nothing.kept().interval();
        let grown = whole.estimate();
        self.totals.push(Total {
            grown,
            held,
            rate: self.per_iteration(heap, &grown),
            detectable: plan::minimal_detectable(interval, self.iterations(heap), 0.0, self.tested),
        });
        for (row, _) in rows.into_values() {
            self.judgements.push(Judgement {
                heap: heap as u32,
                unit: row.unit,
                verdict: row.verdict,
                grown: row.grown.value,
                low: row.grown.low,
                churned: 0,
            });
            self.lines.insert((heap, row.unit), row);
        }
    }

    /// Returns the row of a line with its growing callsites only: its other callsites have verdicts
    /// of their own.
    fn sum(&self, line: Site, growing: &[usize]) -> Site {
        let nothing = Site {
            callsites: 0,
            held: Sampled::nothing(line.held.interval()),
            allocated: Sampled::nothing(line.allocated.interval()),
            freed: 0,
            turnover: Turnover::nothing(line.turnover.kept().interval()),
            ..line
        };
        let units = &self.units[line.heap];
        let sites = growing
            .iter()
            .map(|at| units.figures(Level::Callsites, *at));
        let sum = sites.fold(nothing, |sum, site| Site {
            callsites: sum.callsites + site.callsites,
            held: sum.held.plus(site.held),
            allocated: sum.allocated.plus(site.allocated),
            freed: sum.freed.saturating_add(site.freed),
            turnover: sum.turnover.plus(site.whole),
            ..sum
        });
        let tolerance = self.rule.tolerance * self.iterations(line.heap);
        let grown = sum.turnover.estimate();
        Site {
            grown,
            rate: self.per_iteration(line.heap, &grown),
            verdict: Verdict::Grows {
                below_tolerance: sum.turnover.upper_limit(Z95_ONE_SIDED) <= tolerance,
            },
            ..sum
        }
    }

    /// Returns the row of a unit whose verdict the caller knows.
    pub(super) fn unjudged(&self, heap: usize, level: Level, unit: usize) -> Site {
        let figures = self.units[heap].figures(level, unit);
        let grown = figures.whole.estimate();
        let steps = &self.steps[heap][level as usize];
        let step = steps.binary_search_by_key(&(unit as u32), |(unit, _)| *unit);
        Site {
            heap,
            unit: match level {
                Level::Callsites => Unit::Callsite(CallsiteId(unit as u32)),
                Level::Lines => Unit::Line(GroupId(unit as u32)),
            },
            callsites: figures.callsites,
            grown,
            rate: self.per_iteration(heap, &grown),
            verdict: Verdict::WithinNoise,
            held: figures.held,
            allocated: figures.allocated,
            freed: figures.freed,
            in_every_iteration: figures.in_every_iteration,
            step: step.ok().map(|at| steps[at].1),
            turnover: figures.whole,
        }
    }
}

/// Returns the units with enough samples for a test, and the probability of their growth by chance.
fn testable(units: &Units, level: Level) -> Vec<(u32, f64)> {
    // A line of one callsite has been tested as that callsite.
    let least = match level {
        Level::Callsites => 1,
        Level::Lines => 2,
    };
    let test = |unit: usize| {
        if units.callsites(level, unit) < least {
            return None;
        }
        let whole = units.whole(level, unit);
        let is_testable = whole.hits() >= MIN_HITS_TO_TEST || whole.is_exact();
        is_testable.then(|| (unit as u32, whole.sign_test()))
    };
    parallel::filter_map(units.len(level), WORTH_THREADS, test)
}

/// Maximum number of dumps for the trend test, which compares each with each.
const MAX_FOR_TREND: usize = 500;

fn thinned(values: &[i64]) -> Cow<'_, [i64]> {
    match values.len().div_ceil(MAX_FOR_TREND) {
        0 | 1 => Cow::Borrowed(values),
        every => values.iter().copied().step_by(every).collect(),
    }
}

/// Returns the iteration with at least nine tenths of all growth, if there are at least two
/// iterations.
fn step_of(held: &[i64]) -> Option<u32> {
    if held.len() < 3 {
        return None;
    }
    let grown = held.last()?.saturating_sub(*held.first()?);
    let (round, most) = held
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]))
        .enumerate()
        .max_by_key(|(at, by)| (*by, Reverse(*at)))?;
    (grown > 0 && most as f64 >= 0.9 * grown as f64).then_some(round as u32)
}

/// Returns the duration of each half of a series, if its dumps have timestamps.
fn spans_of(heap: &HeapSeries<'_>) -> Option<[f64; 2]> {
    let time = |at: usize| Some(heap.dumps.get(at)?.0.facts.time_ns? as f64);
    let last = heap.dumps.len().checked_sub(1)?;
    let (first, middle, last) = (time(0)?, time(last / 2)?, time(last)?);
    Some([middle - first, last - middle])
}
