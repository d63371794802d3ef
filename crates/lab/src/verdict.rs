//! Verdicts of budgets from repeated measurements.

use serde::{Deserialize, Serialize};

/// Figure of a budget in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value, in the budget's unit: bytes, objects, or leaks.
    pub value: f64,
    /// Number of sampled allocations behind the value; absent if it is not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<f64>,
}

/// Verdict of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The upper bound does not exceed the limit.
    Within,
    /// The lower bound exceeds the limit.
    Over,
    /// Neither; more runs decide.
    Undecided,
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Mean over the runs.
    pub mean: f64,
    /// One-sided bounds of the mean.
    pub lower: f64,
    pub upper: f64,
    /// The limit it was compared with, in the unit of the values.
    pub limit: f64,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs of earlier sessions in the spread.
    pub earlier_runs: usize,
    /// Reason of an undecided verdict, as a clause: `the bounds contain the limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
