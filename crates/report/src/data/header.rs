//! Header of the data block: metadata, and positions of the values. `viewer/README.md`
//! describes every field.

use heaptap_model::profile::DumpKind;
use serde::{Deserialize, Serialize};

use super::reconcile::Reconciled;
use super::timeline::Timeline;

/// Magic number at the start of the data.
pub(super) const MAGIC: &[u8; 4] = b"HTR1";
/// Version of the format to write, and the only version to read.
pub const FORMAT: u32 = 1;

/// Named fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

/// Warning for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name.
    pub kind: Option<String>,
    pub message: String,
    pub help: Option<String>,
    /// Indexes of the affected dumps; empty if all are affected.
    pub dumps: Vec<usize>,
}

/// Memory by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Where {
    /// Total bytes; absent if not measured.
    pub total: Option<u64>,
    /// Name of the measure of the total.
    pub of: Option<String>,
    /// Label or time of the values.
    pub at: Option<String>,
    pub parts: Vec<Part>,
}

/// Memory of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// `native`, `java`, `graphics`, `code`, `stack`, `other`, `unseen`.
    pub name: String,
    /// Bytes; absent if unknown. Shared memory can be negative.
    pub bytes: Option<i64>,
    /// Source of the value.
    pub how: String,
}

/// Memory that a profile of this kind does not cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Kind of memory.
    pub what: String,
    /// Reason, and the tool that shows it.
    pub why: String,
    /// Bytes, if measured.
    pub bytes: Option<u64>,
}

/// Command for a next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Purpose.
    pub what: String,
    /// Command line.
    pub command: String,
}

/// Symbolization of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Symbolization {
    /// Distinct frames with a name.
    pub frames_named: u64,
    /// Distinct frames without a name.
    pub frames_unnamed: u64,
    /// Distinct frames with known file and line.
    pub frames_with_lines: u64,
    /// Share of the bytes whose allocating function has no name.
    pub leaf_share_unnamed: f64,
    /// Share of the bytes with an unnamed frame in the callstack.
    pub share_unnamed: f64,
    /// Libraries without symbols, most affected bytes first.
    pub missing: Vec<MissingLibrary>,
}

/// Library whose frames have no names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingLibrary {
    /// Path on the device.
    pub path: String,
    /// GNU build ID in hexadecimal; empty if unknown.
    pub build_id: String,
    /// Number of distinct frames.
    pub frames: u64,
    /// Share of the bytes with one of its frames in the callstack.
    pub share: f64,
}

/// Number of entries in each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Texts; the first is empty.
    pub strings: usize,
    /// Libraries; the first is the unknown library.
    pub libraries: usize,
    pub functions: usize,
    pub frames: usize,
    /// Callsites, including the root.
    pub nodes: usize,
}

/// Part of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    /// Start in bytes from the end of the header.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

/// Column of a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Name of the pprof sample type.
    pub name: String,
    /// `bytes`, `count`, or the unit of another tool.
    pub unit: String,
    /// `space`, `objects`, `alloc_space`, `alloc_objects`; absent for another tool's measure.
    pub view: Option<String>,
    /// Sum over all callsites.
    pub total: i64,
    /// Measure to add to the column to obtain its values.
    #[serde(rename = "from")]
    pub derived: Option<DerivedMeasure>,
    /// Byte view whose potentially small samples this column counts, if callsites were summed. It
    /// is used for the error of that view and is not a measure to display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_of: Option<String>,
}

/// Multiple of an earlier measure of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedMeasure {
    /// Index of that measure.
    pub measure: usize,
    /// Factor.
    pub times: i64,
}

/// Dump with its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// Number among the dumps of its process and heap, from 1: `N` of `@N`.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Index of its series.
    pub series: usize,
    /// Process ID; 0 if unknown.
    pub pid: u64,
    pub process: String,
    pub heap: String,
    /// Milliseconds since the device booted.
    pub time_ms: Option<f64>,
    /// Milliseconds since 1970.
    pub wall_ms: Option<f64>,
    /// Sampling interval in bytes; 0 if unknown, 1 if exact.
    pub interval: u64,
    /// Requested interval if different, otherwise 0.
    pub orig_interval: u64,
    #[serde(default)]
    pub counts_samples: bool,
    /// Meaning of the values.
    pub kind: DumpKind,
    /// Flags set by the daemon.
    pub flags: Vec<String>,
    /// Whether a part is missing.
    pub unfinished: bool,
    /// Number of callsites with a value.
    pub callsites: usize,
    pub measures: Vec<Measure>,
    /// Index of the measure to show by default.
    pub default_measure: usize,
    /// Index of the dump whose values are to be added.
    pub base: Option<usize>,
    /// Number of rows in its section.
    pub rows: usize,
}

/// Dumps of one heap in one run of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub pid: u64,
    pub process: String,
    pub heap: String,
    /// Start of profiling in milliseconds since boot.
    pub start_ms: Option<f64>,
    /// Whether profiling began with the process.
    pub from_startup: bool,
    /// Index of the series before a restart.
    pub after: Option<usize>,
    /// Indexes of its dumps in chronological order.
    pub dumps: Vec<usize>,
    /// Index of the dump that is shown first.
    pub shown: usize,
}

/// Growth over a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Index of the series.
    pub series: usize,
    /// Name of an iteration.
    pub per: String,
    /// Number of iterations.
    pub rounds: u64,
    /// Callsites, growing ones first.
    pub sites: Vec<GrowthSite>,
}

/// Callsite with its growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthSite {
    /// Function that represents it.
    pub function: String,
    /// Library of that function.
    pub library: String,
    /// Functions that allocate, if they are others: without symbols, places in a library.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocators: Vec<String>,
    /// Bytes per iteration.
    pub per_round: Interval,
    /// `confirmed`, `within-sampling-error`, `inconclusive`.
    pub verdict: String,
    /// Verdict as a sentence.
    pub says: String,
}

/// Value with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

/// Comparison that the page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// Name of the first side.
    pub before: String,
    /// Name of the second side.
    pub after: String,
    /// Pairs of compared dumps.
    pub pairs: Vec<Pair>,
    /// Whether both sides are from one recording.
    pub same_recording: bool,
    /// Divisor of the differences.
    pub per: Option<Per>,
}

/// Indexes of two dumps of one heap; absent if a side does not have the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// Repetitions between two dumps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Per {
    /// Number of repetitions.
    pub times: f64,
    /// Name of a repetition.
    pub word: String,
}

impl Per {
    /// Creates a divisor of iterations.
    pub fn iterations(times: f64) -> Per {
        Per {
            times,
            word: "iteration".to_owned(),
        }
    }
}

/// Summing of the callsites with the fewest bytes in their callers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Number of callsites with values of which all frames remain.
    pub kept: usize,
    /// Number of callsites with values.
    pub of: usize,
    /// Whether sums have functions.
    pub functions: bool,
    /// Whether sums have all libraries of their stacks, rather than only the one that owns the memory.
    pub libraries: bool,
    /// Summed part of the first measure, by dump.
    pub bytes: Vec<i64>,
    /// Command that writes the page with all callsites.
    pub command: String,
}

/// Java heap with a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JavaHeap {
    /// Section name.
    pub section: String,
    pub name: String,
    /// Name of the dump: its input, and its label or number.
    #[serde(default)]
    pub dump: String,
    /// Number among the dumps of its process and heap, from 1: `N` of `@N`.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    pub pid: Option<u64>,
    pub process: String,
    /// Milliseconds since the device booted.
    pub time_ms: Option<f64>,
    /// Milliseconds since 1970.
    pub wall_ms: Option<f64>,
    /// Number of reachable objects.
    pub objects: u64,
    /// Shallow bytes.
    pub shallow: u64,
    /// Native bytes owned by the objects.
    pub native: u64,
    /// Bytes of unreachable objects, Java and native.
    #[serde(default)]
    pub unreachable: u64,
    /// Name of the dump that it is compared with. The page opens on this heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// Leaks, the most severe ones first.
    pub leaks: Vec<JavaLeak>,
}

/// Leaking objects of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaLeak {
    pub class: String,
    /// Bytes, Java and native.
    pub retained: u64,
}

/// Memory over time of one of several recordings, on its own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the recording, unique on the page.
    pub name: String,
    /// Index of its first dump.
    pub from: usize,
    /// Index behind its last dump.
    pub to: usize,
    pub timeline: Timeline,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Program that wrote the page.
    pub tool: String,
    /// Time of writing in milliseconds since 1970.
    pub made_wall_ms: Option<f64>,
    pub title: String,
    /// Facts about the recording.
    pub facts: Vec<Fact>,
    pub warnings: Vec<Warning>,
    /// Memory by kind.
    #[serde(rename = "where")]
    pub went: Option<Where>,
    /// Memory that the profile does not cover.
    pub unseen: Vec<Unseen>,
    /// Commands for next steps.
    pub commands: Vec<Command>,
    pub symbolization: Option<Symbolization>,
    pub counts: Counts,
    pub sections: Vec<Section>,
    /// Dumps of native heaps.
    pub dumps: Vec<Dump>,
    pub series: Vec<Series>,
    pub growth: Vec<Growth>,
    /// Comparison that the page shows.
    pub diff: Option<Diff>,
    /// Summing of callsites, if not all are listed.
    pub folded: Option<Folded>,
    pub java: Vec<JavaHeap>,
    /// Memory over time; absent without companion data, and in pages of earlier versions.
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// Memory over time of each of several recordings, each on its own clock; empty for one
    /// recording, and in pages of earlier versions.
    #[serde(default)]
    pub timelines: Vec<Recorded>,
    /// Values of the profile, the allocator and the system side by side, latest first; empty if
    /// there are none to compare, and in pages of earlier versions.
    #[serde(default)]
    pub reconcile: Vec<Reconciled>,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            format: FORMAT,
            tool: String::new(),
            made_wall_ms: None,
            title: String::new(),
            facts: Vec::new(),
            warnings: Vec::new(),
            went: None,
            unseen: Vec::new(),
            commands: Vec::new(),
            symbolization: None,
            counts: Counts {
                strings: 1,
                libraries: 1,
                nodes: 1,
                ..Counts::default()
            },
            sections: Vec::new(),
            dumps: Vec::new(),
            series: Vec::new(),
            growth: Vec::new(),
            diff: None,
            folded: None,
            java: Vec::new(),
            timeline: None,
            timelines: Vec::new(),
            reconcile: Vec::new(),
        }
    }
}
