//! What the log tells about the garbage collector, as plain values.

use serde::Serialize;

use super::oom::OutOfMemory;
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

/// Whether a collector goes over the whole heap: young and sticky ones leave what is old.
pub fn is_whole(collector: &str) -> bool {
    !collector
        .split_whitespace()
        .any(|word| matches!(word, "young" | "sticky"))
}
