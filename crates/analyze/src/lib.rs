//! Heap analysis: from the heap model to plain tables. The crate does not read files and does not
//! print. The input is a [`HeapGraph`](heaptap_model::heap_graph::HeapGraph) for a Java heap and a
//! [`StackProfile`](heaptap_model::stacks::StackProfile) for sampled native heaps.
//!
//! # Java heaps
//!
//! | module | owns |
//! |---|---|
//! | [`histogram`] | sums by class, package, superclass, heap, loader, root |
//! | [`largest`] | the objects with the largest retained size |
//! | [`tree`] | the dominator tree merged by class |
//! | [`class_tree`] | trees of shortest paths or dominators merged by class, as in Perfetto |
//! | [`aggregation`] | sums by class, as in Perfetto |
//! | [`paths`] | paths from roots to an object, with the names of fields |
//! | [`holders`] | all paths to roots merged by class |
//! | [`inspect`] | texts and values of objects |
//! | [`leaks`] | objects whose lifecycle has ended, and the references that keep them alive |
//! | [`growth`] | growth between dumps of one process |
//! | [`waste`] | equal strings and arrays, empty collections, boxed numbers |
//! | [`bitmaps`] | sizes and pixels of bitmaps |
//! | [`diff`] | changes between two dumps |
//! | [`filter`] | selection of classes by regular expressions |
//! | [`fields`], [`label`], [`repetition`] | names of fields, classes and objects; folding of repeated paths |
//! | `lookup` | single fields of an object by name |
//!
//! # Native heaps
//!
//! | module | owns |
//! |---|---|
//! | [`native`] | tables, trees, filters, differences and growth by callsite |
//! | [`sampling`] | the sampling error: confidence intervals, tests, verdicts |
//!
//! heapprofd records allocations below the sampling interval at random, in proportion to their
//! size, so the bytes of a callsite are an estimate. [`sampling`] computes its 95% interval.
//!
//! # Example
//!
//! Two stacks and a table by function. A function's own bytes are those of stacks that end in it:
//!
//! ```
//! use heaptap_analyze::native::{filter::Filter, groups::{Groups, RowKey}, visible_tree::VisibleTree};
//! use heaptap_analyze::native::table::{Key, Table};
//! use heaptap_model::stacks::{NodeId, StackTable, Values};
//!
//! let mut stacks = StackTable::default();
//! let (main, load) = (stacks.bare_frame("main"), stacks.bare_frame("load"));
//! let main = stacks.child(NodeId::ROOT, main);
//! let load = stacks.child(main, load);
//! let values = Values { nodes: vec![main, load], columns: vec![vec![100, 4096]] };
//!
//! let shown = VisibleTree::new(&stacks, &Filter::default(), &[&values]);
//! let groups = Groups::new(&stacks, RowKey::Function);
//! let table = Table::new(&shown, &groups, &values);
//! let rows: Vec<_> = table.ranked(0, |row| row.own[0]).into_iter().map(|at| {
//!     let row = table.row(at);
//!     let Key::Group(group) = row.key else { panic!("a table by function") };
//!     (groups.name(group).into_owned(), row.own[0], row.cumulative[0])
//! }).collect();
//! assert_eq!(rows, [("load".to_owned(), 4096, 4096), ("main".to_owned(), 100, 4196)]);
//! ```
//!
//! The feature `dsl` adds heaps written as text, for tests.

pub mod aggregation;
pub mod bitmaps;
pub mod class_tree;
pub mod diff;
pub mod fields;
pub mod filter;
pub mod growth;
pub mod histogram;
pub mod holders;
pub mod inspect;
pub mod label;
pub mod largest;
pub mod leaks;
mod lookup;
pub mod native;
pub mod paths;
pub mod repetition;
pub mod sampling;
pub mod tree;
pub mod waste;

#[cfg(any(test, feature = "dsl"))]
pub mod dsl;
#[cfg(test)]
mod tests;
