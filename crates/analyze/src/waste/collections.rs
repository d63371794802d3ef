//! Fill of collections: elements divided by slots; a collection without slots is full. Below a
//! quarter, empty slots count as wasted. Above, they are the price of growing rarely.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::arrays::slot_bytes;
use super::parts::{Examination, Scope};
use super::shapes::{Form, SHAPES, Shape};
use super::sparse::{SparseGroup, SparseGroups};
use crate::{fields, lookup};
use heaptap_model::heap_graph::{
    ClassIndex, HeapGraph, ObjectId, ObjectIndex, SharedObjectSet, Value,
};

/// Collections of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct CollectionKind {
    /// Display name of the class.
    pub class: String,
    /// Number of collections.
    pub count: u64,
    /// Number of collections without elements.
    pub empty: u64,
    /// Number of empty collections that have slots.
    pub empty_with_slots: u64,
    /// Number of collections with elements in less than a quarter of their slots.
    pub sparse: u64,
    /// Elements in all collections; `None` if unknown.
    pub elements: Option<u64>,
    /// Slots in all collections.
    pub slots: u64,
    /// Bytes of empty slots in empty or sparse collections.
    pub wasted_bytes: u64,
}

/// Hash table whose elements share few buckets, which makes every lookup slow.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Crowded {
    #[serde(skip)]
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    /// Display name of the class.
    pub class: String,
    /// Number of elements.
    pub size: u64,
    /// Number of buckets that are not empty.
    pub used_buckets: u64,
    /// Number of buckets.
    pub buckets: u64,
    /// Percentage of elements that share a bucket with an earlier one: with a good hash, about 30
    /// when the table is about to grow.
    pub collisions_percent: u64,
    /// Name of a holder.
    pub held_by: Option<String>,
}

/// Minimum number of elements; fewer can share buckets by chance.
const LEAST_CROWDED: u64 = 16;
/// Minimum percentage of collisions for a table to be reported.
const MUCH_CROWDED: u64 = 50;

pub(super) struct Found {
    pub kinds: Vec<CollectionKind>,
    pub sparse: Vec<SparseGroup>,
    pub crowded: Vec<Crowded>,
}

#[derive(Default)]
pub(super) struct Gathered {
    kinds: HashMap<ClassIndex, CollectionKind>,
    sparse: SparseGroups,
    crowded: Vec<Crowded>,
}

/// Properties of one collection.
struct Looked {
    size: Option<u64>,
    slots: u64,
    /// For a table, the number of buckets that are not empty.
    used_buckets: Option<u64>,
    slot_bytes: u64,
    array: Option<ObjectIndex>,
}

pub(super) struct Collections<'s> {
    scope: &'s Scope<'s>,
    limit: usize,
    /// Names of the classes of [`SHAPES`].
    names: Vec<&'static str>,
    /// Slot arrays of collections.
    pub owned: SharedObjectSet,
}

impl<'s> Collections<'s> {
    pub fn new(scope: &'s Scope<'s>, limit: usize) -> Collections<'s> {
        Collections {
            scope,
            limit,
            names: SHAPES.iter().map(|shape| shape.class).collect(),
            owned: SharedObjectSet::new(scope.graph.len()),
        }
    }
}

impl Examination for Collections<'_> {
    /// Index into [`SHAPES`].
    type Class = usize;
    type Found = Gathered;

    fn of_class(&self, class: ClassIndex) -> Option<usize> {
        self.scope.nearest(class, &self.names)
    }

    fn start(&self) -> Gathered {
        Gathered::default()
    }

    fn add(&self, all: &mut Gathered, object: ObjectIndex, class: usize) {
        let Scope { graph, .. } = self.scope;
        let looked = look_at(graph, object, &SHAPES[class], self.scope.has_numbers);
        if let Some(array) = looked.array {
            self.owned.insert(array);
        }
        all.count(graph, object, &looked, self.limit);
    }
}

pub(super) fn sum_up(graph: &HeapGraph, parts: Vec<Gathered>, limit: usize) -> Found {
    let mut whole = Gathered::default();
    for part in parts {
        for (class, kind) in part.kinds {
            whole.kinds.entry(class).or_default().add(&kind);
        }
        whole.sparse.merge(part.sparse);
        whole.crowded.extend(part.crowded);
    }
    whole.cut(limit);
    // Classes of one name from several loaders share a row.
    let mut by_name: HashMap<&str, CollectionKind> = HashMap::new();
    for (class, kind) in &whole.kinds {
        let name = graph.class(*class).shown();
        by_name.entry(name).or_default().add(kind);
    }
    let mut kinds: Vec<CollectionKind> = by_name
        .into_iter()
        .map(|(name, kind)| CollectionKind {
            class: name.to_owned(),
            ..kind
        })
        .collect();
    kinds.sort_by(|a, b| {
        let by_waste = b.wasted_bytes.cmp(&a.wasted_bytes);
        by_waste
            .then(b.count.cmp(&a.count))
            .then_with(|| a.class.cmp(&b.class))
    });
    Found {
        kinds,
        sparse: whole.sparse.largest(graph, limit),
        crowded: whole.crowded,
    }
}

impl CollectionKind {
    pub(super) fn add(&mut self, other: &CollectionKind) {
        self.elements = match (self.count, self.elements) {
            (0, _) => other.elements,
            (_, Some(elements)) => other.elements.map(|more| elements.saturating_add(more)),
            (_, None) => None,
        };
        self.count += other.count;
        self.empty += other.empty;
        self.empty_with_slots += other.empty_with_slots;
        self.sparse += other.sparse;
        self.slots = self.slots.saturating_add(other.slots);
        self.wasted_bytes = self.wasted_bytes.saturating_add(other.wasted_bytes);
    }
}

impl Gathered {
    fn count(&mut self, graph: &HeapGraph, object: ObjectIndex, looked: &Looked, limit: usize) {
        let empty = looked.size == Some(0);
        // Less than a quarter in use.
        let sparse = looked
            .size
            .is_some_and(|size| size < looked.slots.div_ceil(4));
        let free = looked
            .slots
            .saturating_sub(looked.size.unwrap_or(looked.slots));
        let wasted_bytes = match sparse {
            true => free.saturating_mul(looked.slot_bytes),
            false => 0,
        };
        let class = graph.class_of(object);
        self.kinds.entry(class).or_default().add(&CollectionKind {
            class: String::new(),
            count: 1,
            empty: u64::from(empty),
            empty_with_slots: u64::from(empty && looked.slots > 0),
            sparse: u64::from(sparse && !empty),
            elements: looked.size,
            slots: looked.slots,
            wasted_bytes,
        });
        if let Some(size) = looked.size.filter(|_| wasted_bytes > 0) {
            self.sparse
                .add(object, class, size, looked.slots, wasted_bytes);
        }
        if let (Some(size), Some(used_buckets)) = (looked.size, looked.used_buckets) {
            let own = used_buckets.saturating_mul(100);
            let collisions_percent = 100u64.saturating_sub(own.div_ceil(size.max(1)));
            if size >= LEAST_CROWDED && collisions_percent >= MUCH_CROWDED {
                self.crowded.push(Crowded {
                    object,
                    id: graph.id(object),
                    class: graph.class(class).shown().to_owned(),
                    size,
                    used_buckets,
                    buckets: looked.slots,
                    collisions_percent,
                    held_by: None,
                });
            }
        }
        if self.crowded.len() > limit.max(64).saturating_mul(16) {
            self.cut(limit);
        }
    }

    fn cut(&mut self, limit: usize) {
        self.crowded.sort_by_key(|c| {
            (
                std::cmp::Reverse(c.size - c.used_buckets.min(c.size)),
                c.object,
            )
        });
        self.crowded.truncate(limit);
    }
}

/// Describes a collection; without numbers by its references only.
fn look_at(graph: &HeapGraph, object: ObjectIndex, shape: &Shape, has_numbers: bool) -> Looked {
    // Names in the order of the shape's lists, regardless of the field order.
    let (mut array, mut sizes) = (None, vec![None; shape.size.len()]);
    let mut cells = None;
    let mut best = usize::MAX;
    fields::visit(graph, object, |field| {
        let Some(name) = field.name.filter(|_| !field.is_static) else {
            return ControlFlow::Continue(());
        };
        if let Some(at) = shape.slots.iter().position(|slot| *slot == name)
            && at < best
        {
            (array, best) = (field.value.object(), at);
        }
        if let Some(at) = shape.size.iter().position(|size| *size == name) {
            sizes[at] = sizes[at].or(field.value.integer());
        }
        if name == "counterCells" {
            cells = field.value.object();
        }
        ControlFlow::Continue(())
    });
    let length = array.map_or(Some(0), |array| length(graph, array));
    let slots = length.map_or(0, u64::from);
    let used = || {
        let elements = graph.references(array?).iter();
        Some(elements.filter(|&&e| e != ObjectIndex::NONE).count() as u64)
    };
    let field = sizes.iter().flatten().next().copied();
    let of_field = field.and_then(|size| u64::try_from(size).ok());
    let size = match shape.form {
        Form::Exact => Some(slots),
        Form::Ring => match sizes.as_slice() {
            [Some(head), Some(tail)] if has_numbers && length.is_some() => {
                Some(tail.wrapping_sub(*head).rem_euclid(slots.max(1) as i64) as u64)
            }
            _ => used(),
        },
        Form::Table if has_numbers && cells.is_some() => {
            of_field.map(|base| base.saturating_add(sum_of_cells(graph, cells)))
        }
        _ if has_numbers => of_field,
        // Without numbers, the non-null slots count. Elements that share a bucket are not visible.
        Form::List => match array {
            Some(_) => used().map(|used| used / u64::from(shape.per_element)),
            None => Some(0),
        },
        Form::Table => match used() {
            None | Some(0) => Some(0),
            Some(_) => None,
        },
        Form::Linked => None,
    };
    let per_slot = match (array, length) {
        (Some(array), Some(length)) => slot_bytes_of(graph, array, length),
        _ => 0,
    };
    Looked {
        size: size.map(|size| match shape.form {
            Form::Linked => size,
            // A size that exceeds the slots is ignored.
            Form::Table => size,
            _ => size.min(slots),
        }),
        slots: slots / u64::from(shape.per_element),
        used_buckets: (shape.form == Form::Table).then(used).flatten(),
        slot_bytes: per_slot * u64::from(shape.per_element),
        array,
    }
}

fn length(graph: &HeapGraph, array: ObjectIndex) -> Option<u32> {
    match graph.contents().primitive_array(graph, array) {
        Some(array) => Some(array.length),
        None => graph.contents().object_array_length(graph, array),
    }
}

fn slot_bytes_of(graph: &HeapGraph, array: ObjectIndex, length: u32) -> u64 {
    match graph.contents().primitive_array(graph, array) {
        Some(array) => array.element.bytes(8) as u64,
        None => slot_bytes(graph, array, length),
    }
}

/// Returns the sum of the counter cells of a `ConcurrentHashMap` that several threads updated
/// concurrently.
fn sum_of_cells(graph: &HeapGraph, cells: Option<ObjectIndex>) -> u64 {
    let cells = cells.map_or_else(Vec::new, |cells| lookup::elements(graph, cells));
    let value = |cell| lookup::any(graph, cell, "value").and_then(Value::integer);
    let counts = cells.into_iter().filter_map(|(_, cell)| value(cell));
    let counts = counts.filter_map(|n| u64::try_from(n).ok());
    counts.fold(0, u64::saturating_add)
}
