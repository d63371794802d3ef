//! Spread of runs, and the sampling error of their figures.

use heaptap_analyze::sampling::{poisson, special};

use super::judgement::Measured;

/// New runs whose spread is this many times that of the earlier ones are not alike.
const UNLIKE: f64 = 2.0;

/// Standard deviation of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) deviation: f64,
    pub(super) freedom: f64,
    /// Number of earlier runs in it.
    pub(super) earlier_runs: usize,
}

impl Spread {
    /// Returns the spread of the new runs, pooled with that of earlier nights unless the new one is
    /// at least twice as large; nothing if no night has two runs.
    pub(super) fn new(runs: &[f64], nights: &[Vec<f64>]) -> Option<Self> {
        let own = Self::of_nights(&[runs]).map(|own| Self {
            earlier_runs: 0,
            ..own
        });
        let nights: Vec<&[f64]> = nights.iter().map(Vec::as_slice).collect();
        let Some(past) = Self::of_nights(&nights) else {
            return own;
        };
        if own.is_some_and(|own| own.deviation > 0.0 && own.deviation >= UNLIKE * past.deviation) {
            return own;
        }
        let all: Vec<&[f64]> = nights.into_iter().chain([runs]).collect();
        Self::of_nights(&all).map(|all| Self {
            earlier_runs: past.earlier_runs,
            ..all
        })
    }

    /// Makes it the spread of nights or devices, which are not runs.
    pub(super) fn of_units(self) -> Self {
        Self {
            earlier_runs: 0,
            ..self
        }
    }

    /// Returns the spread of runs around the mean of their night: builds differ from night to
    /// night.
    pub(super) fn of_nights(nights: &[&[f64]]) -> Option<Self> {
        let (mut squares, mut freedom, mut earlier_runs) = (0.0, 0.0, 0);
        for night in nights {
            if let Some(deviation) = deviation(night) {
                let own = (night.len() - 1) as f64;
                squares += own * deviation * deviation;
                freedom += own;
                earlier_runs += night.len();
            }
        }
        (freedom > 0.0).then(|| Self {
            deviation: (squares / freedom).sqrt(),
            freedom,
            earlier_runs,
        })
    }
}

/// Returns the number of runs in the spread of these nights: a night of one run does not have one.
pub(super) fn counted(nights: &[&[Measured]]) -> usize {
    let runs = nights.iter().map(|night| night.len());
    runs.filter(|runs| *runs >= 2).sum()
}

/// Returns the mean; 0 for no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation of at least two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    // Equal values have no spread, whatever the rounding of their mean.
    if values.iter().all(|&value| value == values[0]) {
        return (values.len() >= 2).then_some(0.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Samples of all runs together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hits {
    hits: f64,
    /// Part of the mean over the runs that one sample is.
    size: f64,
}

impl Hits {
    /// Returns the samples of the runs; nothing if the figure is not sampled. `unit` is the size of
    /// one sample if there are none.
    pub(super) fn new(runs: &[Measured], unit: f64) -> Option<Self> {
        if runs.iter().all(|run| run.samples.is_none()) {
            return None;
        }
        let hits: f64 = runs.iter().filter_map(|run| run.samples).sum();
        let total: f64 = runs.iter().map(|run| run.value).sum();
        let size = if hits > 0.0 { total / hits } else { unit };
        Some(Self {
            hits,
            size: size / runs.len() as f64,
        })
    }

    /// Scales the figure.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self {
            size: self.size * factor,
            ..self
        }
    }

    /// Returns the distance of the lower limit from the mean, at `z` standard deviations.
    pub(super) fn below(self, z: f64) -> f64 {
        self.size * (self.hits - poisson::low(self.hits, z))
    }

    /// Returns the distance of the upper limit from the mean, at `z` standard deviations.
    pub(super) fn above(self, z: f64) -> f64 {
        self.size * (poisson::high(self.hits, z) - self.hits)
    }
}

/// Sampling error of a mean, with that of the mean it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sampling {
    pub(super) own: Option<Hits>,
    pub(super) other: Option<Hits>,
}

impl Sampling {
    pub(super) fn below(self, z: f64) -> f64 {
        let own = self.own.map_or(0.0, |hits| hits.below(z));
        own.hypot(self.other.map_or(0.0, |hits| hits.above(z)))
    }

    pub(super) fn above(self, z: f64) -> f64 {
        let own = self.own.map_or(0.0, |hits| hits.above(z));
        own.hypot(self.other.map_or(0.0, |hits| hits.below(z)))
    }

    pub(super) fn is_some(self) -> bool {
        self.own.is_some() || self.other.is_some()
    }

    /// Returns the probability of a mean as far above the limit as `excess`, by sampling alone.
    pub(super) fn tail(self, excess: f64) -> f64 {
        if excess <= self.below(0.0) {
            return 0.5;
        }
        special::normal_tail(special::bisect(0.0, 40.0, special::TO_LAST_DIGIT, |z| {
            self.below(z) < excess
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(runs: &[f64], earlier: &[f64]) -> (f64, f64, usize) {
        let spread = Spread::new(runs, &[earlier.to_vec()]).unwrap();
        (spread.deviation, spread.freedom, spread.earlier_runs)
    }

    #[test]
    fn spread_pools_earlier_runs_unless_the_new_ones_spread_twice_as_much() {
        // Deviations 1 and 2.
        let (narrow, wide) = ([9.0, 10.0, 11.0], [18.0, 20.0, 22.0]);
        assert_eq!(spread(&narrow, &[]), (1.0, 2.0, 0));
        assert_eq!(spread(&wide, &narrow), (2.0, 2.0, 0));
        let (deviation, freedom, earlier) = spread(&narrow, &wide);
        assert!((deviation - 2.5_f64.sqrt()).abs() < 1e-12, "{deviation}");
        assert_eq!((freedom, earlier), (4.0, 3));
        assert_eq!(spread(&[7.0], &wide), (2.0, 2.0, 3));
        assert_eq!(spread(&[7.0, 7.0], &[7.0, 7.0]), (0.0, 2.0, 2));
        assert_eq!(spread(&[7.0, 9.0], &[7.0, 7.0]).2, 0);
        assert_eq!(Spread::new(&[7.0], &[vec![7.0], vec![8.0]]), None);
        assert_eq!(Spread::new(&[], &[]), None);
    }

    #[test]
    fn nights_are_pooled_around_their_own_means() {
        // Deviations 1 and 2 at other levels, and a night of one run.
        let nights = [vec![9.0, 10.0, 11.0], vec![98.0, 100.0, 102.0], vec![50.0]];
        let spread = Spread::new(&[500.0], &nights).unwrap();
        assert!(
            (spread.deviation - 2.5_f64.sqrt()).abs() < 1e-12,
            "{spread:?}"
        );
        assert_eq!((spread.freedom, spread.earlier_runs), (4.0, 6));
        let night = |runs| {
            vec![
                Measured {
                    value: 1.0,
                    samples: None
                };
                runs
            ]
        };
        let nights = [night(3), night(1), night(2)];
        assert_eq!(counted(&nights.each_ref().map(Vec::as_slice)), 5);
    }

    #[test]
    fn equal_values_have_no_spread() {
        assert_eq!(deviation(&[0.1; 3]), Some(0.0));
        assert_eq!(deviation(&[0.1]), None);
    }

    #[test]
    fn hits_of_all_runs_have_one_error() {
        let runs = |samples| {
            [Measured {
                value: 100.0,
                samples,
            }; 4]
        };
        assert_eq!(Hits::new(&runs(None), 1.0), None);
        let hits = Hits::new(&runs(Some(25.0)), 1.0).unwrap();
        // 100 hits of 1 each; Byar's 95% limits of 100 are 84.1 and 118.1.
        assert!((hits.below(1.645) - 15.9).abs() < 0.1, "{hits:?}");
        assert!((hits.above(1.645) - 18.1).abs() < 0.2, "{hits:?}");
    }

    #[test]
    fn no_hits_have_an_upper_limit_of_three_samples() {
        let run = Measured {
            value: 0.0,
            samples: Some(0.0),
        };
        let hits = Hits::new(&[run], 4096.0).unwrap();
        assert_eq!(hits.below(1.645), 0.0);
        assert!((hits.above(1.645) / 4096.0 - 3.0).abs() < 0.05, "{hits:?}");
    }
}
