//! Student's t distribution, central and noncentral.

use std::f64::consts::{FRAC_PI_2, PI};

use super::special::{incomplete_beta, ln_gamma, normal_point, normal_tail};

/// Returns the probability of a value above `t` for `freedom` degrees.
pub fn tail(t: f64, freedom: f64) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    let sum = freedom + square;
    let tail = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / sum, square / sum);
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// Returns the point below which a value is with probability `confidence`, from 0.5 to below 1.
pub fn point(confidence: f64, freedom: f64) -> f64 {
    let beyond = 1.0 - confidence;
    if freedom == 1.0 {
        return (FRAC_PI_2 - PI * beyond).tan();
    }
    if freedom == 2.0 {
        return (1.0 - 2.0 * beyond) / (2.0 * beyond * confidence).sqrt();
    }
    let log_scale =
        ln_gamma(f64::midpoint(freedom, 1.0)) - ln_gamma(freedom / 2.0) - 0.5 * (freedom * PI).ln();
    let density =
        |t: f64| (log_scale - f64::midpoint(freedom, 1.0) * (t * t / freedom).ln_1p()).exp();
    // The normal point is too small. The tail is convex, so that Newton's method rises to the root
    // from there and does not pass it.
    let mut t = normal_point(beyond).max(0.0);
    t += t * (t * t + 1.0) / (4.0 * freedom);
    for _ in 0..100 {
        let step = (tail(t, freedom) - beyond) / density(t);
        t += step;
        if step.abs() <= 1e-13 * t.abs() {
            break;
        }
    }
    t
}

/// Returns the probability of a noncentral t value above `t`, 0 or more, for `freedom` degrees
/// and the noncentrality `shift`: Lenth's algorithm AS 243 (Applied Statistics 38, 1989).
pub fn noncentral_tail(t: f64, freedom: f64, shift: f64) -> f64 {
    // The terms underflow, and only the mean of the distribution counts.
    if shift.abs() > 37.0 {
        let spread = (1.0 + t * t / (2.0 * freedom)).sqrt();
        return normal_tail((t * (1.0 - 1.0 / (4.0 * freedom)) - shift) / spread);
    }
    let square = t * t;
    let (x, y) = (square / (square + freedom), freedom / (square + freedom));
    let half = shift * shift / 2.0;
    let b = freedom / 2.0;
    // Terms of the two series, and the beta functions with a = j + 1/2 and a = j + 1.
    let mut p = 0.5 * (-half).exp();
    let mut q = (2.0 / PI).sqrt() * p * shift;
    let mut odd = incomplete_beta(0.5, b, x, y);
    let mut even = incomplete_beta(1.0, b, x, y);
    let lower = |a: f64| {
        (ln_gamma(a + b) - ln_gamma(a + 1.0) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp()
    };
    let (mut odd_step, mut even_step) = (lower(0.5), lower(1.0));
    let (mut sum, mut rest) = (p * odd + q * even, 0.5 - p);
    for j in 1..5_000 {
        let j = f64::from(j);
        odd -= odd_step;
        even -= even_step;
        odd_step *= x * (j - 0.5 + b) / (j + 0.5);
        even_step *= x * (j + b) / (j + 1.0);
        p *= half / j;
        q *= half / (j + 0.5);
        sum += p * odd.max(0.0) + q * even.max(0.0);
        rest -= p;
        if rest <= 1e-13 || (j > half && 2.0 * rest * odd <= 1e-13) {
            break;
        }
    }
    (1.0 - normal_tail(shift) - sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!(
            (got - want).abs() <= 1e-9 * want.abs().max(1.0),
            "{got} {want}"
        );
    }

    /// One-sided points of the tables, with the digits of SciPy 1.17.
    const POINTS: [(f64, f64, f64); 12] = [
        (0.95, 1.0, 6.313_751_514_675_037),
        (0.95, 2.0, 2.919_985_580_353_724_2),
        (0.95, 4.0, 2.131_846_786_326_649_5),
        (0.98, 2.0, 4.848_732_213_850_609),
        (0.98, 4.0, 2.998_527_873_206_585_4),
        (0.98, 9.0, 2.398_440_984_856_506),
        (0.98, 13.0, 2.281_603_563_742_652),
        (0.975, 9.0, 2.262_157_162_798_205),
        (0.95, 30.0, 1.697_260_886_593_957),
        (0.99, 1000.0, 2.330_082_674_755_513),
        (0.999, 4.0, 7.173_182_219_782_307),
        (0.9995, 3.0, 12.923_978_636_687_961),
    ];

    #[test]
    fn points_are_those_of_the_tables() {
        for (confidence, freedom, want) in POINTS {
            close(point(confidence, freedom), want);
            close(tail(want, freedom), 1.0 - confidence);
            close(tail(-want, freedom), confidence);
        }
        close(point(0.5, 3.0), 0.0);
    }

    #[test]
    fn point_and_tail_agree_for_many_degrees() {
        for freedom in [1.0, 2.0, 3.0, 5.0, 8.0, 40.0, 999.0, 1e6] {
            for confidence in [0.5, 0.6, 0.9, 0.95, 0.98, 0.9999] {
                close(tail(point(confidence, freedom), freedom), 1.0 - confidence);
            }
        }
    }

    #[test]
    fn noncentral_tails_are_those_of_the_tables() {
        // t, degrees, noncentrality, probability below (SciPy 1.17).
        for (t, freedom, shift, below) in [
            (2.131_846_786_326_649_5, 4.0, 2.0, 0.495_649_810_893_599_6),
            (6.313_751_514_800_938, 1.0, 3.0, 0.638_804_576_056_363_3),
            (1.660_391_155_996_389_5, 99.0, 2.5, 0.201_014_529_564_379_7),
            (2.0, 9.0, -1.0, 0.996_436_504_911_053),
            (1.7, 30.0, 10.0, 0.0),
            (3.0, 2.0, 0.0, 0.952_267_016_866_645_4),
            (12.0, 4.0, 20.0, 0.027_795_593_410_667_23),
            (2.0, 4.0, 30.0, 0.0),
            (2.0, 4.0, 400.0, 0.0),
        ] {
            close(noncentral_tail(t, freedom, shift), 1.0 - below);
        }
    }
}
