//! Types, field names and locations of a chain, which its objects refer to by number. They come
//! last, so objects are decoded with numbers that are assigned at the first reference to a type.

use crate::iids::IidMap;
use crate::wire::{Fields, Value, WireError};
use heaptap_model::heap_graph::{ClassKind, name_of};

/// Name of a `HeapGraphType` that is not defined.
pub(super) const UNDEFINED: &str = "[unknown class]";
/// Number without an entry in a table.
pub(super) const NONE: u32 = u32::MAX;

/// A type of a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) defined: bool,
    pub(super) location_id: u64,
    pub(super) object_size: u64,
    pub(super) superclass_id: u64,
    pub(super) classloader_id: u64,
    pub(super) kind: ClassKind,
    /// IDs of field names.
    pub(super) fields: Vec<u64>,
}

impl Type {
    /// Returns whether the fields of the type and its superclasses name its references.
    pub(super) fn names_references(&self) -> bool {
        use ClassKind::{Array, NoReferences, String};
        !matches!(self.kind, NoReferences | Array | String)
    }
}

/// The tables of a chain.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) types: Vec<Type>,
    type_by_id: IidMap,
    /// Field names in the trace: `type declaring.class.field`.
    pub(super) names: Vec<String>,
    name_by_id: IidMap,
    locations: Vec<String>,
    location_by_id: IidMap,
}

impl Tables {
    /// Returns the number of a type, which is assigned at the first request.
    #[inline]
    pub(super) fn type_of(&mut self, id: u64) -> u32 {
        match self.type_by_id.get(id) {
            Some(known) => known,
            None => self.new_type(id),
        }
    }

    #[cold]
    fn new_type(&mut self, id: u64) -> u32 {
        let number = self.types.len() as u32;
        self.types.push(Type::default());
        self.type_by_id.define(id, number);
        number
    }

    /// Returns the number of a type if an object or another type refers to it.
    pub(super) fn known_type(&self, id: u64) -> Option<u32> {
        self.type_by_id.get(id)
    }

    /// Returns the number of a field name; [`NONE`] if it is not defined.
    #[inline]
    pub(super) fn name(&self, id: u64) -> u32 {
        self.name_by_id.get(id).unwrap_or(NONE)
    }

    /// Returns the number of locations.
    pub(super) fn locations(&self) -> usize {
        self.locations.len()
    }

    /// Returns a location if it is defined.
    pub(super) fn location(&self, id: u64) -> Option<&str> {
        let at = self.location_by_id.get(id)?;
        Some(&self.locations[at as usize])
    }

    /// Reads a `HeapGraphType`.
    pub(super) fn add_type(&mut self, message: &[u8]) -> Result<(), WireError> {
        let (mut id, mut kind) = (0, 0);
        let mut read = Type {
            defined: true,
            ..Type::default()
        };
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => id = value.number(),
                2 => read.location_id = value.number(),
                3 => read.name = name(value),
                4 => read.object_size = value.number(),
                5 => read.superclass_id = value.number(),
                6 => value.numbers(|id| read.fields.push(id))?,
                7 => kind = value.number(),
                8 => read.classloader_id = value.number(),
                _ => {}
            }
        }
        read.kind = kind_of(kind);
        let at = self.type_of(id) as usize;
        self.types[at] = read;
        Ok(())
    }

    /// Reads an entry of `field_names`.
    pub(super) fn add_name(&mut self, message: &[u8]) -> Result<(), WireError> {
        let (id, text) = interned(message)?;
        self.name_by_id.define(id, self.names.len() as u32);
        self.names.push(text);
        Ok(())
    }

    /// Reads an entry of `location_names`.
    pub(super) fn add_location(&mut self, message: &[u8]) -> Result<(), WireError> {
        let (id, text) = interned(message)?;
        self.location_by_id.define(id, self.locations.len() as u32);
        self.locations.push(text);
        Ok(())
    }
}

fn name(value: Value<'_>) -> String {
    String::from_utf8_lossy(name_of(value.bytes())).into_owned()
}

fn interned(message: &[u8]) -> Result<(u64, String), WireError> {
    let (mut id, mut text) = (0, String::new());
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => id = value.number(),
            2 => text = name(value),
            _ => {}
        }
    }
    Ok((id, text))
}

/// Returns a kind by its number in `HeapGraphType.Kind`; `Unknown` for other numbers.
fn kind_of(number: u64) -> ClassKind {
    use ClassKind::*;
    const ALL: [ClassKind; 12] = [
        Unknown,
        Normal,
        NoReferences,
        String,
        Array,
        Class,
        ClassLoader,
        DexCache,
        SoftReference,
        WeakReference,
        FinalizerReference,
        PhantomReference,
    ];
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    ALL.get(at).copied().unwrap_or(Unknown)
}

/// A parsed field name of the trace: `type declaring.class.field`, split at the first space and the
/// last dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldName<'a> {
    pub(super) type_name: Option<&'a str>,
    /// The field with its class: `declaring.class.field`.
    pub(super) qualified: &'a str,
    pub(super) class: Option<&'a str>,
    pub(super) field: &'a str,
}

impl<'a> FieldName<'a> {
    pub(super) fn parse(text: &'a str) -> FieldName<'a> {
        let (type_name, qualified) = match text.split_once(' ') {
            Some((type_name, rest)) => (Some(type_name), rest),
            None => (None, text),
        };
        let (class, field) = match qualified.rsplit_once('.') {
            Some((class, field)) => (Some(class), field),
            None => (None, qualified),
        };
        FieldName {
            type_name,
            qualified,
            class,
            field,
        }
    }
}
