//! Large arrays, and arrays of objects that are mostly null.

use super::parts::Examination;
use super::sparse::{SparseGroup, SparseGroups};
use crate::label::is_primitive;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectId, ObjectIndex, SharedObjectSet};
use serde::Serialize;

/// A large array, or a bitmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LargeObject {
    #[serde(skip)]
    pub object: ObjectIndex,
    /// ID in the dump.
    pub id: ObjectId,
    pub class: String,
    /// Shallow bytes of an array, bytes of the pixels of a bitmap.
    pub bytes: u64,
    /// Number of elements or pixels, if known.
    pub length: Option<u64>,
    /// Summary of the contents, empty if the dump does not contain them; dimensions of a bitmap.
    pub value: String,
    /// Whether the bytes are native rather than in the Java heap.
    pub native: bool,
    /// Name of a holder.
    pub held_by: Option<String>,
}

/// Minimum size for an array to be listed as large.
pub const LARGE_ARRAY_BYTES: u64 = 256 << 10;

pub(super) struct Found {
    pub large: Vec<LargeObject>,
    pub large_total: (u64, u64),
    pub sparse: Vec<SparseGroup>,
    pub sparse_bytes: u64,
}

/// Minimum number of slots for an array to be listed.
const LEAST_SLOTS: u32 = 64;

/// Number of arrays after which the contents that were read are released.
const RELEASE_INTERVAL_ARRAYS: usize = 1 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Objects,
    Primitives,
}

#[derive(Default)]
pub(super) struct Gathered {
    large: Vec<(u64, ObjectIndex)>,
    /// Arrays that are sparse if they have as many slots as their size allows.
    sparse: Vec<ObjectIndex>,
}

/// Large and sparse arrays.
pub(super) struct Arrays<'g> {
    pub graph: &'g HeapGraph,
}

impl Examination for Arrays<'_> {
    type Class = ElementKind;
    type Found = Gathered;

    fn of_class(&self, class: ClassIndex) -> Option<ElementKind> {
        let element = self.graph.class(class).name.strip_suffix("[]")?;
        Some(match is_primitive(element) {
            true => ElementKind::Primitives,
            false => ElementKind::Objects,
        })
    }

    fn start(&self) -> Gathered {
        Gathered::default()
    }

    fn add(&self, all: &mut Gathered, object: ObjectIndex, of: ElementKind) {
        let bytes = self.graph.shallow_bytes(object);
        if bytes >= LARGE_ARRAY_BYTES {
            all.large.push((bytes, object));
        }
        // The references are known without reading; the length has to be read. A slot takes 4 bytes or more.
        let most_slots = bytes / 4;
        if of == ElementKind::Objects
            && most_slots >= LEAST_SLOTS.into()
            && (used(self.graph, object) as u64) < most_slots / 4
        {
            all.sparse.push(object);
        }
    }
}

/// Sums up arrays. Those that collections own are judged there, and not among the sparse ones.
pub(super) fn sum_up(
    graph: &HeapGraph,
    parts: Vec<Gathered>,
    owned: &SharedObjectSet,
    limit: usize,
) -> Found {
    let mut large: Vec<(u64, ObjectIndex)> = Vec::new();
    let mut sparse = SparseGroups::default();
    for part in parts {
        large.extend(part.large);
        for arrays in part.sparse.chunks(RELEASE_INTERVAL_ARRAYS) {
            for &array in arrays.iter().filter(|&&array| !owned.contains(array)) {
                add_if_sparse(&mut sparse, graph, array);
            }
            graph.release_contents();
        }
    }
    let large_total = (
        large.len() as u64,
        large.iter().fold(0, |sum: u64, l| sum.saturating_add(l.0)),
    );
    large.sort_unstable_by_key(|&(bytes, object)| (std::cmp::Reverse(bytes), object));
    large.truncate(limit);
    Found {
        large: large
            .into_iter()
            .map(|(b, o)| describe(graph, b, o))
            .collect(),
        large_total,
        sparse_bytes: sparse.wasted_bytes(),
        sparse: sparse.largest(graph, limit),
    }
}

fn used(graph: &HeapGraph, array: ObjectIndex) -> usize {
    let elements = graph.references(array).iter();
    elements.filter(|&&e| e != ObjectIndex::NONE).count()
}

fn add_if_sparse(all: &mut SparseGroups, graph: &HeapGraph, array: ObjectIndex) {
    let Some(length) = graph.contents().object_array_length(graph, array) else {
        return;
    };
    let used = used(graph, array);
    let used = u32::try_from(used).unwrap_or(u32::MAX).min(length);
    if length >= LEAST_SLOTS && used < length / 4 {
        let wasted_bytes = u64::from(length - used) * slot_bytes(graph, array, length);
        let class = graph.class_of(array);
        all.add(array, class, used.into(), length.into(), wasted_bytes);
    }
}

/// Returns the bytes of a reference in an array, by the array's own size: 4, or 8 without
/// compressed references.
pub(super) fn slot_bytes(graph: &HeapGraph, array: ObjectIndex, length: u32) -> u64 {
    match graph.shallow_bytes(array) >= 8 * u64::from(length) {
        true => 8,
        false => 4,
    }
}

fn describe(graph: &HeapGraph, bytes: u64, object: ObjectIndex) -> LargeObject {
    let primitives = graph.contents().primitive_array(graph, object);
    let length = match primitives {
        Some(array) => Some(array.length),
        None => graph.contents().object_array_length(graph, object),
    };
    LargeObject {
        object,
        id: graph.id(object),
        class: graph.class(graph.class_of(object)).shown().to_owned(),
        length: length.map(u64::from),
        bytes,
        native: false,
        value: primitives
            .map(super::duplicates::in_words)
            .unwrap_or_default(),
        held_by: None,
    }
}
