//! Heaptap's decoding of the Java heaps of a trace.

use heaptap::names::options::NameOptions;
use heaptap::names::r8_mappings::R8Mappings;
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, ShortestPaths};
use perfetto_heap::{JavaDump, Surveyed};
use std::path::Path;

/// A dump, decoded and with names.
pub struct Heap {
    pub dump: JavaDump,
    pub graph: HeapGraph,
    pub paths: ShortestPaths,
    pub dominators: Dominators,
}

/// Decodes all dumps of an input.
pub fn open(path: &Path) -> Result<Vec<Heap>, String> {
    let mut all = Vec::new();
    for trace in heaptap_input::open(path).map_err(|error| error.to_string())? {
        let mut surveyed = Surveyed::read(trace.source).map_err(|error| error.to_string())?;
        let maps = R8Mappings::open_what_opens(&NameOptions::default());
        let mut renamed = maps
            .name(&mut surveyed)
            .map_err(|error| error.to_string())?;
        let mut trace = surveyed.seal();
        let recording = trace.recording().clone();
        for at in 0..trace.java_dumps().len() {
            let mut graph = trace
                .read_java_dump(at)
                .map_err(|error| error.to_string())?;
            renamed.heaps.name(&mut graph, &recording);
            all.push(Heap {
                dump: trace.java_dumps()[at].clone(),
                paths: ShortestPaths::new(&graph, Follow::default()),
                dominators: Dominators::compute(&graph, Follow::default()),
                graph,
            });
        }
    }
    Ok(all)
}
