//! Dumps of a recording that runs: how one can be caused, and who finds them in the trace. The
//! caller brings the scanner: nothing here knows a trace format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How a dump can be caused in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotMethod {
    /// The shell is root, or may become it: heapprofd is signalled.
    Signal {
        /// By way of `su`.
        su: bool,
    },
    /// Dumps come by themselves; a label waits for the next one.
    Continuous {
        /// Their period in milliseconds.
        period_ms: u64,
        /// Whether heaptap chose to make them.
        #[serde(default)]
        armed: bool,
    },
    /// Not at all.
    Impossible,
}

/// One dump that is complete in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenDump {
    /// The process.
    pub pid: u32,
    /// The heap.
    pub heap: String,
    /// When it was written, BOOTTIME in ns.
    pub written_ns: u64,
}

/// Finds complete dumps in the bytes of a growing trace.
pub trait DumpScan: Send {
    /// Takes the next bytes.
    fn push(&mut self, bytes: &[u8]);
    /// The complete dumps so far.
    fn dumps(&self) -> &[SeenDump];
    /// What came is no sequence of packets: it did not begin at one's start.
    fn is_lost(&self) -> bool;
}

/// Makes a scanner for one snapshot.
pub type NewScan = Arc<dyn Fn() -> Box<dyn DumpScan> + Send + Sync>;
