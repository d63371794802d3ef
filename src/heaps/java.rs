//! Java heaps from any input: opens a trace, a recording directory or an HPROF, selects a dump,
//! applies R8 mappings to its classes, and computes paths and dominators on first use.

pub mod diff;
mod error;
pub mod facts;
pub(crate) mod heap;
pub(crate) mod open;
mod opened;
pub mod paths;

pub use error::JavaError;
pub use heap::{JavaHeap, ProgressReporter, of_losses};
pub use open::{DIRECTORY, JavaFile, JavaOptions, Listed, has_java, open, root_truncated};
pub(crate) use open::{lying_in, manifest_of};
pub use opened::{OpenedJava, ReadTrace};
