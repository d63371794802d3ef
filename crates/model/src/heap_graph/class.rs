//! Classes: names, hierarchy, fields.

use super::ids::{ClassIndex, ObjectIndex};

/// So many classes are looked at from one upwards: no program has as many above each other, a
/// hostile dump may have a chain of millions.
pub const DEEPEST: usize = 255;

/// A class and those above it, nearest first, at most [`DEEPEST`]. Ends where they go round in a
/// circle, though not before some have come again.
pub fn upwards<T: Copy + PartialEq>(
    class: T,
    above: impl Fn(T) -> Option<T>,
) -> impl Iterator<Item = T> {
    let mut next = Some(class);
    // Brent: `anchor` jumps ahead at powers of two, and a cycle comes back to it.
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
    .take(DEEPEST)
}

/// A class or array type. Two classes may have one name: by two loaders, or from two files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// Its name as Java writes it: `java.lang.String`, `int[][]`. In a heap graph the type of a
    /// class object is `java.lang.Class<the.Name>`.
    pub name: String,
    /// The name before it was obfuscated, once a mapping file gave it.
    pub deobfuscated: Option<String>,
    /// The file it was loaded from, where the dump says.
    pub location: Option<String>,
    /// Its superclass, where the dump says and has it. May be part of a cycle in a hostile dump:
    /// [`super::HeapGraph::ancestry`] is bounded.
    pub superclass: Option<ClassIndex>,
    /// The object that loaded it.
    pub loader: Option<ObjectIndex>,
    /// The `java.lang.Class` object that stands for it; statics are that object's fields.
    pub object: Option<ObjectIndex>,
    /// What sort of class.
    pub kind: ClassKind,
    /// Shallow size of an instance in bytes, where all have the same.
    pub instance_bytes: Option<u64>,
    /// Its own instance fields in declared order, without those of superclasses.
    pub fields: Vec<FieldDecl>,
}

impl Class {
    /// The name to show: deobfuscated where it can be.
    pub fn shown(&self) -> &str {
        self.deobfuscated.as_deref().unwrap_or(&self.name)
    }

    /// Whether it is an array of any kind.
    pub fn is_array(&self) -> bool {
        self.kind == ClassKind::Array || self.name.ends_with("[]")
    }
}

/// A field that a class declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldDecl {
    /// Its name, without the class.
    pub name: String,
    /// The name before it was obfuscated.
    pub deobfuscated: Option<String>,
    /// The name of its type as Java writes it, where the dump says; `None` for an HPROF's
    /// object fields, whose [`FieldDecl::basic`] is [`BasicType::Object`].
    pub type_name: Option<String>,
    /// Its basic type, where the dump says.
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
    /// `byte`.
    Byte = 8,
    /// `short`, 2 bytes.
    Short = 9,
    /// `int`, 4 bytes.
    Int = 10,
    /// `long`, 8 bytes.
    Long = 11,
}

impl BasicType {
    /// The type with that code.
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

    /// Bytes of a value in a dump whose ids have `id_bytes`.
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

    /// As Java writes it; `Object` for references.
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

/// What sort of class; Perfetto's `HeapGraphType.Kind`, computed by superclass for HPROF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[allow(missing_docs)]
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
