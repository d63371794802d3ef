//! Times of log lines: a wall clock with or without year and zone, seconds since 1970, or seconds
//! since boot. Maps the times of one log to one axis.

/// Time of a log line, as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Date and time of day: logcat's default.
    Wall {
        /// Year, with `-v year`.
        year: Option<i32>,
        /// Month, from 1.
        month: u8,
        /// Day of the month.
        day: u8,
        /// Time of day, ns.
        of_day: u64,
        /// Minutes east of Greenwich, with `-v zone`.
        zone: Option<i16>,
    },
    /// ns since 1970, with `-v epoch`.
    Epoch(u64),
    /// ns since the boot, with `-v monotonic`.
    Monotonic(u64),
}

const SECOND: u64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND as i64;
/// Minimum number of seconds without a date that counts as time since 1970: no device runs for
/// three years.
const EPOCH_FROM: u64 = 100_000_000;

impl Stamp {
    /// Parses a time at the start of `text` and returns it with the rest.
    pub fn parse(text: &str) -> Option<(Stamp, &str)> {
        let text = text.trim_start_matches(' ');
        Self::wall(text).or_else(|| Self::seconds(text))
    }

    /// `[YYYY-]MM-DD HH:MM:SS.mmm[ +ZZZZ]`.
    fn wall(text: &str) -> Option<(Stamp, &str)> {
        let (year, rest) = match text.as_bytes().get(4) {
            Some(b'-') => (Some(i32::try_from(digits(text, 4)?).ok()?), text.get(5..)?),
            _ => (None, text),
        };
        let month = u8::try_from(digits(rest, 2)?).ok()?;
        let rest = rest.get(2..)?.strip_prefix('-')?;
        let day = u8::try_from(digits(rest, 2)?).ok()?;
        // Some tools copy it as `2025-08-04T18:55:16`.
        let rest = rest.get(2..)?;
        let rest = rest.strip_prefix(' ').or_else(|| rest.strip_prefix('T'))?;
        let hour = digits(rest, 2)?;
        let rest = rest.get(2..)?.strip_prefix(':')?;
        let minute = digits(rest, 2)?;
        let rest = rest.get(2..)?.strip_prefix(':')?;
        let second = digits(rest, 2)?;
        let (fraction, rest) = fraction(rest.get(2..)?)?;
        let sane = (1..=12).contains(&month) && (1..=31).contains(&day);
        if !sane || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (zone, rest) = match zone(rest) {
            Some((zone, rest)) => (Some(zone), rest),
            None => (None, rest),
        };
        let of_day = ((hour * 60 + minute) * 60 + second) * SECOND + fraction;
        let stamp = Stamp::Wall {
            year,
            month,
            day,
            of_day,
            zone,
        };
        Some((stamp, rest))
    }

    /// `SECONDS.mmm`.
    fn seconds(text: &str) -> Option<(Stamp, &str)> {
        let end = text.find(|c: char| !c.is_ascii_digit())?;
        if end == 0 || end > 11 || !text[end..].starts_with('.') {
            return None;
        }
        let whole: u64 = text[..end].parse().ok()?;
        let (fraction, rest) = fraction(&text[end..])?;
        let ns = whole.checked_mul(SECOND)?.checked_add(fraction)?;
        let stamp = match whole >= EPOCH_FROM {
            true => Stamp::Epoch(ns),
            false => Stamp::Monotonic(ns),
        };
        Some((stamp, rest))
    }

    /// Returns ns since 1970 of the device's wall clock. A date without a year gets `year`.
    pub fn ns(self, year: i32) -> i64 {
        match self {
            Stamp::Wall {
                year: own,
                month,
                day,
                of_day,
                zone,
            } => {
                let days = days(own.unwrap_or(year), month, day);
                let of_day = i64::try_from(of_day).unwrap_or(0);
                let zone = i64::from(zone.unwrap_or(0)) * 60 * SECOND as i64;
                days.saturating_mul(DAY)
                    .saturating_add(of_day)
                    .saturating_sub(zone)
            }
            Stamp::Epoch(ns) | Stamp::Monotonic(ns) => i64::try_from(ns).unwrap_or(i64::MAX),
        }
    }
}

/// Maps the times of one log to one axis, in ns. Lines without a year that change from December to
/// January continue in the next year.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    year: Option<i32>,
    month: u8,
}

/// Start year for dates without one. A leap year, because of February 29.
const SOME_YEAR: i32 = 2024;

impl Axis {
    /// Starts in a known year.
    pub fn from_year(year: i32) -> Axis {
        Axis {
            year: Some(year),
            month: 0,
        }
    }

    /// Returns the position of `stamp` on the axis. Stamps must come in the order of the log.
    pub fn ns(&mut self, stamp: Stamp) -> i64 {
        let year = self.year.get_or_insert(SOME_YEAR);
        if let Stamp::Wall {
            year: None, month, ..
        } = stamp
        {
            // Lines from several buffers can be slightly out of order. Only a change between the
            // last and first two months is a new year, and a line from before it can follow.
            match (self.month, month) {
                (11 | 12, 1 | 2) => *year = year.saturating_add(1),
                (1 | 2, 11 | 12) => *year = year.saturating_sub(1),
                _ => {}
            }
            self.month = month;
        }
        stamp.ns(*year)
    }
}

/// Returns days since 1970 of a date in the Gregorian calendar.
fn days(year: i32, month: u8, day: u8) -> i64 {
    let (year, month) = (i64::from(year), i64::from(month));
    // Let the year begin in March, so that the leap day is its last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses exactly `count` digits at the start.
fn digits(text: &str, count: usize) -> Option<u64> {
    super::size::plain(text.get(..count)?)
}

/// Parses `.mmm`, `.uuuuuu` or `.nnnnnnnnn` as ns; returns 0 if there is no fraction.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    if !(1..=9).contains(&end) {
        return None;
    }
    let scale = 10u64.pow(u32::try_from(9 - end).ok()?);
    Some((rest[..end].parse::<u64>().ok()? * scale, &rest[end..]))
}

/// Parses ` +0530`, as added by `-v zone`, as minutes.
fn zone(text: &str) -> Option<(i16, &str)> {
    let rest = text.strip_prefix(' ')?;
    let sign = match rest.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = i16::try_from(digits(rest.get(1..)?, 2)?).ok()?;
    let minutes = i16::try_from(digits(rest.get(3..)?, 2)?).ok()?;
    let rest = rest.get(5..)?;
    (hours <= 14 && minutes < 60 && (rest.is_empty() || rest.starts_with([' ', ':'])))
        .then_some((sign * (hours * 60 + minutes), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> i64 {
        let (stamp, rest) = Stamp::parse(text).unwrap();
        assert_eq!(rest, " x", "{text}");
        stamp.ns(2026)
    }

    #[test]
    fn every_clock_of_logcat_is_read() {
        let noon = 1_773_748_800 * SECOND as i64;
        for (text, expected) in [
            ("03-17 12:00:00.000 x", noon),
            ("2026-03-17 12:00:00.000 x", noon),
            ("2026-03-17 12:00:00.000001 x", noon + 1_000),
            ("2026-03-17 17:30:00.000 +0530 x", noon),
            ("03-17 04:00:00.000 -0800 x", noon),
            ("        1773748800.000 x", noon),
            ("1773748800.000000005 x", noon + 5),
            ("    12.500 x", 12_500_000_000),
        ] {
            assert_eq!(ns(text), expected, "{text}");
        }
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        for text in [
            "",
            "13-01 00:00:00.000",
            "1-1",
            "12.",
            "x",
            "01-01 24:00:00.000",
            "٣٣-٠١",
        ] {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_log_goes_on_over_the_turn_of_the_year() {
        let mut axis = Axis::default();
        let mut at = |text: &str| axis.ns(Stamp::parse(text).unwrap().0);
        let before = at("12-31 23:59:59.000");
        let after = at("01-01 00:00:01.000");
        assert_eq!(after - before, 2 * SECOND as i64);
        // A late line from another buffer.
        assert_eq!(at("12-31 23:59:59.500"), before + SECOND as i64 / 2);
        assert_eq!(at("01-01 00:00:02.000") - before, 3 * SECOND as i64);
    }
}
