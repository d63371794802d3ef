//! Known figures of a process at one time, provided by the caller.

use super::table::{Area, Figure, Missing};
use crate::malloc_info::MallocInfo;
use heaptap_model::profile::{MALLOC_HEAP, UNNAMED_HEAP};
use heaptap_model::timeline::HeapCells;

/// A figure with its source and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    pub value: T,
    /// Source of the figure.
    pub source: String,
    /// Time, BOOTTIME ns.
    pub boot_ns: Option<u64>,
}

impl<T> At<T> {
    pub fn new(value: T, source: impl Into<String>, boot_ns: Option<u64>) -> At<T> {
        At {
            value,
            source: source.into(),
            boot_ns,
        }
    }
}

/// A heap recorded by heapprofd.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiled {
    /// `libc.malloc`, `unknown` (the same before Android 12), `com.android.art` …
    pub heap: String,
    /// Bytes allocated and not freed.
    pub unreleased: i64,
    /// The 95% confidence interval, if the sampling interval is known.
    pub range: Option<(i64, i64)>,
    /// Formatted estimate, if known.
    pub words: Option<Estimated>,
    /// Sampling interval, bytes; 0 if unknown.
    pub interval: u64,
    /// True if it was recorded from the start of the process.
    pub from_startup: bool,
    /// Reason why the profile is incomplete.
    pub incomplete: Option<String>,
    /// True if the figure is the peak of the heap, not its current size.
    pub at_maximum: bool,
}

/// A formatted estimate with no more digits than are significant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimated {
    /// Estimate with sampling error: `40.0 MiB ± 1.0`.
    pub amount: String,
    /// Sampling error: `1.0 MiB`.
    pub reach: String,
}

impl Profiled {
    /// Returns whether this is the heap of malloc.
    pub fn is_native(&self) -> bool {
        matches!(self.heap.as_str(), MALLOC_HEAP | UNNAMED_HEAP | "")
    }
}

/// Resident memory of the native heap, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeResident {
    /// Resident bytes; proportional (PSS) if `by_shares` is set.
    pub resident: u64,
    /// True if the source does not have RSS (Android 10 and older).
    pub by_shares: bool,
    /// Private dirty bytes.
    pub private_dirty: u64,
    /// Bytes in swap, before compression; `None` if the source does not report it.
    pub swapped: Option<u64>,
}

/// Known figures of a process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReconcileInput {
    /// Process name.
    pub process: String,
    pub pid: u32,
    /// Time of the table, BOOTTIME ns.
    pub boot_ns: Option<u64>,
    /// Label of the snapshot at that time.
    pub label: Option<String>,
    /// Heaps recorded by heapprofd.
    pub heaps: Vec<At<Profiled>>,
    /// Report of the allocator.
    pub malloc_info: Option<At<MallocInfo>>,
    /// Heap Size, Alloc and Free of Native Heap.
    pub native_heap: Option<At<HeapCells>>,
    /// Resident memory of the native heap.
    pub native_resident: Option<At<NativeResident>>,
    /// Resident memory of the process, bytes.
    pub resident: Option<At<u64>>,
    /// True if `resident` is meminfo's sum and not the kernel's.
    pub resident_by_meminfo: bool,
    /// Resident memory outside the native heap, by kind.
    pub elsewhere: Vec<Area>,
    /// Figures that could not be read, with reasons.
    pub missing: Vec<Missing>,
}

impl ReconcileInput {
    /// Adds a figure that could not be read.
    pub fn miss(&mut self, figure: Figure, why: impl Into<String>, help: Option<String>) {
        self.missing.push(Missing {
            figure,
            why: why.into(),
            help,
        });
    }
}
