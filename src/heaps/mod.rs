//! Memory of an input or a device. Heaps: opens them, selects dumps, and provides the facts, rows,
//! growth and leaks that several commands show. Also what the system reports: meminfo and
//! mappings.
//!
//! | module | contents |
//! |---|---|
//! | `input`, `moments`, `selector`, `pairs` | native heaps of an input; which dumps are meant |
//! | `growth` | growth of native heaps over dumps |
//! | `java`, `leaks` | Java heaps, their differences, leaks and waste |
//! | `trace_findings` | losses and damage of a trace, with remedies |
//! | `meminfo`, `smaps`, `reconcile` | what the system reports, and its difference from heaps |

pub mod growth;
pub mod input;
pub mod java;
pub mod leaks;
pub mod meminfo;
pub mod moments;
pub mod pairs;
pub mod reconcile;
pub mod selector;
pub mod smaps;
pub mod trace_findings;

/// Note about several inputs that are out of order.
const NOT_IN_ORDER: &str = "the inputs are not in the order of their times; pass the oldest first";

/// Returns the help of an error about something that does not exist: a suggestion, and what is there.
fn available(near: Option<&str>, there: &str) -> String {
    match near {
        Some(near) => format!("{near} Available: {there}"),
        None => format!("available: {there}"),
    }
}
