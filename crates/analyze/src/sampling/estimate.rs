//! Samples of one or more callsites, and the true size that they represent.

use super::poisson::{self, Z95};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::Facts;

/// Sampling interval of a heap in bytes; not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Interval at the end: never below `original`.
    current: u64,
    /// Interval at the start of the recording; adaptive sampling doubles it later.
    original: u64,
    /// Whether every allocation of at least the interval is recorded at its true size.
    large_are_exact: bool,
}

impl Interval {
    /// Creates an interval; `None` for 0, because the error is then unknown.
    pub fn new(bytes: u64) -> Option<Interval> {
        Interval::adaptive(bytes, bytes)
    }

    /// Creates an interval that can have grown from `original` (0 if it is `current`).
    pub fn adaptive(current: u64, original: u64) -> Option<Interval> {
        let original = if original == 0 { current } else { original };
        let current = current.max(original);
        (current > 0).then_some(Interval {
            current,
            original,
            large_are_exact: true,
        })
    }

    /// Returns the interval of a dump; `None` if it is unknown, and for what is not a sum of
    /// independent samples: the maximum of a heap, and a difference.
    pub fn from_facts(facts: &Facts) -> Option<Interval> {
        match facts.kind {
            DumpKind::AtMaximum | DumpKind::Difference => None,
            DumpKind::Cumulative | DumpKind::AllocationsOnly | DumpKind::JavaHeap => {
                Interval::adaptive(
                    facts.sampling_interval_bytes,
                    facts.orig_sampling_interval_bytes,
                )
            }
        }
    }

    /// Returns the interval for Perfetto v13 to v16, whose sampler records true sizes only from
    /// about 4.6 intervals on. A sample can then have more hits.
    #[must_use]
    pub fn with_late_cutoff(self) -> Interval {
        Interval {
            large_are_exact: false,
            ..self
        }
    }

    /// Returns the maximum number of bytes per hit: the interval at the end.
    pub fn bytes(self) -> u64 {
        self.current
    }

    /// Returns whether every allocation was recorded, so there is no error.
    pub fn is_exact(self) -> bool {
        self.current == 1
    }

    /// Returns the more conservative interval for values sampled with either.
    #[must_use]
    pub fn wider(self, other: Interval) -> Interval {
        Interval {
            current: self.current.max(other.current),
            original: self.original.min(other.original),
            large_are_exact: self.large_are_exact && other.large_are_exact,
        }
    }

    /// Converts bytes to hits.
    pub(super) fn hits(self, bytes: f64) -> f64 {
        bytes / self.current as f64
    }
}

/// Sampled bytes of disjoint callsites of one heap. Sum first, then compute intervals: variances
/// add, limits do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    bytes: i64,
    samples: u64,
    /// Number of samples that can be below the interval; the others certainly are not.
    small: u64,
    interval: Interval,
}

impl Sampled {
    /// Creates a sample of one callsite from bytes and number of sampled allocations. Negative
    /// counts (from damaged files or differences by other tools) count as 0.
    pub fn new(bytes: i64, samples: i64, interval: Interval) -> Sampled {
        let samples = u64::try_from(samples).unwrap_or(0);
        let size = bytes.unsigned_abs();
        // Hits are multiples of the interval, so any other size shows that at least one sample was
        // recorded at its true size. A single sample of eight intervals was too: below the
        // interval, eight hits occur once in 100,000.
        let odd = !size.is_multiple_of(interval.original);
        let huge =
            samples == 1 && interval.large_are_exact && size / 8 >= interval.current && size > 0;
        let large = u64::from(odd || huge);
        Sampled {
            bytes,
            samples,
            small: samples.saturating_sub(large),
            interval,
        }
    }

    /// Creates the sum of disjoint callsites of one heap from the sums of their bytes, samples and
    /// [`Sampled::small`], for column-wise sums.
    pub fn of_sums(bytes: i64, samples: i64, small: i64, interval: Interval) -> Sampled {
        let samples = u64::try_from(samples).unwrap_or(0);
        Sampled {
            bytes,
            samples,
            small: u64::try_from(small).unwrap_or(0).min(samples),
            interval,
        }
    }

    /// Returns the sample in a unit that is `factor` times as fine, for example bytes per duration
    /// of another recording. Its error scales too.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Sampled {
        let scaled = |bytes: u64| ((bytes as f64 * factor).round() as u64).max(2);
        let interval = match self.interval.is_exact() {
            true => self.interval,
            false => Interval {
                current: scaled(self.interval.current),
                original: scaled(self.interval.original),
                ..self.interval
            },
        };
        Sampled {
            bytes: (self.bytes as f64 * factor).round() as i64,
            interval,
            ..self
        }
    }

    /// Returns the number of sampled allocations that can be smaller than the interval. The others
    /// were certainly recorded at their true size.
    pub fn small(&self) -> u64 {
        self.small
    }

    /// Returns an empty sample.
    pub fn nothing(interval: Interval) -> Sampled {
        Sampled::new(0, 0, interval)
    }

    /// Returns the sampled bytes.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Returns the number of sampled allocations.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the sampling interval.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Returns the bytes in intervals, including large allocations.
    pub fn hits(&self) -> f64 {
        self.interval.hits(self.bytes.max(0) as f64)
    }

    /// Returns the hits with sampling error: those that allocations below the interval can
    /// plausibly have had. The dump does not identify large samples; counting too many as small is
    /// conservative.
    pub fn uncertain_hits(&self) -> f64 {
        if self.interval.is_exact() {
            return 0.0;
        }
        let hits = self.hits();
        if self.interval.large_are_exact || self.small == 0 {
            hits.min(poisson::plausible_hits(self.small))
        } else {
            hits
        }
    }

    /// Returns the distance from `bytes` to the lower limit at `z` standard deviations.
    pub(super) fn slack_below(&self, z: f64) -> f64 {
        self.slack(|hits| hits - poisson::low(hits, z))
    }

    /// Returns the distance from `bytes` to the upper limit at `z` standard deviations.
    pub(super) fn slack_above(&self, z: f64) -> f64 {
        self.slack(|hits| poisson::high(hits, z) - hits)
    }

    fn slack(&self, of_hits: impl Fn(f64) -> f64) -> f64 {
        match self.interval.is_exact() {
            true => 0.0,
            false => self.interval.current as f64 * of_hits(self.uncertain_hits()),
        }
    }

    /// Returns the true bytes, 95%. Without samples, the upper limit is three intervals.
    pub fn estimate(&self) -> Estimate {
        let value = self.bytes;
        let (below, above) = (self.slack_below(Z95), self.slack_above(Z95));
        let (low, high) = if self.samples == 0 && value == 0 {
            (0.0, unseen_at_most(self.interval))
        } else {
            ((value as f64 - below).max(0.0), value as f64 + above)
        };
        Estimate {
            value,
            // Only damaged files have negative sums, which are kept.
            low: if self.interval.is_exact() {
                value
            } else {
                (low.floor() as i64).min(value)
            },
            high: if self.interval.is_exact() {
                value
            } else {
                (high.ceil() as i64).max(value)
            },
            hits: self.uncertain_hits(),
            samples: self.samples,
            exact: self.interval.is_exact(),
        }
    }

    /// Returns the sum with other callsites of the same heap.
    #[must_use]
    pub fn plus(self, other: Sampled) -> Sampled {
        Sampled {
            bytes: self.bytes.saturating_add(other.bytes),
            samples: self.samples.saturating_add(other.samples),
            small: self.small.saturating_add(other.small),
            interval: self.interval.wider(other.interval),
        }
    }

    /// Returns the lesser of two upper limits.
    pub(super) fn least(self, other: Sampled) -> Sampled {
        Sampled {
            bytes: self.bytes.min(other.bytes).max(0),
            samples: self.samples.min(other.samples),
            small: self.small.min(other.small),
            interval: self.interval.wider(other.interval),
        }
    }
}

/// Value with the 95% interval of its sampling error, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<N = i64> {
    /// Sampled value; unbiased.
    pub value: N,
    /// Lower limit.
    pub low: N,
    /// Upper limit.
    pub high: N,
    /// Hits with error; few hits make the interval wide.
    pub hits: f64,
    /// Number of sampled allocations.
    pub samples: u64,
    /// Whether every allocation was recorded, so there is no error.
    pub exact: bool,
}

impl Estimate {
    /// Creates a value without error.
    pub fn exact(value: i64, samples: u64) -> Estimate {
        Estimate {
            value,
            low: value,
            high: value,
            hits: 0.0,
            samples,
            exact: true,
        }
    }

    /// Returns whether the interval excludes zero.
    pub fn sign_is_certain(&self) -> bool {
        self.low > 0 || self.high < 0
    }

    /// Divides by `parts`: growth per iteration or per second. `None` if `parts` is not positive.
    pub fn per(&self, parts: f64) -> Option<Rate> {
        (parts.is_finite() && parts > 0.0).then(|| self.with(|bytes| bytes as f64 / parts))
    }

    /// Returns the same with other numbers for the value and its limits.
    pub(super) fn with<N>(&self, number: impl Fn(i64) -> N) -> Estimate<N> {
        Estimate {
            value: number(self.value),
            low: number(self.low),
            high: number(self.high),
            hits: self.hits,
            samples: self.samples,
            exact: self.exact,
        }
    }
}

/// Bytes per iteration or per time.
pub type Rate = Estimate<f64>;

/// Returns the maximum number of bytes (95%, one-sided) that a callsite without samples allocated.
/// Allocations of at least the interval were not among them, because those are always recorded.
pub fn unseen_at_most(interval: Interval) -> f64 {
    if interval.is_exact() {
        0.0
    } else {
        3.0 * interval.current as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(bytes: u64) -> Interval {
        Interval::new(bytes).expect("not zero")
    }

    #[test]
    fn small_samples_have_poisson_limits() {
        let site = Sampled::new(100 * 4096, 98, interval(4096));
        let estimate = site.estimate();
        assert_eq!(estimate.value, 409_600);
        assert!((estimate.low as f64 / 4096.0 - 81.4).abs() < 0.1);
        assert!((estimate.high as f64 / 4096.0 - 121.6).abs() < 0.1);
        assert_eq!(estimate.hits, 100.0);
    }

    #[test]
    fn a_large_block_is_known_exactly_but_for_what_lies_unseen_beside_it() {
        let odd = Sampled::new(100_001, 1, interval(4096)).estimate();
        assert_eq!((odd.low, odd.hits), (100_001, 0.0));
        assert!(odd.high < 100_001 + 4 * 4096);
        let even = Sampled::new(1 << 20, 1, interval(4096)).estimate();
        assert_eq!(
            even.low,
            1 << 20,
            "eight intervals in one sample are not chance"
        );
    }

    #[test]
    fn the_cap_knows_late_cutoffs() {
        let early = Sampled::new(7 * 4096, 1, interval(4096));
        assert!(early.uncertain_hits() < 4.2);
        let late = Sampled::new(7 * 4096, 1, interval(4096).with_late_cutoff());
        assert_eq!(late.uncertain_hits(), 7.0);
    }

    #[test]
    fn an_interval_of_one_is_exact_and_none_is_unknown() {
        let exact = Sampled::new(12_345, 17, interval(1)).estimate();
        assert_eq!((exact.low, exact.high), (12_345, 12_345));
        assert!(exact.exact);
        assert_eq!(Interval::new(0), None);
        assert_eq!(unseen_at_most(interval(1)), 0.0);
    }

    #[test]
    fn nothing_sampled_is_at_most_three_intervals() {
        let nothing = Sampled::nothing(interval(4096)).estimate();
        assert_eq!((nothing.value, nothing.low, nothing.high), (0, 0, 12_288));
    }

    #[test]
    fn sums_come_before_intervals() {
        let site = Sampled::new(4096, 1, interval(4096));
        let all = (1..100).fold(site, |sum, _| sum.plus(site)).estimate();
        assert_eq!(all.value, 409_600);
        assert!(all.low > 320_000, "not a hundred lower limits of one hit");
    }

    #[test]
    fn extremes_stay_numbers() {
        for bytes in [i64::MIN, -1, 0, 1, i64::MAX] {
            for samples in [i64::MIN, -1, 0, 1, i64::MAX] {
                for t in [1, 2, 4096, u64::MAX] {
                    let site = Sampled::new(bytes, samples, interval(t));
                    let estimate = site.plus(site).estimate();
                    assert!(estimate.low <= estimate.value, "{bytes} {samples} {t}");
                    assert!(estimate.high >= estimate.value, "{bytes} {samples} {t}");
                    assert!(estimate.hits.is_finite());
                }
            }
        }
    }
}
