//! Observation time of collections.

use serde::Serialize;

/// Observation time of collections, used for rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// Duration, ns.
    pub ns: u64,
    /// Source of the duration.
    pub by: ObservedBy,
}

/// Source of an observation time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// First and last line of the log, within the life of the process.
    Log,
    /// The time for which the log was followed.
    Followed,
    /// Start and end of the recording, within the life of the process.
    Recording,
    /// Only the first and the last collection.
    Collections,
}
