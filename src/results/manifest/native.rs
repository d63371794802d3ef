//! The dumps of native heaps, with their totals and flags, and the labels bound to dumps of
//! either kind.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

pub use crate::profile::DumpFlags as Flags;
use crate::profile::{DumpKind, Figures, HeapDump};

/// One heap of one process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// Which dump of its process and heap it is, from 1.
    pub number: u32,
    /// The label bound to it; the first of several (`labels` has them all).
    pub label: Option<BoundLabel>,
    /// Trace time (BOOTTIME), ns; absent where no clock converts it.
    pub time_ns: Option<u64>,
    /// Wall time, where the trace ties its clocks to it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// When the daemon wrote it, BOOTTIME in ns: what a label is bound by; absent where the
    /// trace does not say. `time_ns` is that of the last event in it, which may be earlier.
    pub written_ns: Option<u64>,
    /// Process id.
    pub pid: u64,
    /// Process name; empty where the trace has none.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// Name of the pprof in the folder; absent where it has none (no samples).
    pub file: Option<String>,
    /// What the totals mean: `cumulative`, `at-maximum`, `allocations-only`.
    pub kind: String,
    /// Sampling interval at the end, bytes; 0 where the trace does not say.
    pub sampling_interval_bytes: u64,
    /// Sums over all callsites.
    pub totals: Totals,
    /// Distinct callsites.
    pub callsites: u64,
    /// Samples taken since profiling began.
    pub heap_samples: u64,
    /// Stacks that could not be unwound to their end.
    pub unwinding_errors: u64,
    /// What the daemon reported.
    pub flags: Flags,
    /// Whether the dump ended in the trace; otherwise its figures are lower bounds.
    pub complete: bool,
}

/// A label bound to a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundLabel {
    /// The name.
    pub name: String,
    /// From the request to the dump, ms.
    pub lag_ms: u64,
}

/// A label that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The name.
    pub name: String,
    /// When, on the device's BOOTTIME clock, ns.
    pub requested_ns: u64,
    /// The dumps it is bound to; empty where none came after the request.
    pub dumps: Vec<LabelledDump>,
}

/// What tells a dump from the others of its recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DumpId {
    /// Process id.
    pub pid: u64,
    /// Heap name.
    pub heap: String,
    /// Which dump of the two, from 1.
    pub number: u32,
}

/// A dump that a label is bound to. Several labels may share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledDump {
    /// Which.
    #[serde(flatten)]
    pub dump: DumpId,
    /// From the request to the dump, ms.
    pub lag_ms: u64,
}

/// Sums of a dump. Bytes are scaled up by the sampling; objects are numbers of sampled
/// allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes held; absent where the heap knows no frees.
    pub space: Option<i64>,
    /// Sampled allocations held; absent where the heap knows no frees.
    pub objects: Option<i64>,
    /// Bytes allocated since profiling began.
    pub alloc_space: i64,
    /// Sampled allocations since profiling began.
    pub alloc_objects: i64,
}

impl Totals {
    /// The totals as far as `kind` knows them.
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
    /// Whether it is bound to this dump.
    pub fn is_of(&self, dump: &DumpId) -> bool {
        self.dumps.iter().any(|bound| bound.dump == *dump)
    }
}

impl Dump {
    /// What tells it from the others.
    pub fn id(&self) -> DumpId {
        DumpId {
            pid: self.pid,
            heap: self.heap.clone(),
            number: self.number,
        }
    }

    /// The entry of a dump; label and wall time are set by whoever knows them.
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
            kind: match dump.kind {
                DumpKind::Cumulative => "cumulative",
                DumpKind::AtMaximum => "at-maximum",
                DumpKind::AllocationsOnly => "allocations-only",
            }
            .to_owned(),
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
