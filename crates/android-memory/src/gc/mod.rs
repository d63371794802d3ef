//! Garbage collections as the runtimes log them: Dalvik from Android 2.2 to 4.4, ART since.
//! Lines of any format of logcat become events; what they mean together is said in `analysis`.
//!
//! | module | owns |
//! |---|---|
//! | `logcat` | lines of a log: time, process, thread, level, tag, message |
//! | `stamp` | their times, and one axis for those of a log |
//! | `message` | what a message says: a collection, a wait, an OutOfMemoryError … |
//! | `art`, `dalvik`, `oom` | the forms of each |
//! | `log` | the collections of a log, by process |
//! | `of_timeline` | those of a recording |
//! | `analysis`, `trend`, `diagnosis` | what they come to, and what is wrong |
//! | `size` | sizes and durations as the runtimes print them |

mod analysis;
mod art;
mod dalvik;
mod diagnosis;
mod log;
mod logcat;
mod message;
mod of_timeline;
mod oom;
mod size;
mod stamp;
#[cfg(test)]
mod tests;
mod trend;

pub use analysis::{
    Coverage, Error, Figures, GcContext, Group, LimitFrom, Live, MinorEvents, Observed, ObservedBy,
    ProcessReport, analyze, is_whole,
};
pub use diagnosis::{
    Diagnosis, Evidence, Growing, Growth, Severity, diagnose, growth, milliseconds, why_steady,
};
pub use log::{GcLog, GcLogEvent, Name, ProcessLog, Timed};
pub use logcat::{Chatty, Format, LogLine, Row, Splitter, chatty, parse_line};
pub use message::{Blocked, Event, Logged, Runtime, parse_event, parse_message};
pub use of_timeline::{Recorded, of_timeline};
pub use oom::OutOfMemory;
pub use stamp::{Axis, Stamp};
