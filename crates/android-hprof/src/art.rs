//! Objects that exist in ART's dumps only, and what they are worth in the runtime: the array of a
//! string's text, which lies in the string itself since Android 6, and the array of objects that
//! a loader holds in native memory.

use super::sizes::aligned;
use heaptap_model::heap_graph::{ClassKind, HeapGraph, ObjectIndex, Value};
use std::ops::ControlFlow;

/// Bytes of a string before its text.
const STRING_BYTES: u64 = 16;
/// The id of a string's array is the string's and this; of an empty one, half.
const TEXT_ID: u64 = 16;
/// Every object's address is a multiple of this.
const ALIGNMENT: u64 = 8;

/// Gives strings the bytes of their text, and what exists in the dump only none.
pub(super) fn settle(graph: &mut HeapGraph) {
    for object in graph.objects() {
        let kind = graph.class(graph.class_of(object)).kind;
        if kind == ClassKind::String
            && let Some((array, bytes)) = own_text(graph, object)
        {
            graph.shallow[array.at()] = 0;
            // An array has fewer than 2^32 elements, and its size was counted already.
            let whole = aligned(STRING_BYTES + bytes, ALIGNMENT);
            graph.shallow[object.at()] = u32::try_from(whole).unwrap_or(u32::MAX - 1);
        }
        if kind == ClassKind::Array && graph.id(object).0 % ALIGNMENT == 4 {
            graph.shallow[object.at()] = 0;
        }
    }
}

/// The array of a string's text and its bytes, where it is the dump's own.
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
