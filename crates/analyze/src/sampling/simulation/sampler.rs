//! heapprofd's sampler and its random inputs.

use super::super::{Counters, Interval, Sampled};

/// One countdown for all allocations of a heap.
pub struct Sampler {
    interval: u64,
    countdown: i64,
    random: fastrand::Rng,
}

impl Sampler {
    pub fn new(interval: u64, seed: u64) -> Sampler {
        let mut sampler = Sampler {
            interval,
            countdown: 0,
            random: fastrand::Rng::with_seed(seed),
        };
        sampler.countdown = sampler.gap();
        sampler
    }

    fn gap(&mut self) -> i64 {
        exponential(&mut self.random, self.interval as f64) as i64 + 1
    }

    /// Returns the recorded size of an allocation; 0 if it is not recorded.
    pub fn sample(&mut self, size: u64) -> u64 {
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

    /// Returns the bytes and number of recorded allocations.
    pub fn record(&mut self, sizes: impl IntoIterator<Item = u64>) -> Seen {
        let mut seen = Seen::default();
        for size in sizes {
            let sampled = self.sample(size);
            seen.bytes += sampled as i64;
            seen.samples += i64::from(sampled > 0);
        }
        seen
    }
}

/// Sampled bytes and allocations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    pub bytes: i64,
    pub samples: i64,
}

impl Seen {
    pub fn sampled(self, interval: Interval) -> Sampled {
        Sampled::new(self.bytes, self.samples, interval)
    }

    /// Adds allocations; with `kept`, they are unreleased too.
    pub fn allocate(self, counters: &mut Counters, kept: bool) {
        counters.alloc_space += self.bytes;
        counters.alloc_objects += self.samples;
        if kept {
            counters.space += self.bytes;
            counters.objects += self.samples;
        }
    }

    /// Subtracts unreleased allocations.
    pub fn free(self, counters: &mut Counters) {
        counters.space -= self.bytes;
        counters.objects -= self.samples;
    }
}

pub fn exponential(random: &mut fastrand::Rng, mean: f64) -> f64 {
    -(1.0 - random.f64()).ln() * mean
}

pub fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (2.0 * exponential(random, 1.0)).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// Returns a random number of hits with this mean.
pub fn poisson(random: &mut fastrand::Rng, mean: f64) -> i64 {
    let mut at = exponential(random, 1.0);
    let mut hits = 0;
    while at < mean {
        hits += 1;
        at += exponential(random, 1.0);
    }
    hits
}

/// Returns `hits` hits of small allocations as a dump contains them: nearly all of one hit each.
pub fn of_hits(hits: i64, interval: u64) -> Seen {
    Seen {
        bytes: hits * interval as i64,
        samples: hits - hits / 50,
    }
}
