//! Fills a heap: classes come from [`super::tables`] on demand; objects get their values by field
//! name. Owns the addresses.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::heap::{
    ALIGNMENT, Body, CLASS, Class, ClassRef, FieldDef, HEADER_BYTES, JavaHeap, Kind, OBJECT, Obj,
    Object, Root, RootKind, STRING, Space, Type, Value, layout,
};
use super::tables::{declarations, embedded_bytes, renames};

/// Start address of each space.
const BASES: [(Space, u32); 3] = [
    (Space::App, 0x12c0_0000),
    (Space::BootImage, 0x6f00_0000),
    (Space::Zygote, 0x7400_0000),
];
/// Start address of the large object space, and the minimum size of strings and primitive arrays in
/// it.
const LARGE_BASE: u32 = 0x4000_0000;
const LARGE_BYTES: u64 = 12 << 10;
const PAGE: u64 = 4096;

/// No values, for objects whose fields are all literals or 0.
pub(super) const NONE: &[Obj] = &[];

/// A heap under construction.
pub(super) struct Builder {
    pub(super) heap: JavaHeap,
    by_name: HashMap<Rc<str>, ClassRef>,
    /// Index of each field in an instance's values.
    places: HashMap<ClassRef, Rc<HashMap<&'static str, usize>>>,
    statics: HashMap<(ClassRef, &'static str), usize>,
    dex_caches: BTreeMap<&'static str, Obj>,
    interned: HashMap<Rc<str>, Obj>,
    obfuscated: bool,
    apk: Rc<str>,
    /// Class loader of the app's classes; needed before the first one.
    pub(super) loader: Option<Obj>,
    /// Space of the next objects.
    space: Space,
}

impl Builder {
    /// Creates an empty heap of an app whose dex files are in `apk`.
    pub(super) fn new(obfuscated: bool, apk: &str) -> Builder {
        let mut builder = Builder {
            heap: JavaHeap::default(),
            by_name: HashMap::new(),
            places: HashMap::new(),
            statics: HashMap::new(),
            dex_caches: BTreeMap::new(),
            interned: HashMap::new(),
            obfuscated,
            apk: apk.into(),
            loader: None,
            space: Space::App,
        };
        for (name, at) in [
            ("java.lang.Object", OBJECT),
            ("java.lang.Class", CLASS),
            ("java.lang.String", STRING),
        ] {
            assert_eq!(builder.class(name), at);
        }
        // Every other class belongs to a dex file.
        builder.class("java.lang.DexCache");
        // Boot classes are loaded even if an app does not use them.
        let mut names: Vec<&str> = declarations()
            .iter()
            .filter(|(_, d)| d.location != "app")
            .map(|(name, _)| *name)
            .collect();
        names.sort_unstable();
        for name in names {
            builder.class(name);
        }
        builder
    }

    fn renamed(&self, class: &'static str) -> &'static str {
        let renamed = self.obfuscated.then(|| renames().classes.get(class));
        renamed.flatten().copied().unwrap_or(class)
    }

    /// Returns a type's name in the file; element types of arrays are renamed, too.
    fn type_name(&self, name: &'static str) -> Rc<str> {
        let plain = name.trim_end_matches("[]");
        format!("{}{}", self.renamed(plain), &name[plain.len()..]).into()
    }

    fn field_def(&self, class: &'static str, kind: &'static str, name: &'static str) -> FieldDef {
        let renamed = self
            .obfuscated
            .then(|| renames().fields.get(&(class, name)));
        FieldDef {
            name: renamed.flatten().copied().unwrap_or(name).into(),
            type_name: self.type_name(kind),
            kind: Type::from_word(kind),
        }
    }

    /// Returns a class by its name in source.
    pub(super) fn class(&mut self, name: &'static str) -> ClassRef {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        if let Some(element) = name.strip_suffix("[]") {
            return self.array_class(name, element);
        }
        let declaration = declarations()
            .get(name)
            .unwrap_or_else(|| panic!("no table declares {name}"));
        let superclass = declaration.superclass.map(|s| self.class(s));
        let mut own = Vec::new();
        let mut statics = Vec::new();
        for (kind, field, is_static) in &declaration.fields {
            let def = self.field_def(name, kind, field);
            if *is_static {
                let zero = def.kind.zero();
                statics.push((*field, (def, zero)));
            } else {
                own.push((*field, def));
            }
        }
        // ART's order: references, then from the widest to the narrowest, then by name.
        let rank = |d: &FieldDef| (d.kind != Type::Object, std::cmp::Reverse(d.kind.bytes()));
        own.sort_by(|(_, a), (_, b)| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
        statics.sort_by(|(_, a), (_, b)| (rank(&a.0), &a.0.name).cmp(&(rank(&b.0), &b.0.name)));
        let (slots, start, mut places) = match superclass {
            Some(above) => {
                let of = self.heap.class(above);
                let slots = of.slots + of.fields.len() as u32;
                (slots, of.instance_bytes, (*self.places[&above]).clone())
            }
            None => (0, HEADER_BYTES, HashMap::new()),
        };
        for (i, (field, _)) in own.iter().enumerate() {
            places.insert(*field, slots as usize + i);
        }
        let app = declaration.location == "app";
        let class = self.add_class(
            name,
            Class {
                name: self.renamed(name).into(),
                superclass,
                location: if app {
                    self.apk.clone()
                } else {
                    declaration.location.into()
                },
                loader: if app { self.loader } else { None },
                instance_bytes: layout(start, own.iter().map(|(_, d)| d.kind)),
                fields: own.into_iter().map(|(_, d)| d).collect(),
                table_bytes: embedded_bytes(name),
                slots,
                ..Class::default()
            },
        );
        for (i, (field, _)) in statics.iter().enumerate() {
            self.statics.insert((class, field), i);
        }
        self.heap.classes[class.0 as usize].statics = statics.into_iter().map(|(_, s)| s).collect();
        self.places.insert(class, Rc::new(places));
        let kind = self.kind_of(class);
        self.heap.classes[class.0 as usize].kind = kind;
        if ![OBJECT, CLASS, STRING].contains(&class) {
            let cache = self.dex_cache(declaration.location);
            self.heap.classes[class.0 as usize].dex_cache = cache;
        }
        class
    }

    fn array_class(&mut self, name: &'static str, element: &'static str) -> ClassRef {
        let kind = Type::from_word(element);
        let component = (kind == Type::Object).then(|| self.class(element));
        let (location, loader) = match component.map(|c| self.heap.class(c)) {
            Some(of) => (of.location.clone(), of.loader),
            None => ("".into(), None),
        };
        let class = self.add_class(
            name,
            Class {
                name: self.type_name(name),
                superclass: Some(OBJECT),
                location,
                loader,
                kind: if component.is_some() {
                    Kind::Array
                } else {
                    Kind::Noreferences
                },
                component,
                table_bytes: 88,
                ..Class::default()
            },
        );
        self.places.insert(class, Rc::default());
        class
    }

    fn add_class(&mut self, name: &'static str, mut class: Class) -> ClassRef {
        let this = ClassRef(self.heap.classes.len() as u32);
        let space = if class.loader.is_some() {
            Space::App
        } else {
            Space::BootImage
        };
        class.object = Obj(self.heap.objects.len() as u32);
        let loader = class.loader;
        let object = class.object;
        self.heap.classes.push(class);
        self.by_name.insert(name.into(), this);
        self.heap.objects.push(Object {
            class: CLASS,
            space,
            body: Body::Class(this),
            address: 0,
        });
        match loader {
            Some(loader) => {
                let of = self.heap.internals.iter_mut().find(|(l, _)| *l == loader);
                match of {
                    Some((_, classes)) => classes.push(object),
                    None => self.heap.internals.push((loader, vec![object])),
                }
            }
            None => self.root(object, RootKind::RootStickyClass, 0),
        }
        this
    }

    fn kind_of(&self, class: ClassRef) -> Kind {
        for above in self.heap.ancestry(class) {
            let of = self.heap.class(above);
            match &*of.name {
                "java.lang.String" => return Kind::String,
                "java.lang.Class" => return Kind::Class,
                "java.lang.ClassLoader" => return Kind::Classloader,
                "java.lang.DexCache" => return Kind::Dexcache,
                "java.lang.ref.SoftReference" => return Kind::SoftReference,
                "java.lang.ref.WeakReference" => return Kind::WeakReference,
                "java.lang.ref.FinalizerReference" => return Kind::FinalizerReference,
                "java.lang.ref.PhantomReference" => return Kind::PhantomReference,
                _ => {}
            }
        }
        let refers = |c: ClassRef| {
            let of = self.heap.class(c);
            of.fields.iter().any(|f| f.kind == Type::Object)
        };
        match self.heap.ancestry(class).any(refers) {
            true => Kind::Normal,
            false => Kind::Noreferences,
        }
    }

    fn dex_cache(&mut self, location: &'static str) -> Option<Obj> {
        if let Some(known) = self.dex_caches.get(location) {
            return Some(*known);
        }
        // While the class of the first dex cache is loaded, no dex cache exists yet.
        if !self.by_name.contains_key("java.lang.DexCache") {
            return None;
        }
        let app = location == "app";
        let space = if app { Space::App } else { Space::BootImage };
        let path = if app {
            self.apk.to_string()
        } else {
            location.to_owned()
        };
        let cache = self.within(space, |b| {
            let path = b.string(&path);
            b.object("java.lang.DexCache location", &[path])
        });
        self.dex_caches.insert(location, cache);
        if !app {
            self.root(cache, RootKind::RootVmInternal, 0);
        }
        Some(cache)
    }

    /// Adds objects to a space other than the app's.
    pub(super) fn within<T>(&mut self, space: Space, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.space, space);
        let made = make(self);
        self.space = before;
        made
    }

    fn add(&mut self, class: ClassRef, body: Body) -> Obj {
        let object = Obj(self.heap.objects.len() as u32);
        let space = self.space;
        self.heap.objects.push(Object {
            class,
            space,
            body,
            address: 0,
        });
        object
    }

    /// Adds an instance: `CLASS [FIELD[=LITERAL]]…`. Fields without a literal get the values in
    /// their order; omitted fields are null or 0.
    pub(super) fn object<V: Into<Value> + Copy>(
        &mut self,
        text: &'static str,
        values: &[V],
    ) -> Obj {
        let (class, fields) = text.split_once(' ').unwrap_or((text, ""));
        self.instance(class, fields, values)
    }

    /// Adds an instance of a class, as [`Builder::object`].
    pub(super) fn instance<V: Into<Value> + Copy>(
        &mut self,
        class: &'static str,
        fields: &'static str,
        values: &[V],
    ) -> Obj {
        let class = self.class(class);
        let chain: Vec<ClassRef> = self.heap.ancestry(class).collect();
        let mut all = Vec::new();
        for class in chain.iter().rev() {
            all.extend(self.heap.class(*class).fields.iter().map(|f| f.kind.zero()));
        }
        let object = self.add(class, Body::Instance(all.into()));
        self.fill(object, fields, values);
        object
    }

    /// Sets fields of an instance: `FIELD[=LITERAL]…`.
    pub(super) fn fill<V: Into<Value> + Copy>(
        &mut self,
        object: Obj,
        fields: &'static str,
        values: &[V],
    ) {
        let mut values = values.iter();
        for field in fields.split_whitespace() {
            match field.split_once('=') {
                Some((field, literal)) => {
                    let value = self.peek(object, field).kind().parse(literal);
                    self.set(object, field, value.expect("a literal of the field's type"));
                }
                None => self.set(
                    object,
                    field,
                    *values.next().expect("a value of each field"),
                ),
            }
        }
        assert!(values.next().is_none(), "{fields}: too many values");
    }

    fn slot(&mut self, object: Obj, field: &'static str) -> &mut Value {
        let class = self.heap.object(object).class;
        let place = self.places[&class].get(field).copied();
        let name = self.heap.class(class).name.clone();
        match (&mut self.heap.objects[object.0 as usize].body, place) {
            (Body::Instance(values), Some(place)) => &mut values[place],
            _ => panic!("{name} does not have field {field}"),
        }
    }

    /// Sets a field of an instance.
    pub(super) fn set(&mut self, object: Obj, field: &'static str, value: impl Into<Value>) {
        let value = value.into();
        let slot = self.slot(object, field);
        assert_eq!(slot.kind(), value.kind(), "{field}");
        *slot = value;
    }

    /// Returns the value of an instance's field.
    pub(super) fn peek(&mut self, object: Obj, field: &'static str) -> Value {
        *self.slot(object, field)
    }

    /// Sets a static field: `CLASS.FIELD`.
    pub(super) fn set_static(&mut self, place: &'static str, value: impl Into<Value>) {
        let value = value.into();
        let (class, field) = place.rsplit_once('.').expect("a class and a field");
        let of = self.class(class);
        let at = self.statics.get(&(of, field));
        let at = *at.unwrap_or_else(|| panic!("there is no static field {place}"));
        let slot = &mut self.heap.classes[of.0 as usize].statics[at].1;
        assert_eq!(slot.kind(), value.kind(), "{place}");
        *slot = value;
    }

    pub(super) fn string(&mut self, text: &str) -> Obj {
        self.add(STRING, Body::String(text.into()))
    }

    /// Returns the unique string with this text, as for string literals in source.
    pub(super) fn constant(&mut self, text: &str) -> Obj {
        if let Some(known) = self.interned.get(text) {
            return *known;
        }
        let object = self.within(Space::App, |b| b.string(text));
        self.interned.insert(text.into(), object);
        self.root(object, RootKind::RootInternedString, 0);
        object
    }

    /// Adds an array of objects; `class` is the array's class, such as `java.lang.Object[]`.
    pub(super) fn array(&mut self, class: &'static str, items: Vec<Option<Obj>>) -> Obj {
        let class = self.class(class);
        self.add(class, Body::References(items))
    }

    /// Adds an array of a primitive type; the elements have the byte order of HPROF.
    pub(super) fn primitives(&mut self, kind: Type, data: Vec<u8>) -> Obj {
        let class = match kind {
            Type::Byte => "byte[]",
            Type::Char => "char[]",
            Type::Int => "int[]",
            _ => "long[]",
        };
        let class = self.class(class);
        self.add(class, Body::Primitives(kind, data))
    }

    /// Adds an array of bytes.
    pub(super) fn bytes(&mut self, data: Vec<u8>) -> Obj {
        self.primitives(Type::Byte, data)
    }

    /// Adds a `char[]` with a text.
    pub(super) fn chars(&mut self, text: &str) -> Obj {
        let bytes = text.encode_utf16().flat_map(u16::to_be_bytes);
        self.primitives(Type::Char, bytes.collect())
    }

    /// Adds an array of ints.
    pub(super) fn ints(&mut self, data: impl Iterator<Item = i32>) -> Obj {
        self.primitives(Type::Int, data.flat_map(i32::to_be_bytes).collect())
    }

    pub(super) fn root(&mut self, object: Obj, kind: RootKind, thread: u32) {
        self.heap.roots.push(Root {
            object,
            kind,
            thread,
        });
    }

    /// Assigns an address to every object.
    pub(super) fn finish(self) -> JavaHeap {
        let mut heap = self.heap;
        let mut next: BTreeMap<Space, u64> =
            BASES.iter().map(|(s, at)| (*s, u64::from(*at))).collect();
        let mut large = u64::from(LARGE_BASE);
        for i in 0..heap.objects.len() {
            let bytes = heap.bytes(Obj(i as u32));
            let Object { space, body, .. } = &heap.objects[i];
            let may_be_large = matches!(body, Body::Primitives(..) | Body::String(_));
            let at = if *space == Space::App && may_be_large && bytes >= LARGE_BYTES {
                let at = large;
                large += bytes.next_multiple_of(PAGE);
                at
            } else {
                let next = next.get_mut(space).expect("every space has a base");
                let at = *next;
                *next += bytes.next_multiple_of(ALIGNMENT);
                at
            };
            heap.objects[i].address = u32::try_from(at).expect("4 GiB hold every heap");
        }
        let mut order: Vec<Obj> = (0..heap.objects.len() as u32).map(Obj).collect();
        order.sort_unstable_by_key(|object| heap.object(*object).address);
        heap.order = order;
        heap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_renamed_every_class_and_field_of_the_app() {
        for (name, declared) in declarations().iter().filter(|(_, d)| d.location == "app") {
            assert!(renames().classes.contains_key(name), "{name}");
            for (_, field, _) in &declared.fields {
                assert!(
                    renames().fields.contains_key(&(*name, *field)),
                    "{name}.{field}"
                );
            }
        }
        let mut builder = Builder::new(true, "/data/app/base.apk");
        let class = builder.class("com.example.app.net.Connection");
        let class = builder.heap.class(class);
        assert_eq!(&*class.name, "b.c");
        let fields: Vec<String> = class
            .fields
            .iter()
            .map(|f| format!("{} {}", f.type_name, f.name))
            .collect();
        assert_eq!(fields, ["b.a a", "java.lang.ref.WeakReference a"]);
    }

    #[test]
    fn java_lang_class_has_no_gaps() {
        let builder = Builder::new(false, "");
        let class = builder.heap.class(CLASS);
        let widths: u32 = class.fields.iter().map(|f| f.kind.bytes()).sum();
        assert_eq!(class.instance_bytes, HEADER_BYTES + widths);
    }
}
