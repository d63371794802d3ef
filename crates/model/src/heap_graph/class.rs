//! Classes: names, hierarchy, fields.

use super::ids::{ClassIndex, ObjectIndex};

/// Maximum number of superclasses to follow. Real hierarchies are shallower, but a hostile dump can
/// have a chain of millions.
pub const MAX_DEPTH: usize = 255;

/// Maximum length of the name of a class, field, method or thread, in bytes. Readers cut longer
/// ones, which only hostile dumps have: an answer can repeat a name for each object.
pub const MAX_NAME_BYTES: usize = 4096;

/// Returns the part of a name that readers keep.
pub fn name_of(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_NAME_BYTES)]
}

/// Returns a class and its superclasses, nearest first, at most [`MAX_DEPTH`]. Ends at a cycle,
/// possibly after some classes are repeated.
pub fn upwards<T: Copy + PartialEq>(
    class: T,
    above: impl Fn(T) -> Option<T>,
) -> impl Iterator<Item = T> {
    let mut next = Some(class);
    // Brent's algorithm: `anchor` jumps ahead at powers of two, and a cycle returns to it.
    let (mut anchor, mut steps, mut limit) = (None, 0u32, 1u32);
    std::iter::from_fn(move || {
        let now = next.filter(|&now| anchor != Some(now))?;
        if steps == limit {
            anchor = Some(now);
            steps = 0;
            limit = limit.saturating_mul(2);
        }
        steps += 1;
        next = above(now);
        Some(now)
    })
    .take(MAX_DEPTH)
}

/// A class or array type. Two classes can have the same name if they have different loaders or
/// files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// Name as Java writes it: `java.lang.String`, `int[][]`. In a heap graph the type of a class
    /// object is `java.lang.Class<the.Name>`.
    pub name: String,
    /// Original name from an R8 mapping.
    pub deobfuscated: Option<String>,
    /// File that the class was loaded from, if the dump has it.
    pub location: Option<String>,
    /// Superclass, if the dump has it. Can be part of a cycle in a hostile dump:
    /// [`super::HeapGraph::ancestry`] is bounded.
    pub superclass: Option<ClassIndex>,
    /// The class loader object.
    pub loader: Option<ObjectIndex>,
    /// The `java.lang.Class` object of the class; its fields are the statics of the class.
    pub object: Option<ObjectIndex>,
    pub kind: ClassKind,
    /// Shallow size of an instance in bytes, if all have the same.
    pub instance_bytes: Option<u64>,
    /// Instance fields that the class itself declares, in declared order.
    pub fields: Vec<FieldDecl>,
}

impl Class {
    /// Returns the name to show: the deobfuscated one if known.
    pub fn shown(&self) -> &str {
        self.deobfuscated.as_deref().unwrap_or(&self.name)
    }

    /// Returns whether it is an array of any kind.
    #[inline]
    pub fn is_array(&self) -> bool {
        self.kind == ClassKind::Array || self.name.ends_with("[]")
    }
}

/// A field that a class declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldDecl {
    /// Name without the class.
    pub name: String,
    /// Original name from an R8 mapping.
    pub deobfuscated: Option<String>,
    /// Name of the type as Java writes it, if the dump has it; `None` for an HPROF's object fields,
    /// whose [`FieldDecl::basic`] is [`BasicType::Object`].
    pub type_name: Option<String>,
    /// Basic type, if the dump has it.
    pub basic: Option<BasicType>,
}

/// Basic types of HPROF (`hprof_basic_type`), with their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BasicType {
    /// A reference.
    Object = 2,
    /// `boolean`, 1 byte.
    Boolean = 4,
    /// `char`, 2 bytes.
    Char = 5,
    /// `float`, 4 bytes.
    Float = 6,
    /// `double`, 8 bytes.
    Double = 7,
    Byte = 8,
    /// `short`, 2 bytes.
    Short = 9,
    /// `int`, 4 bytes.
    Int = 10,
    /// `long`, 8 bytes.
    Long = 11,
}

impl BasicType {
    /// Returns the type with that code.
    pub fn of_code(code: u8) -> Option<BasicType> {
        use BasicType::*;
        Some(match code {
            2 => Object,
            4 => Boolean,
            5 => Char,
            6 => Float,
            7 => Double,
            8 => Byte,
            9 => Short,
            10 => Int,
            11 => Long,
            _ => return None,
        })
    }

    /// Returns the bytes of a value in a dump whose IDs have `id_bytes`.
    pub fn bytes(self, id_bytes: usize) -> usize {
        use BasicType::*;
        match self {
            Object => id_bytes,
            Boolean | Byte => 1,
            Char | Short => 2,
            Float | Int => 4,
            Double | Long => 8,
        }
    }

    /// Returns the name as Java writes it; `Object` for references.
    pub fn name(self) -> &'static str {
        use BasicType::*;
        match self {
            Object => "Object",
            Boolean => "boolean",
            Char => "char",
            Float => "float",
            Double => "double",
            Byte => "byte",
            Short => "short",
            Int => "int",
            Long => "long",
        }
    }
}

/// Kind of class; Perfetto's `HeapGraphType.Kind`, computed from superclasses for HPROF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ClassKind {
    #[default]
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
}
