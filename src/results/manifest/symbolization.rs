//! The manifest's account of names: how many frames carry one, which files gave them, and what
//! is missing.

use serde::{Deserialize, Serialize};

/// How many frames carry names, over all callsites of the recording.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Symbolization {
    /// Distinct frames with a name.
    pub frames_named: u64,
    /// Distinct frames without.
    pub frames_unnamed: u64,
    /// Distinct frames whose file and line are known.
    pub frames_with_lines: u64,
    /// Share (0 to 1) of the bytes whose allocating function has no name. Bytes are those of
    /// each heap's last dump.
    pub leaf_share_unnamed: f64,
    /// Share of the bytes in whose callstacks some frame has no name.
    pub share_unnamed: f64,
    /// The libraries whose frames have none; those that hide most bytes first.
    pub libraries_missing: Vec<MissingLibrary>,
    /// The libraries for which files were found.
    pub libraries_named: Vec<NamedLibrary>,
    /// Libraries in which callstacks end after a single frame.
    pub libraries_without_unwind: Vec<CutLibrary>,
    /// The mapping files that Java frames were named by.
    pub mappings: Vec<MappingFile>,
}

/// A mapping file of R8 or ProGuard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingFile {
    /// The file.
    pub path: String,
    /// The apps it was used for; none where it was used for all.
    pub packages: Vec<String>,
    /// `given`, `variable` or `project`.
    pub origin: String,
    /// The build variant, of one that the project has; else empty.
    pub variant: String,
    /// Classes in it.
    pub classes: u64,
    /// Distinct frames that it knows.
    pub frames: u64,
    /// Classes of Java heaps that it knows.
    #[serde(default)]
    pub heap_classes: u64,
}

impl MappingFile {
    /// Whether a frame or a class was named by it.
    pub fn named_any(&self) -> bool {
        self.frames > 0 || self.heap_classes > 0
    }
}

/// A library some of whose frames have no name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingLibrary {
    /// Path on the device; empty where the mapping has none.
    pub path: String,
    /// Build ID, hex; empty where the file has none.
    pub build_id: String,
    /// Distinct frames without a name.
    pub frames: u64,
    /// Share of the bytes whose allocating function it hides.
    pub leaf_share: f64,
    /// Share of the bytes in whose callstacks it hides some frame.
    pub share: f64,
    /// Where its symbols were looked for in vain.
    pub looked_in: Vec<LookedIn>,
    /// Of the files that may not be used, the one that comes closest.
    pub nearest: Option<NearestFile>,
}

/// A place where symbols were looked for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedIn {
    /// A stable word: `symbols`, `binary-path`, `project` …
    pub place: String,
    /// The file, or the root of the place where there was none.
    pub path: String,
    /// A stable word: `not-there`, `other-build-id`, `unusable` …
    pub why: String,
    /// The same for people.
    pub detail: String,
}

/// A file of the same name that is another build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearestFile {
    /// As in [`LookedIn`].
    pub place: String,
    /// The file.
    pub path: String,
    /// Its build ID, hex; empty where it has none.
    pub build_id: String,
}

/// A library for which files with symbols were found.
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

/// A file with symbols of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolFile {
    /// As in [`LookedIn`].
    pub place: String,
    /// The file.
    pub path: String,
    /// `dwarf`, `lines`, `symtab` or `dynsym`.
    pub knowledge: String,
    /// Whether its build ID is the library's; otherwise it has none and its name alone fits.
    pub verified: bool,
    /// Addresses that it named.
    pub addresses: u64,
    /// What was wrong with parts of it, or missing beside it.
    pub notes: Vec<String>,
}

/// A library in which callstacks end after a single frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutLibrary {
    /// Path on the device.
    pub path: String,
    /// Build ID, hex.
    pub build_id: String,
    /// Callstacks that consist of one frame of it, apart from the allocator's.
    pub callsites: u64,
    /// Share of the bytes in them.
    pub share: f64,
}
