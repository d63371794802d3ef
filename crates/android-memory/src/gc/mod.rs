//! Garbage collections logged by the runtimes: Dalvik from Android 2.2 to 4.4, ART since then.
//! Lines of any logcat format become events; `analysis` interprets them.
//!
//! | module | owns |
//! |---|---|
//! | `logcat` | lines of a log: time, process, thread, level, tag, message |
//! | `studio` | Android Studio's export in JSON |
//! | `stamp` | times of lines, and one time axis per log |
//! | `event` | events in a line: a collection, a wait, an OutOfMemoryError … |
//! | `message` | detection of the event in a message |
//! | `art`, `dalvik`, `oom` | the text forms of each event |
//! | `log` | collections in a log, by process |
//! | `of_timeline` | collections in a recording |
//! | `report` | results and problems, as plain values |
//! | `observed` | observation time |
//! | `analysis`, `trend`, `diagnosis` | computation of the report |
//! | `size` | sizes and durations printed by the runtimes |

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
mod studio;
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
pub use of_timeline::{Recorded, of_timeline, printed_step};
pub use oom::OutOfMemory;
pub use report::{
    Coverage, Diagnosis, Error, Evidence, Figures, Group, Growing, Growth, LimitFrom, Live,
    MinorEvents, ProcessReport, Severity,
};
pub use stamp::{Axis, Stamp};
pub use studio::{is_export, push_export};
