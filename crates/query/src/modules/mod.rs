//! Modules of Perfetto's library about heaps, for `INCLUDE PERFETTO MODULE …`. Tables of Java heaps
//! belong to `java`; all others are here.
//!
//! | file | owns |
//! |---|---|
//! | `callstacks` | callstacks with separate rows for inlined functions, and their sums |
//! | `graphs` | macros that walk over graphs |
//! | `library` | macros and views written in SQL |

mod callstacks;
mod graphs;
mod library;

pub(crate) use library::add_of_trace;

use std::sync::Arc;

use super::native::NativeHeaps;
use super::table::Catalog;

/// Adds the contents of modules, except for the tables of Java heaps.
pub fn add(catalog: &mut Catalog, native: &Arc<NativeHeaps>) {
    callstacks::add(catalog, native);
    graphs::add(catalog);
    library::add(catalog);
}

#[cfg(test)]
mod tests;
