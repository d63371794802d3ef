//! Memory figures of a trace other than heaps, as entries of a timeline: resident memory of
//! processes (`linux.process_stats`), the device's memory (`linux.sys_stats`), and GCs of Java
//! heaps (`linux.ftrace`, atrace category `dalvik`), and the runtime's lines of the log about them
//! (`android.log`), whose words others parse. The first reading keeps only the positions of
//! these packets; they are decoded on request.
//!
//! | module | owns |
//! |---|---|
//! | `process_stats` | resident memory, carried forward if a packet omits it |
//! | `sys_stats` | the device's memory |
//! | `ftrace` | events of all processors, sorted by time; atrace's texts |
//! | `collections` | GCs and the heap's size from those events |
//! | `log` | the log's lines about GCs |
//! | `counters` | the figures of each packet, as Perfetto's counters |
//! | `time` | timestamps of a packet's clock in BOOTTIME |

mod collections;
mod counters;
mod ftrace;
mod log;
mod process_stats;
mod sys_stats;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use self::collections::Collections;
use self::ftrace::Ftrace;
pub use self::log::LogMessage;
use self::process_stats::ProcessStats;
use self::time::Times;
use super::clocks::Clocks;
use super::packet::{Packet, payload};
use super::reader::{Place, PlaceReader};
use super::wire::WireError;
use heaptap_base::units::Allowance;
use heaptap_model::profile::Recording;
use heaptap_model::timeline::{Entry, Observation, Process, Timeline};

/// Maximum number of entries of a trace: a week of one process, one per second.
const MAX_ENTRIES: usize = 2 << 20;

/// Selection of a trace's memory figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryWanted {
    /// Processes to include; `None` includes all.
    pub pids: Option<BTreeSet<u32>>,
    /// Include every value of a Java heap's size. A heap reports its size each time a thread takes
    /// a new buffer; without this option, at most one value in 20 ms is kept, and those around GCs.
    pub every_counter: bool,
    /// Include only GCs and the lifetimes of processes. Of all other figures only the first and the
    /// last are kept, which show the time they cover.
    pub collections_only: bool,
}

/// Memory figures of a trace, and their losses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceMemory {
    /// Entries in order of time.
    pub timeline: Timeline,
    /// Lines of the device's log about GCs, in the order of the trace.
    pub log: Vec<LogMessage>,
    /// Losses of the figures.
    pub loss: MemoryLoss,
}

/// Losses of a trace's memory figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryLoss {
    /// Packets that are damaged or cannot be read a second time.
    pub damaged_packets: u64,
    /// Packets whose time is unknown.
    pub packets_without_clock: u64,
    /// Number of times that the kernel overwrote events before they were read.
    pub lost_events: u64,
    /// GCs whose start or end is missing: they do not have a duration.
    pub torn_collections: u64,
    /// Entries beyond the limit.
    pub entries_left_out: u64,
}

/// Position of a packet.
#[derive(Debug, Clone, Copy)]
struct Stands {
    place: Place,
    /// The clock of its timestamp.
    clock: u32,
    /// The packet has figures of processes or the device.
    has_figures: bool,
    /// The packet has events of the kernel, or lines of the log.
    has_events: bool,
}

/// Positions of the packets from the first reading.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Stands>,
    /// Default clock of each sequence.
    clocks: HashMap<u32, u32>,
}

impl Places {
    /// Memory of one position.
    pub(super) const COST: usize = size_of::<Stands>() * 3 / 2;

    /// Records a packet if it is one of these; returns whether it is.
    pub(super) fn add(&mut self, packet: &Packet, place: Place) -> bool {
        if packet.clears_state {
            self.clocks.remove(&packet.sequence);
        }
        if let Some(clock) = packet.default_clock {
            self.clocks.insert(packet.sequence, clock);
        }
        let (mut has_figures, mut has_events) = (false, false);
        for (kind, _) in &packet.payloads {
            has_figures |= matches!(*kind, payload::SYS_STATS | payload::PROCESS_STATS);
            has_events |= matches!(*kind, payload::FTRACE_EVENTS | payload::ANDROID_LOG);
        }
        if has_figures || has_events {
            let by_default = || self.clocks.get(&packet.sequence).copied();
            let clock = packet.clock.filter(|id| *id != 0).or_else(by_default);
            self.places.push(Stands {
                place,
                clock: clock.unwrap_or(0),
                has_figures,
                has_events,
            });
        }
        has_figures || has_events
    }

    /// Returns the memory limit for all packets.
    fn allowance(&self) -> Allowance {
        let bytes = self.places.iter().map(|Stands { place, .. }| {
            place.inner.map_or(place.length, |inner| inner.length) as usize
        });
        Allowance::of(bytes.sum())
    }

    /// Returns whether there are no packets.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Decodes the packets.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub(super) fn read(
        &self,
        reader: &mut PlaceReader,
        clocks: &Clocks,
        recording: &Recording,
        wanted: &MemoryWanted,
    ) -> io::Result<TraceMemory> {
        let mut sink = Sink::new(wanted, self.allowance());
        let mut loss = MemoryLoss::default();
        let times = Times::new(clocks);
        let mut processes = ProcessStats::default();
        let mut ftrace = Ftrace::default();
        let mut log = Vec::new();
        let mut collections = Collections::new(wanted.every_counter);
        for &Stands { place, clock, .. } in &self.places {
            let Some(body) = reader.body(place)? else {
                loss.damaged_packets += 1;
                continue;
            };
            let (packet, outcome) = Packet::read(body);
            let mut damaged = outcome.is_err();
            let mut timeless = false;
            for &(kind, message) in &packet.payloads {
                let outcome: Result<bool, WireError> = match kind {
                    payload::FTRACE_EVENTS => {
                        let outcome = ftrace.read(message, &times, packet.sequence, &mut loss);
                        ftrace.hand_over(&mut collections, &mut sink, &mut loss);
                        outcome
                    }
                    payload::ANDROID_LOG => {
                        let sequence = packet.sequence;
                        let own = packet
                            .timestamp
                            .and_then(|t| times.boot(clock, sequence, t));
                        log::read(
                            message,
                            |t| times.boot(log::CLOCK, 0, t).or(own),
                            &mut sink,
                            &mut log,
                        )
                    }
                    payload::PROCESS_STATS | payload::SYS_STATS => {
                        let time = packet.timestamp;
                        match time.and_then(|t| times.boot(clock, packet.sequence, t)) {
                            None => Ok(false),
                            Some(now) if kind == payload::SYS_STATS => {
                                sys_stats::read(message, now, &mut sink).map(|()| true)
                            }
                            Some(now) => processes.read(message, now, &mut sink).map(|()| true),
                        }
                    }
                    _ => continue,
                };
                match outcome {
                    Ok(in_time) => timeless |= !in_time,
                    Err(_) => damaged = true,
                }
            }
            loss.damaged_packets += u64::from(damaged);
            loss.packets_without_clock += u64::from(timeless);
        }
        ftrace.end(&mut collections, &mut sink, &mut loss);
        collections.end(&mut sink, &mut loss);
        loss.entries_left_out = sink.left_out;
        Ok(TraceMemory {
            timeline: sink.finish(recording),
            log,
            loss,
        })
    }
}

/// Receiver of the entries of selected processes.
struct Sink<'a> {
    wanted: &'a MemoryWanted,
    entries: Vec<Entry>,
    left_out: u64,
    passed: Passed,
    allowance: Allowance,
}

/// Memory of an entry and of its process's lifetime.
const ENTRY: usize = size_of::<Entry>() * 5 / 4 + 16;

/// Facts about entries that are not kept themselves.
#[derive(Default)]
struct Passed {
    /// Times of each process's first and last entry.
    lives: BTreeMap<u32, (u64, u64)>,
    /// The first and the last entry of all.
    ends: Option<(Entry, Entry)>,
}

impl Passed {
    fn add(&mut self, entry: Entry) {
        live(&mut self.lives, &entry);
        match &mut self.ends {
            None => self.ends = Some((entry.clone(), entry)),
            Some((first, _)) if entry.boot_ns < first.boot_ns => *first = entry,
            Some((_, last)) if entry.boot_ns > last.boot_ns => *last = entry,
            Some(_) => {}
        }
    }
}

/// Updates the lifetime of an entry's process.
fn live(lives: &mut BTreeMap<u32, (u64, u64)>, entry: &Entry) {
    if entry.pid != 0 {
        let at = entry.boot_ns;
        let (first, last) = lives.entry(entry.pid).or_insert((at, at));
        (*first, *last) = (at.min(*first), at.max(*last));
    }
}

impl<'a> Sink<'a> {
    fn new(wanted: &'a MemoryWanted, allowance: Allowance) -> Self {
        Sink {
            wanted,
            allowance,
            entries: Vec::new(),
            left_out: 0,
            passed: Passed::default(),
        }
    }

    /// Returns whether a process is selected.
    fn wants(&self, pid: u32) -> bool {
        self.wanted.pids.as_ref().is_none_or(|p| p.contains(&pid))
    }

    /// Returns the index of the next entry.
    fn next(&self) -> usize {
        self.entries.len()
    }

    fn entry_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Returns whether the memory limit allows `memory` more bytes; if not, counts an entry as left
    /// out.
    fn has_room(&mut self, memory: usize) -> bool {
        let has_room = self.allowance.take(memory);
        self.left_out += u64::from(!has_room);
        has_room
    }

    fn see(&mut self, boot_ns: u64, pid: u32, seen: Observation) {
        let entry = Entry {
            boot_ns,
            pid,
            cost: None,
            seen,
        };
        if self.wanted.collections_only && !matches!(entry.seen, Observation::Collection(_)) {
            self.passed.add(entry);
        } else if self.entries.len() >= MAX_ENTRIES || !self.allowance.take(ENTRY) {
            self.left_out += 1;
        } else {
            self.entries.push(entry);
        }
    }

    /// Returns the timeline, with the name of each process at its first figure.
    fn finish(self, recording: &Recording) -> Timeline {
        let Sink {
            mut entries,
            passed,
            ..
        } = self;
        let mut lives = passed.lives;
        entries.iter().for_each(|entry| live(&mut lives, entry));
        let mut seen: Vec<(u64, u64, u32)> = lives
            .into_iter()
            .map(|(pid, (first, last))| (first, last, pid))
            .collect();
        seen.sort_unstable();
        // Time of the last entry of the first process with each name.
        let mut ends: HashMap<&str, u64> = HashMap::new();
        let figures = passed.ends.into_iter();
        entries.extend(figures.flat_map(|(first, last)| [first, last]));
        let mut timeline = Timeline { entries };
        timeline.sort();
        let mut names = Vec::new();
        for (first, last, pid) in seen {
            let Some(process) = recording.processes.get(&u64::from(pid)) else {
                continue;
            };
            let end = ends.entry(&process.name).or_insert(last);
            let restarted = *end < first;
            *end = last.min(*end);
            names.push(Entry {
                boot_ns: first,
                pid,
                cost: None,
                seen: Observation::Process(Process {
                    name: process.name.clone(),
                    restarted,
                }),
            });
        }
        // Names come first among the entries of the same time.
        timeline.precede(names);
        timeline
    }
}
