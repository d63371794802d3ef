//! Flags that several commands take, one subject a file.

pub mod capture;
pub mod conflicts;
pub mod context;
pub mod focus_ignore;
pub mod globals;
pub mod heap;
pub mod iterations;
pub mod java;
pub mod limit;
pub mod moment;
pub mod names;
pub mod native;
pub mod no_report;
pub mod pattern;
pub mod sample_names;
pub mod session;
pub mod source;
pub mod stack;
pub mod target;
pub mod time;
pub mod typed;
#[cfg(feature = "virtual-phone")]
pub mod virtual_phone;
