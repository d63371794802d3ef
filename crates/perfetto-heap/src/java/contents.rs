//! Fields of a heap graph's objects by name, computed on request from the list of the object, or
//! from the fields of its class and superclasses. Heap graphs have no primitive values except those
//! of a few fields that are recorded explicitly.

use super::classes::{Names, REFERENT, position_of_referent};
use super::columns::{Shape, ShapeId};
use super::object::{Packed, Rare};
use super::tables::NONE;
use crate::wire::Value as WireValue;
use heaptap_model::heap_graph::{
    ClassIndex, Contents, Field, FieldRenamer, HeapGraph, ObjectIndex, ReferenceName, Value,
};
use std::ops::ControlFlow;

/// The name of references that only the runtime holds.
const INTERNAL: &str = "runtimeInternalObjects";

/// Facts of a trace about its objects other than the graph.
#[derive(Debug, Default)]
pub(super) struct TraceContents {
    pub(super) names: Names,
    /// Lists of numbers of names.
    pub(super) shapes: Vec<FieldList>,
    /// Objects that name their fields, ascending.
    pub(super) shaped: Vec<(ObjectIndex, ShapeId)>,
    /// Objects with references of the runtime, which come last, and their number; ascending.
    pub(super) internals: Vec<(ObjectIndex, u32)>,
    /// Values that only some objects have, ascending.
    pub(super) rare: Vec<(ObjectIndex, Rare)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldList {
    Each(Box<[u32]>),
    Same(u32),
}

impl FieldList {
    /// Translates IDs of a chain, given the numbers of its names.
    pub(super) fn new(shape: &Shape, name: impl Fn(u64) -> u32) -> FieldList {
        let mut ids = Packed::default();
        ids.add(WireValue::Bytes(&shape.ids));
        let mut list = Vec::new();
        ids.each(|id| list.push(name(id)));
        match (shape.same, &list[..]) {
            (true, &[one]) => FieldList::Same(one),
            _ => FieldList::Each(list.into()),
        }
    }

    fn get(&self, at: usize) -> u32 {
        match self {
            FieldList::Each(all) => all.get(at).copied().unwrap_or(NONE),
            FieldList::Same(one) => *one,
        }
    }

    /// Returns the position of `Reference.referent`, given the names that denote it.
    pub(super) fn referent(&self, referents: &[bool]) -> Option<u32> {
        match self {
            FieldList::Each(all) => position_of_referent(all, referents),
            FieldList::Same(_) => None,
        }
    }

    /// Returns the number of references without a name, out of `of`.
    pub(super) fn unnamed(&self, of: u32) -> u32 {
        match self {
            FieldList::Each(all) => all.iter().filter(|&&name| name == NONE).count() as u32,
            FieldList::Same(NONE) => of,
            FieldList::Same(_) => 0,
        }
    }
}

fn find<T: Copy>(all: &[(ObjectIndex, T)], object: ObjectIndex) -> Option<T> {
    let at = all.binary_search_by_key(&object, |entry| entry.0).ok()?;
    Some(all[at].1)
}

impl TraceContents {
    /// Passes references by their index among the object's, with the number of their name.
    fn each_named(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(usize, u32) -> ControlFlow<()>,
    ) {
        let count = graph.references(object).len();
        let list = find(&self.shaped, object).map(|shape| &self.shapes[shape.0 as usize]);
        let mut chain = self.names.of_class(graph.class_of(object));
        for at in 0..count {
            let name = match list {
                Some(list) => list.get(at),
                None => chain.next().unwrap_or(NONE),
            };
            if visit(at, name).is_break() {
                return;
            }
        }
    }
}

impl Contents for TraceContents {
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        let class = graph.class_of(object);
        let is_array = graph.class(class).is_array();
        let is_class = graph.class_behind(object).is_some();
        let references = graph.references(object);
        let internal = find(&self.internals, object).unwrap_or(0) as usize;
        let own = references.len().saturating_sub(internal);
        let referents = graph.referents_of(object);
        let mut stopped = false;
        self.each_named(graph, object, &mut |at, number| {
            let mut field = Field::from_value(match references[at] {
                ObjectIndex::NONE => Value::Null,
                target => Value::Object(target),
            });
            if at >= own {
                field.name = Some(INTERNAL);
            } else if let Some(name) = self.names.names.get(number as usize) {
                let parts = name.parts();
                if parts.qualified == REFERENT
                    && let Some(referent) = referents.first()
                {
                    field.value = Value::Object(referent.target);
                }
                // Arrays of Android 11 have an empty name.
                if !parts.field.is_empty() {
                    let original = name.original.as_ref().map(|(_, name)| &**name);
                    field.name = Some(original.unwrap_or(parts.field));
                    field.recorded = original.map(|_| parts.field);
                }
                field.type_name = name.original_type.as_deref().or(parts.type_name);
                field.declared_in = name.declared_in;
                let of_class_itself = parts
                    .class
                    .is_some_and(|c| c == "java.lang.Class" || c == "java.lang.Object");
                field.is_static = is_class && !of_class_itself;
            }
            if is_array && at < own && field.name.is_none() {
                field.element = Some(at as u32);
            }
            let flow = visit(field);
            stopped = flow.is_break();
            flow
        });
        if stopped {
            return;
        }
        if let Some(rare) = find(&self.rare, object) {
            each_rare(&rare, class, visit);
        }
    }

    fn reference_name(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        at: usize,
    ) -> Option<ReferenceName<'_>> {
        if let Some(internal) = find(&self.internals, object)
            && at + internal as usize >= graph.references(object).len()
        {
            return Some(ReferenceName {
                qualified: INTERNAL,
                type_name: None,
                original: None,
            });
        }
        let number = match find(&self.shaped, object) {
            Some(shape) => self.shapes[shape.0 as usize].get(at),
            None => self.names.of_class(graph.class_of(object)).nth(at)?,
        };
        let name = self.names.names.get(number as usize)?;
        let parts = name.parts();
        Some(ReferenceName {
            qualified: parts.qualified,
            type_name: parts.type_name,
            original: name
                .original
                .as_ref()
                .map(|(class, name)| (&**class, &**name)),
        })
    }

    fn rename_fields(&mut self, renamer: &dyn FieldRenamer) {
        for name in &mut self.names.names {
            let parts = name.parts();
            let Some(class) = parts.class else { continue };
            let original = renamer.field(class, parts.field, parts.type_name);
            let original_type = parts.type_name.and_then(|t| renamer.type_name(t));
            name.original = original.map(|field| (field.class.into(), field.name.into()));
            name.original_type = original_type.map(Into::into);
        }
    }
}

/// Visits the values that a heap graph has of a few fields, as an HPROF would have them.
fn each_rare(rare: &Rare, class: ClassIndex, visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>) {
    let all = [
        ("mId", "long", rare.bitmap_id.map(Value::Long)),
        ("mSourceId", "long", rare.bitmap_source_id.map(Value::Long)),
        ("mWidth", "int", rare.width.map(Value::Int)),
        ("mHeight", "int", rare.height.map(Value::Int)),
        (
            "longVersionCode",
            "long",
            rare.version_code.map(Value::Long),
        ),
        ("size", "long", rare.registry_size.map(Value::Long)),
    ];
    for (name, type_name, value) in all {
        let Some(value) = value else { continue };
        let field = Field {
            name: Some(name),
            element: None,
            type_name: Some(type_name),
            declared_in: Some(class),
            is_static: false,
            recorded: None,
            value,
        };
        if visit(field).is_break() {
            return;
        }
    }
}
