//! Native bytes that objects own.
//!
//! - Android: the size that a `libcore.util.NativeAllocationRegistry` got when it created a cleaner.
//!   `sun.misc.Cleaner` (a phantom reference) has a `thunk`, the outer object of the thunk is the
//!   registry, and the registry's `size` counts for the cleaner's referent.
//! - Java SE: the `capacity` of a `java.nio.DirectByteBuffer` that has a cleaner. Slices, duplicates
//!   and views have none, because the memory belongs to another buffer. The cleaner of a mapped file
//!   unmaps it: its pages are those of the file.
//!
//! A cleaner whose `next` is itself has run.

use super::contents::field;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, UNKNOWN_NATIVE_SIZE, Value};
use std::collections::BTreeMap;

const CLEANER: &str = "sun.misc.Cleaner";
const THUNK: &str = "libcore.util.NativeAllocationRegistry$CleanerThunk";
const BUFFER: &str = "java.nio.DirectByteBuffer";

/// Returns native bytes by object, ascending.
pub(super) fn sizes(graph: &HeapGraph) -> Vec<(ObjectIndex, u64)> {
    match graph.is_of_java_se() {
        true => direct_buffers(graph),
        false => registered(graph),
    }
}

fn direct_buffers(graph: &HeapGraph) -> Vec<(ObjectIndex, u64)> {
    let classes = graph.classes().iter();
    let is_buffer: Vec<bool> = classes.map(|class| class.name == BUFFER).collect();
    if !is_buffer.contains(&true) {
        return Vec::new();
    }
    let contents = graph.contents();
    let bytes = |buffer: ObjectIndex| {
        let object = |of, name| field(contents, graph, of, name).and_then(Value::object);
        let cleaner = object(buffer, "cleaner")?;
        let unmaps = object(cleaner, "thunk").is_some_and(|thunk| {
            let class = graph.class(graph.class_of(thunk));
            class.name.ends_with("Unmapper")
        });
        let has_run = object(cleaner, "next") == Some(cleaner);
        let capacity = field(contents, graph, buffer, "capacity")?.integer()?;
        let bytes = u64::try_from(capacity).ok().filter(|&bytes| bytes > 0)?;
        (!unmaps && !has_run).then_some((buffer, bytes))
    };
    let objects = graph.objects();
    let buffers = objects.filter(|&object| is_buffer[graph.class_of(object).at()]);
    buffers.filter_map(bytes).collect()
}

fn registered(graph: &HeapGraph) -> Vec<(ObjectIndex, u64)> {
    let classes = graph.classes();
    if !classes.iter().any(|class| class.name == THUNK) {
        return Vec::new();
    }
    let is_a = |name: &str| -> Vec<bool> {
        let all = (0..classes.len() as u32).map(heaptap_model::heap_graph::ClassIndex);
        all.map(|class| graph.is_a(class, name)).collect()
    };
    let (cleaners, thunks) = (is_a(CLEANER), is_a(THUNK));
    let contents = graph.contents();
    let mut sums: BTreeMap<ObjectIndex, u64> = BTreeMap::new();
    for cleaner in graph.objects() {
        if !cleaners[graph.class_of(cleaner).at()] {
            continue;
        }
        let Some(referent) = graph.referents_of(cleaner).first() else {
            continue;
        };
        let object = |name| field(contents, graph, cleaner, name).and_then(Value::object);
        if object("next") == Some(cleaner) {
            continue;
        }
        let thunk = object("thunk");
        let thunk = thunk.filter(|&thunk| thunks[graph.class_of(thunk).at()]);
        let registry = thunk.and_then(|thunk| field(contents, graph, thunk, "this$0")?.object());
        let size =
            registry.and_then(|registry| field(contents, graph, registry, "size")?.integer());
        let size = size.filter(|&size| size != UNKNOWN_NATIVE_SIZE);
        // Newer Android marks in bit 0 that the memory is from malloc.
        if let Some(bytes @ 1..) = size.map(|size| size & !1) {
            let sum = sums.entry(referent.target).or_default();
            *sum = sum.saturating_add(bytes as u64);
        }
    }
    sums.into_iter().collect()
}
