//! Java heaps to look at, whatever they were dumped by: opens a trace, a recording's folder or
//! an HPROF, chooses the dump that is meant, gives its classes the names of mapping files, and
//! computes paths and dominators when they are first asked for.

pub mod diff;
mod error;
pub mod facts;
pub(crate) mod heap;
pub(crate) mod open;
mod opened;
pub mod paths;

pub use error::JavaError;
pub use heap::{JavaHeap, ProgressReporter, of_losses};
pub use open::{FOLDER, JavaFile, JavaOptions, Listed, open};
pub(crate) use open::{lying_in, manifest_of};
pub use opened::{OpenedJava, ReadTrace};
