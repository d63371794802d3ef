//! True numbers of allocations. Counts in a dump are numbers of samples, which are not scaled.

use super::estimate::{Estimate, Sampled};
use super::poisson::{self, Z95_ONE_SIDED};

/// Returns a lower limit (95%) for the number of allocations of any sizes. Fewer samples with more
/// than one hit indicate smaller and more numerous allocations.
pub fn allocations_at_least(sampled: &Sampled) -> u64 {
    let samples = sampled.samples();
    if sampled.interval().is_exact() {
        return samples;
    }
    let hits = sampled.hits();
    let excess = (hits - samples as f64).max(0.0);
    // Cauchy-Schwarz over any mix of sizes x = s/T <= 1: x - 1 + e^-x >= 0.368 x².
    let bound = 0.368 * hits * hits / poisson::high(excess, Z95_ONE_SIDED);
    samples.max(bound.floor() as u64)
}

/// Returns the number of allocations if all have one known size (a type, a size class); `None` for
/// size 0.
pub fn allocations_of_size(bytes: &Estimate, size: u64) -> Option<Estimate> {
    let size = i64::try_from(size).ok().filter(|size| *size > 0)?;
    Some(Estimate {
        value: bytes.value / size,
        low: bytes.low.div_euclid(size),
        high: bytes.high.div_euclid(size) + i64::from(bytes.high.rem_euclid(size) != 0),
        ..*bytes
    })
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Interval;
    use super::*;

    #[test]
    fn singles_stand_for_very_many() {
        let interval = Interval::new(4096).expect("not zero");
        let singles = Sampled::new(1000 * 4096, 1000, interval);
        let bound = allocations_at_least(&singles);
        assert!((100_000..150_000).contains(&bound), "{bound}");
        let exact = Sampled::new(1000, 10, Interval::new(1).expect("not zero"));
        assert_eq!(allocations_at_least(&exact), 10);
        let huge = Sampled::new(i64::MAX, i64::MAX, interval);
        assert!(allocations_at_least(&huge) >= i64::MAX as u64);
    }

    #[test]
    fn a_known_size_divides() {
        let bytes = Estimate {
            value: 640,
            low: 100,
            high: 1001,
            hits: 5.0,
            samples: 5,
            exact: false,
        };
        let count = allocations_of_size(&bytes, 64).expect("a size");
        assert_eq!((count.value, count.low, count.high), (10, 1, 16));
        assert_eq!(allocations_of_size(&bytes, 0), None);
    }
}
