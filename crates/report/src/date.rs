//! Times as pages show them.

use time::OffsetDateTime;

/// Formats a time: `2026-11-20 07:43:00 UTC`.
pub fn moment(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let (date, clock) = (at.date(), at.time());
    format!(
        "{date} {:02}:{:02}:{:02} UTC",
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

/// Formats milliseconds since 1970; `None` for a time outside the calendar.
pub(crate) fn date(wall_ms: f64) -> Option<String> {
    let seconds = (wall_ms / 1000.0).floor();
    OffsetDateTime::from_unix_timestamp(seconds as i64)
        .ok()
        .map(moment)
}
