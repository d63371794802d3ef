//! Result of a comparison, and its check against a growth limit.

use serde::Serialize;

use crate::heaps::input::facts::{DumpFacts, FilterFacts, Growth, StackFrame};
use crate::heaps::input::rows::Located;
use heaptap_analyze::native::diff::Change;
use heaptap_analyze::sampling::Rate;
use heaptap_model::stacks::StackProfile;
use heaptap_results::findings::{
    Finding, NOT_IN_INPUT, SAME_MOMENT, SEVERAL_IN_ONE, SEVERAL_RECORDINGS, TRACE_CUT,
};

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
    pub(super) fn new(change: &Change, has_limits: bool) -> ChangeRow {
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
            growth: Growth::new(change.growth, has_limits),
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
