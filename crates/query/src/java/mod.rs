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
use super::table::Catalog;
pub use dumps::add_callsites;
pub(super) use heaps::Heaps;
pub use heaps::{JavaHeapFacts, JavaHeaps, LazyHeaps};

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
