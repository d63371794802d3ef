//! Values of counters as a trace has them, under the names that Perfetto gives them.

/// What a counter is of, as Perfetto tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Memory of a process, from its `status`.
    ProcessMemory,
    /// How soon the system kills a process.
    OomScoreAdj,
    /// Memory of a process, from its `smaps_rollup`.
    Smaps,
    /// Processor time of a process.
    Runtime,
    /// What a process wrote by atrace.
    Atrace,
    /// Memory of the phone.
    Meminfo,
}

impl Kind {
    /// The `type` of its tracks.
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

    /// The `unit` of its tracks: Perfetto knows that of few.
    pub fn unit(self) -> Option<&'static str> {
        (self == Kind::Meminfo).then_some("bytes")
    }
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track {
    /// The process; `None` where it is about the whole phone.
    pub pid: Option<u32>,
    /// What it is of.
    pub kind: Kind,
    /// What is counted.
    pub name: &'static str,
}

/// A counter's value at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// BOOTTIME of the phone, ns.
    pub boot_ns: u64,
    /// How much: bytes, unless the counter's name says otherwise.
    pub value: f64,
    /// Whose: the place among the counters.
    pub track: u32,
}

/// Counters with their values, of which a phone makes thousands a second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// The counters, each once.
    pub tracks: Vec<Track>,
    /// Their values, in order of time.
    pub values: Vec<Value>,
}
