//! Memory as the system tells of it: meminfo, mappings, and how their figures stand beside those of heaps.

pub mod meminfo;
pub mod reconcile;
pub mod smaps;
