//! Native bytes that objects own: the size that a `libcore.util.NativeAllocationRegistry` got when
//! it created a cleaner. `sun.misc.Cleaner` (a phantom reference) has a `thunk`, the outer object
//! of the thunk is the registry, and the registry's `size` counts for the cleaner's referent. A
//! cleaner whose `next` is itself has run.

use super::contents::field;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, Value};
use std::collections::BTreeMap;

const CLEANER: &str = "sun.misc.Cleaner";
const THUNK: &str = "libcore.util.NativeAllocationRegistry$CleanerThunk";

/// Returns native bytes by object, ascending.
pub(super) fn sizes(graph: &HeapGraph) -> Vec<(ObjectIndex, u64)> {
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
        // Newer Android marks in bit 0 that the memory is from malloc.
        if let Some(bytes @ 1..) = size.map(|size| size & !1) {
            let sum = sums.entry(referent.target).or_default();
            *sum = sum.saturating_add(bytes as u64);
        }
    }
    sums.into_iter().collect()
}
