//! Steadiness of growth over a series of dumps.

use super::special;

/// Returns the probability, 0 to 1, that values in random order rise at least as steadily from
/// first to last: the one-sided test of Mann and Kendall. It shows whether a site's size merely
/// fluctuates.
pub fn trend(values: &[i64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 1.0;
    }
    let mut score = 0_i64;
    for (at, later) in values.iter().enumerate() {
        for earlier in &values[..at] {
            score += match later.cmp(earlier) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let (mut ties, mut tied) = (0.0, false);
    for equal in sorted.chunk_by(|a, b| a == b) {
        let t = equal.len() as f64;
        ties += t * (t - 1.0) * (2.0 * t + 5.0);
        tied |= equal.len() > 1;
    }
    if !tied && n <= 20 {
        return chance_of_score(n, score);
    }
    let n = n as f64;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    special::normal_tail((score as f64 - 1.0) / variance.sqrt())
}

/// Returns the part of all orders of `n` different values with at least this score.
fn chance_of_score(n: usize, score: i64) -> f64 {
    // Inversions of permutations: inserting the next value adds 0 to its index of them.
    let mut chances = vec![1.0_f64];
    for size in 2..=n {
        let mut next = vec![0.0; chances.len() + size - 1];
        for (at, chance) in chances.iter().enumerate() {
            for added in 0..size {
                next[at + added] += chance / size as f64;
            }
        }
        chances = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    // score = pairs - 2 · inversions
    let most = usize::try_from((pairs - score) / 2).unwrap_or(0);
    chances.iter().take(most + 1).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_has_a_trend_and_ups_and_downs_have_none() {
        assert!((trend(&[1, 2, 3, 4]) - 1.0 / 24.0).abs() < 1e-12);
        assert!((trend(&[1, 2, 4, 3]) - 4.0 / 24.0).abs() < 1e-12);
        assert!(trend(&[4, 3, 2, 1]) > 0.999);
        assert_eq!(trend(&[5, 5, 5, 5]), 1.0);
        assert_eq!(trend(&[]), 1.0);
        let slow: Vec<i64> = (0..30).map(|i| i / 10).collect();
        assert!(trend(&slow) < 1e-6);
        let noise = [3, 9, 1, 7, 5, 4, 8, 2, 6, 5, 3, 7];
        assert!(trend(&noise) > 0.3);
    }
}
