//! Facts about a dump as a whole, and its losses.

use serde::Deserialize;

/// Facts about a dump as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DumpFacts {
    pub source: DumpSource,
    /// Process ID, if known.
    pub pid: Option<u64>,
    /// Process name; empty if unknown.
    pub process: String,
    /// Trace time of a heap graph, ns; milliseconds since 1970 times a million for an HPROF.
    pub time_ns: u64,
    /// Bytes that the runtime reports as allocated (`heap_bytes_allocated`), if it does.
    pub heap_bytes_allocated: Option<u64>,
    /// Reason for the dump, such as `OOME`, if there is one.
    pub reason: Option<String>,
    /// Model of the shallow sizes.
    pub sizes: SizeModel,
    /// Number of the dump in its HPROF, from 1, and of dumps in it; 0 for other sources.
    pub number: u32,
    pub among: u32,
    pub losses: Losses,
    /// Device of the dump, as far as its trace describes it.
    pub device: Device,
}

/// Device of a dump; `None` for unknown facts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    /// Android API level.
    pub sdk: Option<i64>,
    /// Manufacturer, as in `Build.MANUFACTURER`.
    pub manufacturer: Option<String>,
    /// ID of the build, as in `Build.ID`.
    pub build: Option<String>,
}

/// Size of a `NativeAllocationRegistry` whose creator did not state one: Android then assumes 98
/// bytes of malloc, whatever the size.
pub const UNKNOWN_NATIVE_SIZE: i64 = 99;

/// Source of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DumpSource {
    /// Packets of `android.java_hprof`.
    #[default]
    HeapGraph,
    /// An HPROF file.
    Hprof {
        /// Version text of the header, such as `JAVA PROFILE 1.0.3`.
        version: String,
        /// Bytes of an ID, 4 or 8.
        id_bytes: u8,
        /// The heap is of Android, also if a converter gave the file the version of Java SE.
        android: bool,
    },
}

/// Model of shallow sizes; `--sizes` selects one for an HPROF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeModel {
    /// Sizes stated in the dump: `self_size` of a heap graph; instance sizes of an HPROF's classes,
    /// arrays by their elements.
    #[default]
    Dump,
    /// Sizes with headers and alignment, by Eclipse MAT's rules.
    Mat,
    /// Sizes with headers and alignment of ART.
    Art,
    /// Sizes that HotSpot itself counts: those of `jmap -histo`.
    Hotspot,
}

/// Missing and damaged parts of a dump; all zero and empty for an intact dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// The dump breaks off, or packets of it are missing, so objects are missing.
    pub truncated: bool,
    /// [`super::HeapGraph::root_unreachable`] made roots in place of missing ones.
    pub rooted_unreachable: bool,
    /// Packets known to be missing.
    pub missing_packets: u64,
    /// References to objects that were never dumped.
    pub dangling_references: u64,
    /// Roots that are not an object of the dump.
    pub dangling_roots: u64,
    /// Objects that were dumped twice; the last one is used.
    pub repeated_objects: u64,
    /// Objects whose class is not in the dump.
    pub unknown_classes: u64,
    /// Superclasses that are not in the dump although classes extend them; at most 32.
    pub missing_supers: Vec<String>,
    /// Objects that have fields of those, which cannot be read.
    pub partial_objects: u64,
    /// The contents of arrays of primitives were cut out, so what follows them cannot be read.
    pub contents_cut: bool,
    /// Bytes behind the end of the dump, which are no part of it.
    pub bytes_behind: u64,
    /// They are another dump.
    pub another_behind: bool,
    /// It breaks off at zero bytes, which the file has to its end.
    pub zeros_at_end: bool,
    /// Objects or records that could not be read.
    pub malformed: u64,
    /// References whose field the dump does not name, although it names those of others.
    pub unnamed_references: u64,
    /// Descriptions with their positions; at most 32.
    pub damage: Vec<String>,
}

impl Losses {
    /// Returns whether objects are missing. Others that they referenced can look unreachable.
    pub fn lacks_objects(&self) -> bool {
        self.truncated || self.missing_packets > 0 || self.malformed > 0 || self.partial_objects > 0
    }

    /// Adds a description of damage unless the list is full.
    pub fn note(&mut self, what: impl Into<String>) {
        const MAX_COUNT: usize = 32;
        if self.damage.len() < MAX_COUNT {
            self.damage.push(what.into());
        }
    }
}
