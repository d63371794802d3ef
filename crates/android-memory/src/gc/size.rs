//! Sizes and durations printed by the runtimes, with their rounding error.

/// A size printed by a runtime. Both runtimes round down to the unit: `25MB` is anything from 25
/// MiB to just below 26 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed {
    /// Bytes, rounded toward zero.
    pub bytes: i64,
    /// Unit: the rounding error is less than this.
    pub step: u64,
}

impl Printed {
    /// Returns the size if it is not negative.
    pub fn unsigned(self) -> Option<u64> {
        u64::try_from(self.bytes).ok()
    }
}

/// Splits a number from its unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let whole = number.split('.').next().unwrap_or_default();
    (!whole.is_empty() && number.matches('.').count() <= 1).then_some((number, unit))
}

/// Returns `number * by` exactly; a remainder below 1 is dropped.
fn scaled(number: &str, by: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut value = whole.parse::<u64>().ok()?.checked_mul(by)?;
    // Twelve digits are more than any unit needs.
    let digits = &fraction[..fraction.len().min(12)];
    if !digits.is_empty() {
        let part = u128::from(digits.parse::<u64>().ok()?) * u128::from(by)
            / 10u128.pow(u32::try_from(digits.len()).ok()?);
        value = value.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(value)
}

/// Parses ART's `PrettySize`: `384B`, `416KB`, `7MB`, `-12KB`. Also parses a fraction (`17.730MB`),
/// as in Dalvik's messages about heap limits.
pub fn size(text: &str) -> Option<Printed> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (number, unit) = split(text)?;
    let by: u64 = match unit {
        "B" => 1,
        "KB" | "K" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    let bytes = i64::try_from(scaled(number, by)?).ok()?;
    let decimals = number.split_once('.').map_or(0, |(_, f)| f.len().min(12));
    let step = (0..decimals).fold(by, |step, _| step.div_ceil(10));
    Some(Printed {
        bytes: if negative { -bytes } else { bytes },
        step,
    })
}

/// Parses Dalvik's `2049K` and `<1K`.
pub fn kilobytes(text: &str) -> Option<Printed> {
    let step = 1 << 10;
    if text == "<1K" {
        return Some(Printed { bytes: 0, step });
    }
    let (negative, digits) = match text.strip_suffix('K')?.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_suffix('K')?),
    };
    let bytes = i64::try_from(plain(digits)?.checked_mul(step)?).ok()?;
    Some(Printed {
        bytes: if negative { -bytes } else { bytes },
        step,
    })
}

/// Parses ART's `PrettyDuration` (`0`, `94us`, `1.230ms`, `1.008s`, `500ns`) and Dalvik's `13ms`.
/// Returns ns.
pub fn duration(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let by = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        // Only zero can omit the unit.
        "" if number.bytes().all(|b| matches!(b, b'0' | b'.')) => return Some(0),
        _ => return None,
    };
    scaled(number, by)
}

/// Parses a number of digits only.
pub fn plain(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_say_what_their_unit_hides() {
        for (text, bytes, step) in [
            ("0B", 0, 1),
            ("384B", 384, 1),
            ("416KB", 416 << 10, 1 << 10),
            ("7MB", 7 << 20, 1 << 20),
            ("12GB", 12 << 30, 1 << 30),
            ("-12KB", -(12 << 10), 1 << 10),
            ("17.730MB", 18_591_252, 1049),
        ] {
            assert_eq!(size(text), Some(Printed { bytes, step }), "{text}");
        }
        for text in [
            "",
            "B",
            "-",
            "7",
            "7 MB",
            "7mb",
            "1..2MB",
            ".5MB",
            "99999999999999999999KB",
            "+7KB",
            "9223372036854775807GB",
            "7MB ",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(kilobytes("<1K").unwrap().bytes, 0);
        assert_eq!(kilobytes("-3K").unwrap().bytes, -3072);
        assert_eq!(kilobytes("2049K").unwrap().bytes, 2049 * 1024);
        assert_eq!(kilobytes("2049"), None);
        assert_eq!(kilobytes("K"), None);
    }

    #[test]
    fn durations_come_in_ns() {
        for (text, ns) in [
            ("0", 0),
            ("0s", 0),
            ("500ns", 500),
            ("94us", 94_000),
            ("1.230ms", 1_230_000),
            ("1.008s", 1_008_000_000),
            ("4910ms", 4_910_000_000),
            ("1.0000000000001s", 1_000_000_000),
        ] {
            assert_eq!(duration(text), Some(ns), "{text}");
        }
        for text in [
            "",
            "7",
            "ms",
            "1.2.3ms",
            "-1ms",
            "1 ms",
            "99999999999999s",
            "1m",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
