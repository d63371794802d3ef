//! The classes of a dump: names, hierarchy and fields, and for each class with instances the
//! offsets of references in an instance's data.

use super::id_map::IdMap;
use super::index::Index;
use super::names::java_class_name;
use super::outline::Outline;
use super::sub_records::{ClassDump, OwnField, SubRecord, SubRecords};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    BasicType, Class, ClassIndex, ClassKind, FieldDecl, MAX_DEPTH, ObjectId, ReferenceKind,
};
use std::collections::HashMap;

/// HotSpot's class of the stacks of virtual threads: the stack follows the fields of an instance.
pub(super) const STACK_CHUNK: &str = "jdk.internal.vm.StackChunk";

pub(super) struct Classes {
    pub(super) rows: Vec<Class>,
    /// Offset of the class dump of each class, if the dump has one.
    pub(super) dumps: Vec<Option<usize>>,
    pub(super) by_id: IdMap<ClassIndex>,
    pub(super) layouts: Vec<Layout>,
    /// Offsets in an instance's data; [`Layout::references`] selects ranges of them.
    pub(super) offsets: Vec<u32>,
    /// Class of primitive arrays, by code of the basic type.
    pub(super) primitive: [ClassIndex; 12],
    pub(super) class_class: ClassIndex,
    /// IDs of the array classes of each class, by the ID of the class. The VM keeps them as long as
    /// the class, but dumps of HotSpot do not have that reference.
    pub(super) arrays_of: IdMap<Vec<u64>>,
    /// ART's arrays that represent the vtables of classes: bytes by ID.
    pub(super) overheads: IdMap<u32>,
    /// Names of superclasses that the dump does not have.
    pub(super) missing_supers: Vec<String>,
    /// Marks the classes below one of them, whose instances have fields that are not known; empty
    /// if there are none.
    lacks_fields: Vec<bool>,
    /// Names were cut or fields left out because all of them together exceed the limit.
    pub(super) names_cut: bool,
}

/// Offsets of references in the data of an instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    from: u32,
    to: u32,
    /// Offsets of `referent` and `zombie` in a `java.lang.ref.Reference`.
    pub(super) referents: [Option<u32>; 2],
    /// Kind of the reference.
    pub(super) reference: Option<ReferenceKind>,
    /// Bytes of all known fields.
    pub(super) bytes: u32,
}

impl Classes {
    /// Returns the offsets of references, in the order of fields in the data.
    #[inline]
    pub(super) fn references(&self, layout: &Layout) -> &[u32] {
        &self.offsets[layout.from as usize..layout.to as usize]
    }

    /// Returns the class dump of a class.
    pub(super) fn dump<'a>(
        &self,
        file: &'a [u8],
        outline: &Outline,
        class: ClassIndex,
    ) -> Option<ClassDump<'a>> {
        class_dump_at(file, outline, self.dumps[class.at()]?)
    }
}

/// Returns the class dump at an offset of the file.
pub(super) fn class_dump_at<'a>(
    file: &'a [u8],
    outline: &Outline,
    at: usize,
) -> Option<ClassDump<'a>> {
    match SubRecords::within(file, at, file.len(), outline.id_size).next() {
        Some(Ok((_, SubRecord::Class(dump)))) => Some(dump),
        _ => None,
    }
}

/// Makes names and fields within limits of memory: a hostile dump can have one long name for a
/// million fields, and a field takes many times its bytes in the file.
struct Names<'a> {
    file: &'a Bytes,
    outline: &'a Outline,
    left: usize,
    /// Bytes left for declarations, without names.
    left_for_fields: usize,
    cut: bool,
}

impl Names<'_> {
    fn get(&mut self, id: u64) -> Option<String> {
        let name = self.outline.strings.get(self.file, id)?;
        Some(self.bounded(name))
    }

    /// Returns the name, or `…` if the limit is exceeded.
    fn bounded(&mut self, name: String) -> String {
        match self.left.checked_sub(name.len()) {
            Some(left) => {
                self.left = left;
                name
            }
            None => {
                self.cut = true;
                "…".to_owned()
            }
        }
    }

    /// Returns whether a class that is missing in the dump can have its own name: an instance
    /// without data takes fewer bytes in the file than its class in memory.
    fn has_room_for_class(&mut self) -> bool {
        let left = self.left_for_fields.checked_sub(2 * size_of::<Class>());
        self.left_for_fields = left.unwrap_or(self.left_for_fields);
        self.cut |= left.is_none();
        left.is_some()
    }

    /// Returns the declaration of a field, or `None` if the limit is exceeded.
    fn field(&mut self, field: OwnField) -> Option<FieldDecl> {
        let type_name = (field.basic != BasicType::Object).then(|| field.basic.name());
        let bytes = size_of::<FieldDecl>() + type_name.map_or(0, str::len);
        let Some(left) = self.left_for_fields.checked_sub(bytes) else {
            self.cut = true;
            return None;
        };
        self.left_for_fields = left;
        let name = match self.get(field.name) {
            Some(name) => name,
            None => self.bounded(format!("unknown field 0x{:x}", field.name)),
        };
        Some(FieldDecl {
            name,
            deobfuscated: None,
            type_name: type_name.map(str::to_owned),
            basic: Some(field.basic),
        })
    }
}

/// Gathers all classes.
pub(super) fn classes(file: &Bytes, outline: &Outline, index: &mut Index) -> Classes {
    let mut names = Names {
        file,
        outline,
        left: file.len().saturating_mul(2).saturating_add(1 << 20),
        left_for_fields: file.len().saturating_mul(2).saturating_add(16 << 20),
        cut: false,
    };
    let mut raw_names: IdMap<u64> = IdMap::default();
    for loaded in &outline.loaded {
        raw_names.insert(loaded.class, loaded.name);
    }
    let mut all = Classes {
        rows: Vec::with_capacity(index.classes.len()),
        dumps: Vec::with_capacity(index.classes.len()),
        by_id: IdMap::default(),
        layouts: Vec::new(),
        offsets: Vec::new(),
        primitive: [ClassIndex(0); 12],
        class_class: ClassIndex(0),
        arrays_of: IdMap::default(),
        overheads: IdMap::default(),
        missing_supers: Vec::new(),
        lacks_fields: Vec::new(),
        names_cut: false,
    };
    let mut supers = Vec::with_capacity(index.classes.len());
    let name_of = |names: &mut Names<'_>, id: u64| {
        let raw = raw_names.get(&id).and_then(|&name| names.get(name));
        match raw {
            Some(raw) => java_class_name(&raw),
            None => names.bounded(format!("unknown class 0x{id:x}")),
        }
    };
    for &(at, id, _) in &index.classes {
        let Some(dump) = class_dump_at(file, outline, at) else {
            continue;
        };
        for field in dump.statics() {
            if outline.overhead_names.contains_key(&field.name)
                && let Some(array) = outline.id_size.read(field.value)
                && let Some((array, bytes)) = index.overheads.remove_entry(&array)
            {
                all.overheads.insert(array, bytes);
            }
        }
        let fields = dump.fields().map_while(|field| names.field(field));
        let fields = fields.collect();
        let class = Class {
            name: name_of(&mut names, id),
            fields,
            ..Class::default()
        };
        match all.by_id.get(&id) {
            Some(earlier) => {
                all.rows[earlier.at()] = class;
                all.dumps[earlier.at()] = Some(at);
                supers[earlier.at()] = dump.superclass();
            }
            None => {
                all.by_id.insert(id, ClassIndex(all.rows.len() as u32));
                all.rows.push(class);
                all.dumps.push(Some(at));
                supers.push(dump.superclass());
            }
        }
    }
    // These are objects because no class claims them.
    for &array in index.overheads.keys() {
        index.ids.insert(ObjectId(array));
        index.primitive_arrays |= 1 << BasicType::Byte as u8;
    }
    let mut lacks_super = vec![false; supers.len()];
    let mut missing_supers = IdMap::default();
    for ((class, &superclass), lacks) in all.rows.iter_mut().zip(&supers).zip(&mut lacks_super) {
        class.superclass = all.by_id.get(&superclass).copied();
        *lacks = class.superclass.is_none() && superclass != 0;
        if *lacks && missing_supers.insert(superclass, ()).is_none() {
            all.missing_supers.push(name_of(&mut names, superclass));
        }
    }
    // Classes of objects that are missing in the dump; the dump has the names of some.
    let mut missing: Vec<u64> = index.used.keys().copied().collect();
    missing.retain(|id| !all.by_id.contains_key(id));
    missing.sort_unstable();
    let mut others = None;
    for id in missing {
        let class = match names.has_room_for_class() {
            true => {
                let name = name_of(&mut names, id);
                all.add(name)
            }
            // They share one class.
            false => *others.get_or_insert_with(|| all.add("unknown classes".to_owned())),
        };
        all.by_id.insert(id, class);
    }
    all.names_cut = names.cut;
    if !all.missing_supers.is_empty() {
        let lacks = |class| {
            let mut ancestry = all.ancestry(ClassIndex(class as u32));
            ancestry.any(|ancestor| lacks_super.get(ancestor.at()) == Some(&true))
        };
        all.lacks_fields = (0..all.rows.len()).map(lacks).collect();
    }
    if !outline.android {
        all.find_arrays(file, outline);
    }
    all.find_well_known(index);
    all.set_kinds();
    all.lay_out(outline, index);
    all
}

impl Classes {
    fn add(&mut self, name: String) -> ClassIndex {
        let class = ClassIndex(self.rows.len() as u32);
        self.rows.push(Class {
            name,
            ..Class::default()
        });
        self.dumps.push(None);
        class
    }

    /// Finds the classes that the dump does not state: those of class objects and of arrays of
    /// primitives.
    fn find_well_known(&mut self, index: &Index) {
        let find = |all: &Classes, name: &str| {
            let at = all.rows.iter().position(|class| class.name == name)?;
            Some(ClassIndex(at as u32))
        };
        for code in 4..12 {
            let Some(basic) = BasicType::of_code(code) else {
                continue;
            };
            if index.primitive_arrays >> code & 1 == 1 {
                let name = format!("{}[]", basic.name());
                let class = find(self, &name).unwrap_or_else(|| self.add(name));
                self.primitive[usize::from(code)] = class;
            }
        }
        let name = "java.lang.Class";
        if !self.rows.is_empty() {
            let class = find(self, name).unwrap_or_else(|| self.add(name.to_owned()));
            self.class_class = class;
        }
    }

    /// Finds the class of each array class's elements by name and loader. The classes that box
    /// primitives keep the arrays of primitives.
    fn find_arrays(&mut self, file: &Bytes, outline: &Outline) {
        let mut by_name: HashMap<(&str, u64), u64> = HashMap::new();
        let mut arrays = Vec::new();
        // In the order of the file, so that of two classes with the same name and loader always the
        // same one gets the arrays.
        for (at, class) in self.rows.iter().enumerate() {
            if let Some(dump) = self.dump(file, outline, ClassIndex(at as u32)) {
                let (name, id) = (class.name.as_str(), dump.id());
                by_name.entry((name, dump.loader())).or_insert(id);
                arrays.extend(name.strip_suffix("[]").map(|of| (of, dump.loader(), id)));
            }
        }
        let mut arrays_of: IdMap<Vec<u64>> = IdMap::default();
        for (element, loader, array) in arrays {
            let element = match element {
                "boolean" => "java.lang.Boolean",
                "char" => "java.lang.Character",
                "float" => "java.lang.Float",
                "double" => "java.lang.Double",
                "byte" => "java.lang.Byte",
                "short" => "java.lang.Short",
                "int" => "java.lang.Integer",
                "long" => "java.lang.Long",
                class => class,
            };
            if let Some(&id) = by_name.get(&(element, loader)) {
                arrays_of.entry(id).or_default().push(array);
            }
        }
        arrays_of
            .values_mut()
            .for_each(|arrays| arrays.sort_unstable());
        self.arrays_of = arrays_of;
    }

    /// Sets the kind of each class by the nearest superclass that determines one.
    fn set_kinds(&mut self) {
        let own: Vec<Option<ClassKind>> = self.rows.iter().map(own_kind).collect();
        let kinds: Vec<ClassKind> = (0..self.rows.len())
            .map(|class| {
                self.ancestry(ClassIndex(class as u32))
                    .find_map(|ancestor| own[ancestor.at()])
                    .unwrap_or(ClassKind::Normal)
            })
            .collect();
        for (class, kind) in self.rows.iter_mut().zip(kinds) {
            class.kind = kind;
        }
    }

    /// Returns whether a superclass is missing whose fields the instances of this class have.
    pub(super) fn lacks_fields(&self, class: ClassIndex) -> bool {
        self.lacks_fields.get(class.at()) == Some(&true)
    }

    /// Returns the objects of classes that lack a superclass, given the class of each object and
    /// how many they are.
    pub(super) fn count_partial(&self, objects: impl Iterator<Item = (ClassIndex, u64)>) -> u64 {
        if self.lacks_fields.is_empty() {
            return 0;
        }
        let partial = objects.filter(|(class, _)| self.lacks_fields(*class));
        partial.map(|(_, count)| count).sum()
    }

    /// Returns HotSpot's class of stacks of virtual threads, and the offset of the number of words
    /// in the data of an instance.
    pub(super) fn stack_chunk(&self, outline: &Outline) -> Option<(ClassIndex, usize)> {
        let at = self.rows.iter().position(|row| row.name == STACK_CHUNK)?;
        let mut words_at = 0;
        for field in &self.rows[at].fields {
            let basic = field.basic.unwrap_or(BasicType::Object);
            if (field.name.as_str(), basic) == ("size", BasicType::Int) {
                return Some((ClassIndex(at as u32), words_at));
            }
            words_at += basic.bytes(outline.id_size.bytes());
        }
        None
    }

    /// Returns a class and its superclasses, up to the limit.
    pub(super) fn ancestry(&self, class: ClassIndex) -> impl Iterator<Item = ClassIndex> + '_ {
        std::iter::successors(Some(class), |class| self.rows[class.at()].superclass).take(MAX_DEPTH)
    }

    /// Finds the offsets of references in instances. Classes without instances need no layout, and
    /// no layout is larger than the largest instance: together they stay below the file's size.
    fn lay_out(&mut self, outline: &Outline, index: &Index) {
        let id_bytes = outline.id_size.bytes();
        let mut layouts = vec![Layout::default(); self.rows.len()];
        let mut offsets = Vec::new();
        for (id, &most) in &index.used {
            let Some(&class) = self.by_id.get(id) else {
                continue;
            };
            let kind = self.rows[class.at()].kind;
            let mut layout = Layout {
                from: offsets.len() as u32,
                reference: ReferenceKind::of_class(kind),
                ..Layout::default()
            };
            let mut at = 0usize;
            'fields: for ancestor in self.ancestry(class) {
                let declaring = &self.rows[ancestor.at()];
                for field in &declaring.fields {
                    let basic = field.basic.unwrap_or(BasicType::Object);
                    let end = at + basic.bytes(id_bytes);
                    if end > most as usize {
                        break 'fields;
                    }
                    if basic == BasicType::Object {
                        match role(&declaring.name, &field.name) {
                            Role::Reference => offsets.push(at as u32),
                            Role::Class => {}
                            Role::Referent if layout.reference.is_some() => {
                                let free = layout.referents.iter_mut().find(|r| r.is_none());
                                if let Some(free) = free {
                                    *free = Some(at as u32);
                                }
                            }
                            Role::Referent => offsets.push(at as u32),
                        }
                    }
                    at = end;
                }
            }
            layout.to = offsets.len() as u32;
            layout.bytes = at as u32;
            layouts[class.at()] = layout;
        }
        self.layouts = layouts;
        self.offsets = offsets;
    }
}

/// Role of a field that holds a reference.
enum Role {
    /// Any reference.
    Reference,
    /// ART's pointer to the object's class, which is not a reference of the program.
    Class,
    /// The referent of a `java.lang.ref.Reference`.
    Referent,
}

/// Returns whether a field is ART's pointer to the object's class.
pub(crate) fn is_class_pointer(declared_in: &str, field: &str) -> bool {
    matches!(role(declared_in, field), Role::Class)
}

fn role(declared_in: &str, field: &str) -> Role {
    match (declared_in, field) {
        ("java.lang.Object", "shadow$_klass_") => Role::Class,
        ("java.lang.ref.Reference", "referent") => Role::Referent,
        ("java.lang.ref.FinalizerReference", "zombie") => Role::Referent,
        _ => Role::Reference,
    }
}

/// Returns the kind that a class gives itself and its subclasses.
fn own_kind(class: &Class) -> Option<ClassKind> {
    use ClassKind::*;
    Some(match class.name.as_str() {
        "java.lang.String" => String,
        "java.lang.Class" => Class,
        "java.lang.ClassLoader" => ClassLoader,
        "java.lang.DexCache" => DexCache,
        "java.lang.ref.SoftReference" => SoftReference,
        "java.lang.ref.WeakReference" => WeakReference,
        "java.lang.ref.PhantomReference" => PhantomReference,
        "java.lang.ref.FinalReference" | "java.lang.ref.FinalizerReference" => FinalizerReference,
        name if name.ends_with("[]") => Array,
        _ => return None,
    })
}
