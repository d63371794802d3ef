//! The synthetic apps: the callsites, sizes and lifetimes of a process's allocations. Pure
//! functions of seed and time, so that the truth is known without running anything.

mod allocations;
mod code;
mod live;
mod site;
mod sources;
mod tracked;

pub(crate) use allocations::{Allocation, Due, TICK, Workload};
pub(crate) use live::{Blocks, Flow, LiveHeaps, rounded};
pub(crate) use site::{FrameDef, MappingDef};
pub use tracked::TrackedTruth;
pub(crate) use tracked::{Tracked, Trackers};
