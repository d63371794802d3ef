//! A Java heap as plain data: classes with their fields, objects with their values, roots. Owns
//! ART's object layout (field order, sizes, addresses). [`super::framework`] and [`super::app`]
//! decide the contents of a heap; [`super::graph`] and [`super::hprof`] write it.

use std::rc::Rc;

pub(crate) use heaptap_proto::perfetto::heap_graph_object::HeapType as Space;
pub(crate) use heaptap_proto::perfetto::heap_graph_root::Type as RootKind;
pub(crate) use heaptap_proto::perfetto::heap_graph_type::Kind;

/// Index of an object in the heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Obj(pub(super) u32);

/// Index of a class in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClassRef(pub(super) u32);

/// Type of a field or an array element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Boolean,
    Char,
    Float,
    Double,
    Byte,
    Short,
    Int,
    Long,
}

/// The types by their numbers in HPROF: Java's name, and the size in bytes on ART's heap, where
/// references have 32 bits on every phone.
const TYPES: [(Type, u8, &str, u32); 9] = [
    (Type::Object, 2, "", 4),
    (Type::Boolean, 4, "boolean", 1),
    (Type::Char, 5, "char", 2),
    (Type::Float, 6, "float", 4),
    (Type::Double, 7, "double", 8),
    (Type::Byte, 8, "byte", 1),
    (Type::Short, 9, "short", 2),
    (Type::Int, 10, "int", 4),
    (Type::Long, 11, "long", 8),
];

impl Type {
    /// Parses Java's name of a type; anything but a primitive is an object.
    pub(crate) fn from_word(word: &str) -> Type {
        let known = TYPES.iter().find(|(_, _, name, _)| *name == word);
        known.map_or(Type::Object, |(kind, ..)| *kind)
    }

    pub(crate) fn bytes(self) -> u32 {
        TYPES[self as usize].3
    }

    /// Returns HPROF's number of a type.
    pub(super) fn code(self) -> u8 {
        TYPES[self as usize].1
    }

    pub(super) fn zero(self) -> Value {
        match self {
            Type::Object => Value::Null,
            kind => Value::Number(kind, 0),
        }
    }

    /// Parses a literal of this type.
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        let bits = match (self, text) {
            (Type::Boolean, "true") => 1,
            (Type::Float, _) => text.parse::<f32>().ok()?.to_bits().into(),
            _ => match text.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            },
        };
        Some(Value::Number(self, bits))
    }
}

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Ref(Obj),
    /// A primitive value; its bits are the lowest ones.
    Number(Type, i64),
}

impl Value {
    pub(super) fn kind(self) -> Type {
        match self {
            Value::Null | Value::Ref(_) => Type::Object,
            Value::Number(kind, _) => kind,
        }
    }

    /// Returns the referenced object, if any.
    pub(crate) fn object(self) -> Option<Obj> {
        match self {
            Value::Ref(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the number of a primitive value.
    pub(super) fn number(self) -> Option<i64> {
        match self {
            Value::Number(_, number) => Some(number),
            _ => None,
        }
    }
}

impl From<Obj> for Value {
    fn from(object: Obj) -> Value {
        Value::Ref(object)
    }
}

impl From<Option<Obj>> for Value {
    fn from(object: Option<Obj>) -> Value {
        object.map_or(Value::Null, Value::Ref)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Number(Type::Boolean, value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Number(Type::Int, value.into())
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Number(Type::Int, value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Number(Type::Int, value as i64)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Type::Long, value)
    }
}

/// A declared field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldDef {
    pub(crate) name: Rc<str>,
    /// Type as in source: `android.view.View[]`, `int`.
    pub(crate) type_name: Rc<str>,
    pub(crate) kind: Type,
}

#[derive(Debug, Default)]
pub(crate) struct Class {
    /// Name as in source: `java.util.HashMap$Node[]`; the obfuscated name on a phone with R8.
    pub(crate) name: Rc<str>,
    pub(crate) superclass: Option<ClassRef>,
    /// Dex file; empty for classes that the runtime creates.
    pub(crate) location: Rc<str>,
    pub(crate) loader: Option<Obj>,
    pub(crate) kind: Kind,
    /// Own instance fields in ART's order.
    pub(crate) fields: Vec<FieldDef>,
    pub(crate) statics: Vec<(FieldDef, Value)>,
    /// Size of an instance in bytes; 0 for arrays and primitives.
    pub(crate) instance_bytes: u32,
    /// Class of an array's elements.
    pub(crate) component: Option<ClassRef>,
    pub(crate) dex_cache: Option<Obj>,
    /// Object of the class.
    pub(crate) object: Obj,
    /// Size in bytes of the embedded vtable and interface table.
    pub(crate) table_bytes: u32,
    /// Index of the first own field in an instance's values.
    pub(super) slots: u32,
}

/// Contents of an object.
#[derive(Debug)]
pub(crate) enum Body {
    /// Class object: the values of java.lang.Class's fields.
    Class(ClassRef),
    /// Values of an instance, the fields of the topmost class first.
    Instance(Box<[Value]>),
    String(Rc<str>),
    References(Vec<Option<Obj>>),
    /// Elements in the byte order of HPROF: big-endian.
    Primitives(Type, Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) class: ClassRef,
    pub(crate) space: Space,
    pub(crate) body: Body,
    pub(crate) address: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) object: Obj,
    pub(crate) kind: RootKind,
    /// ART's number of the thread that holds the object, if any.
    pub(crate) thread: u32,
}

/// A whole heap.
#[derive(Debug, Default)]
pub(crate) struct JavaHeap {
    pub(crate) classes: Vec<Class>,
    pub(crate) objects: Vec<Object>,
    /// All objects in the order of their addresses.
    pub(super) order: Vec<Obj>,
    pub(crate) roots: Vec<Root>,
    /// Objects that only the runtime holds for a class loader or dex cache: its classes.
    pub(crate) internals: Vec<(Obj, Vec<Obj>)>,
}

/// Classes at fixed indexes in every heap.
pub(super) const OBJECT: ClassRef = ClassRef(0);
pub(super) const CLASS: ClassRef = ClassRef(1);
pub(super) const STRING: ClassRef = ClassRef(2);

/// Alignment of objects in bytes.
pub(super) const ALIGNMENT: u64 = 8;
/// Size in bytes of an object's header: class and lock word.
pub(crate) const HEADER_BYTES: u32 = 8;
/// Size in bytes of an array's header, which includes the length.
const ARRAY_HEADER_BYTES: u64 = 12;
/// Size in bytes of a string without its characters.
pub(crate) const STRING_BYTES: u32 = 16;

/// Returns whether ART stores the string with one byte per character.
pub(crate) fn is_compressed(text: &str) -> bool {
    text.bytes().all(|b| (1..0x80).contains(&b))
}

impl JavaHeap {
    pub(crate) fn class(&self, class: ClassRef) -> &Class {
        &self.classes[class.0 as usize]
    }

    pub(crate) fn object(&self, object: Obj) -> &Object {
        &self.objects[object.0 as usize]
    }

    /// Returns all objects in the order of their addresses.
    pub(crate) fn all(&self) -> impl Iterator<Item = Obj> {
        self.order.iter().copied()
    }

    /// Returns the class and its superclasses, the class first.
    pub(crate) fn ancestry(&self, class: ClassRef) -> impl Iterator<Item = ClassRef> + '_ {
        std::iter::successors(Some(class), |c| self.class(*c).superclass)
    }

    /// Returns the first class with a name.
    pub(crate) fn find_class(&self, name: &str) -> Option<ClassRef> {
        let at = self.classes.iter().position(|c| &*c.name == name)?;
        Some(ClassRef(at as u32))
    }

    /// Returns the size of an object in bytes, not rounded.
    pub(crate) fn bytes(&self, object: Obj) -> u64 {
        match &self.object(object).body {
            Body::Class(class) => u64::from(self.class_bytes(*class)),
            Body::Instance(_) => u64::from(self.class(self.object(object).class).instance_bytes),
            Body::String(text) => {
                let units = text.encode_utf16().count() as u64;
                let width = if is_compressed(text) { 1 } else { 2 };
                u64::from(STRING_BYTES) + units * width
            }
            Body::References(items) => ARRAY_HEADER_BYTES + items.len() as u64 * 4,
            Body::Primitives(kind, data) => {
                // Elements of 8 bytes start at a multiple of 8.
                let header = if kind.bytes() == 8 {
                    16
                } else {
                    ARRAY_HEADER_BYTES
                };
                header + data.len() as u64
            }
        }
    }

    /// Returns the bytes that ART has allocated after the fork, rounded as ART does.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let own = self.all().filter(|o| self.object(*o).space == Space::App);
        own.map(|o| self.bytes(o).next_multiple_of(ALIGNMENT)).sum()
    }

    /// Returns the size in bytes of a class object: java.lang.Class's fields, the tables, the
    /// static fields.
    pub(crate) fn class_bytes(&self, class: ClassRef) -> u32 {
        let of = self.class(class);
        let start = self.class(CLASS).instance_bytes + of.table_bytes;
        let statics = of.statics.iter().map(|(field, _)| field.kind);
        layout(start, statics)
    }

    /// Returns the values of the fields of an object's class and of each superclass, topmost last.
    pub(crate) fn values(&self, object: Obj) -> Vec<(ClassRef, &FieldDef, Value)> {
        let Object { class, body, .. } = self.object(object);
        let Body::Instance(values) = body else {
            return Vec::new();
        };
        let mut all = Vec::with_capacity(values.len());
        for class in self.ancestry(*class) {
            let of = self.class(class);
            let own = &values[of.slots as usize..][..of.fields.len()];
            all.extend(of.fields.iter().zip(own).map(|(f, v)| (class, f, *v)));
        }
        all
    }

    /// Returns a field of an instance by its name, the most specific class first.
    pub(crate) fn field(&self, object: Obj, name: &str) -> Option<Value> {
        let values = self.values(object);
        let found = values.iter().find(|(_, field, _)| &*field.name == name);
        found.map(|(_, _, value)| *value)
    }

    /// Returns the values of java.lang.Class's fields in a class object.
    pub(crate) fn class_values(&self, class: ClassRef) -> Vec<(&FieldDef, Value)> {
        let of = self.class(class);
        let value = |field: &FieldDef| match &*field.name {
            "classLoader" => of.loader.into(),
            "superClass" => of.superclass.map(|c| self.class(c).object).into(),
            "componentType" => of.component.map(|c| self.class(c).object).into(),
            "dexCache" => of.dex_cache.into(),
            "classSize" => self.class_bytes(class).into(),
            "objectSize" => of.instance_bytes.into(),
            "status" => (-0x1000_0000).into(),
            _ => field.kind.zero(),
        };
        let fields = &self.class(CLASS).fields;
        fields.iter().map(|field| (field, value(field))).collect()
    }
}

/// Returns the end of the last field if the first one can start at `start`: references first, then
/// from the widest to the narrowest, which also fill the gaps of alignment.
pub(super) fn layout(start: u32, fields: impl Iterator<Item = Type>) -> u32 {
    let mut kinds: Vec<Type> = fields.collect();
    kinds.sort_by_key(|k| (*k != Type::Object, std::cmp::Reverse(k.bytes())));
    let mut gaps: Vec<(u32, u32)> = Vec::new();
    let mut end = start;
    for kind in kinds {
        let width = kind.bytes();
        if let Some(gap) = gaps.iter_mut().find(|(at, to)| to - at >= width) {
            gap.0 += width;
            continue;
        }
        let at = end.next_multiple_of(width);
        if at > end {
            gaps.push((end, at));
        }
        end = at + width;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fill_the_gaps_before_them() {
        let end = |start, kinds: &[Type]| layout(start, kinds.iter().copied());
        assert_eq!(end(8, &[Type::Long, Type::Object]), 24);
        assert_eq!(end(8, &[Type::Long, Type::Object, Type::Int]), 24);
        assert_eq!(end(8, &[Type::Boolean, Type::Byte, Type::Short]), 12);
        assert_eq!(end(9, &[Type::Object]), 16);
    }
}
