//! The first pass over the dump records: which ids there are, where classes and roots stand, and
//! what tells how the runtime lays out its objects. Nothing is resolved yet: in a dump roots,
//! instances and classes come in any order.

use super::evidence::Evidence;
use super::id_map::IdMap;
use super::outline::Outline;
use super::scan::{Parts, Trouble, Visitor};
use super::sub_records::{PrimitiveArrayRecord, RootRecord, SubRecord};
use crate::heap_graph::{BasicType, HeapKind, IdsBuilder, ObjectId};

/// What the first pass found.
#[derive(Default)]
pub(super) struct Index {
    pub(super) ids: IdsBuilder,
    /// Class dumps: offset, id, heap; ascending by offset.
    pub(super) classes: Vec<(usize, u64, HeapKind)>,
    /// Roots with their offsets; ascending.
    pub(super) roots: Vec<(usize, RootRecord)>,
    /// For each class that has instances or is that of an array: the most bytes of an instance.
    pub(super) used: IdMap<u32>,
    /// Basic types of arrays that occur, one bit each by code.
    pub(super) primitive_arrays: u16,
    /// ART's arrays that stand for the vtables of a class, which no object is: id and bytes.
    pub(super) overheads: IdMap<u32>,
    /// Heaps that occur, one bit each.
    pub(super) heaps: u8,
    pub(super) evidence: Evidence,
}

/// Reads the parts once.
pub(super) fn index(parts: &Parts<'_>, outline: &Outline) -> (Index, Trouble) {
    let (workers, trouble) = parts.each(|| Worker {
        found: Index::default(),
        last_class: None,
        odd_is_overhead: outline.may_have_overheads(),
    });
    let mut all = Index::default();
    for worker in workers {
        all.merge(worker.finish());
    }
    all.classes.sort_unstable_by_key(|class| class.0);
    all.roots.sort_unstable_by_key(|root| root.0);
    (all, trouble)
}

impl Index {
    pub(super) fn merge(&mut self, other: Index) {
        if self.ids.inserted() == 0 {
            self.ids = other.ids;
        } else {
            self.ids.merge(other.ids);
        }
        self.classes.extend(other.classes);
        self.roots.extend(other.roots);
        for (class, bytes) in other.used {
            let most = self.used.entry(class).or_default();
            *most = bytes.max(*most);
        }
        self.primitive_arrays |= other.primitive_arrays;
        self.overheads.extend(other.overheads);
        self.heaps |= other.heaps;
        self.evidence.merge(&other.evidence);
    }
}

struct Worker {
    found: Index,
    /// Class of the last instance, and the most bytes that its instances had.
    last_class: Option<(u64, u32)>,
    odd_is_overhead: bool,
}

impl Worker {
    fn uses(&mut self, class: u64, bytes: u32) {
        if let Some((last, most)) = self.last_class
            && last == class
            && most >= bytes
        {
            return;
        }
        let most = self.found.used.entry(class).or_default();
        *most = bytes.max(*most);
        self.last_class = Some((class, *most));
    }

    fn finish(self) -> Index {
        self.found
    }
}

/// Whether it may be ART's array for the vtables of a class.
pub(super) fn may_be_overhead(array: &PrimitiveArrayRecord<'_>) -> bool {
    array.id & 1 == 1 && array.element == BasicType::Byte
}

impl Visitor for Worker {
    fn begin(&mut self) {
        self.found.evidence.begin();
    }

    #[inline]
    fn visit(&mut self, at: usize, heap: HeapKind, record: SubRecord<'_>) {
        let found = &mut self.found;
        let id = match record {
            SubRecord::Instance(instance) => {
                found.evidence.object(instance.id);
                self.uses(instance.class, instance.data.len() as u32);
                instance.id
            }
            SubRecord::ObjectArray(array) => {
                found.evidence.object_array(&array);
                self.uses(array.class, 0);
                array.id
            }
            SubRecord::PrimitiveArray(array) => {
                if self.odd_is_overhead && may_be_overhead(&array) {
                    found.overheads.insert(array.id, array.length);
                    return;
                }
                found.evidence.primitive_array(&array);
                found.primitive_arrays |= 1 << array.element as u8;
                array.id
            }
            SubRecord::Class(class) => {
                found.classes.push((at, class.id(), heap));
                class.id()
            }
            SubRecord::Root(root) => {
                found.roots.push((at, root));
                return;
            }
            SubRecord::Heap { .. } => return,
        };
        let found = &mut self.found;
        found.heaps |= 1 << heap as u8;
        found.ids.insert(ObjectId(id));
    }
}
