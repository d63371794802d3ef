//! Views shared by several commands.

pub mod blocking;
pub mod browser;
pub mod eligibility;
pub mod java;
pub mod java_summary;
pub mod lookup;
pub mod mappings;
pub mod meminfo;
pub mod missing;
pub mod native;
pub mod page;
pub(crate) mod paths;
pub mod progress;
pub mod recordings;
pub(crate) mod single_file;
pub mod sites;
pub(crate) mod start;
pub mod summary;
pub mod symbolized;
