//! Change of a process's anonymous memory per iteration, with its confidence interval.
//!
//! Each iteration is compared with the one before, not with a line through all of them: memory
//! keeps its level, so neighboring levels are alike, and a line through such levels finds a slope
//! in a random walk. The mean of the changes with Student's interval is valid for a random walk,
//! and too wide rather than too narrow for memory that jitters around a level.

use serde::Serialize;

/// Minimum number of iterations for a verdict.
pub const MIN_COUNT: usize = 5;
/// Number of first iterations to ignore, because they fill caches and load classes.
pub const LEFT_OUT: usize = 2;
/// Memory is counted in pages, which limits the accuracy of a change.
const PAGE: f64 = 4096.0;

/// Memory of a process after an iteration or a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// PID and start time; another process starts a new series.
    pub process: (u32, u64),
    /// RssAnon, bytes.
    pub bytes: u64,
}

/// Change of anonymous memory from one iteration, or repetition of an action, to the next. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Trend {
    /// `iteration`, or the name of the repeated action.
    pub per: &'static str,
    /// Number of iterations of the last process.
    #[serde(rename = "iterations")]
    pub rounds: u32,
    /// Number of these at the beginning that do not count.
    pub left_out: u32,
    /// The process was another one before; earlier iterations do not count.
    pub restarted: bool,
    /// Mean change from one to the next; `None` if there are too few.
    pub change: Option<i64>,
    /// Lower end of the 95% confidence interval of the mean.
    pub low: Option<i64>,
    /// Upper end of the interval.
    pub high: Option<i64>,
    /// Conclusion from the interval.
    pub verdict: Verdict,
}

/// Conclusion about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There are fewer than [`MIN_COUNT`].
    TooFew,
    /// The whole interval is above zero.
    Grows,
    /// The whole interval is below zero.
    Shrinks,
    /// The interval contains zero: growth is neither shown nor excluded.
    #[serde(rename = "inconclusive")]
    Unclear,
}

impl Trend {
    /// Computes the trend of memory after several iterations; `None` if there are fewer than two.
    pub fn new(per: &'static str, held: &[Held]) -> Option<Trend> {
        let process = held.last()?.process;
        let other = held.iter().rposition(|h| h.process != process);
        let own = held.get(other.map_or(0, |at| at + 1)..)?;
        if held.len() < 2 {
            return None;
        }
        let mut trend = Trend {
            per,
            rounds: u32::try_from(own.len()).unwrap_or(u32::MAX),
            left_out: LEFT_OUT as u32,
            restarted: other.is_some(),
            change: None,
            low: None,
            high: None,
            verdict: Verdict::TooFew,
        };
        if own.len() < MIN_COUNT {
            return Some(trend);
        }
        let counted = own.get(LEFT_OUT..)?;
        let pairs = std::iter::zip(counted, &counted[1..]);
        let changes = pairs.map(|(a, b)| b.bytes as f64 - a.bytes as f64);
        let changes: Vec<f64> = changes.collect();
        let n = changes.len() as f64;
        let mean = changes.iter().sum::<f64>() / n;
        let square: f64 = changes.iter().map(|c| (c - mean).powi(2)).sum();
        // Both ends of a change are rounded to pages.
        let variance = (square / (n - 1.0)).max(PAGE * PAGE / 6.0);
        let half = student(changes.len() - 1) * (variance / n).sqrt();
        trend.change = Some(mean.round() as i64);
        trend.low = Some((mean - half).floor() as i64);
        trend.high = Some((mean + half).ceil() as i64);
        trend.verdict = match (mean - half > 0.0, mean + half < 0.0) {
            (true, _) => Verdict::Grows,
            (_, true) => Verdict::Shrinks,
            _ => Verdict::Unclear,
        };
        Some(trend)
    }
}

/// Returns Student's two-sided factor for 95%.
fn student(freedom: usize) -> f64 {
    const EXACT: [f64; 12] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
    ];
    match EXACT.get(freedom.saturating_sub(1)) {
        Some(factor) => *factor,
        // Accurate to a thousandth from there on.
        None => 1.96 + 2.38 / freedom as f64 + 2.9 / (freedom * freedom) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn held(kib: &[u64]) -> Vec<Held> {
        let held = kib.iter().map(|kib| Held {
            process: (7, 1),
            bytes: kib * KIB,
        });
        held.collect()
    }

    #[test]
    fn growth_is_told_with_its_interval() {
        let all = held(&[
            50_000, 58_000, 60_000, 60_104, 60_196, 60_304, 60_400, 60_496,
        ]);
        let trend = Trend::new("iteration", &all).unwrap();
        assert_eq!((trend.rounds, trend.left_out), (8, 2));
        let change = trend.change.unwrap();
        assert!((98 * 1024..=101 * 1024).contains(&change), "{trend:?}");
        assert!(trend.low.unwrap() > 80 * 1024 && trend.high.unwrap() < 120 * 1024);
        assert_eq!(trend.verdict, Verdict::Grows);
        let falling: Vec<Held> = all.iter().rev().copied().collect();
        let trend = Trend::new("iteration", &falling[..6]).unwrap();
        assert_eq!(trend.verdict, Verdict::Shrinks);
    }

    #[test]
    fn few_rounds_say_little() {
        let four = held(&[1_000, 2_000, 3_000, 4_000]);
        let trend = Trend::new("iteration", &four).unwrap();
        assert_eq!((trend.verdict, trend.change), (Verdict::TooFew, None));
        assert_eq!(Trend::new("iteration", &four[..1]), None);
        assert_eq!(Trend::new("iteration", &[]), None);
        // Five iterations have two changes: only a mean far above their difference is significant.
        let five = |last| Trend::new("iteration", &held(&[0, 0, 100, 200, last])).unwrap();
        assert_eq!(five(250).verdict, Verdict::Unclear);
        assert_eq!(five(304).verdict, Verdict::Grows);
        // Even constant memory does not exclude growth below the resolution of pages.
        let flat = Trend::new("iteration", &held(&[9; 5])).unwrap();
        assert_eq!((flat.verdict, flat.change), (Verdict::Unclear, Some(0)));
        assert!(flat.high.unwrap() > 4_096, "{flat:?}");
    }

    #[test]
    fn another_process_begins_anew() {
        let mut all = held(&[100, 200, 300, 400, 500, 10, 10]);
        all[5].process = (8, 1);
        all[6].process = (8, 1);
        let trend = Trend::new("rotate", &all).unwrap();
        assert!(trend.restarted);
        assert_eq!((trend.rounds, trend.verdict), (2, Verdict::TooFew));
    }

    /// Returns how many of a thousand series without growth get the verdict of growth.
    fn accused(rounds: usize, mut next: impl FnMut(f64, f64) -> f64) -> usize {
        let mut random = fastrand::Rng::with_seed(7);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let grown = (0..1000).filter(|_| {
            let mut level = 60_000.0;
            let series: Vec<u64> = (0..rounds)
                .map(|_| {
                    level = next(level, normal());
                    level.max(0.0) as u64
                })
                .collect();
            Trend::new("iteration", &held(&series)).is_some_and(|t| t.verdict == Verdict::Grows)
        });
        grown.count()
    }

    #[test]
    fn noise_is_not_accused_more_often_than_is_said() {
        for rounds in [5, 6, 8, 12, 30] {
            let wandering = accused(rounds, |level, noise| level + 300.0 * noise);
            assert!(wandering <= 40, "{wandering} of 1000, {rounds} rounds");
            let jitter = accused(rounds, |_, noise| 60_000.0 + 300.0 * noise);
            assert!(jitter <= 40, "{jitter} of 1000, {rounds} rounds");
        }
        // Growth equal to the jitter is found with enough iterations.
        let mut round = 0.0;
        let found = accused(20, |_, noise| {
            round += 1.0;
            60_000.0 + 300.0 * round + 300.0 * noise
        });
        assert!(found > 800, "{found}");
    }

    #[test]
    fn students_factor_meets_its_tail() {
        assert!((student(13) - 2.160).abs() < 0.002);
        assert!((student(30) - 2.042).abs() < 0.002);
        assert!((student(1_000) - 1.962).abs() < 0.002);
    }
}
