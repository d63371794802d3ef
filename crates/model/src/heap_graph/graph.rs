//! The columns of a graph, how they are asked, and where the contents of its objects come from.

use super::class::{Class, upwards};
use super::class_column::ClassColumn;
use super::contents::{
    AllocationSite, Field, FieldRenamer, PrimitiveArray, ReferenceName, ThreadFacts, Value,
};
use super::facts::DumpFacts;
use super::follow::{Follow, ReferenceKind};
use super::id_set::Ids;
use super::ids::{ClassIndex, ObjectId, ObjectIndex};
use super::root::{Root, RootKind};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

/// A Java heap. Made by [`super::GraphBuilder`] or from columns that a reader filled itself. Has at
/// most 2^32 - 2 objects, and as many references and referents together; every index of an object
/// or class in it is one of its own, or `NONE` where said.
pub struct HeapGraph {
    pub ids: Ids,
    /// Class by object.
    pub class_of: ClassColumn,
    /// Shallow size by object in bytes; [`u32::MAX`] where `huge` has it.
    pub shallow: Vec<u32>,
    /// Shallow sizes that no `u32` holds.
    pub huge: BTreeMap<ObjectIndex, u64>,
    /// Native bytes that objects own, ascending by object, none 0.
    pub native: Vec<(ObjectIndex, u64)>,
    /// Heap by object; empty where all lie in one, `only_heap`.
    pub heaps: Vec<HeapKind>,
    pub only_heap: HeapKind,
    /// Where each object's references begin in `targets`; one more than objects.
    pub starts: Vec<u32>,
    /// Targets in the dump's order, [`ObjectIndex::NONE`] for null where the reader keeps nulls.
    /// `Reference.referent` fields are `NONE` here and stand in `referents`.
    pub targets: Vec<ObjectIndex>,
    /// `Reference.referent`s that are not null, ascending by owner.
    pub referents: Vec<Referent>,
    pub classes: Vec<Class>,
    /// Ascending by object; those of one object in the dump's order.
    pub roots: Vec<Root>,
    /// Objects that are referred to but were never dumped (heap graphs), ascending. Their
    /// shallow size counts as 0 and their class says nothing.
    pub placeholders: Vec<ObjectIndex>,
    /// Class objects and the classes they stand for, ascending by object.
    pub class_objects: Vec<(ObjectIndex, ClassIndex)>,
    pub contents: Box<dyn Contents>,
    /// By object: its place in the order in which the dump first names objects, as themselves or
    /// as what others refer to. Of equals, Perfetto's shortest paths take who was named first.
    /// Empty where that is the order of ids.
    pub first_named: Vec<u32>,
    /// What is known of the dump as a whole.
    pub facts: DumpFacts,
}

/// The referent of a `java.lang.ref.Reference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Referent {
    /// The `Reference` object.
    pub owner: ObjectIndex,
    /// What it refers to.
    pub target: ObjectIndex,
    /// Its sort.
    pub kind: ReferenceKind,
}

/// Which of ART's heaps an object lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[allow(missing_docs)]
pub enum HeapKind {
    #[default]
    Unknown,
    App,
    Zygote,
    BootImage,
}

impl HeapKind {
    /// For people and `--heap`: `app`, `zygote`, `image`; empty where unknown.
    pub fn name(self) -> &'static str {
        match self {
            HeapKind::Unknown => "",
            HeapKind::App => "app",
            HeapKind::Zygote => "zygote",
            HeapKind::BootImage => "image",
        }
    }
}

impl HeapGraph {
    /// Number of objects.
    pub fn len(&self) -> usize {
        self.class_of.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where an object comes among equals: in a heap graph in the order in which its packets first
    /// name objects, else in the order of ids.
    #[inline]
    pub fn place(&self, object: ObjectIndex) -> u32 {
        match self.first_named.get(object.at()) {
            Some(&place) => place,
            None => object.0,
        }
    }

    /// All objects, ascending by id.
    pub fn objects(
        &self,
    ) -> impl ExactSizeIterator<Item = ObjectIndex> + DoubleEndedIterator + use<> {
        (0..self.len() as u32).map(ObjectIndex)
    }

    /// The dump's id of an object.
    pub fn id(&self, object: ObjectIndex) -> ObjectId {
        self.ids.id(object)
    }

    /// The object with that id.
    pub fn find(&self, id: ObjectId) -> Option<ObjectIndex> {
        self.ids.find(id)
    }

    /// All classes; an index into them is a [`ClassIndex`].
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The same, to give them deobfuscated names.
    pub fn classes_mut(&mut self) -> &mut [Class] {
        &mut self.classes
    }

    /// A class.
    pub fn class(&self, class: ClassIndex) -> &Class {
        &self.classes[class.at()]
    }

    /// The class of an object.
    pub fn class_of(&self, object: ObjectIndex) -> ClassIndex {
        self.class_of.get(object)
    }

    /// A class and its superclasses, nearest first; ends where they go round in a circle, though
    /// not before some have come again, and at 255, more than any program has above each other.
    pub fn ancestry(&self, class: ClassIndex) -> impl Iterator<Item = ClassIndex> + '_ {
        upwards(class, |at| self.class(at).superclass)
    }

    /// Whether the class or one of its superclasses has that (obfuscated or plain) name.
    pub fn is_a(&self, class: ClassIndex, name: &str) -> bool {
        self.ancestry(class)
            .any(|c| self.class(c).name == name || self.class(c).shown() == name)
    }

    /// Shallow size in bytes.
    pub fn shallow_bytes(&self, object: ObjectIndex) -> u64 {
        match self.shallow[object.at()] {
            u32::MAX => self.huge.get(&object).copied().unwrap_or(u32::MAX.into()),
            bytes => bytes.into(),
        }
    }

    /// Native bytes that the object owns by a `NativeAllocationRegistry`.
    pub fn native_bytes(&self, object: ObjectIndex) -> u64 {
        match self.native.binary_search_by_key(&object, |n| n.0) {
            Ok(at) => self.native[at].1,
            Err(_) => 0,
        }
    }

    /// All objects that own native bytes, ascending.
    pub fn natives(&self) -> &[(ObjectIndex, u64)] {
        &self.native
    }

    /// The heap it lies in.
    pub fn heap_of(&self, object: ObjectIndex) -> HeapKind {
        match self.heaps.get(object.at()) {
            Some(&heap) => heap,
            None => self.only_heap,
        }
    }

    /// References of an object without referents of `java.lang.ref.Reference`, in the dump's
    /// order; [`ObjectIndex::NONE`] is null. May repeat.
    pub fn references(&self, object: ObjectIndex) -> &[ObjectIndex] {
        let (from, to) = (self.starts[object.at()], self.starts[object.at() + 1]);
        &self.targets[from as usize..to as usize]
    }

    /// How many references there are in all, those of [`HeapGraph::references`].
    pub fn reference_count(&self) -> usize {
        self.targets.len()
    }

    /// Where an object's references stand among those of all objects.
    pub fn reference_range(&self, object: ObjectIndex) -> Range<usize> {
        self.starts[object.at()] as usize..self.starts[object.at() + 1] as usize
    }

    /// Whose reference it is that stands there among all, below [`HeapGraph::reference_count`].
    pub fn owner_of_reference(&self, at: usize) -> ObjectIndex {
        let behind = self.starts.partition_point(|&start| start as usize <= at);
        ObjectIndex(behind as u32 - 1)
    }

    /// Referents of all `java.lang.ref.Reference`s, ascending by owner.
    pub fn referents(&self) -> &[Referent] {
        &self.referents
    }

    /// Referents of one object.
    pub fn referents_of(&self, object: ObjectIndex) -> &[Referent] {
        let from = self.referents.partition_point(|r| r.owner < object);
        let count = self.referents[from..].partition_point(|r| r.owner == object);
        &self.referents[from..from + count]
    }

    /// What an object keeps: references that are not null, and the referents that are followed.
    pub fn kept_by(
        &self,
        object: ObjectIndex,
        follow: Follow,
    ) -> impl Iterator<Item = ObjectIndex> + '_ {
        let kind = self.class(self.class_of(object)).kind;
        let referents = match ReferenceKind::of_class(kind) {
            Some(_) => self.referents_of(object),
            None => &[],
        };
        let followed = referents.iter().filter(move |r| follow.follows(r.kind));
        self.references(object)
            .iter()
            .copied()
            .filter(|&target| target != ObjectIndex::NONE)
            .chain(followed.map(|r| r.target))
    }

    /// All root entries, ascending by object; those of one object in the dump's order.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Root entries of one object.
    pub fn roots_of(&self, object: ObjectIndex) -> &[Root] {
        let from = self.roots.partition_point(|r| r.object < object);
        let count = self.roots[from..].partition_point(|r| r.object == object);
        &self.roots[from..from + count]
    }

    /// The one kind to show for a root, as Perfetto chooses it: sticky class, then JNI global,
    /// then JNI local, then the first that the dump lists.
    pub fn root_kind(&self, object: ObjectIndex) -> Option<RootKind> {
        let roots = self.roots_of(object);
        let first = roots.first()?.kind;
        use RootKind::{JniGlobal, JniLocal, StickyClass};
        let best = [StickyClass, JniGlobal, JniLocal]
            .into_iter()
            .find(|&kind| roots.iter().any(|r| r.kind == kind));
        Some(best.unwrap_or(first))
    }

    /// Whether it is referred to but was never dumped.
    pub fn is_placeholder(&self, object: ObjectIndex) -> bool {
        self.placeholders.binary_search(&object).is_ok()
    }

    /// What only the dump itself can tell of its objects.
    pub fn contents(&self) -> &dyn Contents {
        &*self.contents
    }

    /// The same, to give fields other names.
    pub fn contents_mut(&mut self) -> &mut dyn Contents {
        &mut *self.contents
    }

    /// The class that a class object stands for.
    pub fn class_behind(&self, object: ObjectIndex) -> Option<ClassIndex> {
        let at = self
            .class_objects
            .binary_search_by_key(&object, |c| c.0)
            .ok()?;
        Some(self.class_objects[at].1)
    }
}

/// Where contents of objects come from. Any thread may ask.
pub trait Contents: Send + Sync {
    /// Hands out the fields (elements, statics) of an object, nulls too, in the dump's order,
    /// until `visit` breaks. A heap graph has references only; an HPROF has all.
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    );

    /// What the dump itself calls the reference at a position of [`HeapGraph::references`], the
    /// declaring class and all; `None` where it does not name it, or where positions there are
    /// none of the dump's (HPROF). Cheap: a walk over all references may ask.
    fn reference_name(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        at: usize,
    ) -> Option<ReferenceName<'_>> {
        let _ = (graph, object, at);
        None
    }

    /// Whether [`Contents::fields`] knows primitive values: `false` means that a missing field
    /// tells nothing.
    fn has_values(&self) -> bool;

    /// An array of primitives.
    fn primitive_array(&self, graph: &HeapGraph, object: ObjectIndex)
    -> Option<PrimitiveArray<'_>>;

    /// Number of elements of an array of objects, nulls too; `None` for any other object.
    fn object_array_length(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        let mut length = None;
        self.fields(graph, object, &mut |field| match field.element {
            Some(at) if field.type_name.is_none() => {
                length = Some(at.saturating_add(1));
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        });
        let is_array = || graph.class(graph.class_of(object)).is_array();
        length.or_else(|| is_array().then_some(0))
    }

    /// The text of a `java.lang.String`.
    fn string(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<String>;

    /// Where the object was allocated, frames top first, and the thread's name or id, where
    /// allocations were tracked.
    fn allocated_at(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<AllocationSite> {
        let _ = (graph, object);
        None
    }

    /// A thread, by the serial number that [`super::Root::thread`] has.
    fn thread(&self, graph: &HeapGraph, serial: u32) -> Option<ThreadFacts> {
        let _ = (graph, serial);
        None
    }

    /// What `System.identityHashCode` says of an object and logs show behind the `@`, where the
    /// dump has it: ART keeps it in `shadow$_monitor_` once somebody asked.
    fn identity_hash(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        let _ = (graph, object);
        None
    }

    /// Gives fields the names they had before they were obfuscated; [`Contents::fields`] hands
    /// those out from then on. For what is not in [`super::Class::fields`]: statics, and names
    /// that objects bring along.
    fn rename_fields(&mut self, renamer: &dyn FieldRenamer) {
        let _ = renamer;
    }
}

/// A dump of which nothing but the graph is known.
pub struct NoContents;

impl Contents for NoContents {
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        for &target in graph.references(object) {
            let value = match target {
                ObjectIndex::NONE => Value::Null,
                target => Value::Object(target),
            };
            let field = Field {
                name: None,
                element: None,
                type_name: None,
                declared_in: None,
                is_static: false,
                value,
            };
            if visit(field).is_break() {
                return;
            }
        }
    }

    fn has_values(&self) -> bool {
        false
    }

    fn primitive_array(&self, _: &HeapGraph, _: ObjectIndex) -> Option<PrimitiveArray<'_>> {
        None
    }

    fn string(&self, _: &HeapGraph, _: ObjectIndex) -> Option<String> {
        None
    }
}
