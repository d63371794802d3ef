//! Methods to trigger a dump in a running recording.

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
