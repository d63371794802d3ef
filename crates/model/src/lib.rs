//! What was measured on a phone, as plain data: native heaps, Java heaps, callsites.

pub mod bytes;
pub mod counter;
pub mod error;
pub mod folder;
pub mod heap_graph;
pub mod names;
pub mod profile;
pub mod smaps;
pub mod stacks;
pub mod timeline;
pub mod units;
pub mod untrusted;
