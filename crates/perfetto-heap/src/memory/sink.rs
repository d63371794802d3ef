//! The receiver of entries: keeps those of selected processes, within a memory limit, and names the
//! processes at their first figures.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// Receiver of the entries of selected processes.
pub(super) struct Sink<'a> {
    wanted: &'a MemoryWanted,
    entries: Vec<Entry>,
    pub(super) left_out: u64,
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
    pub(super) fn new(wanted: &'a MemoryWanted, allowance: Allowance) -> Self {
        Sink {
            wanted,
            allowance,
            entries: Vec::new(),
            left_out: 0,
            passed: Passed::default(),
        }
    }

    /// Returns whether a process is selected.
    pub(super) fn wants(&self, pid: u32) -> bool {
        self.wanted.pids.as_ref().is_none_or(|p| p.contains(&pid))
    }

    /// Returns the index of the next entry.
    pub(super) fn next(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Returns whether the memory limit allows `memory` more bytes; if not, counts an entry as left
    /// out.
    pub(super) fn has_room(&mut self, memory: usize) -> bool {
        let has_room = self.allowance.take(memory);
        self.left_out += u64::from(!has_room);
        has_room
    }

    pub(super) fn see(&mut self, boot_ns: u64, pid: u32, seen: Observation) {
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
    pub(super) fn finish(self, recording: &Recording) -> Timeline {
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
