//! A mean with its errors, and its comparison with a limit.

use heaptap_analyze::sampling::{special, student};

use super::interim::{InterimAnalyses, MIN_RUNS};
use super::judgement::{Judgement, Measured, Verdict};
use super::spread::{Sampling, Spread};

/// A mean with its errors.
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// Spreads, each with the variance of the mean in its variances: 1/n for that of n runs. The
    /// widest bounds count.
    pub(super) spreads: Vec<(Spread, f64)>,
    pub(super) sampling: Sampling,
    /// Reason why it does not decide, whatever the bounds are.
    pub(super) objection: Option<String>,
}

impl Estimate {
    pub(super) fn by_run(spread: Option<Spread>, runs: usize) -> Vec<(Spread, f64)> {
        let per_run = 1.0 / runs.max(1) as f64;
        spread.map(|spread| (spread, per_run)).into_iter().collect()
    }

    /// Compares the estimate with a limit.
    pub(super) fn judge(
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

pub(super) fn values(runs: &[Measured]) -> Vec<f64> {
    runs.iter().map(|run| run.value).collect()
}

/// Returns the reason why figures cannot be used.
pub(super) fn objection<'a>(mut runs: impl Iterator<Item = &'a Measured>) -> Option<&'static str> {
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
pub(super) fn untried(
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
