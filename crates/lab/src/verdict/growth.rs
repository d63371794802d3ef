//! Growth per round of a repeated step.

/// Least number of rounds of a growth.
pub const MIN_ROUNDS: usize = 4;
/// Least number of rounds in the line.
const MIN_POINTS: usize = 3;

/// Returns the number of rounds before the second half, which has at least 3 rounds. The first half
/// settles.
pub fn rounds_before_half(rounds: usize) -> usize {
    (rounds / 2).min(rounds.saturating_sub(MIN_POINTS))
}

/// Returns the growth per round: the least-squares slope over the second half of the rounds of
/// one run. Nothing for fewer than 4 rounds, or if a value is not finite.
pub fn slope_of_second_half(values: &[f64]) -> Option<f64> {
    if values.len() < MIN_ROUNDS {
        return None;
    }
    let points = &values[rounds_before_half(values.len())..];
    let middle = (points.len() - 1) as f64 / 2.0;
    let at = |i: usize| i as f64 - middle;
    // Differences from the first value keep the digits of large values.
    let products: f64 = (0..points.len())
        .map(|i| at(i) * (points[i] - points[0]))
        .sum();
    let squares: f64 = (0..points.len()).map(|i| at(i) * at(i)).sum();
    let slope = products / squares;
    (slope.is_finite() && values.iter().all(|value| value.is_finite())).then_some(slope)
}

/// Returns the least step of a slope over so many rounds of values with this step: the deviation of
/// the slope if that of each value is the step. Fewer than 4 rounds count as 4.
pub fn slope_step(step: f64, rounds: usize) -> f64 {
    let rounds = rounds.max(MIN_ROUNDS);
    let points = (rounds - rounds_before_half(rounds)) as f64;
    // The sum of squared distances from the middle round.
    step / (points * (points * points - 1.0) / 12.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_of_a_slope_is_the_deviation_of_its_line() {
        for rounds in [0, 4, 5] {
            assert_eq!(slope_step(2.0, rounds), 2.0 / 2.0_f64.sqrt(), "{rounds}");
        }
        // 10 points: distances of 0.5 to 4.5 on both sides, squared.
        assert_eq!(slope_step(1.0, 20), 1.0 / 82.5_f64.sqrt());
        assert_eq!(slope_step(1.0, 21), 1.0 / 110.0_f64.sqrt());
    }

    #[test]
    fn second_half_has_three_rounds_or_more() {
        assert_eq!(
            [0, 3, 4, 5, 6, 7].map(rounds_before_half),
            [0, 0, 1, 2, 3, 3]
        );
    }

    #[test]
    fn slope_is_that_of_the_second_half() {
        let line = |n: u32| -> Vec<f64> { (0..n).map(|i| 7.0 + 3.0 * f64::from(i)).collect() };
        for rounds in 4..30 {
            let slope = slope_of_second_half(&line(rounds)).unwrap();
            assert!((slope - 3.0).abs() < 1e-12, "{rounds}: {slope}");
        }
        let settled = [0.0, 50.0, 90.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        assert_eq!(slope_of_second_half(&settled), Some(0.0));
        assert_eq!(slope_of_second_half(&[9.0, 0.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(slope_of_second_half(&[9.0, 9.0, 0.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(slope_of_second_half(&[3.0, 3.0, 2.0, 1.0]), Some(-1.0));
    }

    #[test]
    fn slope_needs_four_finite_rounds() {
        assert_eq!(slope_of_second_half(&[1.0, 2.0, 3.0]), None);
        assert_eq!(slope_of_second_half(&[]), None);
        assert_eq!(slope_of_second_half(&[f64::NAN, 1.0, 2.0, 3.0]), None);
        assert_eq!(slope_of_second_half(&[0.0, 0.0, f64::INFINITY, 1.0]), None);
        let huge = [f64::MAX, -f64::MAX, f64::MAX, -f64::MAX, f64::MAX];
        assert_eq!(slope_of_second_half(&huge), None);
    }
}
