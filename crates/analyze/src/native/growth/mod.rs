//! Growth over a series of dumps of one process: for each callsite its growth per iteration with
//! the sampling error, and a verdict. Computes the inputs of `sampling` from dumps and sorts the
//! results.
//!
//! Callsites are those that pass a filter: without allocators, so `malloc` and `operator new` below
//! one caller are one callsite. Leaks with many callsites of few samples each are searched a second
//! time by line of app code. Both are partitions of the heap and are tested together.

mod evidence;
pub mod series;

use std::cmp::Reverse;
use std::collections::HashMap;

use self::evidence::{Callsites, Units};
use super::filter::Filter;
use super::groups::{GroupId, Groups, RowKey};
use super::own::own_frames;
use super::shown::{Shown, ShownId};
use crate::sampling::plan::{self, Decider};
use crate::sampling::poisson::Z95_ONE_SIDED;
use crate::sampling::verdict::{
    Course, Evidence, FALSE_DISCOVERIES, InconclusiveReason, MIN_HITS_TO_TEST, Terms, Verdict,
    benjamini_hochberg, judge, steady,
};
use crate::sampling::{Estimate, Interval, Rate, Sampled, Turnover, growth};
use heaptap_model::stacks::{Dump, FrameId, StackTable};

/// Dumps of one heap to compare, oldest first; at least two.
#[derive(Debug, Clone)]
pub struct HeapSeries<'a> {
    /// Dumps with their intervals. They share a table.
    pub dumps: Vec<(&'a Dump, Interval)>,
    /// Whether they are from one recording of one process, so survivors cancel.
    pub paired: bool,
    /// Whether later dumps were omitted because of missing data.
    pub incomplete: bool,
}

/// Rule for growth.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Iterations between two dumps.
    pub iterations: f64,
    /// Acceptable growth in bytes per iteration.
    pub tolerance: f64,
}

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Callsite as it is shown.
    Callsite(ShownId),
    /// Line of app code below which several callsites allocate: by recursion, or by several paths
    /// to the allocation.
    Line(GroupId),
}

/// Callsite or line over the series.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// Index of its heap.
    pub heap: usize,
    pub unit: Unit,
    /// Number of its callsites with any sample.
    pub callsites: u32,
    /// Growth of unreleased bytes from the first dump to the last.
    pub grown: Estimate,
    /// Growth per iteration.
    pub rate: Rate,
    pub verdict: Verdict,
    /// Unreleased bytes in the last dump.
    pub held: Sampled,
    /// Bytes allocated from the first dump to the last.
    pub allocated: Sampled,
    /// Sampled bytes freed in the same time.
    pub freed: i64,
    /// Whether it certainly grew in each iteration.
    pub in_every_iteration: bool,
    /// Iteration with nearly all of the growth, from 0.
    pub step: Option<u32>,
    turnover: Turnover,
}

impl Site {
    /// Returns the sampled bytes freed in the series divided by those allocated in it. The result
    /// exceeds 1 if earlier allocations were freed too. `None` if nothing was allocated.
    pub fn freed_share(&self) -> Option<f64> {
        let allocated = self.allocated.bytes();
        (allocated > 0).then(|| self.freed.max(0) as f64 / allocated as f64)
    }

    /// Returns whether it certainly leaks.
    pub fn grows(&self) -> bool {
        matches!(self.verdict, Verdict::Grows { .. })
    }

    /// Returns whether it frees nearly everything that it allocates.
    pub fn churns(&self) -> bool {
        self.allocated.hits() >= CHURN_HITS
            && self.freed_share().is_some_and(|share| share >= CHURN_FREED)
    }

    /// Returns whether it certainly grew although the verdict is inconclusive.
    pub fn is_suspect(&self) -> bool {
        match self.verdict {
            Verdict::Grows { .. } => true,
            Verdict::WithinNoise => false,
            Verdict::CantTell(reason) => match reason {
                InconclusiveReason::OneStep
                | InconclusiveReason::Slowing
                | InconclusiveReason::Unsteady
                | InconclusiveReason::TooFewRounds => true,
                InconclusiveReason::TooFewSamples | InconclusiveReason::Incomplete => false,
            },
        }
    }
}

/// Minimum number of sampled hits for a meaningful freed share.
const CHURN_HITS: f64 = 16.0;
/// Minimum freed share for a churning site.
const CHURN_FREED: f64 = 0.9;

/// Results for the series.
#[derive(Debug)]
pub struct Growth<'a> {
    shown: Shown<'a>,
    owners: Groups<'a>,
    /// Frame of app code, by callsite of the tree.
    own: Vec<Option<FrameId>>,
    /// All callsites with any sample. A line of app code replaces several of its callsites that
    /// grow or, if it only grows as a whole, all that do not churn. Order: growing sites by
    /// certainty of growth, then suspects, then the rest.
    pub sites: Vec<Site>,
    /// Growth of each heap as a whole.
    pub totals: Vec<Total>,
    /// Number of callsites with enough samples for a test.
    pub tested: u64,
    rule: Rule,
    rounds: Vec<u32>,
}

/// Heap as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    /// Growth of unreleased bytes from the first dump to the last.
    pub grown: Estimate,
    /// Growth per iteration.
    pub rate: Rate,
    /// Sampled unreleased bytes in the last dump.
    pub held: i64,
    /// Smallest leak, in bytes per iteration, that is found with 80% power at a callsite without
    /// replacement.
    pub detectable: f64,
}

/// Test results for the units of a level.
struct Tested {
    /// Whether it certainly grew.
    significant: Vec<bool>,
    /// Whether it rises steadily.
    steady: Vec<bool>,
    /// Iteration with nearly all of the growth, by unit.
    steps: HashMap<usize, u32>,
}

/// Heap to judge.
struct Judged<'a> {
    heap: usize,
    series: &'a HeapSeries<'a>,
    callsites: &'a Callsites,
    /// Group of the app frame, by callsite.
    by_owner: &'a [usize],
}

impl<'a> Growth<'a> {
    /// Compares the dumps of each heap. Time is dumps times callsites.
    pub fn of(
        table: &'a StackTable,
        heaps: &[HeapSeries<'_>],
        filter: &Filter,
        rule: Rule,
    ) -> Growth<'a> {
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        let values: Vec<_> = dumps.map(|(dump, _)| &dump.values).collect();
        let shown = Shown::of(table, filter, &values);
        let callsites = Callsites::of(&shown, heaps);
        let owners = Groups::of(table, RowKey::Line);
        let own = own_frames(&shown);
        let by_owner: Vec<usize> = callsites
            .ids
            .iter()
            .map(|id| match own[id.at()] {
                Some(frame) => owners.group(frame).0 as usize,
                None => owners.len(),
            })
            .collect();
        let levels: Vec<[Units; 2]> = heaps
            .iter()
            .map(|heap| {
                let groups = Some((by_owner.as_slice(), owners.len() + 1));
                [None, groups].map(|groups| Units::of(&shown, &callsites, heap, groups))
            })
            .collect();
        let mut growth = Growth {
            shown,
            owners,
            own,
            sites: Vec::new(),
            totals: Vec::new(),
            tested: 0,
            rule,
            rounds: heaps.iter().map(rounds_of).collect(),
        };
        let tested = growth.test(heaps, &callsites, &levels);
        for (heap, series) in heaps.iter().enumerate() {
            let judged = Judged {
                heap,
                series,
                callsites: &callsites,
                by_owner: &by_owner,
            };
            growth.judge(&judged, &levels[heap], &tested[heap]);
        }
        growth.sites.sort_by_key(|site| {
            let order = match site.verdict {
                Verdict::Grows { below_tolerance } => usize::from(below_tolerance),
                _ if site.is_suspect() => 2,
                Verdict::CantTell(_) => 3,
                Verdict::WithinNoise => 4,
            };
            (
                order,
                Reverse(site.grown.low),
                Reverse(site.grown.value),
                site.heap,
                site.unit,
            )
        });
        growth
    }

    /// Returns the tree with the callsites of the rows.
    pub fn shown(&self) -> &Shown<'a> {
        &self.shown
    }

    /// Returns the lines of app code of the rows.
    pub fn owners(&self) -> &Groups<'a> {
        &self.owners
    }

    /// Returns the frame of app code of a callsite ([`own_frames`]).
    pub fn own_frame(&self, id: ShownId) -> Option<FrameId> {
        self.own[id.at()]
    }

    /// Returns the iterations of a heap's series.
    pub fn iterations(&self, heap: usize) -> f64 {
        f64::from(self.rounds[heap]) * self.rule.iterations
    }

    /// Returns the number of iterations and the sampling interval that would decide about a site.
    pub fn decider(&self, site: &Site) -> Decider {
        let rounds = u64::from(self.rounds[site.heap]);
        // Several iterations can lie between two dumps.
        let iterations = |rounds: u64| (rounds as f64 * self.rule.iterations) as u64;
        let kept = site.turnover.kept();
        let interval = kept.interval();
        match site.verdict {
            // No number makes up for missing data.
            Verdict::Grows { .. }
            | Verdict::WithinNoise
            | Verdict::CantTell(InconclusiveReason::Incomplete) => Decider {
                iterations: None,
                interval_bytes: None,
            },
            // Twice the iterations show whether growth continues.
            Verdict::CantTell(
                InconclusiveReason::OneStep
                | InconclusiveReason::Slowing
                | InconclusiveReason::Unsteady
                | InconclusiveReason::TooFewRounds,
            ) => Decider {
                iterations: Some(iterations((2 * rounds).max(MIN_ROUNDS))),
                interval_bytes: None,
            },
            Verdict::CantTell(InconclusiveReason::TooFewSamples) => {
                let churn = kept.bytes().min(site.turnover.released().bytes()).max(0);
                let by_round = self.rule.iterations;
                // Apparent growth, or the tolerance if that is larger.
                let growth = f64::max(self.rule.tolerance, site.rate.value) * by_round;
                let decider = plan::decider(interval, rounds, churn as f64, self.tested, growth);
                Decider {
                    iterations: decider.iterations.map(iterations),
                    ..decider
                }
            }
        }
    }

    /// Returns the sites that free nearly everything they allocate and do not leak, most allocated
    /// bytes first.
    pub fn churn(&self) -> Vec<&Site> {
        let mut churn: Vec<&Site> = self
            .sites
            .iter()
            .filter(|site| matches!(site.unit, Unit::Callsite(_)))
            .filter(|site| site.churns() && !site.grows())
            .collect();
        churn.sort_by_key(|site| (Reverse(site.allocated.bytes()), site.heap, site.unit));
        churn
    }

    /// Tests all units of a level and heap together.
    fn test(
        &mut self,
        heaps: &[HeapSeries<'_>],
        callsites: &Callsites,
        levels: &[[Units; 2]],
    ) -> Vec<[Tested; 2]> {
        let mut p_values = Vec::new();
        let mut places = Vec::new();
        let mut all: Vec<[Tested; 2]> = Vec::new();
        for (heap, units) in levels.iter().enumerate() {
            let tested = [0, 1].map(|level| {
                let units = &units[level];
                // A line of one callsite has been tested as that callsite.
                let least = if level == 0 { 1 } else { 2 };
                let tests = |unit: &usize| {
                    let whole = &units.whole[*unit];
                    units.callsites[*unit] >= least
                        && (whole.hits() >= MIN_HITS_TO_TEST || whole.is_exact())
                };
                let wanted: Vec<usize> = (0..units.whole.len()).filter(tests).collect();
                for &unit in &wanted {
                    p_values.push(units.whole[unit].sign_test());
                    places.push((heap, level, unit));
                }
                let held = units.held_of(&self.shown, callsites, &heaps[heap], &wanted);
                let course = |unit: &usize| Course {
                    trend: growth::trend(&thinned(held.of(*unit))),
                    turns_over: units.turns_over(*unit),
                };
                let courses: Vec<Course> = wanted.iter().map(course).collect();
                let mut tested = Tested {
                    significant: vec![false; units.whole.len()],
                    steady: vec![false; units.whole.len()],
                    steps: HashMap::new(),
                };
                let rises = steady(&courses, self.rounds[heap]);
                for (&unit, rises) in wanted.iter().zip(rises) {
                    tested.steady[unit] = rises;
                    if let Some(step) = step_of(held.of(unit)) {
                        tested.steps.insert(unit, step);
                    }
                }
                tested
            });
            all.push(tested);
        }
        self.tested = p_values.len() as u64;
        let rejected = benjamini_hochberg(&p_values, FALSE_DISCOVERIES);
        for (rejected, (heap, level, unit)) in rejected.into_iter().zip(places) {
            all[heap][level].significant[unit] = rejected;
        }
        all
    }

    fn judge(&mut self, of: &Judged<'_>, levels: &[Units; 2], tested: &[Tested; 2]) {
        let (heap, series) = (of.heap, of.series);
        let sites: Vec<Site> = self.sites_of(of, &levels[0], &tested[0], |unit| {
            Unit::Callsite(of.callsites.ids[unit])
        });
        let lines = self.sites_of(of, &levels[1], &tested[1], |unit| {
            Unit::Line(GroupId(unit as u32))
        });
        // Growing callsites by line.
        let mut growing: HashMap<usize, Vec<Site>> = HashMap::new();
        let owner_of: HashMap<Unit, usize> = of
            .callsites
            .ids
            .iter()
            .zip(of.by_owner)
            .map(|(id, owner)| (Unit::Callsite(*id), *owner))
            .collect();
        for site in sites.iter().filter(|site| site.grows()) {
            let owner = owner_of[&site.unit];
            growing.entry(owner).or_default().push(*site);
        }
        // Lines with a row of their own, and whether the row is the whole line.
        let mut rows: HashMap<usize, bool> = HashMap::new();
        for line in lines.into_iter().filter(Site::grows) {
            let Unit::Line(GroupId(owner)) = line.unit else {
                continue;
            };
            let owner = owner as usize;
            // A line without app code cannot be named.
            if owner >= self.owners.len() {
                continue;
            }
            let row = match growing.get(&owner).map_or(&[][..], Vec::as_slice) {
                [] => line,
                // It has a row of its own.
                [_] => continue,
                growing => self.sum(line, growing),
            };
            rows.insert(owner, !growing.contains_key(&owner));
            self.sites.push(row);
        }
        let stays = |site: &Site| match rows.get(&owner_of[&site.unit]).copied() {
            None => true,
            // A callsite that frees what it allocates is not what makes its line grow.
            Some(true) => site.churns(),
            Some(false) => !site.grows(),
        };
        self.sites.extend(sites.into_iter().filter(stays));
        let interval = series.dumps.iter().map(|(_, interval)| *interval);
        let Some(interval) = interval.reduce(Interval::wider) else {
            return;
        };
        let whole = levels[0]
            .whole
            .iter()
            .fold(Turnover::nothing(interval), |sum, site| sum.plus(*site));
        let grown = whole.estimate();
        let held = levels[0].held.iter().map(Sampled::bytes);
        self.totals.push(Total {
            grown,
            held: held.fold(0, i64::saturating_add),
            rate: self.per_iteration(heap, &grown),
            detectable: plan::minimal_detectable(interval, self.iterations(heap), 0.0, self.tested),
        });
    }

    /// Returns the row of a line with its growing callsites only: its other callsites have verdicts
    /// of their own.
    fn sum(&self, line: Site, growing: &[Site]) -> Site {
        let nothing = Site {
            callsites: 0,
            held: Sampled::nothing(line.held.interval()),
            allocated: Sampled::nothing(line.allocated.interval()),
            freed: 0,
            turnover: Turnover::nothing(line.turnover.kept().interval()),
            ..line
        };
        let sum = growing.iter().fold(nothing, |sum, site| Site {
            callsites: sum.callsites + site.callsites,
            held: sum.held.plus(site.held),
            allocated: sum.allocated.plus(site.allocated),
            freed: sum.freed.saturating_add(site.freed),
            turnover: sum.turnover.plus(site.turnover),
            ..sum
        });
        let tolerance = self.rule.tolerance * self.iterations(line.heap);
        let grown = sum.turnover.estimate();
        Site {
            grown,
            rate: self.per_iteration(line.heap, &grown),
            verdict: Verdict::Grows {
                below_tolerance: sum.turnover.limits(Z95_ONE_SIDED).1 <= tolerance,
            },
            ..sum
        }
    }

    /// Judges the units of a level; for lines, only those that certainly grew.
    fn sites_of(
        &self,
        of: &Judged<'_>,
        units: &Units,
        tested: &Tested,
        named: impl Fn(usize) -> Unit,
    ) -> Vec<Site> {
        let (heap, series) = (of.heap, of.series);
        let terms = Terms {
            tolerance: self.rule.tolerance * self.iterations(heap),
            incomplete: series.incomplete,
        };
        let spans = spans_of(series);
        let wanted = |unit: &usize| match named(*unit) {
            Unit::Callsite(_) => units.callsites[*unit] > 0,
            Unit::Line(_) => tested.significant[*unit],
        };
        (0..units.whole.len())
            .filter(wanted)
            .map(|unit| {
                let evidence = Evidence {
                    whole: units.whole[unit],
                    halves: units.halves(unit),
                    rounds: units.rounds,
                    spans,
                    in_every_iteration: units.in_every_iteration[unit],
                    steady: tested.steady[unit],
                    significant: tested.significant[unit],
                };
                let grown = units.whole[unit].estimate();
                Site {
                    heap,
                    unit: named(unit),
                    callsites: units.callsites[unit],
                    grown,
                    rate: self.per_iteration(heap, &grown),
                    verdict: judge(&evidence, &terms),
                    held: units.held[unit],
                    allocated: units.allocated[unit],
                    freed: units.freed[unit],
                    in_every_iteration: evidence.in_every_iteration,
                    step: tested.steps.get(&unit).copied(),
                    turnover: units.whole[unit],
                }
            })
            .collect()
    }

    fn per_iteration(&self, heap: usize, grown: &Estimate) -> Rate {
        grown
            .per(self.iterations(heap))
            .expect("a series has at least two dumps and a positive number of iterations")
    }
}

/// Minimum number of iterations to propose.
const MIN_ROUNDS: u64 = 6;

/// Maximum number of dumps for the trend test, which compares each with each.
const MOST_FOR_TREND: usize = 500;

fn thinned(values: &[i64]) -> Vec<i64> {
    let every = values.len().div_ceil(MOST_FOR_TREND).max(1);
    values.iter().copied().step_by(every).collect()
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

fn rounds_of(heap: &HeapSeries<'_>) -> u32 {
    u32::try_from(heap.dumps.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod variants;
