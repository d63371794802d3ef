//! What was read of processes at which moment, on the phone's clock: what the live view shows,
//! what a recording keeps beside its trace, and what the page draws below its dumps. Each entry
//! is one line of JSON, complete in itself, so that whatever kills the writer leaves all lines
//! before.

use serde::{Deserialize, Serialize};

/// Name of the file in a recording's folder.
pub const FILE: &str = "memory.jsonl";

/// A longer line is none of ours.
const LONGEST_LINE: usize = 64 << 10;

/// What was seen at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// BOOTTIME of the phone, ns.
    pub boot_ns: u64,
    /// The process; 0 where it is about the whole phone.
    pub pid: u32,
    /// What the reading cost, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What was seen.
    #[serde(flatten)]
    pub seen: Observation,
}

/// What a reading cost the phone and the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// From its begin to its end on the phone's clock, ns.
    pub device_ns: u64,
    /// Bytes that came over the connection.
    pub bytes: u64,
}

/// What was seen of a process, or of the phone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observation {
    /// A process is followed from here on: it was there, or it (re)started.
    Process(Process),
    /// It is gone.
    Gone,
    /// Resident memory.
    Resident(Resident),
    /// How the memory divides.
    Parts(Parts),
    /// Memory that the graphics driver counts for the process.
    Graphics(Graphics),
    /// The Java heap's size as the runtime counts it.
    JavaHeap(JavaHeap),
    /// A garbage collection; `boot_ns` is its end.
    Collection(Collection),
    /// The whole phone's memory.
    System(System),
    /// A label was set.
    Label(Label),
    /// Something that heaptap did and that shows in other figures.
    Ours(HeaptapAction),
    /// Something that could not be read, told once.
    Unread(Unread),
    /// A file was written beside the timeline.
    Kept(Kept),
    /// What a label should have had taken, and has not.
    Missed(Missed),
    /// Nothing could be seen for a while: no sample, no log.
    Gap(Gap),
    /// What the observing itself has taken of the phone, so far.
    Spent(ObservationCost),
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `/proc/PID/status`.
    Status,
    /// `dumpsys meminfo --local`: never calls the app.
    MeminfoLocal,
    /// `dumpsys meminfo`: the app collects garbage for it.
    Meminfo,
    /// `/proc/PID/smaps`.
    Smaps,
    /// `dumpsys gfxinfo`.
    Gfxinfo,
    /// Files of dma-buf.
    Dmabuf,
    /// `linux.process_stats` in the trace.
    ProcessStats,
    /// `linux.sys_stats` in the trace.
    SysStats,
    /// The `dalvik` category of `linux.ftrace` in the trace.
    Ftrace,
    /// The phone's log.
    Log,
}

impl Source {
    /// As the lines have it.
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
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Whether another process of this name was followed before: it was restarted.
    #[serde(default)]
    pub restarted: bool,
}

/// Resident memory of a process, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Where it comes from.
    pub source: Source,
    /// All of it (VmRSS).
    pub rss: u64,
    /// Anonymous (RssAnon, Linux 4.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anon: Option<u64>,
    /// Of files (RssFile).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u64>,
    /// Shared (RssShmem).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shmem: Option<u64>,
    /// In swap or ZRAM, before compression (VmSwap).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    /// The most that was ever resident (VmHWM).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// How willingly the low-memory killer takes it: -1000 to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_score_adj: Option<i32>,
}

impl Resident {
    /// Of which no more is known.
    pub fn of(source: Source, rss: u64) -> Resident {
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

/// How the memory of a process divides, by the rules of meminfo's App Summary. Bytes; private
/// pages, but `system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Where it comes from.
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
    /// What else is private.
    pub private_other: i64,
    /// What is shared, by its share, and swap; may be negative.
    pub system: i64,
    /// The sum, as the source gives it: PSS with swapped PSS.
    pub total_pss: i64,
    /// Resident, where the source says (Android 11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_rss: Option<u64>,
    /// Swapped out, PSS where the kernel knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    /// The allocator's own figures; absent with `--local`, which doesn't ask the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_heap: Option<HeapCells>,
    /// The Java runtime's own figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java_heap: Option<HeapCells>,
}

/// Heap Size, Heap Alloc and Heap Free of a row of meminfo, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapCells {
    /// What the heap takes up.
    pub size: u64,
    /// What is allocated in it.
    pub alloc: u64,
    /// What is free in it.
    pub free: u64,
}

/// Memory of buffers and textures, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graphics {
    /// Where it comes from.
    pub source: Source,
    /// GPU memory of the process.
    pub bytes: u64,
}

/// The Java heap's own counter, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaHeap {
    /// Where it comes from.
    pub source: Source,
    /// Allocated, garbage included.
    pub allocated: u64,
}

/// A garbage collection. What a log line or a trace leaves out is `None`; 0 means 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collection {
    /// Where it comes from.
    pub source: Option<Source>,
    /// Why: `Background`, `Alloc`, `Explicit`, `NativeAlloc`, `GC_FOR_ALLOC` …
    pub reason: String,
    /// How: `concurrent copying`, `young concurrent copying`, `concurrent mark compact` …;
    /// empty for Dalvik.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub collector: String,
    /// Objects freed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_objects: Option<u64>,
    /// Bytes freed, large objects not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_bytes: Option<i64>,
    /// Large objects freed, and their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_large: Option<(u64, i64)>,
    /// What is live afterwards, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<u64>,
    /// The heap's size afterwards, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// How long it stopped the app, each time, ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<u64>,
    /// How long it took in all, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// heaptap itself caused it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

impl Collection {
    /// What it freed, large objects with the others, bytes; `None` where it is not told.
    pub fn freed(&self) -> Option<i64> {
        let large = self.freed_large.map(|(_, bytes)| bytes);
        match (self.freed_bytes, large) {
            (None, None) => None,
            (small, large) => Some(small.unwrap_or(0).saturating_add(large.unwrap_or(0))),
        }
    }
}

/// The phone's memory, bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Where it comes from.
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

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// As it was given.
    pub label: String,
}

/// Something that heaptap did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaptapAction {
    /// `meminfo`, `gc`, `java-dump`, `trim-memory`, a step of `provoke`.
    pub what: String,
    /// Until when it may show in the log, BOOTTIME ns; `boot_ns` is its begin.
    pub until_ns: u64,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// What was tried.
    pub source: Source,
    /// Why not.
    pub why: String,
}

/// A file beside the timeline: what a label had taken, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What it holds: `meminfo`, `smaps`, `java-heap`, `malloc-info` …
    pub what: String,
    /// Its name in the recording's folder, with forward slashes.
    pub file: String,
    /// The label it was taken for; empty for the end of the recording.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The label's place among the labels, from 1; the end comes after the last.
    pub number: u32,
}

/// What a label should have had taken, and has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// As in [`Kept::what`].
    pub what: String,
    /// As in [`Kept::label`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// As in [`Kept::number`].
    pub number: u32,
    /// Which of the reasons that others ask for; absent for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<MissedReason>,
    /// Why.
    pub why: String,
}

/// A reason that decides what is said of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedReason {
    /// Nothing was there to take.
    NoTarget,
    /// The recording ran without a heaptap.
    Detached,
    /// The heaptap that would have taken it had ended.
    Stopped,
    /// One that a later heaptap knows.
    #[serde(other)]
    Other,
}

impl MissedReason {
    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            MissedReason::NoTarget => "no target was running",
            MissedReason::Detached => "the recording ran detached, so heaptap did not follow it",
            MissedReason::Stopped => "heaptap no longer followed the recording",
            MissedReason::Other => "heaptap could not take it",
        }
    }

    /// The reason that has these words: earlier versions noted no other.
    pub fn of_words(why: &str) -> Option<MissedReason> {
        let all = [
            MissedReason::NoTarget,
            MissedReason::Detached,
            MissedReason::Stopped,
        ];
        all.into_iter().find(|reason| reason.why() == why)
    }
}

/// A time of which nothing is known: the cable was out, or nobody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Its end, BOOTTIME ns; `boot_ns` is its begin.
    pub until_ns: u64,
    /// Why.
    pub why: String,
}

/// What observing has taken of the phone since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ObservationCost {
    /// Begin, BOOTTIME ns; `boot_ns` is until when.
    pub since_ns: u64,
    /// Time that the loop on the phone was on a CPU, with the programs it started, ns.
    pub cpu_ns: u64,
    /// Time for which services of the phone were at work for it, at most, ns.
    pub waited_ns: u64,
    /// Bytes over the connection.
    pub bytes: u64,
    /// Rounds of the loop.
    pub rounds: u64,
    /// Questions to services: meminfo, graphics.
    pub questions: u64,
    /// Commands sent over the connection for all of it.
    pub round_trips: u64,
}

/// What was seen of all processes, in order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The entries, ordered by `boot_ns`; those of one moment in the order they came.
    pub entries: Vec<Entry>,
}

impl Timeline {
    /// Reads lines of JSON. A torn last line, which a killed writer leaves, is dropped; of other
    /// lines that are none of ours the number is returned, too.
    pub fn parse(text: &str) -> (Timeline, usize) {
        let mut timeline = Timeline::default();
        let mut strange = 0;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines().filter(|line| !line.trim().is_empty()) {
            // While it is read, a line takes many times its length.
            let line = Some(line).filter(|line| line.len() <= LONGEST_LINE);
            match line.map(serde_json::from_str) {
                Some(Ok(entry)) => timeline.entries.push(entry),
                _ => strange += 1,
            }
        }
        timeline.sort();
        (timeline, strange)
    }

    /// Adds what another source saw.
    pub fn merge(&mut self, other: Timeline) {
        // There may be millions: they are moved only where they have to be.
        match self.entries.is_empty() {
            true => self.entries = other.entries,
            false => self.entries.extend(other.entries),
        }
        self.sort();
    }

    /// Adds entries, in order of time, each before all others of its moment.
    pub fn precede(&mut self, entries: Vec<Entry>) {
        let added = entries.len();
        self.entries.extend(entries);
        self.entries.rotate_right(added);
        self.sort();
    }

    /// Puts the entries in order of time; those of one moment stay as they are.
    pub fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.boot_ns);
    }
}

impl Entry {
    /// Its line, with the newline.
    pub fn line(&self) -> String {
        // Plain data with string keys is always JSON.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
