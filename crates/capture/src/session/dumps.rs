//! Dumps of a running recording: methods to trigger one, and the scanner that finds them in the
//! trace. The caller provides the scanner: this module does not depend on a trace format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Method to trigger a dump in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotMethod {
    /// Signal to heapprofd: the shell is root or can become root.
    Signal {
        /// `su` is needed.
        su: bool,
    },
    /// Periodic dumps; a label waits for the next one.
    Continuous {
        /// Period in milliseconds.
        period_ms: u64,
        /// Heaptap added them by itself.
        #[serde(default)]
        armed: bool,
    },
    /// Dumps cannot be triggered.
    Impossible,
}

/// A complete dump in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenDump {
    pub pid: u32,
    pub heap: String,
    /// Time of writing, BOOTTIME in ns.
    pub written_ns: u64,
    /// Unreleased bytes of a native heap.
    pub unreleased_bytes: u64,
}

/// Scanner for complete dumps in the bytes of a growing trace.
pub trait DumpScan: Send {
    /// Adds the next bytes.
    fn push(&mut self, bytes: &[u8]);
    /// Returns the complete dumps so far.
    fn dumps(&self) -> &[SeenDump];
    /// Returns whether the bytes are not a sequence of packets, because they did not begin at one.
    fn is_lost(&self) -> bool;
}

/// Factory of scanners, one per snapshot.
pub type NewScan = Arc<dyn Fn() -> Box<dyn DumpScan> + Send + Sync>;
