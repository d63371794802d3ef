//! Options of an observation.

use std::time::Duration;

/// Options of an observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Process names; searched again if a process is gone.
    pub names: Vec<String>,
    /// Processes by PID, with the name of each.
    pub pids: Vec<(u32, String)>,
    /// Interval between two samples of resident memory.
    pub every: Duration,
    /// Options for the parts of memory; `None` does not query them.
    pub parts: Option<PartsOptions>,
    /// Query memory of buffers and textures, with every third query for parts.
    pub graphics: bool,
    /// Report garbage collections from the log.
    pub log: bool,
}

/// Interval and form of meminfo queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartsOptions {
    /// Interval between two queries, whole seconds.
    pub every: Duration,
    /// Use the form that makes the app collect its garbage and count its heaps.
    pub allow_gc: bool,
}

/// Default interval of meminfo queries: each makes the device walk through the page tables of
/// the process.
pub const PARTS_EVERY: Duration = Duration::from_secs(10);
