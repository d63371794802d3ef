//! For how long collections were watched.

use serde::Serialize;

/// For how long collections were watched: what a rate is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// How long.
    pub ns: u64,
    /// What says so.
    pub by: ObservedBy,
}

/// What says for how long collections were watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// The log's first and last line, within the process's life.
    Log,
    /// The log was followed for so long.
    Followed,
    /// The recording's begin and end, within the process's life.
    Recording,
    /// Nothing but the first and the last collection.
    Collections,
}
