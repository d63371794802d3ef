//! `convert --format`: files for other tools, and pages.

pub mod run;
pub mod view;
