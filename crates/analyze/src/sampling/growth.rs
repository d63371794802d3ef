//! Steadiness of growth over a series of dumps.

use super::special;
use std::sync::LazyLock;

/// Returns the probability, 0 to 1, that values in random order rise at least as steadily from
/// first to last: the one-sided test of Mann and Kendall. It shows whether a site's size merely
/// fluctuates.
pub fn trend(values: &[i64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 1.0;
    }
    let mut score = 0_i64;
    let mut tied = false;
    for (at, later) in values.iter().enumerate() {
        for earlier in &values[..at] {
            score += match later.cmp(earlier) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => {
                    tied = true;
                    0
                }
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    if !tied && n <= MAX_EXACT {
        return chance_of_score(n, score);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut ties = 0.0;
    for equal in sorted.chunk_by(|a, b| a == b) {
        let t = equal.len() as f64;
        ties += t * (t - 1.0) * (2.0 * t + 5.0);
    }
    let n = n as f64;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    special::normal_tail((score as f64 - 1.0) / variance.sqrt())
}

/// Maximum number of values for the exact distribution.
const MAX_EXACT: usize = 20;

/// Part of all orders with at most so many inversions, by number of values, then by number of inversions.
static ORDERS: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    // Inserting the next value adds 0 to its index of inversions.
    let mut chances = vec![1.0_f64];
    let mut all = vec![chances.clone(); 2];
    for size in 2..=MAX_EXACT {
        let mut next = vec![0.0; chances.len() + size - 1];
        for (at, chance) in chances.iter().enumerate() {
            for added in 0..size {
                next[at + added] += chance / size as f64;
            }
        }
        chances = next;
        let sums = chances.iter().scan(0.0, |sum, chance| {
            *sum += chance;
            Some(*sum)
        });
        all.push(sums.collect());
    }
    all
});

/// Returns the part of all orders of `n` different values with at least this score.
fn chance_of_score(n: usize, score: i64) -> f64 {
    let pairs = (n * (n - 1) / 2) as i64;
    // score = pairs - 2 · inversions
    let inversions = usize::try_from((pairs - score) / 2).unwrap_or(0);
    let sums = &ORDERS[n];
    sums[inversions.min(sums.len() - 1)].min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_has_a_trend_and_ups_and_downs_have_none() {
        assert!((trend(&[1, 2, 3, 4]) - 1.0 / 24.0).abs() < 1e-12);
        assert!((trend(&[1, 2, 4, 3]) - 4.0 / 24.0).abs() < 1e-12);
        assert!(trend(&[4, 3, 2, 1]) > 0.999);
        // The exact distribution and the normal one meet.
        let mixed = |n: i64| -> Vec<i64> { (0..n).map(|i| i * 7 % n + i).collect() };
        let (exact, normal) = (trend(&mixed(20)), trend(&mixed(22)));
        assert!(
            exact > 1e-6 && exact < normal * 10.0 && normal < exact * 10.0,
            "{exact} {normal}"
        );
        let rising: Vec<i64> = (0..20).collect();
        let orders: f64 = (1..=20).map(f64::from).product();
        assert!((trend(&rising) * orders - 1.0).abs() < 1e-9);
        assert_eq!(trend(&[5, 5, 5, 5]), 1.0);
        assert_eq!(trend(&[]), 1.0);
        let slow: Vec<i64> = (0..30).map(|i| i / 10).collect();
        assert!(trend(&slow) < 1e-6);
        let noise = [3, 9, 1, 7, 5, 4, 8, 2, 6, 5, 3, 7];
        assert!(trend(&noise) > 0.3);
    }
}
