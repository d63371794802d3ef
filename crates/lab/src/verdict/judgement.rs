//! Figures of budgets, and the verdicts on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figure of a budget in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The value, in the budget's unit: bytes, objects, or leaks.
    pub value: f64,
    /// Number of sampled allocations behind the value; absent if it is not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
}

/// Verdict of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The upper bound does not exceed the limit.
    Within,
    /// The lower bound exceeds the limit.
    Over,
    /// Neither; more runs decide.
    Undecided,
}

/// A verdict with its reasons. All numbers are finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Mean over the runs.
    pub mean: f64,
    /// One-sided bounds of the mean; the mean if it is exact, or if nothing is known of its error.
    pub lower: f64,
    pub upper: f64,
    /// The limit it was compared with, in the unit of the values.
    pub limit: f64,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs of earlier sessions in the spread.
    pub earlier_runs: usize,
    /// One-sided confidence of each bound: 0.98.
    pub confidence: f64,
    /// Probability of runs this far above the limit if the true mean is at the limit; 1 if it cannot
    /// be computed.
    pub p_over: f64,
    /// Reason of an undecided verdict, as a clause: `the bounds contain the limit`; or that the
    /// figure is the first of a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Judgement {
    /// Returns the judgement of figures that do not have bounds.
    pub(super) fn unusable(runs: usize, limit: f64, why: &str) -> Self {
        Self {
            verdict: Verdict::Undecided,
            mean: 0.0,
            lower: 0.0,
            upper: 0.0,
            limit: if limit.is_finite() { limit } else { 0.0 },
            runs,
            earlier_runs: 0,
            confidence: 0.0,
            p_over: 1.0,
            why: Some(why.to_owned()),
        }
    }
}
