//! Garbage collections as the runtimes log them: Dalvik from Android 2.2 to 4.4, ART since.
//! Lines of any format of logcat become events; what they mean together is said in `analysis`.
//!
//! | module | owns |
//! |---|---|
//! | `logcat` | lines of a log: time, process, thread, level, tag, message |
//! | `stamp` | their times, and one axis for those of a log |
//! | `event` | what a line may tell: a collection, a wait, an OutOfMemoryError … |
//! | `message` | which of these a message tells |
//! | `art`, `dalvik`, `oom` | the forms of each |
//! | `log` | the collections of a log, by process |
//! | `of_timeline` | those of a recording |
//! | `report` | what they come to, and what is wrong, as plain values |
//! | `observed` | for how long they were watched |
//! | `analysis`, `trend`, `diagnosis` | how that is worked out |
//! | `size` | sizes and durations as the runtimes print them |

mod analysis;
mod art;
mod dalvik;
mod diagnosis;
mod event;
mod log;
mod logcat;
mod message;
mod observed;
mod of_timeline;
mod oom;
mod report;
mod size;
mod stamp;
#[cfg(test)]
mod tests;
mod trend;

pub use analysis::{GcContext, analyze};
pub use diagnosis::{diagnose, growth, milliseconds, why_steady};
pub use event::{Blocked, Event, Logged, Runtime, is_whole};
pub use log::{GcLog, GcLogEvent, Name, ProcessLog, Timed};
pub use logcat::{Chatty, Format, LogLine, Row, Splitter, chatty, parse_line};
pub use message::{parse_event, parse_message};
pub use observed::{Observed, ObservedBy};
pub use of_timeline::{Recorded, of_timeline};
pub use oom::OutOfMemory;
pub use report::{
    Coverage, Diagnosis, Error, Evidence, Figures, Group, Growing, Growth, LimitFrom, Live,
    MinorEvents, ProcessReport, Severity,
};
pub use stamp::{Axis, Stamp};
