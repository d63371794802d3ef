//! Small heaps for tests, written as text. One object per line, named so that others can refer to
//! it:
//!
//! ```text
//! NAME CLASS BYTES [+NATIVE] [root=KIND] [heap=HEAP] [text="…"] [-> FIELD:TARGET, …]
//! class NAME extends SUPERCLASS
//! ```
//!
//! Elements of arrays and `null` need no field; `java.lang.Class<X>` is the class object of `X`,
//! whose fields are statics; `referent` of a `java.lang.ref.*Reference` is what it refers to.

use heaptap_model::heap_graph::{
    Class, ClassIndex, ClassKind, Contents, DumpFacts, Field, GraphBuilder, HeapGraph, HeapKind,
    NewObject, ObjectId, ObjectIndex, ReferenceKind, RootKind, Value,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// Heap and its objects by name.
pub struct Heap {
    pub graph: HeapGraph,
    ids: HashMap<String, ObjectId>,
}

impl Heap {
    /// Returns the object of a name.
    ///
    /// # Panics
    /// Panics if no object has that name.
    pub fn at(&self, name: &str) -> ObjectIndex {
        self.graph
            .find(self.ids[name])
            .expect("the object is there")
    }
}

struct Line<'a> {
    name: &'a str,
    class: &'a str,
    bytes: u64,
    native: u64,
    root: Option<RootKind>,
    heap: HeapKind,
    text: Option<&'a str>,
    fields: Vec<(Option<&'a str>, &'a str)>,
}

fn parse(line: &str) -> Line<'_> {
    let (head, fields) = match line.split_once("->") {
        Some((head, fields)) => (head, fields),
        None => (line, ""),
    };
    let mut words = head.split_whitespace();
    let mut word = || words.next().expect("NAME CLASS BYTES");
    let mut parsed = Line {
        name: word(),
        class: word(),
        bytes: word().parse().expect("bytes are a number"),
        native: 0,
        root: None,
        heap: HeapKind::App,
        text: None,
        fields: fields
            .split(',')
            .map(str::trim)
            .filter(|field| !field.is_empty())
            .map(|field| match field.split_once(':') {
                Some((name, target)) => (Some(name), target),
                None => (None, field),
            })
            .collect(),
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or(("+", &word[1..]));
        match key {
            "+" => parsed.native = value.parse().expect("native bytes are a number"),
            "root" => {
                let name = format!("ROOT_{}", value.to_uppercase());
                let kind = (0..15)
                    .map(RootKind::of_heap_graph)
                    .find(|k| k.name() == name);
                parsed.root = Some(kind.expect("a kind of root"));
            }
            "heap" => {
                parsed.heap = match value {
                    "zygote" => HeapKind::Zygote,
                    "image" => HeapKind::BootImage,
                    _ => panic!("{value} is not a heap"),
                }
            }
            "text" => parsed.text = Some(value.trim_matches('"')),
            _ => panic!("unknown word: {word}"),
        }
    }
    parsed
}

fn kind_of(name: &str) -> ClassKind {
    match name {
        "java.lang.ref.SoftReference" => ClassKind::SoftReference,
        "java.lang.ref.WeakReference" => ClassKind::WeakReference,
        "java.lang.ref.FinalizerReference" => ClassKind::FinalizerReference,
        "java.lang.ref.PhantomReference" => ClassKind::PhantomReference,
        name if name.ends_with("[]") => ClassKind::Array,
        _ => ClassKind::Normal,
    }
}

/// Builds a heap from its text.
///
/// # Panics
/// Panics if the text is not valid.
pub fn heap(text: &str) -> Heap {
    let mut classes: Vec<Class> = Vec::new();
    let mut by_name: HashMap<String, ClassIndex> = HashMap::new();
    let mut class = |classes: &mut Vec<Class>, name: &str| {
        *by_name.entry(name.to_owned()).or_insert_with(|| {
            classes.push(Class {
                name: name.to_owned(),
                kind: kind_of(name),
                ..Class::default()
            });
            ClassIndex(classes.len() as u32 - 1)
        })
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (hierarchy, objects): (Vec<&str>, Vec<&str>) = lines.partition(|l| l.starts_with("class "));
    for line in hierarchy {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (of, above) = (class(&mut classes, words[1]), class(&mut classes, words[3]));
        classes[of.at()].superclass = Some(above);
    }
    let objects: Vec<Line<'_>> = objects.into_iter().map(parse).collect();
    let ids: HashMap<String, ObjectId> = objects
        .iter()
        .enumerate()
        .map(|(at, line)| (line.name.to_owned(), ObjectId(0x1000 + 16 * at as u64)))
        .collect();
    let mut builder = GraphBuilder::default();
    let mut contents = Written::default();
    let mut class_objects = Vec::new();
    for line in &objects {
        let id = ids[line.name];
        let of = class(&mut classes, line.class);
        builder.object(NewObject {
            id,
            class: of,
            shallow_bytes: line.bytes,
            heap: line.heap,
        });
        let behind = line.class.strip_prefix("java.lang.Class<");
        if let Some(behind) = behind.and_then(|name| name.strip_suffix('>')) {
            class_objects.push((id, class(&mut classes, behind)));
        }
        let kind = ReferenceKind::of_class(kind_of(line.class));
        for (field, target) in &line.fields {
            let target = match *target {
                "null" => ObjectId(0),
                name => ids[name],
            };
            match (kind, *field) {
                (Some(kind), Some("referent")) => builder.referent(kind, target),
                _ => builder.reference(target),
            }
        }
        let fields = line
            .fields
            .iter()
            .map(|(name, target)| (name.map(str::to_owned), ids.get(*target).copied()));
        contents.fields.insert(id, fields.collect());
        if let Some(text) = line.text {
            contents.texts.insert(id, text.to_owned());
        }
        builder.native(id, line.native);
        if let Some(root) = line.root {
            builder.root(id, root, None, None);
        }
    }
    let graph = builder
        .finish(
            classes,
            class_objects,
            Box::new(contents),
            DumpFacts::default(),
            true,
        )
        .expect("the heap is small");
    Heap { graph, ids }
}

/// Field name and target.
type WrittenField = (Option<String>, Option<ObjectId>);

#[derive(Default)]
struct Written {
    fields: BTreeMap<ObjectId, Vec<WrittenField>>,
    texts: BTreeMap<ObjectId, String>,
}

impl Contents for Written {
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        let is_array = graph.class(graph.class_of(object)).is_array();
        let fields = self.fields.get(&graph.id(object));
        for (at, (name, target)) in fields.into_iter().flatten().enumerate() {
            let field = Field {
                name: name.as_deref(),
                element: is_array.then_some(at as u32),
                is_static: graph.class_behind(object).is_some(),
                ..Field::from_value(match target.and_then(|id| graph.find(id)) {
                    Some(target) => Value::Object(target),
                    None => Value::Null,
                })
            };
            if visit(field).is_break() {
                return;
            }
        }
    }

    fn has_values(&self) -> bool {
        true
    }

    fn string(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
        self.texts.get(&graph.id(object)).cloned()
    }
}
