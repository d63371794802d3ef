//! How often something is asked, as it is typed.

use crate::units::parse_duration;
use std::time::Duration;

/// At least a tenth of a second; bare numbers are milliseconds, as everywhere.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = parse_duration(text, Duration::from_millis(1)).map_err(|e| e.to_string())?;
    if period < Duration::from_millis(100) {
        return Err(
            "it is at least 100ms; a number alone is milliseconds, 5s five seconds".to_owned(),
        );
    }
    Ok(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_milliseconds_and_not_too_short() {
        assert_eq!(period("1500"), Ok(Duration::from_millis(1500)));
        assert_eq!(period("2s"), Ok(Duration::from_secs(2)));
        assert!(period("2").unwrap_err().contains("milliseconds"));
        assert!(period("99ms").is_err() && period("soon").is_err());
    }
}
