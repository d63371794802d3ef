//! Processes of a recording on Linux: traced, perfetto and the program. Owns their start order,
//! their signals and their end.

mod private;
mod program;
mod service;
mod signals;

pub use program::Program;
pub use service::Tracing;
pub use signals::Signals;
