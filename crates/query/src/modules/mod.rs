//! Modules of Perfetto's library about heaps, for `INCLUDE PERFETTO MODULE …`. Tables of Java heaps
//! belong to `java`; all others are here.
//!
//! | file | owns |
//! |---|---|
//! | `callstacks` | callstacks with separate rows for inlined functions, and their sums |
//! | `conversion` | functions of `time.conversion` |
//! | `graphs` | macros that walk over graphs |
//! | `library.sql` | macros, functions and views written in PerfettoSQL |

mod callstacks;
mod conversion;
mod graphs;

use std::sync::Arc;

use super::native::NativeHeaps;
use super::table::Catalog;

const LIBRARY: &str = include_str!("library.sql");

/// Modules without contents of their own.
const EMPTY: [&str; 3] = [
    "prelude.after_eof.memory",
    "android.memory.heap_graph.experimental_flamegraph",
    "android.memory.heap_graph.class_tree",
];

/// Adds the contents of modules, except for the tables of Java heaps.
pub fn add(catalog: &mut Catalog, native: &Arc<NativeHeaps>) {
    callstacks::add(catalog, native);
    conversion::add(catalog);
    catalog.library(LIBRARY, &graphs::WORKS);
    EMPTY.into_iter().for_each(|module| catalog.module(module));
}

#[cfg(test)]
mod tests;
