//! A recording as the archive stores it.

use std::collections::BTreeMap;

/// A recording with its dumps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// SHA-256 of the original trace, hexadecimal.
    pub sha256: String,
    /// App: package or process.
    pub app: String,
    /// Day of the recording, such as `2026-01-31`, in UTC.
    pub day: String,
    /// Build of the app, such as its version code.
    pub build: String,
    /// Start in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// Serial number of the device.
    pub phone: Option<String>,
    pub model: Option<String>,
    pub sdk: Option<u32>,
    pub device_class: String,
    pub scenario: Option<String>,
    /// Number of the run of the scenario.
    pub run: Option<u32>,
    /// Verdict on the scenario: `within`, `over`, `undecided`.
    pub verdict: Option<String>,
    /// False if data are missing.
    pub complete: bool,
    /// Version of heaptap that archived it.
    pub heaptap: String,
    /// In chronological order.
    pub dumps: Vec<Dump>,
    pub names: Names,
}

/// Returns the number of a recording in the rows of its tables.
pub(crate) fn recording_id(sha256: &str) -> i64 {
    let byte = |at: usize| {
        sha256
            .get(at..at + 2)
            .map(|hex| u8::from_str_radix(hex, 16))
    };
    let bytes: Vec<u8> = (0..16)
        .step_by(2)
        .map(|at| byte(at).and_then(Result::ok).unwrap_or(0))
        .collect();
    first_bytes(&bytes)
}

/// Returns the first 8 bytes of a digest as a signed big-endian integer.
pub(crate) fn first_bytes(digest: &[u8]) -> i64 {
    let bytes = digest.iter().take(8);
    bytes.fold(0, |value, &byte| value << 8 | i64::from(byte))
}

/// A heap of a process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    /// Number for its process and heap, from 1.
    pub number: u32,
    pub label: Option<String>,
    pub pid: u64,
    /// Empty if unknown.
    pub process: String,
    /// `libc.malloc`, `java`, …
    pub heap: String,
    /// `cumulative`, `at-maximum`, `allocations-only`, `java`.
    pub kind: String,
    /// Trace time (BOOTTIME).
    pub time_ns: Option<u64>,
    /// Sampling interval; 0 if unknown, 1 is exact.
    pub interval_bytes: u64,
    /// The last dump of its process and heap.
    pub is_last: bool,
    /// Bytes and sampled allocations since profiling began.
    pub alloc: Option<(i64, i64)>,
    /// Unreleased bytes and sampled allocations; Java: shallow bytes and objects, reachable.
    pub live: Option<(i64, i64)>,
    pub samples: Vec<SampleRow>,
    pub classes: Vec<ClassRow>,
    pub leaks: Vec<LeakRow>,
}

/// Values of a callsite in a dump; pairs are bytes and sampled allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRow {
    pub callsite: i64,
    pub alloc: Option<(i64, i64)>,
    pub live: Option<(i64, i64)>,
}

/// Reachable objects of a class in a Java dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassRow {
    pub class: i64,
    pub objects: u64,
    pub shallow_bytes: u64,
    pub native_bytes: u64,
    pub retained_bytes: u64,
}

/// Objects that leak for one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeakRow {
    pub leak: i64,
    /// `confirmed`, `likely`, `possible`.
    pub certainty: &'static str,
    /// A known leak of Android, its manufacturer or a library, which is not the app's.
    pub known: bool,
    pub objects: u64,
    pub retained_bytes: u64,
}

/// Names of the hashes in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    pub callsites: BTreeMap<i64, Callsite>,
    pub classes: BTreeMap<i64, String>,
    pub leaks: BTreeMap<i64, LeakName>,
}

/// Texts of a callsite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callsite {
    /// Innermost function that is not an allocator.
    pub leaf: String,
    /// File name of its library; empty if unknown.
    pub library: String,
    /// Functions separated by `;`, callers first.
    pub stack: String,
}

/// Texts of a leak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeakName {
    /// Class of the leaking objects.
    pub class: String,
    /// Suspected references, separated by `;`.
    pub path: String,
}
