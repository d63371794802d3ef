//! The live view of `meminfo --every`.

mod args;
pub mod run;
pub mod view;
