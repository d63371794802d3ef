//! Native heaps from any input: opens a recording directory, a trace or a pprof, lists its
//! contents, and returns the selected dumps as symbolized stacks. Independent of the analysis.
//!
//! Names come from the input and from R8 mappings and symbols on the command line. Directories are
//! not searched, so that table commands start quickly.

mod choice;
mod error;
pub mod facts;
mod native;
mod open;
mod options;
mod pprofs;
pub mod rows;
mod traces;

pub use choice::DumpScope;
pub use error::InputError;
pub(crate) use native::MANY_UNNAMED;
pub use native::{DumpList, ListedDump, NativeFile};
#[cfg(feature = "sql")]
pub(crate) use open::listed;
pub use open::{NativeSource, OpenedInput, native, open, source, source_of_stream};
pub use options::LookOptions;
pub use traces::LookTrace;
