//! Java heaps of a conversion: those of traces after all native dumps, then those of HPROFs.

use std::path::Path;
use std::sync::Arc;

use super::request::Input;
use super::run::Run;
use crate::heaps::trace_findings;
use crate::names::packet_files::known_maps;
use crate::names::r8_mappings::{self, UsedMap, add_used};
use crate::recording::conversion::error::ConvertError;
use crate::recording::conversion::java_profiles::{self, JavaProfileOptions, Pending, Source};
use heaptap_input::{HeapSource, HprofInput, ImportError, OpenTrace};
use heaptap_model::heap_graph::HeapGraph;
use heaptap_results::manifest::{JAVA_HEAP, Manifest};
use heaptap_results::recorded;

/// Opens the traces of a path, or otherwise its HPROFs.
pub(super) fn open_path(path: &Path) -> Result<(Vec<OpenTrace>, Vec<HprofInput>), ImportError> {
    match heaptap_input::open(path) {
        Ok(mut traces) => {
            recorded::compare(path, &mut traces);
            Ok((traces, Vec::new()))
        }
        Err(error) => match heaptap_input::open_java(path) {
            Ok(HeapSource::Hprofs(hprofs)) => Ok((Vec::new(), hprofs)),
            // The error about the trace applies to both.
            _ => Err(error),
        },
    }
}

impl Run<'_> {
    /// Writes the selected Java heaps of a trace.
    pub(super) fn java_heaps(&mut self, mut pending: Pending) -> Result<(), ConvertError> {
        for at in 0..pending.trace.java_dumps().len() {
            if self.request.control.is_cancelled() {
                return Err(ConvertError::Interrupted);
            }
            let (before, later) = pending.trace.java_dumps().split_at(at + 1);
            let dump = before[at].clone();
            let is_last = later.iter().all(|other| other.pid != dump.pid);
            let number = self.numbers.next(dump.pid, JAVA_HEAP);
            let (pid, process, time) = (dump.pid, &dump.process, dump.time_ns);
            if !(self.request.selection).takes_java(pid, process, JAVA_HEAP, time) {
                self.choices.add(pid, process, JAVA_HEAP, time);
                continue;
            }
            let mut graph = pending.trace.read_java_dump(at)?;
            let process = self.request.process_of(dump.pid, &dump.process);
            process.clone_into(&mut graph.facts.process);
            let recording = pending.trace.recording();
            pending.renamed.heaps.name(&mut graph, recording);
            if is_last {
                self.all.findings.extend(r8_mappings::minified(&graph));
            }
            self.java_heap(graph, &Source::of_trace(&dump), number, is_last)?;
        }
        pending.renamed.count_heaps();
        self.all.findings.append(&mut pending.renamed.findings);
        self.took_maps(&pending.renamed);
        Ok(())
    }

    fn java_heap(
        &mut self,
        graph: HeapGraph,
        source: &Source,
        number: u32,
        is_last: bool,
    ) -> Result<(), ConvertError> {
        let options = JavaProfileOptions {
            sample_names: self.request.pprof.sample_names,
            dominators: self.request.dominators,
            summary: self.request.java_summaries && is_last,
        };
        let directory = &self.request.output;
        let written = java_profiles::write(graph, source, number, directory, options)?;
        self.all.java.push(written.dump);
        self.all.findings.extend(written.findings);
        self.all.java_heaps.extend(written.summary);
        Ok(())
    }

    /// Writes the heaps of HPROFs.
    pub(super) fn hprofs(&mut self, hprofs: Vec<HprofInput>) -> Result<(), ConvertError> {
        let known = match &self.request.input {
            Input::Path(path) if !hprofs.is_empty() => known_maps::<ConvertError>(path)?,
            Input::Path(_) | Input::Stdin => Arc::default(),
        };
        // An HPROF does not name its process. A manifest that cannot be read has its own warning.
        let recorded = match &self.request.input {
            Input::Path(path) if !hprofs.is_empty() => Manifest::read(path).ok(),
            Input::Path(_) | Input::Stdin => None,
        };
        for input in hprofs {
            if !self.request.selection.names_hprof(&input.name) {
                continue;
            }
            if self.request.control.is_cancelled() {
                return Err(ConvertError::Interrupted);
            }
            let entry = recorded.as_ref();
            let entry = entry.and_then(|manifest| recorded::hprof_entry(manifest, &input));
            if let Some(what) = input.damage {
                let found = trace_findings::damaged(&input.name, &what);
                self.all.findings.push(found);
            }
            let graph = android_hprof::read(input.bytes, &android_hprof::Options::default());
            let mut graph = graph.map_err(|source| ConvertError::Hprof {
                name: input.name,
                source,
            })?;
            let pid = graph.facts.pid.or(entry.map(|entry| entry.pid));
            graph.facts.pid = pid;
            let pid = pid.unwrap_or(0);
            let process = match (graph.facts.process.as_str(), entry) {
                ("", Some(entry)) => &entry.process,
                (process, _) => process,
            };
            graph.facts.process = self.request.process_of(pid, process).to_owned();
            let named = self.maps.name_heap(&mut graph, &known);
            self.all.findings.extend(named.findings);
            self.all.findings.extend(r8_mappings::minified(&graph));
            let mappings = named.maps.iter().map(UsedMap::in_manifest);
            self.mappings.extend(mappings);
            add_used(&mut self.used, named.maps);
            let source = Source::of_hprof(&graph);
            let number = self.numbers.next(pid, JAVA_HEAP);
            self.java_heap(graph, &source, number, true)?;
        }
        Ok(())
    }
}
