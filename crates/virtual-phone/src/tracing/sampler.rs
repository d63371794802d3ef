//! heapprofd's sampler: a Poisson process over allocated bytes.

/// Seed of the random engine in every profiled process. Real engines are default-seeded, so each
/// process replays the same gaps.
const DEFAULT_SEED: u64 = 5_489;

/// One heap's sampler.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    interval: u64,
    /// Number of bytes until the next sample.
    countdown: i64,
    random: fastrand::Rng,
}

impl Sampler {
    /// Creates a sampler; `interval` is the mean distance of two samples in bytes, at least 1.
    pub(super) fn new(interval: u64, seed: u64) -> Self {
        let mut sampler = Sampler {
            interval: interval.max(1),
            countdown: 0,
            random: fastrand::Rng::with_seed(DEFAULT_SEED ^ seed.rotate_left(17)),
        };
        sampler.countdown = sampler.gap();
        sampler
    }

    pub(super) fn interval(&self) -> u64 {
        self.interval
    }

    /// Returns floor(Exp(mean)) + 1.
    fn gap(&mut self) -> i64 {
        let uniform = 1.0 - self.random.f64();
        (-uniform.ln() * self.interval as f64) as i64 + 1
    }

    /// Returns the size that an allocation represents; 0 if it is not sampled.
    pub(super) fn sample(&mut self, size: u64) -> u64 {
        if size >= self.interval {
            return size;
        }
        self.countdown -= size as i64;
        let mut hits = 0;
        while self.countdown <= 0 {
            hits += 1;
            self.countdown += self.gap();
        }
        hits * self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_add_up_to_what_was_allocated() {
        for (interval, size) in [(4096, 64), (4096, 640), (512, 500), (65_536, 32)] {
            let mut sampler = Sampler::new(interval, 3);
            let n = interval * 2_000 / size;
            let sum: u64 = (0..n).map(|_| sampler.sample(size)).sum();
            let truth = (n * size) as f64;
            // 2,000 hits: a standard deviation is 2.2 %; the seed is fixed.
            assert!(
                (sum as f64 / truth - 1.0).abs() < 0.07,
                "{interval} {size}: {sum}"
            );
        }
    }

    #[test]
    fn large_allocations_are_exact_and_leave_the_countdown() {
        let mut a = Sampler::new(4096, 1);
        let mut b = Sampler::new(4096, 1);
        assert_eq!(a.sample(4096), 4096);
        assert_eq!(a.sample(1_000_000), 1_000_000);
        for _ in 0..1_000 {
            assert_eq!(a.sample(100), b.sample(100));
        }
        assert_eq!(Sampler::new(1, 1).sample(7), 7);
    }
}
