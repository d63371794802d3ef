//! ART's log lines: collections in the two forms used by its versions, and waits for a collection.
//! Any cause and collector is accepted, because each release adds new ones.

use super::event::{Blocked, Logged, Runtime, Steps};
use super::size::{duration, plain, size};
use heaptap_model::timeline::{Collection, Source};

/// Parses `CAUSE COLLECTOR[ (sampled)] GC freed …`.
pub(super) fn collection(message: &str) -> Option<Logged> {
    let (head, body) = message.split_once(" GC freed ")?;
    let head = head.trim();
    let (head, sampled) = match head.strip_suffix("(sampled)") {
        Some(head) => (head.trim_end(), true),
        None => (head, false),
    };
    let (reason, collector) = head.split_once(' ').unwrap_or((head, ""));
    if reason.is_empty() {
        return None;
    }
    let mut logged = Logged {
        runtime: Runtime::Art,
        collection: Collection {
            source: Some(Source::Log),
            reason: reason.to_owned(),
            collector: collector.trim().to_owned(),
            ..Collection::default()
        },
        free_percent: None,
        external: None,
        sampled,
        steps: Steps::default(),
        unread: Vec::new(),
    };
    for (at, part) in body.split(", ").enumerate() {
        let part = part.trim();
        if at == 0 {
            freed(part, &mut logged)?;
        } else if !segment(part, &mut logged) && logged.unread.len() < 8 {
            logged.unread.push(part.to_owned());
        }
    }
    Some(logged)
}

/// Parses `N(SIZE) AllocSpace objects`, or `SIZE AllocSpace bytes` since July 2023.
fn freed(part: &str, logged: &mut Logged) -> Option<()> {
    let bytes = if let Some(text) = part.strip_suffix(" AllocSpace objects") {
        let (count, bytes) = counted(text)?;
        logged.collection.freed_objects = plain(count);
        bytes
    } else {
        part.strip_suffix(" AllocSpace bytes")?
    };
    let bytes = size(bytes)?;
    logged.collection.freed_bytes = Some(bytes.bytes);
    logged.steps.freed = bytes.step;
    Some(())
}

/// Parses `N(SIZE)`.
fn counted(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(')')?.split_once('(')
}

/// Parses one of the parts after the first.
fn segment(part: &str, logged: &mut Logged) -> bool {
    let found = if let Some(text) = part.strip_suffix(" LOS objects") {
        counted(text)
            .and_then(|(count, bytes)| Some((plain(count)?, size(bytes)?)))
            .map(|(count, bytes)| {
                logged.collection.freed_large = Some((count, bytes.bytes));
                logged.steps.large = bytes.step;
            })
    } else if let Some(text) = part.strip_suffix("% free") {
        text.parse()
            .ok()
            .map(|percent| logged.free_percent = Some(percent))
    } else if let Some(text) = part.strip_prefix("paused ") {
        times(text, logged)
    } else {
        part.split_once('/')
            .and_then(|(live, total)| Some((size(live)?, size(total)?)))
            .and_then(|(live, total)| Some((live, total, live.unsigned()?, total.unsigned()?)))
            .map(|(live, total, live_bytes, total_bytes)| {
                logged.collection.live = Some(live_bytes);
                logged.collection.total = Some(total_bytes);
                (logged.steps.live, logged.steps.total) = (live.step, total.step);
            })
    };
    found.is_some()
}

/// Parses `D[,D] total D`. Without a pause, nothing precedes ` total`.
fn times(text: &str, logged: &mut Logged) -> Option<()> {
    let (pauses, total) = match text.strip_prefix("total ") {
        Some(total) => ("", total),
        None => text.split_once(" total ")?,
    };
    let (total, more) = total.split_once(' ').unwrap_or((total, ""));
    let pauses: Vec<u64> = pauses
        .split(',')
        .map(str::trim)
        .filter(|pause| !pause.is_empty())
        .map(duration)
        .collect::<Option<_>>()?;
    logged.collection.duration = Some(duration(total)?);
    logged.collection.pauses = pauses;
    if !more.trim().is_empty() {
        logged.unread.push(more.trim().to_owned());
    }
    Some(())
}

/// Parses `WaitForGcToComplete blocked for D for cause C` up to Android 7, and `… blocked C on LAST
/// for D` since then.
pub(super) fn blocked(message: &str) -> Option<Blocked> {
    let rest = message
        .strip_prefix("WaitForGcToComplete blocked ")?
        .trim_end();
    if let Some(rest) = rest.strip_prefix("for ") {
        let (took, reason) = rest.split_once(" for cause ")?;
        return Some(Blocked {
            ns: duration(took)?,
            reason: Some(reason.to_owned()),
            on: None,
        });
    }
    let (reasons, took) = rest.rsplit_once(" for ")?;
    let (reason, on) = reasons.split_once(" on ")?;
    Some(Blocked {
        ns: duration(took)?,
        reason: Some(reason.to_owned()),
        on: Some(on.to_owned()),
    })
}
