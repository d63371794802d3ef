//! `heap_graph_reference`: references of objects by field. Null ones have rows only in a heap
//! graph.
//!
//! A row is a position in the graph's references, so that those of one object are adjacent and
//! the number of their set is the row of the first. In an HPROF, referents of
//! `java.lang.ref.Reference`s are in a separate list, and their rows follow all others.

use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use super::super::table::{Catalog, Cell, Rows, Schema, columns, schema};
use super::fields::{original_name, recorded_name};
use super::heaps::{Heap, Heaps, LazyHeaps, is_hprof};
use heaptap_base::parallel::lock;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, Value};

static SCHEMA: Schema = schema! {
    "heap_graph_reference": "References between objects of Java heaps, one in each row.";
    id int row: "number of the row";
    reference_set_id int own: "set of all references of one object";
    owner_id int own: "object that has the reference";
    owned_id int indexed:
        "object that it refers to; NULL for a null reference, which has a row only in a heap graph";
    field_name text: "field with the class that declares it; `[0]` for an element, in an HPROF";
    field_type_name text: "type of the field";
    deobfuscated_field_name text: "original name of the field from the R8 mapping";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let heaps = heaps.clone();
    catalog.table(&SCHEMA, move || {
        Ok(Arc::new(References {
            heaps: heaps.get()?,
            named: Mutex::default(),
            elements: Mutex::default(),
        }))
    });
}

/// Returns the referents with rows of their own, as positions in the list of all referents.
fn apart(graph: &HeapGraph, object: ObjectIndex) -> Range<usize> {
    if !is_hprof(graph) {
        return 0..0;
    }
    let all = graph.referents();
    let from = all.partition_point(|referent| referent.owner < object);
    from..from + graph.referents_of(object).len()
}

/// Returns the rows of an object's references: those of its fields or elements, and its referents.
fn rows_of(heap: &Heap, object: ObjectIndex) -> (Range<usize>, Range<usize>) {
    let graph = &heap.graph;
    let first = heap.first_reference();
    let slots = graph.reference_range(object);
    let behind = first + graph.reference_count();
    let apart = apart(graph, object);
    (
        first + slots.start..first + slots.end,
        behind + apart.start..behind + apart.end,
    )
}

/// Returns the set of an object's references, or `None` without references.
pub(super) fn set_of(heap: &Heap, object: ObjectIndex) -> Option<usize> {
    let (slots, apart) = rows_of(heap, object);
    match (slots.is_empty(), apart.is_empty()) {
        (false, _) => Some(slots.start),
        (true, false) => Some(apart.start),
        (true, true) => None,
    }
}

pub(super) fn owner_of_set(heaps: &Heaps, set: i64) -> Option<(&Heap, ObjectIndex)> {
    let row = usize::try_from(set).ok()?;
    if row >= heaps.references() {
        return None;
    }
    let heap = heaps.of_reference(row);
    let owner = place(heap, row).owner(heap);
    (set_of(heap, owner) == Some(row)).then_some((heap, owner))
}

/// Location of a row's reference in its graph.
enum Place {
    /// Object, and position in its references.
    Slot(ObjectIndex, usize),
    /// Position in the list of all referents.
    Apart(usize),
}

impl Place {
    fn owner(&self, heap: &Heap) -> ObjectIndex {
        match *self {
            Place::Slot(owner, _) => owner,
            Place::Apart(at) => heap.graph.referents()[at].owner,
        }
    }

    fn target(&self, heap: &Heap) -> Option<ObjectIndex> {
        let graph = &heap.graph;
        match *self {
            Place::Slot(owner, at) => match graph.references(owner)[at] {
                // In a heap graph, a referent that is kept separately still belongs to the other
                // references.
                ObjectIndex::NONE if !is_hprof(graph) => {
                    let referents = graph.referents_of(owner);
                    let first = referents.first()?;
                    let name = graph.contents().reference_name(graph, owner, at)?;
                    (name.qualified == REFERENT).then_some(first.target)
                }
                ObjectIndex::NONE => None,
                target => Some(target),
            },
            Place::Apart(at) => Some(graph.referents()[at].target),
        }
    }
}

/// Field that holds the referent of a `java.lang.ref.Reference`.
const REFERENT: &str = "java.lang.ref.Reference.referent";

fn place(heap: &Heap, row: usize) -> Place {
    let at = row - heap.first_reference();
    let slots = heap.graph.reference_count();
    match at.checked_sub(slots) {
        Some(apart) => Place::Apart(apart),
        None => {
            let owner = heap.graph.owner_of_reference(at);
            Place::Slot(owner, at - heap.graph.reference_range(owner).start)
        }
    }
}

struct References {
    heaps: Arc<Heaps>,
    /// The object of an HPROF whose names were looked up last.
    named: Mutex<Option<Named>>,
    /// Indexes of the elements of long arrays, by the row of their first reference. All
    /// are kept: a join by `owned_id` goes from array to array for each element.
    elements: Mutex<HashMap<usize, Arc<[u32]>>>,
}

/// Number of references from which the indexes of an array are kept.
const MIN_KEPT_ELEMENTS: usize = 16;

/// Returns the index of each element of an array of an HPROF that is not null, in the order
/// of [`HeapGraph::references`].
fn elements_of(graph: &HeapGraph, array: ObjectIndex) -> Arc<[u32]> {
    let mut indexes = Vec::with_capacity(graph.references(array).len());
    graph.contents().fields(graph, array, &mut |field| {
        match (field.element, field.value) {
            (Some(at), Value::Object(_) | Value::Dangling(_)) => indexes.push(at),
            (Some(_), _) => {}
            // The class of the array follows its elements.
            (None, _) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    });
    indexes.into()
}

/// Names of an object's references, in the order of [`HeapGraph::references`].
struct Named {
    first_reference: usize,
    owner: ObjectIndex,
    names: Vec<Names>,
}

/// Names of one reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    qualified: Option<String>,
    type_name: Option<String>,
    original: Option<String>,
}

/// Selector of a name column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Qualified,
    TypeName,
    Original,
}

impl References {
    /// Returns the index of an array's element by the position of its reference.
    fn element(&self, heap: &Heap, array: ObjectIndex, at: usize) -> Option<u32> {
        let graph = &heap.graph;
        let count = graph.references(array).len();
        if count < MIN_KEPT_ELEMENTS {
            return elements_of(graph, array).get(at).copied();
        }
        let first = heap.first_reference() + graph.reference_range(array).start;
        let mut kept = lock(&self.elements);
        let elements = || elements_of(graph, array);
        let indexes = kept.entry(first).or_insert_with(elements);
        indexes.get(at).copied()
    }

    fn name<'a>(&'a self, heap: &'a Heap, place: &Place, which: Which) -> Cell<'a> {
        let graph = &heap.graph;
        let (owner, at) = match *place {
            Place::Slot(owner, at) => (owner, at),
            Place::Apart(_) => {
                let name = (which == Which::Qualified).then_some(REFERENT);
                return name.into();
            }
        };
        if !is_hprof(graph) {
            let Some(name) = graph.contents().reference_name(graph, owner, at) else {
                return Cell::Null;
            };
            return match which {
                Which::Qualified => name.qualified.into(),
                Which::TypeName => name.type_name.into(),
                Which::Original => {
                    let original = name.original;
                    original
                        .map(|(class, name)| format!("{class}.{name}"))
                        .into()
                }
            };
        }
        if graph.class(graph.class_of(owner)).is_array() {
            return match which {
                Which::Qualified => {
                    let element = self.element(heap, owner, at);
                    element.map(|element| format!("[{element}]")).into()
                }
                _ => Cell::Null,
            };
        }
        let mut named = lock(&self.named);
        let first_reference = heap.first_reference();
        let known = named
            .take()
            .filter(|known| (known.first_reference, known.owner) == (first_reference, owner));
        let known = known.unwrap_or_else(|| Named {
            first_reference,
            owner,
            names: names_of(graph, owner),
        });
        let name = known.names.get(at).map(|names| match which {
            Which::Qualified => names.qualified.clone(),
            Which::TypeName => names.type_name.clone(),
            Which::Original => names.original.clone(),
        });
        *named = Some(known);
        name.flatten().into()
    }
}

/// Returns the names for the references of an object of an HPROF. For references to the same
/// target, fields are assigned in order.
fn names_of(graph: &HeapGraph, owner: ObjectIndex) -> Vec<Names> {
    let mut fields: HashMap<Option<ObjectIndex>, VecDeque<Names>> = HashMap::new();
    graph.contents().fields(graph, owner, &mut |field| {
        let target = match field.value {
            Value::Object(target) => Some(target),
            Value::Dangling(_) => None,
            _ => return ControlFlow::Continue(()),
        };
        if field.name.is_none() {
            return ControlFlow::Continue(());
        }
        let recorded = recorded_name(graph, owner, &field);
        let names = Names {
            original: original_name(graph, owner, &field),
            type_name: field.type_name.map(str::to_owned),
            qualified: recorded,
        };
        fields.entry(target).or_default().push_back(names);
        ControlFlow::Continue(())
    });
    let targets = graph.references(owner).iter();
    targets
        .map(|&target| {
            let target = (target != ObjectIndex::NONE).then_some(target);
            let names = fields.get_mut(&target).and_then(VecDeque::pop_front);
            names.unwrap_or_default()
        })
        .collect()
}

impl Rows for References {
    fn len(&self) -> usize {
        self.heaps.references()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        if column == 0 {
            return row.into();
        }
        let heap = self.heaps.of_reference(row);
        let place = place(heap, row);
        match column {
            1 => set_of(heap, place.owner(heap)).into(),
            2 => heap.row(place.owner(heap)).into(),
            3 => place.target(heap).map(|target| heap.row(target)).into(),
            4 => self.name(heap, &place, Which::Qualified),
            5 => self.name(heap, &place, Which::TypeName),
            _ => self.name(heap, &place, Which::Original),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        // Most objects have references and are referenced.
        matches!(column, 1..=3).then(|| self.heaps.objects())
    }

    fn numbers(&self, column: usize) -> Option<Vec<u32>> {
        if column != 3 {
            return None;
        }
        let mut all = Vec::with_capacity(self.len());
        for heap in self.heaps.all() {
            let graph = &heap.graph;
            let row = |target| heap.row(target) as u32;
            // Referents are in order of their owners. Only their owners have references whose
            // target is not in the list of the others.
            let mut referents = graph.referents().iter().peekable();
            for owner in graph.objects() {
                while referents.next_if(|next| next.owner < owner).is_some() {}
                let is_apart = referents.peek().is_some_and(|next| next.owner == owner);
                let targets = graph.references(owner).iter().enumerate();
                all.extend(targets.map(|(at, &target)| match target {
                    ObjectIndex::NONE if is_apart => {
                        Place::Slot(owner, at).target(heap).map_or(u32::MAX, row)
                    }
                    ObjectIndex::NONE => u32::MAX,
                    target => row(target),
                }));
            }
            if is_hprof(graph) {
                all.extend(graph.referents().iter().map(|apart| row(apart.target)));
            }
        }
        Some(all)
    }

    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        let mut add = |heap: &Heap, owner: ObjectIndex| {
            let (slots, apart) = rows_of(heap, owner);
            found.extend(slots.chain(apart).map(|row| row as u32));
        };
        match column {
            1 => {
                if let Some((heap, owner)) = owner_of_set(&self.heaps, key) {
                    add(heap, owner);
                }
            }
            _ => {
                if let Some((heap, owner)) = self.heaps.find_object(key) {
                    add(heap, owner);
                }
            }
        }
    }
}
