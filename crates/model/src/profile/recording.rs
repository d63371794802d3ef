//! What a trace says beside its samples: processes, packages, what was asked for, the system.
//! Plain data, read once before any dump; shared by all dumps of the recording.

use super::symbols::Symbols;
use super::tables::Tables;
use std::collections::BTreeMap;

/// Everything that holds for all dumps of a recording.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Strings, mappings, frames, callsites.
    pub tables: Tables,
    /// Symbolized lines and deobfuscated names.
    pub symbols: Symbols,
    /// Processes by pid.
    pub processes: BTreeMap<u64, Process>,
    /// The device's packages, where the trace lists them.
    pub packages: Vec<Package>,
    /// Whether a packages list is there but the device could not read or parse its own.
    pub packages_incomplete: bool,
    /// The native heap profiles that the config asked for, one entry a data source; empty where
    /// the trace holds no config.
    pub requests: Vec<HeapRequest>,
    /// Whether the trace holds the config it was recorded with.
    pub has_config: bool,
    /// Names of all data sources of the config.
    pub data_sources: Vec<String>,
    /// The system that was recorded.
    pub system: SystemInfo,
    /// The tracing service's own counters, under the names that Perfetto's `stats` table has for
    /// them, each with the buffer it is of; as the last account of it has them, zeros left out.
    pub counters: Vec<ServiceCounter>,
    /// Trace time (BOOTTIME) at which tracing began, in ns, where the trace says.
    pub started_ns: Option<u64>,
}

/// A counter of the tracing service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCounter {
    /// Its name, such as `traced_buf_bytes_written`.
    pub name: &'static str,
    /// The buffer it is of.
    pub buffer: Option<u32>,
    /// Its value.
    pub value: u64,
}

/// A process as the process tree names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Its command line's first word.
    pub name: String,
    /// Uid of its app or service.
    pub uid: Option<u64>,
    /// Its whole command line, words joined by spaces, where the process tree has it.
    pub cmdline: Option<String>,
    /// Process id of the process that started it.
    pub parent_pid: Option<u64>,
    /// When it started, BOOTTIME ns.
    pub start_ns: Option<u64>,
}

/// An entry of the packages list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Uid; `uid % 100000` is the app id, `uid / 100000` the user.
    pub uid: u64,
    /// `android:debuggable`.
    pub debuggable: bool,
    /// `<profileable android:shell="true">`.
    pub profileable_from_shell: bool,
    /// Version code.
    pub version_code: i64,
}

/// A heapprofd data source of the config.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapRequest {
    /// Interval asked for, bytes.
    pub sampling_interval_bytes: u64,
    /// Process names or patterns.
    pub process_cmdline: Vec<String>,
    /// Process ids.
    pub pids: Vec<u64>,
    /// Every process.
    pub all: bool,
    /// Heaps asked for; empty means the default heap.
    pub heaps: Vec<String>,
    /// Every heap.
    pub all_heaps: bool,
    /// Heaps left out.
    pub exclude_heaps: Vec<String>,
    /// Not at start of a process.
    pub no_startup: bool,
    /// Not for running processes.
    pub no_running: bool,
    /// Report the heap at its largest.
    pub dump_at_max: bool,
    /// Period of continuous dumps in ms; 0 without.
    pub dump_interval_ms: u64,
    /// Shared memory buffer, bytes; 0 is the daemon's default.
    pub shmem_size_bytes: u64,
    /// Only processes with at least this much anonymous memory, KiB.
    pub min_anonymous_memory_kb: u64,
}

/// The system that was recorded; fields are empty where the trace does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemInfo {
    /// Build fingerprint.
    pub fingerprint: String,
    /// Version of the tracing service.
    pub tracing_service: String,
    /// Android API level; 0 where unknown.
    pub sdk: u64,
    /// Machine, such as `aarch64`.
    pub machine: String,
    /// Kernel release.
    pub kernel: String,
}
