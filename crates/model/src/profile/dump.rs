//! One heap of one process at one time.

use super::tables::CallsiteId;
use heaptap_base::suggest::nearest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name for the heap of dumps before Android 12, which do not name it.
pub const UNNAMED_HEAP: &str = "unknown";
/// Heap of malloc and new.
pub const MALLOC_HEAP: &str = "libc.malloc";
/// Heap of Java allocations, which ART reports to heapprofd since Android 12.
pub const ART_HEAP: &str = "com.android.art";
/// Heaps that most processes have.
pub const COMMON_HEAPS: [&str; 2] = [MALLOC_HEAP, ART_HEAP];

/// Returns the common heap that a misspelled or shortened name might mean, such as `libc.malloc` for
/// `malloc`.
pub fn meant_heap(name: &str) -> Option<&'static str> {
    let has_part = |known: &&str| known.split('.').any(|part| part == name);
    let meant = COMMON_HEAPS.into_iter().find(has_part);
    let meant = meant.or_else(|| nearest(name, COMMON_HEAPS))?;
    (meant != name).then_some(meant)
}

/// Returns the heap that the name of a dump stands for: before Android 12, only malloc's can be
/// recorded. Later, a dump that was rejected has no name.
pub fn known_heap(name: &str, flags: DumpFlags) -> &str {
    match name {
        UNNAMED_HEAP if !flags.rejected_concurrent => MALLOC_HEAP,
        name => name,
    }
}

/// Returns whether `wanted` names the heap of a dump.
pub fn is_heap(wanted: &str, name: &str, flags: DumpFlags) -> bool {
    wanted == name || wanted == known_heap(name, flags)
}

/// Figures of one callsite since profiling began. Bytes are already scaled up for the sampling;
/// counts are numbers of *sampled* allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes allocated since profiling began.
    pub alloc_space: i64,
    /// Sampled allocations since profiling began.
    pub alloc_objects: i64,
    /// Bytes allocated and not yet freed.
    pub space: i64,
    /// Sampled allocations not yet freed.
    pub objects: i64,
}

impl Figures {
    /// Adds with saturation: a hostile or overflowing trace must not wrap.
    pub fn add(&mut self, other: &Figures) {
        self.alloc_space = self.alloc_space.saturating_add(other.alloc_space);
        self.alloc_objects = self.alloc_objects.saturating_add(other.alloc_objects);
        self.space = self.space.saturating_add(other.space);
        self.objects = self.objects.saturating_add(other.objects);
    }
}

/// Meaning of the figures of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DumpKind {
    /// Cumulative allocations and unreleased memory.
    #[default]
    Cumulative,
    /// `dump_at_max`: the state when the heap was largest; frees are unknown.
    AtMaximum,
    /// `com.android.art`: allocations only, frees are unknown.
    AllocationsOnly,
    /// Objects of a Java heap in a tree from its GC roots, in a pprof that heaptap
    /// wrote. They are not sampled.
    JavaHeap,
    /// Difference of two dumps in a pprof; its values can be negative.
    Difference,
}

impl DumpKind {
    /// Returns the name in documents and tables, as it is serialized.
    pub fn name(self) -> &'static str {
        match self {
            DumpKind::Cumulative => "cumulative",
            DumpKind::AtMaximum => "at-maximum",
            DumpKind::AllocationsOnly => "allocations-only",
            DumpKind::JavaHeap => "java-heap",
            DumpKind::Difference => "difference",
        }
    }
}

/// Flags of one dump, as heapprofd reports them for a process and heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DumpFlags {
    /// The process was hooked at launch; otherwise earlier allocations are missing.
    pub from_startup: bool,
    /// Another session owns the process; there are no samples.
    pub rejected_concurrent: bool,
    /// The target disconnected before the session ended.
    pub disconnected: bool,
    /// The shared buffer was full and the client gave up.
    pub buffer_overran: bool,
    /// The shared buffer was corrupted.
    pub buffer_corrupted: bool,
    /// A memory or CPU limit of the daemon was hit.
    pub hit_guardrail: bool,
    /// 0 none, 1 hit timeout, 2 invalid stack bounds; other values as in the trace.
    pub client_error: u32,
}

/// Prefix of the number of a client error.
const CLIENT_ERROR: &str = "client_error=";

impl DumpFlags {
    /// Returns whether heapprofd stopped profiling the process because of a failure: later data is
    /// missing.
    pub fn is_cut_short(&self) -> bool {
        self.buffer_overran || self.buffer_corrupted || self.hit_guardrail || self.client_error != 0
    }

    /// Returns whether the process was not profiled any more, or never, when the recording ended.
    pub fn has_ended(&self) -> bool {
        self.rejected_concurrent || self.disconnected || self.is_cut_short()
    }

    /// Returns the flags that explain missing data, in the words that [`DumpFlags::set`] accepts:
    /// `disconnected`, `client_error=1`.
    pub fn words(&self) -> Vec<String> {
        let named = [
            (self.rejected_concurrent, "rejected_concurrent"),
            (self.disconnected, "disconnected"),
            (self.buffer_overran, "buffer_overran"),
            (self.buffer_corrupted, "buffer_corrupted"),
            (self.hit_guardrail, "hit_guardrail"),
        ];
        let set = named.into_iter().filter(|(is_set, _)| *is_set);
        let mut words: Vec<String> = set.map(|(_, word)| word.to_owned()).collect();
        if self.client_error != 0 {
            words.push(format!("{CLIENT_ERROR}{}", self.client_error));
        }
        words
    }

    /// Sets the flag of a word; ignores unknown words.
    pub fn set(&mut self, word: &str) {
        match word {
            "rejected_concurrent" => self.rejected_concurrent = true,
            "disconnected" => self.disconnected = true,
            "buffer_overran" => self.buffer_overran = true,
            "buffer_corrupted" => self.buffer_corrupted = true,
            "hit_guardrail" => self.hit_guardrail = true,
            _ => {
                let number = word.strip_prefix(CLIENT_ERROR);
                if let Some(error) = number.and_then(|number| number.parse().ok()) {
                    self.client_error = error;
                }
            }
        }
    }
}

/// One heap of one process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapDump {
    /// Process ID on the device.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    /// `libc.malloc`, `com.android.art`, a custom heap; `unknown` before Android 12.
    pub heap: String,
    /// Trace time (BOOTTIME) of the dump in ns; `None` if no clock converts it.
    pub time_ns: Option<u64>,
    /// Wall-clock time of the dump, ns since 1970; `None` if no clock converts it.
    pub wall_time_ns: Option<u64>,
    /// Trace time at which profiling of this heap began; `None` if unknown.
    pub start_ns: Option<u64>,
    /// Trace time of the previous dump of the heap, or of the start of profiling, and of this dump,
    /// in ns. Both are negative before the trace clock began; the first equals the second if the
    /// trace does not have it. `None` if no clock converts them.
    pub window_ns: Option<(i64, i64)>,
    /// Unconverted timestamp of the dump (MONOTONIC_COARSE, ns).
    pub raw_time_ns: u64,
    /// Trace time (BOOTTIME) in ns at which the daemon wrote the dump; `None` if the trace does not
    /// have it. `time_ns` is the time of the last event in the dump, and can be much earlier.
    pub written_ns: Option<u64>,
    /// Final sampling interval in bytes; 0 if the trace does not have it.
    pub sampling_interval_bytes: u64,
    /// The configured interval if it differs or is stated; 0 otherwise.
    pub orig_sampling_interval_bytes: u64,
    /// Meaning of the figures.
    pub kind: DumpKind,
    /// The daemon's flags.
    pub flags: DumpFlags,
    /// Unwinding errors since profiling began.
    pub unwinding_errors: u64,
    /// Samples unwound since profiling began.
    pub heap_samples: u64,
    /// Time that the daemon took to unwind them, µs.
    pub unwinding_time_us: u64,
    /// Time for which the client was blocked on its lock, µs.
    pub client_spinlock_blocked_us: u64,
    /// The last packet of the dump is missing, or one of its packets is lost or damaged: the
    /// figures are a lower bound.
    pub unfinished: bool,
    /// The file ends before the dump does: it is still being written or was cut off.
    pub open: bool,
    /// Callsites with their cumulative figures, in order of [`CallsiteId`]; a callsite that freed
    /// everything it allocated stays.
    pub samples: Vec<(CallsiteId, Figures)>,
}

/// Numbers of the dumps of a recording as users see them: from 1 for each process and heap.
#[derive(Debug, Clone, Default)]
pub struct DumpNumbers(BTreeMap<u64, BTreeMap<String, u32>>);

impl DumpNumbers {
    /// Returns the number of the next dump of a process and heap.
    pub fn next(&mut self, pid: u64, heap: &str) -> u32 {
        let last = self.last(pid, heap);
        *last = last.saturating_add(1);
        *last
    }

    /// Records a used number: later dumps get higher ones.
    pub fn take(&mut self, pid: u64, heap: &str, number: u32) {
        let last = self.last(pid, heap);
        *last = number.max(*last);
    }

    fn last(&mut self, pid: u64, heap: &str) -> &mut u32 {
        let heaps = self.0.entry(pid).or_default();
        heaps.entry(heap.to_owned()).or_default()
    }
}

impl HeapDump {
    /// Returns the sums over all callsites (saturating).
    pub fn totals(&self) -> Figures {
        let mut total = Figures::default();
        for (_, figures) in &self.samples {
            total.add(figures);
        }
        total
    }
}
