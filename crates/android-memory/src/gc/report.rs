//! What the collections of a process come to, and what is wrong with them, as plain values.

use serde::Serialize;

use super::event::Runtime;
use super::observed::ObservedBy;
use super::oom::OutOfMemory;

/// Which of a process's collections are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// All: Dalvik logs each, and so does a trace with ART's own marks.
    Every,
    /// Those that ART logs: slow ones, of an app that the user perceives, and those that were
    /// asked for.
    Logged,
}

impl Coverage {
    /// Why figures are counts and no rates, where they are.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Coverage::Every => None,
            Coverage::Logged => Some(
                "ART logs a collection only if it was asked for, or if the user perceives the \
                 app and it took over 100 ms, paused for 5 ms or kept an allocation waiting for \
                 5 ms: how often it collects cannot be told from the log",
            ),
        }
    }
}

/// What says what a heap may grow to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitFrom {
    /// The log itself.
    Log,
    /// The phone's `dalvik.vm.heapgrowthlimit`.
    HeapGrowthLimit,
    /// The phone's `dalvik.vm.heapsize`: the app has `android:largeHeap`, or a heap that is larger
    /// than the other limit.
    HeapSize,
}

impl LimitFrom {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            LimitFrom::Log => "as its log says",
            LimitFrom::HeapGrowthLimit => "dalvik.vm.heapgrowthlimit",
            LimitFrom::HeapSize => "dalvik.vm.heapsize, with android:largeHeap",
        }
    }
}

/// What the collections of one process come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessReport {
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name may be the end of a longer one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub name_is_cut: bool,
    /// The virtual machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Which of its collections are known.
    pub coverage: Coverage,
    /// Collections, those that heaptap caused not counted.
    pub collections: u64,
    /// Those that heaptap caused.
    pub ours: u64,
    /// From the first to the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// For how long they were watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<u64>,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_by: Option<ObservedBy>,
    /// How often it collects in that time, where all collections are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// By reason and collector, the most frequent first.
    pub groups: Vec<Group>,
    /// What they freed, bytes, large objects with the others; `None` where none tells. The
    /// system's trace does not.
    pub freed_bytes: Option<i64>,
    /// How many of them tell.
    pub freed_told: u64,
    /// How long the app stood still, each time.
    pub pauses: Figures,
    /// How long collections took from begin to end, most of it beside the app.
    pub durations: Figures,
    /// Threads that waited for a collection.
    pub waits: Figures,
    /// What was live after each, in order.
    pub live: Vec<Live>,
    /// What the heap may grow to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_from: Option<LimitFrom>,
    /// `OutOfMemoryError`s, each text once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out_of_memory: Vec<Error>,
    /// Lines that say less.
    #[serde(rename = "lesser", skip_serializing_if = "MinorEvents::is_empty")]
    pub minor: MinorEvents,
    /// Whether the live set keeps growing.
    pub growth: Growth,
    /// What is wrong.
    pub diagnoses: Vec<Diagnosis>,
}

/// Collections of one reason by one collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Why.
    pub reason: String,
    /// How; empty for Dalvik.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub collector: String,
    /// How many.
    pub count: u64,
    /// What they freed; `None` where none tells.
    pub freed_bytes: Option<i64>,
    /// How many of them tell.
    pub freed_told: u64,
    /// How long they stopped the app.
    pub pauses: Figures,
    /// How long they took in all.
    pub total_ns: u64,
}

/// Durations summed up; percentiles by nearest rank: each is one that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    /// How many.
    pub count: u64,
    /// Half are no longer, ns.
    pub p50_ns: u64,
    /// Nine of ten are no longer.
    pub p90_ns: u64,
    /// Ninety-nine of a hundred are no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them.
    pub total_ns: u64,
}

impl Figures {
    /// Sums up.
    pub fn of(mut values: Vec<u64>) -> Figures {
        values.sort_unstable();
        let rank = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        Figures {
            count: values.len() as u64,
            p50_ns: rank(50),
            p90_ns: rank(90),
            p99_ns: rank(99),
            max_ns: rank(100),
            total_ns: values.iter().fold(0, |sum, v| sum.saturating_add(*v)),
        }
    }
}

/// What was live after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Live {
    /// When, on the log's axis, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Bytes live, at least.
    pub bytes: u64,
    /// The heap's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What the unit hides: it may be less than so much more.
    pub step: u64,
    /// The whole heap was collected: comparable with others of the kind.
    pub whole: bool,
    /// heaptap caused it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// An `OutOfMemoryError`, and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Error {
    /// When it came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// How often the runtime threw it.
    pub thrown: u64,
    /// How often somebody reported it.
    pub reported: u64,
    /// What it says.
    #[serde(flatten)]
    pub error: OutOfMemory,
}

/// Lines that say less.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MinorEvents {
    /// How often the heap wanted to grow over its limit.
    pub clamps: u64,
    /// How often it grew because nothing in it fitted.
    pub grown: u64,
    /// How often it gave up what is softly referenced.
    pub soft_references: u64,
    /// Collections that a signal asked for.
    pub signals: u64,
    /// Lines of the collector in words that are not known.
    pub unknown: u64,
    /// The first of them.
    pub unknown_examples: Vec<String>,
    /// Lines of the process that the phone's log threw away.
    pub dropped: u64,
}

impl MinorEvents {
    fn is_empty(&self) -> bool {
        *self == MinorEvents::default()
    }
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Something is wrong.
    Warning,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// How much it matters.
    pub severity: Severity,
    /// In words, with figures.
    pub text: String,
    /// What to do next.
    pub help: String,
    /// The figures.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// What a diagnosis rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Evidence {
    /// The live set keeps growing.
    LiveSetGrows(Growing),
    /// Allocations wait for collections that leave the heap full.
    NearLimit {
        /// Collections that an allocation waited for.
        collections: u64,
        /// Those of them that left the heap full.
        full: u64,
        /// The limit, where it is known, bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// The most that was live after one, bytes.
        live: u64,
    },
    /// There was no memory.
    OutOfMemory {
        /// Errors thrown, or reported only.
        errors: u64,
    },
    /// The app stood still for too long.
    LongPauses {
        /// Pauses longer than a frame.
        long: u64,
        /// All pauses.
        pauses: u64,
        /// The longest, ns.
        max_ns: u64,
    },
    /// The app asks for collections.
    ExplicitCollections {
        /// How many.
        collections: u64,
        /// How long they took, ns.
        total_ns: u64,
    },
}

/// Whether the live set keeps growing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Growth {
    /// There are too few collections of the whole heap to tell.
    TooFew {
        /// How many there are.
        collections: usize,
        /// How many it takes.
        wanted: usize,
    },
    /// It does not, or not by more than noise.
    Steady {
        /// Collections it was measured by.
        collections: usize,
        /// Growth along the line, bytes; below what counts.
        growth: f64,
        /// Spread around the line, bytes.
        noise: f64,
        /// Growth that would count, bytes.
        least: f64,
    },
    /// It does.
    Grows(Growing),
}

/// How a live set grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Growing {
    /// Collections of the whole heap it was measured by.
    pub collections: usize,
    /// Bytes from one to the next.
    pub per_collection: f64,
    /// Bytes a minute, and where that lies with 95 % confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// Its range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute_range: Option<(f64, f64)>,
    /// From the first to the last, bytes.
    pub growth: f64,
    /// The live set after the last, bytes.
    pub live: u64,
    /// Spread around the line, bytes.
    pub noise: f64,
    /// The test's score, in standard deviations.
    pub score: f64,
}
