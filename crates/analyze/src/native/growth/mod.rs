//! Growth over a series of dumps of one process: for each callsite its growth per iteration with
//! the sampling error, and a verdict. Computes the inputs of `sampling` from dumps and sorts the
//! results.
//!
//! Callsites are those that pass a filter: without allocators, so `malloc` and `operator new` below
//! one caller are one callsite. Leaks with many callsites of few samples each are searched a second
//! time by line of app code. Both are partitions of the heap and are tested together.

mod callsites;
mod evidence;
mod judging;
pub mod series;
mod site;

use std::cmp::Reverse;
use std::collections::HashMap;

pub use self::callsites::CallsiteId;
use self::callsites::Callsites;
use self::evidence::{Level, Units};
pub use self::series::HeapSeries;
pub use self::site::{Judgement, Site, Unit};
use super::filter::Filter;
use super::groups::{GroupId, Groups, RowKey};
use super::visible_tree::VisibleTree;
use crate::sampling::plan::{self, Decider};
use crate::sampling::verdict::{InconclusiveReason, Verdict};
use crate::sampling::{Estimate, Rate};
use heaptap_model::stacks::{FrameId, StackTable};

/// Rule for growth.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Iterations between two dumps.
    pub iterations: f64,
    /// Acceptable growth in bytes per iteration.
    pub tolerance: f64,
}

/// Results for the series.
#[derive(Debug)]
pub struct Growth<'a> {
    owners: Groups<'a>,
    callsites: Callsites,
    /// Callsite that stands for all with lost callstacks: several can have grown, or none.
    lost: Option<usize>,
    /// Line of app code, by callsite; the number of lines for callsites without one.
    line_of: Vec<u32>,
    /// Figures of each heap.
    units: Vec<Units>,
    /// Units with nearly all of the growth in one iteration, and that iteration, by heap and level.
    steps: Vec<[Vec<(u32, u32)>; 2]>,
    /// Rows of lines, by heap.
    lines: HashMap<(usize, Unit), Site>,
    judgements: Vec<Judgement>,
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

/// Frames around a line of app code, at all of its callsites.
#[derive(Debug, Default)]
pub struct LineFrames {
    /// Frames that allocate, each once; not all of very many.
    pub allocators: Vec<FrameId>,
    /// Frames that call the line, with the number of callsites.
    pub callers: HashMap<FrameId, u32>,
}

/// Maximum number of [`LineFrames::allocators`].
const MAX_ALLOCATORS: usize = 32;

impl<'a> Growth<'a> {
    /// Compares the dumps of each heap. Time is dumps times callsites.
    pub fn new(
        table: &'a StackTable,
        heaps: &[HeapSeries<'_>],
        filter: &Filter,
        rule: Rule,
    ) -> Growth<'a> {
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        let values: Vec<_> = dumps.map(|(dump, _)| &dump.values).collect();
        let shown = VisibleTree::new(table, filter, &values);
        let callsites = Callsites::new(&shown, heaps);
        drop(shown);
        let owners = Groups::new(table, RowKey::Line);
        let nameless = owners.len() as u32;
        let line = |at| {
            callsites
                .own(at)
                .map_or(nameless, |frame| owners.group(frame).0)
        };
        let line_of: Vec<u32> = (0..callsites.len()).map(line).collect();
        let units = heaps
            .iter()
            .map(|heap| Units::new(&callsites, heap, &line_of, owners.len() + 1))
            .collect();
        let mut growth = Growth {
            owners,
            lost: callsites.lost(table),
            callsites,
            line_of,
            units,
            steps: Vec::new(),
            lines: HashMap::new(),
            judgements: Vec::new(),
            totals: Vec::new(),
            tested: 0,
            rule,
            rounds: heaps.iter().map(rounds_of).collect(),
        };
        let tested = growth.test(heaps);
        for (heap, series) in heaps.iter().enumerate() {
            growth.judge(heap, series, &tested[heap]);
        }
        growth
    }

    /// Returns the verdicts on all callsites with any sample, in no order. A line of app code
    /// replaces several of its callsites that grow or, if it only grows as a whole, all that do not
    /// churn.
    pub fn judgements(&self) -> &[Judgement] {
        &self.judgements
    }

    /// Returns at most `limit` rows: growing sites by certainty of growth, then suspects, then the
    /// rest.
    pub fn sites(&self, limit: usize) -> Vec<Site> {
        let all: Vec<&Judgement> = self.judgements.iter().collect();
        self.first(all, limit, |judgement| judgement.order())
    }

    /// Returns whether callsites whose callstacks are lost grew: any of them can be a leak.
    pub fn lost_grew(&self) -> bool {
        let Some(lost) = self.lost else {
            return false;
        };
        let lost = Unit::Callsite(CallsiteId(lost as u32));
        let unknown = Verdict::CantTell(InconclusiveReason::Incomplete);
        let mut judgements = self.judgements.iter();
        judgements.any(|of| of.unit == lost && of.verdict == unknown && of.grown > 0)
    }

    /// Returns whether any values pass the filter.
    pub fn has_matches(&self) -> bool {
        self.callsites.len() > 0
    }

    /// Returns the frames of a callsite that are shown, leaf first.
    pub fn stack(&self, id: CallsiteId) -> impl Iterator<Item = FrameId> {
        self.callsites.stack(id)
    }

    /// Returns the frames around each line that has a row.
    pub fn line_frames(&self) -> HashMap<GroupId, LineFrames> {
        let lines = self.lines.keys().filter_map(|(_, unit)| match unit {
            Unit::Line(line) => Some((*line, LineFrames::default())),
            Unit::Callsite(_) => None,
        });
        let mut all: HashMap<GroupId, LineFrames> = lines.collect();
        if all.is_empty() {
            return all;
        }
        for (id, line) in (0..).map(CallsiteId).zip(&self.line_of) {
            let Some(frames) = all.get_mut(&GroupId(*line)) else {
                continue;
            };
            let own = self.own_frame(id);
            let mut stack = self.stack(id).peekable();
            if let Some(&frame) = stack.peek()
                && frames.allocators.len() < MAX_ALLOCATORS
                && !frames.allocators.contains(&frame)
            {
                frames.allocators.push(frame);
            }
            if let Some(caller) = stack.skip_while(|frame| Some(*frame) != own).nth(1) {
                *frames.callers.entry(caller).or_default() += 1;
            }
        }
        all
    }

    /// Returns the lines of app code of the rows.
    pub fn owners(&self) -> &Groups<'a> {
        &self.owners
    }

    /// Returns the frame of app code of a callsite ([`OwnFrames::of_stack`]).
    ///
    /// [`OwnFrames::of_stack`]: super::own::OwnFrames::of_stack
    pub fn own_frame(&self, id: CallsiteId) -> Option<FrameId> {
        self.callsites.own(id.at())
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

    /// Returns at most `limit` of the callsites that free nearly everything they allocate and do not
    /// leak, most allocated bytes first.
    pub fn churn(&self, limit: usize) -> Vec<Site> {
        let churns = |of: &&Judgement| of.churned > 0 && !of.verdict.grows();
        let churn = self.judgements.iter().filter(churns).collect();
        self.first(churn, limit, |of| (Reverse(of.churned), of.heap, of.unit))
    }

    /// Returns the first `limit` rows in the order of a key, which differs for all of them.
    fn first<K: Ord>(
        &self,
        mut all: Vec<&Judgement>,
        limit: usize,
        key: impl Fn(&Judgement) -> K,
    ) -> Vec<Site> {
        if limit < all.len() {
            all.select_nth_unstable_by_key(limit, |of| key(of));
            all.truncate(limit);
        }
        all.sort_unstable_by_key(|of| key(of));
        all.into_iter().map(|of| self.site(of)).collect()
    }

    /// Returns the row of a verdict.
    fn site(&self, of: &Judgement) -> Site {
        let heap = of.heap as usize;
        match of.unit {
            Unit::Callsite(id) => Site {
                verdict: of.verdict,
                ..self.unjudged(heap, Level::Callsites, id.at())
            },
            Unit::Line(_) => self.lines[&(heap, of.unit)],
        }
    }

    fn per_iteration(&self, heap: usize, grown: &Estimate) -> Rate {
        grown
            .per(self.iterations(heap))
            .expect("a series has at least two dumps and a positive number of iterations")
    }
}

/// Minimum number of iterations to propose.
const MIN_ROUNDS: u64 = 6;

fn rounds_of(heap: &HeapSeries<'_>) -> u32 {
    u32::try_from(heap.dumps.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod variants;
