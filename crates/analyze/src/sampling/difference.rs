//! Growth of unreleased bytes: between two dumps of one recording, whose survivors cancel exactly,
//! or between two recordings.

use super::estimate::{Estimate, Interval, Sampled};
use super::poisson::Z95;
use super::special;

/// Standard deviations beyond which a chance is as good as none.
const MAX_Z: f64 = 16.0;
/// Number of halvings of the range of standard deviations: to 0.004.
const HALVINGS: u32 = 12;

/// Counters of a callsite in one dump as recorded: cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Unreleased bytes.
    pub space: i64,
    /// Unreleased sampled allocations.
    pub objects: i64,
    /// Bytes allocated since profiling began.
    pub alloc_space: i64,
    /// Sampled allocations since profiling began.
    pub alloc_objects: i64,
    /// Unreleased sampled allocations that can be below the interval, if the counters are sums of
    /// many callsites. For one callsite it follows from the others.
    pub small: Option<i64>,
}

impl Counters {
    /// Returns the bytes freed since profiling began.
    pub fn freed(&self) -> i64 {
        self.alloc_space.saturating_sub(self.space)
    }

    /// Returns the sampled allocations freed since profiling began.
    pub fn freed_objects(&self) -> i64 {
        self.alloc_objects.saturating_sub(self.objects)
    }

    /// Returns the unreleased bytes as a sample.
    pub fn held(&self, interval: Interval) -> Sampled {
        match self.small {
            Some(small) => Sampled::of_sums(self.space, self.objects, small, interval),
            None => Sampled::new(self.space, self.objects, interval),
        }
    }

    /// Returns the allocated bytes as a sample.
    pub fn allocated(&self, interval: Interval) -> Sampled {
        Sampled::new(self.alloc_space, self.alloc_objects, interval)
    }
}

/// Turnover between dumps: allocations that came and stayed, and allocations that were released, as
/// independent samples. Sum over disjoint callsites before computing intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turnover {
    net: i64,
    /// Upper limit of allocations made in between and still unreleased.
    kept: Sampled,
    /// Upper limit of earlier allocations released since, with the same excess.
    released: Sampled,
}

impl Turnover {
    /// Returns the turnover between two dumps of one callsite in one recording. Survivors are in
    /// both and cancel. Replaced allocations cannot be distinguished from survivors, so the
    /// interval is conservative, yet narrower than for two recordings.
    pub fn paired(before: &Counters, after: &Counters, interval: Interval) -> Turnover {
        let since = |after: i64, before: i64| after.saturating_sub(before).max(0);
        let allocated = Sampled::new(
            since(after.alloc_space, before.alloc_space),
            since(after.alloc_objects, before.alloc_objects),
            interval,
        );
        let freed = Sampled::new(
            since(after.freed(), before.freed()),
            since(after.freed_objects(), before.freed_objects()),
            interval,
        );
        Turnover {
            net: after.space.saturating_sub(before.space),
            kept: allocated.least(after.held(interval)),
            released: freed.least(before.held(interval)),
        }
    }

    /// Returns the turnover between two recordings, each with its own interval, as independent
    /// samples. It covers sampling error only, not differences between runs.
    pub fn independent(before: Sampled, after: Sampled) -> Turnover {
        Turnover {
            net: after.bytes().saturating_sub(before.bytes()),
            kept: after,
            released: before,
        }
    }

    /// Creates a turnover from sums over disjoint callsites of the same dumps.
    pub fn of_sums(net: i64, kept: Sampled, released: Sampled) -> Turnover {
        Turnover {
            net,
            kept,
            released,
        }
    }

    /// Returns the turnover with kept and released exchanged.
    #[must_use]
    pub fn reversed(self) -> Turnover {
        Turnover {
            net: self.net.saturating_neg(),
            kept: self.released,
            released: self.kept,
        }
    }

    /// Returns a turnover without any change.
    pub fn nothing(interval: Interval) -> Turnover {
        Turnover {
            net: 0,
            kept: Sampled::nothing(interval),
            released: Sampled::nothing(interval),
        }
    }

    /// Returns the sum with other callsites of the same dumps.
    #[must_use]
    pub fn plus(self, other: Turnover) -> Turnover {
        Turnover {
            net: self.net.saturating_add(other.net),
            kept: self.kept.plus(other.kept),
            released: self.released.plus(other.released),
        }
    }

    /// Returns the growth in sampled bytes.
    pub fn net(&self) -> i64 {
        self.net
    }

    /// Returns the upper limit of bytes allocated in between and kept.
    pub fn kept(&self) -> Sampled {
        self.kept
    }

    /// Returns the upper limit of earlier bytes that were released.
    pub fn released(&self) -> Sampled {
        self.released
    }

    /// Returns the hits on both sides, which determine the power of a test.
    pub fn hits(&self) -> f64 {
        self.kept.hits() + self.released.hits()
    }

    /// Returns the true difference in bytes, 95%.
    pub fn estimate(&self) -> Estimate {
        let (low, high) = self.limits(Z95);
        Estimate {
            value: self.net,
            low: (low.floor() as i64).min(self.net),
            high: (high.ceil() as i64).max(self.net),
            hits: self.kept.uncertain_hits() + self.released.uncertain_hits(),
            samples: self.kept.samples().saturating_add(self.released.samples()),
            exact: self.is_exact(),
        }
    }

    /// Returns limits of the true difference in bytes at `z` standard deviations.
    fn limits(&self, z: f64) -> (f64, f64) {
        (self.lower_limit(z), self.upper_limit(z))
    }

    /// Returns the lower limit of the true difference in bytes at `z` standard deviations.
    pub fn lower_limit(&self, z: f64) -> f64 {
        self.net as f64 - self.kept.slack_below(z).hypot(self.released.slack_above(z))
    }

    /// Returns the upper limit of the true difference in bytes at `z` standard deviations.
    pub fn upper_limit(&self, z: f64) -> f64 {
        self.net as f64 + self.kept.slack_above(z).hypot(self.released.slack_below(z))
    }

    /// Returns whether every allocation was recorded on both sides.
    pub fn is_exact(&self) -> bool {
        self.kept.interval().is_exact() && self.released.interval().is_exact()
    }

    /// Returns the probability, 0 to 1, that sampling alone produces at least this excess of kept
    /// over released: a one-sided sign test. Large blocks and replaced allocations only increase
    /// it.
    pub fn sign_test(&self) -> f64 {
        if self.is_exact() {
            return if self.net > 0 { 0.0 } else { 1.0 };
        }
        let (kept, released) = (self.kept.hits(), self.released.hits());
        // Equal bytes give hits in inverse proportion to the intervals.
        let (t_kept, t_released) = (
            self.kept.interval().bytes() as f64,
            self.released.interval().bytes() as f64,
        );
        let chance = t_released / (t_kept + t_released);
        special::binomial_tail(
            (kept + released + 1e-9).floor(),
            (kept - 1e-9).ceil(),
            chance,
        )
    }

    /// Returns the probability, 0 to 1, that sampling alone produces a change like this one, in either
    /// direction. Blocks recorded at their true size do not err, so that a sign test, which counts
    /// their hits, hides a change among them. With such blocks, the limits decide: those that just
    /// leave out zero. 1 if those of 95% contain it.
    pub fn chance(&self) -> f64 {
        let seen = match self.net < 0 {
            true => self.reversed(),
            false => *self,
        };
        if self.kept.uncertain_hits() + self.released.uncertain_hits() >= self.hits() {
            return (2.0 * seen.sign_test()).min(1.0);
        }
        // As `lower_limit` does, without a root.
        let square = |number: f64| number * number;
        let net = square(seen.net.max(0) as f64);
        let leaves_out_zero =
            |z: f64| square(seen.kept.slack_below(z)) + square(seen.released.slack_above(z)) < net;
        if !leaves_out_zero(Z95) {
            return 1.0;
        }
        2.0 * special::normal_tail(special::bisect(Z95, MAX_Z, HALVINGS, leaves_out_zero))
    }

    /// Like [`Self::sign_test`], for numbers of sampled allocations: a few big blocks have many
    /// bytes but are few events.
    pub fn sign_test_of_samples(&self) -> f64 {
        let (kept, released) = (self.kept.samples() as f64, self.released.samples() as f64);
        special::binomial_tail(kept + released, kept, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: u64 = 4096;

    fn interval() -> Interval {
        Interval::new(T).expect("not zero")
    }

    fn counters(held: i64, allocated: i64) -> Counters {
        Counters {
            space: held * T as i64,
            objects: held,
            alloc_space: allocated * T as i64,
            alloc_objects: allocated,
            small: None,
        }
    }

    #[test]
    fn survivors_cancel_exactly() {
        let turnover = Turnover::paired(&counters(1000, 1000), &counters(1010, 1010), interval());
        let estimate = turnover.estimate();
        assert_eq!(estimate.value, 10 * T as i64);
        assert!(estimate.low > 3 * T as i64, "{estimate:?}");
        let apart = Turnover::independent(
            counters(1000, 1000).held(interval()),
            counters(1010, 1010).held(interval()),
        );
        assert!(apart.estimate().low < -70 * T as i64);
    }

    #[test]
    fn of_many_callsites_only_small_samples_err() {
        // Fifty blocks recorded at their true size, of as many callsites, and two small ones.
        let sums = |small| Counters {
            small,
            space: 50 * 100_001 + 2 * T as i64,
            objects: 52,
            alloc_space: 50 * 100_001 + 2 * T as i64,
            alloc_objects: 52,
        };
        let reach = |small| {
            let nothing = Counters::default();
            let turnover = Turnover::paired(&nothing, &sums(small), interval());
            let estimate = turnover.estimate();
            estimate.value - estimate.low
        };
        assert!(reach(Some(2)) < 12 * T as i64, "{}", reach(Some(2)));
        assert!(reach(None) > 2 * reach(Some(2)));
    }

    #[test]
    fn nothing_changed_is_within_three_intervals_or_so() {
        let same = counters(50, 80);
        let turnover = Turnover::paired(&same, &same, interval());
        assert_eq!(turnover.net(), 0);
        assert_eq!(turnover.sign_test(), 1.0);
        let (low, high) = turnover.limits(Z95);
        assert!((high / T as f64 - 3.67).abs() < 0.02, "{high}");
        assert_eq!(low, -high);
    }

    #[test]
    fn sign_test_has_the_binomial_tail() {
        let test = |kept, released| {
            Turnover::independent(
                counters(released, released).held(interval()),
                counters(kept, kept).held(interval()),
            )
            .sign_test()
        };
        assert!((test(5, 0) - 1.0 / 32.0).abs() < 1e-12);
        assert!((test(8, 2) - 56.0 / 1024.0).abs() < 1e-12);
        assert_eq!(test(0, 5), 1.0);
        assert!(test(1_000_000, 990_000) < 1e-6);
    }

    #[test]
    fn blocks_of_their_true_size_do_not_hide_a_change_among_them() {
        // Five bitmaps; four of them are replaced by three.
        let before = Counters {
            space: 5 * 150_001,
            objects: 5,
            alloc_space: 5 * 150_001,
            alloc_objects: 5,
            small: None,
        };
        let after = Counters {
            space: 4 * 150_001,
            objects: 4,
            alloc_space: 8 * 150_001,
            alloc_objects: 8,
            small: None,
        };
        let turnover = Turnover::paired(&before, &after, interval());
        assert!(turnover.limits(Z95).1 < 0.0);
        assert!(turnover.reversed().sign_test() > 0.01);
        assert!(turnover.chance() < 1e-4, "{}", turnover.chance());
        // No change is nothing but chance.
        let same = Turnover::paired(&before, &before, interval());
        assert!((same.chance() - 1.0).abs() < 1e-9, "{}", same.chance());
    }

    #[test]
    fn one_is_exact() {
        let one = Interval::new(1).expect("not zero");
        let before = Counters {
            space: 10,
            objects: 2,
            alloc_space: 30,
            alloc_objects: 4,
            small: None,
        };
        let after = Counters {
            space: 25,
            objects: 3,
            alloc_space: 60,
            alloc_objects: 8,
            small: None,
        };
        let turnover = Turnover::paired(&before, &after, one);
        assert_eq!(turnover.limits(Z95), (15.0, 15.0));
        assert_eq!(turnover.sign_test(), 0.0);
        assert_eq!(Turnover::paired(&after, &after, one).sign_test(), 1.0);
    }

    #[test]
    fn extremes_stay_numbers() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        for a in ends {
            for b in ends {
                for t in [1, 4096, u64::MAX] {
                    let interval = Interval::new(t).expect("not zero");
                    let before = Counters {
                        space: a,
                        objects: b,
                        alloc_space: b,
                        alloc_objects: a,
                        small: None,
                    };
                    let after = Counters {
                        space: b,
                        objects: a,
                        alloc_space: a,
                        alloc_objects: b,
                        small: Some(b),
                    };
                    let turnover = Turnover::paired(&before, &after, interval);
                    let sum = turnover.plus(turnover);
                    let estimate = sum.estimate();
                    assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
                    for p in [sum.sign_test(), sum.sign_test_of_samples()] {
                        assert!((0.0..=1.0).contains(&p), "{a} {b} {t}: {p}");
                    }
                }
            }
        }
    }
}
