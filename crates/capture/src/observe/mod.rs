//! Observation of a running device during a recording: memory samples through one shell
//! loop, and the log, followed line by line. Converts answers into entries of
//! [`heaptap_model::timeline`]; does not interpret them.
//!
//! | module | owns |
//! |---|---|
//! | `options`, `event` | the options of an observation, and its events |
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
mod event;
mod follow;
mod log;
mod options;
mod own_collections;
mod rounds;
mod script;

pub use event::Event;
pub use follow::{End, observe};
pub use log::{LogEvent, RingLog, follow_lines, read_ring};
pub use options::{Options, PARTS_EVERY, PartsOptions};
pub use own_collections::{OpenWindow, OurWindows};
