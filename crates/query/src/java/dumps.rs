//! `heap_graph`, with one row for each dump, and tables of OutOfMemoryErrors.

use std::sync::Arc;

use super::super::native::NativeHeaps;
use super::super::table::{Catalog, Cell, Column, Rows, Schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_model::heap_graph::{OutOfMemory, ThrownFrame};

const DUMPS: Schema = Schema {
    name: "heap_graph",
    module: None,
    about: "Java heap dumps.",
    columns: &[
        Column::id(),
        Column::int("ts", "time of the dump, ns of trace time").sorted(),
        Column::int("upid", "process"),
        Column::text("dump_reason", "reason for the dump, such as OOME"),
        Column::int(
            "heap_size",
            "bytes allocated in the heap, as reported by the runtime",
        ),
        Column::int("truncated", "1 if packets of the dump are missing"),
    ],
};

/// Columns of the table and of the library's view, which are the same.
const ERROR_COLUMNS: &[Column] = &[
    Column::id(),
    Column::int("heap_graph_id", "dump: `heap_graph.id`").indexed(),
    Column::int("allocation_size_bytes", "bytes of the failed allocation"),
    Column::int("total_bytes_free", "free bytes in the heap"),
    Column::int(
        "free_bytes_until_oom",
        "bytes that could still have been allocated",
    ),
    Column::text("error_msg", "error message"),
];

const ERRORS: Schema = Schema {
    name: "heap_graph_java_oome_details",
    module: None,
    about: "OutOfMemoryErrors that caused Java heap dumps.",
    columns: ERROR_COLUMNS,
};

const ERRORS_OF_LIBRARY: Schema = Schema {
    name: "android_heap_graph_java_oome_details",
    module: Some("android.memory.heap_graph.oome"),
    about: "OutOfMemoryErrors that caused Java heap dumps.",
    columns: ERROR_COLUMNS,
};

static FRAMES: Schema = Schema {
    name: "heaptap_java_oom_frame",
    module: None,
    about: "Callstacks that threw OutOfMemoryErrors, the throwing frame first.",
    columns: &[
        Column::id(),
        Column::int("heap_graph_id", "dump: `heap_graph.id`").indexed(),
        Column::int("depth", "0 for the throwing frame"),
        Column::text("method", "method with its class"),
        Column::text("file", "source file, if known"),
        Column::int("line", "line, if known"),
    ],
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    heaps.table(catalog, &DUMPS, Dumps);
    let lazy = heaps.clone();
    catalog.table(&FRAMES, move || {
        let dumps = lazy.list().enumerate();
        let frames = dumps.flat_map(|(dump, (facts, _))| {
            let stack = facts.out_of_memory.iter().flat_map(|error| &error.stack);
            let frames = stack.cloned().enumerate();
            frames.map(move |(depth, frame)| Frame { dump, depth, frame })
        });
        Ok(Arc::new(Frames(frames.collect())))
    });
    for schema in [&ERRORS, &ERRORS_OF_LIBRARY] {
        heaps.table(catalog, schema, |heaps| {
            let with_error = |heap: &&Heap| heap.facts.out_of_memory.is_some();
            let numbered = heaps.all().iter().zip(0..);
            let rows = numbered.filter(|(heap, _)| with_error(heap));
            let rows = rows.map(|(_, at)| at).collect();
            Errors { heaps, rows }
        });
    }
}

static CALLSITES: Schema = Schema {
    name: "heap_graph_thread_callsite",
    module: None,
    about: "Callstacks that threw OutOfMemoryErrors.",
    columns: &[
        Column::id(),
        Column::int("heap_graph_id", "dump: `heap_graph.id`").indexed(),
        Column::int("utid", "main thread of the process"),
        Column::int("callsite_id", "callsite: `stack_profile_callsite.id`").indexed(),
    ],
};

/// Dump, thread and callsite of errors.
struct Thrown(Vec<[Option<u32>; 3]>);

impl Rows for Thrown {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column.checked_sub(1) {
            None => row.into(),
            Some(at) => self.0[row][at].into(),
        }
    }
}

/// Adds the table of the callstacks of OutOfMemoryErrors, whose callsites are among the native ones.
pub fn add_callsites(catalog: &mut Catalog, heaps: &LazyHeaps, native: &Arc<NativeHeaps>) {
    let (lazy, native, stop) = (heaps.clone(), Arc::clone(native), catalog.stop());
    catalog.table(&CALLSITES, move || {
        let callsites = native.callsites(&stop)?;
        let dumps = (0u32..).zip(lazy.list());
        let rows = dumps.filter_map(|(dump, (facts, upid))| {
            let thrown = facts.out_of_memory.as_ref()?.callsite;
            let leaf = thrown.and_then(|callsite| callsites.leaf(callsite));
            // Each process has one thread here, with the number of the process.
            Some([Some(dump), Some(upid), leaf])
        });
        Ok(Arc::new(Thrown(rows.collect())))
    });
}

struct Frame {
    dump: usize,
    depth: usize,
    frame: ThrownFrame,
}

struct Frames(Vec<Frame>);

impl Rows for Frames {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let Frame { dump, depth, frame } = &self.0[row];
        match column {
            0 => row.into(),
            1 => (*dump).into(),
            2 => (*depth).into(),
            3 => Cell::text(&frame.method),
            4 if frame.file.is_empty() => Cell::Null,
            4 => Cell::text(&frame.file),
            _ => (frame.line > 0).then_some(frame.line).into(),
        }
    }
}

struct Dumps(Arc<Heaps>);

impl Rows for Dumps {
    fn len(&self) -> usize {
        self.0.all().len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let heap = &self.0.all()[row];
        let facts = &heap.graph.facts;
        match column {
            0 => row.into(),
            1 => heap.ts().into(),
            2 => heap.upid.into(),
            3 => heap.facts.reason.as_deref().into(),
            4 => facts.heap_bytes_allocated.map_or(Cell::Null, Cell::bits),
            _ => Cell::flag(facts.losses.truncated),
        }
    }
}

/// Positions of the dumps with an error.
struct Errors {
    heaps: Arc<Heaps>,
    rows: Vec<usize>,
}

impl Errors {
    fn of(&self, row: usize) -> Option<&OutOfMemory> {
        self.heaps.all()[self.rows[row]]
            .facts
            .out_of_memory
            .as_ref()
    }
}

impl Rows for Errors {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let Some(error) = self.of(row) else {
            return Cell::Null;
        };
        match column {
            0 => row.into(),
            1 => self.rows[row].into(),
            2 => Cell::bits(error.allocation_bytes),
            3 => Cell::bits(error.free_bytes),
            4 => Cell::bits(error.free_until_oom_bytes),
            _ if error.message.is_empty() => Cell::Null,
            _ => Cell::text(&error.message),
        }
    }
}
