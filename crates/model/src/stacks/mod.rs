//! Sampled memory by call stacks with named functions, as a tree or a list: the source of tables, flamegraphs,
//! differences and exports, for any input. A native heap and a pprof of any tool are projected into
//! it once; the code that uses it does not depend on addresses, mappings or traces.
//!
//! Types:
//! * [`StackTable`]: texts, libraries, functions, frames, and the callsites;
//! * [`Measure`]: a column of numbers, its unit, and its view if it has one;
//! * [`Dump`]: one heap of one process at one time: its facts, and its numbers by callsite;
//! * [`StackProfile`]: a table and all dumps that share it.

pub mod allocators;
pub mod annotation;
pub mod calls;
mod dump;
pub mod fold;
mod join;
pub mod naming;
pub mod partition;
mod project;
mod table;

pub use dump::{
    Dump, Facts, Measure, StackProfile, TRACKED_HEAP, ThreadValues, Unit, Values, View,
    default_rank, last_of_each, sum,
};
pub use join::{JoinBy, Joined, join};
pub use project::{ProjectOptions, Projector, Unexpanded, project};
pub use table::{
    Frame, FrameId, Function, FunctionId, Kind, LOST_CALLSTACK, Library, LibraryId, NodeId,
    StackTable, TextId,
};
