//! The columns of a graph, their accessors, and the source of the contents of its objects.

use super::class::{Class, upwards};
use super::class_column::ClassColumn;
use super::contents::{
    AllocationSite, Field, FieldRenamer, PrimitiveArray, ReferenceField, ReferenceName,
    ThreadFacts, Value,
};
use super::facts::{DumpFacts, DumpSource};
use super::follow::{Follow, ReferenceKind};
use super::id_set::Ids;
use super::ids::{ClassIndex, ObjectId, ObjectIndex};
use super::object_set::ObjectSet;
use super::positions::Positions;
use super::root::{Root, RootKind};
use super::shallow_sizes::ShallowSizes;
use std::ops::{ControlFlow, Range};

/// A Java heap, built by [`super::GraphBuilder`] or from columns that a reader filled itself. Has
/// at most 2^32 - 2 objects, and as many references and referents together. Every index of an
/// object or class in it is valid, or `NONE` where documented.
pub struct HeapGraph {
    pub ids: Ids,
    /// Class by object.
    pub class_of: ClassColumn,
    pub shallow: ShallowSizes,
    /// Native bytes that objects own, ascending by object, none 0.
    pub native: Vec<(ObjectIndex, u64)>,
    /// Heap by object; empty if all objects are in one, `only_heap`.
    pub heaps: Vec<HeapKind>,
    pub only_heap: HeapKind,
    /// Index of each object's first reference in `targets`; one more entry than objects.
    pub starts: Positions,
    /// Targets in the dump's order, [`ObjectIndex::NONE`] for null if the reader keeps nulls.
    /// `Reference.referent` fields are `NONE` here; `referents` has them.
    pub targets: Vec<ObjectIndex>,
    /// Non-null `Reference.referent`s, ascending by owner.
    pub referents: Vec<Referent>,
    pub classes: Vec<Class>,
    /// Ascending by object; those of one object in the dump's order.
    pub roots: Vec<Root>,
    /// Objects that are referred to but were never dumped (heap graphs), ascending. Their shallow
    /// size counts as 0 and their class is meaningless.
    pub placeholders: Vec<ObjectIndex>,
    /// Class objects and the classes they represent, ascending by object.
    pub class_objects: Vec<(ObjectIndex, ClassIndex)>,
    pub contents: Box<dyn Contents>,
    /// By object: its position in the order in which the dump first names objects, as themselves or
    /// as targets. Among equals, Perfetto's shortest paths prefer the first. Empty if that is the
    /// order of IDs.
    pub first_named: Vec<u32>,
    pub facts: DumpFacts,
}

/// The referent of a `java.lang.ref.Reference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Referent {
    pub owner: ObjectIndex,
    pub target: ObjectIndex,
    pub kind: ReferenceKind,
}

/// Heap of ART that contains an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum HeapKind {
    #[default]
    Unknown,
    App,
    Zygote,
    BootImage,
}

impl HeapKind {
    /// Returns the kind of a number, which HPROFs and heap graphs share.
    #[inline]
    pub fn of_number(number: u64) -> HeapKind {
        match number {
            1 => HeapKind::App,
            2 => HeapKind::Zygote,
            3 => HeapKind::BootImage,
            _ => HeapKind::Unknown,
        }
    }

    /// Returns the name shown and accepted by `--heap`: `app`, `zygote`, `image`; empty if unknown.
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
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.class_of.len()
    }

    /// Returns whether the graph has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rank of an object among equals: in a heap graph the order in which its packets
    /// first name objects, otherwise the order of IDs.
    #[inline]
    pub fn place(&self, object: ObjectIndex) -> u32 {
        match self.first_named.get(object.at()) {
            Some(&place) => place,
            None => object.0,
        }
    }

    /// Returns all objects, ascending by ID.
    pub fn objects(
        &self,
    ) -> impl ExactSizeIterator<Item = ObjectIndex> + DoubleEndedIterator + use<> {
        (0..self.len() as u32).map(ObjectIndex)
    }

    /// Returns the dump's ID of an object.
    pub fn id(&self, object: ObjectIndex) -> ObjectId {
        self.ids.id(object)
    }

    pub fn find(&self, id: ObjectId) -> Option<ObjectIndex> {
        self.ids.find(id)
    }

    /// Returns the object with a typed ID: hexadecimal, otherwise decimal, as SQL prints addresses.
    pub fn find_typed(&self, text: &str) -> Option<ObjectIndex> {
        let hexadecimal = text.parse().ok().and_then(|id| self.find(id));
        hexadecimal.or_else(|| self.find(ObjectId(text.parse().ok()?)))
    }

    /// Returns all classes; an index into them is a [`ClassIndex`].
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Returns all classes for changes, such as deobfuscated names.
    pub fn classes_mut(&mut self) -> &mut [Class] {
        &mut self.classes
    }

    #[inline]
    pub fn class(&self, class: ClassIndex) -> &Class {
        &self.classes[class.at()]
    }

    #[inline]
    pub fn class_of(&self, object: ObjectIndex) -> ClassIndex {
        self.class_of.get(object)
    }

    /// Returns a class and its superclasses, nearest first. Ends at a cycle, possibly after some
    /// classes are repeated, and at 255, which exceeds the depth of any program.
    pub fn ancestry(&self, class: ClassIndex) -> impl Iterator<Item = ClassIndex> + '_ {
        upwards(class, |at| self.class(at).superclass)
    }

    /// Returns whether the class or one of its superclasses has that (obfuscated or original) name.
    pub fn is_a(&self, class: ClassIndex, name: &str) -> bool {
        self.ancestry(class)
            .any(|c| self.class(c).name == name || self.class(c).shown() == name)
    }

    /// Returns whether the heap is of a JVM on a computer, not of Android.
    pub fn is_of_java_se(&self) -> bool {
        matches!(self.facts.source, DumpSource::Hprof { android: false, .. })
    }

    /// Returns the shallow size in bytes.
    #[inline]
    pub fn shallow_bytes(&self, object: ObjectIndex) -> u64 {
        self.shallow.get(object)
    }

    /// Returns the native bytes that the object owns through a `NativeAllocationRegistry`.
    #[inline]
    pub fn native_bytes(&self, object: ObjectIndex) -> u64 {
        match self.native.binary_search_by_key(&object, |n| n.0) {
            Ok(at) => self.native[at].1,
            Err(_) => 0,
        }
    }

    /// Returns all objects that own native bytes, ascending.
    pub fn natives(&self) -> &[(ObjectIndex, u64)] {
        &self.native
    }

    pub fn heap_of(&self, object: ObjectIndex) -> HeapKind {
        match self.heaps.get(object.at()) {
            Some(&heap) => heap,
            None => self.only_heap,
        }
    }

    /// Returns the references of an object without referents of `java.lang.ref.Reference`, in the
    /// dump's order; [`ObjectIndex::NONE`] is null. Can repeat.
    #[inline]
    pub fn references(&self, object: ObjectIndex) -> &[ObjectIndex] {
        &self.targets[self.reference_range(object)]
    }

    /// Returns the number of all references that [`HeapGraph::references`] returns.
    pub fn reference_count(&self) -> usize {
        self.targets.len()
    }

    /// Returns the range of an object's references among those of all objects.
    #[inline]
    pub fn reference_range(&self, object: ObjectIndex) -> Range<usize> {
        self.starts.range(object.at())
    }

    /// Returns the owner of the reference at that index among all, below
    /// [`HeapGraph::reference_count`].
    pub fn owner_of_reference(&self, at: usize) -> ObjectIndex {
        ObjectIndex(self.starts.count_up_to(at) as u32 - 1)
    }

    /// Returns the referents of all `java.lang.ref.Reference`s, ascending by owner.
    pub fn referents(&self) -> &[Referent] {
        &self.referents
    }

    /// Returns the referents of one object.
    pub fn referents_of(&self, object: ObjectIndex) -> &[Referent] {
        let from = self.referents.partition_point(|r| r.owner < object);
        let count = self.referents[from..].partition_point(|r| r.owner == object);
        &self.referents[from..from + count]
    }

    /// Returns the objects that an object keeps alive: non-null references and followed referents.
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

    /// Returns all root entries, ascending by object; those of one object in the dump's order.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns the objects with a root entry.
    pub fn root_set(&self) -> ObjectSet {
        ObjectSet::from_graph(self.len(), self.roots.iter().map(|root| root.object))
    }

    /// Returns the root entries of one object.
    pub fn roots_of(&self, object: ObjectIndex) -> &[Root] {
        let from = self.roots.partition_point(|r| r.object < object);
        let count = self.roots[from..].partition_point(|r| r.object == object);
        &self.roots[from..from + count]
    }

    /// Returns the one kind to show for a root, as Perfetto chooses it: sticky class, then JNI
    /// global, then JNI local, then the first that the dump lists.
    pub fn root_kind(&self, object: ObjectIndex) -> Option<RootKind> {
        let roots = self.roots_of(object);
        let first = roots.first()?.kind;
        use RootKind::{JniGlobal, JniLocal, StickyClass};
        let best = [StickyClass, JniGlobal, JniLocal]
            .into_iter()
            .find(|&kind| roots.iter().any(|r| r.kind == kind));
        Some(best.unwrap_or(first))
    }

    /// Returns whether the object is referred to but was never dumped.
    pub fn is_placeholder(&self, object: ObjectIndex) -> bool {
        self.placeholders.binary_search(&object).is_ok()
    }

    /// Returns the source of the objects' contents.
    pub fn contents(&self) -> &dyn Contents {
        &*self.contents
    }

    /// Releases the contents of all objects: see [`Contents::release`].
    pub fn release_contents(&self) {
        self.contents.release(0..self.len());
    }

    /// Returns the source of the contents for changes, such as new names of fields.
    pub fn contents_mut(&mut self) -> &mut dyn Contents {
        &mut *self.contents
    }

    /// Returns the class that a class object represents.
    pub fn class_behind(&self, object: ObjectIndex) -> Option<ClassIndex> {
        let at = self
            .class_objects
            .binary_search_by_key(&object, |c| c.0)
            .ok()?;
        Some(self.class_objects[at].1)
    }
}

/// Source of the contents of objects. Any thread can use it.
pub trait Contents: Send + Sync {
    /// Visits the fields (elements, statics) of an object, including nulls, in the dump's order,
    /// until `visit` breaks. A heap graph has references only; an HPROF has all fields.
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    );

    /// Returns the dump's name of the reference at an index of [`HeapGraph::references`], including
    /// the declaring class; `None` if the dump does not name it, or if such indices do not exist in
    /// the dump (HPROF). Cheap enough for a walk over all references.
    fn reference_name(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        at: usize,
    ) -> Option<ReferenceName<'_>> {
        let _ = (graph, object, at);
        None
    }

    /// Returns the first `most` fields of a class and its superclasses that are references of the
    /// graph; none if the dump does not name references by place.
    fn reference_fields(
        &self,
        graph: &HeapGraph,
        class: ClassIndex,
        most: usize,
    ) -> Box<[ReferenceField]> {
        let _ = (graph, class, most);
        Box::default()
    }

    /// Returns which of these fields of its class, at most 64, refer to something in an instance:
    /// one bit each, the first one lowest. `None` for other objects, or if the dump does not name
    /// references by place. Faster than visiting the fields.
    fn filled_fields(&self, object: ObjectIndex, fields: &[ReferenceField]) -> Option<u64> {
        let _ = (object, fields);
        None
    }

    /// Returns the result of [`Contents::filled_fields`] for all reference fields of an instance with that
    /// many references, if it is known without reading the instance. `None` for arrays, class objects and
    /// instances of `java.lang.ref.Reference`.
    fn known_filled_fields(
        &self,
        class: ClassIndex,
        object: ObjectIndex,
        references: usize,
    ) -> Option<u64> {
        let _ = (class, object, references);
        None
    }

    /// Returns whether [`Contents::fields`] includes primitive values: if not, a missing field has
    /// no meaning.
    fn has_values(&self) -> bool {
        false
    }

    /// Returns an array of primitives.
    fn primitive_array(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
    ) -> Option<PrimitiveArray<'_>> {
        let _ = (graph, object);
        None
    }

    /// Returns the number of elements of an array of objects, including nulls; `None` for any other
    /// object.
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

    /// Returns the index of the first element of an array of objects that refers to `target`; `None` if
    /// there is none, and for any other object.
    fn element_of(
        &self,
        graph: &HeapGraph,
        array: ObjectIndex,
        target: ObjectIndex,
    ) -> Option<u32> {
        let mut found = None;
        self.fields(graph, array, &mut |field| match field.element {
            Some(at) if field.value == Value::Object(target) => {
                found = Some(at);
                ControlFlow::Break(())
            }
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        });
        found
    }

    /// Returns the text of a `java.lang.String`.
    fn string(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
        let _ = (graph, object);
        None
    }

    /// Releases memory that can be read again, such as mapped parts of the file, of the objects with
    /// these indexes; they mostly follow one another there as they do here. For walks over many
    /// contents: otherwise the whole file counts as memory of the process.
    fn release(&self, objects: Range<usize>) {
        let _ = objects;
    }

    /// Returns the stack that allocated the object, top frame first, and the thread's name or ID,
    /// if allocations were tracked.
    fn allocated_at(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<AllocationSite> {
        let _ = (graph, object);
        None
    }

    /// Returns a thread by the serial number in [`super::Root::thread`].
    fn thread(&self, graph: &HeapGraph, serial: u32) -> Option<ThreadFacts> {
        let _ = (graph, serial);
        None
    }

    /// Returns a frame of a thread's stack by the number in [`super::Root::frame`], such as
    /// `lab.LeakLab.main (LeakLab.java:42)`.
    fn thread_frame(&self, serial: u32, frame: u32) -> Option<String> {
        let _ = (serial, frame);
        None
    }

    /// Returns the object's `System.identityHashCode`, which logs show after the `@`, if the dump
    /// has it: ART keeps it in `shadow$_monitor_` after the first request.
    fn identity_hash(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        let _ = (graph, object);
        None
    }

    /// Gives fields their original names, which [`Contents::fields`] returns from then on. For
    /// names outside [`super::Class::fields`]: statics, and names stored with objects.
    fn rename_fields(&mut self, renamer: &dyn FieldRenamer) {
        let _ = renamer;
    }
}

/// Contents of a dump of which only the graph is known.
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
            if visit(Field::from_value(value)).is_break() {
                return;
            }
        }
    }
}
