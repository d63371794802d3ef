//! Symbolization in the manifest: symbolized frames, symbol files, and missing symbols.

use serde::{Deserialize, Serialize};

/// Number of symbolized frames, over all callsites of the recording.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Symbolization {
    /// Distinct frames with a name.
    pub frames_named: u64,
    /// Distinct frames without.
    pub frames_unnamed: u64,
    /// Distinct frames with known file and line.
    pub frames_with_lines: u64,
    /// Share (0 to 1) of the bytes whose allocating function has no name, in the last dump of each
    /// heap.
    pub leaf_share_unnamed: f64,
    /// Share of the bytes whose callstacks contain a frame without a name.
    pub share_unnamed: f64,
    /// Libraries with unnamed frames, in descending order of affected bytes.
    pub libraries_missing: Vec<MissingLibrary>,
    /// Libraries for which symbol files were found.
    pub libraries_named: Vec<NamedLibrary>,
    /// Libraries in which callstacks end after a single frame.
    pub libraries_without_unwind: Vec<CutLibrary>,
    /// R8 mappings that deobfuscated Java frames.
    pub mappings: Vec<MappingFile>,
}

/// A mapping file of R8 or ProGuard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingFile {
    pub path: String,
    /// Apps that use the file; empty if all do.
    pub packages: Vec<String>,
    /// `given`, `variable` or `project`.
    pub origin: String,
    /// Build variant, for a file found in the project; otherwise empty.
    pub variant: String,
    pub classes: u64,
    /// Distinct frames that it contains.
    pub frames: u64,
    /// Classes of Java heaps that it contains.
    #[serde(default)]
    pub heap_classes: u64,
}

impl MappingFile {
    /// Returns whether the file named any frame or class.
    pub fn named_any(&self) -> bool {
        self.frames > 0 || self.heap_classes > 0
    }
}

/// A library with unnamed frames.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingLibrary {
    /// Path on the device; empty if unknown.
    pub path: String,
    /// Build ID, hex; empty if unknown.
    pub build_id: String,
    /// Distinct frames without a name.
    pub frames: u64,
    /// Share of the bytes whose allocating function is unnamed in this library.
    pub leaf_share: f64,
    /// Share of the bytes with unnamed frames of this library in their callstacks.
    pub share: f64,
    /// Places without matching symbols.
    pub searched: Vec<LookedIn>,
    /// Closest match among the rejected files.
    pub nearest: Option<NearestFile>,
}

/// A place without matching symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedIn {
    /// Stable identifier: `symbols`, `binary-path`, `project` …
    pub place: String,
    /// The file, or the root of the place if there was none.
    pub path: String,
    /// Stable identifier: `not-there`, `other-build-id`, `unusable` …
    pub why: String,
    /// Readable form of `why`.
    pub detail: String,
}

/// A file of the same name from another build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearestFile {
    /// As in [`LookedIn`].
    pub place: String,
    pub path: String,
    /// Build ID, hex; empty if unknown.
    pub build_id: String,
}

/// A library for which symbol files were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedLibrary {
    /// Path on the device.
    pub path: String,
    /// Build ID, hex.
    pub build_id: String,
    /// Distinct addresses that were looked up.
    pub addresses: u64,
    /// The files, best first.
    pub files: Vec<SymbolFile>,
}

/// A symbol file of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolFile {
    /// As in [`LookedIn`].
    pub place: String,
    pub path: String,
    /// `dwarf`, `lines`, `symtab` or `dynsym`.
    #[serde(rename = "debug_info")]
    pub knowledge: String,
    /// True if its build ID is that of the library; otherwise it has none and only its name
    /// matches.
    pub verified: bool,
    /// Addresses that it named.
    pub addresses: u64,
    /// Problems of the file or its supplementary files.
    pub notes: Vec<String>,
}

/// A library in which callstacks end after one frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutLibrary {
    /// Path on the device.
    pub path: String,
    /// Build ID, hex.
    pub build_id: String,
    /// Callstacks that consist of one frame of the library, not counting allocator frames.
    pub callsites: u64,
    /// Share of the bytes in them.
    pub share: f64,
}
