//! What a message of the log says about the garbage collector.

use serde::Serialize;

use super::logcat::LogLine;
use super::oom::{self, OutOfMemory};
use super::size::{plain, size};
use super::{art, dalvik};
use heaptap_model::timeline::Collection;

/// The virtual machine that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Up to Android 4.4: logs every collection.
    Dalvik,
    /// Since Android 4.4: logs those that were slow, and those that were asked for.
    Art,
}

/// A collection as its line gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Who wrote it.
    pub runtime: Runtime,
    /// The collection itself.
    pub collection: Collection,
    /// How much of the heap is free afterwards, percent.
    pub free_percent: Option<u32>,
    /// Memory outside of the heap that counts against it, and how much of it there may be:
    /// pictures, up to Android 2.3.
    pub external: Option<(u64, u64)>,
    /// Its figures are those of a sample of collections: `(sampled)`.
    pub sampled: bool,
    /// What the units of its sizes hide.
    pub steps: Steps,
    /// Parts of the line that have no known form.
    pub unread: Vec<String>,
}

/// Sizes are cut off at a unit: each is at least what it says, and less than a step more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Of `freed_bytes`.
    pub freed: u64,
    /// Of `freed_large`.
    pub large: u64,
    /// Of `live`.
    pub live: u64,
    /// Of `total`.
    pub total: u64,
}

/// A thread that waited for a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// How long, ns.
    pub ns: u64,
    /// What it wanted a collection for.
    pub reason: Option<String>,
    /// Why the one ran that it waited for.
    pub on: Option<String>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A collection ended.
    Collection(Box<Logged>),
    /// A thread waited for one.
    Blocked(Blocked),
    /// There was no memory.
    OutOfMemory(Box<OutOfMemory>),
    /// The heap would have grown over its limit.
    Clamp {
        /// What it would have grown to, bytes.
        from: u64,
        /// What it may grow to, bytes.
        to: u64,
    },
    /// The heap grows because nothing in it fits an allocation.
    GrowHeap {
        /// Its size from now on, bytes.
        to: u64,
        /// What did not fit, bytes.
        wanted: Option<u64>,
    },
    /// Even what is softly referenced is given up, for an allocation.
    SoftReferences {
        /// What is allocated, bytes.
        wanted: Option<u64>,
    },
    /// A signal asked for a collection (SIGUSR1).
    Forced,
    /// A thread starts a collection, or waits for one, and stands still.
    Blocking {
        /// Why.
        reason: String,
        /// It waits for one that runs.
        waits: bool,
    },
    /// It speaks of collections in words that are not known.
    Other,
}

/// What a line of the log says about collections.
pub fn parse_event(line: &LogLine<'_>) -> Option<Event> {
    parse_message(line.tag, line.message)
}

/// What a message says about collections. The tag decides only whether words that are not
/// known are the runtime's.
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
    told(message).or_else(|| is_like(tag, message).then_some(Event::Other))
}

/// The lesser lines.
fn told(message: &str) -> Option<Event> {
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

/// Whether the words may be those of a collector.
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
