//! Analysis of sampled native heaps ([`StackProfile`](heaptap_model::stacks::StackProfile)): tables
//! and trees of callsites, filters, differences. Returns plain rows and does not print.
//!
//! | file | owns |
//! |---|---|
//! | `filter` | filter rules for stacks and their frames |
//! | `visible_tree` | the tree of callsites that pass a filter, and sums over it |
//! | `listed` | sums over stacks that are a list and not a tree |
//! | `groups` | row keys: callsite, function, library, file, line, class, package |
//! | `table` | self and cumulative sums by group |
//! | `tree` | callsites as a tree from the root, or from the allocating method |
//! | `diff` | changes between two dumps, with a test against sampling error |
//! | `growth` | growth over a series of dumps |
//! | `sampled` | the sampling error of a dump's sums |
//! | `own` | classification of frames as app or platform code |
//! | `scope` | class and package from a function's name |

pub mod diff;
pub mod filter;
pub mod groups;
pub mod growth;
mod listed;
pub mod own;
pub mod sampled;
pub mod scope;
pub mod table;
pub mod tree;
pub mod visible_tree;

#[cfg(test)]
mod tests;
