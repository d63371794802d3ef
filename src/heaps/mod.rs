//! Heaps of an input: opens it, selects dumps, and provides the facts, rows, growth and leaks that
//! several commands show.

pub mod growth;
pub mod input;
pub mod java;
pub mod leaks;
pub mod moments;
pub mod pairs;
pub mod selector;
pub mod trace_findings;

/// Note about several inputs that are out of order.
const NOT_IN_ORDER: &str = "the inputs are not in the order of their times; pass the oldest first";
