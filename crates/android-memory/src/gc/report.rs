//! Results for the collections of a process, and the problems found in them, as plain values.

use serde::Serialize;

use super::event::Runtime;
use super::observed::ObservedBy;
use super::oom::OutOfMemory;

/// Completeness of the collections that are known for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// All collections: Dalvik logs each one, and so does a trace with ART's own marks.
    Every,
    /// The collections that ART logs: slow ones of visible or foreground apps, and requested
    /// ones.
    Logged,
}

impl Coverage {
    /// Explains why figures are counts and not rates, if they are.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Coverage::Every => None,
            Coverage::Logged => Some(
                "ART logs only some collections, so their rate is unknown. It logs requested \
                 ones. If the app is visible or in the foreground, it also logs those that took \
                 over 100 ms, paused for 5 ms or delayed an allocation by 5 ms.",
            ),
        }
    }
}

/// Source of the heap limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitFrom {
    Log,
    /// The device's `dalvik.vm.heapgrowthlimit`.
    HeapGrowthLimit,
    /// The device's `dalvik.vm.heapsize`: the app has `android:largeHeap`, or a heap larger than
    /// the other limit.
    HeapSize,
}

impl LimitFrom {
    /// Returns the source as text.
    pub fn words(self) -> &'static str {
        match self {
            LimitFrom::Log => "from the log",
            LimitFrom::HeapGrowthLimit => "dalvik.vm.heapgrowthlimit",
            LimitFrom::HeapSize => "dalvik.vm.heapsize, with android:largeHeap",
        }
    }
}

/// Results for the collections of one process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if the name might be a part of a longer one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub name_is_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Completeness of the known collections.
    pub coverage: Coverage,
    /// Number of collections, without those that heaptap caused.
    pub collections: u64,
    /// Number of collections that heaptap caused.
    #[serde(rename = "collections_by_heaptap")]
    pub ours: u64,
    /// Time from the first to the last collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Observation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<u64>,
    /// Source of the observation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_by: Option<ObservedBy>,
    /// Collections per minute of the observation time, if all collections are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// Groups by reason and collector, the most frequent first.
    pub groups: Vec<Group>,
    /// Bytes freed, including large objects; `None` if no collection reports it. The system's trace
    /// does not.
    pub freed_bytes: Option<i64>,
    /// Number of collections that report the freed bytes.
    pub frees_known: u64,
    /// Pauses of the app.
    pub pauses: Figures,
    /// Durations of collections from start to end, mostly concurrent with the app.
    pub durations: Figures,
    /// Waits of threads for a collection.
    pub waits: Figures,
    /// Live bytes after each collection, in order.
    pub live: Vec<Live>,
    /// Heap limit, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Source of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_from: Option<LimitFrom>,
    /// `OutOfMemoryError`s, one entry per text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out_of_memory: Vec<Error>,
    /// Counts of minor events.
    #[serde(skip_serializing_if = "MinorEvents::is_empty")]
    pub minor: MinorEvents,
    /// Growth of the live set.
    pub growth: Growth,
    /// Problems, the most severe first.
    pub diagnoses: Vec<Diagnosis>,
}

/// Collections with the same reason and collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub reason: String,
    /// Empty for Dalvik.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub collector: String,
    pub count: u64,
    /// Bytes freed; `None` if no collection reports it.
    pub freed_bytes: Option<i64>,
    /// Number of collections that report the freed bytes.
    pub frees_known: u64,
    /// Pauses of the app.
    pub pauses: Figures,
    /// Total duration.
    pub total_ns: u64,
}

/// Summary of durations. Percentiles use the nearest rank, so each one is a duration that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Maximum, ns.
    pub max_ns: u64,
    /// Sum, ns.
    pub total_ns: u64,
}

impl Figures {
    /// Summarizes durations.
    pub fn from_values(mut values: Vec<u64>) -> Figures {
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

/// Live bytes after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Time on the log's axis, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Live bytes, rounded down.
    pub bytes: u64,
    /// Size of the heap, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Rounding unit: the real value is less than `bytes` plus this.
    pub step: u64,
    /// True if it was a full GC; only those are comparable with each other.
    #[serde(rename = "full")]
    pub whole: bool,
    /// True if heaptap caused the collection.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "by_heaptap")]
    pub ours: bool,
}

/// An `OutOfMemoryError` with the number of its occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Error {
    /// Time of the first occurrence, on the log's axis, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Number of times that the runtime threw it.
    pub thrown: u64,
    /// Number of times that another line reported it.
    pub reported: u64,
    /// Contents of the message.
    #[serde(flatten)]
    pub error: OutOfMemory,
}

/// Counts of minor events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MinorEvents {
    /// Number of times that the heap would have grown beyond its limit.
    pub clamps: u64,
    /// Number of times that the heap grew because an allocation did not fit.
    pub grown: u64,
    /// Number of times that softly referenced objects were collected.
    pub soft_references: u64,
    /// Collections requested by a signal.
    pub signals: u64,
    /// Lines about the collector in an unknown form.
    pub unknown: u64,
    /// Examples of such lines.
    pub unknown_examples: Vec<String>,
    /// Lines of the process that the device's log discarded.
    pub dropped: u64,
}

impl MinorEvents {
    fn is_empty(&self) -> bool {
        *self == MinorEvents::default()
    }
}

/// Severity of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Useful to know.
    Note,
    /// A problem.
    Warning,
}

/// A problem found in the collections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    pub severity: Severity,
    /// Description with figures.
    pub text: String,
    /// Suggested next step.
    pub help: String,
    /// Underlying figures.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Figures behind a diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Evidence {
    /// The live set keeps growing.
    LiveSetGrows(Growing),
    /// Allocations wait for collections that leave the heap full.
    NearLimit {
        /// Collections that an allocation waited for.
        collections: u64,
        /// Number of those that left the heap full.
        full: u64,
        /// Heap limit in bytes, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// Maximum live bytes after one of them.
        live: u64,
    },
    /// An allocation failed.
    OutOfMemory {
        /// Number of errors, thrown or only reported.
        errors: u64,
    },
    /// The app was paused for too long.
    LongPauses {
        /// Number of pauses longer than a frame.
        long: u64,
        /// Number of all pauses.
        pauses: u64,
        /// Longest pause, ns.
        max_ns: u64,
    },
    /// Collections were requested explicitly.
    ExplicitCollections {
        collections: u64,
        /// Total duration, ns.
        total_ns: u64,
    },
}

/// Growth of the live set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Growth {
    /// There are too few full GCs for a result.
    TooFew {
        /// Number of full GCs.
        collections: usize,
        /// Number of full GCs required.
        #[serde(rename = "required")]
        wanted: usize,
    },
    /// The live set does not grow, or not by more than chance variation.
    Steady {
        /// Number of full GCs.
        collections: usize,
        /// Growth along the line, bytes; below the threshold.
        growth: f64,
        /// Spread around the line, bytes.
        #[serde(rename = "spread")]
        noise: f64,
        /// Minimum growth that counts, bytes.
        #[serde(rename = "min_growth")]
        least: f64,
    },
    /// The live set keeps growing.
    Grows(Growing),
}

/// Growth rates of a live set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Growing {
    /// Number of full GCs.
    pub collections: usize,
    /// Growth from one full GC to the next, bytes.
    pub per_collection: f64,
    /// Growth per minute, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// 95% confidence interval of the growth per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute_range: Option<(f64, f64)>,
    /// Growth from the first to the last, bytes.
    pub growth: f64,
    /// Live set after the last, bytes.
    pub live: u64,
    /// Spread around the line, bytes.
    #[serde(rename = "spread")]
    pub noise: f64,
    /// Score of the Mann-Kendall test, in standard deviations.
    pub score: f64,
}
