//! `diff` of native heaps: growth between two dumps of one or two recordings. Each heap of each
//! process is compared with its counterpart.

mod pairs;
mod profile;

pub use profile::ProfileFile;

use serde::Serialize;

use crate::heaps::input::facts::{DumpFacts, FilterFacts, Growth, StackFrame};
use crate::heaps::input::rows::{Located, Namer, Order};
use crate::heaps::input::{MANY_UNNAMED, NativeFile};
use heaptap_analyze::native::diff::{Change, Diff, DumpRelation, Growing, Row, Terms};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::RowKey;
use heaptap_analyze::sampling::Rate;
use heaptap_base::error::Failure;
use heaptap_model::stacks::{Dump, JoinBy, Library, StackProfile, join};
use heaptap_results::findings::{
    self, Finding, NOT_IN_INPUT, SAME_MOMENT, SEVERAL_IN_ONE, SEVERAL_RECORDINGS, TRACE_CUT,
};
use heaptap_results::manifest::MissingLibrary;
use pairs::Pair;

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    pub by: RowKey,
    /// Change by which rows are ordered.
    pub order: Order,
    /// Kind of memory whose growth is computed.
    pub growing: Growing,
    /// Divisor of the values.
    pub per: Per,
    /// Filter of stacks.
    pub filter: Filter,
    /// Maximum number of rows with a significant change, for each heap.
    pub limit: usize,
    /// Maximum number of further rows within sampling error.
    pub noise_limit: usize,
    /// Maximum number of frames of each stack, leaf first; 0 means no limit. Only for tables by
    /// callsite.
    pub frames: usize,
}

/// Divisor of values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Per {
    /// No division.
    #[default]
    Whole,
    /// Number of iterations of each side.
    Iterations([f64; 2]),
    /// Seconds: the time between two dumps of one recording, otherwise the time since profiling
    /// began.
    Seconds,
}

/// Result of a comparison, as a JSON document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// `native`.
    pub kind: &'static str,
    /// Key of the rows.
    pub by: &'static str,
    /// Change by which rows are ordered: `self` or `cumulative`.
    pub sort: &'static str,
    /// `space` or `alloc_space`.
    pub view: &'static str,
    /// `iteration` or `second`; absent if growth is not divided.
    pub per: Option<&'static str>,
    /// Filter of stacks.
    pub filter: FilterFacts,
    /// Each heap with its counterpart, largest first.
    pub heaps: Vec<HeapDiff>,
    /// Warnings to report.
    pub warnings: Vec<Finding>,
    /// Result of the check against a growth limit, if one is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Heap before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapDiff {
    /// First dump; absent if only the second input has this heap.
    pub before: Option<DumpFacts>,
    /// Second dump.
    pub after: Option<DumpFacts>,
    /// Whether both dumps are of one run of one process. If so, surviving allocations cancel out,
    /// with their sampling error.
    pub same_run: bool,
    /// Whether both dumps are of one run, but the first is the later one.
    #[serde(skip)]
    pub backwards: bool,
    /// Divisors of the values before and after.
    pub divisors: [f64; 2],
    /// Change of the whole heap.
    pub total: ChangeRow,
    /// Change of the stacks that match the filter.
    pub shown: ChangeRow,
    /// Whether the filter matches any sample.
    pub matches: bool,
    /// Rows, significant changes first, growth before shrinkage.
    pub rows: Vec<DiffRow>,
    /// Number of rows beyond the limit, except for those within sampling error.
    #[serde(skip)]
    pub rows_left_out: usize,
    /// Number of significant rows, before the limit.
    pub rows_confirmed: usize,
    /// Number of rows within sampling error, before the limit.
    pub rows_within_sampling_error: usize,
}

/// Row of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffRow {
    #[serde(flatten)]
    pub at: Located,
    /// Change of the stacks that end in this row.
    #[serde(rename = "self")]
    pub own: ChangeRow,
    /// Change of the stacks that pass through this row.
    pub cumulative: ChangeRow,
    /// Stack, leaf first, for a callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<StackFrame>>,
}

/// Change of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeRow {
    /// `new`, `gone`, `grown`, `shrunk` or `same`, as sampled.
    pub status: &'static str,
    /// Whether the change exceeds sampling error.
    pub confirmed: bool,
    pub before: Amount,
    pub after: Amount,
    /// Value after minus value before, each divided.
    pub growth: Growth,
}

/// Sampled amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub bytes: i64,
    /// Number of sampled allocations.
    pub samples: i64,
}

impl ChangeRow {
    fn of(change: &Change, has_limits: bool) -> ChangeRow {
        ChangeRow {
            status: change.status(),
            confirmed: has_limits && change.is_certain,
            before: Amount {
                bytes: change.before,
                samples: change.samples_before,
            },
            after: Amount {
                bytes: change.after,
                samples: change.samples_after,
            },
            growth: Growth::of(change.growth, has_limits),
        }
    }
}

/// Comparison with the data that it was computed from.
#[derive(Debug)]
pub struct Compared {
    pub report: DiffReport,
    /// All compared dumps, over one table.
    pub profile: StackProfile,
    /// Positions in `profile` of the dumps before and after, for each pair.
    pub pairs: Vec<(Option<usize>, Option<usize>)>,
}

/// Result of a check against a growth limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// Certainly within the limit.
    #[serde(rename = "within-limit")]
    Kept,
    /// Certainly over the limit.
    Exceeded,
    /// The confidence interval includes the limit, or the sampling error is unknown.
    #[serde(rename = "inconclusive")]
    Open,
}

/// Result of a check against a growth limit, as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Limit in bytes, per iteration or second if growth is.
    pub limit_bytes: u64,
    pub outcome: Budget,
    /// Reason for `Open` other than sampling error.
    pub why: Option<&'static str>,
}

/// Kind of the warning that one side lacks symbols that the other side has.
pub const NAMES_DIFFER: &str = "symbols-differ";

impl DiffReport {
    /// Returns whether the filter matches any sample of any heap.
    pub fn matches(&self) -> bool {
        self.heaps.iter().any(|heap| heap.matches)
    }

    /// Checks growth against `limit`. The result stays open if data of a side is `missing`, or for
    /// other reasons. `is_filtered` is whether the filter selects stacks by name.
    pub fn judge(&mut self, limit: u64, missing: bool, is_filtered: bool) {
        let warns = |kind: &str| self.warnings.iter().any(|warning| warning.kind == kind);
        let budget = self.budget(limit);
        // Reasons that make the result open for any figures.
        let always = if !self.matches() {
            Some("nothing matches the filters")
        } else if missing {
            Some("data is missing from one side")
        } else if warns(SAME_MOMENT) {
            Some("both sides are the same dump")
        } else if warns(SEVERAL_RECORDINGS) {
            Some(SEVERAL_IN_ONE)
        } else if self.heaps.iter().any(|heap| heap.backwards) {
            Some("the first dump is the later one")
        } else if is_filtered && warns(NAMES_DIFFER) {
            Some("one side lacks symbols that the other side has")
        } else {
            None
        };
        // Reasons that can hide growth. The real growth is at least the measured one.
        let unseen = if self.heaps.iter().any(|heap| heap.after.is_none()) {
            Some("the second input does not have a heap of the first")
        } else if warns(TRACE_CUT) {
            Some("a trace is truncated")
        } else if warns(NOT_IN_INPUT) {
            Some("a selected process or heap is in neither input")
        } else {
            None
        };
        let why = always.or(unseen.filter(|_| budget != Budget::Exceeded));
        self.verdict = Some(Verdict {
            limit_bytes: limit,
            outcome: why.map_or(budget, |_| Budget::Open),
            why,
        });
    }

    /// Returns the growth of the matching stacks, over all heaps that the second side has.
    pub fn growth(&self) -> Rate {
        let (mut below, mut above) = (0.0f64, 0.0f64);
        let mut sum = Rate {
            value: 0.0,
            low: 0.0,
            high: 0.0,
            hits: 0.0,
            samples: 0,
            exact: true,
        };
        for heap in self.heaps.iter().filter(|heap| heap.after.is_some()) {
            let part = heap.shown.growth.rate;
            sum.value += part.value;
            sum.hits += part.hits;
            sum.samples = sum.samples.saturating_add(part.samples);
            sum.exact &= part.exact;
            below = below.hypot(part.value - part.low);
            above = above.hypot(part.high - part.value);
        }
        sum.low = sum.value - below;
        sum.high = sum.value + above;
        sum
    }

    /// Checks a limit in bytes, per iteration or second if growth is.
    pub fn budget(&self, limit: u64) -> Budget {
        let growth = self.growth();
        let limit = limit as f64;
        if self
            .heaps
            .iter()
            .any(|heap| heap.shown.growth.low.is_none())
        {
            Budget::Open
        } else if growth.low > limit {
            Budget::Exceeded
        } else if growth.high <= limit {
            Budget::Kept
        } else {
            Budget::Open
        }
    }
}

/// Compares two files.
///
/// # Errors
/// Returns an error if no heaps are comparable, or growth per time is requested but unknown.
pub fn diff(
    before: &NativeFile,
    after: &NativeFile,
    request: &DiffRequest,
) -> Result<Compared, Failure> {
    let found = pairs::of(before, after, request.growing)?;
    let same_recording = pairs::is_same_recording(before, after);
    let by = match same_recording {
        true => JoinBy::Exact,
        false => JoinBy::Name,
    };
    let joined = join(&[&before.profile.table, &after.profile.table], by);
    let mut profile = StackProfile {
        table: joined.table,
        dumps: Vec::new(),
    };
    let mut pairs = Vec::new();
    for pair in &found.pairs {
        let mut enter = |dump: Option<&Dump>, side: usize| {
            dump.map(|dump| {
                profile.dumps.push(Dump {
                    values: dump.values.through(&joined.nodes[side]),
                    facts: dump.facts.clone(),
                    measures: dump.measures.clone(),
                    default_measure: dump.default_measure,
                    // Comparisons by thread do not exist, because thread IDs differ between runs.
                    threads: Vec::new(),
                });
                profile.dumps.len() - 1
            })
        };
        pairs.push((enter(pair.before, 0), enter(pair.after, 1)));
    }
    let mut heaps = Vec::new();
    for (pair, places) in found.pairs.iter().zip(&pairs) {
        heaps.push(heap(
            (before, after),
            pair,
            *places,
            &profile,
            same_recording,
            request,
        )?);
    }
    heaps.sort_by_key(|heap: &HeapDiff| {
        std::cmp::Reverse(heap.total.before.bytes.max(heap.total.after.bytes))
    });
    let both = [&before.findings, &after.findings];
    // Names that only one side has make every row look grown or gone.
    let unnamed = after.names_missing().or_else(|| before.names_missing());
    let mut warnings: Vec<Finding> = Vec::new();
    for finding in both.into_iter().flatten().chain(&unnamed) {
        let mut known = warnings.iter();
        if known.all(|known| known.message != finding.message) {
            warnings.push(finding.clone());
        }
    }
    let all = both.iter().map(|of| of.as_slice());
    findings::keep_missing_everywhere(&mut warnings, all);
    if same_recording && found.is_one_dump() {
        warnings.push(findings::same_moment());
    }
    warnings.extend(found.notes);
    warnings.extend(names_differ(before, after));
    Ok(Compared {
        report: DiffReport {
            kind: "native",
            by: request.by.name(),
            sort: request.order.name(),
            view: request.growing.views().0.name(),
            per: match request.per {
                Per::Whole => None,
                Per::Iterations(_) => Some("iteration"),
                Per::Seconds => Some("second"),
            },
            filter: FilterFacts::from(&request.filter),
            heaps,
            warnings,
            verdict: None,
        },
        profile,
        pairs,
    })
}

/// Returns a warning if functions have names on only one side.
fn names_differ(before: &NativeFile, after: &NativeFile) -> Option<Finding> {
    let side = match (lacks_names_of(before, after), lacks_names_of(after, before)) {
        (true, false) => "first",
        (false, true) => "second",
        _ => return None,
    };
    let message = format!(
        "the {side} input lacks symbols that the other input has, so one function might appear \
         both as new and as gone"
    );
    let help = "symbolize both with `heaptap symbolize`, or add `--symbols DIR`";
    Some(Finding::new(NAMES_DIFFER, None, message).with_help(help))
}

/// Returns whether many allocations of `one` are in unnamed functions of a library whose functions
/// all have names in `other`.
fn lacks_names_of(one: &NativeFile, other: &NativeFile) -> bool {
    let (Some(mine), Some(theirs)) = (&one.symbolization, &other.symbolization) else {
        return false;
    };
    // Dumps of one file have different functions but the same names.
    if pairs::is_same_file(one, other) {
        return false;
    }
    // Each install has its own directory.
    let name = |path: &str| path.rsplit(['/', '!']).next().map(str::to_owned);
    let table = &other.profile.table;
    let much = |library: &&MissingLibrary| library.leaf_share >= MANY_UNNAMED;
    mine.libraries_missing.iter().filter(much).any(|library| {
        let wanted = name(&library.path);
        let is_missing = |missing: &MissingLibrary| name(&missing.path) == wanted;
        let is_there = |there: &Library| name(table.text_of(there.path)) == wanted;
        table.libraries().iter().any(is_there) && !theirs.libraries_missing.iter().any(is_missing)
    })
}

fn heap(
    files: (&NativeFile, &NativeFile),
    pair: &Pair<'_>,
    places: (Option<usize>, Option<usize>),
    profile: &StackProfile,
    same_recording: bool,
    request: &DiffRequest,
) -> Result<HeapDiff, Failure> {
    let same_run = same_recording && pair.is_one_run();
    let backwards = same_recording && !same_run && pair.swapped().is_one_run();
    let divisors = pair.divisors(request.per, same_run)?;
    let terms = Terms {
        by: request.by,
        growing: request.growing,
        relation: match same_run {
            true => DumpRelation::OneRun,
            false => DumpRelation::Apart,
        },
        divisors,
    };
    let dump = |place: Option<usize>| place.map(|place| &profile.dumps[place]);
    let diff = Diff::of(
        &profile.table,
        dump(places.0),
        dump(places.1),
        &request.filter,
        &terms,
    );
    let change = match request.order {
        Order::Cumulative => |row: &Row| -> Change { row.cumulative },
        Order::Own | Order::Name => |row: &Row| row.own,
    };
    let namer = Namer::new(&profile.table, &diff.shown, &diff.groups, request.frames);
    let ranked = diff.ranked(change);
    let certain = |at: &usize| diff.has_limits && change(&diff.rows[*at]).is_certain;
    let rows_confirmed = ranked.iter().filter(|at| certain(at)).count();
    let rows_within_sampling_error = match diff.has_limits {
        true => ranked.len() - rows_confirmed,
        false => 0,
    };
    let (mut wanted, noise) = ranked.split_at(match diff.has_limits {
        true => rows_confirmed,
        false => ranked.len(),
    });
    let rows_left_out = wanted.len().saturating_sub(request.limit);
    wanted = &wanted[..wanted.len() - rows_left_out];
    let noise = &noise[..noise.len().min(request.noise_limit)];
    let by_name = |rows: &[usize]| -> Vec<usize> {
        let mut rows = rows.to_vec();
        if request.order == Order::Name {
            rows.sort_by_cached_key(|at| namer.name(diff.rows[*at].key));
        }
        rows
    };
    let ranked = [by_name(wanted), by_name(noise)].concat();
    let has_limits = diff.has_limits;
    let rows = ranked.into_iter().map(|at| {
        let row = &diff.rows[at];
        let (at, stack) = namer.row(row.key);
        DiffRow {
            at,
            own: ChangeRow::of(&row.own, has_limits),
            cumulative: ChangeRow::of(&row.cumulative, has_limits),
            stack,
        }
    });
    Ok(HeapDiff {
        matches: diff.shown.has_matches(),
        before: pair.before.map(|dump| DumpFacts::of(files.0, dump)),
        after: pair.after.map(|dump| DumpFacts::of(files.1, dump)),
        same_run,
        backwards,
        divisors,
        total: ChangeRow::of(&diff.total, has_limits),
        shown: ChangeRow::of(&diff.left, has_limits),
        rows: rows.collect(),
        rows_left_out,
        rows_confirmed,
        rows_within_sampling_error,
    })
}
