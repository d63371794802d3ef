//! Paths from a root to an object: the objects on the path and the names of the fields that lead
//! from each to the next.

use super::fields::{self, NamedField};
use super::label;
use super::repetition::{self, Repeated};
use heaptap_model::heap_graph::{
    ClassIndex, Follow, HeapGraph, ObjectIndex, ReferenceField, ReferenceKind, RootKind,
    ShortestPaths,
};
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

/// Field, static or element that refers to an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Declaring class if known, otherwise the class of the object; for a static, its class; for an
    /// element, the class of the array.
    pub class: String,
    pub place: Place,
}

/// Kind of a reference, with its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Instance field.
    Field(String),
    /// Static of a class.
    Static(String),
    /// Array element.
    Element(u32),
    /// One or more array elements.
    Elements,
    /// Reference that is not named in the dump.
    Unnamed,
}

impl Link {
    /// Returns the link with array elements merged, for grouping.
    pub fn any_element(mut self) -> Link {
        if let Place::Element(_) = self.place {
            self.place = Place::Elements;
        }
        self
    }

    /// Returns the class name without its package.
    pub fn short_class(&self) -> &str {
        short(&self.class)
    }
}

/// Returns a class name without its package.
pub fn short(name: &str) -> &str {
    let element = name.trim_end_matches("[]").len();
    match name[..element].rfind('.') {
        Some(dot) => &name[dot + 1..],
        None => name,
    }
}

impl fmt::Display for Link {
    /// Formats as `ArrayList.elementData`, `lab.LeakLab.REGISTRY` for a static, `Object[].[3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Field(name) => write!(f, "{}.{name}", self.short_class()),
            Place::Static(name) => write!(f, "{}.{name}", self.class),
            Place::Element(index) => write!(f, "{}.[{index}]", self.short_class()),
            Place::Elements => write!(f, "{}.[*]", self.short_class()),
            Place::Unnamed => write!(f, "{}.?", self.short_class()),
        }
    }
}

/// Reason why the first object of a path is a root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RootReason {
    /// Root kind that is shown for the object.
    pub kind: RootKind,
    /// Name or number of the thread that the root belongs to.
    pub thread: Option<String>,
    /// Number of that thread in the dump.
    pub serial: Option<u32>,
    /// Frame of that thread that holds the object, such as `lab.LeakLab.main (LeakLab.java:12)`.
    pub frame: Option<String>,
}

impl RootReason {
    /// Returns the reason in words; without `texts`, which are the app's, with the number of the thread
    /// instead of its name.
    pub fn in_words(mut self, texts: bool) -> String {
        if !texts {
            self.thread = self.serial.map(numbered);
        }
        self.to_string()
    }
}

fn numbered(serial: u32) -> String {
    format!("#{serial}")
}

impl fmt::Display for RootReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.in_words())?;
        if let Some(thread) = &self.thread {
            match self.kind {
                RootKind::ThreadObject => write!(f, " {thread}")?,
                _ => write!(f, " of thread {thread}")?,
            }
        }
        if let Some(frame) = &self.frame {
            write!(f, " at {frame}")?;
        }
        Ok(())
    }
}

/// Object on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub object: ObjectIndex,
    /// Reference from the previous object; `None` for the first.
    pub link: Option<Link>,
    /// Repeated references that lead here from the previous step; `link` is the last of them.
    pub repeated: Option<Repeated<Link>>,
    /// Number of objects omitted before this one because the path is too long to show.
    pub left_out: u64,
}

impl Step {
    /// Returns the text of the reference that leads here: `Event.next`, `Event.next × 4,999`.
    pub fn reference(&self) -> Option<String> {
        match (&self.repeated, &self.link) {
            (Some(repeated), _) => Some(repeated.text()),
            (None, link) => link.as_ref().map(Link::to_string),
        }
    }
}

/// Path from a root to an object, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Root reason of the first object; `None` if the last object is unreachable.
    pub root: Option<RootReason>,
    /// At least one step.
    pub steps: Vec<Step>,
}

/// Returns the shortest path to an object with every step.
pub fn shortest(
    graph: &HeapGraph,
    paths: &ShortestPaths,
    follow: Follow,
    object: ObjectIndex,
) -> Path {
    let objects = paths.path(object);
    let root = objects.first().and_then(|&first| root_reason(graph, first));
    let mut before: Option<ObjectIndex> = None;
    let steps = objects
        .into_iter()
        .map(|object| Step {
            object,
            link: before
                .replace(object)
                .map(|owner| link(graph, owner, object, follow)),
            repeated: None,
            left_out: 0,
        })
        .collect();
    Path { root, steps }
}

/// Paths to many objects for output: repetitions are folded, and the middle of a path that is still
/// too long is omitted.
pub struct Ways<'a> {
    graph: &'a HeapGraph,
    paths: &'a ShortestPaths,
    follow: Follow,
    links: Links<'a>,
    /// Numbers of equal references, from 1.
    numbers: HashMap<(Sort, Link, Sort), u32>,
    /// By object, the number of the reference that leads to it; 0 if not looked up yet. Caches the
    /// steps that paths have in common.
    leading: Vec<u32>,
}

/// Common property of the objects of a step: the class, and for class objects the represented
/// class.
type Sort = (ClassIndex, Option<ClassIndex>);

impl<'a> Ways<'a> {
    /// Creates a cache for paths along the references that `follow` follows.
    pub fn new(graph: &'a HeapGraph, paths: &'a ShortestPaths, follow: Follow) -> Ways<'a> {
        Ways {
            graph,
            paths,
            follow,
            links: Links::new(graph, follow),
            numbers: HashMap::new(),
            leading: vec![0; graph.len()],
        }
    }

    pub fn to(&mut self, object: ObjectIndex) -> Path {
        let objects = self.paths.path(object);
        let references: Vec<u32> = objects
            .windows(2)
            .map(|pair| self.number(pair[0], pair[1]))
            .collect();
        let root = objects.first().and_then(|&o| root_reason(self.graph, o));
        let leading = |at: usize| link(self.graph, objects[at - 1], objects[at], self.follow);
        let first = objects.first().map(|&object| Step {
            object,
            link: None,
            repeated: None,
            left_out: 0,
        });
        let hops = repetition::hops(&references).into_iter().map(|hop| Step {
            object: objects[hop.to],
            link: Some(leading(hop.to)),
            repeated: (hop.times() > 1).then(|| Repeated {
                times: hop.times() as u64,
                round: (hop.from..hop.from + hop.round)
                    .map(|at| leading(at + 1).any_element())
                    .collect(),
            }),
            left_out: hop.left_out(),
        });
        Path {
            root,
            steps: first.into_iter().chain(hops).collect(),
        }
    }

    fn number(&mut self, owner: ObjectIndex, target: ObjectIndex) -> u32 {
        let known = self.leading[target.at()];
        if known > 0 {
            return known;
        }
        let sort = |object| (self.graph.class_of(object), self.graph.class_behind(object));
        let key = (sort(owner), self.links.any(owner, target), sort(target));
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        self.leading[target.at()] = number;
        number
    }
}

/// Returns why an object is a root; `None` if it is not a root. Of several reasons, the one that
/// explains most: a thread that another one holds in a local variable is a thread.
pub fn root_reason(graph: &HeapGraph, object: ObjectIndex) -> Option<RootReason> {
    let shown = graph.root_kind(object)?;
    let roots = graph.roots_of(object);
    let kinds = roots.iter().map(|root| root.kind);
    let better = kinds.filter(|kind| kind.rank() < shown.rank());
    let kind = better.min_by_key(|kind| kind.rank()).unwrap_or(shown);
    let entry = roots.iter().find(|r| r.kind == kind && r.thread.is_some());
    let serial = entry.and_then(|entry| entry.thread);
    let facts = serial.and_then(|serial| graph.contents().thread(graph, serial));
    let frame = entry.and_then(|entry| entry.frame);
    Some(RootReason {
        kind,
        thread: facts.and_then(|facts| facts.name).or(serial.map(numbered)),
        serial,
        frame: serial
            .zip(frame)
            .and_then(|(serial, frame)| graph.contents().thread_frame(serial, frame)),
    })
}

/// Returns the first reference from `owner` to `target` that keeps it alive.
pub fn link(graph: &HeapGraph, owner: ObjectIndex, target: ObjectIndex, follow: Follow) -> Link {
    // Elements are many, and all of them keep their targets alive.
    if let Some(element) = graph.contents().element_of(graph, owner, target) {
        return Link {
            class: class_of_owner(graph, owner),
            place: Place::Element(element),
        };
    }
    let mut found = None;
    fields::visit(graph, owner, |field| {
        if field.value.object() == Some(target) && keeps(graph, owner, &field, follow) {
            found = Some(of_field(graph, owner, &field));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found.unwrap_or_else(|| Link {
        class: class_of_owner(graph, owner),
        place: Place::Unnamed,
    })
}

/// References of many owners by name. The references of large owners are looked up once, because
/// asking for every element of a large array would take quadratic time.
pub struct Links<'a> {
    graph: &'a HeapGraph,
    follow: Follow,
    large: HashMap<ObjectIndex, HashMap<ObjectIndex, Link>>,
    /// By class; `None` if not looked up yet.
    of_class: Vec<Option<OfClass>>,
    /// Number of owners that were read for their places.
    read: usize,
}

/// Where the references of a class's objects are.
enum OfClass {
    Elements,
    /// In fields, at most [`MANY`].
    Fields(Box<[ReferenceField]>),
    Unknown,
}

impl OfClass {
    fn new(graph: &HeapGraph, class: ClassIndex) -> OfClass {
        let facts = graph.class(class);
        if facts.is_array() {
            return OfClass::Elements;
        }
        // A referent that is not followed is a reference, too, but not one that keeps its target.
        if ReferenceKind::of_class(facts.kind).is_some() {
            return OfClass::Unknown;
        }
        let fields = graph.contents().reference_fields(graph, class, MANY + 1);
        match (1..=MANY).contains(&fields.len()) {
            true => OfClass::Fields(fields),
            false => OfClass::Unknown,
        }
    }
}

/// Where the references of an object are.
#[derive(Debug, Clone, Copy)]
pub enum Places {
    /// In the elements of an array.
    Elements,
    Fields {
        class: ClassIndex,
        /// One bit for each field of the class that is a reference, the first one lowest; not set
        /// for null.
        filled: u64,
    },
    Unknown,
}

/// Number of owners after which the contents that were read are released: owners are all over the
/// dump, and each can map 64 KiB of it.
const RELEASE_INTERVAL_OWNERS: usize = 1 << 11;

/// Place of all elements of an array.
pub const ELEMENTS: u32 = 0;

/// Owners with more references than this are indexed.
const MANY: usize = 64;

impl<'a> Links<'a> {
    /// Creates an index of the references that `follow` follows.
    pub fn new(graph: &'a HeapGraph, follow: Follow) -> Links<'a> {
        Links {
            graph,
            follow,
            large: HashMap::new(),
            of_class: graph.classes().iter().map(|_| None).collect(),
            read: 0,
        }
    }

    /// Returns the places of an object's references, for an object of `class` other than a class
    /// object. Reads an instance with null references only if `may_read`: instances of one class
    /// are all over the dump.
    #[inline]
    pub fn places(&mut self, class: ClassIndex, owner: ObjectIndex, may_read: bool) -> Places {
        let graph = self.graph;
        let of_class = self.of_class[class.at()].get_or_insert_with(|| OfClass::new(graph, class));
        let fields = match of_class {
            OfClass::Elements => return Places::Elements,
            OfClass::Unknown => return Places::Unknown,
            OfClass::Fields(fields) => fields,
        };
        let references = graph.references(owner);
        if references.len() > MANY {
            return Places::Unknown;
        }
        // Without nulls, the references are those of the fields, in their order. The last one can
        // be that to the class, which is not a field.
        if references.len() == fields.len()
            && references.last().copied() != graph.class(class).object
        {
            let filled = u64::MAX >> (u64::BITS as usize - fields.len());
            return Places::Fields { class, filled };
        }
        let usual = graph
            .contents()
            .known_filled_fields(class, owner, references.len());
        if let Some(filled) = usual {
            return Places::Fields { class, filled };
        }
        if !may_read {
            return Places::Unknown;
        }
        self.read += 1;
        if self.read.is_multiple_of(RELEASE_INTERVAL_OWNERS) {
            graph.release_contents();
        }
        match graph.contents().filled_fields(owner, fields) {
            Some(filled) => Places::Fields { class, filled },
            None => Places::Unknown,
        }
    }

    /// Returns a number that identifies the result of [`Links::any`] for the reference at that
    /// position among all objects of the class; `None` if the result depends on the object.
    #[inline]
    pub fn place(&self, places: Places, position: usize) -> Option<u32> {
        match places {
            Places::Elements => Some(ELEMENTS),
            Places::Fields { class, mut filled } => {
                for _ in 0..position {
                    filled &= filled.wrapping_sub(1);
                }
                // No bit is left for the reference to the class, which is not a field.
                match &self.of_class[class.at()] {
                    Some(OfClass::Fields(fields)) => {
                        Some(fields.get(filled.trailing_zeros() as usize)?.place)
                    }
                    _ => None,
                }
            }
            Places::Unknown => None,
        }
    }

    /// Returns the first reference from `owner` to `target` that keeps it alive, with array
    /// elements merged.
    pub fn any(&mut self, owner: ObjectIndex, target: ObjectIndex) -> Link {
        let (graph, follow) = (self.graph, self.follow);
        if graph.class(graph.class_of(owner)).is_array() {
            return Link {
                class: class_of_owner(graph, owner),
                place: Place::Elements,
            };
        }
        if graph.references(owner).len() <= MANY {
            return link(graph, owner, target, follow).any_element();
        }
        let all = self.large.entry(owner).or_insert_with(|| {
            let mut all: HashMap<ObjectIndex, Link> = HashMap::new();
            fields::visit(graph, owner, |field| {
                if let Some(target) = field.value.object()
                    && keeps(graph, owner, &field, follow)
                {
                    all.entry(target)
                        .or_insert_with(|| of_field(graph, owner, &field).any_element());
                }
                ControlFlow::Continue(())
            });
            all
        });
        all.get(&target).cloned().unwrap_or_else(|| Link {
            class: class_of_owner(graph, owner),
            place: Place::Unnamed,
        })
    }
}

pub fn of_field(graph: &HeapGraph, owner: ObjectIndex, field: &NamedField<'_>) -> Link {
    let declaring = || match field.declared_in {
        Some(class) => graph.class(class).shown().to_owned(),
        None => class_of_owner(graph, owner),
    };
    let (class, place) = match (field.name, field.element) {
        (_, Some(element)) => (class_of_owner(graph, owner), Place::Element(element)),
        (Some(name), _) if field.is_static => {
            (class_of_owner(graph, owner), Place::Static(name.to_owned()))
        }
        (Some(name), None) => match name.rsplit_once('.') {
            // Field names of a heap graph include the declaring class.
            Some((class, name)) if field.declared_in.is_none() => {
                (class.to_owned(), Place::Field(name.to_owned()))
            }
            _ => (declaring(), Place::Field(name.to_owned())),
        },
        (None, None) => (class_of_owner(graph, owner), Place::Unnamed),
    };
    Link { class, place }
}

/// Returns whether a field keeps its target alive, which a referent that is not followed does not.
fn keeps(graph: &HeapGraph, owner: ObjectIndex, field: &NamedField<'_>, follow: Follow) -> bool {
    let is_referent = field
        .name
        .is_some_and(|name| name == "referent" || name == "java.lang.ref.Reference.referent");
    !is_referent
        || graph
            .referents_of(owner)
            .iter()
            .all(|r| follow.follows(r.kind) || Some(r.target) != field.value.object())
}

/// Returns the class name of an object; for a class object, of the class it represents.
fn class_of_owner(graph: &HeapGraph, owner: ObjectIndex) -> String {
    match label::class_behind(graph, owner) {
        Some(name) => name.to_owned(),
        None => graph.class(graph.class_of(owner)).shown().to_owned(),
    }
}
