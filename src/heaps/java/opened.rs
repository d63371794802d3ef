//! What an input holds of Java heaps, as far as whoever looked for native heaps in it has opened
//! it already: nothing is read twice.

use crate::import::HprofInput;
use crate::naming::r8_mappings::HeapMaps;
use crate::results::findings::Finding;
use crate::trace::Trace;

/// An input of Java heaps, opened or not.
#[derive(Default)]
pub enum OpenedJava {
    /// Nobody has looked into it.
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

/// A trace whose packets were walked once.
pub struct ReadTrace {
    /// Its file name, for people.
    pub name: String,
    /// Where its dumps are.
    pub trace: Trace,
    /// Names for them.
    pub heaps: HeapMaps,
    /// What is wrong with its file.
    pub damage: Option<String>,
    /// What the user should know of the mapping files.
    pub findings: Vec<Finding>,
}
