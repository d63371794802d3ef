//! Events of an observation.

use std::time::Duration;

use heaptap_model::timeline::{Entry, ObservationCost};

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
