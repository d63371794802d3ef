//! `heap_graph_bitmaps`: `android.graphics.Bitmap` objects and the facts in their IDs. A bitmap
//! received in a parcel has the ID of the sender as its source ID.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::processes::Processes;
use super::super::table::{Catalog, Cell, Column, Rows, Schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::bitmaps::{BITMAP, BitmapId};
use heaptap_model::heap_graph::ObjectIndex;

static SCHEMA: Schema = Schema {
    name: "heap_graph_bitmaps",
    module: Some("android.memory.heap_graph.bitmap"),
    about: "Bitmaps of Java heaps, with the location of their pixels and their source process.",
    columns: &[
        Column::int("object_id", "object").sorted(),
        Column::int("upid", "process"),
        Column::int("graph_sample_ts", "time of the dump in ns"),
        Column::int("width", "pixels, if the dump has values"),
        Column::int("height", "pixels, if the dump has values"),
        Column::int("density", "dots per inch, if the dump has values"),
        Column::int("bitmap_id", "bitmap ID, if it has one"),
        Column::int("bitmap_pid", "PID of the process that created it"),
        Column::text(
            "bitmap_storage_type",
            "location of its pixels: heap, ashmem, hardware …",
        ),
        Column::int("source_id", "bitmap ID in the source process"),
        Column::int("source_pid", "PID of the source process"),
        Column::text(
            "source_storage_type",
            "location of its pixels in the source process",
        ),
        Column::int("source_upid", "source process"),
        Column::text("source_process_name", "name of the source process"),
        Column::int("self_size", "shallow size"),
        Column::int("native_size", "native bytes that it owns"),
        Column::int("reachable", "1 if reachable from GC roots, otherwise 0"),
    ],
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let processes = heaps.processes();
    heaps.table(catalog, &SCHEMA, move |heaps| {
        let mut rows = Vec::new();
        for heap in heaps.all() {
            let classes = heap.graph.classes().iter();
            let is_bitmap: Vec<bool> = classes.map(|class| class.shown() == BITMAP).collect();
            if is_bitmap.contains(&true) {
                let objects = heap.rows().zip(heap.objects());
                let bitmaps =
                    objects.filter(|&(_, object)| is_bitmap[heap.graph.class_of(object).at()]);
                rows.extend(bitmaps.map(|(row, object)| Bitmap::of(heap, row, object)));
            }
        }
        Bitmaps {
            processes: Arc::clone(&processes),
            heaps,
            rows,
        }
    });
}

struct Bitmap {
    row: u32,
    width: Option<i64>,
    height: Option<i64>,
    density: Option<i64>,
    id: Option<BitmapId>,
    source: Option<BitmapId>,
}

impl Bitmap {
    fn of(heap: &Heap, row: usize, object: ObjectIndex) -> Bitmap {
        let mut bitmap = Bitmap {
            row: row as u32,
            width: None,
            height: None,
            density: None,
            id: None,
            source: None,
        };
        let (mut id, mut source) = (None, None);
        let graph = &heap.graph;
        graph.contents().fields(graph, object, &mut |field| {
            let place = match field.name {
                Some("mWidth") => &mut bitmap.width,
                Some("mHeight") => &mut bitmap.height,
                Some("mDensity") => &mut bitmap.density,
                Some("mId") => &mut id,
                Some("mSourceId") => &mut source,
                _ => return ControlFlow::Continue(()),
            };
            *place = field.value.integer();
            ControlFlow::Continue(())
        });
        bitmap.id = id.map(BitmapId);
        // -1: the bitmap was not received from another process.
        bitmap.source = source.filter(|&source| source != -1).map(BitmapId);
        bitmap
    }
}

struct Bitmaps {
    heaps: Arc<Heaps>,
    processes: Arc<Processes>,
    rows: Vec<Bitmap>,
}

impl Bitmaps {
    fn source_upid(&self, bitmap: &Bitmap) -> Option<u32> {
        let pid = u64::try_from(bitmap.source?.pid()).ok()?;
        self.processes.upid(pid)
    }
}

impl Rows for Bitmaps {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let bitmap = &self.rows[row];
        let (heap, object) = self.heaps.object(bitmap.row as usize);
        match column {
            0 => bitmap.row.into(),
            1 => heap.upid.into(),
            2 => heap.ts().into(),
            3 => bitmap.width.into(),
            4 => bitmap.height.into(),
            5 => bitmap.density.into(),
            6 => bitmap.id.map(|id| id.0).into(),
            7 => bitmap.id.map(BitmapId::pid).into(),
            8 => bitmap.id.and_then(BitmapId::storage).into(),
            9 => bitmap.source.map(|id| id.0).into(),
            10 => bitmap.source.map(BitmapId::pid).into(),
            11 => bitmap.source.and_then(BitmapId::storage).into(),
            12 => self.source_upid(bitmap).into(),
            13 => {
                let upid = self.source_upid(bitmap);
                let process = upid.and_then(|upid| self.processes.rows().get(upid as usize));
                process.and_then(|process| process.name.as_deref()).into()
            }
            14 => Cell::bits(heap.graph.shallow_bytes(object)),
            15 => Cell::bits(heap.graph.native_bytes(object)),
            _ => Cell::flag(heap.reachable().contains(object)),
        }
    }
}
