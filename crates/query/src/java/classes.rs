//! `heap_graph_class`: classes of all dumps.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::super::table::{Catalog, Cell, Schema, columns, schema};
use super::heaps::{Heap, Heaps, LazyHeaps, is_hprof};
use heaptap_model::heap_graph::{ClassIndex, ClassKind};

static SCHEMA: Schema = schema! {
    "heap_graph_class": "Classes and array types of Java heaps.";
    id int row: "number of the row";
    name text indexed: "name in the app, possibly obfuscated";
    deobfuscated_name text indexed: "original name from the R8 mapping";
    location text: "file it was loaded from";
    superclass_id int indexed: "superclass: `heap_graph_class.id`";
    classloader_id int indexed: "class loader: `heap_graph_object.id`";
    kind text: "kind of class, such as KIND_ARRAY";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let classes = heaps.model(|heaps| Classes {
        heaps,
        superclasses: OnceLock::new(),
    });
    catalog.rows(&SCHEMA, &classes, |of| of.heaps.classes(), cell);
}

struct Classes {
    heaps: Arc<Heaps>,
    /// Row of the superclass plus 1, by row; 0 for none.
    superclasses: OnceLock<Vec<u32>>,
}

/// Returns Perfetto's name of a kind.
pub(super) fn kind_name(kind: ClassKind) -> &'static str {
    match kind {
        ClassKind::Unknown => "KIND_UNKNOWN",
        ClassKind::Normal => "KIND_NORMAL",
        ClassKind::NoReferences => "KIND_NOREFERENCES",
        ClassKind::String => "KIND_STRING",
        ClassKind::Array => "KIND_ARRAY",
        ClassKind::Class => "KIND_CLASS",
        ClassKind::ClassLoader => "KIND_CLASSLOADER",
        ClassKind::DexCache => "KIND_DEXCACHE",
        ClassKind::SoftReference => "KIND_SOFT_REFERENCE",
        ClassKind::WeakReference => "KIND_WEAK_REFERENCE",
        ClassKind::FinalizerReference => "KIND_FINALIZER_REFERENCE",
        ClassKind::PhantomReference => "KIND_PHANTOM_REFERENCE",
    }
}

/// Returns the superclass that Perfetto shows. In a heap graph this is the value of the class
/// object's field, because types name their superclasses only since Android 12 and not always.
fn superclass(heap: &Heap, class: ClassIndex) -> Option<ClassIndex> {
    let graph = &heap.graph;
    let of_class = graph.class(class);
    if is_hprof(graph) {
        return of_class.superclass;
    }
    let mut found = None;
    let object = of_class.object?;
    graph.contents().fields(graph, object, &mut |field| {
        let declared_in = field.declared_in.map(|class| &*graph.class(class).name);
        if field.name == Some("superClass")
            && declared_in.is_none_or(|name| name == "java.lang.Class")
        {
            found = field.value.object();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    graph.class_behind(found?)
}

impl Classes {
    fn superclasses(&self) -> &[u32] {
        self.superclasses.get_or_init(|| {
            let rows = 0..self.heaps.classes();
            rows.map(|row| {
                let (heap, class) = self.heaps.class(row);
                superclass(heap, class).map_or(0, |above| heap.class_row(above) as u32 + 1)
            })
            .collect()
        })
    }
}

fn cell(of: &Classes, row: usize, column: usize) -> Cell<'_> {
    let (heap, at) = of.heaps.class(row);
    let class = heap.graph.class(at);
    match column {
        0 => row.into(),
        1 => Cell::text(&class.name),
        2 => class.deobfuscated.as_deref().into(),
        3 => class.location.as_deref().into(),
        4 => of.superclasses()[row].checked_sub(1).into(),
        5 => class.loader.map(|loader| heap.row(loader)).into(),
        _ => kind_name(class.kind).into(),
    }
}
