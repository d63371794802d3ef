//! Heap files: dumps that apps write by `am dumpheap` instead of a trace of perfetto. Owns their
//! kinds and their names on the device.

use serde::{Deserialize, Serialize};

use super::id::SessionId;

/// Directory that both the activity manager and the shell can write.
pub(super) const DIRECTORY: &str = "/data/local/tmp";
/// Process name of the script on the device.
pub(super) const SCRIPT_NAME: &str = "heaptap-dumpheap";

/// Heap files that the processes of a session write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFiles {
    /// Files in the order in which they are written.
    pub files: Vec<HeapFile>,
    /// Maximum time without growth before a file is given up, milliseconds.
    pub silence_ms: u64,
}

/// One file of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFile {
    /// Content.
    pub kind: HeapFileKind,
    pub pid: u32,
    /// Process name.
    pub process: String,
    /// Flags of `am dumpheap`, separated by blanks.
    pub flags: String,
    /// Path on the device.
    pub remote: String,
    /// Name in the output directory.
    pub name: String,
}

/// Content of a heap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeapFileKind {
    /// The Java heap.
    Hprof,
    /// Output of `malloc_info`, XML.
    MallocInfo,
}

impl HeapFileKind {
    /// Returns the suffix of the file name.
    pub fn suffix(self) -> &'static str {
        match self {
            HeapFileKind::Hprof => "hprof",
            HeapFileKind::MallocInfo => "malloc_info.xml",
        }
    }
}

/// Returns the path of the log of a heap file session: it contains the session ID.
pub fn log_path(id: &SessionId) -> String {
    format!("{DIRECTORY}/heaptap-{id}.dumps")
}

/// Returns the path of a process's heap file on the device.
pub fn file_path(id: &SessionId, pid: u32, kind: HeapFileKind) -> String {
    format!("{DIRECTORY}/heaptap-{id}.{pid}.{}", kind.suffix())
}
