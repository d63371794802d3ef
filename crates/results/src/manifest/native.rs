//! Native dumps with their totals and flags, and labels bound to dumps of either kind.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

pub use heaptap_model::profile::DumpFlags as Flags;
use heaptap_model::profile::{DumpKind, Figures, HeapDump};

/// One heap of one process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// Dump number within its process and heap, from 1.
    pub number: u32,
    /// Bound label; the first of several (`labels` has all).
    pub label: Option<BoundLabel>,
    /// Trace time (BOOTTIME) in ns; absent if no clock converts it.
    pub time_ns: Option<u64>,
    /// Wall time, if the trace relates its clocks to it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// Time at which the daemon wrote it, BOOTTIME in ns, used to bind labels; absent if not in the
    /// trace. `time_ns` is the time of the last event, which can be earlier.
    pub written_ns: Option<u64>,
    /// Process id.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// Name of the pprof in the directory; absent if there are no samples.
    pub file: Option<String>,
    /// Meaning of the totals: `cumulative`, `at-maximum`, `allocations-only`.
    pub kind: String,
    /// Sampling interval at the end, in bytes; 0 if not in the trace.
    pub sampling_interval_bytes: u64,
    /// Sums over all callsites.
    pub totals: Totals,
    /// Distinct callsites.
    pub callsites: u64,
    /// Samples taken since profiling began.
    pub heap_samples: u64,
    /// Stacks that could not be unwound to their end.
    pub unwinding_errors: u64,
    /// Flags reported by the daemon.
    pub flags: Flags,
    /// True if the dump is complete in the trace; otherwise its values are lower bounds.
    pub complete: bool,
}

/// A label bound to a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundLabel {
    pub name: String,
    /// Time from the request to the dump, in ms.
    pub lag_ms: u64,
}

/// A requested label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    pub name: String,
    /// Time of the request, BOOTTIME of the device in ns.
    pub requested_ns: u64,
    /// Bound dumps; empty if none came after the request.
    pub dumps: Vec<LabelledDump>,
}

/// Identity of a dump within its recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DumpId {
    /// Process id.
    pub pid: u64,
    /// Heap name.
    pub heap: String,
    /// Dump number within process and heap, from 1.
    pub number: u32,
}

/// A dump bound to a label. Several labels can share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledDump {
    #[serde(flatten)]
    pub dump: DumpId,
    /// Time from the request to the dump, in ms.
    pub lag_ms: u64,
}

/// Sums of a dump. Bytes are scaled up by the sampling; objects are numbers of sampled
/// allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Unreleased bytes; absent if the heap does not report frees.
    pub space: Option<i64>,
    /// Unreleased sampled allocations; absent if the heap does not report frees.
    pub objects: Option<i64>,
    /// Bytes allocated since profiling began.
    pub alloc_space: i64,
    /// Sampled allocations since profiling began.
    pub alloc_objects: i64,
}

impl Totals {
    /// Returns the totals that `kind` provides.
    pub fn new(figures: Figures, kind: DumpKind) -> Self {
        let knows_frees = kind != DumpKind::AllocationsOnly;
        Totals {
            space: knows_frees.then_some(figures.space),
            objects: knows_frees.then_some(figures.objects),
            alloc_space: figures.alloc_space,
            alloc_objects: figures.alloc_objects,
        }
    }
}

impl Label {
    /// Returns whether the label is bound to this dump.
    pub fn is_of(&self, dump: &DumpId) -> bool {
        self.dumps.iter().any(|bound| bound.dump == *dump)
    }
}

impl Dump {
    /// Returns the identity of the dump.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.clone(),
            number: self.number,
        }
    }

    /// Creates the entry of a dump, without label and wall time.
    pub fn new(number: u32, dump: &HeapDump, file: Option<String>) -> Self {
        Dump {
            number,
            label: None,
            time_ns: dump.time_ns,
            time: None,
            written_ns: dump.written_ns,
            pid: dump.pid,
            process: dump.process.clone(),
            heap: dump.heap.clone(),
            file,
            kind: dump.kind.name().to_owned(),
            sampling_interval_bytes: dump.sampling_interval_bytes,
            totals: Totals::new(dump.totals(), dump.kind),
            callsites: dump.samples.len() as u64,
            heap_samples: dump.heap_samples,
            unwinding_errors: dump.unwinding_errors,
            flags: dump.flags,
            complete: !dump.unfinished,
        }
    }
}
