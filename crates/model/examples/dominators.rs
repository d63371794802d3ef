//! Builds a heap graph of four objects and prints the retained size of each.
//!
//! ```console
//! $ cargo run -p heaptap-model --example dominators
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_model::heap_graph::{
    Class, ClassIndex, Dominators, DumpFacts, Follow, GraphBuilder, HeapKind, NewObject,
    NoContents, ObjectId, RootKind,
};

/// Name, shallow size in bytes, and the IDs of the objects that it refers to.
const OBJECTS: [(&str, u64, &[u64]); 4] = [
    ("Activity", 100, &[2, 3]),
    ("View", 50, &[4]),
    ("Cache", 20, &[4]),
    ("Bitmap", 4000, &[]),
];

fn dominators() -> Result<String, Box<dyn std::error::Error>> {
    let mut builder = GraphBuilder::default();
    let mut classes = Vec::new();
    for (at, (name, shallow_bytes, targets)) in OBJECTS.into_iter().enumerate() {
        builder.object(NewObject {
            id: ObjectId(at as u64 + 1),
            class: ClassIndex(at as u32),
            shallow_bytes,
            heap: HeapKind::App,
        });
        targets
            .iter()
            .for_each(|id| builder.reference(ObjectId(*id)));
        classes.push(Class {
            name: name.to_owned(),
            ..Class::default()
        });
    }
    builder.root(ObjectId(1), RootKind::JniGlobal, None, None);
    let facts = DumpFacts::default();
    let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false)?;
    let dominators = Dominators::compute(&graph, Follow::default());
    let mut text = String::new();
    for object in graph.objects() {
        let name = graph.class(graph.class_of(object)).shown();
        let retained = dominators.retained_bytes(object);
        text += &format!(
            "{name:8} {:>5} {retained:>5}\n",
            graph.shallow_bytes(object)
        );
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", dominators()?);
    Ok(())
}

#[test]
fn activity_retains_what_two_of_its_fields_share() {
    let text = dominators().unwrap();
    assert_eq!(text.lines().next(), Some("Activity   100  4170"));
}
