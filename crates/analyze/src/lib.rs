//! What a heap graph tells people: histograms, trees by class, who holds what, leaks, waste,
//! differences. Takes graphs, gives plain tables; prints nothing.
//!
//! | file | owns |
//! |---|---|
//! | `fields` | fields of an object by the names of the source code |
//! | `label` | what tables call classes, packages, objects |
//! | `filter` | which classes are wanted, by regular expressions |
//! | `histogram` | sums by class, package, superclass, heap, loader, root |
//! | `largest` | the objects that retain most |
//! | `class_tree` | the tree of shortest paths or of dominators merged by class, as Perfetto has them |
//! | `aggregation` | sums by class as Perfetto has them |
//! | `tree` | the dominator tree merged by class |
//! | `paths` | how roots reach an object, by the names of fields |
//! | `repetition` | ways that repeat themselves, made short |
//! | `holders` | all paths to roots merged by class |
//! | `inspect` | one object in full |
//! | `lookup` | single fields of an object by name |
//! | `leaks` | objects that should be gone, and what holds them |
//! | `growth` | what grows between dumps of one process |
//! | `waste` | memory that holds what is already there, or nothing |
//! | `diff` | what changed between two dumps |
//! | `sampling` | the statistics of sampled native heaps |
//! | `native` | tables, trees, filters and differences of sampled native heaps |

pub mod aggregation;
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
