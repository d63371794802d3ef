//! Native heaps to look at, whatever they were recorded as: opens a recording's folder, a trace
//! or a pprof, says what is in it, and gives the dumps that are meant as named stacks. Knows
//! nothing of what is done with them.
//!
//! Names are those that the input has, and those of mapping files and symbols that were given:
//! nobody who looks at a table waits for folders to be searched.

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
pub use error::LookError;
pub(crate) use native::MANY_UNNAMED;
pub use native::{ListedDump, NativeFile};
#[cfg(feature = "sql")]
pub(crate) use open::listed;
pub use open::{NativeSource, OpenedInput, native, open, source, source_of_stream};
pub use options::LookOptions;
pub use traces::LookTrace;
