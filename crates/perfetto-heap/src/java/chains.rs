//! Assignment of packets to dumps in the first reading. A chain is the packets of one sequence up
//! to one with `continued` unset, or up to number 0 of another dump; chains with the same process
//! and time are one dump. Packets are numbered from 0 within a chain.

use crate::allowance::pay;
use crate::reader::Place;
use crate::wire::{WireError, each};
use heaptap_base::units::Allowance;
use heaptap_model::heap_graph::OutOfMemory;
use std::collections::BTreeMap;

/// Memory of a dump until it is decoded, and of each further packet of it.
const DUMP: usize = 1200;
const PART: usize = size_of::<Part>() * 3 / 2;

/// Fields of a `HeapGraph` for the first reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) pid: u64,
    pub(crate) continued: bool,
    index: u64,
    /// Process and number were read, regardless of later damage.
    is_placed: bool,
    has_objects: bool,
    has_roots: bool,
}

impl Outline {
    /// Reads the outline and skips objects and tables. Fields before damage are kept.
    pub(crate) fn read(message: &[u8]) -> (Outline, Result<(), WireError>) {
        let mut outline = Outline::default();
        let (mut has_pid, mut has_index) = (false, false);
        let outcome = each(message, |number, value| match number {
            // An i32: negative ones have ten bytes.
            1 => {
                outline.pid = u64::from(value.number() as u32);
                has_pid = true;
            }
            2 => outline.has_objects = true,
            5 => outline.continued = value.flag(),
            6 => {
                outline.index = value.number();
                has_index = true;
            }
            7 => outline.has_roots = true,
            _ => {}
        });
        // Both can be absent from a whole message if they are 0.
        outline.is_placed = outcome.is_ok() || (has_pid && has_index);
        (outline, outcome)
    }
}

/// A packet of a dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(super) place: Place,
    /// Index of the `HeapGraph` in its packet.
    pub(super) nth: u32,
    pub(super) bytes: u64,
    /// The packet belongs to another process or time than its chain: its objects and roots are
    /// ignored, its tables are used.
    pub(super) foreign: bool,
}

/// Packets of one sequence that belong together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    pub(super) packets: Vec<Part>,
    /// Process and time, after the first packet with objects or roots.
    of: Option<(u64, u64)>,
    /// Number of the last packet.
    index: Option<u64>,
    missing: u64,
    foreign: u64,
    damaged: u64,
    /// The last packet is present.
    finished: bool,
}

/// The chains of all sequences while the trace is read.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    open: BTreeMap<u32, Chain>,
    done: Vec<Chain>,
    /// Processes with metadata, by PID and time, and the error of each.
    processes: Vec<(u64, u64, Option<OutOfMemory>)>,
}

impl Chains {
    /// Adds a `HeapGraph`.
    ///
    /// # Errors
    /// Returns an error if it is damaged; fields before the damage are used.
    pub(crate) fn add(
        &mut self,
        message: &[u8],
        sequence: u32,
        (place, nth): (Place, u32),
        time_ns: u64,
        allowance: &mut Allowance,
    ) -> Result<(), WireError> {
        let (outline, outcome) = Outline::read(message);
        let own = (outline.pid, time_ns);
        if outline.index == 0 && outline.is_placed {
            // If damage hid the last packet of a dump, the next dump begins anyway.
            let before = self.open.get(&sequence).and_then(|chain| chain.of);
            if before.is_some_and(|before| before != own) {
                let broken_off = self.open.remove(&sequence);
                self.done.extend(broken_off);
            }
        }
        let is_new = !self.open.contains_key(&sequence);
        pay(allowance, if is_new { DUMP } else { PART })?;
        let chain = self.open.entry(sequence).or_default();
        let expected = chain.index.map_or(0, |last| last.wrapping_add(1));
        if outline.index != expected {
            // A number that goes back is not a countable gap, but the chain is damaged.
            let gap = outline.index.saturating_sub(expected).max(1);
            chain.missing = chain.missing.saturating_add(gap);
        }
        chain.index = Some(outline.index);
        let mut foreign = false;
        if outline.has_objects || outline.has_roots {
            foreign = *chain.of.get_or_insert(own) != own;
        }
        chain.foreign += u64::from(foreign);
        chain.damaged += u64::from(outcome.is_err());
        chain.packets.push(Part {
            place,
            nth,
            bytes: message.len() as u64,
            foreign,
        });
        if !outline.continued && outcome.is_ok() {
            // The last packet identifies a dump without objects and roots.
            chain.of.get_or_insert(own);
            chain.finished = true;
            let done = self.open.remove(&sequence);
            self.done.extend(done);
        }
        outcome
    }

    /// Adds a process's metadata with its OutOfMemoryError, if there is one.
    pub(crate) fn add_process(&mut self, pid: u64, time_ns: u64, oom: Option<OutOfMemory>) {
        self.processes.push((pid, time_ns, oom));
    }

    /// Returns all dumps, and the metadata of processes without one, each in order of time.
    pub(crate) fn finish(self) -> (Vec<JavaPlan>, Vec<JavaPlan>) {
        let mut dumps: Vec<JavaPlan> = Vec::new();
        let mut known: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        let mut enter = |pid, time_ns, dumps: &mut Vec<JavaPlan>| {
            *known.entry((time_ns, pid)).or_insert_with(|| {
                dumps.push(JavaPlan {
                    pid,
                    time_ns,
                    chains: Vec::new(),
                    out_of_memory: None,
                });
                dumps.len() - 1
            })
        };
        for chain in self.done.into_iter().chain(self.open.into_values()) {
            let Some((pid, time_ns)) = chain.of else {
                continue;
            };
            let at = enter(pid, time_ns, &mut dumps);
            dumps[at].chains.push(chain);
        }
        for (pid, time_ns, oom) in self.processes {
            let at = enter(pid, time_ns, &mut dumps);
            let dump = &mut dumps[at];
            dump.out_of_memory = oom.or(dump.out_of_memory.take());
        }
        dumps.sort_by_key(|dump| dump.time_ns);
        dumps.into_iter().partition(|dump| !dump.chains.is_empty())
    }
}

/// The packets of one dump.
#[derive(Debug, Clone)]
pub(crate) struct JavaPlan {
    pub(crate) pid: u64,
    pub(super) time_ns: u64,
    pub(super) chains: Vec<Chain>,
    pub(super) out_of_memory: Option<OutOfMemory>,
}

impl JavaPlan {
    /// Returns the number of missing packets, counted by gaps in their numbers.
    pub(super) fn missing(&self) -> u64 {
        let all = self.chains.iter().map(|chain| chain.missing);
        all.fold(0, u64::saturating_add)
    }

    /// Returns whether the last packet of a chain is missing.
    pub(super) fn is_unfinished(&self) -> bool {
        self.chains.iter().any(|chain| !chain.finished)
    }

    /// Describes the damage of the existing packets.
    pub(super) fn problems(&self) -> Vec<String> {
        let sum = |count: fn(&Chain) -> u64| self.chains.iter().map(count).sum::<u64>();
        let mut found = Vec::new();
        let foreign = sum(|chain| chain.foreign);
        if foreign > 0 {
            found.push(format!(
                "left out packets of another process or dump: {foreign}"
            ));
        }
        let damaged = sum(|chain| chain.damaged);
        if damaged > 0 {
            found.push(format!("damaged packets: {damaged}"));
        }
        found
    }
}
