//! Java heap dumps in the manifest, and the list they share with native dumps.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;

use super::{BoundLabel, Dump, DumpId, LabelledDump};

/// All dumps of a recording: one list in the file, distinguished by `kind`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dumps {
    /// Native dumps, in chronological order.
    pub native: Vec<Dump>,
    /// Java dumps, in chronological order.
    pub java: Vec<JavaDump>,
}

/// One Java heap of one process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaDump {
    /// Dump method.
    pub kind: JavaKind,
    /// Dump number within the process, from 1.
    pub number: u32,
    /// Bound label; the first of several.
    pub label: Option<BoundLabel>,
    /// Trace time (BOOTTIME), ns; absent for an HPROF.
    pub time_ns: Option<u64>,
    /// Wall time, if known.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// Process id.
    pub pid: u64,
    /// Process name; empty if unknown.
    pub process: String,
    /// [`JAVA_HEAP`].
    pub heap: String,
    /// The pprof or HPROF in the directory; absent if there are no objects.
    pub file: Option<String>,
    /// The pprof of the dominator tree, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dominators: Option<String>,
    /// The malloc output of `am dumpheap -m`, as a file in the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malloc_info: Option<String>,
    /// Size and hash of an HPROF: it is the recording itself.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// Reason recorded in the dump: `OOME`.
    pub reason: Option<String>,
    /// Sums over its objects; absent if they were not counted.
    pub totals: Option<JavaTotals>,
    /// Missing parts.
    pub flags: JavaFlags,
    /// True if the dump is complete; otherwise its values are lower bounds.
    pub complete: bool,
}

impl JavaDump {
    /// Returns whether it has a heap, not only the malloc output of a dump that failed.
    pub fn has_heap(&self) -> bool {
        self.kind == JavaKind::HeapGraph || self.file.is_some()
    }
}

/// Source of Java allocations, and its limitations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaAllocations {
    /// `heapprofd` or `tracking`.
    pub by: String,
    /// Heap of heapprofd's dumps; empty if the runtime tracked the allocations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heap: String,
    /// Known properties of each allocation: `stack`, `size`.
    #[serde(rename = "known")]
    pub tells: Vec<String>,
    /// Unknown properties: `class`, `thread`, `free`, `history`.
    #[serde(rename = "unknown")]
    pub lacks: Vec<String>,
    /// Allocations tracked by runtimes, at each label and at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<TrackedDump>,
}

/// The allocations that one runtime had recorded at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedDump {
    /// List number within the process, from 1.
    pub number: u32,
    /// Label; absent at the end.
    pub label: Option<String>,
    /// Time of fetching, BOOTTIME in ns.
    pub time_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Process name; empty if unknown.
    pub process: String,
    /// The pprof in the directory; absent if there were no allocations.
    pub file: Option<String>,
    /// The list as the runtime sent it, gzipped; absent if profiles were written outside the
    /// recording directory.
    pub list: Option<String>,
    /// Allocations.
    pub objects: u64,
    /// Their bytes.
    pub space: u64,
    /// Threads that made them.
    pub threads: u64,
    /// The list is full, so older allocations are missing.
    pub full: bool,
}

impl JavaAllocations {
    /// Returns the source of the Java allocations of `dumps`; `None` if there are none.
    pub fn from_dumps(dumps: &[Dump]) -> Option<JavaAllocations> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let any = dumps
            .iter()
            .any(|dump| dump.heap == heaptap_model::profile::ART_HEAP);
        any.then(|| JavaAllocations {
            by: "heapprofd".to_owned(),
            heap: heaptap_model::profile::ART_HEAP.to_owned(),
            tells: words(&["stack", "size"]),
            lacks: words(&["class", "thread", "free"]),
            dumps: Vec::new(),
        })
    }

    /// Describes allocations that runtimes tracked.
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

/// Heap name of every [`JavaDump`].
pub const JAVA_HEAP: &str = "java";

/// Dump method of a Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JavaKind {
    /// Perfetto's `android.java_hprof`, in the trace.
    #[serde(rename = "java_heap_graph")]
    HeapGraph,
    /// `am dumpheap`, in a separate file.
    #[serde(rename = "hprof")]
    Hprof,
}

/// A file as written by the device.
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
    /// The same for objects reachable from a GC root, which the profile shows.
    pub reachable: JavaSums,
}

/// Sums over some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JavaSums {
    pub objects: u64,
    /// Shallow bytes.
    pub space: u64,
    /// Native bytes.
    pub native_space: u64,
}

/// Missing parts of a Java heap dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JavaFlags {
    /// The dump is truncated: a buffer was full, or the process died during the dump.
    pub truncated: bool,
    pub missing_packets: u64,
}

/// Identity and times of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpKey<'a> {
    /// Dump number within its process and heap, from 1.
    pub number: u32,
    /// Process id.
    pub pid: u64,
    /// Process name.
    pub process: &'a str,
    /// Heap name.
    pub heap: &'a str,
    /// Time at which heapprofd wrote it, BOOTTIME in ns.
    pub written_ns: Option<u64>,
    /// Time of the dump itself, BOOTTIME in ns.
    pub time_ns: Option<u64>,
}

impl DumpKey<'_> {
    /// Returns an owned copy.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.to_owned(),
            number: self.number,
        }
    }
}

impl JavaDump {
    /// Returns the identity of the dump.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.clone(),
            number: self.number,
        }
    }
}

impl Dumps {
    /// Returns the identities of all dumps, in list order.
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

    /// Sets the label of the dump at this index, unless it has one. Returns the dump as listed in
    /// the label's own entry.
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
