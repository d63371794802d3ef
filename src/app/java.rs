//! Java heaps to look at, whatever they were dumped by: opens a trace, a recording's folder or
//! an HPROF, chooses the dump that is meant, gives its classes the names of mapping files, and
//! computes paths and dominators when they are first asked for.

mod heap;
mod input;

pub use heap::{JavaHeap, Steps};
pub use input::{JavaInput, Which};
