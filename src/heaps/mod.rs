//! Heaps of an input: opens it, selects dumps, and provides the facts, rows, growth and leaks that
//! several commands show.

pub mod growth;
pub mod input;
pub mod java;
pub mod leaks;
pub mod moments;
pub mod selector;
pub mod trace_findings;
