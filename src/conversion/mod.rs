//! From traces to profiles: one file a dump, and an entry of the manifest for each.

pub mod allocations;
pub mod convert;
pub mod error;
pub mod goal;
pub mod java_profiles;
pub mod java_summary;
pub mod selection;
pub mod symbolize;
pub mod tracked;
