//! A trace whose names are settled. What holds for all of it is known; what its packets hold is
//! read when it is asked for.

use super::TraceError;
use super::clocks::Clocks;
use super::dumps::DumpPlan;
use super::framing::Source;
use super::java::{self, JavaDump, JavaPlan};
use super::memory::{MemoryWanted, Places, TraceMemory};
use super::reader::PlaceReader;
use super::smaps::{self, SmapsFacts, SmapsPlan};
use super::surveyed::Surveyed;
use heaptap_model::counter::Counters;
use heaptap_model::heap_graph::HeapGraph;
use heaptap_model::profile::{Health, HeapDump, Recording};
use heaptap_model::smaps::SmapsRows;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A trace after its first reading.
pub struct Trace {
    recording: Arc<Recording>,
    health: Health,
    clocks: Clocks,
    dumps: DumpPlan,
    java_dumps: Vec<JavaDump>,
    java_plans: Vec<JavaPlan>,
    smaps: Vec<SmapsFacts>,
    smaps_plans: Vec<SmapsPlan>,
    memory: Places,
    reader: PlaceReader,
}

impl Surveyed {
    /// Closes the tables: from here on dumps are read, and nothing is added.
    pub fn seal(mut self) -> Trace {
        self.recording.tables.seal();
        let java_dumps = java::list(&self.java, &self.recording, &self.clocks);
        let smaps = smaps::list(&self.smaps, &self.recording);
        Trace {
            recording: Arc::new(self.recording),
            health: self.health,
            clocks: self.clocks,
            dumps: self.dumps,
            java_dumps,
            java_plans: self.java,
            smaps,
            smaps_plans: self.smaps,
            memory: self.memory,
            reader: self.reader,
        }
    }
}

impl Trace {
    /// Reads everything but samples; names are those recorded, and the symbols the trace holds.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub fn open(source: Box<dyn Source>) -> Result<Trace, TraceError> {
        Ok(Surveyed::read(source)?.seal())
    }

    /// What holds for all dumps.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Loss and damage as far as the first reading found them.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Whether the trace may hold figures of memory beside heaps: [`Trace::memory`] tells.
    pub fn has_memory(&self) -> bool {
        !self.memory.is_empty()
    }

    /// What the trace says of memory beside heaps: resident memory, the phone's, collections of
    /// Java heaps. Reads those packets again, and no others.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub fn memory(&mut self, wanted: &MemoryWanted) -> Result<TraceMemory, TraceError> {
        let recording = &self.recording;
        Ok(self
            .memory
            .read(&mut self.reader, &self.clocks, recording, wanted)?)
    }

    /// The processes of which [`Trace::counters`] has figures beside a Java heap's size.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub fn counted_pids(&mut self) -> Result<BTreeSet<u32>, TraceError> {
        Ok(self.memory.counted(&mut self.reader)?)
    }

    /// The same figures as Perfetto's counters: each as it stands in its packet, nothing carried
    /// on. `None` where they are more than are kept.
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub fn counters(&mut self, wanted: &MemoryWanted) -> Result<Option<Counters>, TraceError> {
        let recording = &self.recording;
        Ok(self
            .memory
            .counters(&mut self.reader, &self.clocks, recording, wanted)?)
    }

    /// Reads all dumps and gives each to `sink` as soon as it is complete. Dumps of one heap
    /// come in order of their time.
    ///
    /// # Errors
    /// The sink's, at once; and where the source can't be read.
    pub fn read_dumps<E: From<TraceError>>(
        &mut self,
        sink: impl FnMut(HeapDump) -> Result<(), E>,
    ) -> Result<Health, E> {
        let (recording, clocks) = (&self.recording, &self.clocks);
        let health = self.health.clone();
        self.dumps
            .read(&mut self.reader, recording, clocks, health, sink)
    }

    /// The Java heap dumps of the trace, in order of their time.
    pub fn java_dumps(&self) -> &[JavaDump] {
        &self.java_dumps
    }

    /// Decodes one of [`Trace::java_dumps`]. Keeps nothing of it: a second call decodes again.
    ///
    /// # Errors
    /// Where the source can't be read. What is missing or damaged is in the graph's losses.
    pub fn read_java_dump(&mut self, at: usize) -> Result<HeapGraph, TraceError> {
        self.java_plans[at].read(&self.java_dumps[at], &mut self.reader)
    }

    /// What processes had mapped, in order of time.
    pub fn smaps(&self) -> &[SmapsFacts] {
        &self.smaps
    }

    /// Decodes one of [`Trace::smaps`]. Keeps nothing of it: a second call decodes again.
    ///
    /// # Errors
    /// Where the source can't be read. What is missing or damaged is marked.
    pub fn read_smaps(&mut self, at: usize) -> Result<SmapsRows, TraceError> {
        let read = match self.smaps_plans.get(at) {
            Some(plan) => plan.read(&mut self.reader)?,
            None => None,
        };
        Ok(read.unwrap_or_else(|| SmapsRows {
            damaged: true,
            ..SmapsRows::default()
        }))
    }
}
