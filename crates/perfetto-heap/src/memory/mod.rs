//! What a trace holds of memory beside heaps, as entries of a timeline: resident memory of
//! processes (`linux.process_stats`), the phone's memory (`linux.sys_stats`), and collections of
//! Java heaps (`linux.ftrace`, atrace category `dalvik`). The first reading keeps the places of
//! these packets only; they are decoded when somebody asks for them.
//!
//! | module | owns |
//! |---|---|
//! | `process_stats` | resident memory, carried on where a packet leaves it out |
//! | `sys_stats` | the phone's memory |
//! | `ftrace` | events of all processors, in order of time; what atrace wrote |
//! | `collections` | collections and the heap's size out of those |
//! | `counters` | the figures of packets one by one, as Perfetto's counters
//! | `time` | timestamps of a packet's clock in BOOTTIME |

mod collections;
mod counters;
mod ftrace;
mod process_stats;
mod sys_stats;
#[cfg(test)]
mod tests;
mod time;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use self::collections::Collections;
use self::ftrace::Ftrace;
use self::process_stats::ProcessStats;
use self::time::Times;
use super::clocks::Clocks;
use super::packet::{Packet, payload};
use super::reader::{Place, PlaceReader};
use super::wire::WireError;
use heaptap_model::profile::Recording;
use heaptap_model::timeline::{Entry, Observation, Process, Timeline};
use heaptap_model::units::Allowance;

/// More entries of one trace are not kept: a week of one process, each second.
const MOST_ENTRIES: usize = 2 << 20;

/// What of a trace's figures is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryWanted {
    /// Of these processes; of all where `None`.
    pub pids: Option<BTreeSet<u32>>,
    /// Every counter of a Java heap's size. A heap tells its size each time a thread takes a
    /// new buffer; without this, at most one in 20 ms is kept, and those around collections.
    pub every_counter: bool,
    /// Collections alone, with the lives of processes: of all other figures the first and the
    /// last, which tell for how long there were any.
    pub collections_only: bool,
}

/// What a trace says of memory, and what of that could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceMemory {
    /// The entries, in order of time.
    pub timeline: Timeline,
    /// How much of it the trace lost, or cannot be read.
    pub loss: MemoryLoss,
}

/// What is missing of a trace's figures of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryLoss {
    /// Packets that are damaged inside, or cannot be read again.
    pub damaged_packets: u64,
    /// Packets whose time cannot be told.
    pub packets_without_clock: u64,
    /// Times that the kernel overwrote events before they were read.
    pub lost_events: u64,
    /// Collections whose begin or end is missing: they have no duration.
    pub torn_collections: u64,
    /// Entries beyond what is kept.
    pub entries_left_out: u64,
}

/// Where a packet stands.
#[derive(Debug, Clone, Copy)]
struct Stands {
    place: Place,
    /// The clock of its timestamp.
    clock: u32,
    /// It holds figures of processes or the phone.
    has_figures: bool,
    /// It holds events of the kernel.
    has_events: bool,
}

/// Places of the packets, as the first reading left them.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Stands>,
    /// The clock in which a sequence counts unless a packet says otherwise.
    clocks: HashMap<u32, u32>,
}

impl Places {
    /// What one takes.
    pub(super) const COST: usize = size_of::<Stands>() * 3 / 2;

    /// Takes note of a packet, if it is one of these.
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
            has_events |= *kind == payload::FTRACE_EVENTS;
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

    /// What may be kept of all packets.
    fn allowance(&self) -> Allowance {
        let bytes = self.places.iter().map(|Stands { place, .. }| {
            place.inner.map_or(place.length, |inner| inner.length) as usize
        });
        Allowance::of(bytes.sum())
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Decodes the packets.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub(super) fn read(
        &self,
        reader: &mut PlaceReader,
        clocks: &Clocks,
        recording: &Recording,
        wanted: &MemoryWanted,
    ) -> io::Result<TraceMemory> {
        let mut sink = Sink::new(wanted, self.allowance());
        let mut loss = MemoryLoss::default();
        let mut times = Times::new(clocks);
        let mut processes = ProcessStats::default();
        let mut ftrace = Ftrace::default();
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
                        let outcome = ftrace.read(message, &mut times, packet.sequence, &mut loss);
                        ftrace.hand_over(&mut collections, &mut sink, &mut loss);
                        outcome
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
            loss,
        })
    }
}

/// Takes entries of the processes that are wanted.
struct Sink<'a> {
    wanted: &'a MemoryWanted,
    entries: Vec<Entry>,
    left_out: u64,
    passed: Passed,
    allowance: Allowance,
}

/// What an entry takes, and when its process lived.
const ENTRY: usize = size_of::<Entry>() * 5 / 4 + 16;

/// Entries that are not wanted themselves.
#[derive(Default)]
struct Passed {
    /// When a process was seen first and last.
    lives: BTreeMap<u32, (u64, u64)>,
    /// The first and the last of all.
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

/// Notes when the process of an entry was seen.
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

    /// Whether figures of a process are wanted.
    fn wants(&self, pid: u32) -> bool {
        self.wanted.pids.as_ref().is_none_or(|p| p.contains(&pid))
    }

    /// Where the next entry will stand.
    fn next(&self) -> usize {
        self.entries.len()
    }

    fn entry_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Whether there is room for something of so many bytes; what there is not counts as left out.
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
        } else if self.entries.len() >= MOST_ENTRIES || !self.allowance.take(ENTRY) {
            self.left_out += 1;
        } else {
            self.entries.push(entry);
        }
    }

    /// The timeline, with the name of each process at its first figure.
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
        // When the first process of a name was seen for the last time.
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
        // Names first, of all that is of their moment.
        timeline.precede(names);
        timeline
    }
}
