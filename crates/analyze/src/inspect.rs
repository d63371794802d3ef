//! One object in full: sizes, fields with values, text or elements, who refers to it.

use super::fields;
use super::label;
use super::paths::{self, Link, RootReason};
use heaptap_model::heap_graph::{
    AllocationSite, BasicType, Dominators, Follow, HeapGraph, HeapKind, ObjectId, ObjectIndex,
    PrimitiveArray, Referrers, Retained, Value,
};
use std::ops::ControlFlow;

/// One object in full.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The object.
    pub object: ObjectIndex,
    /// Its class; `class X` for class objects.
    pub name: String,
    /// Its class and superclasses, nearest first.
    pub ancestry: Vec<String>,
    /// Its heap.
    pub heap: HeapKind,
    /// Its own size, bytes.
    pub shallow_bytes: u64,
    /// Native bytes it owns.
    pub native_bytes: u64,
    /// What would be free without it; `None` where no root reaches it.
    pub retained: Option<Retained>,
    /// Why it is a root, where it is one.
    pub root: Option<RootReason>,
    /// The object right above it in the dominator tree.
    pub dominator: Option<ObjectIndex>,
    /// The text of a string.
    pub text: Option<String>,
    /// Length and type of an array.
    pub array: Option<Array>,
    /// Its fields or elements, at most as many as were asked for.
    pub fields: Vec<InspectedField>,
    /// How many it has.
    pub fields_total: u64,
    /// Who refers to it, at most as many as were asked for.
    pub referrers: Vec<(ObjectIndex, Link)>,
    /// How many do.
    pub referrers_total: u64,
    /// Where it was allocated, where the dump has that.
    pub allocated_at: Option<AllocationSite>,
}

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Number of elements.
    pub length: u64,
    /// The first elements of one of primitives, where the dump has them.
    pub elements: Vec<Value>,
}

/// A field, static or element.
#[derive(Debug, Clone, PartialEq)]
pub struct InspectedField {
    /// Its name; `None` for elements and where the dump does not tell.
    pub name: Option<String>,
    /// Index of an element.
    pub element: Option<u32>,
    /// Its type as Java writes it, where that is known.
    pub type_name: Option<String>,
    /// The class that declares it, where that is known.
    pub declared_in: Option<String>,
    /// Whether it is a static.
    pub is_static: bool,
    /// What it holds.
    pub value: Value,
    /// The text of a string it refers to.
    pub text: Option<String>,
}

/// Strings in fields are cut to this many characters; the inspected object's own to more.
const FIELD_TEXT: usize = 200;
/// See [`FIELD_TEXT`].
const OWN_TEXT: usize = 100_000;

/// Looks at an object: at most `most` fields and as many referrers.
pub fn inspect(
    graph: &HeapGraph,
    dominators: &Dominators,
    referrers: &Referrers,
    object: ObjectIndex,
    most: usize,
) -> Inspection {
    let contents = graph.contents();
    let class = graph.class_of(object);
    let mut shown = Vec::new();
    let mut total = 0u64;
    fields::visit(graph, object, |field| {
        total += 1;
        if shown.len() < most {
            let text = field
                .value
                .object()
                .and_then(|target| contents.string(graph, target))
                .map(|text| cut(text, FIELD_TEXT));
            shown.push(InspectedField {
                name: field.name.map(str::to_owned),
                element: field.element,
                type_name: field.type_name.map(str::to_owned),
                declared_in: field.declared_in.map(|c| graph.class(c).shown().to_owned()),
                is_static: field.is_static,
                value: field.value,
                text,
            });
        }
        ControlFlow::Continue(())
    });
    let primitives = contents.primitive_array(graph, object);
    let array = match primitives {
        Some(array) => Some(Array {
            length: array.length.into(),
            elements: elements(array, most),
        }),
        None if graph.class(class).is_array() => Some(Array {
            length: total,
            elements: Vec::new(),
        }),
        None => None,
    };
    Inspection {
        object,
        name: label::object_name(graph, object).into_owned(),
        ancestry: graph
            .ancestry(class)
            .take(64)
            .map(|c| label::class_name(graph, c).to_owned())
            .collect(),
        heap: graph.heap_of(object),
        shallow_bytes: graph.shallow_bytes(object),
        native_bytes: graph.native_bytes(object),
        retained: dominators
            .is_reachable(object)
            .then(|| dominators.retained(object)),
        root: paths::root_reason(graph, object),
        dominator: dominators.idom(object),
        text: contents
            .string(graph, object)
            .map(|text| cut(text, OWN_TEXT)),
        array,
        fields: shown,
        fields_total: total,
        referrers: referrers
            .to(object)
            .take(most)
            .map(|owner| (owner, paths::link(graph, owner, object, Follow::ALL)))
            .collect(),
        referrers_total: referrers.to(object).count() as u64,
        allocated_at: contents.allocated_at(graph, object),
    }
}

/// At most `most` characters, `…` behind those that were cut.
fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The first elements of an array of primitives.
fn elements(array: PrimitiveArray<'_>, most: usize) -> Vec<Value> {
    let width = array.element.bytes(8);
    let bytes = array.bytes.unwrap_or(&[]);
    let chunks = bytes.chunks_exact(width).take(most);
    chunks.map(|chunk| element(array.element, chunk)).collect()
}

/// A value from its big-endian bytes.
fn element(basic: BasicType, bytes: &[u8]) -> Value {
    let bits = bytes
        .iter()
        .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    match basic {
        BasicType::Object => Value::Dangling(ObjectId(bits)),
        BasicType::Boolean => Value::Boolean(bits != 0),
        BasicType::Char => Value::Char(bits as u16),
        BasicType::Float => Value::Float(f32::from_bits(bits as u32)),
        BasicType::Double => Value::Double(f64::from_bits(bits)),
        BasicType::Byte => Value::Byte(bits as i8),
        BasicType::Short => Value::Short(bits as i16),
        BasicType::Int => Value::Int(bits as i32),
        BasicType::Long => Value::Long(bits as i64),
    }
}
