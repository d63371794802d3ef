//! Garbage collections of processes, from saved logs, the log of a device, or a recording.
//!
//! | module | owns |
//! |---|---|
//! | `files` | logs in any encoding, and recordings |
//! | `bugreport` | the log inside a bug report, and the other facts there |
//! | `phone` | the log of a process on the device |
//! | `now` | a requested collection |
//! | `stretch` | the time between two labels |
//! | `report` | the collections of all processes, and their selection |
//! | `error` | errors |

mod bugreport;
mod error;
mod files;
mod now;
mod phone;
mod report;
mod stretch;

pub use self::files::{Input, read};
pub use self::now::{Collected, GcTrigger, Measured, collect_now};
pub use self::phone::{Followed, Target, find, follow, read_ring};
pub use self::report::{GcReport, GcSource, NO_SUCH_PROCESS, shown_name};
pub use self::stretch::Stretch;
