//! Perfetto's tables of Java heaps, read from the columns of [`HeapGraph`]s without copying.
//! Reachability, dominators and trees by class are computed when a query first needs them.
//!
//! | file | owns |
//! |---|---|
//! | `heaps` | dumps, row numbers of objects, classes and references, computed results |
//! | `dumps` | `heap_graph`, and OutOfMemoryErrors |
//! | `classes` | `heap_graph_class` |
//! | `objects` | `heap_graph_object` |
//! | `references` | `heap_graph_reference` |
//! | `fields` | `heap_graph_object_data`, `heap_graph_primitive`, `heaptap_field`: values |
//! | `field_names` | names of fields: which there are, and which one can be meant |
//! | `trees` | dominators and shortest paths, by object and merged by class |
//! | `sums` | sums by class and by dump |
//! | `bitmaps` | `heap_graph_bitmaps` |
//! | `own` | heaptap's own tables |

mod bitmaps;
mod classes;
mod dumps;
mod field_names;
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
pub use dumps::add_callsites;
pub(super) use heaps::Heaps;
pub use heaps::LazyHeaps;
use heaptap_model::heap_graph::{Dominators, HeapGraph, OutOfMemory};

/// Facts about a Java heap that are known before it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JavaHeapFacts {
    /// Process ID; `None` if the dump does not have one (HPROF).
    pub pid: Option<u64>,
    /// Process name; empty if unknown.
    pub process: String,
    /// Trace time in ns.
    pub time_ns: u64,
    /// Reason for the dump, such as `OOME`.
    pub reason: Option<String>,
    /// The OutOfMemoryError that caused the dump.
    pub out_of_memory: Option<OutOfMemory>,
    /// The dump is known to be of an OutOfMemoryError.
    pub is_out_of_memory: bool,
}

/// Java heaps of an input, each read when a table first needs it.
pub trait JavaHeaps: Send + Sync {
    /// Returns all heaps in order of time.
    fn list(&self) -> &[JavaHeapFacts];

    /// Reads the heap at a position in [`JavaHeaps::list`].
    ///
    /// # Errors
    /// Returns an error with a message for the user if the heap cannot be read.
    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError>;

    /// Returns the dominators of a heap over the references of [`Follow::default`], if they are
    /// computed already.
    ///
    /// [`Follow::default`]: heaptap_model::heap_graph::Follow
    fn dominators(&self, _at: usize) -> Option<Arc<Dominators>> {
        None
    }
}

/// Adds the tables of Java heaps and returns the heaps for other tables.
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
