//! Number of runs that decides a budget.

use heaptap_analyze::sampling::{special, student};
use serde::{Deserialize, Serialize};

use super::change::{Past, lasting_error, log_ratios};
use super::estimate::{objection, values};
use super::interim::MIN_RUNS;
use super::judgement::Measured;
use super::spread::{Spread, mean};

/// Largest number of runs that is planned.
pub const MAX_PLANNED_RUNS: usize = 1000;
/// Confidence of the verdict, in one look.
const CONFIDENCE: f64 = 0.95;
/// Probability of a verdict.
const POWER: f64 = 0.8;
/// Probability on either side of the range.
const OUTSIDE: f64 = 0.1;

/// Number of runs that decides a budget with a probability of 80%.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The number; absent if no number decides, or none up to [`MAX_PLANNED_RUNS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<usize>,
    /// Range that contains the number for the true spread in 80% of the pilots; an end that is
    /// absent is above [`MAX_PLANNED_RUNS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<usize>,
    /// Reason why there is not a number, as a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Plans the runs that decide between a limit and the mean of a pilot. The range contains the error
/// of that mean and that of the pilot's spread.
pub fn plan(runs: &[Measured], limit: f64) -> Plan {
    let (mean, spread) = match pilot(runs) {
        Ok(pilot) => pilot,
        Err(why) => return Plan::none(why),
    };
    let margin = (mean - limit).abs();
    if !margin.is_finite() {
        return Plan::none("the limit is not finite");
    }
    if margin == 0.0 && spread.deviation == 0.0 && runs.iter().all(|run| run.samples.is_none()) {
        // Counts that are exactly at their limit, such as 0 leaks of 0, are within it.
        return Plan {
            needed: Some(MIN_RUNS),
            low: Some(MIN_RUNS),
            high: Some(MIN_RUNS),
            why: None,
        };
    }
    if margin == 0.0 {
        return Plan::none("the mean is at the limit: no number of runs decides");
    }
    let root = (runs.len() as f64).sqrt();
    let ratio = margin / spread.deviation;
    // Distance from the limit in true spreads: the noncentrality of the pilot's own t value.
    let t = root * ratio;
    let bound = |above: f64| {
        if t > 1e3 {
            return ratio;
        }
        let is_below = |shift| student::noncentral_tail(t, spread.freedom, shift) < above;
        special::bisect(-5.0, 5.0 + 5.0 * t, special::TO_LAST_DIGIT, is_below) / root
    };
    Plan::new(ratio, bound(1.0 - OUTSIDE), bound(OUTSIDE))
}

/// Plans the runs that decide between the grown mean of a baseline, `limit`, and the mean of a pilot.
/// `past` has the means of earlier nights: more runs do not make nights or devices more alike.
pub fn plan_change(runs: &[Measured], limit: f64, past: &Past<f64>, change: f64) -> Plan {
    let values = values(runs);
    let margin = (mean(&values) - limit).abs();
    // 0 of 0 is within, as for any number of nights.
    match lasting_error(&values, past, change) {
        _ if values.len() < 2 => plan(runs, limit),
        Some(error) if error <= 0.0 || error < margin => plan(runs, limit),
        _ => Plan::none("more nights are needed: more runs do not show how nights differ"),
    }
}

/// Plans the pairs of runs (old build, new build) that decide about an accepted change, from those
/// of a pilot. Nothing without pairs, or if a value is not positive: its ratio is not defined.
pub fn plan_pairs(pairs: &[(f64, f64)], change: f64) -> Option<Plan> {
    let logs = log_ratios(pairs).filter(|logs| !logs.is_empty())?;
    let logs = logs.into_iter().map(|value| Measured {
        value,
        samples: None,
    });
    Some(plan(&logs.collect::<Vec<_>>(), change.ln_1p()))
}

/// Returns the mean and the spread of a pilot.
fn pilot(runs: &[Measured]) -> Result<(f64, Spread), &'static str> {
    if let Some(why) = objection(runs.iter()) {
        return Err(why);
    }
    let values = values(runs);
    let spread = Spread::new(&values, &[]).ok_or("a spread needs at least 2 runs")?;
    let mean = mean(&values);
    if mean.is_finite() && spread.deviation.is_finite() {
        Ok((mean, spread))
    } else {
        Err("a value is too large")
    }
}

impl Plan {
    /// Returns the plan for the ratio of margin and spread, with the bounds of the true ratio.
    fn new(ratio: f64, largest: f64, smallest: f64) -> Self {
        let needed = needed_runs(ratio);
        Self {
            needed,
            low: needed_runs(largest),
            high: needed_runs(smallest),
            why: needed.is_none().then(|| {
                "the mean is too close to the limit: more than 1,000 runs are needed".to_owned()
            }),
        }
    }

    fn none(why: &str) -> Self {
        Self {
            needed: None,
            low: None,
            high: None,
            why: Some(why.to_owned()),
        }
    }
}

/// Returns the smallest number of runs that decides with a probability of 80%, for the ratio of
/// margin and spread.
fn needed_runs(ratio: f64) -> Option<usize> {
    if ratio <= 0.0 {
        return None;
    }
    let decides = |runs: usize| {
        let freedom = (runs - 1) as f64;
        let shift = (runs as f64).sqrt() * ratio;
        let t = student::point(CONFIDENCE, freedom);
        student::noncentral_tail(t, freedom, shift) >= POWER
    };
    // The power grows with the number; about 6.2 / ratio² + 1.4 runs are needed.
    let guess = (6.2 / (ratio * ratio) + 1.4).min(MAX_PLANNED_RUNS as f64) as usize;
    let mut runs = guess.max(MIN_RUNS);
    while runs > MIN_RUNS && decides(runs - 1) {
        runs -= 1;
    }
    while runs <= MAX_PLANNED_RUNS && !decides(runs) {
        runs += 1;
    }
    (runs <= MAX_PLANNED_RUNS).then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::super::tests::exact;
    use super::*;

    #[test]
    fn needed_runs_are_those_of_the_noncentral_distribution() {
        for (ratio, runs) in [(0.25, 101), (0.5, 27), (1.0, 8), (2.0, 4)] {
            assert_eq!(needed_runs(ratio), Some(runs), "{ratio}");
        }
        assert_eq!(needed_runs(f64::INFINITY), Some(MIN_RUNS));
        assert_eq!(needed_runs(0.05), None);
        assert_eq!(needed_runs(0.08), Some(968));
        assert_eq!(needed_runs(1e-200), None);
        assert_eq!(needed_runs(-1.0), None);
    }

    #[test]
    fn plan_names_a_range_around_the_number() {
        let runs = exact(&[95.0, 97.0, 99.0, 101.0, 103.0]);
        let plan = plan(&runs, 105.0);
        assert_eq!(plan.why, None);
        let (low, needed) = (plan.low.unwrap(), plan.needed.unwrap());
        assert!(
            low <= needed && needed <= plan.high.unwrap_or(usize::MAX),
            "{plan:?}"
        );
    }

    #[test]
    fn pairs_are_planned_by_their_ratios() {
        let pairs = [(100.0, 104.0), (50.0, 53.0), (200.0, 211.0)];
        let ratios: Vec<f64> = pairs
            .iter()
            .map(|(a, b): &(f64, f64)| (b / a).ln())
            .collect();
        let by_ratio = plan(&exact(&ratios), 0.02_f64.ln_1p());
        assert_eq!(plan_pairs(&pairs, 0.02), Some(by_ratio));
        assert_eq!(plan_pairs(&[(0.0, 1.0); 3], 0.02), None);
        assert_eq!(plan_pairs(&[], 0.02), None);
    }

    #[test]
    fn change_within_the_spread_of_nights_needs_nights_and_not_runs() {
        let runs = exact(&[109.0, 110.0, 111.0]);
        let needed = |own: &[f64], others: Vec<Vec<f64>>, limit| {
            let past = Past {
                own: own.to_vec(),
                others,
            };
            plan_change(&runs, limit, &past, 0.0)
        };
        // t(95%, 2) * sqrt(4/3) = 3.37 spreads of nights.
        let near = needed(&[95.0, 100.0, 105.0], Vec::new(), 100.0);
        assert_eq!(near.needed, None);
        assert!(near.why.unwrap().starts_with("more nights are needed"));
        let far = needed(&[99.0, 100.0, 101.0], Vec::new(), 100.0);
        assert_eq!(far, plan(&runs, 100.0));
        // One night is taken to differ as runs do, and another device is not comparable.
        assert_eq!(needed(&[100.0], Vec::new(), 100.0), plan(&runs, 100.0));
        assert_eq!(needed(&[107.0], Vec::new(), 107.0).needed, None);
        assert_eq!(needed(&[], vec![vec![100.0; 3]], 100.0).needed, None);
        let equal = Past {
            own: vec![0.0; 3],
            others: Vec::new(),
        };
        assert_eq!(
            plan_change(&exact(&[0.0; 3]), 0.0, &equal, 0.02).needed,
            Some(3)
        );
    }

    #[test]
    fn plan_at_the_limit_is_no_number() {
        let plan_at = plan(&exact(&[9.0, 10.0, 11.0]), 10.0);
        assert_eq!(plan_at.needed, None);
        assert_eq!(
            plan_at.why.as_deref(),
            Some("the mean is at the limit: no number of runs decides")
        );
        let no_leaks = plan(&exact(&[0.0, 0.0]), 0.0);
        assert_eq!((no_leaks.needed, no_leaks.high), (Some(3), Some(3)));
        let close = plan(&exact(&[9.0, 10.0, 11.0]), 10.001);
        assert_eq!((close.needed, close.high), (None, None));
        assert!(close.low.is_some() && close.why.is_some(), "{close:?}");
    }

    #[test]
    fn equal_runs_need_the_least_number() {
        let equal = plan(&exact(&[9.0; 3]), 10.0);
        assert_eq!((equal.needed, equal.high), (Some(MIN_RUNS), Some(MIN_RUNS)));
    }

    #[test]
    fn unusable_pilots_are_no_plan() {
        for (runs, limit) in [
            (vec![], 1.0),
            (exact(&[1.0]), 2.0),
            (exact(&[1.0, f64::NAN]), 2.0),
            (exact(&[f64::MAX, f64::MAX, -f64::MAX]), 2.0),
            (exact(&[1.0, 2.0]), f64::INFINITY),
        ] {
            let plan = plan(&runs, limit);
            assert!(plan.needed.is_none() && plan.why.is_some(), "{runs:?}");
        }
    }
}
