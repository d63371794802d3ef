//! Times on the command line. A time has a unit; a bare number is refused, except if Perfetto's
//! scripts accept one.

use std::time::Duration;

pub(crate) use heaptap_base::units::parse_time as time;
use heaptap_base::units::{is_bare, parse_duration, without_unit};

/// Bare numbers below this are more likely seconds than milliseconds.
const MIN_BARE_MS: u64 = 1000;

/// Parses a time of which 0 would do nothing.
pub(crate) fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// Parses a time as Perfetto's scripts take it: a bare number of 1000 or more is milliseconds.
/// Smaller ones are refused: `-d 30` is 30 seconds to its writer and 30 ms to Perfetto.
pub(crate) fn perfetto_time(text: &str) -> Result<Duration, String> {
    let bare = text.trim();
    let is_clear = bare
        .parse::<u64>()
        .is_ok_and(|ms| ms == 0 || ms >= MIN_BARE_MS);
    match is_bare(bare) && !is_clear {
        true => Err(without_unit(bare)),
        false => parse_duration(text, Duration::from_millis(1)).map_err(|error| error.to_string()),
    }
}

/// Parses the period of a sample: a time of at least 100 ms.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = time(text)?;
    match period >= Duration::from_millis(100) {
        true => Ok(period),
        false => Err("the minimum is 100ms".to_owned()),
    }
}

/// Parses a time whose bare numbers are seconds, as in java_heap_dump.
pub(crate) fn perfetto_seconds(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::from_secs(1)).map_err(|error| error.to_string())
}

/// Parses a time whose bare numbers are microseconds, as in heap_profile.
pub(crate) fn perfetto_micros(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::from_micros(1)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert!(time("10").unwrap_err().contains("10s is 10 seconds"));
        assert!(time("1.5").is_err() && time("99999999999999999999").is_err());
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(time("soon").is_err() && time("").is_err());
        assert_eq!(positive_time("1s"), time("1s"));
        assert!(positive_time("0").is_err() && positive_time("0s").is_err());
        assert_eq!(period("1500ms"), Ok(Duration::from_millis(1500)));
        assert!(period("99ms").is_err() && period("1500").is_err());
    }

    #[test]
    fn perfettos_bare_numbers_are_taken_where_they_are_clear() {
        assert_eq!(perfetto_time("30000"), Ok(Duration::from_secs(30)));
        assert_eq!(perfetto_time("0"), Ok(Duration::ZERO));
        assert_eq!(perfetto_time("30s"), Ok(Duration::from_secs(30)));
        assert!(perfetto_time("1.5").is_err() && perfetto_time("30.0").is_err());
        let refused = perfetto_time("30").unwrap_err();
        assert!(refused.contains("30s is 30 seconds, 30ms 30 milliseconds"));
        assert_eq!(perfetto_seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(perfetto_micros("60"), Ok(Duration::from_micros(60)));
    }
}
