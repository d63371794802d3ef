//! The live view of `meminfo --every`.

pub mod run;
pub mod view;
