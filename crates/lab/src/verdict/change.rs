//! Changes: against a baseline, and of two builds measured in pairs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spread::{Hits, Sampling, Spread, counted, mean};
use super::{Estimate, Judgement, Looks, Measured, objection, values};

/// Least number of nights whose means show how nights differ.
pub const MIN_NIGHTS: usize = 3;

/// Judges a figure against the mean of a baseline that may grow by `change` (0.02 for 2%). The
/// limit of the judgement is that of the mean; the bounds contain the error of the baseline too.
/// `floor` as for [`super::judge`].
///
/// The baseline is the runs of each earlier night. From [`MIN_NIGHTS`] nights, a night is the unit:
/// the new mean is one more, and its error at least that of a night. Fewer nights do not show how
/// nights differ; they are taken to differ as much as runs do.
pub fn judge_change(
    runs: &[Measured],
    nights: &[&[Measured]],
    change: f64,
    floor: f64,
    looks: Looks,
) -> Judgement {
    // A baseline that grew by the accepted change: what the runs are at the limit.
    let factor = 1.0 + change;
    let baseline = nights.concat();
    let grown: Vec<Vec<f64>> = (nights.iter())
        .filter(|night| !night.is_empty())
        .map(|night| night.iter().map(|run| run.value * factor).collect())
        .collect();
    let means: Vec<f64> = grown.iter().map(|night| mean(night)).collect();
    let is_by_night = means.len() >= MIN_NIGHTS;
    let limit = mean(&if is_by_night {
        means.clone()
    } else {
        grown.concat()
    });
    let all = || runs.iter().chain(&baseline);
    let why = if baseline.is_empty() {
        Some("the baseline does not have runs")
    } else if all().any(|run| run.value < 0.0) {
        Some("a value is negative")
    } else if factor < 0.0 {
        Some("the accepted change is below -100%")
    } else {
        objection(all())
    };
    if let Some(why) = why {
        return Judgement::unusable(runs.len(), limit, why);
    }
    let values = values(runs);
    let per_night = 1.0 + 1.0 / means.len() as f64;
    let per_run = 1.0 / runs.len().max(1) as f64 + 1.0 / baseline.len() as f64;
    let per_run = if is_by_night {
        per_run
    } else {
        per_run + per_night
    };
    let by_run = Spread::new(&values, &grown).map(|spread| (spread, per_run));
    let by_night = is_by_night.then(|| Spread::new(&means, &[])).flatten();
    Estimate {
        mean: mean(&values),
        spreads: (by_run.into_iter())
            .chain(by_night.map(|spread| (spread, per_night)))
            .collect(),
        sampling: Sampling {
            own: Hits::new(runs, floor),
            other: Hits::new(&baseline, floor).map(|hits| hits.scaled(factor)),
        },
    }
    .judge(runs.len(), counted(nights), limit, floor, looks)
}

/// Change between two builds, measured in pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedChange {
    pub pairs: usize,
    /// Typical change from the old build to the new one: 0.02 for 2%.
    pub change: f64,
    /// One-sided bounds of the change, with the confidence of its judgement.
    pub lower: f64,
    pub upper: f64,
}

/// Judges a figure over pairs of runs (old build, new build) by t on the logarithms of new/old. The
/// judgement is in the unit of the values: the new build's typical value against that of the old
/// build grown by `change` (0.02 for 2%). Measure the pairs in the order old new, new old, old new:
/// a drift of the device then cancels. A pair is a run of the `looks`.
///
/// Values that are not positive have no ratio: then the means are compared, and there is no
/// [`PairedChange`]. `floor` as for [`super::judge`].
pub fn judge_builds(
    pairs: &[(Measured, Measured)],
    change: f64,
    floor: f64,
    looks: Looks,
) -> (Judgement, Option<PairedChange>) {
    let (old, new): (Vec<Measured>, Vec<Measured>) = pairs.iter().copied().unzip();
    let values: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a.value, b.value)).collect();
    let Some(logs) = log_ratios(&values).filter(|logs| !logs.is_empty()) else {
        return (judge_change(&new, &[&old], change, floor, looks), None);
    };
    let old: Vec<f64> = values.iter().map(|(old, _)| old.ln()).collect();
    let typical = mean(&old).exp();
    let least = if floor > 1.0 { floor / typical } else { 0.0 };
    let changes = judge_logs(&logs, change, least, looks);
    let in_unit = |change: f64| typical * (1.0 + change);
    let judgement = Judgement {
        mean: in_unit(changes.mean),
        lower: in_unit(changes.lower),
        upper: in_unit(changes.upper),
        limit: in_unit(changes.limit),
        ..changes.clone()
    };
    let change = PairedChange {
        pairs: pairs.len(),
        change: changes.mean,
        lower: changes.lower,
        upper: changes.upper,
    };
    (judgement, Some(change))
}

/// Judges logarithms of ratios; `least` is the least spread assumed.
fn judge_logs(logs: &[f64], change: f64, least: f64, looks: Looks) -> Judgement {
    let spread = Spread::new(logs, &[]).map(|spread| Spread {
        deviation: spread.deviation.max(least),
        ..spread
    });
    let judgement = Estimate {
        mean: mean(logs),
        spreads: Estimate::by_run(spread, logs.len()),
        sampling: Sampling::default(),
    }
    .judge(logs.len(), 0, change.ln_1p(), 0.0, looks);
    let changes = Judgement {
        mean: judgement.mean.exp_m1(),
        lower: judgement.lower.exp_m1(),
        upper: judgement.upper.exp_m1(),
        limit: change,
        ..judgement
    };
    if changes.upper.is_finite() && change.is_finite() {
        changes
    } else {
        Judgement::unusable(logs.len(), change, "the spread of the pairs is too large")
    }
}

/// Returns the logarithms of B/A; nothing if a value is not positive and finite.
pub(super) fn log_ratios(pairs: &[(f64, f64)]) -> Option<Vec<f64>> {
    let is_usable = |x: f64| x.is_finite() && x > 0.0;
    let log = |&(a, b): &(f64, f64)| (is_usable(a) && is_usable(b)).then(|| b.ln() - a.ln());
    pairs.iter().map(log).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn exact(values: &[f64]) -> Vec<Measured> {
        let run = |&value| Measured {
            value,
            samples: None,
        };
        values.iter().map(run).collect()
    }

    #[test]
    fn change_has_the_error_of_the_baseline() {
        let runs = exact(&[109.0, 110.0, 111.0]);
        let baseline = exact(&[99.0, 100.0, 101.0]);
        let looks = Looks::new(3, 3);
        let judgement = judge_change(&runs, &[&baseline], 0.02, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Over);
        assert!((judgement.limit - 102.0).abs() < 1e-9);
        // t(95%, 4) = 2.132; deviations 1 and 1.02.
        let error = 2.1318 * ((1.0 + 1.02 * 1.02) / 2.0_f64).sqrt() * (2.0_f64 / 3.0).sqrt();
        assert!(
            (judgement.lower - (110.0 - error)).abs() < 1e-3,
            "{judgement:?}"
        );
        assert_eq!(judgement.earlier_runs, 3);
        let judgement = judge_change(&runs, &[&baseline], 0.10, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Undecided);
        let judgement = judge_change(&runs, &[&baseline], 0.15, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Within);
    }

    #[test]
    fn change_has_the_sampling_error_of_both_sides() {
        let sampled = |value: f64, samples| {
            vec![
                Measured {
                    value,
                    samples: Some(samples),
                };
                3
            ]
        };
        let looks = Looks::new(3, 3);
        let judge = |samples| {
            let baseline = sampled(100.0, samples);
            judge_change(&sampled(110.0, 1e9), &[&baseline], 0.0, 1.0, looks).verdict
        };
        assert_eq!(judge(1e9), Verdict::Over);
        assert_eq!(judge(30.0), Verdict::Undecided);
    }

    #[test]
    fn equal_counts_are_compared_exactly() {
        let looks = Looks::new(3, 3);
        let judge = |runs: &[f64], baseline: &[f64]| {
            judge_change(&exact(runs), &[&exact(baseline)], 0.02, 1.0, looks).verdict
        };
        assert_eq!(judge(&[0.0; 3], &[0.0; 3]), Verdict::Within);
        assert_eq!(judge(&[1.0; 3], &[0.0; 3]), Verdict::Over);
        assert_eq!(judge(&[0.0, 1.0, 0.0], &[0.0; 3]), Verdict::Undecided);
    }

    #[test]
    fn three_nights_are_compared_by_their_means() {
        let nights = [
            [99.0, 100.0, 101.0],
            [109.0, 110.0, 111.0],
            [119.0, 120.0, 121.0],
        ];
        let nights = nights.map(|night| exact(&night));
        let all = nights.each_ref().map(Vec::as_slice);
        let looks = Looks::new(3, 3);
        let judge = |runs: &[f64], nights: &[&[Measured]]| {
            judge_change(&exact(runs), nights, 0.0, 1.0, looks)
        };
        // t(95%, 2) = 2.920; the means spread by 10.
        let judgement = judge(&[129.0, 130.0, 131.0], &all);
        let error = 2.9200 * 10.0 * (1.0_f64 + 1.0 / 3.0).sqrt();
        assert!(
            (judgement.lower - (130.0 - error)).abs() < 1e-2,
            "{judgement:?}"
        );
        assert_eq!((judgement.limit, judgement.earlier_runs), (110.0, 9));
        assert_eq!(judgement.verdict, Verdict::Undecided);
        // Two nights do not show how nights differ.
        assert_eq!(
            judge(&[129.0, 130.0, 131.0], &all[..2]).verdict,
            Verdict::Over
        );
        // New runs that spread more than nights do are no more exact for it.
        let wide = judge(&[20.0, 130.0, 240.0], &all);
        assert!(wide.upper - wide.lower > 300.0, "{wide:?}");
    }

    #[test]
    fn unusable_baselines_are_undecided() {
        let runs = exact(&[1.0; 3]);
        let looks = Looks::new(3, 3);
        for (baseline, change) in [
            (vec![], 0.02),
            (exact(&[-1.0]), 0.02),
            (exact(&[f64::NAN]), 0.02),
            (exact(&[1.0]), f64::INFINITY),
            (exact(&[1.0]), f64::NAN),
            (exact(&[1.0]), -2.0),
        ] {
            let judgement = judge_change(&runs, &[&baseline], change, 1.0, looks);
            assert_eq!(judgement.verdict, Verdict::Undecided, "{baseline:?}");
            assert!(judgement.why.is_some() && judgement.limit.is_finite());
        }
    }

    #[test]
    fn pairs_are_compared_by_their_ratios() {
        let values = [(100.0, 105.0), (200.0, 212.0), (50.0, 52.0)];
        let looks = Looks::new(3, 3);
        let judged =
            |values: &[(f64, f64)], change| judge_builds(&pairs(values), change, 0.0, looks);
        let (judgement, change) = judged(&values, 0.02);
        let change = change.unwrap();
        assert!((change.change - 0.05).abs() < 1e-3, "{change:?}");
        assert!(change.lower < 0.05 && change.upper > 0.05);
        assert_eq!(judgement.verdict, Verdict::Over);
        let verdict = |values: &[(f64, f64)], change| judged(values, change).0.verdict;
        assert_eq!(verdict(&values, 0.05), Verdict::Undecided);
        assert_eq!(verdict(&values, 0.10), Verdict::Within);
        let wild = [(1e300, 1e-300), (1e-300, 1e300), (1.0, 1.0)];
        assert_eq!(verdict(&wild, 0.02), Verdict::Undecided);
        assert_eq!(verdict(&values, f64::NAN), Verdict::Undecided);
    }

    /// Pairs of figures that are not sampled.
    fn pairs(values: &[(f64, f64)]) -> Vec<(Measured, Measured)> {
        let old: Vec<f64> = values.iter().map(|(old, _)| *old).collect();
        let new: Vec<f64> = values.iter().map(|(_, new)| *new).collect();
        exact(&old).into_iter().zip(exact(&new)).collect()
    }

    #[test]
    fn builds_are_judged_in_the_unit_of_their_values() {
        let looks = Looks::new(3, 3);
        let values = [(100.0, 105.0), (200.0, 212.0), (50.0, 52.0)];
        let (judgement, change) = judge_builds(&pairs(&values), 0.02, 1.0, looks);
        let change = change.unwrap();
        assert_eq!(judgement.verdict, Verdict::Over);
        // The geometric mean of the old build.
        assert!((judgement.limit - 102.0).abs() < 1e-9, "{judgement:?}");
        assert!((judgement.mean - 100.0 * (1.0 + change.change)).abs() < 1e-9);
        assert!((judgement.lower - 100.0 * (1.0 + change.lower)).abs() < 1e-9);
        // Pages of 4 KiB: one more in every run is not known better than a page.
        let page = [(40_960.0, 45_056.0); 3];
        let judged = |floor| judge_builds(&pairs(&page), 0.05, floor, looks).0.verdict;
        assert_eq!(judged(1.0), Verdict::Over);
        assert_eq!(judged(4_096.0), Verdict::Undecided);
    }

    #[test]
    fn builds_with_zeros_are_compared_by_their_means() {
        let looks = Looks::new(3, 3);
        for (values, verdict) in [
            ([(0.0, 0.0); 3], Verdict::Within),
            ([(0.0, 2.0); 3], Verdict::Over),
            ([(2.0, 0.0); 3], Verdict::Within),
            ([(f64::NAN, 1.0); 3], Verdict::Undecided),
        ] {
            let (judgement, change) = judge_builds(&pairs(&values), 0.05, 1.0, looks);
            assert_eq!((judgement.verdict, change), (verdict, None), "{values:?}");
        }
        let (judgement, _) = judge_builds(&[], 0.05, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Undecided);
    }
}
