//! What is known of a process at a moment, as whoever read it hands it over.

use super::{Area, Missing};
use crate::malloc_info::MallocInfo;
use heaptap_model::timeline::HeapCells;

/// A figure with its source and its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    /// The figure.
    pub value: T,
    /// Who says it.
    pub source: String,
    /// When, BOOTTIME ns.
    pub boot_ns: Option<u64>,
}

/// A heap as heapprofd recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiled {
    /// `libc.malloc`, `unknown` (the same before Android 12), `com.android.art` …
    pub heap: String,
    /// Allocated and not freed, bytes.
    pub unreleased: i64,
    /// The least and the most that are likely, where the interval is known.
    pub range: Option<(i64, i64)>,
    /// The same in words, where it is known.
    pub words: Option<Estimated>,
    /// Sampling interval, bytes; 0 where it is not known.
    pub interval: u64,
    /// It was recorded from the process's start.
    pub from_startup: bool,
    /// When profiling of it began, BOOTTIME ns, where that is known.
    pub begun_ns: Option<u64>,
    /// Why the profile is not whole.
    pub incomplete: Option<String>,
    /// It is the largest the heap ever was, not what it is.
    pub at_maximum: bool,
}

/// An estimate in words, with no more digits than it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimated {
    /// With its reach: `40.0 MiB ± 1.0`.
    pub amount: String,
    /// How far it may be off: `1.0 MiB`.
    pub reach: String,
}

impl Profiled {
    /// Whether it is what malloc serves.
    pub fn is_native(&self) -> bool {
        matches!(self.heap.as_str(), "libc.malloc" | "unknown" | "")
    }
}

/// Resident memory of the native heap, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeResident {
    /// Resident; by shares (PSS) where `by_shares`.
    pub resident: u64,
    /// The source has no RSS: Android 10 and older.
    pub by_shares: bool,
    /// Private dirty pages.
    pub private_dirty: u64,
    /// In swap, before compression; `None` where the source does not tell.
    pub swapped: Option<u64>,
}

/// All that is known of a process at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReconcileInput {
    /// Its name.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// The moment.
    pub boot_ns: Option<u64>,
    /// The label set then.
    pub label: Option<String>,
    /// What heapprofd recorded.
    pub heaps: Vec<At<Profiled>>,
    /// What the allocator says.
    pub malloc_info: Option<At<MallocInfo>>,
    /// Heap Size, Alloc and Free of Native Heap.
    pub native_heap: Option<At<HeapCells>>,
    /// Resident memory of the native heap.
    pub native_resident: Option<At<NativeResident>>,
    /// Resident memory of the process, bytes.
    pub resident: Option<At<u64>>,
    /// That is meminfo's sum, and not the kernel's.
    pub resident_by_meminfo: bool,
    /// Resident memory that is not the native heap's, by kind.
    pub elsewhere: Vec<Area>,
    /// Figures that could not be read, and why.
    pub missing: Vec<Missing>,
}
