//! Facts about an object that only the dump has, as plain values: its fields by name and value, its
//! elements, its thread. They are requested for the few objects that are shown or inspected, never
//! in a walk over all.

use super::class::BasicType;
use super::ids::{ClassIndex, ObjectId, ObjectIndex};
use std::fmt;

/// The value of a field or an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A null reference.
    Null,
    /// An object of the graph.
    Object(ObjectIndex),
    /// An ID without an object in the dump.
    Dangling(ObjectId),
    Boolean(bool),
    /// `char`, a UTF-16 unit.
    Char(u16),
    Float(f32),
    Double(f64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
}

impl fmt::Display for Value {
    /// Formats in Java syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Object(_) => f.write_str("object"),
            Value::Dangling(id) => write!(f, "{id} (not in the dump)"),
            Value::Boolean(value) => value.fmt(f),
            Value::Char(unit) => match char::from_u32((*unit).into()) {
                Some(value) => write!(f, "{value:?}"),
                None => write!(f, "'\\u{unit:04x}'"),
            },
            Value::Float(value) => value.fmt(f),
            Value::Double(value) => value.fmt(f),
            Value::Byte(value) => value.fmt(f),
            Value::Short(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Long(value) => value.fmt(f),
        }
    }
}

impl Value {
    /// Returns the object that the value refers to.
    pub fn object(self) -> Option<ObjectIndex> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the type of the value; `Object` for references, including null.
    pub fn basic_type(self) -> BasicType {
        match self {
            Value::Null | Value::Object(_) | Value::Dangling(_) => BasicType::Object,
            Value::Boolean(_) => BasicType::Boolean,
            Value::Char(_) => BasicType::Char,
            Value::Float(_) => BasicType::Float,
            Value::Double(_) => BasicType::Double,
            Value::Byte(_) => BasicType::Byte,
            Value::Short(_) => BasicType::Short,
            Value::Int(_) => BasicType::Int,
            Value::Long(_) => BasicType::Long,
        }
    }

    /// Returns a whole number of any width; `None` for a `char` or a `boolean`.
    pub fn integer(self) -> Option<i64> {
        Some(match self {
            Value::Byte(n) => n.into(),
            Value::Short(n) => n.into(),
            Value::Int(n) => n.into(),
            Value::Long(n) => n,
            _ => return None,
        })
    }

    /// Returns the value of a `boolean`.
    pub fn boolean(self) -> Option<bool> {
        match self {
            Value::Boolean(b) => Some(b),
            _ => None,
        }
    }
}

/// A field of an object, an element of an array, or a static of a class object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field<'a> {
    /// Name; `None` if the dump does not have it, and for elements of arrays.
    pub name: Option<&'a str>,
    /// Index of the element, in arrays.
    pub element: Option<u32>,
    /// Name of the type, if the dump has it.
    pub type_name: Option<&'a str>,
    /// Class that declares the field, if known.
    pub declared_in: Option<ClassIndex>,
    /// The field is a static of the class that this class object represents.
    pub is_static: bool,
    /// Recorded name, if `name` is the original one from an R8 mapping.
    pub recorded: Option<&'a str>,
    pub value: Value,
}

impl Field<'_> {
    /// Creates a field without a name.
    #[inline]
    pub fn from_value(value: Value) -> Self {
        Field {
            name: None,
            element: None,
            type_name: None,
            declared_in: None,
            is_static: false,
            recorded: None,
            value,
        }
    }
}

/// An array of primitives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrimitiveArray<'a> {
    pub element: BasicType,
    /// Number of elements.
    pub length: u32,
    /// Values of the elements, big-endian, if the dump has them.
    pub bytes: Option<&'a [u8]>,
}

/// The field of a reference, as named in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceName<'a> {
    /// Name with the declaring class: `com.example.Cache.entries`.
    pub qualified: &'a str,
    /// Name of the type, if the dump has it.
    pub type_name: Option<&'a str>,
    /// Original class and name, if an R8 mapping has them.
    pub original: Option<(&'a str, &'a str)>,
}

/// A field of a class or its superclasses that holds a reference of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceField {
    /// Number among all fields of the class and its superclasses.
    pub place: u32,
    /// Where the value is in the data of an instance.
    pub offset: usize,
}

/// Original class and name of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalField {
    /// Class that originally declared the field; it can differ from the current one.
    pub class: String,
    pub name: String,
}

/// Source of original field names.
pub trait FieldRenamer {
    /// Returns the original class and name of a field, given the class that declares it, its own
    /// name and the name of its type if known, all as in the dump; `None` if they are unknown.
    fn field(&self, class: &str, field: &str, type_name: Option<&str>) -> Option<OriginalField>;

    /// Returns the original name of a type, including arrays and class objects; `None` if it is
    /// unknown.
    fn type_name(&self, name: &str) -> Option<String>;
}

/// A thread of the program at the time of the dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadFacts {
    /// Name, if the dump has it.
    pub name: Option<String>,
    /// The `java.lang.Thread` object.
    pub object: Option<ObjectIndex>,
}

/// A stack that allocated objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct AllocationSite {
    /// Name of the thread if the dump has it, its serial number otherwise.
    pub thread: String,
    /// Frames, the allocating one first, such as `lab.LeakLab.fill (LeakLab.java:42)`.
    pub frames: Vec<String>,
}
