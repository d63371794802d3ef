//! Traces and pprof files.

use super::heap_dumps::assert_same;
use super::texts::all_of_smaps;
use heaptap::names::options::NameOptions;
use heaptap::names::r8_mappings::R8Mappings;
use heaptap_analyze::aggregation::class_aggregation;
use heaptap_analyze::class_tree::{ClassTree, Merge, Over};
use heaptap_analyze::{fields, leaks};
use heaptap_export::gzip::Gzip;
use heaptap_export::java_pprof::{self, JavaProfile};
use heaptap_export::pprof::{Pprof, PprofOptions};
use heaptap_input::read_pprof;
use heaptap_model::heap_graph::{Dominators, Follow, ObjectIndex, ShortestPaths};
use heaptap_model::stacks::{JoinBy, join};
use heaptap_model::timeline::Timeline;
use perfetto_heap::{DumpScanner, MemoryWanted, Surveyed, TraceError, read_packages};
use std::io::Cursor;
use std::ops::ControlFlow;

/// Bytes as a trace: decoded, encoded, compressed; its figures of memory; and as one that is
/// still being written.
pub fn trace(bytes: &[u8]) {
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let _ = R8Mappings::open_what_opens(&NameOptions::default()).name(&mut trace);
    let mut trace = trace.seal();
    let pprof = Pprof::new(trace.recording().clone(), PprofOptions::default());
    let mut gzip = Gzip::default();
    let _ = trace.read_dumps(|dump| -> Result<(), TraceError> {
        gzip.compress(&pprof.encode(&dump, &[]));
        Ok(())
    });
    for (every_counter, collections_only) in [(false, false), (true, false), (false, true)] {
        let wanted = MemoryWanted {
            pids: None,
            every_counter,
            collections_only,
        };
        if let Ok(memory) = trace.memory(&wanted) {
            let lines: String = memory.timeline.entries.iter().map(|e| e.line()).collect();
            let (back, strange) = Timeline::parse(&lines);
            assert_eq!((back, strange), (memory.timeline, 0));
        }
    }
    for at in 0..trace.smaps().len() {
        if let Ok(rows) = trace.read_smaps(at) {
            all_of_smaps(&android_memory::smaps::Smaps::of_rows(&rows));
        }
    }
    read_packages(bytes);
    let mut scanner = DumpScanner::default();
    for piece in bytes.chunks(100) {
        scanner.push(piece);
    }
}

/// Bytes as a pprof: read, joined with itself both ways, its numbers carried over.
pub fn pprof(bytes: &[u8]) {
    let Some(read) = read_pprof(bytes) else {
        return;
    };
    let table = &read.profile.table;
    for by in [JoinBy::Exact, JoinBy::Name] {
        let joined = join(&[table, table], by);
        assert_eq!(joined.nodes[0], joined.nodes[1]);
        for dump in &read.profile.dumps {
            let through = dump.values.through(&joined.nodes[0]);
            assert!(through.nodes.len() <= dump.values.nodes.len());
            assert!(through.nodes.is_sorted_by(|a, b| a < b));
        }
    }
}

/// Bytes as a trace with Java heaps: decoded, named, walked, written as profiles; twice, with one
/// result.
pub fn heap_graph(bytes: &[u8]) {
    const OBJECTS: u32 = 300;
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let maps = R8Mappings::open_what_opens(&NameOptions::default());
    let Ok(mut renamed) = maps.name(&mut trace) else {
        return;
    };
    let mut trace = trace.seal();
    let recording = trace.recording().clone();
    for at in 0..trace.java_dumps().len().min(8) {
        let mut graph = trace.read_java_dump(at).expect("memory can be read");
        let again = trace.read_java_dump(at).expect("memory can be read");
        assert_same(&graph, &again);
        renamed.heaps.name(&mut graph, &recording);
        for object in (0..OBJECTS.min(graph.len() as u32)).map(ObjectIndex) {
            assert_eq!(graph.find(graph.id(object)), Some(object));
            fields::visit(&graph, object, |_| ControlFlow::Continue(()));
        }
        let shortest = ShortestPaths::new(&graph, Follow::default());
        let dominators = Dominators::compute(&graph, Follow::default());
        assert_eq!(dominators.order().len(), shortest.order().len());
        let sums = class_aggregation(&graph, &dominators);
        let reachable: u64 = sums.iter().map(|sums| sums.reachable.count).sum();
        for over in [
            Over::ShortestPaths(&shortest),
            Over::Dominators(&dominators),
        ] {
            let tree = ClassTree::new(&graph, over, Merge::Collapsed);
            let nodes = tree.nodes.iter().filter(|node| !node.is_native);
            assert_eq!(nodes.map(|node| node.count).sum::<u64>(), reachable);
            let (tree, _) = java_pprof::tree_for_profile(&graph, over);
            java_pprof::encode(&tree, &JavaProfile::default());
        }
        let _ = leaks::find(&graph);
    }
}
