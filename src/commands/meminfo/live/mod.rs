//! Live view of `meminfo --every`.

pub(super) mod args;
pub mod run;
pub mod view;
