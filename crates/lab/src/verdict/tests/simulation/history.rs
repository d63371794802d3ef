//! Budgets with the runs of earlier nights: absolute limits, and changes. The level of a night
//! differs by another build, or by the device.

use super::*;

const CV: f64 = 0.02;
const PAGE: f64 = 4096.0;

fn looks() -> InterimAnalyses {
    InterimAnalyses::new(1, 5)
}

/// Returns nights of 3 runs, each at a level of its own.
fn nights(random: &mut fastrand::Rng, count: usize, night_cv: f64) -> Vec<Vec<Measured>> {
    (0..count)
        .map(|_| {
            let level = 1.0 + night_cv * normal(random);
            runs(random, level, CV, None, 3)
        })
        .collect()
}

fn borrowed(nights: &[Vec<Measured>]) -> Vec<&[Measured]> {
    nights.iter().map(Vec::as_slice).collect()
}

/// Simulates a budget of each kind: `budget` returns its judgement for a true value, as a share of
/// the limit.
fn of_kind(
    name: &str,
    truth: f64,
    mut budget: impl FnMut(&mut fastrand::Rng, f64) -> Judgement,
) -> Rates {
    let count = budgets(BUDGETS);
    let mut random = fastrand::Rng::with_seed(20);
    let mut rates = Rates::default();
    for _ in 0..count {
        let judgement = budget(&mut random, truth);
        rates.add(judgement.verdict, judgement.runs, count);
    }
    report(format_args!("{name}, {truth:.2} of the limit: {rates:.1?}"));
    rates
}

/// Asserts at most 5% wrong verdicts below, at and above the limit; `decided` percent at least of
/// those 10% above it.
fn assert_right(
    name: &str,
    decided: f64,
    mut budget: impl FnMut(&mut fastrand::Rng, f64) -> Judgement,
) {
    let most = at_most_5(budgets(BUDGETS));
    let mut rates = |truth| of_kind(name, truth, &mut budget);
    let (below, at, above) = (rates(0.9), rates(1.0), rates(1.1));
    assert!(below.over <= most, "{name}: {below:?}");
    assert!(at.over <= most && at.within <= most, "{name}: {at:?}");
    assert!(above.within <= most, "{name}: {above:?}");
    assert!(above.over >= decided, "{name}: {above:?}");
}

#[test]
fn history_of_other_builds_narrows_the_spread() {
    // Five nights, whose builds differ by 10%.
    assert_right("value, 5 nights", 99.0, |random, truth| {
        let nights = nights(random, 5, 0.1);
        let all = runs(random, truth, CV, None, 5);
        until_decided(looks(), 15, |look| {
            judge(&all[..look], &borrowed(&nights), 1.0, 0.0, looks())
        })
    });
    assert_right("counts, 5 nights", 10.0, |random, truth| {
        let mut count = |mean| exact(poisson(random, mean));
        let nights: Vec<Vec<_>> = (0..5)
            .map(|_| (0..3).map(|_| count(50.0)).collect())
            .collect();
        let all: Vec<_> = (0..5).map(|_| count(50.0 * truth)).collect();
        until_decided(looks(), 15, |look| {
            judge(&all[..look], &borrowed(&nights), 50.0, 1.0, looks())
        })
    });
    assert_right("growth, 5 nights", 5.0, |random, truth| {
        let nights: Vec<Vec<_>> = (0..5)
            .map(|_| (0..3).map(|_| growth(random, 2.0)).collect())
            .collect();
        let all: Vec<_> = (0..5).map(|_| growth(random, 2.0 * truth)).collect();
        until_decided(looks(), 15, |look| {
            judge_growth(&all[..look], &borrowed(&nights), 2.0, 0.0, looks())
        })
    });
}

#[test]
fn changes_are_right_against_nights() {
    // Nights, their spread, decided at 10% above the limit.
    for (count, night_cv, decided) in [
        (1, 0.0, 5.0),
        (1, CV, 5.0),
        (2, CV, 5.0),
        (3, 0.0, 5.0),
        (5, 0.0, 80.0),
        (3, CV, 5.0),
        (5, CV, 30.0),
        (10, CV, 70.0),
    ] {
        let name = format!("change, {count} nights with a spread of {night_cv}");
        assert_right(&name, decided, |random, truth| {
            let nights = nights(random, count, night_cv);
            let level = truth * (1.0 + night_cv * normal(random));
            let all = runs(random, 1.05 * level, CV, None, 5);
            until_decided(looks(), 3 * count, |look| {
                let past = Past {
                    own: borrowed(&nights),
                    others: Vec::new(),
                };
                judge_change(&all[..look], &past, 0.05, 0.0, looks())
            })
        });
    }
}

/// Devices of a class, and the one that is measured.
struct Devices {
    name: &'static str,
    /// Nights of each device.
    nights: &'static [usize],
    /// The measured device is one of them.
    is_own: bool,
    device_cv: f64,
    night_cv: f64,
    /// Least share decided at 10% above the limit, percent.
    decided: f64,
}

#[test]
fn changes_are_right_for_a_class_of_devices() {
    let other = Devices {
        name: "another of 2 devices with 5 nights",
        nights: &[5, 5],
        is_own: false,
        device_cv: 0.05,
        night_cv: 0.01,
        decided: 0.0,
    };
    for devices in [
        Devices {
            name: "one of 2 devices with 5 nights",
            is_own: true,
            decided: 97.0,
            ..other
        },
        Devices {
            name: "one of 2 devices with 1 and 5 nights",
            nights: &[1, 5],
            is_own: true,
            decided: 85.0,
            ..other
        },
        Devices {
            name: "another of 2 devices that are alike",
            device_cv: 0.0,
            night_cv: CV,
            ..other
        },
        Devices {
            name: "another of 6 devices with 2 nights",
            nights: &[2; 6],
            decided: 22.0,
            ..other
        },
        Devices {
            name: "another of 6 devices with a night",
            nights: &[1; 6],
            ..other
        },
        Devices {
            name: "another than the only device",
            nights: &[5],
            ..other
        },
        other,
    ] {
        let Devices { night_cv, .. } = devices;
        assert_right(devices.name, devices.decided, |random, truth| {
            let mut device = || 1.0 + devices.device_cv * normal(random);
            let levels: Vec<f64> = (0..=devices.nights.len()).map(|_| device()).collect();
            let mut night = |level: f64, truth: f64, count| {
                let level = truth * level * (1.0 + night_cv * normal(random));
                runs(random, level, CV, None, count)
            };
            let mut all: Vec<Vec<Vec<_>>> = std::iter::zip(devices.nights, &levels)
                .map(|(&nights, level)| (0..nights).map(|_| night(*level, 1.0, 3)).collect())
                .collect();
            // The limit of another device is that of the class.
            let (own, level) = match devices.is_own {
                true => (all.remove(0), levels[0]),
                false => (Vec::new(), levels[levels.len() - 1]),
            };
            let new = night(level, 1.05 * truth, 5);
            until_decided(looks(), 3 * devices.nights.iter().sum::<usize>(), |look| {
                let past = Past {
                    own: borrowed(&own),
                    others: all.iter().map(|nights| borrowed(nights)).collect(),
                };
                judge_change(&new[..look], &past, 0.05, 0.0, looks())
            })
        });
    }
}

#[test]
fn growth_in_pages_is_decided_with_the_step_of_its_slope() {
    // A leak of a fifth of a page in a round.
    let limit = PAGE / 5.0;
    let step = slope_step(PAGE, 20);
    // Runs, decided at twice the limit.
    for (count, decided) in [(3, 65.0), (5, 97.0), (10, 99.0)] {
        let name = format!("growth in pages, {count} runs");
        let judged = |random: &mut fastrand::Rng, truth: f64| {
            let runs = pages(random, truth * limit, count);
            judge_growth(&runs, &[], limit, step, InterimAnalyses::new(count, count))
        };
        assert_right(&name, 0.0, judged);
        let twice = of_kind(&name, 2.0, judged);
        assert!(twice.over >= decided, "{count}: {twice:?}");
    }
}

/// Returns the growth of runs of 20 rounds, whose values are whole pages. The rate spreads by 10%.
fn pages(random: &mut fastrand::Rng, leak: f64, count: usize) -> Vec<Measured> {
    let mut run = || {
        let (rate, start) = (leak * (1.0 + 0.1 * normal(random)), random.f64());
        let value = |round: u32| (f64::from(round) * rate / PAGE + start).floor() * PAGE;
        let rounds: Vec<f64> = (1..=20).map(value).collect();
        exact(slope_of_second_half(&rounds).unwrap())
    };
    (0..count).map(|_| run()).collect()
}
