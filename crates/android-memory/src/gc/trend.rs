//! Detection of sustained growth in a series: Sen's slope and the Mann-Kendall test. Both make no
//! assumption about the distribution and tolerate outliers. Consecutive live sets are correlated,
//! so the variance of the test is widened accordingly. Growth only at the beginning, as in every
//! app that starts, does not count.

/// Minimum number of points for a result.
pub const MIN_COUNT: usize = 8;
/// Minimum score for growth, in standard deviations. Together with the other conditions, fewer than
/// one in a hundred random series reach it.
pub const SCORE: f64 = 3.1;
/// Minimum ratio of growth to the spread around the line.
pub const OVER_NOISE: f64 = 2.0;
/// From this ratio of growth to spread, the correlation of neighbors is ignored. It then comes from
/// the curvature of the line, as when collections come in bursts. Twenty of a thousand random walks
/// with [`MANY`] points reach it, and more of shorter walks.
pub const FAR_OVER_NOISE: f64 = 12.0;
/// Minimum number of points to ignore the correlation.
const MANY: usize = 30;
/// Minimum ratio of the slope of the second half to the slope of the whole.
pub const STILL: f64 = 0.35;
/// Maximum number of points to compare with each other. Longer series are reduced to medians of
/// groups.
const MAX_POINTS: usize = 120;

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Time, or index.
    pub x: f64,
    pub y: f64,
}

/// Measurements of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Number of points.
    pub points: usize,
    /// Sen's slope: the median of the slopes between all pairs.
    pub slope: f64,
    /// The 95% confidence interval of the slope, widened for the correlation of neighbors.
    pub slope_range: (f64, f64),
    /// Growth from the first to the last point along the slope.
    pub growth: f64,
    /// Standard deviation around the line, estimated from the median deviation.
    pub noise: f64,
    /// Score of the test, in standard deviations.
    pub score: f64,
    /// Score without the correction for correlated neighbors.
    pub score_apart: f64,
    /// Ratio of the slope of the second half to that of the whole; 0 if the whole does not grow.
    pub still: f64,
}

impl Trend {
    /// Measures points sorted by `x`. Returns `None` for fewer than [`MIN_COUNT`] points, or if all
    /// have the same `x`.
    pub fn from_points(points: &[Point]) -> Option<Trend> {
        if points.len() < MIN_COUNT {
            return None;
        }
        let count = points.len();
        let points = grouped(points);
        let whole = Sen::from_points(&points)?;
        let first = points.first()?;
        let last = points.last()?;
        let half = Sen::from_points(&points[points.len() / 2..]);
        let still = match half {
            Some(half) if whole.slope > 0.0 => half.slope / whole.slope,
            _ => 0.0,
        };
        Some(Trend {
            points: count,
            slope: whole.slope,
            slope_range: whole.range,
            growth: whole.slope * (last.x - first.x),
            noise: whole.noise,
            score: whole.score,
            score_apart: whole.score_apart,
            still,
        })
    }

    /// Returns whether the series keeps growing, by more than `least` in total.
    pub fn grows(&self, least: f64) -> bool {
        self.rises(least) && self.deciding_score() >= SCORE
    }

    /// Returns about how many points would decide if the series rises, but has too few points to
    /// exclude chance. The score grows with the root of their number.
    pub fn points_to_decide(&self, least: f64) -> Option<usize> {
        let score = self.deciding_score();
        (self.rises(least) && score < SCORE).then(|| {
            let wanted = self.points as f64 * (SCORE / score.max(1.0)).powi(2);
            (wanted.ceil() as usize).clamp(self.points + 1, MANY.max(2 * self.points))
        })
    }

    /// Returns whether the line rises to its end, by more than `least` and the spread around it.
    fn rises(&self, least: f64) -> bool {
        self.growth >= least && self.growth >= OVER_NOISE * self.noise && self.still >= STILL
    }

    fn deciding_score(&self) -> f64 {
        match self.points >= MANY && self.growth >= FAR_OVER_NOISE * self.noise {
            true => self.score_apart,
            false => self.score,
        }
    }
}

/// Returns medians of groups of neighbors if there are too many points to compare all pairs.
fn grouped(points: &[Point]) -> Vec<Point> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    (0..MAX_POINTS)
        .map(|group| {
            let at = |group: usize| group * points.len() / MAX_POINTS;
            let part = &points[at(group)..at(group + 1)];
            Point {
                x: median(part.iter().map(|p| p.x).collect()),
                y: median(part.iter().map(|p| p.y).collect()),
            }
        })
        .collect()
}

struct Sen {
    slope: f64,
    range: (f64, f64),
    noise: f64,
    score: f64,
    score_apart: f64,
}

impl Sen {
    fn from_points(points: &[Point]) -> Option<Sen> {
        let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
        let mut s = 0i64;
        for (at, a) in points.iter().enumerate() {
            for b in &points[at + 1..] {
                s += match b.y.partial_cmp(&a.y)? {
                    std::cmp::Ordering::Less => -1,
                    std::cmp::Ordering::Equal => 0,
                    std::cmp::Ordering::Greater => 1,
                };
                if b.x > a.x {
                    slopes.push((b.y - a.y) / (b.x - a.x));
                }
            }
        }
        if slopes.is_empty() {
            return None;
        }
        let slope = median_of(&mut slopes);
        let residuals: Vec<f64> = points.iter().map(|p| p.y - slope * p.x).collect();
        let center = median(residuals.clone());
        let spread = median(residuals.iter().map(|r| (r - center).abs()).collect());
        let apart = variance(points);
        let variance = apart * shared(&residuals);
        let score = |variance: f64| match variance > 0.0 {
            true => (s as f64 - s.signum() as f64) / variance.sqrt(),
            false => 0.0,
        };
        let (score, score_apart) = (score(variance), score(apart));
        let reach = 1.96 * variance.sqrt() / 2.0;
        let half = slopes.len() as f64 / 2.0;
        let mut at = |rank: f64| {
            let rank = (rank.max(0.0) as usize).min(slopes.len() - 1);
            *slopes.select_nth_unstable_by(rank, f64::total_cmp).1
        };
        Some(Sen {
            slope,
            range: (at((half - reach).floor()), at((half + reach).ceil())),
            noise: 1.4826 * spread,
            score,
            score_apart,
        })
    }
}

/// Returns the variance of the test's sum, corrected for ties.
fn variance(points: &[Point]) -> f64 {
    let of = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut values: Vec<f64> = points.iter().map(|p| p.y).collect();
    values.sort_by(f64::total_cmp);
    let ties: f64 = values
        .chunk_by(|a, b| a == b)
        .map(|equal| of(equal.len() as f64))
        .sum();
    (of(points.len() as f64) - ties) / 18.0
}

/// Returns the factor by which correlated neighbors widen the variance. It is that of the mean of a
/// series whose correlation decays by a constant factor.
fn shared(residuals: &[f64]) -> f64 {
    let mean = residuals.iter().sum::<f64>() / residuals.len() as f64;
    let all: f64 = residuals.iter().map(|r| (r - mean).powi(2)).sum();
    if all <= 0.0 {
        return 1.0;
    }
    let lag: f64 = residuals
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    // Short series underestimate the correlation.
    let likeness = (lag / all + 1.0 / residuals.len() as f64).clamp(0.0, 0.95);
    (1.0 + likeness) / (1.0 - likeness)
}

fn median(mut values: Vec<f64>) -> f64 {
    median_of(&mut values)
}

/// Returns the median; reorders the values.
fn median_of(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let half = values.len() / 2;
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if half * 2 == values.len() => f64::midpoint(lower, upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is the same in every run.
    struct Noise(fastrand::Rng);

    impl Noise {
        /// Returns an approximately normal value: the sum of twelve uniform ones.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0
        }
    }

    /// Returns how many of a thousand series grow. Values are in MB; growth below 1 does not count.
    fn accused(mut series: impl FnMut(&mut Noise, usize) -> f64, points: usize) -> usize {
        // Long series take more time, and fewer of them are enough.
        let runs = if points > 50 { 200 } else { 1000 };
        let grown = (0..runs)
            .filter(|seed| {
                let mut noise = Noise(fastrand::Rng::with_seed(*seed));
                let points: Vec<Point> = (0..points)
                    .map(|n| Point {
                        x: n as f64,
                        y: series(&mut noise, n),
                    })
                    .collect();
                Trend::from_points(&points).is_some_and(|trend| trend.grows(1.0))
            })
            .count();
        grown * 1000 / runs as usize
    }

    #[test]
    fn noise_is_not_accused() {
        for points in [8, 12, 30, 100, 600] {
            let flat = accused(|noise, _| 40.0 + 5.0 * noise.normal(), points);
            assert!(flat <= 3, "{flat} of 1000 flat series of {points} points");
            // Each point resembles the previous one, as when a user stays on a screen.
            let mut before = 0.0;
            let alike = accused(
                |noise, n| {
                    before = if n == 0 {
                        0.0
                    } else {
                        0.7 * before + 5.0 * noise.normal()
                    };
                    40.0 + before
                },
                points,
            );
            assert!(
                alike <= 10,
                "{alike} of 1000 alike series of {points} points"
            );
            // A random walk.
            let mut at = 0.0;
            let walk = accused(
                |noise, n| {
                    at = if n == 0 { 40.0 } else { at + noise.normal() };
                    at
                },
                points.min(100),
            );
            assert!(walk <= 40, "{walk} of 1000 random walks of {points} points");
            // Screens open and close repeatedly.
            let rounds = accused(
                |noise, n| 40.0 + 3.0 * (n % 9) as f64 + noise.normal(),
                points.max(18),
            );
            assert!(rounds <= 3, "{rounds} of 1000 rounds of {points} points");
            // An app starts and then stays constant.
            let start = accused(
                |noise, n| {
                    60.0 - 40.0 * (-(n as f64) * 8.0 / points as f64).exp() + 2.0 * noise.normal()
                },
                points,
            );
            assert!(start <= 10, "{start} of 1000 starts of {points} points");
        }
    }

    #[test]
    fn growth_is_found_where_it_is_twice_the_noise() {
        for (points, growth) in [(12, 40.0), (30, 20.0), (100, 15.0), (600, 10.0)] {
            let found = accused(
                |noise, n| 40.0 + growth * n as f64 / (points - 1) as f64 + 4.0 * noise.normal(),
                points,
            );
            assert!(found >= 800, "{found} of 1000 series of {points} points");
        }
        // A leak without noise, with the minimum number of points.
        assert_eq!(accused(|_, n| 10.0 + n as f64, MIN_COUNT), 1000);
        // Collections come in bursts: over their index, the line is curved and neighbors are
        // correlated.
        let mut x = 0.0;
        let bunched = accused(
            |noise, n| {
                x = if n == 0 {
                    0.0
                } else {
                    x + if n % 20 < 15 { 1.0 } else { 10.0 }
                };
                2.0 + 0.04 * x + 0.05 * noise.normal()
            },
            77,
        );
        assert_eq!(bunched, 1000);
        // A rise that is curved needs more points than the minimum.
        let curved = |points: usize| {
            let points: Vec<Point> = (0..points)
                .map(|n| Point {
                    x: n as f64,
                    y: 2.0 + 8.0 * (n as f64 / (points - 1) as f64).powi(2),
                })
                .collect();
            Trend::from_points(&points).unwrap()
        };
        let few = curved(12);
        assert!(!few.grows(1.0), "{few:?}");
        assert!(
            matches!(few.points_to_decide(1.0), Some(13..=30)),
            "{few:?}"
        );
        let many = curved(60);
        assert!(many.grows(1.0), "{many:?}");
        assert_eq!(many.points_to_decide(1.0), None);
        // Shrinking is not growth.
        assert_eq!(accused(|_, n| 90.0 - n as f64, 30), 0);
    }

    #[test]
    fn the_slope_bears_outliers_and_says_how_sure_it_is() {
        let points: Vec<Point> = (0..50)
            .map(|n| Point {
                x: n as f64,
                y: if n % 10 == 3 {
                    500.0
                } else {
                    2.0 * n as f64 + (n % 3) as f64
                },
            })
            .collect();
        let trend = Trend::from_points(&points).unwrap();
        assert!((trend.slope - 2.0).abs() < 0.1, "{trend:?}");
        assert!(
            trend.slope_range.0 <= 2.0 && trend.slope_range.1 >= 2.0,
            "{trend:?}"
        );
        assert_eq!(Trend::from_points(&points[..MIN_COUNT - 1]), None);
        let same = [Point { x: 1.0, y: 2.0 }; 20];
        assert_eq!(Trend::from_points(&same), None);
    }
}
