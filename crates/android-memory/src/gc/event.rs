//! Events about the garbage collector in a log, as plain values.

use serde::Serialize;

use super::oom::OutOfMemory;
use heaptap_model::timeline::{Collection, Source};

/// Virtual machine that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Up to Android 4.4: logs every collection.
    Dalvik,
    /// Since Android 4.4: logs only slow and requested collections.
    Art,
}

/// A collection as printed in its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub runtime: Runtime,
    pub collection: Collection,
    /// Rounding units of the sizes.
    pub steps: Steps,
}

impl Logged {
    /// Creates a collection without figures.
    pub(super) fn begun(runtime: Runtime, reason: &str, collector: &str) -> Logged {
        Logged {
            runtime,
            collection: Collection {
                source: Some(Source::Log),
                reason: reason.to_owned(),
                collector: collector.to_owned(),
                ..Collection::default()
            },
            steps: Steps::default(),
        }
    }
}

/// Rounding units. Each size is rounded down, so the real value is less than one unit larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Unit of `freed_bytes`.
    pub freed: u64,
    /// Unit of `freed_large`.
    pub large: u64,
    /// Unit of `live`.
    pub live: u64,
    /// Unit of `total`.
    pub total: u64,
}

/// Wait of a thread for a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Duration, ns.
    pub ns: u64,
    /// Reason for which the thread needed a collection.
    pub reason: Option<String>,
    /// Reason of the collection for which it waited.
    pub on: Option<String>,
}

/// Event in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A collection ended.
    Collection(Box<Logged>),
    /// A thread waited for a collection.
    Blocked(Blocked),
    /// An allocation failed.
    OutOfMemory(Box<OutOfMemory>),
    /// The heap would have exceeded its limit.
    Clamp {
        /// Size to which it would have grown, bytes.
        from: u64,
        /// Size to which it can grow, bytes.
        to: u64,
    },
    /// The heap grows because an allocation does not fit.
    GrowHeap {
        /// New size, bytes.
        to: u64,
        /// Size of the allocation, bytes.
        wanted: Option<u64>,
    },
    /// Softly referenced objects are collected for an allocation.
    SoftReferences {
        /// Size of the allocation, bytes.
        wanted: Option<u64>,
    },
    /// A signal (SIGUSR1) requested a collection.
    Forced,
    /// A thread starts a collection or waits for one, and is blocked.
    Blocking {
        reason: String,
        /// True if it waits for a running collection.
        waits: bool,
    },
    /// A message about collections in an unknown form.
    Other,
}

/// Returns whether a collector processes the whole heap. Young and sticky collectors skip old
/// objects.
pub fn is_whole(collector: &str) -> bool {
    !collector
        .split_whitespace()
        .any(|word| matches!(word, "young" | "sticky"))
}
