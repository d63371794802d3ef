use super::*;

mod simulation;

/// Runs that were measured in full.
pub(super) fn exact(values: &[f64]) -> Vec<Measured> {
    let run = |&value| Measured {
        value,
        samples: None,
    };
    values.iter().map(run).collect()
}

fn sampled(values: &[f64], interval: f64) -> Vec<Measured> {
    let run = |&value: &f64| Measured {
        value,
        samples: Some(value / interval),
    };
    values.iter().map(run).collect()
}

#[test]
fn bounds_are_those_of_student() {
    let judgement = judge(
        &exact(&[9.0, 10.0, 11.0]),
        &[],
        20.0,
        1.0,
        InterimAnalyses::new(3, 3),
    );
    let error = 2.919_985_580 / 3.0_f64.sqrt();
    assert!((judgement.lower - (10.0 - error)).abs() < 1e-8);
    assert!((judgement.upper - (10.0 + error)).abs() < 1e-8);
    assert_eq!(judgement.verdict, Verdict::Within);
    assert_eq!((judgement.runs, judgement.earlier_runs), (3, 0));
    assert_eq!(judgement.confidence, 0.95);
    // Two looks: t(98%, 2) = 4.849.
    let judgement = judge(
        &exact(&[9.0, 10.0, 11.0]),
        &[],
        20.0,
        1.0,
        InterimAnalyses::new(3, 5),
    );
    let error = 4.848_732_214 / 3.0_f64.sqrt();
    assert!((judgement.upper - (10.0 + error)).abs() < 1e-8);
}

#[test]
fn p_agrees_with_the_verdict() {
    let runs = exact(&[9.0, 10.0, 11.0]);
    let bound = 10.0 - 2.919_985_580_353 / 3.0_f64.sqrt();
    for (limit, verdict) in [
        (bound - 1e-6, Verdict::Over),
        (bound + 1e-6, Verdict::Undecided),
    ] {
        let judgement = judge(&runs, &[], limit, 1.0, InterimAnalyses::new(3, 3));
        assert_eq!(judgement.verdict, verdict);
        assert!((judgement.p_over - 0.05).abs() < 1e-6, "{judgement:?}");
        assert_eq!(judgement.p_over < 0.05, verdict == Verdict::Over);
    }
    // Sampling error alone.
    let runs = sampled(&[100.0; 3], 4.0);
    let lower = judge(&runs, &[], 200.0, 1.0, InterimAnalyses::new(3, 3)).lower;
    let judgement = judge(&runs, &[], lower, 1.0, InterimAnalyses::new(3, 3));
    assert!((judgement.p_over - 0.05).abs() < 1e-9, "{judgement:?}");
}

#[test]
fn sampling_error_is_a_least_width() {
    // 75 samples: Byar's 95% limits are 61.3 and 90.9.
    let judgement = judge(
        &sampled(&[100.0; 3], 4.0),
        &[],
        110.0,
        1.0,
        InterimAnalyses::new(3, 3),
    );
    assert!((judgement.lower - 81.8).abs() < 0.2, "{judgement:?}");
    assert!((judgement.upper - 121.2).abs() < 0.3, "{judgement:?}");
    assert_eq!(judgement.verdict, Verdict::Undecided);
    assert_eq!(
        judgement.why.as_deref(),
        Some("the sampling error contains the limit; a smaller interval reduces it")
    );
    let exact = judge(
        &exact(&[100.0; 3]),
        &[],
        110.0,
        1.0,
        InterimAnalyses::new(3, 3),
    );
    assert_eq!(exact.verdict, Verdict::Within);
    // A larger spread decides.
    let runs = sampled(&[60.0, 100.0, 140.0], 1e-6);
    let judgement = judge(&runs, &[], 110.0, 1.0, InterimAnalyses::new(3, 3));
    assert_eq!(
        judgement.why.as_deref(),
        Some("the bounds contain the limit")
    );
}

#[test]
fn nothing_sampled_is_less_than_three_samples() {
    let none = sampled(&[0.0; 3], 4096.0);
    let judgement = judge(&none, &[], 12e6, 4096.0, InterimAnalyses::new(3, 3));
    assert_eq!(judgement.verdict, Verdict::Within);
    assert!(judgement.upper > 4096.0, "{judgement:?}");
    let judgement = judge(&none, &[], 1024.0, 4096.0, InterimAnalyses::new(3, 3));
    assert_eq!(judgement.verdict, Verdict::Undecided);
}

#[test]
fn counts_without_a_spread_are_exact() {
    let judge = |runs: &[f64], limit| {
        judge(&exact(runs), &[], limit, 1.0, InterimAnalyses::new(3, 5)).verdict
    };
    assert_eq!(judge(&[0.0; 3], 0.0), Verdict::Within);
    assert_eq!(judge(&[2.0; 3], 2.0), Verdict::Within);
    assert_eq!(judge(&[3.0; 3], 2.0), Verdict::Over);
    assert_eq!(judge(&[2.0, 2.0, 3.0], 2.0), Verdict::Undecided);
    assert_eq!(judge(&[0.0], 0.0), Verdict::Undecided);
}

#[test]
fn one_leak_is_over_a_limit_of_none() {
    for runs in [
        &[1.0][..],
        &[0.0, 1.0],
        &[0.0, 0.0, 1.0],
        &[0.0, 0.0, 0.0, 1.0],
    ] {
        let judgement = judge(&exact(runs), &[], 0.0, 1.0, InterimAnalyses::new(3, 5));
        assert_eq!(judgement.verdict, Verdict::Over, "{runs:?}");
        assert!(judgement.lower > 0.0 && judgement.upper >= judgement.mean);
        assert_eq!((judgement.p_over, judgement.why), (0.0, None));
    }
    let growth = judge_growth(
        &exact(&[0.0, 0.0, 1.0]),
        &[],
        0.0,
        1.0,
        InterimAnalyses::new(3, 5),
    );
    assert_eq!(growth.verdict, Verdict::Undecided);
}

#[test]
fn equal_pss_spreads_by_its_smallest_step() {
    let runs = exact(&[1_048_576.0; 5]);
    let judgement = judge(&runs, &[], 1_048_576.0, 4096.0, InterimAnalyses::new(3, 5));
    assert_eq!(judgement.verdict, Verdict::Undecided);
    let error = 2.998_527_873 * 4096.0 / 5.0_f64.sqrt();
    assert!((judgement.upper - judgement.mean - error).abs() < 1e-3);
    let judgement = judge(&runs, &[], 1_100_000.0, 4096.0, InterimAnalyses::new(3, 5));
    assert_eq!(judgement.verdict, Verdict::Within);
}

#[test]
fn one_run_is_judged_with_ten_earlier_ones() {
    let earlier = exact(&[9.0, 11.0, 10.0, 9.0, 11.0, 10.0, 9.0, 11.0, 10.0, 10.0]);
    let run = exact(&[14.0]);
    let judgement = judge(&run, &[&earlier], 10.0, 1.0, InterimAnalyses::new(1, 5));
    assert_eq!(judgement.verdict, Verdict::Over);
    assert_eq!((judgement.runs, judgement.earlier_runs), (1, 10));
    let judgement = judge(
        &run,
        &[&earlier[1..]],
        10.0,
        1.0,
        InterimAnalyses::new(1, 5),
    );
    assert_eq!(judgement.verdict, Verdict::Undecided);
    assert_eq!(
        judgement.why.as_deref(),
        Some("1 run is too few: a verdict needs 3, or 1 with 10 earlier runs")
    );
    // Not planned.
    let judgement = judge(&run, &[&earlier], 10.0, 1.0, InterimAnalyses::new(3, 5));
    assert_eq!(
        judgement.why.as_deref(),
        Some("the next verdict is after 3 runs")
    );
    let judgement = judge(
        &run,
        &[&earlier],
        10.0,
        1.0,
        InterimAnalyses::new(3, 5).last(),
    );
    assert_eq!(judgement.verdict, Verdict::Over);
}

#[test]
fn one_run_that_differs_from_equal_ones_is_not_certain() {
    let earlier = exact(&[2.0; 10]);
    let judge = |runs: &[f64], limit| {
        judge(
            &exact(runs),
            &[&earlier],
            limit,
            1.0,
            InterimAnalyses::new(1, 3),
        )
    };
    assert_eq!(judge(&[2.0], 2.0).verdict, Verdict::Within);
    assert_eq!(judge(&[2.0], 1.0).verdict, Verdict::Over);
    for limit in [2.0, 4.0] {
        let judgement = judge(&[3.0], limit);
        assert_eq!(judgement.verdict, Verdict::Undecided);
        assert_eq!(
            judgement.why.as_deref(),
            Some("the value differs from all earlier ones: a verdict needs 3 runs")
        );
    }
    assert_eq!(judge(&[3.0; 3], 2.0).verdict, Verdict::Over);
    assert_eq!(judge(&[3.0; 3], 4.0).verdict, Verdict::Within);
    // A leak is a leak.
    assert_eq!(judge(&[1.0], 0.0).verdict, Verdict::Over);
}

#[test]
fn unusable_figures_are_undecided_with_a_reason() {
    let good = exact(&[1.0, 2.0, 3.0]);
    let samples = |samples| {
        vec![
            Measured {
                value: 1.0,
                samples: Some(samples),
            };
            3
        ]
    };
    for (runs, earlier, limit, floor) in [
        (vec![], vec![], 1.0, 1.0),
        (exact(&[f64::NAN, 1.0, 2.0]), vec![], 1.0, 1.0),
        (exact(&[f64::INFINITY; 3]), vec![], 1.0, 1.0),
        (exact(&[-1.0, 1.0, 2.0]), vec![], 1.0, 1.0),
        (exact(&[f64::MAX, 0.0, f64::MAX]), vec![], 1.0, 1.0),
        (good.clone(), exact(&[f64::NAN; 2]), 1.0, 1.0),
        (good.clone(), exact(&[-1.0; 2]), 1.0, 1.0),
        (good.clone(), vec![], f64::NAN, 1.0),
        (good.clone(), vec![], f64::INFINITY, 1.0),
        (good, vec![], 1.0, f64::INFINITY),
        (samples(f64::NAN), vec![], 1.0, 1.0),
        (samples(-1.0), vec![], 1.0, 1.0),
    ] {
        let judgement = judge(&runs, &[&earlier], limit, floor, InterimAnalyses::new(3, 5));
        assert_eq!(judgement.verdict, Verdict::Undecided, "{runs:?} {limit}");
        assert!(judgement.why.is_some());
        let json = serde_json::to_string(&judgement).unwrap();
        assert_eq!(serde_json::from_str::<Judgement>(&json).unwrap(), judgement);
    }
}

#[test]
fn negative_growth_is_judged() {
    let judgement = judge_growth(
        &exact(&[-3.0, -2.0, -1.0]),
        &[],
        5.0,
        1.0,
        InterimAnalyses::new(3, 3),
    );
    assert_eq!(judgement.verdict, Verdict::Within);
}

#[test]
fn any_figures_are_judged_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    let edges = [0.0, 5e-324, 1e-12, 1.0, 3.0, 4096.0, 1e15, 1e154, f64::MAX];
    for _ in 0..1000 {
        let mut value = || edges[random.usize(..edges.len())];
        let (limit, floor, first) = (value(), value(), value());
        let mut figures = |most| -> Vec<Measured> {
            let is_sampled = random.bool();
            (0..random.usize(..most))
                .map(|_| Measured {
                    value: edges[random.usize(..edges.len())],
                    samples: is_sampled.then(|| edges[random.usize(..edges.len())]),
                })
                .collect()
        };
        let runs = figures(7);
        let nights = [figures(7), figures(3), figures(5), figures(2)];
        let nights = &nights.each_ref().map(Vec::as_slice)[random.usize(..4)..];
        let devices = [None, Some("a"), Some("b"), Some("own")];
        let past = nights
            .iter()
            .map(|night| (devices[random.usize(..4)], *night));
        let past = Past::new("own", past.collect::<Vec<_>>());
        let looks = InterimAnalyses::new(1, 5).last();
        for judgement in [
            judge(&runs, nights, limit, floor, looks),
            judge_growth(&runs, nights, -limit, floor, looks),
            judge_change(&runs, &past, first, floor, looks),
        ] {
            let numbers = [
                judgement.mean,
                judgement.lower,
                judgement.upper,
                judgement.limit,
            ];
            assert!(numbers.iter().all(|x| x.is_finite()), "{judgement:?}");
            assert!((0.0..=1.0).contains(&judgement.p_over), "{judgement:?}");
            assert!(judgement.lower <= judgement.mean && judgement.mean <= judgement.upper);
            let is_undecided = judgement.verdict == Verdict::Undecided;
            assert_eq!(is_undecided, judgement.why.is_some(), "{judgement:?}");
        }
        let means = past.map(|night| spread::mean(&values(night)));
        for plan in [plan(&runs, limit), plan_change(&runs, limit, &means, first)] {
            assert_eq!(plan.needed.is_none(), plan.why.is_some(), "{plan:?}");
        }
    }
}
