//! Whole dumps, made by [`dump::Dump`] and read back.

mod contents;
mod damaged;
pub(crate) mod dump;
mod hostile;
mod java_se;
mod model;
mod shapes;
mod strip;

use super::{Options, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{HeapGraph, ObjectId, ObjectIndex, Value};
use std::ops::ControlFlow;

/// Reads a dump that has a header.
fn graph_of(file: Vec<u8>) -> HeapGraph {
    read(Bytes::from(file), &Options::default()).expect("it has a header")
}

/// Returns the object with that ID.
fn object(graph: &HeapGraph, id: u64) -> ObjectIndex {
    graph.find(ObjectId(id)).expect("the dump has it")
}

/// Returns the IDs that an object refers to, without referents; 0 for IDs missing in the dump.
fn references(graph: &HeapGraph, id: u64) -> Vec<u64> {
    let targets = graph.references(object(graph, id)).iter();
    let id_of = |&target: &ObjectIndex| match target {
        ObjectIndex::NONE => 0,
        target => graph.id(target).0,
    };
    targets.map(id_of).collect()
}

/// Returns all fields of an object by name (elements by number) and value.
fn fields(graph: &HeapGraph, id: u64) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    graph
        .contents()
        .fields(graph, object(graph, id), &mut |field| {
            let element = field.element.map(|element| element.to_string());
            let name = field.name.map(str::to_owned).or(element);
            all.push((name.expect("each has one"), field.value));
            ControlFlow::Continue(())
        });
    all
}

/// Returns the name of an object's class.
fn class_name(graph: &HeapGraph, id: u64) -> &str {
    &graph.class(graph.class_of(object(graph, id))).name
}
