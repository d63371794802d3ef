//! One use case a file: plain options in, events and an outcome out. Orchestrates the stages;
//! never prints.

pub mod apps;
mod causes;
pub mod check;
pub mod choice;
pub mod convert;
mod coverage;
pub mod deduped;

pub mod deobfuscate;
pub mod device_libs;
pub mod devices;
pub mod doctor;
pub mod dump;
pub mod findings;
pub mod finish;
pub mod goal;
pub mod hprof;
pub mod java;
pub mod java_profiles;
pub mod labels;
pub mod leaks;
pub mod manifest;
pub mod maps;
pub mod names;
pub mod naming;
pub mod output;
pub mod packet_files;
pub mod plan;
pub mod record;
pub mod recorded;
pub mod report;
pub mod sessions;
pub mod summary;
pub mod symbolize;
pub mod trace_findings;
pub mod what;
