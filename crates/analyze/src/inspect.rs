//! Details of one object: sizes, fields with values, text or elements, referrers.

use super::fields;
use super::label;
use super::paths::{self, Link, RootReason};
use heaptap_model::heap_graph::{
    AllocationSite, BasicType, Dominators, Follow, HeapGraph, HeapKind, ObjectId, ObjectIndex,
    PrimitiveArray, Referrers, Retained, Value,
};
use std::ops::ControlFlow;

/// Details of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    pub object: ObjectIndex,
    /// Class name; `class X` for class objects.
    pub name: String,
    /// Class and superclasses, nearest first.
    pub ancestry: Vec<String>,
    pub heap: HeapKind,
    pub shallow_bytes: u64,
    /// Native bytes that the object owns.
    pub native_bytes: u64,
    /// Retained size; `None` if the object is unreachable.
    pub retained: Option<Retained>,
    /// Root reason, if the object is a GC root.
    pub root: Option<RootReason>,
    /// Immediate dominator.
    pub dominator: Option<ObjectIndex>,
    /// Text of a string.
    pub text: Option<String>,
    pub array: Option<Array>,
    /// Fields or elements, up to the requested number.
    pub fields: Vec<InspectedField>,
    /// Total number of fields or elements.
    pub fields_total: u64,
    /// Referring objects, up to the requested number.
    pub referrers: Vec<(ObjectIndex, Link)>,
    /// Total number of referrers.
    pub referrers_total: u64,
    /// Allocation site, if the dump contains it.
    pub allocated_at: Option<AllocationSite>,
}

/// Array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Number of elements.
    pub length: u64,
    /// First elements of an array of primitives, if the dump contains them.
    pub elements: Vec<Value>,
}

/// Field, static or element.
#[derive(Debug, Clone, PartialEq)]
pub struct InspectedField {
    /// Name; `None` for elements, and if the dump does not contain it.
    pub name: Option<String>,
    /// Array index of an element.
    pub element: Option<u32>,
    /// Type in Java syntax, if known.
    pub type_name: Option<String>,
    /// Declaring class, if known.
    pub declared_in: Option<String>,
    /// Whether the field is a static.
    pub is_static: bool,
    pub value: Value,
    /// Text of the string it refers to.
    pub text: Option<String>,
}

/// Maximum length of strings in fields, in characters.
const FIELD_TEXT: usize = 200;
/// Maximum length of the inspected string, in characters.
const OWN_TEXT: usize = 100_000;

/// Returns the details of an object with at most `most` fields and `most` referrers.
pub fn inspect(
    graph: &HeapGraph,
    dominators: &Dominators,
    referrers: &Referrers,
    object: ObjectIndex,
    most: usize,
) -> Inspection {
    let contents = graph.contents();
    let class = graph.class_of(object);
    let primitives = contents.primitive_array(graph, object);
    let length = match primitives {
        Some(array) => Some(array.length),
        None => contents.object_array_length(graph, object),
    };
    // A dump without contents has the length of an array, but no elements.
    let has_elements = primitives.is_none_or(|array| array.bytes.is_some());
    let listed = length.filter(|_| has_elements);
    let mut shown = Vec::new();
    let mut total = 0u64;
    fields::visit(graph, object, |field| {
        total += 1;
        if shown.len() >= most && listed.is_some() {
            // The rest would only be counted.
            return ControlFlow::Break(());
        }
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
    let array = length.map(|length| Array {
        length: length.into(),
        elements: primitives.map_or_else(Vec::new, |array| elements(array, most)),
    });
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
        fields_total: total.max(listed.map_or(0, u64::from)),
        referrers: referrers
            .to(object)
            .take(most)
            .map(|owner| (owner, paths::link(graph, owner, object, Follow::ALL)))
            .collect(),
        referrers_total: referrers.to(object).count() as u64,
        allocated_at: contents.allocated_at(graph, object),
    }
}

/// Cuts a text to `most` characters and appends `…` if it was longer.
pub fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Returns the first `most` elements of an array of primitives.
fn elements(array: PrimitiveArray<'_>, most: usize) -> Vec<Value> {
    let width = array.element.bytes(8);
    let bytes = array.bytes.unwrap_or(&[]);
    let chunks = bytes.chunks_exact(width).take(most);
    chunks.map(|chunk| value(array.element, chunk)).collect()
}

/// Decodes a value from the big-endian bytes of a dump.
pub fn value(basic: BasicType, bytes: &[u8]) -> Value {
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
