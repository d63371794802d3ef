//! Shares of a total and ratios of two sizes: Wilson's interval on hits. Large allocations, which
//! have no error, make it wider than necessary.

use super::estimate::Sampled;
use super::poisson::Z95;

/// Minimum number of hits in the total for a share or ratio to be shown.
pub const MIN_HITS_FOR_SHARE: f64 = 16.0;

/// Share or ratio with its 95% interval; `high` of a ratio can be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Sampled value.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Whether there are enough hits to show it.
    pub worth_showing: bool,
}

/// Returns the share of `total`, 0 to 1, that the disjoint callsites in `part` have; `None` for an
/// empty total. Both are of one heap, and `part` is part of `total`.
pub fn share(part: Sampled, total: Sampled) -> Option<Ratio> {
    let (hits, all) = (part.hits(), total.hits());
    if all <= 0.0 {
        return None;
    }
    let hits = hits.min(all);
    let value = hits / all;
    if total.interval().is_exact() {
        return Some(Ratio {
            value,
            low: value,
            high: value,
            worth_showing: true,
        });
    }
    let (low, high) = wilson(hits, all);
    Some(Ratio {
        value,
        low,
        high,
        worth_showing: all >= MIN_HITS_FOR_SHARE,
    })
}

/// Returns the ratio of `other` to `base`, which are sampled independently; `None` if neither has
/// samples.
pub fn ratio(other: Sampled, base: Sampled) -> Option<Ratio> {
    let (over, under) = (other.hits(), base.hits());
    let all = over + under;
    if all <= 0.0 {
        return None;
    }
    let scale = other.interval().bytes() as f64 / base.interval().bytes() as f64;
    let odds = |p: f64| {
        if p >= 1.0 {
            f64::INFINITY
        } else {
            p / (1.0 - p) * scale
        }
    };
    let value = odds(over / all);
    let exact = other.interval().is_exact() && base.interval().is_exact();
    let (low, high) = if exact {
        (value, value)
    } else {
        let (low, high) = wilson(over, all);
        (odds(low), odds(high))
    };
    Some(Ratio {
        value,
        low,
        high,
        worth_showing: exact || (all >= MIN_HITS_FOR_SHARE && value.is_finite()),
    })
}

/// Returns Wilson's 95% limits of a probability for `hits` of `all`; fractions are allowed.
fn wilson(hits: f64, all: f64) -> (f64, f64) {
    let z2 = Z95 * Z95;
    let middle = hits + z2 / 2.0;
    let spread = Z95 * (hits * (all - hits) / all + z2 / 4.0).max(0.0).sqrt();
    let norm = all + z2;
    let low = if hits <= 0.0 {
        0.0
    } else {
        ((middle - spread) / norm).max(0.0)
    };
    let high = if hits >= all {
        1.0
    } else {
        ((middle + spread) / norm).min(1.0)
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Interval;
    use super::*;

    fn sampled(hits: i64, t: u64) -> Sampled {
        Sampled::new(hits * t as i64, hits, Interval::new(t).expect("not zero"))
    }

    #[test]
    fn shares_have_wilsons_interval() {
        let got = share(sampled(50, 4096), sampled(550, 4096)).expect("there is a total");
        // Wilson's limits for 50 of 550, computed by hand.
        assert!((got.value - 0.0909).abs() < 1e-4);
        assert!((got.low - 0.0696).abs() < 1e-3, "{got:?}");
        assert!((got.high - 0.1179).abs() < 1e-3, "{got:?}");
        assert!(got.worth_showing);
        let few = share(sampled(2, 4096), sampled(15, 4096)).expect("there is a total");
        assert!(!few.worth_showing);
        assert_eq!(share(sampled(0, 4096), sampled(0, 4096)), None);
    }

    #[test]
    fn ratios_scale_by_the_intervals() {
        let got = ratio(sampled(100, 16384), sampled(400, 4096)).expect("seen");
        assert!((got.value - 1.0).abs() < 1e-12);
        assert!(got.low < 1.0 && got.high > 1.0);
        let none = ratio(sampled(20, 4096), sampled(0, 4096)).expect("seen");
        assert!(none.value.is_infinite() && !none.worth_showing);
        assert!(none.low > 1.0);
        assert_eq!(ratio(sampled(0, 1), sampled(0, 1)), None);
    }
}
