//! The manifest's dumps of Java heaps, and the one list in which they stand beside those of
//! native heaps.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;

use super::{BoundLabel, Dump, DumpId, LabelledDump};

/// Every dump of a recording: one list in the file, told apart by `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dumps {
    /// Of native heaps, in order of time.
    pub native: Vec<Dump>,
    /// Of Java heaps, in order of time.
    pub java: Vec<JavaDump>,
}

/// One Java heap of one process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaDump {
    /// What it was made with.
    pub kind: JavaKind,
    /// Which Java heap of its process it is, from 1.
    pub number: u32,
    /// The label bound to it; the first of several.
    pub label: Option<BoundLabel>,
    /// Trace time (BOOTTIME), ns; absent for an HPROF.
    pub time_ns: Option<u64>,
    /// Wall time, where it is known.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// Process id.
    pub pid: u64,
    /// Process name; empty where it is not known.
    pub process: String,
    /// [`JAVA_HEAP`].
    pub heap: String,
    /// The pprof or the HPROF in the folder; absent where there is none (no objects).
    pub file: Option<String>,
    /// The pprof over the dominator tree, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dominators: Option<String>,
    /// What `am dumpheap -m` said of malloc, as a file in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malloc_info: Option<String>,
    /// Size and hash of an HPROF: it is the recording itself.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// Why it was dumped, where the dump says so: `OOME`.
    pub reason: Option<String>,
    /// Sums over its objects; absent where they were not counted.
    pub totals: Option<JavaTotals>,
    /// What is missing in it.
    pub flags: JavaFlags,
    /// Whether the dump ended and nothing of it is missing; otherwise its figures are lower
    /// bounds.
    pub complete: bool,
}

/// How Java allocations were recorded, and what that way leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaAllocations {
    /// `heapprofd` or `tracking`.
    pub by: String,
    /// The heap of heapprofd's dumps; empty where the runtime tracked them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heap: String,
    /// What is known of each: `stack`, `size`.
    pub tells: Vec<String>,
    /// What is not: `class`, `thread`, `free`, `history`.
    pub lacks: Vec<String>,
    /// What runtimes tracked, at each label and the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<TrackedDump>,
}

/// The allocations that one runtime knew of at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedDump {
    /// Which list of its process it is, from 1.
    pub number: u32,
    /// The label that they were fetched for; absent at the end.
    pub label: Option<String>,
    /// When they were fetched (BOOTTIME), ns.
    pub time_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Process name; empty where it is not known.
    pub process: String,
    /// The pprof in the folder; absent where there were none.
    pub file: Option<String>,
    /// The list as the runtime sent it, gzipped; absent where profiles were written into another
    /// folder than the recording's.
    pub list: Option<String>,
    /// Allocations.
    pub objects: u64,
    /// Their bytes.
    pub space: u64,
    /// Threads that made them.
    pub threads: u64,
    /// The runtime keeps no more: older ones are missing.
    pub full: bool,
}

impl JavaAllocations {
    /// What is to be said of a recording's dumps; `None` where none of them holds Java
    /// allocations.
    pub fn of(dumps: &[Dump]) -> Option<JavaAllocations> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let any = dumps
            .iter()
            .any(|dump| dump.heap == crate::config::JAVA_HEAP);
        any.then(|| JavaAllocations {
            by: "heapprofd".to_owned(),
            heap: crate::config::JAVA_HEAP.to_owned(),
            tells: words(&["stack", "size"]),
            lacks: words(&["class", "thread", "free"]),
            dumps: Vec::new(),
        })
    }

    /// What is to be said of allocations that runtimes tracked.
    pub fn tracked(dumps: Vec<TrackedDump>) -> JavaAllocations {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        JavaAllocations {
            by: "tracking".to_owned(),
            heap: String::new(),
            tells: words(&["stack", "size", "class", "thread", "line"]),
            lacks: words(&["free", "history"]),
            dumps,
        }
    }
}

/// The name of the heap of every [`JavaDump`].
pub const JAVA_HEAP: &str = "java";

/// What a Java heap was dumped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JavaKind {
    /// Perfetto's `android.java_hprof`, in the trace.
    #[serde(rename = "java_heap_graph")]
    HeapGraph,
    /// `am dumpheap`, a file of its own.
    #[serde(rename = "hprof")]
    Hprof,
}

/// A file as the device wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// Bytes.
    pub size: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Sums over the objects of a Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JavaTotals {
    /// Objects in the dump.
    pub objects: u64,
    /// Their shallow sizes, bytes.
    pub space: u64,
    /// Native bytes that they own.
    pub native_space: u64,
    /// The same of those that are reachable from a root: what the profile shows.
    pub reachable: JavaSums,
}

/// Sums over some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JavaSums {
    /// Objects.
    pub objects: u64,
    /// Shallow bytes.
    pub space: u64,
    /// Native bytes.
    pub native_space: u64,
}

/// What is missing in a dump of a Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JavaFlags {
    /// The dump breaks off: a buffer was full, or the process died over it.
    pub truncated: bool,
    /// Packets of it that never came.
    pub missing_packets: u64,
}

/// Which dump, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpKey<'a> {
    /// Which dump of its process and heap it is, from 1.
    pub number: u32,
    /// Process id.
    pub pid: u64,
    /// Process name.
    pub process: &'a str,
    /// Heap name.
    pub heap: &'a str,
    /// When heapprofd wrote it, BOOTTIME in ns.
    pub written_ns: Option<u64>,
    /// Its own time, BOOTTIME in ns.
    pub time_ns: Option<u64>,
}

impl DumpKey<'_> {
    /// The same, for as long as it takes.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.to_owned(),
            number: self.number,
        }
    }
}

impl JavaDump {
    /// What tells it from the others.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.clone(),
            number: self.number,
        }
    }
}

impl Dumps {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.native.is_empty() && self.java.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.native.len() + self.java.len()
    }

    /// What tells each of them from the others, in the order of the list.
    pub fn keys(&self) -> impl Iterator<Item = DumpKey<'_>> {
        let native = self.native.iter().map(|dump| DumpKey {
            number: dump.number,
            pid: dump.pid,
            process: &dump.process,
            heap: &dump.heap,
            written_ns: dump.written_ns,
            time_ns: dump.time_ns,
        });
        let java = self.java.iter().map(|dump| DumpKey {
            number: dump.number,
            pid: dump.pid,
            process: &dump.process,
            heap: &dump.heap,
            written_ns: None,
            time_ns: dump.time_ns,
        });
        native.chain(java)
    }

    /// Names the dump at this place of the list, unless it has a label. Gives the dump as the
    /// label's own entry lists it.
    pub fn bind(&mut self, at: usize, name: &str, lag_ms: u64) -> Option<LabelledDump> {
        let (dump, label) = match at.checked_sub(self.native.len()) {
            None => self.native.get_mut(at).map(|d| (d.id(), &mut d.label)),
            Some(at) => self.java.get_mut(at).map(|d| (d.id(), &mut d.label)),
        }?;
        label.get_or_insert_with(|| BoundLabel {
            name: name.to_owned(),
            lag_ms,
        });
        Some(LabelledDump { dump, lag_ms })
    }
}

impl From<Vec<Dump>> for Dumps {
    fn from(native: Vec<Dump>) -> Self {
        Dumps {
            native,
            java: Vec::new(),
        }
    }
}

/// An entry of the list in the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry<N, J> {
    // Tried first: no native dump has its kinds.
    Java(J),
    Native(N),
}

impl Serialize for Dumps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let native = self.native.iter().map(Entry::Native);
        let java = self.java.iter().map(Entry::<&Dump, &JavaDump>::Java);
        serializer.collect_seq(native.chain(java))
    }
}

impl<'de> Deserialize<'de> for Dumps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut dumps = Dumps::default();
        for entry in Vec::<Entry<Dump, JavaDump>>::deserialize(deserializer)? {
            match entry {
                Entry::Native(dump) => dumps.native.push(dump),
                Entry::Java(dump) => dumps.java.push(dump),
            }
        }
        Ok(dumps)
    }
}
