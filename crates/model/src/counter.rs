//! Values of counters from a trace, with Perfetto's names.

/// Kinds of counters, as Perfetto distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Memory of a process, from `/proc/PID/status`.
    ProcessMemory,
    /// OOM score of a process: the higher, the sooner the system kills it.
    OomScoreAdj,
    /// Memory of a process, from `/proc/PID/smaps_rollup`.
    Smaps,
    /// Processor time of a process.
    Runtime,
    /// Counters that a process wrote with atrace.
    Atrace,
    /// Memory of the device.
    Meminfo,
}

impl Kind {
    /// Returns the `type` of the counter's tracks.
    pub fn word(self) -> &'static str {
        match self {
            Kind::ProcessMemory => "process_memory",
            Kind::OomScoreAdj => "oom_score_adj",
            Kind::Smaps => "smaps",
            Kind::Runtime => "proc_stat_runtime",
            Kind::Atrace => "atrace_counter",
            Kind::Meminfo => "meminfo",
        }
    }

    /// Returns the `unit` of the counter's tracks, which Perfetto defines for few of them.
    pub fn unit(self) -> Option<&'static str> {
        (self == Kind::Meminfo).then_some("bytes")
    }
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track {
    /// Process ID; `None` for counters of the whole device.
    pub pid: Option<u32>,
    pub kind: Kind,
    pub name: &'static str,
}

/// A counter's value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// BOOTTIME of the device, ns.
    pub boot_ns: u64,
    /// Value in bytes, unless the counter's name states another unit.
    pub value: f64,
    /// Index of the counter's track.
    pub track: u32,
}

/// Counters with their values; a device produces thousands of values per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Tracks without repetition.
    pub tracks: Vec<Track>,
    /// Values in order of time.
    pub values: Vec<Value>,
}
