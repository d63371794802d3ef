//! The second and third pass over the dump records, each with several threads. The second measures
//! objects (class, size, offset in the file, number of references), the third links them. Columns
//! are filled in place; nothing else is kept of an object.

use super::classes::{Classes, Layout};
use super::columns::{Number, Offsets};
use super::error::HprofError;
use super::filled::FilledFields;
use super::index::Index;
use super::outline::Outline;
use super::scan::{Parts, Visitor};
use super::sizes::Sizes;
use super::sub_records::{ClassDump, SubRecord};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    BasicType, ClassIndex, HeapKind, Ids, ObjectId, ObjectIndex, Referent, ShallowSizes,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Input of all passes after the first.
pub(super) struct Dump<'a> {
    pub(super) outline: &'a Outline,
    pub(super) classes: &'a Classes,
    pub(super) sizes: &'a Sizes,
    pub(super) ids: &'a Ids,
    pub(super) repeated: bool,
}

/// Columns of the graph while they are filled.
pub(super) struct Columns {
    pub(super) class_of: Vec<u32>,
    /// [`ShallowSizes::LARGE`] if `large` has the size.
    pub(super) shallow: Vec<u16>,
    /// First the number of references of each object in the next row, then the index of its first
    /// reference.
    pub(super) starts: Vec<u32>,
    pub(super) heaps: Vec<u8>,
    pub(super) only_heap: HeapKind,
    pub(super) offsets: Offsets,
    pub(super) large: BTreeMap<ObjectIndex, u64>,
    pub(super) referents: Vec<Referent>,
    pub(super) malformed: u64,
}

impl Columns {
    pub(super) fn new(objects: usize, file: &Bytes, index: &Index) -> Columns {
        let kinds = [
            HeapKind::Unknown,
            HeapKind::App,
            HeapKind::Zygote,
            HeapKind::BootImage,
        ];
        let mut there = kinds
            .into_iter()
            .filter(|&heap| index.heaps >> heap as u8 & 1 == 1);
        let only_heap = there.next().unwrap_or_default();
        let several = there.next().is_some();
        Columns {
            class_of: vec![0; objects],
            shallow: vec![0; objects],
            starts: vec![0; objects + 1],
            heaps: vec![0; if several { objects } else { 0 }],
            only_heap,
            offsets: Offsets::new(objects, file.len()),
            large: BTreeMap::new(),
            referents: Vec::new(),
            malformed: 0,
        }
    }

    /// Turns numbers of references into the index of the first one; returns the total.
    pub(super) fn sum_up(&mut self) -> Result<usize, HprofError> {
        let mut sum = 0u32;
        for start in &mut self.starts {
            let next = sum.checked_add(*start);
            sum = next.ok_or(HprofError::TooLarge { what: "references" })?;
            *start = sum;
        }
        Ok(sum as usize)
    }
}

impl<'a> Dump<'a> {
    pub(super) fn measure(&self, parts: &Parts<'_>, columns: &mut Columns) -> u64 {
        let rows = Rows {
            class_of: u32::shared(&mut columns.class_of),
            shallow: u16::shared(&mut columns.shallow),
            degrees: u32::shared(&mut columns.starts[1..]),
            heaps: u8::shared(&mut columns.heaps),
            low: u32::shared(&mut columns.offsets.low),
            high: u16::shared(&mut columns.offsets.high),
        };
        let (workers, _) = parts.each(|| Measure {
            dump: self,
            rows: &rows,
            lookup: Lookup::default(),
            large: Vec::new(),
            referents: Vec::new(),
            malformed: 0,
            unknown_classes: 0,
        });
        let mut unknown = 0;
        let mut found = Vec::new();
        for worker in workers {
            columns.large.extend(worker.large);
            columns.malformed += worker.malformed;
            unknown += worker.unknown_classes;
            found.extend(worker.referents);
        }
        // The last record of an object that was dumped twice is used, even if it is not a
        // `Reference`.
        let counts =
            |at: usize, owner: ObjectIndex| !self.repeated || columns.offsets.get(owner.at()) == at;
        columns.referents = found
            .into_iter()
            .filter(|&(at, referent)| counts(at, referent.owner))
            .map(|(_, referent)| referent)
            .collect();
        columns.referents.sort_by_key(|referent| referent.owner);
        unknown
    }

    pub(super) fn link(
        &self,
        parts: &Parts<'_>,
        columns: &Columns,
        references: usize,
    ) -> (Vec<ObjectIndex>, FilledFields, u64) {
        let filled = FilledFields::new(self.classes, self.ids.len());
        let mut numbers = vec![0u32; references];
        let shared_numbers = u32::shared(&mut numbers);
        let (workers, _) = parts.each(|| Link {
            dump: self,
            columns,
            targets: shared_numbers,
            filled: &filled,
            lookup: Lookup::default(),
            dangling: 0,
        });
        let dangling = workers.iter().map(|worker| worker.dangling).sum();
        drop(workers);
        // Equal size and alignment: the collection reuses the allocation.
        let targets = numbers.into_iter().map(ObjectIndex).collect();
        (targets, filled, dangling)
    }

    /// Passes the non-null IDs that an object of this class refers to, without referents; each with the
    /// number of its field among those of the layout.
    #[inline]
    fn references_of(&self, layout: &Layout, data: &[u8], mut each: impl FnMut(u32, u64)) {
        for (&at, field) in self.classes.references(layout).iter().zip(0..) {
            let id = data.get(at as usize..);
            match id.and_then(|bytes| self.outline.id_size.read(bytes)) {
                Some(0) => {}
                Some(id) => each(field, id),
                // The offsets ascend, so an instance that is cut short does not have the others
                // either.
                None => break,
            }
        }
    }

    /// Passes the non-null IDs in the elements of an array.
    #[inline]
    fn elements_of(&self, elements: &[u8], each: impl FnMut(u64)) {
        let ids = self.outline.id_size.each(elements);
        ids.filter(|&id| id != 0).for_each(each);
    }

    /// Passes the IDs that a class object refers to: statics, superclass, loader and similar.
    fn references_of_class(&self, class: &ClassDump<'_>, mut each: impl FnMut(u64)) {
        for field in class.statics() {
            if field.basic == BasicType::Object
                && !self.outline.noise.contains_key(&field.name)
                && let Some(id) = self.outline.id_size.read(field.value)
                && id != 0
            {
                each(id);
            }
        }
        let others = [
            class.superclass(),
            class.loader(),
            class.signers(),
            class.protection_domain(),
        ];
        let arrays = self.classes.arrays_of.get(&class.id());
        let arrays = arrays.into_iter().flatten().copied();
        let others = others.into_iter().chain(arrays);
        others.filter(|&id| id != 0).for_each(each);
    }
}

/// Lookup of classes by ID; objects near each other are of few classes.
struct Lookup {
    recent: [Option<(u64, ClassIndex)>; RECENT],
}

const RECENT: usize = 64;

impl Default for Lookup {
    fn default() -> Lookup {
        Lookup {
            recent: [None; RECENT],
        }
    }
}

impl Lookup {
    #[inline]
    fn class(&mut self, classes: &Classes, id: u64) -> ClassIndex {
        // IDs are mostly multiples of 8.
        let recent = &mut self.recent[(id >> 3 ^ id >> 9) as usize % RECENT];
        if let Some((known, class)) = *recent
            && known == id
        {
            return class;
        }
        // Every class that objects have got a row after the first pass.
        let class = classes.by_id.get(&id).copied().unwrap_or(ClassIndex(0));
        *recent = Some((id, class));
        class
    }
}

/// The columns as the threads of the second pass use them.
struct Rows<'a> {
    class_of: &'a [AtomicU32],
    shallow: &'a [AtomicU16],
    degrees: &'a [AtomicU32],
    heaps: &'a [AtomicU8],
    low: &'a [AtomicU32],
    high: &'a [AtomicU16],
}

struct Measure<'a> {
    dump: &'a Dump<'a>,
    rows: &'a Rows<'a>,
    lookup: Lookup,
    large: Vec<(ObjectIndex, u64)>,
    /// Referents with the offsets of their records.
    referents: Vec<(usize, Referent)>,
    malformed: u64,
    unknown_classes: u64,
}

impl Measure<'_> {
    #[inline]
    fn put(&mut self, id: u64, at: usize, heap: HeapKind, row: Row) {
        let Some(object) = self.dump.ids.find(ObjectId(id)) else {
            return;
        };
        let rows = self.rows;
        rows.class_of[object.at()].store(row.class.0, Ordering::Relaxed);
        let shallow = ShallowSizes::small(row.shallow).unwrap_or_else(|| {
            self.large.push((object, row.shallow));
            ShallowSizes::LARGE
        });
        rows.shallow[object.at()].store(shallow, Ordering::Relaxed);
        rows.degrees[object.at()].store(row.references, Ordering::Relaxed);
        rows.low[object.at()].store(at as u32, Ordering::Relaxed);
        if let Some(high) = rows.high.get(object.at()) {
            high.store((at as u64 >> 32) as u16, Ordering::Relaxed);
        }
        if let Some(cell) = rows.heaps.get(object.at()) {
            cell.store(heap as u8, Ordering::Relaxed);
        }
    }

    /// Separates the referents of a `java.lang.ref.Reference`.
    #[cold]
    fn referents(&mut self, id: u64, at: usize, layout: &Layout, data: &[u8]) {
        let (Some(owner), Some(kind)) = (self.dump.ids.find(ObjectId(id)), layout.reference) else {
            return;
        };
        for field in layout.referents.iter().flatten() {
            let id = data.get(*field as usize..);
            let id = id.and_then(|bytes| self.dump.outline.id_size.read(bytes));
            if let Some(id) = id.filter(|&id| id != 0)
                && let Some(target) = self.dump.ids.find(ObjectId(id))
            {
                let referent = Referent {
                    owner,
                    target,
                    kind,
                };
                self.referents.push((at, referent));
            }
        }
    }
}

/// Facts about an object from the second pass.
struct Row {
    class: ClassIndex,
    shallow: u64,
    references: u32,
}

impl Visitor for Measure<'_> {
    #[inline]
    fn visit(&mut self, at: usize, heap: HeapKind, record: SubRecord<'_>) {
        let dump = self.dump;
        match record {
            SubRecord::Instance(instance) => {
                let class = self.lookup.class(dump.classes, instance.class);
                let layout = &dump.classes.layouts[class.at()];
                if dump.classes.dumps[class.at()].is_none() {
                    self.unknown_classes += 1;
                } else if instance.data.len() < layout.bytes as usize {
                    self.malformed += 1;
                }
                let mut references = 0;
                dump.references_of(layout, instance.data, |_, _| references += 1);
                let row = Row {
                    class,
                    shallow: dump.sizes.instance(class, instance.data),
                    references,
                };
                self.put(instance.id, at, heap, row);
                if layout.reference.is_some() {
                    self.referents(instance.id, at, layout, instance.data);
                }
            }
            SubRecord::ObjectArray(array) => {
                let mut references = 0;
                dump.elements_of(array.elements, |_| references += 1);
                let length = array.elements.len() / dump.outline.id_size.bytes();
                let row = Row {
                    class: self.lookup.class(dump.classes, array.class),
                    shallow: dump.sizes.layouts.object_array(length as u64),
                    references,
                };
                self.put(array.id, at, heap, row);
            }
            SubRecord::PrimitiveArray(array) => {
                if array.id & 1 == 1 && dump.classes.overheads.contains_key(&array.id) {
                    return;
                }
                let length = array.length.into();
                let row = Row {
                    class: dump.classes.primitive[array.element as usize],
                    shallow: dump.sizes.layouts.primitive_array(length, array.element),
                    references: 0,
                };
                self.put(array.id, at, heap, row);
            }
            SubRecord::Class(class) => {
                let mut references = 0;
                dump.references_of_class(&class, |_| references += 1);
                let row = Row {
                    class: dump.classes.class_class,
                    shallow: dump.sizes.class_object(&class),
                    references,
                };
                self.put(class.id(), at, heap, row);
            }
            SubRecord::Root(_) | SubRecord::Heap { .. } => {}
        }
    }
}

struct Link<'a> {
    dump: &'a Dump<'a>,
    columns: &'a Columns,
    targets: &'a [AtomicU32],
    filled: &'a FilledFields,
    lookup: Lookup,
    dangling: u64,
}

/// Room for the references of one object.
struct Slots<'a> {
    object: ObjectIndex,
    free: std::slice::Iter<'a, AtomicU32>,
    ids: &'a Ids,
    dangling: u64,
}

impl Slots<'_> {
    #[inline]
    fn push(&mut self, id: u64) {
        let target = self.ids.find(ObjectId(id)).unwrap_or(ObjectIndex::NONE);
        self.dangling += u64::from(target == ObjectIndex::NONE);
        if let Some(slot) = self.free.next() {
            slot.store(target.0, Ordering::Relaxed);
        }
    }
}

impl<'a> Link<'a> {
    /// Returns `None` if the object has no references, or if another record of it is used.
    #[inline]
    fn slots(&self, id: u64, at: usize) -> Option<Slots<'a>> {
        let object = self.dump.ids.find(ObjectId(id))?;
        let row = object.at();
        if self.dump.repeated && self.columns.offsets.get(row) != at {
            return None;
        }
        let starts = &self.columns.starts;
        let (from, to) = (starts[row] as usize, starts[row + 1] as usize);
        (from < to).then(|| Slots {
            object,
            free: self.targets[from..to].iter(),
            ids: self.dump.ids,
            dangling: 0,
        })
    }
}

impl Visitor for Link<'_> {
    #[inline]
    fn visit(&mut self, at: usize, _: HeapKind, record: SubRecord<'_>) {
        let dump = self.dump;
        match record {
            SubRecord::Instance(instance) => {
                let class = self.lookup.class(dump.classes, instance.class);
                let layout = &dump.classes.layouts[class.at()];
                if let Some(mut slots) = self.slots(instance.id, at) {
                    let mut filled = 0u32;
                    dump.references_of(layout, instance.data, |field, id| {
                        slots.push(id);
                        filled |= 1u32.unbounded_shl(field);
                    });
                    self.filled.note(class, slots.object, filled);
                    self.dangling += slots.dangling;
                }
            }
            SubRecord::ObjectArray(array) => {
                if let Some(mut slots) = self.slots(array.id, at) {
                    dump.elements_of(array.elements, |id| slots.push(id));
                    // In a damaged dump, the class of an array can have fields.
                    let class = self.lookup.class(dump.classes, array.class);
                    self.filled.note_other(class, slots.object);
                    self.dangling += slots.dangling;
                }
            }
            SubRecord::Class(class) => {
                if let Some(mut slots) = self.slots(class.id(), at) {
                    dump.references_of_class(&class, |id| slots.push(id));
                    self.filled
                        .note_other(dump.classes.class_class, slots.object);
                    self.dangling += slots.dangling;
                }
            }
            SubRecord::PrimitiveArray(_) | SubRecord::Root(_) | SubRecord::Heap { .. } => {}
        }
    }
}
