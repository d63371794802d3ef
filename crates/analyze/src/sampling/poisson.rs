//! Limits for the mean of a Poisson number of hits: Byar's closed form of the exact (Garwood)
//! limits, which also accepts fractions.

/// Two-sided 95%.
pub const Z95: f64 = 1.959_963_984_540_054;
/// One-sided 95%.
pub const Z95_ONE_SIDED: f64 = 1.644_853_626_951_472_7;

/// Returns the lower limit of the mean for observed `hits` at `z` standard deviations; 0 below one
/// hit.
pub fn low(hits: f64, z: f64) -> f64 {
    if hits < 1.0 {
        return 0.0;
    }
    let base = 1.0 - 1.0 / (9.0 * hits) - z / (3.0 * hits.sqrt());
    hits * base.max(0.0).powi(3)
}

/// Returns the upper limit of the mean for observed `hits` at `z` standard deviations; 3.67 for no
/// hit at 95%.
pub fn high(hits: f64, z: f64) -> f64 {
    let next = hits.max(0.0) + 1.0;
    let base = 1.0 - 1.0 / (9.0 * next) + z / (3.0 * next.sqrt());
    next * base.powi(3)
}

/// Returns the number of hits that `samples` allocations below the sampling interval can plausibly
/// have: a sample has 1.582 on average at most (e/(e-1), just below the interval).
pub fn plausible_hits(samples: u64) -> f64 {
    if samples == 0 {
        return 0.0;
    }
    let samples = samples as f64;
    1.582 * samples + 1.6 * samples.sqrt() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_close_to_the_exact_ones() {
        // Garwood's limits, from tables of the chi-squared distribution.
        for (hits, exact_low, exact_high) in [
            (0.0, 0.0, 3.689),
            (1.0, 0.0253, 5.572),
            (5.0, 1.623, 11.668),
            (10.0, 4.795, 18.390),
            (100.0, 81.364, 121.627),
        ] {
            assert!((low(hits, Z95) - exact_low).abs() < 0.05, "{hits}");
            assert!((high(hits, Z95) - exact_high).abs() < 0.05, "{hits}");
        }
    }

    #[test]
    fn limits_enclose_and_never_fail() {
        for hits in [-1.0, 0.0, 0.3, 0.999, 1.0, 1.5, 17.25, 1e6, 1e15, 1e300] {
            for z in [0.0, Z95_ONE_SIDED, Z95, 6.0] {
                let (low, high) = (low(hits, z), high(hits, z));
                assert!(low.is_finite() && high.is_finite(), "{hits} {z}");
                assert!(low >= 0.0 && low <= hits.max(0.0), "{hits} {z}: {low}");
                assert!(high >= hits, "{hits} {z}: {high}");
            }
        }
    }
}
