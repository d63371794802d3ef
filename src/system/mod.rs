//! Memory as reported by the system: meminfo, memory mappings, and their reconciliation with heaps.

pub mod meminfo;
pub mod reconcile;
pub mod smaps;
