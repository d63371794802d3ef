//! Budgets with the runs of earlier nights: absolute limits, and changes. The level of a night
//! differs by another build, or by the device.

use super::*;

const CV: f64 = 0.02;

fn looks() -> Looks {
    Looks::new(1, 5)
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
                judge_change(&all[..look], &borrowed(&nights), 0.05, 0.0, looks())
            })
        });
    }
}
