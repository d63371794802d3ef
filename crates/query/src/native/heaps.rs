//! Native heaps of an input: dumps, and the changes of callsites between them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use super::tree::Callsites;
use crate::stop::Stop;
use crate::table::TableError;
use heaptap_model::profile::{
    CallsiteId, DumpKind, DumpNumbers, Figures, Frame, FrameId, HeapDump, Recording, Tables,
};
use heaptap_model::stacks::{Facts, ProjectOptions, Projector, StackProfile};

/// Change of a callsite in one dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta {
    /// Position of the dump in [`NativeHeaps::dumps`].
    pub dump: u32,
    pub callsite: CallsiteId,
    /// Sampled allocations; negative for frees.
    pub count: i64,
    /// Estimated bytes; negative for frees.
    pub size: i64,
}

/// Name of a dump in its recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DumpName {
    /// Number among the dumps of its process and heap, from 1.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
}

/// Native heaps of an input.
#[derive(Debug, Default)]
pub struct NativeHeaps {
    /// Tables, symbols, processes.
    pub recording: Arc<Recording>,
    /// All dumps, without their samples.
    pub dumps: Vec<HeapDump>,
    /// Name of each dump, in the same order.
    pub names: Vec<DumpName>,
    /// Changes in each dump, in order of dumps and then of callsites; allocations of a callsite
    /// come before its frees.
    pub deltas: Vec<Delta>,
    callsite_count: usize,
    frame_count: usize,
    callsites: OnceLock<Callsites>,
}

/// Returns the time of a dump in all tables: trace time, or the dump's own time if no clock
/// converts it. It is negative for a dump before the trace clock began.
pub fn time_of(dump: &HeapDump) -> i64 {
    let known = dump.time_ns.unwrap_or(dump.raw_time_ns) as i64;
    dump.window_ns.map_or(known, |(_, end)| end)
}

impl NativeHeaps {
    /// Returns the tree of all callsites. It is built on the first call.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub fn callsites(&self, stop: &Stop) -> Result<&Callsites, TableError> {
        match self.callsites.get() {
            Some(callsites) => Ok(callsites),
            None => {
                let made = Callsites::new(&self.recording.tables, self.callsite_count, stop)?;
                Ok(self.callsites.get_or_init(|| made))
            }
        }
    }

    /// Returns the tree of all callsites for rows that were made from it.
    pub(crate) fn made_callsites(&self) -> &Callsites {
        self.callsites.get().expect("`callsites` has made it")
    }

    /// Returns the frames of the trace.
    pub fn frames(&self) -> &[Frame] {
        &self.recording.tables.frames()[..self.frame_count]
    }

    /// Returns the facts of each dump. If no clock converts its time, they have the dump's own
    /// time.
    pub(crate) fn facts(&self) -> impl Iterator<Item = Facts> {
        self.dumps.iter().zip(&self.names).map(|(dump, name)| {
            let mut facts = Facts::new(dump, name.number);
            facts.label.clone_from(&name.label);
            facts.time_ns = Some(dump.time_ns.unwrap_or(dump.raw_time_ns));
            facts
        })
    }

    /// Returns all dumps as named stacks, as in heaptap's pprof files.
    pub(crate) fn stack_profile(&self) -> StackProfile {
        let mut projector = Projector::new(&self.recording, ProjectOptions::default());
        let mut held: HashMap<(u64, &str), BTreeMap<CallsiteId, Figures>> = HashMap::new();
        let mut deltas = self.deltas.iter().peekable();
        for (at, (dump, facts)) in self.dumps.iter().zip(self.facts()).enumerate() {
            let held = held.entry((dump.pid, &dump.heap)).or_default();
            while let Some(delta) = deltas.next_if(|delta| delta.dump as usize == at) {
                let figures = held.entry(delta.callsite).or_default();
                figures.space = figures.space.saturating_add(delta.size);
                figures.objects = figures.objects.saturating_add(delta.count);
                // If a maximum is lower than the previous one, nothing was freed.
                if dump.kind == DumpKind::AtMaximum {
                    figures.alloc_space = figures.space;
                    figures.alloc_objects = figures.objects;
                } else if delta.size >= 0 && delta.count >= 0 {
                    figures.alloc_space = figures.alloc_space.saturating_add(delta.size);
                    figures.alloc_objects = figures.alloc_objects.saturating_add(delta.count);
                }
            }
            let samples = held.iter().map(|(callsite, figures)| (*callsite, *figures));
            let whole = HeapDump {
                samples: samples.collect(),
                ..dump.clone()
            };
            projector.add(&whole, facts);
        }
        projector.finish()
    }
}

/// Collects dumps as they are read.
#[derive(Debug, Default)]
pub struct NativeHeapsBuilder {
    dumps: Vec<HeapDump>,
    names: Vec<DumpName>,
    numbers: DumpNumbers,
    deltas: Vec<Delta>,
    before: HashMap<(u64, String), Vec<(CallsiteId, Figures)>>,
}

impl NativeHeapsBuilder {
    /// Adds a dump. Dumps of one heap must be added in order of time.
    pub fn add(&mut self, dump: HeapDump) {
        let number = self.numbers.next(dump.pid, &dump.heap);
        self.add_named(
            dump,
            DumpName {
                number,
                label: None,
            },
        );
    }

    /// Adds a dump of a recording that numbers and labels its dumps.
    pub fn add_named(&mut self, mut dump: HeapDump, name: DumpName) {
        self.names.push(name);
        let samples = std::mem::take(&mut dump.samples);
        let at = self.dumps.len() as u32;
        let key = (dump.pid, dump.heap.clone());
        let before = self.before.entry(key).or_default();
        let mut old = before.iter().peekable();
        let mut new = samples.iter().peekable();
        while let Some(callsite) = [old.peek(), new.peek()]
            .into_iter()
            .flatten()
            .map(|sample| sample.0)
            .min()
        {
            let of = |samples: &mut std::iter::Peekable<std::slice::Iter<'_, _>>| {
                let sample: Option<&(CallsiteId, Figures)> =
                    samples.next_if(|sample: &&(CallsiteId, Figures)| sample.0 == callsite);
                sample.map_or(Figures::default(), |sample| sample.1)
            };
            let (was, is) = (of(&mut old), of(&mut new));
            let count = is.alloc_objects.saturating_sub(was.alloc_objects);
            let size = is.alloc_space.saturating_sub(was.alloc_space);
            let held = is.objects.saturating_sub(was.objects);
            let held_bytes = is.space.saturating_sub(was.space);
            let rows = [
                (count, size),
                (held.saturating_sub(count), held_bytes.saturating_sub(size)),
            ];
            for (count, size) in rows {
                if (count, size) != (0, 0) {
                    self.deltas.push(Delta {
                        dump: at,
                        callsite,
                        count,
                        size,
                    });
                }
            }
        }
        *before = samples;
        self.dumps.push(dump);
    }

    /// Ends the dumps and returns the heaps.
    pub fn finish(mut self, recording: Arc<Recording>) -> NativeHeaps {
        self.deltas.shrink_to_fit();
        let (callsite_count, frame_count) = without_placeholder(&recording.tables, &self.deltas);
        NativeHeaps {
            recording,
            callsite_count,
            frame_count,
            dumps: self.dumps,
            names: self.names,
            deltas: self.deltas,
            callsites: OnceLock::new(),
        }
    }
}

/// Returns the numbers of callsites and frames. The last of each does not count if it is only the
/// placeholder for a lost callstack and is not used.
fn without_placeholder(tables: &Tables, deltas: &[Delta]) -> (usize, usize) {
    let (callsites, frames) = (tables.callsite_count(), tables.frames().len());
    let whole = (callsites, frames);
    let (Some(callsite), Some(frame)) = (callsites.checked_sub(1), frames.checked_sub(1)) else {
        return whole;
    };
    let last = CallsiteId(callsite as u32);
    let mut stack = tables.callsite(last);
    let alone = stack.next() == Some(FrameId(frame as u32)) && stack.next().is_none();
    let stands_for_nothing = tables.frames()[frame].mapping.is_none();
    if alone && stands_for_nothing && deltas.iter().all(|delta| delta.callsite != last) {
        return (callsite, frame);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callsites_are_not_kept_if_the_statement_is_to_end() {
        let mut recording = heaptap_model::profile::Recording::default();
        recording.tables.intern_callsite(&[]);
        let heaps = NativeHeaps {
            recording: Arc::new(recording),
            callsite_count: 1,
            ..NativeHeaps::default()
        };
        let stop = Stop::default();
        stop.interrupt();
        assert!(heaps.callsites(&stop).is_err());
        stop.forget_interrupts();
        assert!(heaps.callsites(&stop).unwrap().rows().is_empty());
    }
}
