//! Modules of Perfetto's library that are about heaps: `INCLUDE PERFETTO MODULE …` and what it
//! brings. Tables that Java heaps have belong to `java`; here are the rest.
//!
//! | file | owns |
//! |---|---|
//! | `callstacks` | callstacks with inlined functions as callstacks of their own, and their sums |
//! | `graphs` | macros that walk over graphs |
//! | `library` | macros and views that are written in SQL |

mod callstacks;
mod graphs;
mod library;

use std::sync::Arc;

use super::native::NativeHeaps;
use super::table::Catalog;

/// Adds what modules bring, beside the tables of Java heaps.
pub fn add(catalog: &mut Catalog, native: &Arc<NativeHeaps>) {
    callstacks::add(catalog, native);
    graphs::add(catalog);
    library::add(catalog);
}

#[cfg(test)]
mod tests;
