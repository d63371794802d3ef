//! heaptap's own tables: objects with their retained sizes, classes with sums by name, and readable
//! paths to objects.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use super::super::table::{Access, Argument, Catalog, Cell, Column, Rows, Schema, TableError};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{HistogramKey, ObjectScope, Row, Sums, histogram};
use heaptap_analyze::label;
use heaptap_analyze::paths::{self, Path, Place};
use heaptap_model::heap_graph::{Follow, ObjectIndex};

static OBJECTS: Schema = Schema {
    name: "heaptap_java_object",
    module: None,
    about: "Objects of Java heaps with their retained sizes and their paths from GC roots.",
    columns: &[
        Column::id(),
        Column::int("upid", "process"),
        Column::int("ts", "time of the dump in ns").sorted(),
        Column::int("address", "object ID in the dump itself").indexed(),
        Column::text("class", "class; `class X` for the class object of X"),
        Column::int("class_id", "class: `heap_graph_class.id`").indexed(),
        Column::int("shallow_bytes", "shallow size"),
        Column::int("native_bytes", "native bytes that it owns"),
        Column::int(
            "retained_bytes",
            "Java part of the retained size; 0 if unreachable",
        ),
        Column::int("retained_native_bytes", "retained native bytes"),
        Column::int(
            "retained_count",
            "number of retained objects, including itself",
        ),
        Column::int("dominator_id", "immediate dominator; NULL if it has none").found(Access::Own),
        Column::int(
            "distance",
            "number of references in `path`; NULL if unreachable",
        ),
        Column::text("root", "kind of GC root, if it is one"),
        Column::text("text", "text of a string, if the dump has it"),
        Column::text("path", "path from a GC root, with field names").hidden(),
    ],
};

static CLASSES: Schema = Schema {
    name: "heaptap_java_class",
    module: None,
    about: "Classes by name, with sums over the reachable and the unreachable instances of each \
            dump.",
    columns: &[
        Column::id(),
        Column::int("upid", "process"),
        Column::int("ts", "time of the dump in ns").sorted(),
        Column::text("class", "class").indexed(),
        Column::text("package", "package"),
        Column::int("count", "reachable instances"),
        Column::int("shallow_bytes", "shallow size of the reachable instances"),
        Column::int(
            "native_bytes",
            "native bytes owned by the reachable instances",
        ),
        Column::int(
            "retained_bytes",
            "bytes retained by the reachable instances",
        ),
        Column::int(
            "retained_native_bytes",
            "native bytes retained by the reachable instances",
        ),
        Column::int(
            "retained_count",
            "objects retained by the reachable instances",
        ),
        Column::int("garbage_count", "unreachable instances"),
        Column::int("garbage_bytes", "shallow size of the unreachable instances"),
    ],
};

static PATH: Schema = Schema {
    name: "heaptap_java_path",
    module: None,
    about: "Path from a GC root to an object: heaptap_java_path(object), the root first.",
    columns: &[
        Column::id(),
        Column::int("object_id", "object on the path: `heap_graph_object.id`"),
        Column::text("class", "class of the object"),
        Column::text(
            "field",
            "field or element of the previous object that refers to it",
        ),
        Column::int("shallow_bytes", "shallow size"),
        Column::int("retained_bytes", "Java part of the retained size"),
        Column::text("root", "kind of GC root, in the first row"),
        Column::int("object", "object: `heap_graph_object.id`")
            .argument()
            .hidden(),
    ],
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    heaps.table(catalog, &OBJECTS, |heaps| Objects {
        ways: heaps.all().iter().map(|_| OnceLock::new()).collect(),
        heaps,
    });
    heaps.table(catalog, &CLASSES, Classes::of);
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
        Ok(Arc::new(Steps {
            rows: steps(heap, object),
        }))
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
    fn of(heap: &Heap) -> Ways {
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
        self.ways[self.heaps.position(row)].get_or_init(|| Ways::of(heap))
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
            3 => Cell::bits(graph.id(object).0),
            4 => Cell::Text(label::object_name(graph, object)),
            5 => heap.class_row(graph.class_of(object)).into(),
            6 => Cell::bits(graph.shallow_bytes(object)),
            7 => Cell::bits(graph.native_bytes(object)),
            8 => Cell::bits(heap.dominators().retained_bytes(object)),
            9 => Cell::bits(heap.dominators().retained_native_bytes(object)),
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
    fn of(heaps: Arc<Heaps>) -> Classes {
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

impl Rows for Classes {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (at, class, garbage) = &self.rows[row];
        let heap = &self.heaps.all()[*at];
        let sums = &class.sums;
        match column {
            0 => row.into(),
            1 => heap.upid.into(),
            2 => heap.ts().into(),
            3 => Cell::text(&class.name),
            4 => Cell::text(label::package(&class.name)),
            5 => Cell::bits(sums.count),
            6 => Cell::bits(sums.shallow_bytes),
            7 => Cell::bits(sums.native_bytes),
            8 => Cell::bits(sums.retained.bytes),
            9 => Cell::bits(sums.retained.native_bytes),
            10 => Cell::bits(sums.retained.count),
            11 => Cell::bits(garbage.count),
            _ => Cell::bits(garbage.shallow_bytes),
        }
    }
}

struct Step {
    object: usize,
    class: String,
    field: Option<String>,
    shallow_bytes: u64,
    retained_bytes: u64,
    root: Option<String>,
}

fn steps(heap: &Heap, object: ObjectIndex) -> Vec<Step> {
    let path = path(heap, object);
    let mut root = path.root.map(|root| root.to_string());
    let steps = path.steps.into_iter().map(|step| Step {
        object: heap.row(step.object),
        class: label::object_name(&heap.graph, step.object).into_owned(),
        field: step.link.map(|link| link.to_string()),
        shallow_bytes: heap.graph.shallow_bytes(step.object),
        retained_bytes: heap.dominators().retained_bytes(step.object),
        root: root.take(),
    });
    steps.collect()
}

struct Steps {
    rows: Vec<Step>,
}

impl Rows for Steps {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let step = &self.rows[row];
        match column {
            0 => row.into(),
            1 => step.object.into(),
            2 => Cell::text(&step.class),
            3 => step.field.as_deref().into(),
            4 => Cell::bits(step.shallow_bytes),
            5 => Cell::bits(step.retained_bytes),
            6 => step.root.as_deref().into(),
            _ => Cell::Null,
        }
    }
}
