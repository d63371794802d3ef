//! Growth per iteration over a series of dumps 0..k. A leak of constant rate is a cumulative
//! Poisson process, so its end points contain all information. Residuals of a fitted line are a
//! random walk: standard errors of least squares would be far too small and are not used.

use super::difference::{Counters, Turnover};
use super::estimate::{Interval, Rate};
use super::poisson::Z95;
use super::{special, student};

/// Minimum number of increments that allow a prediction.
const MIN_INCREMENTS: usize = 10;

/// Returns the growth per iteration in this run, from the first dump to the last; `None` for no
/// iterations.
pub fn endpoint(whole: &Turnover, iterations: f64) -> Option<Rate> {
    whole.estimate().per(iterations)
}

/// Returns the growth per iteration to expect in further iterations: the mean with Student's
/// interval. It includes variation between iterations, and is too wide under churn. `None` for
/// fewer than ten increments.
pub fn of_increments(increments: &[f64]) -> Option<Rate> {
    if increments.len() < MIN_INCREMENTS || increments.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let k = increments.len() as f64;
    let mean = increments.iter().sum::<f64>() / k;
    let squares = increments.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let half = student::point(0.975, k - 1.0) * (squares / (k - 1.0) / k).sqrt();
    Some(Rate {
        value: mean,
        low: mean - half,
        high: mean + half,
        hits: k,
        samples: increments.len() as u64,
        exact: false,
    })
}

/// Returns the slope of unreleased bytes per iteration for a site that turns over in every
/// iteration (half of its bytes are freed each time), where dumps are independent. The result is
/// more precise than end points. `None` for other sites, and for fewer than two iterations.
pub fn slope(dumps: &[Counters], interval: Interval) -> Option<Rate> {
    if dumps.len() < 3 {
        return None;
    }
    let turns_over = dumps.windows(2).all(|two| {
        let freed = two[1].freed().saturating_sub(two[0].freed());
        freed > 0 && freed >= two[0].space / 2
    });
    if !turns_over {
        return None;
    }
    let k = (dumps.len() - 1) as f64;
    let hits = |dump: &Counters| interval.hits(dump.space as f64);
    let mean = dumps.iter().map(hits).sum::<f64>() / (k + 1.0);
    let (mut product, mut square) = (0.0, 0.0);
    for (dump, at) in dumps.iter().zip(0_u32..) {
        let x = f64::from(at) - k / 2.0;
        product += x * hits(dump);
        square += x * x;
    }
    let slope = product / square;
    let variance =
        1.2 * slope.max(0.0) / k + 12.0 * (mean.max(0.0) + 1.0) / (k * (k + 1.0) * (k + 2.0));
    let t = interval.bytes() as f64;
    let half = if interval.is_exact() {
        0.0
    } else {
        t * Z95 * variance.sqrt()
    };
    Some(Rate {
        value: t * slope,
        low: t * slope - half,
        high: t * slope + half,
        hits: mean.max(0.0),
        samples: dumps.iter().map(|d| d.objects.max(0) as u64).sum(),
        exact: interval.is_exact(),
    })
}

/// Returns the probability, 0 to 1, that values in random order rise at least as steadily from
/// first to last: the one-sided test of Mann and Kendall. It shows whether a site's size merely
/// fluctuates.
pub fn trend(values: &[i64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 1.0;
    }
    let mut score = 0_i64;
    for (at, later) in values.iter().enumerate() {
        for earlier in &values[..at] {
            score += match later.cmp(earlier) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let (mut ties, mut tied) = (0.0, false);
    for equal in sorted.chunk_by(|a, b| a == b) {
        let t = equal.len() as f64;
        ties += t * (t - 1.0) * (2.0 * t + 5.0);
        tied |= equal.len() > 1;
    }
    if !tied && n <= 20 {
        return chance_of_score(n, score);
    }
    let n = n as f64;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    special::normal_tail((score as f64 - 1.0) / variance.sqrt())
}

/// Returns the part of all orders of `n` different values with at least this score.
fn chance_of_score(n: usize, score: i64) -> f64 {
    // Inversions of permutations: inserting the next value adds 0 to its index of them.
    let mut chances = vec![1.0_f64];
    for size in 2..=n {
        let mut next = vec![0.0; chances.len() + size - 1];
        for (at, chance) in chances.iter().enumerate() {
            for added in 0..size {
                next[at + added] += chance / size as f64;
            }
        }
        chances = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    // score = pairs - 2 · inversions
    let most = usize::try_from((pairs - score) / 2).unwrap_or(0);
    chances.iter().take(most + 1).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_has_a_trend_and_ups_and_downs_have_none() {
        assert!((trend(&[1, 2, 3, 4]) - 1.0 / 24.0).abs() < 1e-12);
        assert!((trend(&[1, 2, 4, 3]) - 4.0 / 24.0).abs() < 1e-12);
        assert!(trend(&[4, 3, 2, 1]) > 0.999);
        assert_eq!(trend(&[5, 5, 5, 5]), 1.0);
        assert_eq!(trend(&[]), 1.0);
        let slow: Vec<i64> = (0..30).map(|i| i / 10).collect();
        assert!(trend(&slow) < 1e-6);
        let noise = [3, 9, 1, 7, 5, 4, 8, 2, 6, 5, 3, 7];
        assert!(trend(&noise) > 0.3);
    }

    #[test]
    fn increments_have_students_interval() {
        let increments: Vec<f64> = (0..10).map(f64::from).collect();
        let rate = of_increments(&increments).expect("ten are enough");
        // sd 3.02765, t(9) 2.26216: half-width 2.1659.
        assert!((rate.value - 4.5).abs() < 1e-12);
        assert!((rate.high - 6.6659).abs() < 1e-3, "{rate:?}");
        assert_eq!(of_increments(&increments[1..]), None);
        assert_eq!(of_increments(&[f64::NAN; 12]), None);
    }

    #[test]
    fn a_slope_is_for_sites_that_turn_over() {
        let t = Interval::new(4096).expect("not zero");
        let dump = |held: i64, allocated: i64| Counters {
            space: held * 4096,
            objects: held,
            alloc_space: allocated * 4096,
            alloc_objects: allocated,
            small: None,
        };
        let turning: Vec<Counters> = (0..8).map(|i| dump(20 + i, 30 * (i + 1))).collect();
        let rate = slope(&turning, t).expect("it turns over");
        assert!((rate.value / 4096.0 - 1.0).abs() < 1e-9);
        assert!(rate.low < rate.value && rate.value < rate.high);
        let staying: Vec<Counters> = (0..8).map(|i| dump(20 + i, 20 + i)).collect();
        assert_eq!(slope(&staying, t), None);
        assert_eq!(slope(&turning[..2], t), None);
    }
}
