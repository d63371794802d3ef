//! ART's log lines: collections in the two forms used by its versions, and waits for a collection.
//! Any collector and any cause are accepted, because each release adds new ones.

use super::event::{Blocked, Logged, Runtime};
use super::size::{duration, plain, size};

/// Causes of collections, by the release that added them. The last ones are of 2023 and from the
/// documentation.
pub(super) const CAUSES: [&str; 24] = [
    // 4.4 to 6
    "Alloc",
    "Background",
    "Explicit",
    "NativeAlloc",
    "CollectorTransition",
    "DisableMovingGc",
    "HomogeneousSpaceCompact",
    "HeapTrim",
    // 7
    "Instrumentation",
    "AddRemoveAppImageSpace",
    "Debugger",
    "ClassLinker",
    // 8
    "None",
    "NativeAllocBlocking",
    "JitCodeCache",
    "SystemWeakHolder",
    "Hprof",
    "ObjectsAllocated",
    "ProfileSaver",
    // 11
    "RunEmptyCheckpoint",
    "GetObjectsAllocated",
    "AddRemoveSystemWeakHolder",
    "DeletingDexCacheArrays",
    "Concurrent",
];

/// Returns whether a word can be the cause of a collection: `NativeAlloc`.
fn is_cause(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Returns a line without the words before the cause of its collection: a known one, otherwise the
/// last word in front of the collector, which is in lower case.
pub(super) fn without_prefix(line: &str) -> &str {
    let Some((head, _)) = line.split_once(" GC freed ") else {
        return line;
    };
    let mut at = 0;
    let words = head.split(' ').map(|word| {
        let start = at;
        at += word.len() + 1;
        (start, word)
    });
    let words: Vec<(usize, &str)> = words.collect();
    let known = words.iter().find(|(_, word)| CAUSES.contains(word));
    let cause = known.or_else(|| words.iter().rfind(|(_, word)| is_cause(word)));
    cause.map_or(line, |&(at, _)| &line[at..])
}

/// Parses `CAUSE COLLECTOR[ (sampled)] GC freed …`.
pub(super) fn collection(message: &str) -> Option<Logged> {
    let (head, body) = message.split_once(" GC freed ")?;
    let head = head.trim();
    let head = head.strip_suffix("(sampled)").map_or(head, str::trim_end);
    let (reason, collector) = head.split_once(' ').unwrap_or((head, ""));
    if !is_cause(reason) {
        return None;
    }
    let mut logged = Logged::begun(Runtime::Art, reason, collector.trim());
    let mut parts = body.split(", ").map(str::trim);
    freed(parts.next()?, &mut logged)?;
    for part in parts {
        segment(part, &mut logged);
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
fn segment(part: &str, logged: &mut Logged) -> Option<()> {
    if let Some(text) = part.strip_suffix(" LOS objects") {
        let (count, bytes) = counted(text)?;
        let (count, bytes) = (plain(count)?, size(bytes)?);
        logged.collection.freed_large = Some((count, bytes.bytes));
        logged.steps.large = bytes.step;
    } else if let Some(text) = part.strip_prefix("paused ") {
        times(text, logged)?;
    } else {
        let (live, total) = part.split_once('/')?;
        let (live, total) = (size(live)?, size(total)?);
        let (live_bytes, total_bytes) = (live.unsigned()?, total.unsigned()?);
        logged.collection.live = Some(live_bytes);
        logged.collection.total = Some(total_bytes);
        (logged.steps.live, logged.steps.total) = (live.step, total.step);
    }
    Some(())
}

/// Parses `D[,D] total D`. Without a pause, nothing precedes ` total`.
fn times(text: &str, logged: &mut Logged) -> Option<()> {
    let (pauses, total) = match text.strip_prefix("total ") {
        Some(total) => ("", total),
        None => text.split_once(" total ")?,
    };
    let total = total.split(' ').next()?;
    let pauses: Vec<u64> = pauses
        .split(',')
        .map(str::trim)
        .filter(|pause| !pause.is_empty())
        .map(duration)
        .collect::<Option<_>>()?;
    logged.collection.duration = Some(duration(total)?);
    logged.collection.pauses = pauses;
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
