//! `heap_graph`, with one row for each dump, and tables of OutOfMemoryErrors.

use std::sync::Arc;

use super::super::native::NativeHeaps;
use super::super::table::{Catalog, Cell, Column, Schema, columns, schema};
use super::heaps::{Heaps, LazyHeaps};

static DUMPS: Schema = schema! {
    "heap_graph": "Java heap dumps.";
    id int row: "number of the row";
    ts int sorted: "time of the dump, ns of trace time";
    upid int: "process";
    dump_reason text: "reason for the dump, such as OOME";
    heap_size int: "bytes allocated in the heap, as reported by the runtime";
    truncated int: "1 if packets of the dump are missing";
};

/// Columns of the table and of the library's view, which are the same.
const ERROR_COLUMNS: &[Column] = columns! {
    id int row: "number of the row";
    heap_graph_id int indexed: "dump: `heap_graph.id`";
    allocation_size_bytes int: "bytes of the failed allocation";
    total_bytes_free int: "free bytes in the heap";
    free_bytes_until_oom int: "bytes that could still have been allocated";
    error_msg text: "error message";
};

static ERRORS: Schema = Schema {
    name: "heap_graph_java_oome_details",
    module: None,
    about: "OutOfMemoryErrors that caused Java heap dumps.",
    columns: ERROR_COLUMNS,
};

static ERRORS_OF_LIBRARY: Schema = Schema {
    name: "android_heap_graph_java_oome_details",
    module: Some("android.memory.heap_graph.oome"),
    ..ERRORS
};

static FRAMES: Schema = schema! {
    "heaptap_java_oom_frame": "Callstacks that threw OutOfMemoryErrors, the throwing frame first.";
    id int row: "number of the row";
    heap_graph_id int indexed: "dump: `heap_graph.id`";
    depth int: "0 for the throwing frame";
    method text: "method with its class";
    file text: "source file, if known";
    line int: "line, if known";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let dumps = heaps.whole();
    catalog.rows(&DUMPS, &dumps, |heaps| heaps.all().len(), dump_cell);
    let lazy = heaps.clone();
    catalog.fixed(&FRAMES, move || {
        let dumps = lazy.list().enumerate();
        let frames = dumps.flat_map(|(dump, (facts, _))| {
            let stack = facts.out_of_memory.iter().flat_map(|error| &error.stack);
            stack
                .enumerate()
                .map(move |(depth, frame)| (dump, depth, frame))
        });
        let rows = frames.enumerate().map(|(row, (dump, depth, frame))| {
            let file = (!frame.file.is_empty()).then(|| frame.file.clone());
            vec![
                row.into(),
                dump.into(),
                depth.into(),
                frame.method.clone().into(),
                file.into(),
                (frame.line > 0).then_some(frame.line).into(),
            ]
        });
        Ok(rows.collect())
    });
    for schema in [&ERRORS, &ERRORS_OF_LIBRARY] {
        let dumps = Arc::clone(&dumps);
        catalog.fixed(schema, move || {
            let heaps = dumps()?;
            let dumps = heaps.all().iter().enumerate();
            let errors =
                dumps.filter_map(|(at, heap)| Some((at, heap.facts.out_of_memory.as_ref()?)));
            let rows = errors.enumerate().map(|(row, (dump, error))| {
                let message = (!error.message.is_empty()).then(|| error.message.clone());
                vec![
                    row.into(),
                    dump.into(),
                    error.allocation_bytes.into(),
                    error.free_bytes.into(),
                    error.free_until_oom_bytes.into(),
                    message.into(),
                ]
            });
            Ok(rows.collect())
        });
    }
}

static CALLSITES: Schema = schema! {
    "heap_graph_thread_callsite": "Callstacks that threw OutOfMemoryErrors.";
    id int row: "number of the row";
    heap_graph_id int indexed: "dump: `heap_graph.id`";
    utid int: "main thread of the process";
    callsite_id int indexed: "callsite: `stack_profile_callsite.id`";
};

/// Adds the table of the callstacks of OutOfMemoryErrors, whose callsites are among the native ones.
pub fn add_callsites(catalog: &mut Catalog, heaps: &LazyHeaps, native: &Arc<NativeHeaps>) {
    let (lazy, native, stop) = (heaps.clone(), Arc::clone(native), catalog.stop());
    catalog.fixed(&CALLSITES, move || {
        let callsites = native.callsites(&stop)?;
        let dumps = lazy.list().enumerate();
        let thrown = dumps.filter_map(|(dump, (facts, upid))| {
            let thrown = facts.out_of_memory.as_ref()?.callsite;
            let leaf = thrown.and_then(|callsite| callsites.leaf(callsite));
            // Each process has one thread here, with the number of the process.
            Some((dump, upid, leaf))
        });
        let rows = thrown.enumerate().map(|(row, (dump, upid, leaf))| {
            vec![row.into(), dump.into(), upid.into(), leaf.into()]
        });
        Ok(rows.collect())
    });
}

fn dump_cell(heaps: &Heaps, row: usize, column: usize) -> Cell<'_> {
    let heap = &heaps.all()[row];
    let facts = &heap.graph.facts;
    match column {
        0 => row.into(),
        1 => heap.ts().into(),
        2 => heap.upid.into(),
        3 => heap.facts.reason.as_deref().into(),
        4 => facts.heap_bytes_allocated.into(),
        _ => Cell::flag(facts.losses.truncated),
    }
}
