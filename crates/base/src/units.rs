//! Parsing and printing of numbers with units: sizes, durations, build IDs.

use std::fmt;
use std::time::Duration;

/// Memory that a reader can keep of an input: a fixed part, and a multiple of the bytes read. No
/// reader uses more than 64 MiB plus sixteen times the bytes read, for any input
/// (`tests/memory_bounds`); this allowance leaves room for other buffers.
#[derive(Debug, Clone)]
pub struct Allowance {
    left: usize,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { left: 24 << 20 }
    }
}

impl Allowance {
    const PER_BYTE: usize = 10;

    /// Creates the allowance for an input of `bytes` bytes.
    pub fn from_bytes(bytes: usize) -> Allowance {
        let mut allowance = Allowance::default();
        allowance.add(bytes);
        allowance
    }

    /// Adds the allowance for `bytes` more bytes.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        let more = bytes.saturating_mul(Allowance::PER_BYTE);
        self.left = self.left.saturating_add(more);
    }

    /// Takes `memory` bytes if as many are left; returns whether it did.
    #[inline]
    #[must_use]
    pub fn take(&mut self, memory: usize) -> bool {
        let left = self.left.checked_sub(memory);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Returns the bytes left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Returns memory that was taken and not needed.
    #[inline]
    pub fn give_back(&mut self, memory: usize) {
        self.left = self.left.saturating_add(memory);
    }
}

/// A size in bytes; prints as `512 B`, `4.0 KiB`, `12.3 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.1} {}", UNITS[unit]))
    }
}

/// A size that can be negative, bytes; `{}` prints `-1.0 KiB`, `{:+}` also `+1.0 KiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SignedSize(pub i64);

impl fmt::Display for SignedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.0.signum() {
            -1 => "-",
            1 if f.sign_plus() => "+",
            _ => "",
        };
        let text = format!("{sign}{}", ByteSize(self.0.unsigned_abs()));
        match f.width() {
            Some(width) => write!(f, "{text:>width$}"),
            None => f.write_str(&text),
        }
    }
}

/// A text that is not a size or duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: {why}")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    why: &'static str,
}

impl ByteSize {
    /// Parses `4096`, `64k`, `256mb`, `8MiB`; every prefix is a power of 1024.
    ///
    /// # Errors
    /// Returns an error if the text has no number, an unknown unit, or a value above `u64::MAX`.
    pub fn parse(text: &str) -> Result<ByteSize, ParseUnitError> {
        let err = |why| ParseUnitError {
            text: text.to_owned(),
            what: "size",
            why,
        };
        let (number, unit) = split_number(text);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => {
                return Err(err(
                    "use a number with k, m or g, such as `4096`, `64k` or `8MiB`",
                ));
            }
        };
        scale(number, (1u64 << shift) as f64, 1u64 << shift)
            .map(ByteSize)
            .ok_or_else(|| err("use a number with k, m or g, such as `4096`, `64k` or `8MiB`"))
    }
}

/// Parses `500ms`, `10s`, `2m`, `1h`, `250us`, and sums from large to small such as `1m30s`; `bare` is the
/// unit of a bare number.
///
/// # Errors
/// Returns an error if the text has no number, an unknown unit, or a value beyond the range of a
/// duration.
pub fn parse_duration(text: &str, bare: Duration) -> Result<Duration, ParseUnitError> {
    let why = "use a number with ms, s, m or h, such as `500ms`, `10s` or `2m`";
    let err = || ParseUnitError {
        text: text.to_owned(),
        what: "duration",
        why,
    };
    let (mut sum, mut rest, mut larger) = (0u64, text, u64::MAX);
    loop {
        let (number, behind) = split_number(rest);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, next) = behind.split_at(end.unwrap_or(behind.len()));
        let nanos: u64 = match unit.to_ascii_lowercase().as_str() {
            "" if larger == u64::MAX && next.trim().is_empty() => bare.as_nanos() as u64,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(err()),
        };
        if nanos >= larger {
            return Err(err());
        }
        let part = scale(number, nanos as f64, nanos).ok_or_else(err)?;
        sum = sum.checked_add(part).ok_or_else(err)?;
        (rest, larger) = (next, nanos);
        if rest.trim().is_empty() {
            return Ok(Duration::from_nanos(sum));
        }
    }
}

/// Parses a time with a unit; 0 needs none.
///
/// # Errors
/// Returns an error if the unit is missing, or as [`parse_duration`].
pub fn parse_time(text: &str) -> Result<Duration, String> {
    match text.trim() {
        "0" => Ok(Duration::ZERO),
        bare if is_bare(bare) => Err(without_unit(bare)),
        _ => parse_duration(text, Duration::ZERO).map_err(|error| error.to_string()),
    }
}

/// Returns true if a number has no unit, whole or not.
pub fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Returns the error for a number without a unit, and its help.
pub fn without_unit(number: &str) -> String {
    format!("it has no unit; {number}s is {number} seconds, {number}ms {number} milliseconds")
}

fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Scales whole numbers exactly, fractions as floating point.
fn scale(number: &str, by: f64, exact: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(exact);
    }
    let value = number.parse::<f64>().ok()? * by;
    (value.is_finite() && value < u64::MAX as f64).then_some(value.round() as u64)
}

/// A duration that prints as `850 ms`, `12.4 s`, `3m 20s`, `1h 02m`.
#[derive(Debug, Clone, Copy)]
pub struct HumanDuration(pub Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let text = if self.0 < Duration::from_secs(1) {
            format!("{} ms", self.0.as_millis())
        } else if seconds < 60 {
            format!("{:.1} s", self.0.as_secs_f64())
        } else if seconds < 3600 {
            format!("{}m {:02}s", seconds / 60, seconds % 60)
        } else {
            format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60)
        };
        f.pad(&text)
    }
}

/// A GNU build ID (or Breakpad module ID): raw bytes, printed as lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BuildId(pub Vec<u8>);

impl BuildId {
    /// Returns whether the file does not have a build ID.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Breakpad module IDs arrive as 33 characters of hex text (Perfetto does the same).
        if self.0.len() == 33 && self.0.iter().all(u8::is_ascii_hexdigit) {
            return self.0.iter().try_for_each(|b| write!(f, "{}", *b as char));
        }
        f.write_str(&hex(&self.0))
    }
}

/// Returns whether a number is 0, for fields that are omitted from documents then.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Formats `12345678` as `12,345,678`.
pub fn thousands(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its words, such as `1 file is` or `2 files are`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    let words = if number == 1 { one } else { many };
    format!("{} {words}", thousands(number))
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_agrees_with_its_words() {
        let files = |n| counted(n, "file is", "files are");
        assert_eq!(files(0), "0 files are");
        assert_eq!(files(1), "1 file is");
        assert_eq!(files(1234), "1,234 files are");
    }

    #[test]
    fn sizes_carry_their_sign() {
        assert_eq!(SignedSize(-2048).to_string(), "-2.0 KiB");
        assert_eq!(SignedSize(2048).to_string(), "2.0 KiB");
        assert_eq!(format!("{:+}", SignedSize(2048)), "+2.0 KiB");
        assert_eq!(format!("{:+}", SignedSize(0)), "0 B");
        assert_eq!(format!("{:>9}|", SignedSize(i64::MIN)), " -8.0 EiB|");
    }

    #[test]
    fn sizes_parse_in_powers_of_1024() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64k", 65536),
            ("256mb", 256 << 20),
            ("8MiB", 8 << 20),
            ("1.5 KiB", 1536),
            ("0", 0),
        ] {
            assert_eq!(ByteSize::parse(text), Ok(ByteSize(bytes)), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "1x",
            "1e9",
            "99999999999999999999",
            "17179869184g",
            "1.2.3",
        ] {
            assert!(ByteSize::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_parse_with_a_unit_of_their_own_for_bare_numbers() {
        let ms = Duration::from_millis(1);
        assert_eq!(parse_duration("500ms", ms), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("10s", ms), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("2m", ms), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("250", ms), Ok(Duration::from_millis(250)));
        assert_eq!(
            parse_duration("250", Duration::from_micros(1)),
            Ok(Duration::from_micros(250))
        );
        assert!(parse_duration("soon", ms).is_err());
        for (text, seconds) in [
            ("1m30s", 90),
            ("1h 30m", 5400),
            ("2m0.5s", 120),
            ("1h1m1s", 3661),
        ] {
            let parsed = parse_duration(text, ms).map(|d| d.as_secs());
            assert_eq!(parsed, Ok(seconds), "{text}");
        }
        assert!(parse_duration("5 30us", ms).is_err());
        for wrong in ["1m30", "30s1m", "1s1s", "1m-3s", "m30s", "1h 1"] {
            assert!(parse_duration(wrong, ms).is_err(), "{wrong}");
            assert!(
                parse_time(wrong).unwrap_err().contains("not a duration"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn sizes_print_with_one_decimal() {
        assert_eq!(ByteSize(512).to_string(), "512 B");
        assert_eq!(ByteSize(4096).to_string(), "4.0 KiB");
        assert_eq!(ByteSize(1024 * 1024 - 1).to_string(), "1.0 MiB");
        assert_eq!(ByteSize(u64::MAX).to_string(), "16.0 EiB");
    }

    #[test]
    fn build_ids_print_as_hex() {
        assert_eq!(BuildId(vec![0xab, 0x01]).to_string(), "ab01");
        let breakpad = b"0123456789ABCDEF0123456789ABCDEF0";
        assert_eq!(
            BuildId(breakpad.to_vec()).to_string(),
            "0123456789ABCDEF0123456789ABCDEF0"
        );
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0i64, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-1_234_567, "-1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }
}
