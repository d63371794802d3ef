//! Objects of a dump in file order: IDs, types, sizes, and numbers of references. This is the first
//! of two readings of a dump's packets; the second skips the same objects.

use super::object::{Object, Packed, Rare};
use super::tables::Tables;
use crate::wire::{Fields, WireError};
use heaptap_model::heap_graph::{HeapKind, RootKind, ShallowSizes};
use heaptap_model::profile::index::{Index, Seed};
use std::vec::IntoIter;

/// The number of a field list in [`Columns::shapes`], for objects that name their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(pub(super) u32);

/// Columns by object, in file order.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) ids: Vec<u64>,
    /// Type by object, as a class of [`super::classes`].
    pub(super) classes: Vec<u32>,
    /// Shallow sizes; 0 means that of the class.
    pub(super) sizes: ShallowSizes,
    pub(super) heaps: Vec<HeapKind>,
    /// Number of references, including those of the runtime.
    pub(super) counts: Vec<u32>,
    /// Objects with references of the runtime, and the number of these, which come last.
    pub(super) internals: Vec<(u32, u32)>,
    /// Objects that name their fields themselves.
    pub(super) shaped: Vec<(u32, ShapeId)>,
    /// Values that only some objects have.
    pub(super) rare: Vec<(u32, Rare)>,
    pub(super) roots: Vec<(u64, RootKind)>,
    /// Messages with their objects, for the second reading.
    pub(super) pieces: Vec<Piece>,
    pub(super) shapes: Vec<Shape>,
    /// Number of all references.
    pub(super) references: u64,
    pub(super) malformed: u64,
}

/// The objects of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Index of the chain, and of the message in it.
    pub(super) chain: u32,
    pub(super) message: u32,
    /// First object, and the number of objects.
    pub(super) first: u32,
    pub(super) count: u32,
    /// First reference.
    pub(super) reference: u32,
}

/// The fields of objects that name them: IDs of field names in a chain, as encoded in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) chain: u32,
    /// Varints; one for each reference, or one for all of them.
    pub(super) ids: Box<[u8]>,
    /// All references have one name: an array of Android 11.
    pub(super) same: bool,
}

/// An object of a message, before its ID and type are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// ID, or its difference to that of the previous object.
    id: u64,
    type_id: u64,
    self_size: u64,
    references: u32,
    internal: u32,
    heap: Option<HeapKind>,
    is_delta: bool,
    /// [`Objects::more`] has its field list and rare values.
    has_more: bool,
}

impl Entry {
    /// Reads an object; `None` if it contradicts itself.
    ///
    /// # Errors
    /// Returns an error if it cannot be read: the later objects of its message are unreadable then.
    #[inline]
    fn read<'a>(
        message: &'a [u8],
        more: &mut Vec<(Packed<'a>, Rare)>,
    ) -> Result<Option<Entry>, WireError> {
        let mut object = Object::default();
        object.read(message)?;
        let fields = object.field_ids.count()?;
        let references = object.references.count()?;
        let internal = object.internal.count()?;
        if fields != 0 && fields != references {
            return Ok(None);
        }
        let (id, is_delta) = object.id();
        let has_more = fields != 0 || object.rare != Rare::default();
        if has_more {
            more.push((object.field_ids, object.rare));
        }
        Ok(Some(Entry {
            id,
            type_id: object.type_id,
            self_size: object.self_size,
            references,
            internal,
            heap: object.heap_type.map(HeapKind::of_number),
            is_delta,
            has_more,
        }))
    }
}

/// The objects of a message, [`MAX_AHEAD`] at a time. They are read without those before, by any
/// thread.
#[derive(Debug)]
pub(super) struct Objects<'a> {
    fields: Fields<'a>,
    /// `None` for an object that contradicts itself.
    entries: Vec<Option<Entry>>,
    next: usize,
    more: IntoIter<(Packed<'a>, Rare)>,
    damage: Option<WireError>,
}

/// Maximum number of objects that are read before the memory limit is checked. ART's messages have
/// fewer.
pub(super) const MAX_AHEAD: usize = 1 << 15;

impl<'a> Objects<'a> {
    /// Reads the first objects of a message. The vector is used again: new memory for each message
    /// costs more than reading it.
    pub(super) fn read(message: &'a [u8], entries: Vec<Option<Entry>>) -> Objects<'a> {
        let mut objects = Objects {
            fields: Fields::new(message),
            entries,
            next: 0,
            more: Vec::new().into_iter(),
            damage: None,
        };
        objects.fill();
        objects
    }

    /// Returns the vector for another message.
    pub(super) fn into_entries(self) -> Vec<Option<Entry>> {
        self.entries
    }

    /// Replaces the objects by the following ones.
    fn fill(&mut self) {
        let mut more = Vec::new();
        self.entries.clear();
        self.next = 0;
        while self.entries.len() < MAX_AHEAD
            && let Ok(Some((number, value))) = self.fields.next()
        {
            if number != 2 {
                continue;
            }
            match Entry::read(value.bytes(), &mut more) {
                Ok(entry) => self.entries.push(entry),
                Err(error) => {
                    self.damage = Some(error);
                    break;
                }
            }
        }
        self.more = more.into_iter();
    }
}

/// State that carries over from one object of a chain to the next, also across its packets.
#[derive(Debug, Default)]
pub(super) struct Carried {
    id: u64,
    heap: HeapKind,
}

/// Assigns numbers to lists of fields.
#[derive(Debug, Default)]
pub(super) struct ShapeIndex {
    seed: Seed,
    index: Index,
}

/// Minimum number of references in a list that is checked for repeating one name.
const LONG: usize = 16;

impl Columns {
    /// Returns the number of objects so far.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Begins a message; its objects come next.
    pub(super) fn begin_piece(&mut self, chain: u32, message: u32) {
        self.pieces.push(Piece {
            chain,
            message,
            first: self.len() as u32,
            count: 0,
            reference: self.references as u32,
        });
    }

    /// Adds the next object of the last message begun.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read: the later objects of its message must not be
    /// added.
    pub(super) fn add_object(
        &mut self,
        objects: &mut Objects<'_>,
        tables: &mut Tables,
        first_class: u32,
        carried: &mut Carried,
        shapes: &mut ShapeIndex,
    ) -> Result<(), WireError> {
        if objects.next == objects.entries.len() && objects.damage.is_none() {
            objects.fill();
        }
        let entry = match objects.entries.get(objects.next) {
            Some(entry) => entry,
            None => return objects.damage.map_or(Ok(()), Err),
        };
        objects.next += 1;
        let Some(entry) = entry else {
            self.malformed += 1;
            return Ok(());
        };
        let own = u64::from(entry.references) + u64::from(entry.internal);
        let most = u64::from(u32::MAX) - 1;
        if self.references + own > most || self.len() as u64 >= most {
            return Err(WireError {
                at: None,
                what: "more objects or references than 32-bit numbers allow",
            });
        }
        self.references += own;
        let at = self.len() as u32;
        carried.id = match entry.is_delta {
            true => carried.id.wrapping_add(entry.id),
            false => entry.id,
        };
        carried.heap = entry.heap.unwrap_or(carried.heap);
        self.ids.push(carried.id);
        self.heaps.push(carried.heap);
        self.classes
            .push(first_class + tables.type_of(entry.type_id));
        self.counts.push(own as u32);
        self.sizes.push(entry.self_size);
        if entry.internal != 0 {
            self.internals.push((at, entry.internal));
        }
        let piece = self
            .pieces
            .last_mut()
            .expect("begin_piece was called for the message");
        piece.count += 1;
        if !entry.has_more {
            return Ok(());
        }
        let chain = piece.chain;
        if let Some((field_ids, rare)) = objects.more.next() {
            if !field_ids.bytes().is_empty() {
                let shape = self.shape(chain, &field_ids, shapes);
                self.shaped.push((at, shape));
            }
            if rare != Rare::default() {
                self.rare.push((at, rare));
            }
        }
        Ok(())
    }

    fn shape(&mut self, chain: u32, ids: &Packed, shapes: &mut ShapeIndex) -> ShapeId {
        let mut ids = ids.bytes();
        let same = repeated(ids);
        if let Some(one) = same {
            ids = one;
        }
        let same = same.is_some();
        let hash = shapes.seed.bytes(ids) ^ u64::from(chain) << 33 ^ u64::from(same) << 32;
        let known = &self.shapes;
        let next = known.len() as u32;
        let (id, there) = shapes.index.find_or_insert(hash, next, |id| {
            let shape: &Shape = &known[id as usize];
            shape.chain == chain && shape.same == same && *shape.ids == *ids
        });
        if !there {
            let ids = ids.into();
            self.shapes.push(Shape { chain, ids, same });
        }
        ShapeId(id)
    }

    /// Adds a `HeapGraphRoot`.
    ///
    /// # Errors
    /// Returns an error if it is damaged; the roots before the damage are added.
    pub(super) fn add_root(&mut self, message: &[u8]) -> Result<(), WireError> {
        let mut kind = 0;
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            if number == 2 {
                kind = value.number();
            }
        }
        let kind = RootKind::of_heap_graph(kind);
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            if number == 1 {
                value.numbers(|id| self.roots.push((id, kind)))?;
            }
        }
        Ok(())
    }
}

/// Returns the single varint that a long list repeats, if it does.
fn repeated(ids: &[u8]) -> Option<&[u8]> {
    let length = ids.iter().position(|&byte| byte < 0x80)? + 1;
    let (one, rest) = ids.split_at(length);
    let is_long = rest.len() >= LONG * length;
    (is_long && rest.chunks(length).all(|other| other == one)).then_some(one)
}
