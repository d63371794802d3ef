//! What is read from a running phone beside a recording: samples of memory through one shell
//! loop, and the log, followed line by line. Turns answers into entries of
//! [`heaptap_model::timeline`]; what they mean is said elsewhere.
//!
//! | module | owns |
//! |---|---|
//! | `script` | the loop on the phone, and how its lines look |
//! | `lines` | whole lines out of a stream |
//! | `rounds` | what the loop's lines say: processes, restarts, figures, what it all costs |
//! | `clock` | the phone's wall clock against its BOOTTIME |
//! | `ours` | collections that heaptap itself causes |
//! | `log` | following the log of one process, each line once |
//! | `collections` | lines of the log as entries of the timeline |
//! | `follow` | the connection, its loss and return |
//!
//! One connection is kept for the loop, and one for the log of each process: a sample costs no
//! round trip.

mod clock;
mod collections;
mod follow;
mod lines;
mod log;
mod ours;
mod rounds;
mod script;

use std::time::Duration;

pub use follow::{End, observe};
pub use log::{LogEvent, RingLog, follow_lines, read_ring};
pub use ours::{OpenWindow, OurWindows};

use heaptap_model::timeline::{Entry, ObservationCost};

/// What is observed, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Processes by name: looked for again where they are gone.
    pub names: Vec<String>,
    /// Processes by pid, with the name each has.
    pub pids: Vec<(u32, String)>,
    /// Between two samples of resident memory.
    pub every: Duration,
    /// How the memory divides; not asked for where `None`.
    pub parts: Option<PartsOptions>,
    /// Memory of buffers and textures, at every third question for parts.
    pub graphics: bool,
    /// Collections, from the log.
    pub log: bool,
}

/// How often meminfo is asked, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartsOptions {
    /// Between two questions, whole seconds.
    pub every: Duration,
    /// The form for which the app collects its garbage and counts its heaps.
    pub allow_gc: bool,
}

/// Between two questions for meminfo where nobody says otherwise: each costs the phone a walk
/// through the process's page tables.
pub const PARTS_EVERY: Duration = Duration::from_secs(10);

/// What happens while a phone is observed.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something was seen.
    Seen(Entry),
    /// A line of the log of a process that is followed, as it came, without its end.
    Line(String),
    /// A round of samples is complete.
    Round {
        /// BOOTTIME of its begin, ns.
        boot_ns: u64,
        /// What all of it has cost so far.
        spent: ObservationCost,
    },
    /// The connection is gone.
    Lost {
        /// Why.
        why: String,
    },
    /// It is back.
    Back {
        /// How long it was away.
        after: Duration,
    },
}
