//! Figures of processes over time, on the device's clock, for the live view, the recording's
//! timeline file, and the page. Each entry is one complete line of JSON, so that all earlier lines
//! survive if the writer is killed.

use serde::{Deserialize, Serialize};

/// Name of the file in a recording's directory.
pub const FILE: &str = "memory.jsonl";

/// Maximum length of a valid line in bytes.
const MAX_LINE_LENGTH: usize = 64 << 10;

/// An observation at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// BOOTTIME of the device, ns.
    pub boot_ns: u64,
    /// Process ID; 0 for the whole device.
    pub pid: u32,
    /// Cost of the reading, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    #[serde(flatten)]
    pub seen: Observation,
}

/// Cost of a reading for the device and the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Duration on the device's clock, ns.
    pub device_ns: u64,
    /// Bytes received over the connection.
    pub bytes: u64,
}

/// An observation of a process or of the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observation {
    /// A process is observed from here on: it was running, or it (re)started.
    Process(Process),
    /// The process is gone.
    Gone,
    /// Resident memory.
    Resident(Resident),
    /// Memory of a process by category.
    Parts(Parts),
    /// Memory that the graphics driver counts for the process.
    Graphics(Graphics),
    /// Size of the Java heap as counted by the runtime.
    JavaHeap(JavaHeap),
    /// A garbage collection; `boot_ns` is its end.
    Collection(Collection),
    /// Memory of the whole device.
    System(System),
    /// A label was set.
    Label(Label),
    /// An action of heaptap that affects other figures.
    HeaptapAction(HeaptapAction),
    /// A source that could not be read, reported once.
    Unreadable(Unread),
    /// A companion file was written.
    Captured(Kept),
    /// A capture of a label that is missing.
    Missed(Missed),
    /// A time without observations: no sample, no log.
    Gap(Gap),
    /// Cost of the observation so far for the device.
    Cost(ObservationCost),
}

/// Source of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `/proc/PID/status`.
    Status,
    /// `dumpsys meminfo --local`, which never calls the app.
    MeminfoLocal,
    /// `dumpsys meminfo`, for which the app runs a GC.
    Meminfo,
    /// `/proc/PID/smaps`.
    Smaps,
    /// `dumpsys gfxinfo`.
    Gfxinfo,
    /// dma-buf files.
    Dmabuf,
    /// `linux.process_stats` in the trace.
    ProcessStats,
    /// `linux.sys_stats` in the trace.
    SysStats,
    /// The `dalvik` category of `linux.ftrace` in the trace.
    Ftrace,
    /// The device's log.
    Log,
}

impl Source {
    /// Returns the word used in the lines.
    pub fn word(self) -> &'static str {
        match self {
            Source::Status => "status",
            Source::MeminfoLocal => "meminfo-local",
            Source::Meminfo => "meminfo",
            Source::Smaps => "smaps",
            Source::Gfxinfo => "gfxinfo",
            Source::Dmabuf => "dmabuf",
            Source::ProcessStats => "process-stats",
            Source::SysStats => "sys-stats",
            Source::Ftrace => "ftrace",
            Source::Log => "log",
        }
    }

    /// Returns the figures that are missing without this source; empty if others have them, too.
    fn figures(self) -> &'static str {
        match self {
            Source::Status => "resident memory is missing",
            Source::MeminfoLocal | Source::Meminfo => "the parts of meminfo are missing",
            Source::Smaps => "the memory mappings are missing",
            Source::Gfxinfo => "the GPU memory of the app is missing",
            Source::Dmabuf => "the size of graphics buffers (dma-bufs) is missing",
            Source::Log => "collections that only the log has are missing",
            Source::ProcessStats | Source::SysStats | Source::Ftrace => "",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub name: String,
    /// Another process of this name was observed before: the process was restarted.
    #[serde(default)]
    pub restarted: bool,
}

/// Resident memory of a process, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    pub source: Source,
    /// Total resident memory (VmRSS).
    pub rss: u64,
    /// Anonymous (RssAnon, Linux 4.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anon: Option<u64>,
    /// Memory of files (RssFile).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u64>,
    /// Shared (RssShmem).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shmem: Option<u64>,
    /// In swap or ZRAM, before compression (VmSwap).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    /// Peak resident memory (VmHWM).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// OOM score adjustment, -1000 to 1000: the higher, the sooner the low-memory killer kills the
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_score_adj: Option<i32>,
}

impl Resident {
    /// Creates figures with nothing but the total.
    pub fn new(source: Source, rss: u64) -> Resident {
        Resident {
            source,
            rss,
            anon: None,
            file: None,
            shmem: None,
            swap: None,
            peak: None,
            oom_score_adj: None,
        }
    }
}

/// Memory of a process by category, by the rules of meminfo's App Summary. Bytes of private pages,
/// except `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub source: Source,
    /// Dalvik Heap's private dirty and .art's private pages.
    pub java: i64,
    /// Native Heap's private dirty.
    pub native: i64,
    /// Private pages of .so, .jar, .apk, .ttf, .dex, .oat (and JIT code since Android 11).
    pub code: i64,
    /// Private dirty of stacks.
    pub stack: i64,
    /// Private pages of Gfx dev, EGL mtrack, GL mtrack.
    pub graphics: i64,
    /// Other private pages.
    pub private_other: i64,
    /// Shared pages, counted proportionally, and swap; can be negative.
    pub system: i64,
    /// Sum as the source gives it: PSS with swapped PSS.
    pub total_pss: i64,
    /// Resident memory, if the source has it (Android 11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rss: Option<u64>,
    /// Swapped memory, as PSS if the kernel has that figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    /// The allocator's own figures; absent with `--local`, which does not call the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_heap: Option<HeapCells>,
    /// The Java runtime's own figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java_heap: Option<HeapCells>,
}

/// Heap Size, Heap Alloc and Heap Free of a row of meminfo, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapCells {
    /// Size of the heap.
    pub size: u64,
    /// Allocated bytes.
    pub alloc: u64,
    /// Free bytes.
    pub free: u64,
}

/// Memory of buffers and textures, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graphics {
    pub source: Source,
    /// GPU memory of the process.
    pub bytes: u64,
}

/// The Java heap's own counter, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaHeap {
    pub source: Source,
    /// Allocated bytes, including garbage.
    pub allocated: u64,
}

/// A garbage collection. Values missing in the log line or trace are `None`; 0 means 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collection {
    pub source: Option<Source>,
    /// Cause: `Background`, `Alloc`, `Explicit`, `NativeAlloc`, `GC_FOR_ALLOC` …
    pub reason: String,
    /// Collector: `concurrent copying`, `young concurrent copying`, `concurrent mark compact` …;
    /// empty for Dalvik.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub collector: String,
    /// Number of freed objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_objects: Option<u64>,
    /// Freed bytes without large objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_bytes: Option<i64>,
    /// Number of freed large objects, and their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_large: Option<(u64, i64)>,
    /// Live set afterwards, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<u64>,
    /// Size of the heap afterwards, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Durations of the pauses of the app, ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<u64>,
    /// Total duration, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// heaptap itself caused the GC.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "by_heaptap")]
    pub ours: bool,
}

impl Collection {
    /// Returns the freed bytes including large objects; `None` if unknown.
    pub fn freed(&self) -> Option<i64> {
        let large = self.freed_large.map(|(_, bytes)| bytes);
        match (self.freed_bytes, large) {
            (None, None) => None,
            (small, large) => Some(small.unwrap_or(0).saturating_add(large.unwrap_or(0))),
        }
    }
}

/// Memory of the device, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    pub source: Source,
    /// MemTotal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// MemAvailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<u64>,
    /// MemFree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// SwapFree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_free: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The label as given.
    pub label: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaptapAction {
    /// `meminfo`, `gc`, `java-dump`, `trim-memory`, a step of `provoke`.
    pub what: String,
    /// Latest time at which it can appear in the log, BOOTTIME ns; `boot_ns` is its start.
    pub until_ns: u64,
}

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    pub source: Source,
    /// Reason in words.
    pub why: String,
}

impl Unread {
    /// Returns the reason and the figures that are missing.
    pub fn reason(&self) -> String {
        match self.source.figures() {
            "" => self.why.clone(),
            figures => format!("{}; without it, {figures}", self.why),
        }
    }
}

impl std::fmt::Display for Unread {
    /// Writes the source, the reason and the figures that are missing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.source.word(), self.reason())
    }
}

/// A companion file: one complete capture of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Kind of content: `meminfo`, `smaps`, `java-heap`, `malloc-info` …
    pub what: String,
    /// Path in the recording's directory, with forward slashes.
    pub file: String,
    /// Label of the capture; empty for the end of the recording.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Position of the label among the labels, from 1; the end comes after the last.
    pub number: u32,
}

/// A missing capture of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// As in [`Kept::what`].
    pub what: String,
    /// As in [`Kept::label`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// As in [`Kept::number`].
    pub number: u32,
    /// A reason that other code checks; absent for any other reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<MissedReason>,
    /// Reason in words.
    pub why: String,
}

/// A reason for a missing capture that affects messages about the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedReason {
    /// No target was running.
    NoTarget,
    /// The recording ran detached, without a heaptap process.
    Detached,
    /// The heaptap process that should have taken the capture had ended.
    Stopped,
    /// A reason of a later version of heaptap.
    #[serde(other)]
    Other,
}

impl MissedReason {
    /// Returns the reason in words.
    pub fn why(self) -> &'static str {
        match self {
            MissedReason::NoTarget => "no target was running",
            MissedReason::Detached => "the recording ran detached, so heaptap did not follow it",
            MissedReason::Stopped => "heaptap no longer followed the recording",
            MissedReason::Other => "heaptap could not take it",
        }
    }

    /// Returns the reason with these words: earlier versions recorded only the words.
    pub fn of_words(why: &str) -> Option<MissedReason> {
        let all = [
            MissedReason::NoTarget,
            MissedReason::Detached,
            MissedReason::Stopped,
        ];
        all.into_iter().find(|reason| reason.why() == why)
    }
}

/// A time without observations: the cable was disconnected, or no process observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// End, BOOTTIME ns; `boot_ns` is the start.
    pub until_ns: u64,
    /// Reason in words.
    pub why: String,
}

/// Cost of the observation for the device since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ObservationCost {
    /// Start, BOOTTIME ns; `boot_ns` is the end.
    pub since_ns: u64,
    /// CPU time of the loop on the device and of the programs it started, ns.
    pub cpu_ns: u64,
    /// Maximum time for which services of the device worked for it, ns.
    pub waited_ns: u64,
    /// Bytes over the connection.
    pub bytes: u64,
    /// Number of iterations of the loop.
    #[serde(rename = "polls")]
    pub rounds: u64,
    /// Number of requests to services: meminfo, graphics.
    #[serde(rename = "requests")]
    pub questions: u64,
    /// Number of commands sent over the connection.
    pub round_trips: u64,
}

/// Observations of all processes, in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// Entries ordered by `boot_ns`; those of one time in the order of arrival.
    pub entries: Vec<Entry>,
}

impl Timeline {
    /// Parses lines of JSON. An incomplete last line, which a killed writer leaves, is dropped; the
    /// number of other invalid lines is returned, too.
    pub fn parse(text: &str) -> (Timeline, usize) {
        let mut timeline = Timeline::default();
        let mut strange = 0;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines().filter(|line| !line.trim().is_empty()) {
            // A line takes many times its length while it is parsed.
            let line = Some(line).filter(|line| line.len() <= MAX_LINE_LENGTH);
            match line.map(serde_json::from_str) {
                Some(Ok(entry)) => timeline.entries.push(entry),
                _ => strange += 1,
            }
        }
        timeline.sort();
        (timeline, strange)
    }

    /// Adds the observations of another source.
    pub fn merge(&mut self, other: Timeline) {
        // There can be millions of entries: they are moved only if necessary.
        match self.entries.is_empty() {
            true => self.entries = other.entries,
            false => self.entries.extend(other.entries),
        }
        self.sort();
    }

    /// Adds entries, in order of time, each before all others of the same time.
    pub fn precede(&mut self, entries: Vec<Entry>) {
        let added = entries.len();
        self.entries.extend(entries);
        self.entries.rotate_right(added);
        self.sort();
    }

    /// Sorts the entries by time; those of one time keep their order.
    pub fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.boot_ns);
    }
}

impl Entry {
    /// Returns the entry as a line, with the newline.
    pub fn line(&self) -> String {
        // Plain data with string keys always serializes to JSON.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_source_names_the_figures_that_are_missing() {
        let unread = |source| {
            let why = "not for the shell".to_owned();
            Unread { source, why }.to_string()
        };
        assert_eq!(
            unread(Source::Dmabuf),
            "dmabuf: not for the shell; without it, the size of graphics buffers (dma-bufs) is \
             missing"
        );
        assert_eq!(unread(Source::Ftrace), "ftrace: not for the shell");
    }

    #[test]
    fn a_source_is_called_what_its_lines_call_it() {
        let all = [
            Source::Status,
            Source::MeminfoLocal,
            Source::Meminfo,
            Source::Smaps,
            Source::Gfxinfo,
            Source::Dmabuf,
            Source::ProcessStats,
            Source::SysStats,
            Source::Ftrace,
            Source::Log,
        ];
        for source in all {
            assert_eq!(serde_json::to_value(source).unwrap(), source.word());
        }
    }

    #[test]
    fn a_line_comes_back_as_it_was_and_a_torn_one_is_dropped() {
        let entry = Entry {
            boot_ns: 5,
            pid: 7,
            cost: Some(Cost {
                device_ns: 3,
                bytes: 4,
            }),
            seen: Observation::Collection(Collection {
                source: Some(Source::Log),
                reason: "Explicit".to_owned(),
                freed_large: Some((1, -2)),
                ours: true,
                ..Collection::default()
            }),
        };
        let gone = Entry {
            boot_ns: 1,
            pid: 7,
            cost: None,
            seen: Observation::Gone,
        };
        let text = format!(
            "{}{}{{\"no\":1}}\n{{\"boot_ns\":9",
            entry.line(),
            gone.line()
        );
        let (timeline, strange) = Timeline::parse(&text);
        assert_eq!(timeline.entries, [gone, entry]);
        assert_eq!(strange, 1);
    }
}
