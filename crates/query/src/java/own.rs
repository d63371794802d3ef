//! heaptap's own tables: objects with their retained sizes, classes with sums by name, and readable
//! paths to objects.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use super::super::table::{
    Argument, Catalog, Cell, Fixed, Rows, Schema, TableError, columns, schema,
};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{HistogramKey, ObjectScope, Row, Sums, histogram};
use heaptap_analyze::label;
use heaptap_analyze::paths::{self, Path, Place};
use heaptap_model::heap_graph::{Follow, ObjectIndex};

static OBJECTS: Schema = schema! {
    "heaptap_java_object":
        "Objects of Java heaps with their retained sizes and their paths from GC roots.";
    id int row: "number of the row";
    upid int: "process";
    ts int sorted: "time of the dump in ns";
    address int indexed: "object ID in the dump itself";
    class text: "class; `class X` for the class object of X";
    class_id int indexed: "class: `heap_graph_class.id`";
    shallow_bytes int: "shallow size";
    native_bytes int: "native bytes that it owns";
    retained_bytes int: "Java part of the retained size; 0 if unreachable";
    retained_native_bytes int: "retained native bytes";
    retained_count int: "number of retained objects, including itself";
    dominator_id int own: "immediate dominator; NULL if it has none";
    distance int: "number of references in `path`; NULL if unreachable";
    root text: "kind of GC root, if it is one";
    text text: "text of a string, if the dump has it";
    path text hidden: "path from a GC root, with field names";
};

static CLASSES: Schema = schema! {
    "heaptap_java_class":
        "Classes by name, with sums over the reachable and the unreachable instances of each dump.";
    id int row: "number of the row";
    upid int: "process";
    ts int sorted: "time of the dump in ns";
    class text indexed: "class";
    package text: "package";
    count int: "reachable instances";
    shallow_bytes int: "shallow size of the reachable instances";
    native_bytes int: "native bytes owned by the reachable instances";
    retained_bytes int: "bytes retained by the reachable instances";
    retained_native_bytes int: "native bytes retained by the reachable instances";
    retained_count int: "objects retained by the reachable instances";
    garbage_count int: "unreachable instances";
    garbage_bytes int: "shallow size of the unreachable instances";
};

static PATH: Schema = schema! {
    "heaptap_java_path":
        "Path from a GC root to an object: heaptap_java_path(object), the root first.";
    id int row: "number of the row";
    object_id int: "object on the path: `heap_graph_object.id`";
    class text: "class of the object";
    field text: "field or element of the previous object that refers to it";
    shallow_bytes int: "shallow size";
    retained_bytes int: "Java part of the retained size";
    root text: "kind of GC root, in the first row";
    object int argument hidden: "object: `heap_graph_object.id`";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let lazy = heaps.clone();
    catalog.table(&OBJECTS, move || {
        let heaps = lazy.get()?;
        Ok(Arc::new(Objects {
            ways: heaps.all().iter().map(|_| OnceLock::new()).collect(),
            heaps,
        }))
    });
    let classes = heaps.model(Classes::from_heaps);
    catalog.rows(&CLASSES, &classes, |of| of.rows.len(), class_cell);
    let lazy = heaps.clone();
    catalog.function(&PATH, move |arguments| {
        let heaps = lazy.get()?;
        let asked = match arguments.last() {
            Some(Argument::Int(object)) => heaps.find_object(*object),
            _ => None,
        };
        let Some((heap, object)) = asked else {
            return Err(TableError(
                "heaptap_java_path: no such object; write \
                 heaptap_java_path(heap_graph_object.id)"
                    .to_owned(),
            ));
        };
        Ok(Arc::new(Fixed(steps(heap, object))))
    });
}

/// Returns the path that `heaptap paths` shows, too.
fn path(heap: &Heap, object: ObjectIndex) -> Path {
    paths::shortest(&heap.graph, heap.best_paths(), Follow::default(), object)
}

fn field(place: &Place) -> String {
    match place {
        Place::Field(name) | Place::Static(name) => format!(".{name}"),
        Place::Element(index) => format!("[{index}]"),
        Place::Elements => "[*]".to_owned(),
        Place::Unnamed => ".?".to_owned(),
    }
}

/// Roots and lengths of the paths to a dump's objects.
struct Ways {
    /// By object; `u32::MAX` if unreachable.
    distances: Vec<u32>,
    /// Root of the path, by object; the object itself if unreachable.
    roots: Vec<ObjectIndex>,
}

impl Ways {
    fn from_heap(heap: &Heap) -> Ways {
        let paths = heap.best_paths();
        let mut roots: Vec<ObjectIndex> = heap.graph.objects().collect();
        for &object in paths.order() {
            if let Some(parent) = paths.parent(object) {
                roots[object.at()] = roots[parent.at()];
            }
        }
        Ways {
            distances: paths.distances(),
            roots,
        }
    }
}

/// Maximum number of references in a path shown in one line: a linked list can have a million.
const STEPS_IN_WORDS: usize = 40;

struct Objects {
    heaps: Arc<Heaps>,
    /// By dump.
    ways: Vec<OnceLock<Ways>>,
}

impl Objects {
    fn ways(&self, row: usize, heap: &Heap) -> &Ways {
        self.ways[self.heaps.position(row)].get_or_init(|| Ways::from_heap(heap))
    }

    fn distance(&self, row: usize, heap: &Heap, object: ObjectIndex) -> Option<u32> {
        let distance = self.ways(row, heap).distances[object.at()];
        (distance != u32::MAX).then_some(distance)
    }

    /// Returns the path in one line: `system class: class lab.Lab .CACHE-> java.util.ArrayList
    /// .elementData-> …`.
    fn path_in_words(&self, row: usize, heap: &Heap, object: ObjectIndex) -> String {
        let graph = &heap.graph;
        let paths = heap.best_paths();
        let mut steps = vec![object];
        let mut at = object;
        while let Some(parent) = paths.parent(at) {
            if steps.len() > STEPS_IN_WORDS {
                break;
            }
            steps.push(parent);
            at = parent;
        }
        let root = self.ways(row, heap).roots[object.at()];
        let mut text = String::new();
        if let Some(reason) = paths::root_reason(graph, root) {
            let _ = write!(text, "{reason}: ");
        }
        text += &label::object_name(graph, root);
        if at != root {
            let left_out = self.distance(row, heap, at).unwrap_or_default();
            let _ = write!(text, " … {left_out} references …");
        }
        for pair in steps.windows(2).rev() {
            let (target, owner) = (pair[0], pair[1]);
            let link = paths::link(graph, owner, target, Follow::default());
            let name = label::object_name(graph, target);
            let _ = write!(text, " {}-> {name}", field(&link.place));
        }
        text
    }
}

impl Rows for Objects {
    fn len(&self) -> usize {
        self.heaps.objects()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (heap, object) = self.heaps.object(row);
        let graph = &heap.graph;
        match column {
            0 => row.into(),
            1 => heap.upid.into(),
            2 => heap.ts().into(),
            3 => graph.id(object).0.into(),
            4 => Cell::Text(label::object_name(graph, object)),
            5 => heap.class_row(graph.class_of(object)).into(),
            6 => graph.shallow_bytes(object).into(),
            7 => graph.native_bytes(object).into(),
            8 => heap.dominators().retained_bytes(object).into(),
            9 => heap.dominators().retained_native_bytes(object).into(),
            10 => heap.dominators().retained_count(object).into(),
            11 => {
                let dominator = heap.dominators().idom(object);
                dominator.map(|dominator| heap.row(dominator)).into()
            }
            12 => self.distance(row, heap, object).into(),
            13 => graph.root_kind(object).map(|kind| kind.in_words()).into(),
            14 => graph.contents().string(graph, object).into(),
            _ => self.path_in_words(row, heap, object).into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        match column {
            2 => Some(self.heaps.all().len()),
            3 => Some(self.heaps.objects()),
            5 => Some(self.heaps.classes()),
            11 => Some(self.heaps.objects() / 3),
            _ => None,
        }
    }

    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        debug_assert_eq!(column, 11, "lookup needs the dominator column");
        if let Some((heap, above)) = self.heaps.find_object(key) {
            let below = heap.dominators().children(above);
            found.extend(below.map(|object| heap.row(object) as u32));
            found.sort_unstable();
        }
    }
}

struct Classes {
    heaps: Arc<Heaps>,
    /// Position of the dump, sums over reachable instances, and sums over unreachable ones.
    rows: Vec<(usize, Row, Sums)>,
}

impl Classes {
    fn from_heaps(heaps: Arc<Heaps>) -> Classes {
        let mut rows = Vec::new();
        for (at, heap) in heaps.all().iter().enumerate() {
            let graph = &heap.graph;
            let all = Filter::default();
            let reachable = ObjectScope::Reachable(heap.dominators());
            let mut of_dump = histogram(graph, reachable, HistogramKey::Class, &all).rows;
            let garbage = ObjectScope::Unreachable(heap.reachable());
            let garbage = histogram(graph, garbage, HistogramKey::Class, &all).rows;
            let mut garbage: std::collections::BTreeMap<String, Sums> = garbage
                .into_iter()
                .map(|row| (row.name, row.sums))
                .collect();
            of_dump.sort_by(|a, b| a.name.cmp(&b.name));
            for row in of_dump {
                let lost = garbage.remove(&row.name).unwrap_or_default();
                rows.push((at, row, lost));
            }
            for (name, lost) in garbage {
                let row = Row {
                    name,
                    sums: Sums::default(),
                };
                rows.push((at, row, lost));
            }
        }
        Classes { heaps, rows }
    }
}

fn class_cell(of: &Classes, row: usize, column: usize) -> Cell<'_> {
    let (at, class, garbage) = &of.rows[row];
    let heap = &of.heaps.all()[*at];
    let sums = &class.sums;
    match column {
        0 => row.into(),
        1 => heap.upid.into(),
        2 => heap.ts().into(),
        3 => Cell::text(&class.name),
        4 => Cell::text(label::package(&class.name)),
        5 => sums.count.into(),
        6 => sums.shallow_bytes.into(),
        7 => sums.native_bytes.into(),
        8 => sums.retained.bytes.into(),
        9 => sums.retained.native_bytes.into(),
        10 => sums.retained.count.into(),
        11 => garbage.count.into(),
        _ => garbage.shallow_bytes.into(),
    }
}

fn steps(heap: &Heap, object: ObjectIndex) -> Vec<Vec<Cell<'static>>> {
    let path = path(heap, object);
    let mut root = path.root.map(|root| root.to_string());
    let steps = path.steps.into_iter().enumerate().map(|(row, step)| {
        vec![
            row.into(),
            heap.row(step.object).into(),
            label::object_name(&heap.graph, step.object)
                .into_owned()
                .into(),
            step.link.map(|link| link.to_string()).into(),
            heap.graph.shallow_bytes(step.object).into(),
            heap.dominators().retained_bytes(step.object).into(),
            root.take().into(),
            Cell::Null,
        ]
    });
    steps.collect()
}
