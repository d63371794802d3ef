//! Detection of events about the garbage collector in log messages.

use super::event::Event;
use super::logcat::LogLine;
use super::oom;
use super::size::{plain, size};
use super::{art, dalvik};

/// Parses the event in a line of the log.
pub fn parse_event(line: &LogLine<'_>) -> Option<Event> {
    parse_message(line.tag, line.message)
}

/// Parses the event in a message. The tag is used only to decide whether unknown words come from
/// the runtime.
pub fn parse_message(tag: Option<&str>, message: &str) -> Option<Event> {
    let message = message.trim();
    if let Some(logged) = dalvik::collection(message).or_else(|| art::collection(message)) {
        return Some(Event::Collection(Box::new(logged)));
    }
    if let Some(blocked) = art::blocked(message).or_else(|| dalvik::blocked(message)) {
        return Some(Event::Blocked(blocked));
    }
    if let Some(error) = oom::parse(message) {
        return Some(Event::OutOfMemory(Box::new(error)));
    }
    minor_event(message).or_else(|| is_like(tag, message).then_some(Event::Other))
}

/// Parses a minor event.
fn minor_event(message: &str) -> Option<Event> {
    let bytes = |text: &str| size(text)?.unsigned();
    if let Some(rest) = message.strip_prefix("Clamp target GC heap from ") {
        let (from, to) = rest.split_once(" to ")?;
        return Some(Event::Clamp {
            from: bytes(from)?,
            to: bytes(to)?,
        });
    }
    if let Some(rest) = message.strip_prefix("Grow heap (frag case) to ") {
        let (to, wanted) = rest.split_once(" for ").unwrap_or((rest, ""));
        return Some(Event::GrowHeap {
            to: bytes(to)?,
            wanted: wanted.strip_suffix("-byte allocation").and_then(plain),
        });
    }
    if let Some(rest) = message.strip_prefix("Forcing collection of SoftReferences for ") {
        let wanted = rest.strip_suffix("-byte allocation").and_then(plain);
        let wanted = wanted.or_else(|| bytes(rest.strip_suffix(" allocation")?));
        return Some(Event::SoftReferences { wanted });
    }
    if message.starts_with("SIGUSR1 forcing GC") {
        return Some(Event::Forced);
    }
    for (start, waits) in [
        ("Starting a blocking GC ", false),
        ("Waiting for a blocking GC ", true),
    ] {
        if let Some(reason) = message.strip_prefix(start) {
            return Some(Event::Blocking {
                reason: reason.to_owned(),
                waits,
            });
        }
    }
    None
}

/// Returns whether the words can come from a collector.
fn is_like(tag: Option<&str>, message: &str) -> bool {
    let runtime = tag.is_some_and(|tag| {
        matches!(tag, "art" | "zygote" | "zygote64") || tag.starts_with("dalvikvm")
    });
    let word = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|w| w == "GC" || w.starts_with("GC_") || w.contains("WaitForGc"))
    };
    message.contains("GC freed") || runtime && word(message)
}
