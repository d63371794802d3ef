//! Tables of our own: objects with what they retain, classes with sums by name, paths to objects
//! as people read them.

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
    about: "Objects of Java heaps with what each retains and how a root reaches it.",
    columns: &[
        Column::id(),
        Column::int("upid", "its process"),
        Column::int("ts", "its dump, by the time of that in ns").sorted(),
        Column::int("address", "its id in the dump itself").indexed(),
        Column::text("class", "its class; `class X` for the class object of X"),
        Column::int("class_id", "its class: `heap_graph_class.id`").indexed(),
        Column::int("shallow_bytes", "its own size"),
        Column::int("native_bytes", "native bytes that it owns"),
        Column::int(
            "retained_bytes",
            "what would be free without it; 0 for garbage",
        ),
        Column::int("retained_native_bytes", "native bytes that would be free"),
        Column::int(
            "retained_count",
            "objects that would be gone, itself included",
        ),
        Column::int(
            "dominator_id",
            "the object that keeps it alone; NULL where none does",
        )
        .found(Access::Own),
        Column::int(
            "distance",
            "references between a root and it; NULL for garbage",
        ),
        Column::text("root", "why it is a root itself"),
        Column::text("text", "of a string, where the dump has it"),
        Column::text("path", "how a root reaches it, through which fields").hidden(),
    ],
};

static CLASSES: Schema = Schema {
    name: "heaptap_java_class",
    module: None,
    about: "Classes by name with sums over the reachable instances of each dump, and over garbage.",
    columns: &[
        Column::id(),
        Column::int("upid", "the process"),
        Column::int("ts", "the dump, by its time in ns").sorted(),
        Column::text("class", "the class").indexed(),
        Column::text("package", "its package"),
        Column::int("count", "reachable instances"),
        Column::int("shallow_bytes", "their own sizes"),
        Column::int("native_bytes", "native bytes that they own"),
        Column::int("retained_bytes", "what would be free without them"),
        Column::int("retained_native_bytes", "native bytes that would be free"),
        Column::int("retained_count", "objects that would be gone"),
        Column::int("garbage_count", "instances that no root reaches"),
        Column::int("garbage_bytes", "their own sizes"),
    ],
};

static PATH: Schema = Schema {
    name: "heaptap_java_path",
    module: None,
    about: "How a root reaches an object: heaptap_java_path(object), the root first.",
    columns: &[
        Column::id(),
        Column::int("object_id", "an object on the way: `heap_graph_object.id`"),
        Column::text("class", "its class"),
        Column::text(
            "field",
            "the field or element that leads to it from the one before",
        ),
        Column::int("shallow_bytes", "its own size"),
        Column::int("retained_bytes", "what would be free without it"),
        Column::text("root", "why the first is there"),
        Column::int("object", "the object asked for")
            .argument()
            .hidden(),
    ],
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let lazy = heaps.clone();
    catalog.table(&OBJECTS, move || {
        let heaps = lazy.get()?;
        let ways = heaps.all().iter().map(|_| OnceLock::new()).collect();
        Ok(Arc::new(Objects { heaps, ways }))
    });
    let lazy = heaps.clone();
    catalog.table(&CLASSES, move || Ok(Arc::new(Classes::of(lazy.get()?))));
    let lazy = heaps.clone();
    catalog.function(&PATH, move |arguments| {
        let heaps = lazy.get()?;
        let asked = match arguments.last() {
            Some(Argument::Int(object)) => heaps.find_object(*object),
            _ => None,
        };
        let Some((heap, object)) = asked else {
            return Err(TableError(
                "heaptap_java_path: there is no such object: ask for \
                 heaptap_java_path(heap_graph_object.id)"
                    .to_owned(),
            ));
        };
        Ok(Arc::new(Steps {
            rows: steps(heap, object),
        }))
    });
}

/// The path that `heaptap paths` shows too.
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

/// Where the paths of a dump's objects begin, and how long they are.
struct Ways {
    /// By object; `u32::MAX` for garbage.
    distances: Vec<u32>,
    /// By object, the root; itself for garbage.
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

/// So many steps of a path stand in a line: a list may be a million long.
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

    /// The path in a line: `system class: class lab.Lab .CACHE-> java.util.ArrayList
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
        debug_assert_eq!(column, 11, "only dominators are looked up");
        if let Some((heap, above)) = self.heaps.find_object(key) {
            let below = heap.dominators().children(above);
            found.extend(below.map(|object| heap.row(object) as u32));
            found.sort_unstable();
        }
    }
}

struct Classes {
    heaps: Arc<Heaps>,
    /// With the position of the dump, and sums over garbage.
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
