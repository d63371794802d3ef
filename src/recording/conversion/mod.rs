//! Conversion of traces to profiles: one file and one manifest entry per dump.

pub mod allocations;
pub mod convert;
pub mod deobfuscate;
pub mod error;
pub mod java_profiles;
pub mod java_summary;
pub mod packet_output;
pub mod selection;
pub mod symbolize;
pub mod tracked;
