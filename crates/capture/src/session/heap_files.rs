//! Heap files: what `am dumpheap` has apps write, in place of a trace of perfetto. Which files
//! those are, and their names on the device.

use serde::{Deserialize, Serialize};

use super::id::SessionId;

/// Where the activity manager and the shell may both write.
pub(super) const FOLDER: &str = "/data/local/tmp";
/// The name that the script on the device has among processes.
pub(super) const SCRIPT_NAME: &str = "heaptap-dumpheap";

/// What the processes of a session are to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFiles {
    /// In the order in which they are written.
    pub files: Vec<HeapFile>,
    /// A file that does not grow for so long is given up, milliseconds.
    pub silence_ms: u64,
    /// `am` returns once the file is there (Android 10 on).
    pub am_waits: bool,
}

/// One file of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFile {
    /// What it holds.
    pub kind: HeapFileKind,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// Flags of `am dumpheap`, between blanks.
    pub flags: String,
    /// Where it is on the device.
    pub remote: String,
    /// Its name in the folder of results.
    pub name: String,
}

/// What a heap file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeapFileKind {
    /// The Java heap.
    Hprof,
    /// What malloc says of itself, XML.
    MallocInfo,
}

impl HeapFileKind {
    /// The end of a file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            HeapFileKind::Hprof => "hprof",
            HeapFileKind::MallocInfo => "malloc_info.xml",
        }
    }
}

/// The log of a session of heap files: its name holds the session's id.
pub fn log_path(id: &SessionId) -> String {
    format!("{FOLDER}/heaptap-{id}.dumps")
}

/// Where a process's file goes on the device.
pub fn file_path(id: &SessionId, pid: u32, kind: HeapFileKind) -> String {
    format!("{FOLDER}/heaptap-{id}.{pid}.{}", kind.suffix())
}
