//! One heap of one process at one moment.

use super::tables::CallsiteId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one callsite has done since profiling began. Bytes are already scaled up by the
/// sampling; counts are numbers of *sampled* allocations.
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
    /// Adds, saturating: a hostile or overflowing trace may not wrap.
    pub fn add(&mut self, other: &Figures) {
        self.alloc_space = self.alloc_space.saturating_add(other.alloc_space);
        self.alloc_objects = self.alloc_objects.saturating_add(other.alloc_objects);
        self.space = self.space.saturating_add(other.space);
        self.objects = self.objects.saturating_add(other.objects);
    }
}

/// What the figures of a dump mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DumpKind {
    /// Cumulative allocations and what is still held.
    #[default]
    Cumulative,
    /// `dump_at_max`: the state when the heap was largest; nothing is known of frees.
    AtMaximum,
    /// `com.android.art`: allocations only, frees are not known.
    AllocationsOnly,
}

/// Flags of one dump, as heapprofd reports them for a process and heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DumpFlags {
    /// Hooked at launch; otherwise earlier allocations are unseen.
    pub from_startup: bool,
    /// Another session owns the process; there are no samples.
    pub rejected_concurrent: bool,
    /// The target left before the session ended.
    pub disconnected: bool,
    /// The shared buffer was full and the client gave up.
    pub buffer_overran: bool,
    /// The shared buffer was corrupted.
    pub buffer_corrupted: bool,
    /// A memory or CPU limit of the daemon was hit.
    pub hit_guardrail: bool,
    /// 0 none, 1 hit timeout, 2 invalid stack bounds; others as the wire has them.
    pub client_error: u32,
}

/// Before the number of a client's error.
const CLIENT_ERROR: &str = "client_error=";

impl DumpFlags {
    /// Whether heapprofd followed the process no longer, because that failed: what came after is
    /// missing.
    pub fn is_cut_short(&self) -> bool {
        self.buffer_overran || self.buffer_corrupted || self.hit_guardrail || self.client_error != 0
    }

    /// Whether nobody followed the process any more when the recording ended, or ever.
    pub fn has_ended(&self) -> bool {
        self.rejected_concurrent || self.disconnected || self.is_cut_short()
    }

    /// The flags that say why data are missing, in words that [`DumpFlags::set`] knows again:
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

    /// Sets the flag that a word stands for; words it does not know are left alone.
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

/// One heap of one process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapDump {
    /// Process id on the device.
    pub pid: u64,
    /// Process name where the trace has one, else empty.
    pub process: String,
    /// `libc.malloc`, `com.android.art`, a custom heap; `unknown` before Android 12.
    pub heap: String,
    /// Trace time (BOOTTIME) of the dump in ns; `None` where no clock converts it.
    pub time_ns: Option<u64>,
    /// Wall-clock time of the dump, ns since 1970; `None` where no clock converts it.
    pub wall_time_ns: Option<u64>,
    /// Trace time at which profiling of this heap began; `None` where unknown.
    pub start_ns: Option<u64>,
    /// The dump's own timestamp as it stands in the trace (MONOTONIC_COARSE, ns).
    pub raw_time_ns: u64,
    /// When the daemon wrote the dump, trace time (BOOTTIME) in ns; `None` where the trace does
    /// not say. `time_ns` is that of the last event in it, and may be long before.
    pub written_ns: Option<u64>,
    /// Final sampling interval in bytes; 0 where the trace does not say.
    pub sampling_interval_bytes: u64,
    /// The configured interval, where it differs or is stated; 0 otherwise.
    pub orig_sampling_interval_bytes: u64,
    /// What the figures mean.
    pub kind: DumpKind,
    /// The daemon's flags.
    pub flags: DumpFlags,
    /// Unwinding errors since profiling began.
    pub unwinding_errors: u64,
    /// Samples unwound since profiling began.
    pub heap_samples: u64,
    /// µs that the daemon took to unwind them.
    pub unwinding_time_us: u64,
    /// µs for which the client was blocked on its lock.
    pub client_spinlock_blocked_us: u64,
    /// The last packet of the dump never came, or one of its packets is lost or damaged:
    /// what is here is a lower bound.
    pub unfinished: bool,
    /// The file ends before the dump does: it is still being written, or was cut off.
    pub open: bool,
    /// Callsites with their cumulative figures, in order of [`CallsiteId`]; a callsite that
    /// freed all it allocated stays.
    pub samples: Vec<(CallsiteId, Figures)>,
}

/// Numbers the dumps of a recording as people name them: from 1 for each process and heap.
#[derive(Debug, Clone, Default)]
pub struct DumpNumbers(BTreeMap<u64, BTreeMap<String, u32>>);

impl DumpNumbers {
    /// The number of the next dump of a process and heap.
    pub fn next(&mut self, pid: u64, heap: &str) -> u32 {
        let last = self.last(pid, heap);
        *last = last.saturating_add(1);
        *last
    }

    /// Takes a number that is known: later ones come behind it.
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
    /// Sums over all callsites (saturating).
    pub fn totals(&self) -> Figures {
        let mut total = Figures::default();
        for (_, figures) in &self.samples {
            total.add(figures);
        }
        total
    }
}
