//! A trace with complete names. The facts common to all of it are known; the contents of its
//! packets are read on request.

use super::clocks::Clocks;
use super::dumps::DumpPlan;
use super::framing::{Source, TraceError};
use super::java::{self, JavaDump, JavaPlan};
use super::memory::{MemoryWanted, Places, TraceMemory};
use super::metadata;
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
    graphless: Vec<JavaDump>,
    java_plans: Vec<JavaPlan>,
    smaps: Vec<SmapsFacts>,
    smaps_plans: Vec<SmapsPlan>,
    memory: Places,
    reader: PlaceReader,
}

impl Surveyed {
    /// Seals the tables: from here on dumps are read, and nothing is added.
    pub fn seal(mut self) -> Trace {
        self.recording.tables.seal();
        let java_dumps = java::list(&self.java, &self.recording, &self.clocks);
        let graphless = java::list(&self.graphless, &self.recording, &self.clocks);
        let smaps = smaps::list(&self.smaps, &self.recording);
        let mut java_plans = self.java;
        java_plans.extend(self.graphless);
        Trace {
            recording: Arc::new(self.recording),
            health: self.health,
            clocks: self.clocks,
            dumps: self.dumps,
            java_dumps,
            graphless,
            java_plans,
            smaps,
            smaps_plans: self.smaps,
            memory: self.memory,
            reader: self.reader,
        }
    }
}

impl Trace {
    /// Reads everything except samples. Names are the recorded ones, plus the symbols of the trace.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub fn open(source: Box<dyn Source>) -> Result<Trace, TraceError> {
        Ok(Surveyed::read(source)?.seal())
    }

    /// Returns the facts that are common to all dumps.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// Returns the loss and damage found by the first reading.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Returns whether the trace can have memory figures other than heaps, which [`Trace::memory`]
    /// reads.
    pub fn has_memory(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Returns the memory figures of the trace other than heaps: resident memory, the device's
    /// memory, GCs of Java heaps. Reads only those packets again.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub fn memory(&mut self, wanted: &MemoryWanted) -> Result<TraceMemory, TraceError> {
        let recording = &self.recording;
        Ok(self
            .memory
            .read(&mut self.reader, &self.clocks, recording, wanted)?)
    }

    /// Returns the processes for which [`Trace::counters`] has figures other than a Java heap's
    /// size.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub fn counted_pids(&mut self) -> Result<BTreeSet<u32>, TraceError> {
        Ok(self.memory.counted(&mut self.reader)?)
    }

    /// Returns the same figures as Perfetto's counters: each as in its packet, nothing carried
    /// forward. `None` if there are too many.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
    pub fn counters(&mut self, wanted: &MemoryWanted) -> Result<Option<Counters>, TraceError> {
        let recording = &self.recording;
        Ok(self
            .memory
            .counters(&mut self.reader, &self.clocks, recording, wanted)?)
    }

    /// Reads all dumps and passes each to `sink` as soon as it is complete. Dumps of one heap come
    /// in order of their time.
    ///
    /// # Errors
    /// Returns the sink's error at once, or an error if the source cannot be read.
    pub fn read_dumps<E: From<TraceError>>(
        &mut self,
        sink: impl FnMut(HeapDump) -> Result<(), E>,
    ) -> Result<Health, E> {
        let (recording, clocks) = (&self.recording, &self.clocks);
        let health = self.health.clone();
        self.dumps
            .read(&mut self.reader, recording, clocks, health, sink)
    }

    /// Returns the Java heap dumps of the trace, in order of their time.
    pub fn java_dumps(&self) -> &[JavaDump] {
        &self.java_dumps
    }

    /// Returns the metadata of processes for which the trace does not have a dump of the same time,
    /// such as OutOfMemoryErrors that were recorded without a heap graph, in order of their time.
    pub fn graphless_dumps(&self) -> &[JavaDump] {
        &self.graphless
    }

    /// Decodes one of [`Trace::java_dumps`], or makes an empty graph for one of
    /// [`Trace::graphless_dumps`], whose positions follow. Does not keep the result: a second call decodes again.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read. Missing and damaged parts are in the graph's
    /// losses.
    pub fn read_java_dump(&mut self, at: usize) -> Result<HeapGraph, TraceError> {
        let dump = match at.checked_sub(self.java_dumps.len()) {
            None => &self.java_dumps[at],
            Some(at) => &self.graphless[at],
        };
        let mut graph = self.java_plans[at].read(dump, &mut self.reader)?;
        graph.facts.device = metadata::device(&self.recording.system);
        Ok(graph)
    }

    /// Returns the memory mappings of processes, in order of time.
    pub fn smaps(&self) -> &[SmapsFacts] {
        &self.smaps
    }

    /// Decodes one of [`Trace::smaps`]. Does not keep the result: a second call decodes again.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read. Missing and damaged parts are marked.
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
