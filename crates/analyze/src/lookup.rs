//! Access to single fields of an object by their source names.

use std::ops::ControlFlow;

use super::fields::{NamedField, visit};
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectIndex, Value};

/// Returns the value of an instance field; `None` if the dump does not contain it. `class` is the
/// declaring class, so a field of the same name in a subclass does not match. It is ignored if the
/// dump does not record declaring classes.
pub(super) fn get(
    graph: &HeapGraph,
    object: ObjectIndex,
    class: &str,
    name: &str,
) -> Option<Value> {
    first(graph, object, |found| {
        !found.is_static
            && found.name == Some(name)
            && found
                .declared_in
                .is_none_or(|c| graph.class(c).shown() == class)
    })
}

/// Returns the value of an instance field by name alone; the most derived class wins.
pub(super) fn any(graph: &HeapGraph, object: ObjectIndex, name: &str) -> Option<Value> {
    first(graph, object, |found| {
        !found.is_static && found.name == Some(name)
    })
}

/// Returns the value of the first of these instance fields that the object has.
pub(super) fn one_of(graph: &HeapGraph, object: ObjectIndex, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| any(graph, object, name))
}

/// Returns the value of a static of the class that a class object represents.
pub(super) fn of_class(graph: &HeapGraph, class: ClassIndex, name: &str) -> Option<Value> {
    let object = graph.class(class).object?;
    first(graph, object, |found| found.name == Some(name))
}

fn first(
    graph: &HeapGraph,
    object: ObjectIndex,
    mut wanted: impl FnMut(&NamedField<'_>) -> bool,
) -> Option<Value> {
    let mut value = None;
    visit(graph, object, |found| {
        if wanted(&found) {
            value = Some(found.value);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    value
}

/// Returns the non-null elements of an array of objects, each with its index.
pub(super) fn elements(graph: &HeapGraph, array: ObjectIndex) -> Vec<(u32, ObjectIndex)> {
    let mut all = Vec::new();
    visit(graph, array, |found| {
        if let (Some(element), Value::Object(object)) = (found.element, found.value) {
            all.push((element, object));
        }
        ControlFlow::Continue(())
    });
    all
}

/// Returns the name of an enum constant: the static of its class that refers to it, which also
/// works in a dump without strings, otherwise the text of `Enum.name`.
pub(super) fn constant(graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
    let mut name = None;
    // A constant with a body has its own class below the enum.
    for class in graph.ancestry(graph.class_of(object)).take(3) {
        let Some(holder) = graph.class(class).object else {
            continue;
        };
        visit(graph, holder, |found| {
            if found.value == Value::Object(object) && found.element.is_none() {
                name = found.name.map(str::to_owned);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if name.is_some() {
            return name;
        }
    }
    let text = get(graph, object, "java.lang.Enum", "name")?.object()?;
    platform_text(graph, text)
}

/// Returns a short text that the platform or a compiler wrote. It is shown where texts are not, so it
/// has only what such a text can have: in a dump with other contents, it can be a text of the app.
pub(super) fn platform_text(graph: &HeapGraph, string: ObjectIndex) -> Option<String> {
    plain_text(&graph.contents().string(graph, string)?)
}

/// Returns the usual characters of a platform text, at most 60; `None` without any.
pub(super) fn plain_text(text: &str) -> Option<String> {
    let is_usual = |c: &char| c.is_alphanumeric() || " _$.-&".contains(*c);
    let usual: String = text.chars().filter(is_usual).take(60).collect();
    Some(usual).filter(|text| !text.is_empty())
}
