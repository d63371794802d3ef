//! What a sampled native heap tells people, over [`StackProfile`](heaptap_model::stacks::StackProfile):
//! tables and trees of callsites, filters, differences. Takes tables and numbers, gives plain
//! rows; prints nothing.
//!
//! | file | owns |
//! |---|---|
//! | `filter` | which stacks count and which of their frames are shown |
//! | `shown` | the tree of callsites that a filter leaves, and sums over it |
//! | `groups` | what a row stands for: callsite, function, library, file, line, class, package |
//! | `table` | self and cumulative sums by group |
//! | `tree` | callsites as a tree from the root, or from the method that allocates |
//! | `diff` | what changed between two dumps, and whether sampling explains it |
//! | `growth` | what grows over a series of dumps |
//! | `sampled` | the error of a dump's sums |
//! | `own` | whose code a frame is: the app's own or the platform's |
//! | `scope` | the class and the package that a function's name tells of |

pub mod diff;
pub mod filter;
pub mod groups;
pub mod growth;
pub mod own;
pub mod sampled;
pub mod scope;
pub mod shown;
pub mod table;
pub mod tree;

#[cfg(test)]
mod tests;
