//! Facts of a trace other than samples: processes, packages, the config, the system. Plain data,
//! read once before any dump and shared by all dumps of the recording.

use super::symbols::Symbols;
use super::tables::Tables;
use std::collections::BTreeMap;

/// Facts that are common to all dumps of a recording.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Strings, mappings, frames, callsites.
    pub tables: Tables,
    /// Symbolized lines and deobfuscated names.
    pub symbols: Symbols,
    /// The trace contains packets of symbols or of original Java names.
    pub has_names: bool,
    /// Process and message of the last OutOfMemoryError that ART reported.
    pub out_of_memory: Option<(u64, String)>,
    /// Processes by pid.
    pub processes: BTreeMap<u64, Process>,
    /// The device's packages, if the trace lists them.
    pub packages: Vec<Package>,
    /// The packages list is present, but the device could not read or parse its own.
    pub packages_incomplete: bool,
    /// Native heap profiles in the config, one entry per data source; empty if the trace does not
    /// contain its config.
    pub requests: Vec<HeapRequest>,
    /// Processes of the Java heap dumps in the config: names, and `pid 42`.
    pub java_targets: Vec<String>,
    /// The trace contains the config it was recorded with.
    pub has_config: bool,
    /// Names of all data sources of the config.
    pub data_sources: Vec<String>,
    pub system: SystemInfo,
    /// Facts with the names of Perfetto's `metadata` table; only some have several values.
    pub metadata: BTreeMap<&'static str, Vec<MetadataValue>>,
    /// Counters of the tracing service with the names of Perfetto's `stats` table and their buffer,
    /// from its last statistics, without zeros.
    pub counters: Vec<ServiceCounter>,
    /// Trace time (BOOTTIME) at which tracing began, in ns, if the trace has it.
    pub started_ns: Option<u64>,
}

impl Recording {
    /// Sets a fact that has one value.
    pub fn set_metadata(&mut self, name: &'static str, value: impl Into<MetadataValue>) {
        self.metadata.insert(name, vec![value.into()]);
    }
}

/// Value of a fact in [`Recording::metadata`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataValue {
    Number(i64),
    Text(String),
}

impl From<u64> for MetadataValue {
    fn from(number: u64) -> MetadataValue {
        MetadataValue::Number(number as i64)
    }
}

impl From<String> for MetadataValue {
    fn from(text: String) -> MetadataValue {
        MetadataValue::Text(text)
    }
}

/// A counter of the tracing service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCounter {
    /// Name, such as `traced_buf_bytes_written`.
    pub name: &'static str,
    /// Buffer of the counter.
    pub buffer: Option<u32>,
    pub value: u64,
}

/// A process of the process tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// First word of the command line.
    pub name: String,
    /// UID of the process's app or service.
    pub uid: Option<u64>,
    /// Whole command line, words joined by spaces, if the process tree has it.
    pub cmdline: Option<String>,
    /// PID of the parent process.
    pub parent_pid: Option<u64>,
    /// Start time, BOOTTIME ns.
    pub start_ns: Option<u64>,
}

/// An entry of the packages list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Package {
    pub name: String,
    /// UID; `uid % 100000` is the app ID, `uid / 100000` the user.
    pub uid: u64,
    /// `android:debuggable`.
    pub debuggable: bool,
    /// `<profileable android:shell="true">`.
    pub profileable_from_shell: bool,
    pub version_code: i64,
}

/// A heapprofd data source of the config.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeapRequest {
    /// Requested sampling interval in bytes.
    pub sampling_interval_bytes: u64,
    /// Process names or patterns.
    pub process_cmdline: Vec<String>,
    pub pids: Vec<u64>,
    /// Profile every process.
    pub all: bool,
    /// Requested heaps; empty means the default heap.
    pub heaps: Vec<String>,
    /// Profile every heap.
    pub all_heaps: bool,
    /// Excluded heaps.
    pub exclude_heaps: Vec<String>,
    /// Do not profile from the start of a process.
    pub no_startup: bool,
    /// Do not profile running processes.
    pub no_running: bool,
    /// Dump the heap at its maximum.
    pub dump_at_max: bool,
    /// Interval of continuous dumps in ms; 0 for none.
    pub dump_interval_ms: u64,
    /// Size of the shared memory buffer in bytes; 0 is the daemon's default.
    pub shmem_size_bytes: u64,
    /// Minimum anonymous memory of profiled processes, KiB.
    pub min_anonymous_memory_kb: u64,
}

/// The recorded system; fields are empty if the trace does not have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemInfo {
    pub fingerprint: String,
    /// Manufacturer of the device; newer versions of Android record it.
    pub manufacturer: String,
    /// Version of the tracing service.
    pub tracing_service: String,
    /// Android API level; 0 if unknown.
    pub sdk: u64,
    /// Machine, such as `aarch64`.
    pub machine: String,
}
