//! The commands, one folder each.

pub mod apps;
pub mod check;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod deobfuscate;
pub mod devices;
pub mod diff;
pub mod doctor;
pub mod dump;
pub mod gc;
pub mod hprof;
pub mod leaks;
pub mod meminfo;
pub mod open;
pub mod paths;
pub mod provoke;
pub mod query;
pub mod reconcile;
pub mod record;
pub mod report;
pub mod sessions;
pub mod smaps;
pub mod symbolize;
pub mod top;
pub mod virtual_phone;
