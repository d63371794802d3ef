//! `heap_graph_object`: objects of all dumps.

use std::sync::Arc;

use super::super::table::{Catalog, Cell, Rows, Schema, columns, schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use super::references;
use heaptap_model::heap_graph::{HeapKind, ObjectIndex};

static SCHEMA: Schema = schema! {
    "heap_graph_object":
        "Objects of Java heaps. Objects with the same upid and graph_sample_ts are from one dump.";
    id int row: "number of the row";
    upid int: "process";
    graph_sample_ts int sorted: "time of the dump in ns";
    self_size int: "shallow size in bytes; -1 if the object is referenced but was not dumped";
    native_size int: "native bytes registered with a NativeAllocationRegistry";
    reference_set_id int own: "its references: `heap_graph_reference.reference_set_id`";
    reachable int: "1 if reachable from GC roots, otherwise 0";
    heap_type text: "heap that contains it, such as HEAP_TYPE_APP";
    type_id int indexed: "class: `heap_graph_class.id`";
    root_type text indexed: "kind of GC root, such as ROOT_JNI_GLOBAL";
    root_distance int hidden: "always -1, as in Perfetto";
    object_data_id int own: "contents: `heap_graph_object_data.id`";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let heaps = heaps.clone();
    catalog.table(&SCHEMA, move || Ok(Arc::new(Objects(heaps.get()?))));
}

/// Returns Perfetto's name of a heap.
pub(super) fn heap_name(heap: HeapKind) -> Option<&'static str> {
    match heap {
        HeapKind::Unknown => None,
        HeapKind::App => Some("HEAP_TYPE_APP"),
        HeapKind::Zygote => Some("HEAP_TYPE_ZYGOTE"),
        HeapKind::BootImage => Some("HEAP_TYPE_BOOT_IMAGE"),
    }
}

/// Returns the shallow size that Perfetto shows.
fn self_size(heap: &Heap, object: ObjectIndex) -> Cell<'static> {
    match heap.graph.is_placeholder(object) {
        true => Cell::Int(-1),
        false => heap.graph.shallow_bytes(object).into(),
    }
}

struct Objects(Arc<Heaps>);

impl Rows for Objects {
    fn len(&self) -> usize {
        self.0.objects()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (heap, object) = self.0.object(row);
        let graph = &heap.graph;
        match column {
            0 => row.into(),
            1 => heap.upid.into(),
            2 => heap.ts().into(),
            3 => self_size(heap, object),
            4 => graph.native_bytes(object).into(),
            5 => references::set_of(heap, object).into(),
            6 => Cell::flag(heap.reachable().contains(object)),
            7 => heap_name(graph.heap_of(object)).into(),
            8 => heap.class_row(graph.class_of(object)).into(),
            9 => graph.root_kind(object).map(|kind| kind.name()).into(),
            10 => Cell::Int(-1),
            _ => super::fields::has_data(heap, object).then_some(row).into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        match column {
            2 => Some(self.0.all().len()),
            5 | 11 => Some(self.0.objects()),
            8 => Some(self.0.classes()),
            9 => Some(16),
            _ => None,
        }
    }

    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        let row = match column {
            5 => references::owner_of_set(&self.0, key).map(|(heap, owner)| heap.row(owner)),
            _ => self
                .0
                .find_object(key)
                .filter(|(heap, object)| super::fields::has_data(heap, *object))
                .map(|(heap, object)| heap.row(object)),
        };
        found.extend(row.map(|row| row as u32));
    }
}
