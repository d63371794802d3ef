//! Single fields of an object by the names of the source code.

use std::ops::ControlFlow;

use super::fields::{NamedField, visit};
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectIndex, Value};

/// The value of an instance field; `None` where the dump does not tell. `class` is the class
/// that declares it, so that a field of the same name in a subclass is not taken for it; it
/// does not count where the dump leaves the declaring class open.
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

/// The value of an instance field by its name alone, the most derived class's first.
pub(super) fn any(graph: &HeapGraph, object: ObjectIndex, name: &str) -> Option<Value> {
    first(graph, object, |found| {
        !found.is_static && found.name == Some(name)
    })
}

/// The value of the first of those instance fields that the object has.
pub(super) fn one_of(graph: &HeapGraph, object: ObjectIndex, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| any(graph, object, name))
}

/// The value of a static of the class that a class object stands for.
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

/// The elements of an array of objects, nulls left out, each with its index.
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

/// The name of an enum's constant: the static of its class that holds it, which a dump without
/// strings has too, or else what `Enum.name` says.
pub(super) fn constant(graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
    let mut name = None;
    // A constant with a body is of a class of its own below the enum.
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
    graph.contents().string(graph, text)
}
