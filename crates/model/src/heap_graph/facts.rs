//! What is known of a dump as a whole, and what is missing in it.

/// What is known of a dump as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DumpFacts {
    /// What it was read from.
    pub source: DumpSource,
    /// Process id, where known.
    pub pid: Option<u64>,
    /// Process name; empty where not known.
    pub process: String,
    /// Trace time of a heap graph, ns; milliseconds since 1970 times a million for an HPROF.
    pub time_ns: u64,
    /// Bytes that the runtime says are allocated (`heap_bytes_allocated`), where it does.
    pub heap_bytes_allocated: Option<u64>,
    /// Why it was dumped, where it was for something, such as `OOME`.
    pub reason: Option<String>,
    /// How shallow sizes came about.
    pub sizes: SizeModel,
    /// What is missing or wrong.
    pub losses: Losses,
}

/// What a graph was read from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DumpSource {
    /// Packets of `android.java_hprof`.
    #[default]
    HeapGraph,
    /// An HPROF file.
    Hprof {
        /// Version as its header has it, such as `JAVA PROFILE 1.0.3`.
        version: String,
        /// Bytes of an id, 4 or 8.
        id_bytes: u8,
    },
}

/// How shallow sizes come about; `--sizes` selects among those for an HPROF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SizeModel {
    /// What the dump says: `self_size` of a heap graph; instance sizes of an HPROF's classes,
    /// arrays by their elements.
    #[default]
    Dump,
    /// With headers and alignment, by Eclipse MAT's rules.
    Mat,
    /// With headers and alignment of ART.
    Art,
    /// What HotSpot itself counts: the sizes of `jmap -histo`.
    Hotspot,
}

/// What is missing in a dump or wrong with it; all zero and empty where nothing is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// The dump breaks off, or packets of it are missing: objects are too.
    pub truncated: bool,
    /// Packets known to be missing.
    pub missing_packets: u64,
    /// References to objects that were never dumped.
    pub dangling_references: u64,
    /// Roots that are no object of the dump.
    pub dangling_roots: u64,
    /// Objects that were dumped twice; the last one counts.
    pub repeated_objects: u64,
    /// Objects whose class is not in the dump.
    pub unknown_classes: u64,
    /// Objects or records that could not be read.
    pub malformed: u64,
    /// References whose field the dump does not name, though it names those of others.
    pub unnamed_references: u64,
    /// In words, each with its place; at most 32.
    pub damage: Vec<String>,
}

impl Losses {
    /// Adds a piece of damage in words, while there is room.
    pub fn note(&mut self, what: impl Into<String>) {
        const MOST: usize = 32;
        if self.damage.len() < MOST {
            self.damage.push(what.into());
        }
    }
}
