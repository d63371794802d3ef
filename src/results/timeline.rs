//! What is known of a recording's memory over time: the lines that were written beside it, and
//! what its trace holds of the same kind, on one clock and each thing once. For the report,
//! tables of collections, and queries.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::findings::Finding;
use super::recorded;
use crate::error::ErrorClass;
use crate::import::{self, ImportError, OpenTrace};
use crate::timeline::{self, Collection, Entry, HeaptapAction, Observation, Source, Timeline};
use crate::trace::{MemoryLoss, MemoryWanted, Surveyed, TraceError, TraceMemory};
use crate::units::{ByteSize, thousands};

/// Most of a file that is read: days of a reading each second. Foreign folders hold anything.
const LARGEST: u64 = 64 << 20;
/// So far the log's times lie from the trace's: the log has milliseconds, and its clock is
/// related to the trace's by a round trip over the connection.
const SLACK_NS: u64 = 50_000_000;
/// Collections of the trace that are looked at for one of the log: more that overlap one line
/// are none that an app could have made.
const CANDIDATES: usize = 256;

/// A recording's memory over time.
#[derive(Debug, Clone, Default)]
pub struct LoadedTimeline {
    /// All readings, in order of time.
    pub timeline: Timeline,
    /// What the user should know of them.
    pub findings: Vec<Finding>,
}

/// The lines beside a recording: `input` is its folder or its trace. Nothing where there are
/// none; what can't be read is a finding, since the rest of the recording is good. Blocks.
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
                "the memory over time is left out; dumps are not concerned",
            );
            loaded
        }
    }
}

/// Whether a file that begins so has the lines that are written beside a recording.
pub fn are_lines(head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    first.is_some_and(|line| serde_json::from_slice::<Entry>(line).is_ok())
}

/// Such lines, of an input of this name. Blocks.
///
/// # Errors
/// Where they cannot be read.
pub fn of_lines(input: impl Read, name: &str) -> io::Result<LoadedTimeline> {
    let mut loaded = LoadedTimeline::default();
    let mut bytes = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        bytes.truncate(LARGEST as usize);
        loaded.find(
            "timeline-cut",
            Some(ErrorClass::Incomplete),
            format!(
                "{name} is larger than {}: what comes behind is left out",
                ByteSize(LARGEST)
            ),
            "split it by lines to see the rest",
        );
    }
    let (timeline, strange) = Timeline::parse(&String::from_utf8_lossy(&bytes));
    if strange > 0 {
        loaded.find(
            "timeline-strange-lines",
            None,
            format!(
                "{} of {name} could not be understood, and are left out",
                match strange {
                    1 => "1 line".to_owned(),
                    more => format!("{} lines", thousands(more as u64)),
                },
            ),
            "a newer heaptap may have written them",
        );
    }
    loaded.add(timeline);
    Ok(loaded)
}

/// The file of a folder, or of the folder that a trace was recorded into.
fn file_of(input: &Path) -> Option<PathBuf> {
    let folder = match input.is_dir() {
        true => input,
        // A stranger beside a recording is none of it.
        false => {
            recorded::beside(input).ok()??;
            match input.parent()? {
                folder if folder.as_os_str().is_empty() => Path::new("."),
                folder => folder,
            }
        }
    };
    let path = folder.join(timeline::FILE);
    path.is_file().then_some(path)
}

impl LoadedTimeline {
    /// Adds what another source saw of the same time. A collection that both the log and the
    /// trace tell of is one, and those that heaptap caused are marked.
    pub fn add(&mut self, more: Timeline) {
        self.timeline.merge(more);
        join_collections(&mut self.timeline);
        mark_ours(&mut self.timeline);
    }

    /// Adds what a trace holds, and says what is missing of it.
    pub fn add_trace(&mut self, told: TraceMemory) {
        self.findings.extend(of_loss(&told.loss));
        self.add(told.timeline);
    }

    fn find(&mut self, kind: &'static str, class: Option<ErrorClass>, message: String, help: &str) {
        self.findings.push(Finding {
            kind,
            class,
            message,
            help: Some(help.to_owned()),
            pid: None,
        });
    }
}

/// What the user should know of readings that a trace lost.
pub fn of_loss(loss: &MemoryLoss) -> Vec<Finding> {
    let incomplete = Some(ErrorClass::Incomplete);
    let rows = [
        (
            loss.lost_events,
            "gc-events-lost",
            incomplete,
            "the kernel overwrote events before they were read: collections are missing",
            Some("record for a shorter time, or fewer processes at once"),
        ),
        (
            loss.torn_collections,
            "gc-torn",
            None,
            "of some collections the begin or the end is not in the trace: they have no duration",
            None,
        ),
        (
            loss.damaged_packets
                .saturating_add(loss.packets_without_clock),
            "timeline-packets-unread",
            incomplete,
            "some readings of memory in the trace are damaged or have no time that can be told",
            None,
        ),
        (
            loss.entries_left_out,
            "timeline-left-out",
            incomplete,
            "the trace holds more readings of memory than are kept: the rest is left out",
            Some("name one process: --process"),
        ),
    ];
    let lost = rows.into_iter().filter(|(count, ..)| *count > 0);
    lost.map(|(count, kind, class, message, help)| Finding {
        kind,
        class,
        message: format!("{message} ({})", thousands(count)),
        help: help.map(str::to_owned),
        pid: None,
    })
    .collect()
}

/// When a collection began: as far back as it took.
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

/// The trace has the times, the log what was freed and is live: of one collection that both
/// tell of, one entry with all of it stays, at the trace's time.
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
        // Both are in order of time: a collection that overlaps ends at `from` or later, and
        // begins, at most as long before as any takes, by `to`.
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
                // Ends only come to lie further off.
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

/// Fills in what `kept` lacks.
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
    // What the log says is what the collection left; a counter is read some time behind it.
    kept.live = live.or(kept.live);
    kept.total = total.or(kept.total);
    if kept.pauses.is_empty() {
        kept.pauses = pauses;
    }
    kept.duration = kept.duration.or(duration);
    kept.ours |= ours;
}

/// Explicit collections while something of ours asked the app for one.
fn mark_ours(timeline: &mut Timeline) {
    let caused =
        |ours: &HeaptapAction| matches!(ours.what.as_str(), "meminfo" | "gc" | "java-dump");
    let mut open: Vec<(u32, u64)> = Vec::new();
    for entry in &mut timeline.entries {
        match &mut entry.seen {
            Observation::Ours(ours) if caused(ours) => {
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

/// Why traces add nothing to a timeline.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// A trace can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Adds what the trace at `path`, or the traces of a folder, have of the processes that `loaded`
/// knows; of all where it knows none. Blocks.
///
/// # Errors
/// Where there is no readable trace, and nothing is known without one.
pub(crate) fn add_traces(loaded: &mut LoadedTimeline, path: &Path) -> Result<(), TracesError> {
    let of_lines: BTreeSet<u32> = loaded.timeline.entries.iter().map(|e| e.pid).collect();
    // Beside what was followed a trace has every app of the phone.
    let wanted = collections_of((!of_lines.is_empty()).then_some(of_lines));
    let traces = match import::open(path) {
        Ok(traces) => traces,
        // The lines stand by themselves, whatever became of the trace.
        Err(_) if wanted.pids.is_some() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    add(loaded, traces, &wanted)
}

pub(crate) fn collections_of(pids: Option<BTreeSet<u32>>) -> MemoryWanted {
    MemoryWanted {
        pids,
        every_counter: false,
        collections_only: true,
    }
}

pub(crate) fn add(
    loaded: &mut LoadedTimeline,
    traces: Vec<OpenTrace>,
    wanted: &MemoryWanted,
) -> Result<(), TracesError> {
    for input in traces {
        let mut trace = Surveyed::read(input.source)?.seal();
        loaded.add_trace(trace.memory(wanted)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
