//! Verdicts of budgets from repeated measurements.
//!
//! The bounds of a mean are Student's t on the runs, one-sided, and never narrower than the
//! sampling error of all samples together. Earlier runs of the scenario narrow the spread. A budget
//! is judged after a planned number of runs ([`InterimAnalyses`]), so that all verdicts together are wrong in
//! at most 5% of the budgets exactly at their limit.

mod change;
mod estimate;
mod growth;
mod holm;
mod interim;
mod judgement;
mod plan;
mod spread;

pub use change::{PairedChange, Past, judge_builds, judge_change};
pub use growth::{MIN_ROUNDS, rounds_before_half, slope_of_second_half, slope_step};
pub use holm::holm;
pub use interim::{InterimAnalyses, MIN_RUNS};
pub use judgement::{Judgement, Measured, Verdict};
pub use plan::{MAX_PLANNED_RUNS, Plan, plan, plan_change, plan_pairs};

use estimate::{Estimate, objection, untried, values};
use spread::{Hits, Sampling, Spread, counted, mean};

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

#[cfg(test)]
mod tests;
