//! Objects of a dump in file order: IDs, types, sizes, and numbers of references. This is the first
//! of two readings of a dump's packets; the second skips the same objects.

use super::object::{Object, Packed, Rare};
use super::tables::Tables;
use crate::wire::{Fields, WireError};
use heaptap_model::heap_graph::{HeapKind, RootKind};
use heaptap_model::profile::index::{Index, Seed};

/// The number of a field list in [`Columns::shapes`], for objects that name their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(pub(super) u32);

/// Columns by object, in file order.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) ids: Vec<u64>,
    /// Type by object, as a class of [`super::classes`].
    pub(super) classes: Vec<u32>,
    /// Shallow size; 0 means that of the class, `u32::MAX` means that `huge` has it.
    pub(super) sizes: Vec<u32>,
    pub(super) huge: Vec<(u32, u64)>,
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

/// Reads an object into an empty one and returns the number of its values of each kind; `None` for
/// an object that contradicts itself. Both readings use it.
///
/// # Errors
/// Returns an error if the object cannot be read; the later objects of its packet are unreadable
/// then.
#[inline]
pub(super) fn read_object<'a>(
    message: &'a [u8],
    object: &mut Object<'a>,
) -> Result<Option<Counts>, WireError> {
    object.read(message)?;
    let counts = Counts {
        fields: object.field_ids.count()?,
        references: object.references.count()?,
        internal: object.internal.count()?,
    };
    if counts.fields != 0 && counts.fields != counts.references {
        return Ok(None);
    }
    Ok(Some(counts))
}

/// Number of an object's values of each kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) fields: u32,
    pub(super) references: u32,
    pub(super) internal: u32,
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

    /// Adds an object of the last message begun.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read: the later objects of its message must not be
    /// added.
    pub(super) fn add_object(
        &mut self,
        message: &[u8],
        tables: &mut Tables,
        first_class: u32,
        carried: &mut Carried,
        shapes: &mut ShapeIndex,
    ) -> Result<(), WireError> {
        let mut object = Object::default();
        let Some(counts) = read_object(message, &mut object)? else {
            self.malformed += 1;
            return Ok(());
        };
        let own = u64::from(counts.references) + u64::from(counts.internal);
        let most = u64::from(u32::MAX) - 1;
        if self.references + own > most || self.len() as u64 >= most {
            return Err(WireError {
                at: None,
                what: "more objects or references than 32-bit numbers allow",
            });
        }
        self.references += own;
        let at = self.len() as u32;
        carried.id = object.id(carried.id);
        if let Some(heap) = object.heap_type {
            carried.heap = heap_of(heap);
        }
        self.ids.push(carried.id);
        self.heaps.push(carried.heap);
        self.classes
            .push(first_class + tables.type_of(object.type_id));
        self.counts.push(own as u32);
        match u32::try_from(object.self_size) {
            Ok(size) if size < u32::MAX => self.sizes.push(size),
            _ => {
                self.sizes.push(u32::MAX);
                self.huge.push((at, object.self_size));
            }
        }
        if counts.internal != 0 {
            self.internals.push((at, counts.internal));
        }
        let piece = self
            .pieces
            .last_mut()
            .expect("begin_piece was called for the message");
        piece.count += 1;
        if counts.fields != 0 {
            let chain = piece.chain;
            let shape = self.shape(chain, &object.field_ids, shapes);
            self.shaped.push((at, shape));
        }
        if object.rare != Rare::default() {
            self.rare.push((at, object.rare));
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

/// Returns a heap by its number in `HeapGraphObject.HeapType`.
fn heap_of(number: u64) -> HeapKind {
    match number {
        1 => HeapKind::App,
        2 => HeapKind::Zygote,
        3 => HeapKind::BootImage,
        _ => HeapKind::Unknown,
    }
}
