//! What several commands show alike.

pub mod blocking;
pub mod java;
pub mod java_summary;
pub mod missing;
pub mod native;
pub mod progress;
pub mod summary;
