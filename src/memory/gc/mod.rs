//! Garbage collections as the runtimes log them: Dalvik from Android 2.2 to 4.4, ART since.
//! Lines of any format of logcat become events; what they mean together is said in `analysis`.
//!
//! | module | owns |
//! |---|---|
//! | `logcat` | lines of a log: time, process, thread, level, tag, message |
//! | `stamp` | their times, and one axis for those of a log |
//! | `message` | what a message says: a collection, a wait, an OutOfMemoryError … |
//! | `art`, `dalvik`, `oom` | the forms of each |
//! | `size` | sizes and durations as the runtimes print them |

mod art;
mod dalvik;
mod logcat;
mod message;
mod oom;
mod size;
mod stamp;
#[cfg(test)]
mod tests;

pub use logcat::{Chatty, Format, LogLine, Row, Splitter, chatty, parse_line};
pub use message::{Blocked, Event, Logged, Runtime, parse_event, parse_message};
pub use oom::OutOfMemory;
pub use stamp::{Axis, Stamp};
