//! The first pass over the dump records: all IDs, the offsets of classes and roots, and evidence of
//! the runtime's object layout. Nothing is resolved yet, because roots, instances and classes come
//! in any order.

use super::evidence::Evidence;
use super::id_map::IdMap;
use super::outline::Outline;
use super::scan::{Parts, Trouble, Visitor};
use super::sub_records::{PrimitiveArrayRecord, RootRecord, SubRecord};
use heaptap_model::heap_graph::{BasicType, HeapKind, IdsBuilder, ObjectId};

/// Result of the first pass.
#[derive(Default)]
pub(super) struct Index {
    pub(super) ids: IdsBuilder,
    /// Class dumps: offset, ID and heap; ascending by offset.
    pub(super) classes: Vec<(usize, u64, HeapKind)>,
    /// Roots, in file order.
    pub(super) roots: Vec<PlacedRoot>,
    /// Largest instance in bytes, for each class that has instances or is the class of an array.
    pub(super) used: IdMap<u32>,
    /// Basic types of arrays that occur, as one bit each by code.
    pub(super) primitive_arrays: u16,
    /// ART's arrays that represent the vtables of a class and are not objects: ID and bytes.
    pub(super) overheads: IdMap<u32>,
    /// Heaps that occur, as one bit each.
    pub(super) heaps: u8,
    pub(super) evidence: Evidence,
}

/// A root and its offset, packed: a root takes five bytes in the file, and a file can consist of
/// roots only.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedRoot {
    at: u64,
    pub(super) id: u64,
    numbers: [u32; 3],
    pub(super) tag: u8,
    /// Marks the numbers that the root has, one bit each.
    there: u8,
}

impl PlacedRoot {
    fn new(at: usize, root: &RootRecord) -> PlacedRoot {
        let numbers = [root.thread, root.frame, root.stack];
        let bits = numbers.iter().zip(0..);
        PlacedRoot {
            at: at as u64,
            id: root.id,
            numbers: numbers.map(|number| number.unwrap_or(0)),
            tag: root.tag,
            there: bits.map(|(n, bit)| u8::from(n.is_some()) << bit).sum(),
        }
    }

    fn number(&self, at: usize) -> Option<u32> {
        (self.there >> at & 1 == 1).then_some(self.numbers[at])
    }

    /// Returns [`RootRecord::thread`].
    pub(super) fn thread(&self) -> Option<u32> {
        self.number(0)
    }

    /// Returns [`RootRecord::frame`].
    pub(super) fn frame(&self) -> Option<u32> {
        self.number(1)
    }

    /// Returns [`RootRecord::stack`].
    pub(super) fn stack(&self) -> Option<u32> {
        self.number(2)
    }
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
        all.merge(worker.found);
    }
    all.classes.sort_unstable_by_key(|class| class.0);
    all.roots.sort_unstable_by_key(|root| root.at);
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
        match self.roots.is_empty() {
            true => self.roots = other.roots,
            false => self.roots.extend(other.roots),
        }
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
    /// Class of the last instance, and the size in bytes of its largest instance.
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
}

/// Returns whether an array can be ART's array for the vtables of a class.
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
                found.roots.push(PlacedRoot::new(at, &root));
                return;
            }
            SubRecord::Heap { .. } => return,
        };
        let found = &mut self.found;
        found.heaps |= 1 << heap as u8;
        found.ids.insert(ObjectId(id));
    }
}
