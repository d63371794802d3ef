//! Sampled native heaps as Perfetto's tables: `heap_profile`, `heap_profile_allocation`,
//! `stack_profile_callsite`, `_frame`, `_mapping`, `_symbol`.
//!
//! In the model each dump has figures since profiling began; Perfetto's tables have the changes
//! since the previous dump, with separate rows for allocations and frees. The differences are
//! computed as dumps arrive, and the dumps themselves are not kept.

mod callsites;
mod frames;
mod heaps;
mod profile;
mod tree;

use std::sync::Arc;

use super::processes::Processes;
use super::table::Catalog;

pub use heaps::{Delta, DumpName, NativeHeaps, NativeHeapsBuilder, time_of};
pub use tree::{CallsiteRow, Callsites};

/// Adds the tables of native heaps.
pub fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>, processes: &Arc<Processes>) {
    profile::add(catalog, heaps, processes);
    callsites::add(catalog, heaps);
    frames::add(catalog, heaps);
}
