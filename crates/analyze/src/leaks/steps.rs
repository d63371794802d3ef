//! Steps of a path, and the conversion of walked objects to them: references by name, collections as
//! `[x]` without their internals.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::verdict::Status;
use super::walk::{REFERENCE, Walk, is_collectors_own};
use crate::fields;
use crate::lookup::one_of;
use crate::paths::{self, Place, short};
use crate::repetition::Repeated;
use heaptap_model::heap_graph::{ClassIndex, Follow, HeapGraph, ObjectId, ObjectIndex, Value};

/// Kind of object on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    Instance,
    /// Class object, with its statics.
    Class,
    Array,
    Thread,
}

/// Object on a path.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Step {
    /// ID in the dump.
    pub id: ObjectId,
    /// Class name; for a class object, of the class it represents.
    pub class: String,
    pub shape: Shape,
    pub status: Status,
    /// Reason for the status, or another remark; can be empty.
    pub reason: String,
    /// Reference to the next object; `None` for the last.
    pub reference: Option<Reference>,
    /// Superclass that declares the field, if it is not the object's own class.
    pub declared_in: Option<String>,
    /// Whether the reference is suspected as the cause.
    pub suspect: bool,
    /// Repeated references that lead from here to the next step; `reference` is the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated<String>>,
    /// Number of steps omitted before this one because the path is too long to show.
    #[serde(skip_serializing_if = "heaptap_base::units::is_zero")]
    pub left_out: u64,
}

impl Step {
    /// Returns the reference with its class, the same for any array element: `Event.next`.
    pub(super) fn generic(&self) -> Option<String> {
        let owner = short(self.declared_in.as_ref().unwrap_or(&self.class));
        Some(match self.reference.as_ref()? {
            reference @ (Reference::Field(_) | Reference::Static(_) | Reference::Unnamed) => {
                format!("{owner}.{}", reference.generic())
            }
            reference => format!("{owner}{}", reference.generic()),
        })
    }
}

/// Reference from one object to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// Instance field.
    Field(String),
    /// Static of the represented class.
    Static(String),
    /// Element of an array or of a collection: its index, or its key if that is a string.
    Element(Option<String>),
    /// Value of a `ThreadLocal` in the thread.
    ThreadLocal,
    /// Local variable of the thread.
    Local,
    /// Reference that is not named in the dump.
    Unnamed,
}

/// As its display form.
impl serde::Serialize for Reference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

impl Reference {
    /// Returns the display form: `LEAKED`, `[3]`, `["key"]`, `<local variable>`.
    pub fn shown(&self) -> String {
        match self {
            Reference::Field(name) | Reference::Static(name) => name.clone(),
            Reference::Element(Some(at)) => format!("[{at}]"),
            Reference::Element(None) => "[x]".to_owned(),
            Reference::ThreadLocal => "<thread local>".to_owned(),
            Reference::Local => "<local variable>".to_owned(),
            Reference::Unnamed => "<unnamed>".to_owned(),
        }
    }

    /// Returns the form used in signatures, the same for all objects that leak through the
    /// reference.
    pub fn generic(&self) -> &str {
        match self {
            Reference::Field(name) | Reference::Static(name) => name,
            Reference::Element(_) => "[x]",
            Reference::ThreadLocal => "<thread local>",
            Reference::Local => "<Java Local>",
            Reference::Unnamed => "<unnamed>",
        }
    }
}

/// Object on a path with its reference to the next one.
#[derive(Debug, Clone)]
pub(super) struct RawStep {
    pub object: ObjectIndex,
    /// `None` for the last object.
    pub reference: Option<Reference>,
    /// Class that declares the field, if it is not the object's own class.
    pub declared_in: Option<ClassIndex>,
}

/// Names of references, looked up once for each object on a path.
pub(super) struct References<'g> {
    graph: &'g HeapGraph,
    /// Whether the result can contain strings of the heap.
    texts: bool,
    named: HashMap<(ObjectIndex, ObjectIndex), (Reference, Option<ClassIndex>)>,
}

impl<'g> References<'g> {
    /// Looks up the names of all references on the walk's paths to `ends`.
    pub fn new(
        graph: &'g HeapGraph,
        walk: &Walk,
        ends: &[ObjectIndex],
        texts: bool,
    ) -> References<'g> {
        let mut children: HashMap<ObjectIndex, Vec<ObjectIndex>> = HashMap::new();
        for &end in ends {
            let mut at = end;
            while let Some(parent) = walk.parent(at) {
                // The path above an object is walked once, with the first of its children.
                let known = children.entry(parent).or_default();
                let first = known.is_empty();
                known.push(at);
                if !first {
                    break;
                }
                at = parent;
            }
        }
        let mut all = References {
            graph,
            texts,
            named: HashMap::new(),
        };
        for (parent, mut wanted) in children {
            wanted.sort_unstable();
            all.name(walk, parent, &wanted);
        }
        all
    }

    fn name(&mut self, walk: &Walk, parent: ObjectIndex, wanted: &[ObjectIndex]) {
        let graph = self.graph;
        let behind = graph.class_behind(parent);
        let mut left = wanted.len();
        fields::visit(graph, parent, |field| {
            let Some(target) = field.value.object() else {
                return ControlFlow::Continue(());
            };
            if wanted.binary_search(&target).is_err() || self.named.contains_key(&(parent, target))
            {
                return ControlFlow::Continue(());
            }
            let own = graph.class_of(parent);
            let declaring = behind.or(field.declared_in).unwrap_or(own);
            let name = field.name;
            let class = graph.class(declaring).shown();
            let field_name = name.unwrap_or_default();
            if is_collectors_own(class, field_name)
                || class == REFERENCE && field_name == "referent"
            {
                return ControlFlow::Continue(());
            }
            let reference = match (field.element, name) {
                (Some(at), _) => Reference::Element(Some(at.to_string())),
                (None, None) => Reference::Unnamed,
                (None, Some(name)) if behind.is_some() => Reference::Static(name.to_owned()),
                (None, Some(name)) => Reference::Field(name.to_owned()),
            };
            let declared_in = field.declared_in.filter(|&c| c != own && behind.is_none());
            self.named
                .insert((parent, target), (reference, declared_in));
            left -= 1;
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        for &child in wanted {
            let referents = graph.referents_of(parent);
            let reference = match walk.is_local(parent, child) {
                true => Reference::Local,
                false if referents.iter().any(|r| r.target == child) => {
                    Reference::Field("referent".to_owned())
                }
                false => Reference::Unnamed,
            };
            self.named
                .entry((parent, child))
                .or_insert((reference, None));
        }
    }

    /// Returns the path to an object from its root, without the internals of collections.
    pub fn path(&self, walk: &Walk, end: ObjectIndex) -> Vec<RawStep> {
        let mut raw = vec![RawStep {
            object: end,
            reference: None,
            declared_in: None,
        }];
        let mut at = end;
        while let Some(parent) = walk.parent(at) {
            let (reference, declared_in) = self
                .named
                .get(&(parent, at))
                .cloned()
                .unwrap_or((Reference::Unnamed, None));
            raw.push(RawStep {
                object: parent,
                reference: Some(reference),
                declared_in,
            });
            at = parent;
        }
        raw.reverse();
        self.fold(raw)
    }

    /// Returns the steps along `objects`; the last step has no reference.
    pub fn along(&self, objects: &[ObjectIndex]) -> Vec<RawStep> {
        let step = |pair: &[ObjectIndex]| RawStep {
            object: pair[0],
            reference: Some(
                match paths::link(self.graph, pair[0], pair[1], Follow::STRONG).place {
                    Place::Field(name) => Reference::Field(name),
                    Place::Static(name) => Reference::Static(name),
                    Place::Element(at) => Reference::Element(Some(at.to_string())),
                    Place::Elements => Reference::Element(None),
                    Place::Unnamed => Reference::Unnamed,
                },
            ),
            declared_in: None,
        };
        self.fold(objects.windows(2).map(step).collect())
    }

    /// Removes the steps between a collection and its elements.
    fn fold(&self, raw: Vec<RawStep>) -> Vec<RawStep> {
        let mut folded: Vec<RawStep> = Vec::new();
        let mut steps = raw.into_iter().peekable();
        while let Some(mut step) = steps.next() {
            let collection = self.class(step.object);
            let is_collection = is_collection(collection);
            let mut insides = Vec::new();
            while let Some(next) = steps.peek() {
                let class = self.class(next.object);
                let before = insides.last().unwrap_or(&step);
                let inside = next.reference.is_some()
                    && (is_thread_locals(class)
                        || is_collection
                            && !self.is_element(before)
                            && is_inside(collection, class));
                if !inside {
                    break;
                }
                insides.extend(steps.next());
            }
            if let Some(last) = insides.last() {
                step.declared_in = None;
                step.reference = Some(match is_thread_locals(self.class(last.object)) {
                    true => Reference::ThreadLocal,
                    false => self.entry(last),
                });
            }
            folded.push(step);
        }
        folded
    }

    fn class(&self, object: ObjectIndex) -> &'g str {
        match self.graph.class_behind(object) {
            // A class object is not an instance of the class it represents.
            Some(_) => "java.lang.Class",
            None => self.graph.class(self.graph.class_of(object)).shown(),
        }
    }

    /// Returns whether a step inside a collection refers to an element rather than to more
    /// internals.
    fn is_element(&self, step: &RawStep) -> bool {
        match &step.reference {
            Some(Reference::Element(_)) => self.class(step.object) == "java.lang.Object[]",
            Some(Reference::Field(name)) => {
                matches!(
                    name.as_str(),
                    "value" | "val" | "item" | "key" | "mValue" | "mKey"
                )
            }
            _ => false,
        }
    }

    /// Returns the element reference of a collection by the last internal object on the path.
    fn entry(&self, last: &RawStep) -> Reference {
        if let Some(Reference::Element(at)) = &last.reference {
            // Only in a list is the array index the position of the element; in a table it depends
            // on the hash.
            return Reference::Element(at.clone());
        }
        let key = one_of(self.graph, last.object, &["key"])
            .and_then(Value::object)
            .and_then(|key| self.graph.contents().string(self.graph, key));
        let is_value = matches!(&last.reference, Some(Reference::Field(name)) if name != "key");
        match key.filter(|_| is_value && self.texts) {
            Some(text) => {
                let short: String = text.chars().take(40).collect();
                let more = if short.len() < text.len() { "…" } else { "" };
                Reference::Element(Some(format!("\"{short}{more}\"")))
            }
            None => Reference::Element(None),
        }
    }
}

/// Returns whether a class is a collection whose internals are hidden.
fn is_collection(class: &str) -> bool {
    let Some((package, name)) = class.rsplit_once('.') else {
        return false;
    };
    let ends = [
        "List",
        "Map",
        "Set",
        "Queue",
        "Deque",
        "Vector",
        "Stack",
        "Hashtable",
        "Array",
    ];
    match package {
        "java.util"
        | "java.util.concurrent"
        | "android.util"
        | "androidx.collection"
        | "android.support.v4.util"
        | "androidx.arch.core.internal"
        | "androidx.compose.runtime.collection"
        | "kotlin.collections" => {
            let outer = name.split('$').next().unwrap_or(name);
            ends.iter().any(|end| outer.ends_with(end)) || outer == "Collections"
        }
        _ => false,
    }
}

/// Returns whether objects of a class are internals between a collection and its elements: arrays,
/// entries, and the map behind a set.
fn is_inside(collection: &str, class: &str) -> bool {
    let element = class.trim_end_matches("[]");
    if element.len() < class.len() && element == "java.lang.Object" {
        return true;
    }
    let package = |name: &str| name.rsplit_once('.').map(|(package, _)| package.to_owned());
    let behind_set = collection.contains("Set") && element.ends_with("Map");
    package(element) == package(collection)
        && (behind_set || element.contains('$') && !is_list(element))
}

/// Returns whether a name is that of a nested collection: `Arrays$ArrayList`,
/// `Collections$SynchronizedList`.
fn is_list(element: &str) -> bool {
    ["List", "Map", "Set"]
        .iter()
        .any(|end| element.ends_with(end))
}

fn is_thread_locals(class: &str) -> bool {
    class.starts_with("java.lang.ThreadLocal$")
}
