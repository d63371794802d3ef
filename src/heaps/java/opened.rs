//! Java heaps of an input that was already opened for its native heaps, to avoid reading it twice.

use crate::names::r8_mappings::HeapMaps;
use heaptap_input::HprofInput;
use heaptap_results::findings::Finding;
use perfetto_heap::Trace;

/// An input of Java heaps, opened or not.
#[derive(Default)]
pub enum OpenedJava {
    /// Not opened yet.
    #[default]
    Unread,
    /// Traces; several in a bundle.
    Traces(Vec<ReadTrace>),
    /// HPROFs, at least one.
    Hprofs(Vec<HprofInput>),
}

impl std::fmt::Debug for OpenedJava {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OpenedJava::Unread => "Unread",
            OpenedJava::Traces(_) => "Traces",
            OpenedJava::Hprofs(_) => "Hprofs",
        })
    }
}

/// A trace whose packets were scanned.
pub struct ReadTrace {
    /// File name for messages.
    pub name: String,
    /// The trace with the locations of its dumps.
    pub trace: Trace,
    /// Names for them.
    pub heaps: HeapMaps,
    /// Damage of its file.
    pub damage: Option<String>,
    /// Findings about the R8 mappings.
    pub findings: Vec<Finding>,
}
