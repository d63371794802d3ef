//! Objects that exist only in ART's dumps, and their real sizes in the runtime: the array of a
//! string's text, which is part of the string itself since Android 6, and the array of objects that
//! a loader keeps in native memory.

use super::evidence::aligned;
use heaptap_model::heap_graph::{ClassKind, HeapGraph, ObjectIndex, Value};
use std::ops::ControlFlow;

/// Bytes of a string before its text.
const STRING_BYTES: u64 = 16;
/// Difference between the ID of a string's array and that of the string; half of it for an empty
/// string.
const TEXT_ID: u64 = 16;
/// Alignment of object addresses.
const ALIGNMENT: u64 = 8;

/// Adds the bytes of their text to strings, and sets objects that exist only in the dump to 0
/// bytes.
pub(super) fn settle(graph: &mut HeapGraph) {
    for object in graph.objects() {
        let kind = graph.class(graph.class_of(object)).kind;
        if kind == ClassKind::String
            && let Some((array, bytes)) = own_text(graph, object)
        {
            graph.shallow.set(array, 0);
            // An array has fewer than 2^32 elements, and its size was already computed.
            let whole = aligned(STRING_BYTES + bytes, ALIGNMENT);
            graph.shallow.set(object, whole);
        }
        if kind == ClassKind::Array && graph.id(object).0 % ALIGNMENT == 4 {
            graph.shallow.set(object, 0);
        }
    }
}

/// Returns the array of a string's text and its bytes if the array exists only in the dump.
fn own_text(graph: &HeapGraph, string: ObjectIndex) -> Option<(ObjectIndex, u64)> {
    let mut array = None;
    graph.contents().fields(graph, string, &mut |field| {
        if field.name != Some("value") {
            return ControlFlow::Continue(());
        }
        array = match field.value {
            Value::Object(array) => Some(array),
            _ => None,
        };
        ControlFlow::Break(())
    });
    let array = array?;
    let text = graph.contents().primitive_array(graph, array)?;
    let after = if text.length == 0 {
        TEXT_ID / 2
    } else {
        TEXT_ID
    };
    if graph.id(array).0 != graph.id(string).0.checked_add(after)? {
        return None;
    }
    let bytes = u64::from(text.length) * text.element.bytes(4) as u64;
    Some((array, bytes))
}
