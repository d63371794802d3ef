//! Output of `leaks --json` for native heaps. Fields are a contract: docs/reference/formats.md
//! lists them.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::inputs::NativeLeaksRequest;
use super::series::{Heap, Series};
use super::words;
use crate::heaps::input::facts::{self, FilterFacts, StackFrame};
use heaptap_analyze::native::groups::GroupId;
use heaptap_analyze::native::growth::{
    Growth, HeapSeries, Judgement, LineFrames, Rule, Site, Unit,
};
use heaptap_analyze::sampling::Estimate;
use heaptap_analyze::sampling::verdict::{InconclusiveReason, Verdict};
use heaptap_model::stacks::{FrameId, StackTable, sum};
use heaptap_results::findings::Finding;

#[derive(Debug, Clone, Serialize)]
pub struct NativeLeaksDocument {
    /// `native`.
    pub heap_kind: &'static str,
    /// Accepted growth, in bytes per iteration.
    pub tolerance_bytes: u64,
    /// Filter that can hide a part of the heaps.
    #[serde(skip)]
    pub(crate) filter: FilterFacts,
    /// One entry for each run of each process.
    pub series: Vec<SeriesRow>,
    /// Warnings about the inputs.
    pub warnings: Vec<Finding>,
}

/// Comparison of the dumps of one process.
#[derive(Debug, Clone, Serialize)]
pub struct SeriesRow {
    /// Process name; empty if unknown.
    pub process: String,
    /// Process ID; 0 if unknown.
    pub pid: u64,
    /// Notes about the series.
    pub notes: Vec<String>,
    /// True if dumps were left out because data are missing.
    pub incomplete: bool,
    /// True if another run in the input was left out because its dumps lack data.
    #[serde(skip)]
    pub(crate) is_run_left_out: bool,
    /// True if memory grew whose callsites the trace lost.
    #[serde(skip)]
    pub(crate) lost_grew: bool,
    /// True if the filters match any sample.
    pub matches: bool,
    pub heaps: Vec<HeapRow>,
    /// Number of callsites (and functions) with enough samples for a test.
    pub tested: u64,
    /// Number of confirmed leaks above the tolerance.
    pub leaks: u64,
    /// Number of confirmed leaks within the tolerance.
    pub leaks_below_tolerance: u64,
    /// Number of callsites that grew, but possibly not further.
    pub suspects: u64,
    /// Number of other inconclusive callsites.
    pub inconclusive: u64,
    /// Number of those without sampled growth.
    #[serde(skip)]
    pub(crate) inconclusive_without_growth: u64,
    /// Number of callsites within the sampling error.
    pub within_sampling_error: u64,
    /// Callsites in descending order of certainty, without those within the sampling error; can be
    /// truncated.
    pub sites: Vec<SiteRow>,
    /// Callsites that allocate much and keep little, in descending order of allocation; can be
    /// truncated.
    pub churn: Vec<SiteRow>,
}

impl SeriesRow {
    /// Returns whether the result is inconclusive.
    pub fn is_inconclusive(&self) -> bool {
        self.is_open() || self.decided() == 0 && self.inconclusive > 0
    }

    /// Returns whether a check must remain inconclusive, regardless of other results.
    pub(crate) fn is_open(&self) -> bool {
        self.incomplete || self.is_run_left_out || self.lost_grew || self.suspects > 0
    }

    /// Returns the number of sites with a conclusive result.
    pub(crate) fn decided(&self) -> u64 {
        self.leaks + self.leaks_below_tolerance + self.within_sampling_error
    }
}

/// A heap of a series.
#[derive(Debug, Clone, Serialize)]
pub struct HeapRow {
    pub heap: String,
    /// Dumps, oldest first.
    pub dumps: Vec<DumpRow>,
    /// Number of steps from the first to the last dump.
    #[serde(rename = "steps")]
    pub rounds: u64,
    /// Iterations of the scenario: steps times `--rounds`.
    pub iterations: f64,
    /// True if all dumps are of one recording, so that surviving allocations cancel out.
    pub paired: bool,
    /// Unreleased bytes in the last dump that match the filters.
    pub unreleased_bytes: i64,
    /// Growth of the matching unreleased bytes from the first dump to the last.
    pub growth: Limits,
    /// The same per iteration.
    pub growth_per_iteration: facts::Growth,
    /// Smallest leak, in bytes per iteration, that is detected with a probability of 4 in 5 at a
    /// callsite with no other allocations.
    pub detectable_bytes_per_iteration: f64,
}

/// A dump of a series.
#[derive(Debug, Clone, Serialize)]
pub struct DumpRow {
    /// Display name: `rec@round-1`.
    pub name: String,
    /// Display name within a single input: `@round-1`.
    #[serde(skip)]
    pub brief: String,
    /// Dump number within its process and heap, from 1.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Trace time in ns.
    pub time_ns: Option<u64>,
    /// Sampling interval in bytes; 1 is exact.
    pub sampling_interval_bytes: u64,
    /// Total of unreleased bytes.
    pub space: i64,
}

/// A value with its 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Value as sampled.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

impl From<&Estimate> for Limits {
    fn from(of: &Estimate) -> Limits {
        Limits {
            value: of.value as f64,
            low: of.low as f64,
            high: of.high as f64,
        }
    }
}

/// A callsite, or a function.
#[derive(Debug, Clone, Serialize)]
pub struct SiteRow {
    /// `callsite`, or `line` for a leak of several callsites in one line of app code.
    pub unit: &'static str,
    /// Number of callsites with samples that this row represents.
    pub callsites: u32,
    pub heap: String,
    /// The named app frame nearest to the allocation, otherwise the nearest address in a library of
    /// the app, otherwise the nearest frame with a name.
    #[serde(rename = "app_frame")]
    pub own: StackFrame,
    #[serde(rename = "allocating_frame")]
    pub allocates: StackFrame,
    /// Functions that allocate at its callsites, or their addresses, each once: at most
    /// [`MAX_ALLOCATORS`].
    #[serde(rename = "allocating_functions")]
    pub allocators: Vec<String>,
    /// Functions that call a line, those of most callsites first: at most [`MAX_ALLOCATORS`].
    pub callers: Vec<CallerRow>,
    /// Frames of the stack, allocating frame first, without allocators; for a line, only its own
    /// frame.
    pub stack: Vec<StackFrame>,
    /// `confirmed`, `within-sampling-error`, `inconclusive`.
    pub verdict: &'static str,
    /// Reason for an inconclusive result: `too-few-samples`, `one-step`, `slowing`, `unsteady`,
    /// `too-few-iterations`, `incomplete`.
    pub inconclusive_reason: Option<&'static str>,
    /// True if the growth is confirmed but within the tolerance.
    pub below_tolerance: bool,
    /// Explanation and next step.
    pub sentence: String,
    /// Growth of unreleased bytes from the first dump to the last.
    pub growth: Limits,
    /// The same per iteration.
    pub growth_per_iteration: facts::Growth,
    /// Sampled allocations behind the growth.
    pub samples: u64,
    /// True if growth is confirmed in each iteration.
    pub in_every_iteration: bool,
    /// Unreleased bytes in the last dump.
    #[serde(rename = "unreleased")]
    pub held: Limits,
    /// Bytes allocated from the first dump to the last.
    pub allocated: Limits,
    /// Sampled bytes freed in the same time, including memory of the first dump, so they can exceed
    /// the allocated bytes.
    pub freed_bytes: i64,
    /// `freed_bytes` divided by the sampled bytes allocated; null if there are none.
    pub freed_share: Option<f64>,
    /// Data needed for a conclusive result.
    #[serde(rename = "required")]
    pub decides: Decides,
    #[serde(skip)]
    pub(crate) held_estimate: Estimate,
    #[serde(skip)]
    pub(crate) allocated_estimate: Estimate,
}

/// A function that calls a line of app code.
#[derive(Debug, Clone, Serialize)]
pub struct CallerRow {
    pub function: String,
    pub callsites: u32,
}

/// Data needed for a conclusive result; either of the two is sufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Decides {
    /// Number of iterations.
    #[serde(rename = "iterations")]
    pub rounds: Option<u64>,
    /// Sampling interval in bytes, with the same number of iterations.
    pub interval_bytes: Option<u64>,
}

/// Maximum number of functions that allocate for one row.
pub const MAX_ALLOCATORS: usize = 8;

pub(super) fn document(
    table: &StackTable,
    series: &[Series<'_>],
    request: &NativeLeaksRequest,
) -> NativeLeaksDocument {
    NativeLeaksDocument {
        warnings: Vec::new(),
        heap_kind: "native",
        tolerance_bytes: request.tolerance,
        filter: FilterFacts::from(&request.filter),
        series: series.iter().map(|of| row(table, of, request)).collect(),
    }
}

fn row(table: &StackTable, series: &Series<'_>, request: &NativeLeaksRequest) -> SeriesRow {
    let heaps: Vec<HeapSeries<'_>> = series
        .heaps
        .iter()
        .map(|heap| HeapSeries {
            dumps: heap.dumps.iter().map(|m| (&*m.dump, m.interval)).collect(),
            paired: heap.paired,
            incomplete: series.incomplete,
        })
        .collect();
    let rule = Rule {
        iterations: request.loops.max(1) as f64,
        tolerance: request.tolerance as f64,
    };
    let growth = Growth::new(table, &heaps, &request.filter, rule);
    let rows = Rows {
        table,
        growth: &growth,
        frames: growth.line_frames(),
        heaps: &series.heaps,
        tolerance: request.tolerance,
    };
    let judgements = growth.judgements();
    let count = |is: fn(&Judgement) -> bool| judgements.iter().filter(|of| is(of)).count() as u64;
    let mut sites = growth.sites(request.limit);
    sites.retain(|site| site.verdict != Verdict::WithinNoise);
    let churn = growth.churn(request.limit);
    SeriesRow {
        process: series.process.clone(),
        pid: series.pid,
        notes: series.notes.clone(),
        incomplete: series.incomplete,
        is_run_left_out: series.is_run_left_out,
        lost_grew: growth.lost_grew(),
        matches: growth.has_matches(),
        heaps: (0..heaps.len()).map(|at| rows.heap(at)).collect(),
        tested: growth.tested,
        leaks: count(|of| of.verdict.grows() && !is_tolerated(of.verdict)),
        leaks_below_tolerance: count(|of| is_tolerated(of.verdict)),
        suspects: count(|of| of.verdict.is_suspect() && !of.verdict.grows()),
        inconclusive: count(|of| lacks_data(of.verdict)),
        inconclusive_without_growth: count(|of| lacks_data(of.verdict) && of.grown <= 0),
        within_sampling_error: count(|of| of.verdict == Verdict::WithinNoise),
        sites: sites.iter().map(|site| rows.site(site)).collect(),
        churn: churn.iter().map(|site| rows.site(site)).collect(),
    }
}

/// Returns whether there is growth within the tolerance.
fn is_tolerated(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Grows { below_tolerance } if below_tolerance)
}

/// Returns whether there is too little data for a verdict.
fn lacks_data(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::CantTell(_)) && !verdict.is_suspect()
}

/// Makes rows.
struct Rows<'a> {
    table: &'a StackTable,
    growth: &'a Growth<'a>,
    /// Of the lines that have a row.
    frames: HashMap<GroupId, LineFrames>,
    heaps: &'a [Heap<'a>],
    tolerance: u64,
}

impl Rows<'_> {
    fn heap(&self, at: usize) -> HeapRow {
        let heap = &self.heaps[at];
        let total = &self.growth.totals[at];
        HeapRow {
            heap: heap.name.clone(),
            dumps: heap.dumps.iter().map(DumpRow::from_member).collect(),
            rounds: heap.dumps.len() as u64 - 1,
            iterations: self.growth.iterations(at),
            paired: heap.paired,
            unreleased_bytes: total.held,
            growth: (&total.grown).into(),
            growth_per_iteration: facts::Growth::new(total.rate, true),
            detectable_bytes_per_iteration: total.detectable,
        }
    }

    fn callers(&self, frames: &LineFrames) -> Vec<CallerRow> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (frame, count) in &frames.callers {
            let function = StackFrame::new(self.table, *frame).function;
            *counts.entry(function).or_default() += count;
        }
        let rows = counts.into_iter().map(|(function, callsites)| CallerRow {
            function,
            callsites,
        });
        let mut rows: Vec<CallerRow> = rows.collect();
        rows.sort_by_key(|row| Reverse(row.callsites));
        rows.truncate(MAX_ALLOCATORS);
        rows
    }

    fn site(&self, site: &Site) -> SiteRow {
        let place = |frame: FrameId| StackFrame::new(self.table, frame);
        let (unit, own, stack): (_, _, Vec<FrameId>) = match site.unit {
            Unit::Callsite(id) => (
                "callsite",
                self.growth.own_frame(id),
                self.growth.stack(id).collect(),
            ),
            Unit::Line(id) => {
                let frame = self.growth.owners().sample(id);
                ("line", Some(frame), vec![frame])
            }
        };
        let frames = match site.unit {
            Unit::Callsite(_) => None,
            Unit::Line(id) => self.frames.get(&id),
        };
        let allocators = match frames {
            None => stack.get(..1).unwrap_or_default(),
            Some(frames) => &frames.allocators,
        };
        let own = own.map_or_else(StackFrame::nowhere, place);
        let decider = self.growth.decider(site);
        let iterations = self.growth.iterations(site.heap) as u64;
        let heap = &self.heaps[site.heap];
        let (verdict, reason) = match site.verdict {
            Verdict::Grows { .. } => ("confirmed", None),
            Verdict::WithinNoise => ("within-sampling-error", None),
            Verdict::CantTell(doubt) => ("inconclusive", Some(word(doubt))),
        };
        let held = site.held.estimate();
        let allocated = site.allocated.estimate();
        SiteRow {
            unit,
            callsites: site.callsites,
            heap: heap.name.clone(),
            sentence: words::sentence(site, heap, decider, iterations, self.tolerance),
            own,
            allocates: stack
                .first()
                .copied()
                .map_or_else(StackFrame::nowhere, place),
            allocators: unique(allocators.iter().map(|frame| place(*frame).function))
                .into_iter()
                .take(MAX_ALLOCATORS)
                .collect(),
            callers: frames.map_or_else(Vec::new, |frames| self.callers(frames)),
            stack: stack.iter().map(|frame| place(*frame)).collect(),
            verdict,
            inconclusive_reason: reason,
            below_tolerance: is_tolerated(site.verdict),
            growth: (&site.grown).into(),
            growth_per_iteration: facts::Growth::new(site.rate, true),
            samples: site.grown.samples,
            in_every_iteration: site.in_every_iteration,
            held: (&held).into(),
            allocated: (&allocated).into(),
            freed_bytes: site.freed,
            freed_share: site.freed_share(),
            decides: Decides {
                rounds: decider.iterations,
                interval_bytes: decider.interval_bytes,
            },
            held_estimate: held,
            allocated_estimate: allocated,
        }
    }
}

impl DumpRow {
    fn from_member(member: &super::series::Member<'_>) -> DumpRow {
        let facts = &member.dump.facts;
        let space = member.dump.column(heaptap_model::stacks::View::Space);
        DumpRow {
            name: member.name.clone(),
            brief: member.brief.clone(),
            number: facts.number,
            label: facts.label.clone(),
            time_ns: facts.time_ns,
            sampling_interval_bytes: member.interval.bytes(),
            space: sum(space.unwrap_or(&[])),
        }
    }
}

fn word(doubt: InconclusiveReason) -> &'static str {
    match doubt {
        InconclusiveReason::TooFewSamples => "too-few-samples",
        InconclusiveReason::OneStep => "one-step",
        InconclusiveReason::Slowing => "slowing",
        InconclusiveReason::Unsteady => "unsteady",
        InconclusiveReason::TooFewRounds => "too-few-iterations",
        InconclusiveReason::Incomplete => "incomplete",
    }
}

/// Returns the texts without repetitions, in their order: instances of a Rust function share a name.
fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
