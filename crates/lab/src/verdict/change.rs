//! Changes: against a baseline, and of two builds measured in pairs.

use std::collections::BTreeMap;

use heaptap_analyze::sampling::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{Estimate, objection, untried, values};
use super::interim::InterimAnalyses;
use super::judgement::{Judgement, Measured};
use super::spread::{Hits, Sampling, Spread, counted, mean};

/// Least number of nights whose means show how nights differ.
pub(crate) const MIN_NIGHTS: usize = 3;
/// Least number of other devices whose means show how devices differ.
const MIN_DEVICES: usize = 2;

/// Figures of earlier nights, by device.
#[derive(Debug, Clone, PartialEq)]
pub struct Past<T> {
    /// Nights of the measured device.
    pub own: Vec<T>,
    /// Nights of each other device.
    pub others: Vec<Vec<T>>,
}

impl<T> Past<T> {
    /// Sorts nights by device. One of an unknown device is taken as one of the measured device.
    pub fn new<'a>(device: &str, nights: impl IntoIterator<Item = (Option<&'a str>, T)>) -> Self {
        let (mut own, mut others) = (Vec::new(), BTreeMap::<&str, Vec<T>>::new());
        for (of, night) in nights {
            match of {
                Some(other) if other != device => others.entry(other).or_default().push(night),
                _ => own.push(night),
            }
        }
        Self {
            own,
            others: others.into_values().collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.others.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &T> {
        self.own.iter().chain(self.others.iter().flatten())
    }

    pub(super) fn map<U>(&self, each: impl Fn(&T) -> U) -> Past<U> {
        let others = self.others.iter();
        Past {
            own: self.own.iter().map(&each).collect(),
            others: others
                .map(|nights| nights.iter().map(&each).collect())
                .collect(),
        }
    }
}

/// Judges a figure against the mean of a baseline that may grow by `change` (0.02 for 2%). The
/// limit of the judgement is that of the mean; the bounds contain the error of the baseline too.
/// `floor` as for [`super::judge`].
///
/// The baseline is the runs of each earlier night of the device. From 3 nights, a night is the unit:
/// the new mean is one more, and its error at least that of a night. Fewer nights do not show how
/// nights differ, unless those of other devices do; they are taken to differ as much as runs do. A
/// device without nights is one more of the others.
pub fn judge_change(
    runs: &[Measured],
    past: &Past<&[Measured]>,
    change: f64,
    floor: f64,
    looks: InterimAnalyses,
) -> Judgement {
    let mut past = past.clone();
    past.own.retain(|night| !night.is_empty());
    for nights in &mut past.others {
        nights.retain(|night| !night.is_empty());
    }
    past.others.retain(|nights| !nights.is_empty());
    let factor = 1.0 + change;
    let grown = past.map(|night| night.iter().map(|run| run.value * factor).collect());
    let nights: Vec<&[Measured]> = past.all().copied().collect();
    let compared = match past.own.is_empty() {
        true => past.others.concat().concat(),
        false => past.own.concat(),
    };
    let limit = Reference::new(&grown);
    compare(runs, &nights, &compared, factor, limit, floor, looks)
}

/// What a figure is compared with: a mean with its error.
struct Reference {
    mean: f64,
    /// Variance of the mean in those of a run, and of what is taken to differ as much as runs do.
    per_run: f64,
    /// Spread of nights or devices, with the variance of one more, less the mean, in it.
    units: Option<(Spread, f64)>,
    objection: Option<String>,
}

impl Reference {
    /// Returns the reference for a device's next night.
    fn new(past: &Past<Vec<f64>>) -> Self {
        let means = past.map(|night| mean(night));
        let own = &means.own[..];
        let others: Vec<&[f64]> = means.others.iter().map(Vec::as_slice).collect();
        // Of few nights, those of other devices show the spread.
        let by_night = match own.len() >= MIN_NIGHTS {
            true => Spread::new(own, &means.others),
            false => Spread::of_nights(&[&others[..], &[own]].concat()),
        };
        let by_night = by_night.filter(|spread| spread.freedom >= (MIN_NIGHTS - 1) as f64);
        if own.is_empty() && !others.is_empty() {
            return Self::of_devices(past, &others, by_night);
        }
        let per_night = 1.0 + 1.0 / own.len() as f64;
        let per_run = per_run(&past.own);
        Self {
            mean: mean(own),
            per_run: match by_night {
                Some(_) => per_run,
                None => per_run + per_night,
            },
            units: by_night.map(|spread| (spread.of_units(), per_night)),
            objection: None,
        }
    }

    /// Returns the reference for a device without nights, from the means of the nights of others.
    fn of_devices(past: &Past<Vec<f64>>, devices: &[&[f64]], by_night: Option<Spread>) -> Self {
        let means: Vec<f64> = devices.iter().map(|nights| mean(nights)).collect();
        let count = means.len() as f64;
        let runs: f64 = past.others.iter().map(|nights| per_run(nights)).sum();
        // The new mean is that of one night; a device's mean contains less of the nights' spread.
        let night = by_night.map_or(0.0, |spread| spread.deviation);
        let units = Spread::of_nights(&[&means]).map(|spread| Spread {
            deviation: spread.deviation.hypot(night),
            ..spread.of_units()
        });
        Self {
            mean: mean(&means),
            per_run: runs / (count * count),
            units: units.map(|spread| (spread, 1.0 + 1.0 / count)),
            objection: (means.len() < MIN_DEVICES).then(|| {
                "the baseline has only another device, and does not show how devices differ"
                    .to_owned()
            }),
        }
    }
}

/// Returns the variance of the mean of nights' means, in those of a run.
fn per_run(nights: &[Vec<f64>]) -> f64 {
    let of_night = nights.iter().map(|night| 1.0 / night.len().max(1) as f64);
    of_night.sum::<f64>() / (nights.len() * nights.len()).max(1) as f64
}

/// Compares a figure with a reference. `nights` have the spread of runs, and `compared` are the
/// runs of the reference before it grew by `factor`.
fn compare(
    runs: &[Measured],
    nights: &[&[Measured]],
    compared: &[Measured],
    factor: f64,
    limit: Reference,
    floor: f64,
    looks: InterimAnalyses,
) -> Judgement {
    let all = || runs.iter().chain(nights.iter().copied().flatten());
    let why = if compared.is_empty() {
        Some("the baseline does not have runs")
    } else if all().any(|run| run.value < 0.0) {
        Some("a value is negative")
    } else if factor < 0.0 {
        Some("the accepted change is below -100%")
    } else {
        objection(all())
    };
    if let Some(why) = why {
        return Judgement::unusable(runs.len(), limit.mean, why);
    }
    let own = values(runs);
    let past: Vec<Vec<f64>> = nights.iter().map(|night| values(night)).collect();
    let grow = |night: &Vec<f64>| night.iter().map(|value| value * factor).collect();
    let grown: Vec<Vec<f64>> = past.iter().map(grow).collect();
    let per_run = 1.0 / runs.len().max(1) as f64 + limit.per_run;
    let by_run = Spread::new(&own, &grown).map(|spread| (spread, per_run));
    let spreads: Vec<_> = by_run.into_iter().chain(limit.units).collect();
    let judged = Estimate {
        mean: mean(&own),
        objection: (limit.objection).or_else(|| untried(&own, &past, &spreads, floor)),
        spreads,
        sampling: Sampling {
            own: Hits::new(runs, floor),
            other: Hits::new(compared, floor).map(|hits| hits.scaled(factor)),
        },
    }
    .judge(runs.len(), counted(nights), limit.mean, floor, looks);
    Judgement {
        lower: judged.lower.max(0.0),
        ..judged
    }
}

/// Returns the part of the error of a change that more runs do not reduce, at 95%: that of the
/// nights or devices of the baseline, of which `past` has the means. Nothing if they cannot decide.
pub(super) fn lasting_error(runs: &[f64], past: &Past<f64>, change: f64) -> Option<f64> {
    let limit = Reference::new(&past.map(|night| vec![night * (1.0 + change)]));
    let (spread, variance) = match limit.units {
        Some(units) => units,
        // Without the variance of the nights' own runs, whose number is not known.
        None => (
            Spread::new(runs, &[])?,
            1.0 + 1.0 / past.own.len().max(1) as f64,
        ),
    };
    let error = student::point(0.95, spread.freedom) * spread.deviation * variance.sqrt();
    limit.objection.is_none().then_some(error)
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
    looks: InterimAnalyses,
) -> (Judgement, Option<PairedChange>) {
    let (old, new): (Vec<Measured>, Vec<Measured>) = pairs.iter().copied().unzip();
    let values: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a.value, b.value)).collect();
    let Some(logs) = log_ratios(&values).filter(|logs| !logs.is_empty()) else {
        let factor = 1.0 + change;
        let grown: Vec<f64> = old.iter().map(|run| run.value * factor).collect();
        // Both builds are of the same night.
        let limit = Reference {
            mean: mean(&grown),
            per_run: per_run(&[grown]),
            units: None,
            objection: None,
        };
        let judged = compare(&new, &[&old], &old, factor, limit, floor, looks);
        return (judged, None);
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
fn judge_logs(logs: &[f64], change: f64, least: f64, looks: InterimAnalyses) -> Judgement {
    let spread = Spread::new(logs, &[]).map(|spread| Spread {
        deviation: spread.deviation.max(least),
        ..spread
    });
    let judgement = Estimate {
        mean: mean(logs),
        spreads: Estimate::by_run(spread, logs.len()),
        sampling: Sampling::default(),
        objection: None,
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
    use super::super::judgement::Verdict;
    use super::super::tests::exact;
    use super::*;

    fn own<'a>(nights: &[&'a [Measured]]) -> Past<&'a [Measured]> {
        Past {
            own: nights.to_vec(),
            others: Vec::new(),
        }
    }

    #[test]
    fn nights_are_sorted_by_device() {
        let nights = [
            (Some("b"), 1),
            (None, 2),
            (Some("a"), 3),
            (Some("c"), 4),
            (Some("b"), 5),
        ];
        let past = Past::new("a", nights);
        assert_eq!(
            (past.own, past.others),
            (vec![2, 3], vec![vec![1, 5], vec![4]])
        );
        assert!(Past::<u8>::new("a", []).is_empty());
    }

    #[test]
    fn a_device_without_nights_is_one_more_of_the_others() {
        let nights = [100.0, 110.0].map(|at| exact(&[at - 1.0, at, at + 1.0]));
        let devices = [0, 1].map(|device| vec![&nights[device][..]]);
        let looks = InterimAnalyses::new(3, 3);
        let judge = |others: &[Vec<&[Measured]>]| {
            let past = Past {
                own: Vec::new(),
                others: others.to_vec(),
            };
            judge_change(&exact(&[149.0, 150.0, 151.0]), &past, 0.0, 1.0, looks)
        };
        let judgement = judge(&devices);
        // t(95%, 1) = 6.314; the means spread by 7.07.
        let error = 6.3138 * 50.0_f64.sqrt() * 1.5_f64.sqrt();
        assert!(
            (judgement.lower - (150.0 - error)).abs() < 1e-2,
            "{judgement:?}"
        );
        assert_eq!(
            (judgement.verdict, judgement.limit),
            (Verdict::Undecided, 105.0)
        );
        let judgement = judge(&devices[..1]);
        assert_eq!(judgement.verdict, Verdict::Undecided);
        assert!(judgement.why.unwrap().contains("how devices differ"));
        // A night of its own is compared instead, with the spread of the others' nights.
        let mut past = own(&[&nights[0]]);
        past.others = vec![vec![&nights[0], &nights[1], &nights[0]]];
        let judged = judge_change(&exact(&[104.0, 105.0, 106.0]), &past, 0.0, 1.0, looks);
        // t(95%, 2) = 2.920; the other's means spread by 5.77.
        let error = 2.9200 * (100.0 / 3.0_f64).sqrt() * 2.0_f64.sqrt();
        assert!((judged.lower - (105.0 - error)).abs() < 1e-2, "{judged:?}");
        assert_eq!(judged.limit, 100.0);
    }

    #[test]
    fn a_new_value_after_equal_ones_needs_three_runs() {
        let nights = vec![exact(&[5.0; 4]); 3];
        let past = own(&nights.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let judge = |runs: &[f64]| {
            judge_change(&exact(runs), &past, 0.02, 1.0, InterimAnalyses::new(1, 3)).verdict
        };
        assert_eq!(judge(&[5.0]), Verdict::Within);
        assert_eq!(judge(&[6.0]), Verdict::Undecided);
        assert_eq!(judge(&[6.0; 3]), Verdict::Over);
    }

    #[test]
    fn change_has_the_error_of_the_baseline() {
        let runs = exact(&[109.0, 110.0, 111.0]);
        let baseline = exact(&[99.0, 100.0, 101.0]);
        let looks = InterimAnalyses::new(3, 3);
        let judgement = judge_change(&runs, &own(&[&baseline]), 0.02, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Over);
        assert!((judgement.limit - 102.0).abs() < 1e-9);
        // t(95%, 4) = 2.132; deviations 1 and 1.02. Nights are taken to differ as much as runs do.
        let variance: f64 = 2.0 + 2.0 / 3.0;
        let error = 2.1318 * ((1.0 + 1.02 * 1.02) / 2.0_f64).sqrt() * variance.sqrt();
        assert!(
            (judgement.lower - (110.0 - error)).abs() < 1e-3,
            "{judgement:?}"
        );
        assert_eq!(judgement.earlier_runs, 3);
        let judgement = judge_change(&runs, &own(&[&baseline]), 0.10, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Undecided);
        let judgement = judge_change(&runs, &own(&[&baseline]), 0.15, 1.0, looks);
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
        let looks = InterimAnalyses::new(3, 3);
        let judge = |samples| {
            let baseline = sampled(100.0, samples);
            judge_change(&sampled(110.0, 1e9), &own(&[&baseline]), 0.0, 1.0, looks).verdict
        };
        assert_eq!(judge(1e9), Verdict::Over);
        assert_eq!(judge(30.0), Verdict::Undecided);
    }

    #[test]
    fn equal_counts_are_compared_exactly() {
        let looks = InterimAnalyses::new(3, 3);
        let judge = |runs: &[f64], baseline: &[f64]| {
            judge_change(&exact(runs), &own(&[&exact(baseline)]), 0.02, 1.0, looks).verdict
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
        let looks = InterimAnalyses::new(3, 3);
        let judge = |runs: &[f64], nights: &[&[Measured]]| {
            judge_change(&exact(runs), &own(nights), 0.0, 1.0, looks)
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
        let looks = InterimAnalyses::new(3, 3);
        for (baseline, change) in [
            (vec![], 0.02),
            (exact(&[-1.0]), 0.02),
            (exact(&[f64::NAN]), 0.02),
            (exact(&[1.0]), f64::INFINITY),
            (exact(&[1.0]), f64::NAN),
            (exact(&[1.0]), -2.0),
        ] {
            let judgement = judge_change(&runs, &own(&[&baseline]), change, 1.0, looks);
            assert_eq!(judgement.verdict, Verdict::Undecided, "{baseline:?}");
            assert!(judgement.why.is_some() && judgement.limit.is_finite());
        }
    }

    #[test]
    fn pairs_are_compared_by_their_ratios() {
        let values = [(100.0, 105.0), (200.0, 212.0), (50.0, 52.0)];
        let looks = InterimAnalyses::new(3, 3);
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
        let looks = InterimAnalyses::new(3, 3);
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
        let looks = InterimAnalyses::new(3, 3);
        for (values, verdict) in [
            ([(0.0, 0.0); 3], Verdict::Within),
            ([(0.0, 2.0); 3], Verdict::Over),
            ([(2.0, 0.0); 3], Verdict::Within),
            ([(f64::NAN, 1.0); 3], Verdict::Undecided),
        ] {
            let (judgement, change) = judge_builds(&pairs(&values), 0.05, 1.0, looks);
            assert_eq!((judgement.verdict, change), (verdict, None), "{values:?}");
        }
        // t(95%, 4) = 2.132: the builds are of one night, whatever others are like.
        let values = [(0.0, 10.0), (1.0, 11.0), (2.0, 12.0)];
        let (judgement, _) = judge_builds(&pairs(&values), 0.0, 1.0, looks);
        let error = 2.1318 * (2.0_f64 / 3.0).sqrt();
        assert!(
            (judgement.lower - (11.0 - error)).abs() < 1e-3,
            "{judgement:?}"
        );
        let (judgement, _) = judge_builds(&[], 0.05, 1.0, looks);
        assert_eq!(judgement.verdict, Verdict::Undecided);
    }
}
