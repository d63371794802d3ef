//! Observation of a running device during a recording: memory samples through one shell
//! loop, and the log, followed line by line. Converts answers into entries of
//! [`heaptap_model::timeline`]; does not interpret them.
//!
//! | module | owns |
//! |---|---|
//! | `script` | the loop on the device, and the format of its lines |
//! | `rounds` | interpretation of the loop's lines: processes, restarts, figures, cost |
//! | `clock` | the device's wall clock relative to its BOOTTIME |
//! | `own_collections` | garbage collections that heaptap itself causes |
//! | `log` | following the log of one process, each line once |
//! | `collections` | log lines as entries of the timeline |
//! | `follow` | the connection, its loss and return |
//!
//! One connection is kept for the loop, and one for the log of each process, so a sample does not
//! need a round trip.

mod clock;
mod collections;
mod follow;
mod log;
mod own_collections;
mod rounds;
mod script;

use std::time::Duration;

pub use follow::{End, observe};
pub use log::{LogEvent, RingLog, follow_lines, read_ring};
pub use own_collections::{OpenWindow, OurWindows};

use heaptap_model::timeline::{Entry, ObservationCost};

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

/// Event of an observation.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Seen(Entry),
    /// A log line of a followed process, unchanged, without its line end.
    Line(String),
    /// A round of samples is complete.
    Round {
        /// BOOTTIME of its start, ns.
        boot_ns: u64,
        /// Total cost so far.
        spent: ObservationCost,
    },
    /// The connection is lost.
    Lost {
        why: String,
    },
    /// The connection is back.
    Back {
        /// Duration of the interruption.
        after: Duration,
    },
}
