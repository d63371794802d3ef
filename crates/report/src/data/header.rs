//! The header of the data block: what is known beside the numbers, and where those stand.
//! `docs/report-format.md` describes every field.

use serde::{Deserialize, Serialize};

use super::reconcile::Reconciled;
use super::timeline::Timeline;

/// Version of the format that is written, and the only one that is read.
pub const FORMAT: u32 = 1;

/// A name and what stands under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
}

/// What the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable word.
    pub kind: Option<String>,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The dumps it is about, by place; none where it is about all.
    pub dumps: Vec<usize>,
}

/// Where the memory went, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Where {
    /// Bytes of the whole; absent where nothing measured it.
    pub total: Option<u64>,
    /// What the whole is a measure of.
    pub of: Option<String>,
    /// The label or time of the figures.
    pub at: Option<String>,
    /// The kinds.
    pub parts: Vec<Part>,
}

/// Memory of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// `native`, `java`, `graphics`, `code`, `stack`, `other`, `unseen`.
    pub name: String,
    /// Bytes; absent where they are not known. What is shared may be less than nothing.
    pub bytes: Option<i64>,
    /// Where the figure comes from.
    pub how: String,
}

/// Memory that a profile of this kind can't see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Which.
    pub what: String,
    /// Why it is not seen, and what shows it.
    pub why: String,
    /// Bytes, where something measured them.
    pub bytes: Option<u64>,
}

/// A command to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// What it does.
    pub what: String,
    /// As it is typed.
    pub command: String,
}

/// How many frames carry names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Symbolization {
    /// Distinct frames with a name.
    pub frames_named: u64,
    /// Distinct frames without.
    pub frames_unnamed: u64,
    /// Distinct frames whose file and line are known.
    pub frames_with_lines: u64,
    /// Share of the bytes whose allocating function has no name.
    pub leaf_share_unnamed: f64,
    /// Share of the bytes in whose callstacks some frame has no name.
    pub share_unnamed: f64,
    /// Libraries without symbols, those that hide most bytes first.
    pub missing: Vec<MissingLibrary>,
}

/// A library whose frames have no names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingLibrary {
    /// Its path on the device.
    pub path: String,
    /// GNU build ID in hexadecimal; empty where not known.
    pub build_id: String,
    /// Its distinct frames.
    pub frames: u64,
    /// Share of the bytes in whose callstacks one of them stands.
    pub share: f64,
}

/// Entries of each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Texts; the first is the empty one.
    pub strings: usize,
    /// Libraries; the first is the one that is not known.
    pub libraries: usize,
    /// Functions.
    pub functions: usize,
    /// Frames.
    pub frames: usize,
    /// Callsites, the root among them.
    pub nodes: usize,
}

/// A part of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Where it begins, from the end of the header.
    pub offset: usize,
    /// Bytes of it.
    pub length: usize,
}

/// A column of a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Name of the pprof's sample type.
    pub name: String,
    /// `bytes`, `count`, or another tool's word.
    pub unit: String,
    /// `space`, `objects`, `alloc_space`, `alloc_objects`; absent for another tool's.
    pub view: Option<String>,
    /// Sum of all callsites.
    pub total: i64,
    /// What is to be added to the column for its values.
    #[serde(rename = "from")]
    pub derived: Option<DerivedMeasure>,
    /// The view of bytes of which it counts the samples that may be small, where callsites were
    /// summed; it is for the error of that view, and no measure to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_of: Option<String>,
}

/// A multiple of an earlier measure of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedMeasure {
    /// Place of that measure.
    pub measure: usize,
    /// How many times.
    pub times: i64,
}

/// A dump and its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// Which dump of its process and heap it is, from 1: `N` of `@N`.
    pub number: u32,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// Its series, by place.
    pub series: usize,
    /// Process id; 0 where not known.
    pub pid: u64,
    /// Process name.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// Milliseconds since the device's boot.
    pub time_ms: Option<f64>,
    /// Milliseconds since 1970.
    pub wall_ms: Option<f64>,
    /// Sampling interval in bytes; 0 not known, 1 exact.
    pub interval: u64,
    /// The interval that was asked for, where it differs; else 0.
    pub orig_interval: u64,
    /// `cumulative`, `at-maximum`, `allocations-only`.
    pub kind: String,
    /// The daemon's flags that are set.
    pub flags: Vec<String>,
    /// Something of it is missing.
    pub unfinished: bool,
    /// Callsites with a value.
    pub callsites: usize,
    /// Its columns.
    pub measures: Vec<Measure>,
    /// Place of the measure that is shown where none was asked for.
    pub default_measure: usize,
    /// The dump whose values are to be added, by place.
    pub base: Option<usize>,
    /// Rows of its section.
    pub rows: usize,
}

/// Dumps of one heap of one life of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Process id.
    pub pid: u64,
    /// Process name.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// When profiling of it began, in milliseconds since boot.
    pub start_ms: Option<f64>,
    /// Whether it was profiled from its start.
    pub from_startup: bool,
    /// The series before a restart, by place.
    pub after: Option<usize>,
    /// Its dumps, by place, in order of time.
    pub dumps: Vec<usize>,
}

/// What grew over a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The series, by place.
    pub series: usize,
    /// What a round is.
    pub per: String,
    /// How many rounds.
    pub rounds: u64,
    /// Callsites, those that grow first.
    pub sites: Vec<GrowthSite>,
}

/// A callsite and how it grew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthSite {
    /// The function that stands for it.
    pub function: String,
    /// The library of that function.
    pub library: String,
    /// Bytes a round.
    pub per_round: Interval,
    /// `grows`, `within-noise`, `cant-tell`.
    pub verdict: String,
    /// The verdict as a sentence.
    pub says: String,
}

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A difference that the page was made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// What the first side is called.
    pub before: String,
    /// What the second is called.
    pub after: String,
    /// Which dumps are compared.
    pub pairs: Vec<Pair>,
    /// Whether both are of one recording.
    pub same_recording: bool,
    /// What differences are divided by.
    pub per: Option<Per>,
}

/// Two dumps of one heap, by place; none where that side has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The first.
    pub before: Option<usize>,
    /// The second.
    pub after: Option<usize>,
}

/// How often something was done between two dumps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Per {
    /// How often.
    pub times: f64,
    /// What.
    pub word: String,
}

impl Per {
    /// By iteration.
    pub fn iterations(times: f64) -> Per {
        Per {
            times,
            word: "iteration".to_owned(),
        }
    }
}

/// That the callsites with the fewest bytes stand summed in their callers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// Callsites that are there.
    pub kept: usize,
    /// Callsites that there were.
    pub of: usize,
    /// Whether sums stand by function, too; else by library alone.
    pub functions: bool,
    /// By dump how much of its first measure is summed.
    pub bytes: Vec<i64>,
    /// Writes the page with all of them.
    pub command: String,
}

/// A Java heap that has a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JavaHeap {
    /// Its section.
    pub section: String,
    /// What it is called.
    pub name: String,
    /// Which dump of its process and heap it is, from 1: `N` of `@N`.
    pub number: u32,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// Process id.
    pub pid: Option<u64>,
    /// Process name.
    pub process: String,
    /// Milliseconds since the device's boot.
    pub time_ms: Option<f64>,
    /// Milliseconds since 1970.
    pub wall_ms: Option<f64>,
    /// Reachable objects.
    pub objects: u64,
    /// Their own bytes.
    pub shallow: u64,
    /// Native bytes that they own.
    pub native: u64,
    /// What the dump is called that it is compared with: the page opens on this heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
}

/// What was read over time in one of several recordings, on that one's own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// What the recording is called; no other of the page is called so.
    pub name: String,
    /// Where its dumps begin in the list of all.
    pub from: usize,
    /// Where they end: the place behind the last one.
    pub to: usize,
    /// Its memory over time.
    pub timeline: Timeline,
}

/// The header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Who wrote it.
    pub tool: String,
    /// When, in milliseconds since 1970.
    pub made_wall_ms: Option<f64>,
    /// What the page is about.
    pub title: String,
    /// What is known of the recording.
    pub facts: Vec<Fact>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// Where the memory went.
    #[serde(rename = "where")]
    pub went: Option<Where>,
    /// What is not seen.
    pub unseen: Vec<Unseen>,
    /// How to go on.
    pub commands: Vec<Command>,
    /// How many frames carry names.
    pub symbolization: Option<Symbolization>,
    /// Entries of the tables.
    pub counts: Counts,
    /// The parts.
    pub sections: Vec<Section>,
    /// The dumps of native heaps.
    pub dumps: Vec<Dump>,
    /// Which dumps belong together.
    pub series: Vec<Series>,
    /// What grew.
    pub growth: Vec<Growth>,
    /// The difference that the page was made for.
    pub diff: Option<Diff>,
    /// That not all callsites are there.
    pub folded: Option<Folded>,
    /// The Java heaps.
    pub java: Vec<JavaHeap>,
    /// Memory over time; absent where nothing was read beside the dumps, and in pages of
    /// earlier versions.
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// Memory over time of each of several recordings, each with a clock of its own; empty in a
    /// page of one, and in pages of earlier versions.
    #[serde(default)]
    pub timelines: Vec<Recorded>,
    /// Figures of the profile, the allocator and the system side by side, the last moment first;
    /// empty where the recording has none to compare, and in pages of earlier versions.
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
