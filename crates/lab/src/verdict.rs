//! Verdicts of budgets from repeated measurements.
//!
//! The bounds of a mean are Student's t on the runs, one-sided, and never narrower than the
//! sampling error of all samples together. Earlier runs of the scenario narrow the spread. A budget
//! is judged after a planned number of runs ([`InterimAnalyses`]), so that all verdicts together are wrong in
//! at most 5% of the budgets exactly at their limit.

mod change;
mod growth;
mod holm;
mod interim;
mod plan;
mod spread;

use heaptap_analyze::sampling::{special, student};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use change::{PairedChange, Past, judge_builds, judge_change};
pub use growth::{MIN_ROUNDS, rounds_before_half, slope_of_second_half, slope_step};
pub use holm::holm;
pub use interim::{InterimAnalyses, MIN_RUNS};
pub use plan::{MAX_PLANNED_RUNS, Plan, plan, plan_change, plan_pairs};

use spread::{Hits, Sampling, Spread, counted, mean};

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

/// Judges a figure of 0 or more against a limit.
///
/// `nights` are the same figure's runs of each earlier night: their spread is pooled in. `floor` is
/// the smallest step of the values: 4,096 for PSS, 1 for counts and exact bytes, the sampling
/// interval for sampled bytes. Above 1, it is the least spread assumed; if it is at most 1, equal
/// values are exact, and one object where the limit is 0 is over at once.
pub fn judge(
    runs: &[Measured],
    nights: &[&[Measured]],
    limit: f64,
    floor: f64,
    looks: InterimAnalyses,
) -> Judgement {
    let earlier = nights.iter().copied().flatten();
    if runs.iter().chain(earlier).any(|run| run.value < 0.0) {
        return Judgement::unusable(runs.len(), limit, "a value is negative");
    }
    let judgement = judge_growth(runs, nights, limit, floor, looks);
    let judgement = Judgement {
        lower: judgement.lower.max(0.0),
        ..judgement
    };
    let is_exact = floor <= 1.0 && runs.iter().all(|run| run.samples.is_none());
    if is_exact && limit == 0.0 && judgement.mean > 0.0 {
        return Judgement {
            verdict: Verdict::Over,
            lower: judgement.mean,
            upper: judgement.upper.max(judgement.mean),
            p_over: 0.0,
            why: None,
            ..judgement
        };
    }
    judgement
}

/// Judges a figure that can be negative, such as the slope of [`slope_of_second_half`], like
/// [`judge`]. A slope does not have `samples`: the spread of the runs contains its sampling error.
/// Its `floor` is that of [`slope_step`].
pub fn judge_growth(
    runs: &[Measured],
    nights: &[&[Measured]],
    limit: f64,
    floor: f64,
    looks: InterimAnalyses,
) -> Judgement {
    let earlier = nights.iter().copied().flatten();
    if let Some(why) = objection(runs.iter().chain(earlier)) {
        return Judgement::unusable(runs.len(), limit, why);
    }
    let values = values(runs);
    let past: Vec<Vec<f64>> = nights.iter().map(|night| self::values(night)).collect();
    let spreads = Estimate::by_run(Spread::new(&values, &past), runs.len());
    Estimate {
        mean: mean(&values),
        objection: untried(&values, &past, &spreads, floor),
        spreads,
        sampling: Sampling {
            own: Hits::new(runs, floor),
            other: None,
        },
    }
    .judge(runs.len(), counted(nights), limit, floor, looks)
}

fn values(runs: &[Measured]) -> Vec<f64> {
    runs.iter().map(|run| run.value).collect()
}

/// Returns the reason why figures cannot be used.
fn objection<'a>(mut runs: impl Iterator<Item = &'a Measured>) -> Option<&'static str> {
    runs.find_map(|run| {
        if !run.value.is_finite() {
            return Some("a value is not finite");
        }
        let samples = run.samples.unwrap_or(0.0);
        if !samples.is_finite() || samples < 0.0 {
            return Some("a number of samples is negative or not finite");
        }
        None
    })
}

/// Returns why too few runs do not decide if their value is new among equal ones: those do not show
/// how the new value spreads.
fn untried(
    values: &[f64],
    past: &[Vec<f64>],
    spreads: &[(Spread, f64)],
    floor: f64,
) -> Option<String> {
    let is_exact = floor <= 1.0 && spreads.iter().all(|(spread, _)| spread.deviation == 0.0);
    let is_new = values
        .iter()
        .any(|value| !past.iter().flatten().any(|old| old == value));
    (is_exact && is_new && values.len() < MIN_RUNS).then(|| {
        format!("the value differs from all earlier ones: a verdict needs {MIN_RUNS} runs")
    })
}

/// A mean with its errors.
struct Estimate {
    mean: f64,
    /// Spreads, each with the variance of the mean in its variances: 1/n for that of n runs. The
    /// widest bounds count.
    spreads: Vec<(Spread, f64)>,
    sampling: Sampling,
    /// Reason why it does not decide, whatever the bounds are.
    objection: Option<String>,
}

impl Estimate {
    fn by_run(spread: Option<Spread>, runs: usize) -> Vec<(Spread, f64)> {
        let per_run = 1.0 / runs.max(1) as f64;
        spread.map(|spread| (spread, per_run)).into_iter().collect()
    }

    /// Compares the estimate with a limit.
    fn judge(
        self,
        runs: usize,
        earlier: usize,
        limit: f64,
        floor: f64,
        looks: InterimAnalyses,
    ) -> Judgement {
        if runs == 0 {
            return Judgement::unusable(0, limit, "no run has the figure");
        }
        if !limit.is_finite() {
            return Judgement::unusable(runs, limit, "the limit is not finite");
        }
        let confidence = looks.confidence(earlier);
        let by_run = self.by_spread(confidence, limit, floor);
        let by_sample = self.by_sample(confidence, limit);
        let lower = self.mean - by_run.below.max(by_sample.below);
        let upper = self.mean + by_run.above.max(by_sample.above);
        let p_over = by_run.p_over.max(by_sample.p_over);
        if ![lower, upper, p_over].iter().all(|x| x.is_finite()) {
            return Judgement::unusable(runs, limit, "a value is too large");
        }
        let sampling_decides =
            self.mean - by_sample.below > limit || self.mean + by_sample.above <= limit;
        let objection = looks.objection(runs, earlier).or(self.objection);
        let (verdict, why) = match objection {
            Some(why) => (Verdict::Undecided, Some(why)),
            None if lower > limit => (Verdict::Over, None),
            None if upper <= limit => (Verdict::Within, None),
            None => {
                let why = if sampling_decides {
                    "the bounds contain the limit"
                } else {
                    "the sampling error contains the limit; a smaller interval reduces it"
                };
                (Verdict::Undecided, Some(why.to_owned()))
            }
        };
        Judgement {
            verdict,
            mean: self.mean,
            lower,
            upper,
            limit,
            runs,
            earlier_runs: (self.spreads.first()).map_or(0, |(spread, _)| spread.earlier_runs),
            confidence,
            p_over,
            why,
        }
    }

    /// Returns the widest error by the spreads, which are at least `floor` if that is above 1.
    fn by_spread(&self, confidence: f64, limit: f64, floor: f64) -> MeanError {
        let mut widest = MeanError::default();
        if self.spreads.is_empty() {
            widest.p_over = 1.0;
        }
        for (spread, variance) in &self.spreads {
            let least = if floor > 1.0 { floor } else { 0.0 };
            let error = spread.deviation.max(least) * variance.sqrt();
            let width = student::point(confidence, spread.freedom) * error;
            widest.below = widest.below.max(width);
            widest.above = widest.below;
            widest.p_over = widest.p_over.max(match self.mean - limit {
                excess if error > 0.0 => student::tail(excess / error, spread.freedom),
                excess if excess > 0.0 => 0.0,
                _ => 1.0,
            });
        }
        widest
    }

    /// Returns the error by sampling; 0 if the figure is not sampled.
    fn by_sample(&self, confidence: f64, limit: f64) -> MeanError {
        if !self.sampling.is_some() {
            return MeanError::default();
        }
        let z = special::normal_point(1.0 - confidence);
        MeanError {
            below: self.sampling.below(z),
            above: self.sampling.above(z),
            p_over: self.sampling.tail(self.mean - limit),
        }
    }
}

/// Distances of the bounds from the mean, and the probability of a mean this far above the limit.
#[derive(Default)]
struct MeanError {
    below: f64,
    above: f64,
    p_over: f64,
}

impl Judgement {
    /// Returns the judgement of figures that do not have bounds.
    fn unusable(runs: usize, limit: f64, why: &str) -> Self {
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

#[cfg(test)]
mod tests;
