//! Answers about a Java heap, for the page of `explore` and for the pages that have answers in their file.

mod api;
mod compare;
mod heap;
#[cfg(feature = "sql")]
mod sql;
#[cfg(not(feature = "sql"))]
#[path = "no_sql.rs"]
mod sql;
mod store;

pub use api::{ServerFacts, answer, check_generation};
pub use heap::{ExploreOptions, ExploredHeap, Progress, ReadOutcome};
pub use store::pack;
