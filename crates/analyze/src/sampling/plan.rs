//! Power of a measurement: the smallest leak found with 80% power, and the sampling interval or
//! number of iterations that would decide.

use super::estimate::Interval;
use super::special;

/// Probability of finding a leak of the detectable size.
const POWER: f64 = 0.8;
/// Minimum number of churn hits for which the normal approximation is within 3% of the exact sum.
const MANY_HITS: f64 = 60.0;

/// Returns the hits of growth over the whole window that a sign test at level `alpha` finds with
/// 80% power if `churn_hits` were replaced in it.
pub fn hits_needed(alpha: f64, churn_hits: f64) -> f64 {
    let alpha = alpha.clamp(1e-12, 0.5);
    let churn = churn_hits.max(0.0);
    if churn > MANY_HITS || !churn.is_finite() {
        let s = special::normal_point(alpha) + special::normal_point(1.0 - POWER);
        let s2 = s * s;
        return s2 / 2.0 + (s2 * s2 / 4.0 + 2.0 * churn.min(1e18) * s2).sqrt();
    }
    let spread = |mean: f64| (mean + 10.0 * (mean + 1.0).sqrt() + 15.0) as usize;
    // For each number of released hits, the minimum number of kept ones at which the test rejects.
    let mut least = 0.0_f64;
    let critical: Vec<f64> = (0..=spread(churn))
        .map(|released| {
            let released = released as f64;
            while special::binomial_tail(least + released, least, 0.5) > alpha {
                least += 1.0;
            }
            least
        })
        .collect();
    let power = |growth: f64| {
        let mut chance = (-churn).exp();
        let mut sum = 0.0;
        for (released, critical) in critical.iter().enumerate() {
            sum += chance * special::poisson_tail(churn + growth, *critical);
            chance *= churn / (released + 1) as f64;
        }
        sum
    };
    special::bisect(
        0.0,
        40.0 * (churn + 1.0).sqrt() + 80.0,
        special::TO_LAST_DIGIT,
        |growth| power(growth) < POWER,
    )
}

/// Returns the smallest leak, in bytes per iteration, that is found with 80% power among `sites`
/// callsites in `iterations` iterations if `churn_bytes` were replaced in the window. Blocks of at
/// least the interval are always found. 0 if every allocation is recorded.
pub fn minimal_detectable(
    interval: Interval,
    iterations: f64,
    churn_bytes: f64,
    sites: u64,
) -> f64 {
    if interval.is_exact() {
        return 0.0;
    }
    let churn_hits = interval.hits(churn_bytes.max(0.0));
    hits_needed(level_of(sites), churn_hits) * interval.bytes() as f64 / iterations.max(1.0)
}

/// Returns the level at which the first of `sites` callsites is rejected.
fn level_of(sites: u64) -> f64 {
    0.05 / sites.max(1) as f64
}

/// Measurements that would decide about a growth of `growth` bytes per iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decider {
    /// Number of iterations with the current interval.
    pub iterations: Option<u64>,
    /// Interval in bytes, a power of two of at least 512, with the current number of iterations.
    pub interval_bytes: Option<u64>,
}

/// Maximum number of iterations to propose.
const MAX_ITERATIONS: f64 = 1e6;
/// Minimum interval to propose, in bytes: `record` warns that smaller ones slow down the target.
const MIN_INTERVAL_BYTES: u64 = 512;

/// Returns the number of iterations, or the interval, with which growth of `growth` bytes per
/// iteration is found with 80% power among `sites` callsites. Both fields are `None` if the growth
/// is not positive or the interval is exact; the interval is `None` if no interval of at least 512
/// bytes is both sufficient and smaller than the current one.
pub fn decider(
    interval: Interval,
    iterations: u64,
    churn_bytes: f64,
    sites: u64,
    growth: f64,
) -> Decider {
    let none = Decider {
        iterations: None,
        interval_bytes: None,
    };
    if growth.is_nan() || growth <= 0.0 || interval.is_exact() {
        return none;
    }
    let alpha = level_of(sites);
    let t = interval.bytes() as f64;
    let needed = hits_needed(alpha, interval.hits(churn_bytes.max(0.0))) * t / growth;
    let more = (needed.ceil().min(MAX_ITERATIONS) as u64).max(iterations.saturating_add(1));
    let window = growth * iterations.max(1) as f64;
    let finds = |interval: u64| {
        let t = interval as f64;
        hits_needed(alpha, churn_bytes.max(0.0) / t) * t <= window
    };
    // The next smaller power of two, then halves.
    let mut finer = 1 << (63 - (interval.bytes() - 1).leading_zeros());
    while finer > MIN_INTERVAL_BYTES && !finds(finer) {
        finer /= 2;
    }
    Decider {
        iterations: (needed <= MAX_ITERATIONS).then_some(more),
        interval_bytes: (finer >= MIN_INTERVAL_BYTES && finds(finer)).then_some(finer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_needed_are_those_of_the_exact_sum() {
        for (churn, wanted) in [
            (0.0, [6.7, 12.5, 18.1]),
            (10.0, [15.0, 27.0, 34.0]),
            (100.0, [39.0, 65.0, 79.0]),
            (1000.0, [115.0, 185.0, 224.0]),
        ] {
            for (alpha, want) in [0.05, 1e-3, 5e-5].into_iter().zip(wanted) {
                let got = hits_needed(alpha, churn);
                assert!((got / want - 1.0).abs() < 0.035, "{churn} {alpha}: {got}");
            }
        }
        for churn in [-1.0, 0.0, 59.9, 60.1, 1e30, f64::INFINITY, f64::NAN] {
            assert!(hits_needed(0.0, churn).is_finite(), "{churn}");
        }
    }

    #[test]
    fn smaller_intervals_and_more_iterations_find_smaller_leaks() {
        let t = |bytes| Interval::new(bytes).expect("not zero");
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.03, "{got} {want}");
        near(minimal_detectable(t(4096), 10.0, 0.0, 1000), 7_400.0);
        near(minimal_detectable(t(512), 100.0, 0.0, 1000), 93.0);
        near(minimal_detectable(t(131_072), 1000.0, 0.0, 1000), 2_400.0);
        assert_eq!(minimal_detectable(t(1), 10.0, 1e6, 1000), 0.0);
    }

    #[test]
    fn what_would_decide_does_decide() {
        let t = Interval::new(4096).expect("not zero");
        let plan = decider(t, 10, 50_000.0, 500, 8_000.0);
        let rounds = plan.iterations.expect("a number of iterations");
        assert!(rounds > 10);
        let with_rounds = minimal_detectable(t, rounds as f64, 50_000.0, 500);
        assert!(with_rounds <= 8_000.0 * 1.001, "{with_rounds}");
        let finer = Interval::new(plan.interval_bytes.expect("an interval")).expect("not zero");
        assert!(finer.bytes() < 4096);
        assert!(minimal_detectable(finer, 10.0, 50_000.0, 500) <= 8_000.0);
        let none = decider(t, 10, 0.0, 1, 0.0);
        assert_eq!((none.iterations, none.interval_bytes), (None, None));
        let tiny = decider(t, u64::MAX, f64::INFINITY, u64::MAX, 1e-300);
        assert_eq!(tiny.iterations, None);
    }

    #[test]
    fn intervals_that_record_warns_of_are_not_proposed() {
        for (bytes, growth) in [(4096, 2_000.0), (4096, 10.0), (512, 8_000.0), (64, 1.0)] {
            let t = Interval::new(bytes).expect("not zero");
            let plan = decider(t, 10, 50_000.0, 500, growth);
            assert_eq!(plan.interval_bytes, None, "{bytes} {growth}");
            assert!(plan.iterations > Some(10), "{bytes} {growth}");
        }
    }
}
