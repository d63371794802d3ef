//! Probability functions for significance tests: normal, binomial, chi-squared, Poisson. Accurate to
//! 1e-9 unless documented otherwise; never NaN.

use std::cell::RefCell;

/// Returns the logarithm of the gamma function for `x > 0` (Lanczos, g = 7).
pub fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let base = x + 7.5;
    let sum = TERMS[1..]
        .iter()
        .zip(1..)
        .fold(TERMS[0], |sum, (term, at)| sum + term / (x + f64::from(at)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

/// Returns the upper tail of the normal distribution beyond `z`.
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    // The incomplete gamma function with a = 1/2.
    let x = z * z / 2.0;
    0.5 * gamma_tail(0.5, x)
}

/// Returns the point beyond which a part `tail` (above 0, below 1) of the normal distribution is.
pub fn normal_point(tail: f64) -> f64 {
    if tail > 0.5 {
        return -normal_point(1.0 - tail);
    }
    // Abramowitz and Stegun 26.2.23, then Newton's method.
    let t = (-2.0 * tail.max(1e-300).ln()).sqrt();
    let mut z = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..3 {
        z += (normal_tail(z) - tail) / ((-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt());
    }
    z
}

/// Returns the probability of `at_least` or more successes in `of` tries with probability `chance`
/// each.
pub fn binomial_tail(of: f64, at_least: f64, chance: f64) -> f64 {
    if at_least <= 0.0 {
        return 1.0;
    }
    if at_least > of {
        return 0.0;
    }
    // Nearly all growth is never freed.
    if at_least == of {
        return chance.powf(of);
    }
    // The continued fraction needs about √of steps.
    if of > 1e7 {
        let spread = (of * chance * (1.0 - chance)).sqrt();
        return normal_tail((at_least - 0.5 - of * chance) / spread);
    }
    memoized([of, at_least, chance], || {
        incomplete_beta(at_least, of - at_least + 1.0, chance, 1.0 - chance)
    })
}

/// Number of remembered results, as a power of two.
const REMEMBERED_BITS: u32 = 10;

thread_local! {
    /// Arguments and results. A million callsites ask for the same few numbers of hits.
    static REMEMBERED: RefCell<Vec<([u64; 3], f64)>> =
        RefCell::new(vec![([0; 3], 0.0); 1 << REMEMBERED_BITS]);
}

/// Returns a stored result, or computes and stores it. Arguments of 0 mark an empty place.
fn memoized(arguments: [f64; 3], compute: impl FnOnce() -> f64) -> f64 {
    let key = arguments.map(f64::to_bits);
    let mixed = key.iter().fold(0, |mixed: u64, bits| {
        (mixed.rotate_left(5) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let place = (mixed >> (u64::BITS - REMEMBERED_BITS)) as usize;
    REMEMBERED.with_borrow_mut(|all| {
        if all[place].0 != key {
            all[place] = (key, compute());
        }
        all[place].1
    })
}

/// Returns the Poisson probability of `at_least` or more events for the mean `mean`.
pub fn poisson_tail(mean: f64, at_least: f64) -> f64 {
    if at_least <= 0.0 {
        1.0
    } else if mean <= 0.0 {
        0.0
    } else {
        1.0 - gamma_tail(at_least, mean)
    }
}

/// Returns the regularized upper incomplete gamma function Q(a, x).
fn gamma_tail(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x.is_infinite() {
        return 0.0;
    }
    if a > 1e7 {
        // Wilson and Hilferty's cube root.
        let z = ((x / a).cbrt() - (1.0 - 1.0 / (9.0 * a))) * (9.0 * a).sqrt();
        return normal_tail(z);
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..100_000 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return (1.0 - sum * scale).clamp(0.0, 1.0);
    }
    // Lentz's continued fraction.
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let an = -f64::from(i) * (f64::from(i) - a);
        b += 2.0;
        d = 1.0 / floor_of(an * d + b);
        c = floor_of(b + an / c);
        let delta = d * c;
        h *= delta;
        if (delta - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (h * scale).clamp(0.0, 1.0)
}

/// Returns the regularized incomplete beta function I_x(a, b); `y` is 1 - x, which loses digits if
/// computed from `x` close to 1.
pub fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let scale = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp();
    let value = if x < (a + 1.0) / (a + b + 2.0) {
        scale * beta_fraction(a, b, x) / a
    } else {
        1.0 - scale * beta_fraction(b, a, y) / b
    };
    value.clamp(0.0, 1.0)
}

/// Returns Lentz's continued fraction for the incomplete beta function.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / floor_of(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / floor_of(1.0 + even * d);
        c = floor_of(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / floor_of(1.0 + odd * d);
        c = floor_of(1.0 + odd / c);
        let delta = d * c;
        h *= delta;
        if (delta - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// Avoids a division by zero in Lentz's method.
fn floor_of(x: f64) -> f64 {
    if x.abs() < 1e-300 { 1e-300 } else { x }
}

/// Number of halvings to the last digit.
pub const TO_LAST_DIGIT: u32 = 80;

/// Returns the point between `low`, where `above` holds, and `high` at which it stops holding, after so
/// many halvings.
pub fn bisect(mut low: f64, mut high: f64, halvings: u32, above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..halvings {
        let middle = (low + high) / 2.0;
        if above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
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

    #[test]
    fn known_values() {
        close(ln_gamma(1.0), 0.0);
        close(ln_gamma(10.0), 362_880_f64.ln());
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
        close(normal_tail(1.959_963_984_540_054), 0.025);
        close(normal_tail(-1.0), 0.841_344_746_068_542_9);
        close(normal_point(0.05), 1.644_853_626_951_472_7);
        close(poisson_tail(3.0, 1.0), 1.0 - (-3.0_f64).exp());
        close(poisson_tail(100.0, 120.0), 0.028_230_393_964_867_5);
        close(binomial_tail(10.0, 8.0, 0.5), 56.0 / 1024.0);
    }

    #[test]
    fn binomial_tail_is_the_sum_of_its_terms() {
        for of in [1_u32, 7, 40, 300] {
            for chance in [0.5, 0.2, 0.93] {
                let term = |k: u32| {
                    let n = f64::from(of);
                    let k = f64::from(k);
                    (ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
                        + k * f64::ln(chance)
                        + (n - k) * f64::ln(1.0 - chance))
                    .exp()
                };
                for at_least in 0..=of {
                    let sum: f64 = (at_least..=of).map(term).sum();
                    let got = binomial_tail(f64::from(of), f64::from(at_least), chance);
                    assert!((got - sum).abs() < 1e-10, "{of} {at_least} {chance}");
                }
            }
        }
    }

    #[test]
    fn the_normal_takes_over_smoothly() {
        let below = binomial_tail(9.99e6, 4.998e6, 0.5);
        let above = binomial_tail(1.001e7, 5.008_003e6, 0.5);
        assert!((below - above).abs() < 1e-3, "{below} {above}");
        assert!(binomial_tail(1e18, 1e18, 0.5) == 0.0);
    }

    /// The values of SciPy 1.17.
    fn exactly(got: f64, want: f64) {
        assert!(
            (got - want).abs() <= 1e-10 * want.abs().max(1.0),
            "{got} {want}"
        );
    }

    #[test]
    fn normal_values_are_those_of_the_tables() {
        exactly(normal_tail(1.959_963_984_540_054), 0.025);
        exactly(normal_tail(-1.0), 0.841_344_746_068_542_9);
        exactly(normal_point(0.05), 1.644_853_626_951_472_7);
        exactly(normal_point(0.02), 2.053_748_910_631_823);
        exactly(normal_point(0.95), -1.644_853_626_951_472_7);
        exactly(normal_point(0.5), 0.0);
    }
}
