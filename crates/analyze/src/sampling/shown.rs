//! Display of estimates: form and number of digits. The more hits, the simpler the form. Values are
//! rounded so that the half-width has at most two digits.

use std::fmt;

use super::estimate::{Estimate, Rate};

/// Minimum number of hits for which the interval is nearly symmetric and shown as ±.
const HITS_FOR_PLUS_MINUS: f64 = 30.0;
/// Minimum number of hits for a value that is more than a rough estimate.
const HITS_FOR_RANGE: f64 = 10.0;
/// Half-widths, relative to the value, at these numbers of hits. Large blocks, which are known
/// exactly, reach them with fewer hits.
const WIDTH_OF_PLUS_MINUS: f64 = 0.4;
const WIDTH_OF_RANGE: f64 = 0.85;

/// Power of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShownUnit(u8);

impl ShownUnit {
    /// Returns `B`, `KiB`, `MiB` …
    pub fn name(self) -> &'static str {
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][usize::from(self.0)]
    }

    /// Returns the number of bytes in the unit.
    pub fn bytes(self) -> f64 {
        1024_f64.powi(i32::from(self.0))
    }

    /// Returns the unit in which a value is below 1024.
    fn from_value(value: f64) -> ShownUnit {
        let mut unit = 0;
        let mut left = value.abs();
        while left >= if unit == 0 { 1024.0 } else { 1023.95 } && unit < 6 {
            left /= 1024.0;
            unit += 1;
        }
        ShownUnit(unit)
    }
}

/// Displayed form of an estimate. Values are in `unit`, rounded to `decimals`. Formats as `12.3 MiB
/// ± 0.4`, `120 KiB (81-171)`, `~12 KiB (2-35), 3 samples`, `< 12 KiB`; with `{:+}`, growth has its
/// sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    /// Unit of all values.
    pub unit: ShownUnit,
    /// Number of decimals.
    pub decimals: usize,
    /// Rounding step of the value, in `unit`.
    step: f64,
    /// Value with its error.
    pub form: Form,
}

/// Forms of an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Value without error.
    Exact(f64),
    /// Value and half-width.
    PlusMinus(f64, f64),
    /// Value and both limits.
    Range(f64, f64, f64),
    /// Rough estimate: value, both limits, number of samples.
    Rough(f64, f64, f64, u64),
    /// Upper limit, because nothing was sampled.
    Below(f64),
}

impl Shown {
    /// Returns the value in `unit`; `None` if nothing was sampled.
    fn value(&self) -> Option<f64> {
        match self.form {
            Form::Exact(value)
            | Form::PlusMinus(value, _)
            | Form::Range(value, ..)
            | Form::Rough(value, ..) => Some(value),
            Form::Below(_) => None,
        }
    }

    /// Returns the possible deviation of the value: `0.4 MiB`.
    pub fn reach(&self) -> String {
        let half = match self.form {
            Form::Exact(_) => 0.0,
            Form::PlusMinus(_, half) => half,
            Form::Range(value, low, high) | Form::Rough(value, low, high, _) => {
                (value - low).max(high - value)
            }
            Form::Below(high) => high,
        };
        format!("{half:.d$} {}", self.unit.name(), d = self.decimals)
    }

    /// Returns the value without its error: `12.3 MiB`.
    pub fn size(&self) -> String {
        match self.value() {
            Some(value) => format!("{value:.d$} {}", self.unit.name(), d = self.decimals),
            None => self.to_string(),
        }
    }
}

impl Estimate {
    /// Returns the display of a whole next to one of its parts. If both are rounded separately, the
    /// part can appear larger than the whole; the whole is then rounded like the part.
    pub fn shown_beside(&self, part: &Shown) -> Shown {
        let whole = self.shown();
        let (Some(own), Some(of_part)) = (whole.value(), part.value()) else {
            return whole;
        };
        if own * whole.unit.bytes() >= of_part * part.unit.bytes() {
            return whole;
        }
        let scale = part.unit.bytes() * part.step;
        let value = round(
            (self.value as f64 / scale).round() * part.step,
            part.decimals,
        );
        Shown {
            // If the whole is still less than the part, it is less in the data.
            form: Form::Exact(value),
            ..*part
        }
    }

    /// Returns the display form.
    pub fn shown(&self) -> Shown {
        shown(self.with(|bytes| bytes as f64))
    }
}

impl Rate {
    /// Returns the display form, without the number of samples, because they are not per iteration.
    pub fn shown(&self) -> Shown {
        let shown = shown(*self);
        match shown.form {
            Form::Rough(value, low, high, _) => Shown {
                form: Form::Range(value, low, high),
                ..shown
            },
            _ => shown,
        }
    }
}

fn shown(of: Rate) -> Shown {
    let half = (of.value - of.low).max(of.high - of.value);
    if of.exact || half <= 0.0 {
        let unit = ShownUnit::from_value(of.value);
        let decimals = usize::from(unit.0 > 0);
        return Shown {
            unit,
            decimals,
            step: 10_f64.powi(-(decimals as i32)),
            form: Form::Exact(round(of.value / unit.bytes(), decimals)),
        };
    }
    if of.samples == 0 && of.value == 0.0 && of.low >= 0.0 {
        let unit = ShownUnit::from_value(of.high);
        let high = of.high / unit.bytes();
        let step = step_of(high, 2);
        let (high, decimals) = ((high / step - 1e-9).ceil() * step, decimals_of(step, unit));
        return Shown {
            unit,
            decimals,
            step,
            form: Form::Below(round(high, decimals)),
        };
    }
    // A value far below its error has the unit of the error.
    let unit = ShownUnit::from_value(of.value.abs().max(half / 8.0));
    let width = half / of.value.abs();
    let plain = of.hits >= HITS_FOR_PLUS_MINUS || width <= WIDTH_OF_PLUS_MINUS;
    let scaled = half / unit.bytes();
    // ± 0.4 and ± 0.17: a leading 1 or 2 has a second digit.
    let digits = if plain && leading_digit(scaled) > 2 {
        1
    } else {
        2
    };
    let step = step_of(scaled, digits);
    let decimals = decimals_of(step, unit);
    // A value that is known much better than it is shown has at most two decimals.
    let step = step.max(10_f64.powi(-(decimals as i32)));
    let to_step = |x: f64| round((x / unit.bytes() / step).round() * step, decimals);
    let value = to_step(of.value);
    let form = if plain {
        let half = round((scaled / step - 1e-9).ceil() * step, decimals);
        Form::PlusMinus(value, half)
    } else if of.hits >= HITS_FOR_RANGE || width <= WIDTH_OF_RANGE {
        Form::Range(value, to_step(of.low), to_step(of.high))
    } else {
        Form::Rough(value, to_step(of.low), to_step(of.high), of.samples)
    };
    Shown {
        unit,
        decimals,
        step,
        form,
    }
}

fn leading_digit(x: f64) -> u32 {
    (x / step_of(x, 1)).round() as u32
}

/// Returns the power of ten to round to so that `x` keeps `digits` digits.
fn step_of(x: f64, digits: i32) -> f64 {
    10_f64.powi(x.abs().log10().floor() as i32 + 1 - digits)
}

fn decimals_of(step: f64, unit: ShownUnit) -> usize {
    let most = if unit.0 == 0 { 0.0 } else { 2.0 };
    (-step.log10()).round().clamp(0.0, most) as usize
}

fn round(x: f64, decimals: usize) -> f64 {
    let scale = 10_f64.powi(decimals as i32);
    let rounded = (x * scale).round() / scale;
    // Avoid negative zero.
    if rounded == 0.0 { 0.0 } else { rounded }
}

impl Shown {
    /// Returns the same display with a value that is not rounded to the error, for a difference next to
    /// its two sides.
    pub fn with_value(self, bytes: f64) -> Shown {
        let value = round(bytes / self.unit.bytes(), self.decimals);
        let form = match self.form {
            Form::PlusMinus(_, half) => Form::PlusMinus(value, half),
            Form::Range(_, low, high) => Form::Range(value, low, high),
            other => other,
        };
        Shown { form, ..self }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, d) = (self.unit.name(), self.decimals);
        let number = |x: f64| {
            if f.sign_plus() {
                format!("{x:+.d$}")
            } else {
                format!("{x:.d$}")
            }
        };
        let limits = |low: f64, high: f64| {
            if low < 0.0 || f.sign_plus() {
                format!("({} to {})", number(low), number(high))
            } else {
                format!("({}-{})", number(low), number(high))
            }
        };
        let text = match self.form {
            Form::Exact(value) => format!("{} {unit}", number(value)),
            Form::PlusMinus(value, half) => {
                format!("{} {unit} ± {half:.d$}", number(value))
            }
            Form::Range(value, low, high) => {
                format!("{} {unit} {}", number(value), limits(low, high))
            }
            Form::Rough(value, low, high, samples) => format!(
                "~{} {unit} {}, {samples} sample{}",
                number(value),
                limits(low, high),
                if samples == 1 { "" } else { "s" }
            ),
            Form::Below(high) => format!("< {high:.d$} {unit}"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::{Interval, Sampled};
    use super::*;

    fn of(bytes: i64, samples: i64, t: u64) -> String {
        let interval = Interval::new(t).expect("not zero");
        Sampled::new(bytes, samples, interval)
            .estimate()
            .shown()
            .to_string()
    }

    #[test]
    fn the_more_hits_the_plainer() {
        assert_eq!(of(3150 * 4096, 3000, 4096), "12.3 MiB ± 0.5");
        assert_eq!(of(30 * 4096, 30, 4096), "120 KiB ± 60");
        assert_eq!(of(29 * 4096, 29, 4096), "116 KiB (78-167)");
        assert_eq!(of(3 * 4096, 3, 4096), "~12 KiB (2-35), 3 samples");
        assert_eq!(of(4096, 1, 4096), "~4 KiB (0-22), 1 sample");
        assert_eq!(of(0, 0, 4096), "< 12 KiB");
        assert_eq!(of(12_345, 5, 1), "12.1 KiB");
        assert_eq!(of(0, 0, 1), "0 B");
    }

    #[test]
    fn a_part_is_never_shown_larger_than_its_whole() {
        let interval = Interval::new(4096).expect("not zero");
        let bytes = |shown: &Shown| shown.value().unwrap_or(0.0) * shown.unit.bytes();
        let mut seed = 7u64;
        let mut below = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        let mut mended = 0;
        for _ in 0..20_000 {
            let size = 1i64 << below(34);
            let part = size + below(size as u64) as i64;
            let more = if below(2) == 0 {
                0
            } else {
                below(60_000) as i64
            };
            let samples = 1 + below(500) as i64;
            let of_part = Sampled::new(part, samples, interval).estimate().shown();
            let whole = Sampled::new(part + more, samples + 3, interval).estimate();
            let shown = whole.shown_beside(&of_part);
            assert!(bytes(&shown) >= bytes(&of_part), "{of_part} of {shown}");
            mended += usize::from(bytes(&whole.shown()) < bytes(&of_part));
            // An exact sum next to a value with an error is rounded too.
            let exact = Estimate::exact(part + more, 0).shown_beside(&of_part);
            assert!(bytes(&exact) >= bytes(&of_part), "{of_part} of {exact}");
        }
        assert!(mended > 0, "no pair whose order rounding reverses");
    }

    #[test]
    fn large_blocks_are_known_with_few_samples() {
        assert_eq!(of(8 << 20, 1, 4096), "8.00 MiB ± 0.02");
        assert_eq!(of(1 << 40, 1, 4096), "1.00 TiB ± 0.01");
    }

    #[test]
    fn growth_has_its_sign() {
        let grown = Estimate {
            value: 40_960,
            low: -2_000,
            high: 90_000,
            hits: 12.0,
            samples: 12,
            exact: false,
        };
        assert_eq!(format!("{:+}", grown.shown()), "+40 KiB (-2 to +88)");
        assert_eq!(format!("{}", grown.shown()), "40 KiB (-2 to 88)");
        let nothing = Estimate {
            value: 0,
            low: -15_000,
            high: 15_000,
            ..grown
        };
        assert_eq!(format!("{:+}", nothing.shown()), "+0 KiB (-15 to +15)");
    }

    #[test]
    fn extremes_are_numbers() {
        for value in [i64::MIN, -1, 0, 1, i64::MAX] {
            for spread in [0, 1, i64::MAX] {
                for hits in [0.0, 5.0, 20.0, 1e18] {
                    let text = Estimate {
                        value,
                        low: value.saturating_sub(spread),
                        high: value.saturating_add(spread),
                        hits,
                        samples: 1,
                        exact: false,
                    }
                    .shown()
                    .to_string();
                    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                    assert!(text.len() < 60, "{text}");
                }
            }
        }
    }
}
