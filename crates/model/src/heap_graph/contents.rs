//! What only the dump itself can tell of an object, as plain values: its fields by name and
//! value, its elements, its thread. Asked for the few objects that are shown or inspected, never
//! in a walk over all.

use super::class::BasicType;
use super::ids::{ClassIndex, ObjectId, ObjectIndex};

/// The value of a field or an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// No object.
    Null,
    /// An object of the graph.
    Object(ObjectIndex),
    /// An id that the dump has no object for.
    Dangling(ObjectId),
    /// `boolean`.
    Boolean(bool),
    /// `char`, a UTF-16 unit.
    Char(u16),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `byte`.
    Byte(i8),
    /// `short`.
    Short(i16),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
}

impl Value {
    /// The object it refers to.
    pub fn object(self) -> Option<ObjectIndex> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Its type; `Object` of whatever refers to one, or to none.
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

    /// A whole number of any width; not a `char` or a `boolean`.
    pub fn integer(self) -> Option<i64> {
        Some(match self {
            Value::Byte(n) => n.into(),
            Value::Short(n) => n.into(),
            Value::Int(n) => n.into(),
            Value::Long(n) => n,
            _ => return None,
        })
    }

    /// A `boolean`.
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
    /// Its name; `None` where the dump does not tell, and for elements of arrays.
    pub name: Option<&'a str>,
    /// Index of the element, in arrays.
    pub element: Option<u32>,
    /// The name of its type, where the dump tells.
    pub type_name: Option<&'a str>,
    /// The class that declares it, where that is known.
    pub declared_in: Option<ClassIndex>,
    /// Whether it is a static of the class that this class object stands for.
    pub is_static: bool,
    /// What it holds.
    pub value: Value,
}

/// An array of primitives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrimitiveArray<'a> {
    /// Type of the elements.
    pub element: BasicType,
    /// Number of elements.
    pub length: u32,
    /// Their values, big-endian, where the dump has them.
    pub bytes: Option<&'a [u8]>,
}

/// The field that a reference is, as the dump has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceName<'a> {
    /// With the class that declares it: `com.example.Cache.entries`.
    pub qualified: &'a str,
    /// The name of its type, where the dump tells.
    pub type_name: Option<&'a str>,
    /// Its class and name before they were obfuscated, where a map knows.
    pub original: Option<(&'a str, &'a str)>,
}

/// A field as it was before it was obfuscated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalField {
    /// The class it was written in, which may not be the one that declares it now.
    pub class: String,
    /// Its name.
    pub name: String,
}

/// Knows what fields were called before they were obfuscated.
pub trait FieldRenamer {
    /// The class and the name of a field, given the class that declares it, its own name and that of its type
    /// where known, all as the dump has them; `None` where nothing is known of it.
    fn field(&self, class: &str, field: &str, type_name: Option<&str>) -> Option<OriginalField>;

    /// The name of a type, arrays and class objects too; `None` where nothing is known of it.
    fn type_name(&self, name: &str) -> Option<String>;
}

/// A thread of the program at the moment of the dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadFacts {
    /// Its name, where the dump has it.
    pub name: Option<String>,
    /// Its `java.lang.Thread`.
    pub object: Option<ObjectIndex>,
    /// Its stack, the innermost frame first, so that [`super::Root::frame`] is an index; such as
    /// `lab.LeakLab.main (LeakLab.java:42)`. Empty where the dump has none.
    pub frames: Vec<String>,
}

/// A stack at which objects were allocated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationSite {
    /// The thread, by name where the dump has it, else by serial number.
    pub thread: String,
    /// Frames, the allocating one first, such as `lab.LeakLab.fill (LeakLab.java:42)`.
    pub frames: Vec<String>,
}
