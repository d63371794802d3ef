//! Intervals for allocated bytes if the sampling interval changed during the recording and the part
//! of each stretch is known. They are narrower than with the last interval for everything.

use super::estimate::Estimate;
use super::poisson::{self, Z95};

/// Part of a recording with one sampling interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Interval in bytes; not 0.
    pub interval_bytes: u64,
    /// Sampled bytes of the stretch.
    pub bytes: u64,
    /// Sampled allocations of the stretch.
    pub samples: u64,
}

/// Returns the true sum of all stretches, 95%: a gamma approximation with the weighted variance.
pub fn weighted(stretches: &[Stretch]) -> Estimate {
    let sum = |of: fn(&Stretch) -> f64| stretches.iter().map(of).sum::<f64>();
    let bytes = sum(|s| s.bytes as f64);
    let variance = sum(|s| s.interval_bytes as f64 * s.bytes as f64);
    let widest = stretches.iter().map(|s| s.interval_bytes).max();
    let widest = widest.unwrap_or(1).max(1) as f64;
    let samples = stretches
        .iter()
        .fold(0_u64, |sum, s| sum.saturating_add(s.samples));
    let value = bytes as i64;
    if widest == 1.0 {
        return Estimate::exact(value, samples);
    }
    let low = if bytes > 0.0 && variance > 0.0 {
        variance / bytes * poisson::low(bytes * bytes / variance, Z95)
    } else {
        0.0
    };
    // One more hit of the widest interval: the upper limit for one more than observed.
    let (bytes_next, variance_next) = (bytes + widest, variance + widest * widest);
    let high = variance_next / bytes_next
        * poisson::high(bytes_next * bytes_next / variance_next - 1.0, Z95);
    Estimate {
        value,
        low: (low.floor() as i64).min(value),
        high: (high.ceil() as i64).max(value),
        hits: bytes / widest,
        samples,
        exact: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stretch_has_the_plain_limits() {
        let got = weighted(&[Stretch {
            interval_bytes: 4096,
            bytes: 100 * 4096,
            samples: 99,
        }]);
        assert!((got.low as f64 / 4096.0 - poisson::low(100.0, Z95)).abs() < 1e-3);
        assert!((got.high as f64 / 4096.0 - poisson::high(100.0, Z95)).abs() < 1e-3);
    }

    #[test]
    fn stretches_are_sharper_than_the_last_interval() {
        let stretch = |interval_bytes: u64, hits: u64| Stretch {
            interval_bytes,
            bytes: interval_bytes * hits,
            samples: hits,
        };
        let got = weighted(&[stretch(4096, 400), stretch(16384, 2)]);
        let hits = got.value as f64 / 16384.0;
        assert!((got.high - got.value) as f64 / 16384.0 < poisson::high(hits, Z95) - hits);
        let none = weighted(&[]);
        assert_eq!((none.low, none.value, none.high), (0, 0, 0));
        let huge = weighted(&[stretch(u64::MAX, 1); 3]);
        assert!(huge.low <= huge.value && huge.value <= huge.high);
    }
}
