//! `heap_graph_bitmaps`: `android.graphics.Bitmap` objects and the facts in their IDs. A bitmap
//! received in a parcel has the ID of the sender as its source ID.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::processes::Processes;
use super::super::table::{Catalog, Cell, Schema, columns, schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::bitmaps::{BITMAP, BitmapId};
use heaptap_model::heap_graph::ObjectIndex;

static SCHEMA: Schema = schema! {
    "heap_graph_bitmaps" in "android.memory.heap_graph.bitmap":
        "Bitmaps of Java heaps, with the location of their pixels and their source process.";
    object_id int sorted: "object";
    upid int: "process";
    graph_sample_ts int: "time of the dump in ns";
    width int: "pixels, if the dump has values";
    height int: "pixels, if the dump has values";
    density int: "dots per inch, if the dump has values";
    bitmap_id int: "bitmap ID, if it has one";
    bitmap_pid int: "PID of the process that created it";
    bitmap_storage_type text: "location of its pixels: heap, ashmem, hardware …";
    source_id int: "bitmap ID in the source process";
    source_pid int: "PID of the source process";
    source_storage_type text: "location of its pixels in the source process";
    source_upid int: "source process";
    source_process_name text: "name of the source process";
    self_size int: "shallow size";
    native_size int: "native bytes that it owns";
    reachable int: "1 if reachable from GC roots, otherwise 0";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let processes = heaps.processes();
    let model = heaps.model(move |heaps| {
        let mut rows = Vec::new();
        for heap in heaps.all() {
            let classes = heap.graph.classes().iter();
            let is_bitmap: Vec<bool> = classes.map(|class| class.shown() == BITMAP).collect();
            if is_bitmap.contains(&true) {
                let objects = heap.rows().zip(heap.objects());
                let bitmaps =
                    objects.filter(|&(_, object)| is_bitmap[heap.graph.class_of(object).at()]);
                let bitmap = |(row, object)| (row, bitmap(heap, row, object, &processes));
                rows.extend(bitmaps.map(bitmap));
            }
        }
        Bitmaps { heaps, rows }
    });
    catalog.rows(&SCHEMA, &model, |all| all.rows.len(), cell);
}

struct Bitmaps {
    heaps: Arc<Heaps>,
    /// Rows in the table of objects, each with all cells but the last.
    rows: Vec<(usize, Vec<Cell<'static>>)>,
}

fn cell(all: &Bitmaps, row: usize, column: usize) -> Cell<'_> {
    let (object, cells) = &all.rows[row];
    // What is reachable takes a walk through the heap.
    cells.get(column).cloned().unwrap_or_else(|| {
        let (heap, object) = all.heaps.object(*object);
        Cell::flag(heap.reachable().contains(object))
    })
}

fn bitmap(
    heap: &Heap,
    row: usize,
    object: ObjectIndex,
    processes: &Processes,
) -> Vec<Cell<'static>> {
    let graph = &heap.graph;
    let [mut width, mut height, mut density, mut id, mut source] = [None; 5];
    graph.contents().fields(graph, object, &mut |field| {
        let place = match field.name {
            Some("mWidth") => &mut width,
            Some("mHeight") => &mut height,
            Some("mDensity") => &mut density,
            Some("mId") => &mut id,
            Some("mSourceId") => &mut source,
            _ => return ControlFlow::Continue(()),
        };
        *place = field.value.integer();
        ControlFlow::Continue(())
    });
    let facts = |id: Option<i64>| -> [Cell<'static>; 3] {
        let id = id.map(BitmapId);
        [
            id.map(|id| id.0).into(),
            id.map(BitmapId::pid).into(),
            id.and_then(BitmapId::storage).into(),
        ]
    };
    // -1: the bitmap was not received from another process.
    let source = source.filter(|&source| source != -1);
    let source_pid = source.and_then(|id| u64::try_from(BitmapId(id).pid()).ok());
    let source_upid = source_pid.and_then(|pid| processes.upid(pid));
    let process = source_upid.and_then(|upid| processes.rows().get(upid as usize));
    let mut cells = vec![row.into(), heap.upid.into(), heap.ts().into()];
    cells.extend([width, height, density].map(Cell::from));
    cells.extend(facts(id).into_iter().chain(facts(source)));
    cells.extend([
        source_upid.into(),
        process.and_then(|process| process.name.clone()).into(),
        graph.shallow_bytes(object).into(),
        graph.native_bytes(object).into(),
    ]);
    cells
}
