//! Perfetto's tables of Java heaps, over [`HeapGraph`]s: read from their columns, not copied.
//! What has to be computed (reachability, dominators, trees by class) is, when a query first
//! needs it.
//!
//! | file | owns |
//! |---|---|
//! | `heaps` | the dumps, how their objects, classes and references are numbered as rows, and what is computed of them |
//! | `dumps` | `heap_graph`, and OutOfMemoryErrors |
//! | `classes` | `heap_graph_class` |
//! | `objects` | `heap_graph_object` |
//! | `references` | `heap_graph_reference` |
//! | `fields` | `heap_graph_object_data`, `heap_graph_primitive`: what HPROFs hold of values |
//! | `trees` | dominators and shortest paths, object by object and merged by class |
//! | `sums` | sums by class and by dump |
//! | `bitmaps` | `heap_graph_bitmaps` |
//! | `own` | tables of our own |

mod bitmaps;
mod classes;
mod dumps;
mod fields;
mod heaps;
mod objects;
mod own;
mod references;
mod sums;
mod trees;

use std::sync::Arc;

use super::processes::Processes;
use super::table::{Catalog, TableError};
pub(super) use heaps::Heaps;
pub use heaps::LazyHeaps;
use heaptap_model::heap_graph::{HeapGraph, OutOfMemory};

/// What is known of a Java heap before it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JavaHeapFacts {
    /// Process id; `None` where the dump does not say (HPROF).
    pub pid: Option<u64>,
    /// Process name; empty where not known.
    pub process: String,
    /// Trace time in ns.
    pub time_ns: u64,
    /// Why it was dumped, such as `OOME`.
    pub reason: Option<String>,
    /// The OutOfMemoryError that it was dumped at.
    pub out_of_memory: Option<OutOfMemory>,
}

/// The Java heaps of an input, each read when a table first needs it.
pub trait JavaHeaps: Send + Sync {
    /// All, in order of their time.
    fn list(&self) -> &[JavaHeapFacts];

    /// Reads one of [`JavaHeaps::list`].
    ///
    /// # Errors
    /// In words for people, where it can't be read.
    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError>;
}

/// Adds the tables of Java heaps, and hands out the heaps for others.
pub fn add(
    catalog: &mut Catalog,
    heaps: &Arc<dyn JavaHeaps>,
    processes: &Arc<Processes>,
) -> LazyHeaps {
    let heaps = LazyHeaps::new(heaps, processes);
    classes::add(catalog, &heaps);
    dumps::add(catalog, &heaps);
    objects::add(catalog, &heaps);
    references::add(catalog, &heaps);
    fields::add(catalog, &heaps);
    trees::add(catalog, &heaps);
    sums::add(catalog, &heaps, processes);
    bitmaps::add(catalog, &heaps);
    own::add(catalog, &heaps);
    heaps
}

#[cfg(test)]
mod tests;
