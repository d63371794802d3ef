//! Dalvik's log lines: collections of Android 1.5 to 4.4, and waits for the concurrent collection.

use super::event::{Blocked, Logged, Runtime};
use super::size::{Printed, duration, kilobytes, plain};

/// Parses `REASON freed …`, with a reason `GC` or `GC_…`.
pub(super) fn collection(message: &str) -> Option<Logged> {
    let (reason, body) = message.split_once(" freed ")?;
    let known = reason == "GC" || reason.starts_with("GC_");
    if !known || reason.contains(char::is_whitespace) {
        return None;
    }
    let mut logged = Logged::begun(Runtime::Dalvik, reason, "");
    let mut parts = body.split(", ").map(str::trim);
    freed(parts.next()?, &mut logged)?;
    for part in parts {
        segment(part, &mut logged);
    }
    Some(logged)
}

/// Parses `2049K`, `<1K`; up to Android 2.2 `3184 objects / 205496 bytes in 67ms`.
fn freed(part: &str, logged: &mut Logged) -> Option<()> {
    let bytes = match part.split_once(" objects / ") {
        Some((objects, rest)) => {
            let (bytes, took) = rest.split_once(" in ")?;
            logged.collection.freed_objects = Some(plain(objects)?);
            // The app is paused for the whole time.
            logged.collection.duration = Some(duration(took)?);
            match bytes.strip_suffix(" bytes") {
                Some(bytes) => Printed {
                    bytes: i64::try_from(plain(bytes)?).ok()?,
                    step: 1,
                },
                None => kilobytes(bytes)?,
            }
        }
        None => kilobytes(part)?,
    };
    logged.collection.freed_bytes = Some(bytes.bytes);
    logged.steps.freed = bytes.step;
    Some(())
}

/// Parses one of the parts after the first.
fn segment(part: &str, logged: &mut Logged) -> Option<()> {
    if let Some(text) = part.strip_prefix("paused ") {
        logged.collection.pauses = text.split('+').map(duration).collect::<Option<_>>()?;
    } else if let Some(text) = part.strip_prefix("total ") {
        logged.collection.duration = Some(duration(text)?);
    } else if !part.starts_with("external ") {
        // Up to Android 2.3, pictures are external memory.
        let (_, text) = part.split_once("% free ")?;
        let (live, total) = pair(text)?;
        (logged.collection.live, logged.collection.total) =
            (Some(live.unsigned()?), Some(total.unsigned()?));
        (logged.steps.live, logged.steps.total) = (live.step, total.step);
    }
    Some(())
}

/// Parses `3571K/9991K`.
fn pair(text: &str) -> Option<(Printed, Printed)> {
    let (used, limit) = text.split_once('/')?;
    Some((kilobytes(used)?, kilobytes(limit)?))
}

/// Parses `WAIT_FOR_CONCURRENT_GC blocked 16ms`.
pub(super) fn blocked(message: &str) -> Option<Blocked> {
    let took = message.strip_prefix("WAIT_FOR_CONCURRENT_GC blocked ")?;
    Some(Blocked {
        ns: duration(took.trim())?,
        reason: None,
        on: Some("GC_CONCURRENT".to_owned()),
    })
}
