//! Memory of a recording over time: the lines of the companion file and the memory data of its
//! trace, on one clock and without duplicates. Used by the report, tables of garbage collections,
//! and queries.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::findings::Finding;
use super::recorded;
use android_memory::gc::{Event, parse_message};
use heaptap_base::directory;
use heaptap_base::error::ErrorClass;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_input::{ImportError, OpenTrace};
use heaptap_model::profile::Health;
use heaptap_model::timeline::{
    self, Collection, Entry, HeaptapAction, Observation, Source, Timeline,
};
use perfetto_heap::{LogMessage, MemoryLoss, MemoryWanted, Surveyed, TraceError, TraceMemory};

/// Maximum number of bytes read: enough for days of one reading per second. Directories from
/// elsewhere can contain files of any size.
const MAX_SIZE: u64 = 64 << 20;
/// Maximum deviation of log times from trace times: the log has milliseconds, and its clock is
/// related to the trace's by a round trip over the connection.
const SLACK_NS: u64 = 50_000_000;
/// Maximum number of trace collections compared with one of the log: an app could not have made
/// more that overlap one line.
const CANDIDATES: usize = 256;

/// Memory of a recording over time.
#[derive(Debug, Clone, Default)]
pub struct LoadedTimeline {
    /// All readings, in chronological order.
    pub timeline: Timeline,
    /// Findings about the readings.
    pub findings: Vec<Finding>,
}

/// Returns the companion lines of `input`, a recording directory or its trace; empty if there are
/// none. Read errors become findings, because the rest of the recording is usable. Blocks.
pub fn beside(input: &Path) -> LoadedTimeline {
    let mut loaded = LoadedTimeline::default();
    let Some(path) = file_of(input) else {
        return loaded;
    };
    let name = path.display().to_string();
    match std::fs::File::open(&path).and_then(|file| of_lines(file, &name)) {
        Ok(read) => read,
        Err(error) => {
            loaded.find(
                "timeline-unreadable",
                Some(ErrorClass::Incomplete),
                format!("cannot read {name}: {error}"),
                "memory over time is left out; dumps are not affected",
            );
            loaded
        }
    }
}

/// Returns whether a file with this beginning contains companion lines.
pub fn are_lines(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    first.is_some_and(|line| serde_json::from_slice::<Entry>(line).is_ok())
}

/// Parses companion lines; `name` is the name of the input. Blocks.
///
/// # Errors
/// Returns an error if they cannot be read.
pub fn of_lines(input: impl Read, name: &str) -> io::Result<LoadedTimeline> {
    let mut loaded = LoadedTimeline::default();
    let mut bytes = Vec::new();
    input.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        bytes.truncate(MAX_SIZE as usize);
        loaded.find(
            "timeline-cut",
            Some(ErrorClass::Incomplete),
            format!(
                "{name} is larger than {}; the rest is left out",
                ByteSize(MAX_SIZE)
            ),
            "split it at line breaks to see the rest",
        );
    }
    let (timeline, strange) = Timeline::parse(&String::from_utf8_lossy(&bytes));
    if strange > 0 {
        loaded.find(
            "timeline-strange-lines",
            None,
            format!(
                "cannot parse {} of {name}; left out",
                counted(strange as u64, "line", "lines"),
            ),
            "a newer heaptap might have written them",
        );
    }
    loaded.add(timeline);
    Ok(loaded)
}

/// Returns the companion file of a directory, or of the directory that contains a trace.
fn file_of(input: &Path) -> Option<PathBuf> {
    let directory = match input.is_dir() {
        true => input,
        // An unrelated file next to a recording does not belong to it.
        false => {
            recorded::beside(input).ok()??;
            directory::of(input)
        }
    };
    let path = directory.join(timeline::FILE);
    path.is_file().then_some(path)
}

impl LoadedTimeline {
    /// Adds observations of the same time from another source. Merges garbage collections that both
    /// the log and the trace report, and marks those that heaptap requested.
    pub fn add(&mut self, more: Timeline) {
        self.timeline.merge(more);
        join_collections(&mut self.timeline);
        mark_ours(&mut self.timeline);
    }

    /// Adds the memory data of a trace, and findings about missing parts.
    pub fn add_trace(&mut self, told: TraceMemory) {
        self.findings.extend(of_loss(&told.loss));
        let mut timeline = told.timeline;
        timeline.entries.extend(told.log.iter().filter_map(logged));
        timeline.sort();
        self.add(timeline);
    }

    fn find(&mut self, kind: &'static str, class: Option<ErrorClass>, message: String, help: &str) {
        self.findings
            .push(Finding::new(kind, class, message).with_help(help));
    }
}

/// Returns the garbage collection in a line of a trace's log.
fn logged(line: &LogMessage) -> Option<Entry> {
    match parse_message(Some(&line.tag), &line.message)? {
        Event::Collection(logged) => Some(Entry {
            boot_ns: line.boot_ns,
            pid: line.pid,
            cost: None,
            seen: Observation::Collection(logged.collection),
        }),
        _ => None,
    }
}

/// Returns findings about readings that a trace lost.
pub fn of_loss(loss: &MemoryLoss) -> Vec<Finding> {
    let incomplete = Some(ErrorClass::Incomplete);
    let rows = [
        (
            loss.lost_events,
            "gc-events-lost",
            incomplete,
            "the kernel overwrote events before heaptap read them; garbage collections are missing",
            Some("record for a shorter time, or fewer processes at once"),
        ),
        (
            loss.torn_collections,
            "gc-torn",
            None,
            "some garbage collections have no duration because their start or end is not in the \
             trace",
            None,
        ),
        (
            loss.damaged_packets
                .saturating_add(loss.packets_without_clock),
            "timeline-packets-unreadable",
            incomplete,
            "some memory readings in the trace are damaged or have no known time",
            None,
        ),
        (
            loss.entries_left_out,
            "timeline-left-out",
            incomplete,
            "the trace contains more memory readings than heaptap reads; the rest is left out",
            Some("select one process with `-n`"),
        ),
    ];
    let lost = rows.into_iter().filter(|(count, ..)| *count > 0);
    lost.map(|(count, kind, class, message, help)| Finding {
        help: help.map(str::to_owned),
        ..Finding::new(kind, class, format!("{message} ({})", thousands(count)))
    })
    .collect()
}

/// Returns the start of a collection: its end minus its duration.
fn begin(entry: &Entry, collection: &Collection) -> u64 {
    let length = collection.duration.unwrap_or(0);
    entry.boot_ns.saturating_sub(length)
}

fn collection(entry: &Entry) -> Option<&Collection> {
    match &entry.seen {
        Observation::Collection(collection) => Some(collection),
        _ => None,
    }
}

/// Merges collections that both sources report into one entry with all data, at the trace's time.
/// The trace has the times, the log the freed and live bytes.
fn join_collections(timeline: &mut Timeline) {
    let of = |source: Source| {
        let is_it = move |(_, entry): &(usize, &Entry)| {
            collection(entry).is_some_and(|c| c.source == Some(source))
        };
        let places = timeline.entries.iter().enumerate().filter(is_it);
        places.map(|(place, _)| place).collect::<Vec<usize>>()
    };
    let (logged, traced) = (of(Source::Log), of(Source::Ftrace));
    if logged.is_empty() || traced.is_empty() {
        return;
    }
    let entries = &timeline.entries;
    let longest = traced
        .iter()
        .filter_map(|&at| collection(&entries[at])?.duration);
    let longest = longest.max().unwrap_or(0);
    let mut taken = vec![false; traced.len()];
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for &log in &logged {
        let line = &entries[log];
        let Some(told) = collection(line) else {
            continue;
        };
        let (from, to) = (
            begin(line, told).saturating_sub(SLACK_NS),
            line.boot_ns.saturating_add(SLACK_NS),
        );
        // Both are in chronological order: an overlapping collection ends at `from` or later, and
        // begins by `to`, at most the longest duration earlier.
        let first = traced.partition_point(|&at| entries[at].boot_ns < from);
        let last = to.saturating_add(longest);
        let mut best: Option<(u64, usize)> = None;
        for (offset, &at) in traced[first..].iter().enumerate().take(CANDIDATES) {
            let other = &entries[at];
            if other.boot_ns > last {
                break;
            }
            let overlaps = collection(other).is_some_and(|c| begin(other, c) <= to);
            if taken[first + offset] || other.pid != line.pid || !overlaps {
                continue;
            }
            let apart = other.boot_ns.abs_diff(line.boot_ns);
            if best.is_none_or(|(least, _)| apart < least) {
                best = Some((apart, first + offset));
            } else {
                // The following ends are even further away.
                break;
            }
        }
        if let Some((_, at)) = best {
            taken[at] = true;
            pairs.push((log, traced[at]));
        }
    }
    let mut gone = vec![false; timeline.entries.len()];
    for (log, trace) in pairs {
        gone[log] = true;
        let told = collection(&timeline.entries[log]).cloned();
        if let (Some(told), Observation::Collection(kept)) =
            (told, &mut timeline.entries[trace].seen)
        {
            complete(kept, told);
        }
    }
    let mut gone = gone.into_iter();
    timeline.entries.retain(|_| gone.next() != Some(true));
}

/// Fills in missing fields of `kept`.
fn complete(kept: &mut Collection, told: Collection) {
    let Collection {
        source: _,
        reason,
        collector,
        freed_objects,
        freed_bytes,
        freed_large,
        live,
        total,
        pauses,
        duration,
        ours,
    } = told;
    if kept.reason.is_empty() {
        kept.reason = reason;
    }
    if kept.collector.is_empty() {
        kept.collector = collector;
    }
    kept.freed_objects = kept.freed_objects.or(freed_objects);
    kept.freed_bytes = kept.freed_bytes.or(freed_bytes);
    kept.freed_large = kept.freed_large.or(freed_large);
    // The log has the live bytes at the end of the collection; a counter is read some time later.
    kept.live = live.or(kept.live);
    kept.total = total.or(kept.total);
    if kept.pauses.is_empty() {
        kept.pauses = pauses;
    }
    kept.duration = kept.duration.or(duration);
    kept.ours |= ours;
}

/// Marks explicit collections during heaptap actions that request one.
fn mark_ours(timeline: &mut Timeline) {
    let caused =
        |ours: &HeaptapAction| matches!(ours.what.as_str(), "meminfo" | "gc" | "java-dump");
    let mut open: Vec<(u32, u64)> = Vec::new();
    for entry in &mut timeline.entries {
        match &mut entry.seen {
            Observation::HeaptapAction(ours) if caused(ours) => {
                open.retain(|(_, until)| *until >= entry.boot_ns);
                open.push((entry.pid, ours.until_ns));
            }
            Observation::Collection(collection) if !open.is_empty() => {
                let asked = |(pid, until): &(u32, u64)| {
                    (*pid == entry.pid || *pid == 0) && *until >= entry.boot_ns
                };
                let is_asked = matches!(collection.reason.as_str(), "Explicit" | "GC_EXPLICIT");
                collection.ours |= is_asked && open.iter().any(asked);
            }
            _ => {}
        }
    }
}

/// Error of adding traces to a timeline.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// A trace cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// State of a trace that was read.
pub struct TraceState {
    /// File name for display.
    pub name: String,
    /// Damage to the compression or archive around it.
    pub damage: Option<String>,
    pub health: Health,
}

/// Adds the memory data of the trace at `path`, or of the traces of a directory, for the processes
/// in `loaded`; for all processes if it has none. Returns the state of each trace. Blocks.
///
/// # Errors
/// Returns an error if there is no readable trace and `loaded` is empty.
pub fn add_traces(
    loaded: &mut LoadedTimeline,
    path: &Path,
) -> Result<Vec<TraceState>, TracesError> {
    let of_lines: BTreeSet<u32> = loaded.timeline.entries.iter().map(|e| e.pid).collect();
    // A trace has every app of the device, including apps that were not followed.
    let wanted = collections_of((!of_lines.is_empty()).then_some(of_lines));
    let traces = match heaptap_input::open(path) {
        Ok(traces) => traces,
        // The lines are usable without the trace.
        Err(_) if wanted.pids.is_some() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    add(loaded, traces, &wanted)
}

pub fn collections_of(pids: Option<BTreeSet<u32>>) -> MemoryWanted {
    MemoryWanted {
        pids,
        every_counter: false,
        collections_only: true,
    }
}

pub fn add(
    loaded: &mut LoadedTimeline,
    traces: Vec<OpenTrace>,
    wanted: &MemoryWanted,
) -> Result<Vec<TraceState>, TracesError> {
    let read = traces.into_iter().map(|input| {
        let mut trace = Surveyed::read(input.source)?.seal();
        loaded.add_trace(trace.memory(wanted)?);
        Ok(TraceState {
            name: input.name,
            damage: input.damage,
            health: trace.health().clone(),
        })
    });
    read.collect()
}

#[cfg(test)]
mod tests;
