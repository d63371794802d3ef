//! Coverage: the frequency with which 95% intervals contain the true value.

use super::super::{Counters, Interval, Turnover};
use super::effort::Effort;
use super::sampler::{Sampler, Seen, normal, of_hits, poisson};
use std::fmt::Write as _;

/// Bounds of a case, in percent.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    low: f64,
    high: f64,
}

/// Few hits, large blocks, churn: the true value is inside, but the width is not limited.
const AT_LEAST_93: Bounds = Bounds {
    low: 93.0,
    high: 100.0,
};

/// From about 10 hits, without large blocks.
const FROM_93_TO_97: Bounds = Bounds {
    low: 93.0,
    high: 97.0,
};

/// One row of the table.
#[derive(Debug)]
struct Row {
    name: String,
    percent: f64,
    bounds: Bounds,
    slack: f64,
}

impl Row {
    fn fails(&self) -> bool {
        self.percent < self.bounds.low - self.slack || self.percent > self.bounds.high + self.slack
    }
}

/// Prints and checks the table. Panics after printing if a row fails.
fn check(effort: Effort, title: &str, rows: &[Row]) {
    let mut text = format!("\n| {title} | % | wanted |\n|---|---|---|\n");
    for row in rows {
        let Bounds { low, high } = row.bounds;
        let mark = if row.fails() { " FAILS" } else { "" };
        let (name, percent) = (&row.name, row.percent);
        writeln!(text, "| {name} | {percent:.1}{mark} | {low}-{high} |")
            .expect("writing to a String cannot fail");
    }
    effort.show(&text);
    assert!(!rows.iter().any(Row::fails), "{text}");
}

const T: u64 = 4096;

fn interval(bytes: u64) -> Interval {
    Interval::new(bytes).expect("not zero")
}

/// Returns a table row with the part of `runs` in which `once` holds.
fn row(
    effort: Effort,
    seed: u64,
    name: &str,
    bounds: Bounds,
    mut once: impl FnMut(&mut fastrand::Rng) -> bool,
) -> Row {
    let mut random = fastrand::Rng::with_seed(seed);
    let held = (0..effort.runs).filter(|_| once(&mut random)).count();
    Row {
        name: name.to_owned(),
        percent: 100.0 * held as f64 / f64::from(effort.runs),
        bounds,
        slack: effort.slack,
    }
}

pub fn all(effort: Effort) {
    sampler_is_unbiased(effort);
    check(effort, "bytes of a callsite", &sizes(effort));
    check(effort, "adaptive intervals", &adaptive(effort));
    check(
        effort,
        "differences, hits kept - released",
        &differences(effort),
    );
    check(effort, "growth per iteration", &growth(effort));
}

fn sampler_is_unbiased(effort: Effort) {
    for (size, count) in [(64, 6_400), (3_000, 137)] {
        let truth = (size * count) as f64;
        let seen: Vec<f64> = (0..effort.runs.min(4_000))
            .map(|run| {
                let mut sampler = Sampler::new(T, u64::from(run) + 1);
                sampler
                    .record(std::iter::repeat_n(size, count as usize))
                    .bytes as f64
            })
            .collect();
        let n = seen.len() as f64;
        let mean = seen.iter().sum::<f64>() / n;
        let variance = seen.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        assert!((mean / truth - 1.0).abs() < 0.02, "{size}: {mean} {truth}");
        let of_poisson = variance / (T as f64 * truth);
        assert!((of_poisson - 1.0).abs() < 0.2, "{size}: {of_poisson}");
    }
}

fn sizes(effort: Effort) -> Vec<Row> {
    let mut made = fastrand::Rng::with_seed(7);
    let lognormal: Vec<u64> = (0..3_000)
        .map(|_| ((5.0 + 1.2 * normal(&mut made)).exp() as u64).clamp(8, 4_095))
        .collect();
    let of = |size: u64, count: usize| vec![size; count];
    let with = |mut sizes: Vec<u64>, more: Vec<u64>| {
        sizes.extend(more);
        sizes
    };
    let cases = [
        ("32 B x 40, 0.3 hits", of(32, 40), AT_LEAST_93),
        ("32 B x 130, 1 hit", of(32, 130), AT_LEAST_93),
        ("48 B x 427, 5 hits", of(48, 427), AT_LEAST_93),
        ("64 B x 640, 10 hits", of(64, 640), AT_LEAST_93),
        ("64 B x 960, 15 hits", of(64, 960), FROM_93_TO_97),
        ("64 B x 1600, 25 hits", of(64, 1_600), FROM_93_TO_97),
        ("64 B x 6400, 100 hits", of(64, 6_400), FROM_93_TO_97),
        ("lognormal x 3000, 200 hits", lognormal, FROM_93_TO_97),
        ("3000 B x 3", of(3_000, 3), AT_LEAST_93),
        ("3000 B x 20, 15 hits", of(3_000, 20), FROM_93_TO_97),
        ("4000 B x 200, 195 hits", of(4_000, 200), FROM_93_TO_97),
        (
            "64 B x 640 + 2 x 5 kB",
            with(of(64, 640), of(5_000, 2)),
            AT_LEAST_93,
        ),
        (
            "64 B x 640 + 100 kB",
            with(of(64, 640), of(100_000, 1)),
            AT_LEAST_93,
        ),
        (
            "64 B x 640 + 64 KiB, a multiple of T",
            with(of(64, 640), of(65_536, 1)),
            AT_LEAST_93,
        ),
        (
            "64 B x 40 + 20 x 1 MB",
            with(of(64, 40), of(1_000_000, 20)),
            AT_LEAST_93,
        ),
        ("only 5 x 10 kB", of(10_000, 5), AT_LEAST_93),
    ];
    let mut rows: Vec<Row> = cases
        .iter()
        .map(|(name, sizes, bounds)| {
            let truth: u64 = sizes.iter().sum();
            row(effort, 2, name, *bounds, |random| {
                let seen = Sampler::new(T, random.u64(..)).record(sizes.iter().copied());
                let estimate = seen.sampled(interval(T)).estimate();
                (estimate.low..=estimate.high).contains(&(truth as i64))
            })
        })
        .collect();
    rows.push(row(
        effort,
        22,
        "sum of 40 sites of 0.5 hits",
        FROM_93_TO_97,
        |random| {
            let mut sampler = Sampler::new(T, random.u64(..));
            let sum = (0..40)
                .map(|_| sampler.record(std::iter::repeat_n(64, 32)))
                .map(|seen| seen.sampled(interval(T)))
                .reduce(|sum, site| sum.plus(site))
                .expect("forty sites");
            let estimate = sum.estimate();
            (estimate.low..=estimate.high).contains(&(40 * 32 * 64))
        },
    ));
    rows
}

fn adaptive(effort: Effort) -> Vec<Row> {
    let intervals = [4_096_u64, 8_192, 16_384];
    let mut rows = Vec::new();
    for (name, hits) in [("3+3+3 hits", [3.0; 3]), ("40+40+40 hits", [40.0; 3])] {
        let truth = hits.iter().sum::<f64>() * 4_096.0;
        rows.push(row(effort, 3, name, AT_LEAST_93, |random| {
            let mut all = Seen::default();
            for (t, hits) in intervals.into_iter().zip(hits) {
                let seen = of_hits(poisson(random, hits * 4_096.0 / t as f64), t);
                all.bytes += seen.bytes;
                all.samples += seen.samples;
            }
            let interval = Interval::adaptive(16_384, 4_096).expect("not zero");
            let estimate = all.sampled(interval).estimate();
            estimate.low as f64 <= truth && truth <= estimate.high as f64
        }));
    }
    rows
}

/// Returns two dumps of a site, from hits by their fate.
fn two_dumps(
    random: &mut fastrand::Rng,
    [kept, old_freed, stayed, churned]: [f64; 4],
) -> [Counters; 2] {
    let mut seen = |mean: f64| of_hits(poisson(random, mean), T);
    let mut before = Counters::default();
    seen(stayed).allocate(&mut before, true);
    let old = seen(old_freed);
    old.allocate(&mut before, true);
    let mut after = before;
    old.free(&mut after);
    seen(kept).allocate(&mut after, true);
    seen(churned).allocate(&mut after, false);
    [before, after]
}

fn differences(effort: Effort) -> Vec<Row> {
    let mut rows: Vec<Row> = [
        ("2 - 0", [2.0, 0.0, 0.0, 0.0], AT_LEAST_93),
        ("8 - 3, 50 stay", [8.0, 3.0, 50.0, 0.0], AT_LEAST_93),
        ("30 - 30", [30.0, 30.0, 0.0, 0.0], FROM_93_TO_97),
        (
            "30 - 10, 500 stay, 20 in between",
            [30.0, 10.0, 500.0, 20.0],
            AT_LEAST_93,
        ),
        (
            "200 - 150, 1000 stay, 50 in between",
            [200.0, 150.0, 1_000.0, 50.0],
            AT_LEAST_93,
        ),
        (
            "5 - 0, 200 stay, 300 in between",
            [5.0, 0.0, 200.0, 300.0],
            AT_LEAST_93,
        ),
    ]
    .into_iter()
    .map(|(name, means, bounds)| {
        let truth = (means[0] - means[1]) * T as f64;
        row(effort, 6, &format!("paired {name}"), bounds, |random| {
            let [before, after] = two_dumps(random, means);
            let estimate = Turnover::paired(&before, &after, interval(T)).estimate();
            estimate.low as f64 <= truth && truth <= estimate.high as f64
        })
    })
    .collect();
    for (a, b, bounds) in [
        (3.0, 2.0, AT_LEAST_93),
        (40.0, 10.0, FROM_93_TO_97),
        (400.0, 120.0, FROM_93_TO_97),
    ] {
        let name = format!("two recordings, {a} hits of T=4096, {b} of T=16384");
        let truth = (b * 4.0 - a) * T as f64;
        rows.push(row(effort, 66, &name, bounds, |random| {
            let before = of_hits(poisson(random, a), T).sampled(interval(T));
            let after = of_hits(poisson(random, b), 4 * T).sampled(interval(4 * T));
            let estimate = Turnover::independent(before, after).estimate();
            estimate.low as f64 <= truth && truth <= estimate.high as f64
        }));
    }
    let large = [
        ("keep 5 x 80 kB, free 100 hits", 5, 80_001, 0.0, 100.0),
        ("keep 5 x 80 kB and 30 hits", 5, 80_001, 30.0, 0.0),
        ("keep 20 x 100 kB, free 10 hits", 20, 102_400, 0.0, 10.0),
    ];
    for (name, blocks, size, kept, freed) in large {
        let truth = (blocks * size) as f64 + (kept - freed) * T as f64;
        let name = format!("large: {name}");
        rows.push(row(effort, 12, &name, AT_LEAST_93, |random| {
            let [before, mut after] = two_dumps(random, [kept, freed, 20.0, 0.0]);
            Seen {
                bytes: blocks * size,
                samples: blocks,
            }
            .allocate(&mut after, true);
            let estimate = Turnover::paired(&before, &after, interval(T)).estimate();
            estimate.low as f64 <= truth && truth <= estimate.high as f64
        }));
    }
    rows
}

/// Returns dumps 0..=k of a site that grows by `growth` hits per iteration and replaces `churn`.
fn series(random: &mut fastrand::Rng, k: usize, growth: f64, churn: f64) -> Vec<Counters> {
    let mut now = Counters::default();
    let mut dumps = Vec::new();
    let mut churned = Seen::default();
    for at in 0..=k {
        churned.free(&mut now);
        if at > 0 {
            of_hits(poisson(random, growth), T).allocate(&mut now, true);
        }
        churned = of_hits(poisson(random, churn), T);
        churned.allocate(&mut now, true);
        dumps.push(now);
    }
    dumps
}

fn growth(effort: Effort) -> Vec<Row> {
    let mut rows = Vec::new();
    for (k, rate, churn, bounds) in [
        (10, 1.0, 0.0, AT_LEAST_93),
        (50, 2.0, 0.0, FROM_93_TO_97),
        (50, 0.5, 200.0, FROM_93_TO_97),
        (10, 1.0, 20.0, AT_LEAST_93),
    ] {
        let name = format!("k={k}, {rate} hits each, {churn} replaced");
        rows.push(row(effort, 7, &name, bounds, |random| {
            let dumps = series(random, k, rate, churn);
            let whole = Turnover::paired(&dumps[0], &dumps[k], interval(T));
            let got = whole.estimate().per(k as f64).expect("iterations");
            got.low <= rate * T as f64 && rate * T as f64 <= got.high
        }));
    }
    rows
}
