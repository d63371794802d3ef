//! Builder for test heaps: classes with fields, instances, arrays, strings, statics, roots.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use crate::leaks::live::thread_name;
use heaptap_model::heap_graph::{
    BasicType, Class, ClassIndex, ClassKind, Contents, DumpFacts, Field, FieldDecl, GraphBuilder,
    HeapGraph, HeapKind, NewObject, ObjectId, ObjectIndex, PrimitiveArray, ReferenceKind, Root,
    RootKind, ThreadFacts, Value,
};

/// Object ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Obj(pub u64);

/// Value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Is {
    Null,
    Ref(Obj),
    Bool(bool),
    Int(i32),
    Long(i64),
}

impl Is {
    fn basic(self) -> BasicType {
        match self {
            Is::Null | Is::Ref(_) => BasicType::Object,
            Is::Bool(_) => BasicType::Boolean,
            Is::Int(_) => BasicType::Int,
            Is::Long(_) => BasicType::Long,
        }
    }
}

#[derive(Clone)]
enum Data {
    /// Values of all fields, the class's own first.
    Instance(Vec<Is>),
    Objects(Vec<Option<Obj>>),
    Bytes(BasicType, Vec<u8>),
    ClassObject(ClassIndex),
}

/// Heap under construction.
pub(crate) struct Heap {
    classes: Vec<Class>,
    by_name: HashMap<String, ClassIndex>,
    objects: BTreeMap<u64, (ClassIndex, u64, Data, HeapKind)>,
    statics: BTreeMap<ClassIndex, Vec<(String, Is)>>,
    roots: Vec<(Obj, RootKind, Option<u32>)>,
    native: Vec<(Obj, u64)>,
    loaders: Vec<(ClassIndex, Obj)>,
    next: u64,
    values: bool,
    heap: HeapKind,
}

impl Heap {
    /// Creates a heap with the classes that every heap has.
    pub fn new() -> Heap {
        let mut heap = Heap {
            classes: Vec::new(),
            by_name: HashMap::new(),
            objects: BTreeMap::new(),
            statics: BTreeMap::new(),
            roots: Vec::new(),
            native: Vec::new(),
            loaders: Vec::new(),
            next: 0x1000,
            values: true,
            heap: HeapKind::App,
        };
        heap.class("java.lang.Object", "", &[]);
        heap.class("java.lang.Class", "java.lang.Object", &[]);
        heap.class(
            "java.lang.String",
            "java.lang.Object",
            &[("value", Is::Null), ("hash", Is::Int(0))],
        );
        heap.class(
            "java.lang.Thread",
            "java.lang.Object",
            &[("name", Is::Null), ("threadLocals", Is::Null)],
        );
        heap
    }

    /// Makes the heap like a heap graph: references only.
    pub fn without_values(mut self) -> Heap {
        self.values = false;
        self
    }

    /// Puts the objects created from now on into a heap.
    pub fn in_heap(&mut self, heap: HeapKind) {
        self.heap = heap;
    }

    fn id(&mut self) -> Obj {
        self.next += 16;
        Obj(self.next)
    }

    /// Declares a class. `fields` are its own fields with their default values.
    pub fn class(&mut self, name: &str, superclass: &str, fields: &[(&str, Is)]) -> ClassIndex {
        let index = ClassIndex(self.classes.len() as u32);
        let superclass = match superclass {
            "" => None,
            name => Some(self.find(name)),
        };
        let kind = match name {
            n if n.ends_with("[]") => ClassKind::Array,
            "java.lang.Class" => ClassKind::Class,
            "java.lang.String" => ClassKind::String,
            "java.lang.ref.WeakReference" => ClassKind::WeakReference,
            "java.lang.ref.SoftReference" => ClassKind::SoftReference,
            "java.lang.ref.PhantomReference" => ClassKind::PhantomReference,
            "java.lang.ref.FinalizerReference" => ClassKind::FinalizerReference,
            _ => match superclass.map(|c| self.classes[c.at()].kind) {
                Some(kind) if ReferenceKind::of_class(kind).is_some() => kind,
                _ => ClassKind::Normal,
            },
        };
        let decl = |(name, is): &(&str, Is)| FieldDecl {
            name: (*name).to_owned(),
            basic: Some(is.basic()),
            ..FieldDecl::default()
        };
        self.classes.push(Class {
            name: name.to_owned(),
            superclass,
            kind,
            fields: fields.iter().map(decl).collect(),
            ..Class::default()
        });
        self.by_name.insert(name.to_owned(), index);
        index
    }

    /// Returns a class; declares it below `java.lang.Object` if it does not exist.
    pub fn find(&mut self, name: &str) -> ClassIndex {
        match self.by_name.get(name) {
            Some(&class) => class,
            None => self.class(name, "java.lang.Object", &[]),
        }
    }

    /// Declares a field that refers to an object, if neither the class nor a superclass has it.
    /// Objects of the class are made after that.
    pub fn field(&mut self, class: &str, field: &str) {
        let class = self.find(class);
        if self.layout(class).iter().all(|(_, name)| name != field) {
            self.classes[class.at()].fields.push(FieldDecl {
                name: field.to_owned(),
                basic: Some(BasicType::Object),
                ..FieldDecl::default()
            });
        }
    }

    /// Gives a class and some of its fields other names, as an R8 mapping does.
    pub fn deobfuscate(&mut self, class: &str, shown: &str, fields: &[(&str, &str)]) {
        let at = self.find(class).at();
        self.classes[at].deobfuscated = Some(shown.to_owned());
        for (name, shown) in fields {
            let decl = self.classes[at].fields.iter_mut().find(|f| f.name == *name);
            decl.expect("it is declared").deobfuscated = Some((*shown).to_owned());
        }
    }

    /// Adds an instance with those fields set.
    pub fn new_object(&mut self, class: &str, set: &[(&str, Is)]) -> Obj {
        let id = self.id();
        let class = self.find(class);
        let mut values = Vec::new();
        for (declared_in, decl) in self.layout(class) {
            let given = set.iter().find(|(name, _)| *name == decl);
            let is = given.map_or(Is::Null, |(_, is)| *is);
            let basic = self.basic(declared_in, &decl);
            values.push(match (given, basic) {
                (Some(_), _) => is,
                (None, BasicType::Boolean) => Is::Bool(false),
                (None, BasicType::Int) => Is::Int(0),
                (None, BasicType::Long) => Is::Long(0),
                (None, _) => Is::Null,
            });
        }
        let names: Vec<String> = self.layout(class).into_iter().map(|(_, n)| n).collect();
        for (name, _) in set {
            assert!(names.iter().any(|n| n == name), "no field {name}");
        }
        let bytes = 8 + 4 * values.len() as u64;
        self.objects
            .insert(id.0, (class, bytes, Data::Instance(values), self.heap));
        id
    }

    fn basic(&self, class: ClassIndex, field: &str) -> BasicType {
        let decls = &self.classes[class.at()].fields;
        let decl = decls.iter().find(|d| d.name == field);
        decl.and_then(|d| d.basic).expect("declared with a type")
    }

    fn layout(&self, class: ClassIndex) -> Vec<(ClassIndex, String)> {
        layout(&self.classes, class)
    }

    /// Returns the names of declared classes in order.
    pub fn declared(&self) -> Vec<String> {
        self.classes
            .iter()
            .map(|class| class.name.clone())
            .collect()
    }

    /// Returns the fields of an instance with their values; empty for other objects.
    pub fn fields_of(&self, object: Obj) -> Vec<(String, Is)> {
        let (class, _, data, _) = &self.objects[&object.0];
        match data {
            Data::Instance(values) => {
                let names = self.layout(*class).into_iter().map(|(_, name)| name);
                names.zip(values.iter().copied()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Sets a field of an existing instance.
    pub fn set(&mut self, object: Obj, field: &str, is: Is) {
        let class = self.objects[&object.0].0;
        let at = self.layout(class).iter().position(|(_, n)| n == field);
        let at = at.expect("it has the field");
        match &mut self.objects.get_mut(&object.0).expect("made before").2 {
            Data::Instance(values) => values[at] = is,
            _ => panic!("no instance"),
        }
    }

    /// Adds an array of objects.
    pub fn array(&mut self, class: &str, elements: &[Option<Obj>]) -> Obj {
        let id = self.id();
        let class = self.find(class);
        let bytes = 16 + 4 * elements.len() as u64;
        let data = Data::Objects(elements.to_vec());
        self.objects.insert(id.0, (class, bytes, data, self.heap));
        id
    }

    /// Adds an array of primitives, big-endian.
    pub fn primitives(&mut self, element: BasicType, bytes: &[u8]) -> Obj {
        let id = self.id();
        let class = self.find(&format!("{}[]", element.name()));
        let data = Data::Bytes(element, bytes.to_vec());
        let size = 16 + bytes.len() as u64;
        self.objects.insert(id.0, (class, size, data, self.heap));
        id
    }

    /// Adds a string with its own array.
    pub fn string(&mut self, text: &str) -> Obj {
        let value = self.primitives(BasicType::Byte, text.as_bytes());
        self.new_object("java.lang.String", &[("value", Is::Ref(value))])
    }

    /// Returns the class object of a class, created on first use.
    pub fn class_object(&mut self, class: &str) -> Obj {
        let class = self.find(class);
        let made = self
            .objects
            .iter()
            .find(|(_, o)| matches!(o.2, Data::ClassObject(c) if c == class));
        if let Some((&id, _)) = made {
            return Obj(id);
        }
        let id = self.id();
        let of = self.find("java.lang.Class");
        let data = Data::ClassObject(class);
        self.objects.insert(id.0, (of, 16, data, self.heap));
        id
    }

    /// Sets a static of a class and makes the class a root.
    pub fn fixed(&mut self, class: &str, field: &str, is: Is) {
        let object = self.class_object(class);
        self.root(object, RootKind::StickyClass);
        let class = self.find(class);
        let statics = self.statics.entry(class).or_default();
        statics.push((field.to_owned(), is));
    }

    /// Sets the loader of a class.
    pub fn loaded_by(&mut self, class: ClassIndex, loader: Obj) {
        self.loaders.push((class, loader));
    }

    pub fn root(&mut self, object: Obj, kind: RootKind) {
        if !self.roots.contains(&(object, kind, None)) {
            self.roots.push((object, kind, None));
        }
    }

    /// Adds a root of a thread.
    pub fn thread_root(&mut self, object: Obj, kind: RootKind, serial: u32) {
        self.roots.push((object, kind, Some(serial)));
    }

    /// Adds a running thread.
    pub fn thread(&mut self, name: &str, serial: u32) -> Obj {
        let name = self.string(name);
        let thread = self.new_object("java.lang.Thread", &[("name", Is::Ref(name))]);
        self.thread_root(thread, RootKind::ThreadObject, serial);
        thread
    }

    /// Adds native bytes owned by an object.
    pub fn native(&mut self, object: Obj, bytes: u64) {
        self.native.push((object, bytes));
    }

    /// Adds an `ArrayList` with those elements and `empty` empty slots behind them.
    pub fn list(&mut self, elements: &[Obj], empty: usize) -> Obj {
        if !self.by_name.contains_key("java.util.ArrayList") {
            self.class(
                "java.util.ArrayList",
                "java.lang.Object",
                &[("elementData", Is::Null), ("size", Is::Int(0))],
            );
        }
        let mut all: Vec<Option<Obj>> = elements.iter().copied().map(Some).collect();
        all.extend(vec![None; empty]);
        let data = self.array("java.lang.Object[]", &all);
        self.new_object(
            "java.util.ArrayList",
            &[
                ("elementData", Is::Ref(data)),
                ("size", Is::Int(elements.len() as i32)),
            ],
        )
    }

    /// Builds the graph.
    pub fn graph(self) -> HeapGraph {
        let mut builder = GraphBuilder::default();
        let mut class_objects = Vec::new();
        for (&id, &(class, shallow_bytes, ref data, heap)) in &self.objects {
            builder.object(NewObject {
                id: ObjectId(id),
                class,
                shallow_bytes,
                heap,
            });
            let of = |is: &Is| match is {
                Is::Ref(o) => Some(ObjectId(o.0)),
                Is::Null => Some(ObjectId(0)),
                _ => None,
            };
            match data {
                Data::Instance(values) => {
                    let kind = ReferenceKind::of_class(self.classes[class.at()].kind);
                    for ((_, name), is) in self.layout(class).iter().zip(values) {
                        match (of(is), kind) {
                            (Some(target), Some(kind)) if name == "referent" => {
                                builder.referent(kind, target);
                            }
                            (Some(target), _) => builder.reference(target),
                            (None, _) => {}
                        }
                    }
                }
                Data::Objects(elements) => {
                    for element in elements {
                        builder.reference(ObjectId(element.map_or(0, |o| o.0)));
                    }
                }
                Data::Bytes(..) => {}
                Data::ClassObject(behind) => {
                    class_objects.push((ObjectId(id), *behind));
                    for (_, is) in self.statics.get(behind).into_iter().flatten() {
                        if let Some(target) = of(is) {
                            builder.reference(target);
                        }
                    }
                }
            }
        }
        for &(object, kind, thread) in &self.roots {
            builder.root(ObjectId(object.0), kind, thread, None);
        }
        for &(object, bytes) in &self.native {
            builder.native(ObjectId(object.0), bytes);
        }
        let contents = MadeContents {
            objects: self.objects.into_iter().map(|(id, o)| (id, o.2)).collect(),
            statics: self.statics,
            values: self.values,
        };
        let finished = builder.finish(
            self.classes,
            class_objects,
            Box::new(contents),
            DumpFacts::default(),
            false,
        );
        let mut graph = finished.expect("it is small");
        for (class, loader) in self.loaders {
            let loader = graph.find(ObjectId(loader.0));
            graph.classes_mut()[class.at()].loader = loader;
        }
        graph
    }
}

fn layout(classes: &[Class], class: ClassIndex) -> Vec<(ClassIndex, String)> {
    let mut all = Vec::new();
    let mut at = Some(class);
    for _ in 0..100 {
        let Some(class) = at else { break };
        let fields = &classes[class.at()].fields;
        all.extend(fields.iter().map(|f| (class, f.name.clone())));
        at = classes[class.at()].superclass;
    }
    all
}

/// Name, index, declaring class, whether it is static, value.
type Told = (Option<String>, Option<u32>, Option<ClassIndex>, bool, Is);

struct MadeContents {
    objects: HashMap<u64, Data>,
    statics: BTreeMap<ClassIndex, Vec<(String, Is)>>,
    values: bool,
}

impl MadeContents {
    fn data(&self, graph: &HeapGraph, object: ObjectIndex) -> &Data {
        &self.objects[&graph.id(object).0]
    }

    /// Returns `None` for primitives if the dump does not contain values.
    fn value(&self, graph: &HeapGraph, is: Is) -> Option<Value> {
        Some(match is {
            Is::Null => Value::Null,
            Is::Ref(o) => match graph.find(ObjectId(o.0)) {
                Some(object) => Value::Object(object),
                None => Value::Dangling(ObjectId(o.0)),
            },
            _ if !self.values => return None,
            Is::Bool(b) => Value::Boolean(b),
            Is::Int(n) => Value::Int(n),
            Is::Long(n) => Value::Long(n),
        })
    }
}

impl Contents for MadeContents {
    fn thread(&self, graph: &HeapGraph, serial: u32) -> Option<ThreadFacts> {
        let of_thread =
            |root: &&Root| root.kind == RootKind::ThreadObject && root.thread == Some(serial);
        let thread = graph.roots().iter().find(of_thread)?.object;
        Some(ThreadFacts {
            name: thread_name(graph, thread),
            object: Some(thread),
        })
    }

    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        let class = graph.class_of(object);
        let empty = Vec::new();
        let named: Vec<Told> = match self.data(graph, object) {
            Data::Instance(values) => layout(graph.classes(), class)
                .into_iter()
                .zip(values)
                .map(|((class, name), &is)| (Some(name), None, Some(class), false, is))
                .collect(),
            Data::Objects(elements) => (0..)
                .zip(elements)
                .map(|(at, o)| (None, Some(at), None, false, o.map_or(Is::Null, Is::Ref)))
                .collect(),
            Data::Bytes(..) => Vec::new(),
            Data::ClassObject(behind) => self
                .statics
                .get(behind)
                .unwrap_or(&empty)
                .iter()
                .map(|(name, is)| (Some(name.clone()), None, Some(*behind), true, *is))
                .collect(),
        };
        for (name, element, declared_in, is_static, is) in named {
            let Some(value) = self.value(graph, is) else {
                continue;
            };
            let field = Field {
                name: name.as_deref(),
                element,
                type_name: None,
                declared_in,
                is_static,
                recorded: None,
                value,
            };
            if visit(field).is_break() {
                return;
            }
        }
    }

    fn has_values(&self) -> bool {
        self.values
    }

    fn primitive_array(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
    ) -> Option<PrimitiveArray<'_>> {
        match self.data(graph, object) {
            Data::Bytes(element, bytes) => Some(PrimitiveArray {
                element: *element,
                length: (bytes.len() / element.bytes(4)) as u32,
                bytes: self.values.then_some(bytes.as_slice()),
            }),
            _ => None,
        }
    }

    fn string(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
        if !self.values || graph.class(graph.class_of(object)).name != "java.lang.String" {
            return None;
        }
        let &value = graph.references(object).first()?;
        if value == ObjectIndex::NONE {
            return None;
        }
        let array = self.primitive_array(graph, value)?;
        Some(String::from_utf8_lossy(array.bytes?).into_owned())
    }
}
