//! Rows of the results.

use std::cmp::Reverse;

use super::super::groups::GroupId;
use super::callsites::CallsiteId;
use crate::sampling::verdict::Verdict;
use crate::sampling::{Estimate, Rate, Sampled, Turnover};

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Callsite as it is shown.
    Callsite(CallsiteId),
    /// Line of app code below which several callsites allocate: by recursion, or by several paths
    /// to the allocation.
    Line(GroupId),
}

/// Verdict on a callsite or line, without its figures: there can be millions.
#[derive(Debug, Clone, Copy)]
pub struct Judgement {
    /// Index of its heap.
    pub(super) heap: u32,
    pub unit: Unit,
    pub verdict: Verdict,
    /// Growth of unreleased bytes from the first dump to the last, as sampled.
    pub grown: i64,
    /// Lower limit of the growth.
    pub(super) low: i64,
    /// Bytes allocated from the first dump to the last if nearly all are freed; 0 otherwise.
    pub(super) churned: i64,
}

impl Judgement {
    /// Returns the sort key: growing sites by certainty of growth, then suspects, then the rest.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let class = match self.verdict {
            Verdict::Grows { below_tolerance } => u8::from(below_tolerance),
            verdict if verdict.is_suspect() => 2,
            Verdict::CantTell(_) => 3,
            Verdict::WithinNoise => 4,
        };
        let (low, grown) = (Reverse(self.low), Reverse(self.grown));
        (class, low, grown, self.heap, self.unit)
    }
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
    pub(super) turnover: Turnover,
}

impl Site {
    /// Returns the sampled bytes freed in the series divided by those allocated in it. The result
    /// exceeds 1 if earlier allocations were freed too. `None` if nothing was allocated.
    pub fn freed_share(&self) -> Option<f64> {
        freed_share(&self.allocated, self.freed)
    }
}

/// Returns the freed share of what was allocated in a series; `None` if nothing was.
fn freed_share(allocated: &Sampled, freed: i64) -> Option<f64> {
    let bytes = allocated.bytes();
    (bytes > 0).then(|| freed.max(0) as f64 / bytes as f64)
}

/// Returns the bytes allocated in a series if nearly all are freed in it; 0 otherwise.
pub(super) fn churned(allocated: &Sampled, freed: i64) -> i64 {
    let churns = allocated.hits() >= CHURN_HITS
        && freed_share(allocated, freed).is_some_and(|share| share >= CHURN_FREED);
    if churns { allocated.bytes() } else { 0 }
}

/// Minimum number of sampled hits for a meaningful freed share.
const CHURN_HITS: f64 = 16.0;
/// Minimum freed share for a churning site.
const CHURN_FREED: f64 = 0.9;
