//! Java heaps as tables. Owns what those tables need of an input; which tables there are is in
//! the files below.

use std::sync::Arc;

use super::processes::Processes;
use super::table::{Catalog, TableError};
use crate::heap_graph::HeapGraph;

/// What is known of a Java heap before it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JavaHeapFacts {
    /// Process id; `None` where the dump does not say (HPROF).
    pub pid: Option<u64>,
    /// Process name; empty where not known.
    pub process: String,
    /// Trace time in ns.
    pub time_ns: u64,
    /// Why it was dumped, such as `OOME`.
    pub reason: Option<String>,
}

/// The Java heaps of an input, each read when a table first needs it.
pub trait JavaHeaps: Send + Sync {
    /// All, in order of their time.
    fn list(&self) -> &[JavaHeapFacts];

    /// Reads one of [`JavaHeaps::list`].
    ///
    /// # Errors
    /// In words for people, where it can't be read.
    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError>;
}

/// Adds the tables of Java heaps.
pub fn add(_catalog: &mut Catalog, _heaps: &Arc<dyn JavaHeaps>, _processes: &Arc<Processes>) {}
