//! Native bytes that Java objects own through a `NativeAllocationRegistry`: a `sun.misc.Cleaner`
//! refers to the object, and through its thunk to the registry with the size.
//!
//! `Cleaner.referent` is the owner, `Cleaner.thunk` a `NativeAllocationRegistry$CleanerThunk` whose
//! `this$0` is the registry. A Cleaner whose `next` is itself has run. Unreachable Cleaners count,
//! too.

use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, UNKNOWN_NATIVE_SIZE, Value};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const CLEANER: &str = "sun.misc.Cleaner";
const THUNK: &str = "libcore.util.NativeAllocationRegistry$CleanerThunk";
/// Bit 0 of a registry's size marks memory of malloc.
const IS_MALLOC: i64 = 1;

/// Returns bytes by owner, ascending, given the sizes of registries.
pub(super) fn native_bytes(
    graph: &HeapGraph,
    sizes: &BTreeMap<ObjectIndex, i64>,
) -> Vec<(ObjectIndex, u64)> {
    if sizes.is_empty() {
        return Vec::new();
    }
    let is_cleaner: Vec<bool> = graph.classes().iter().map(|c| c.name == CLEANER).collect();
    let mut owned: BTreeMap<ObjectIndex, u64> = BTreeMap::new();
    for cleaner in graph.objects() {
        if !is_cleaner[graph.class_of(cleaner).at()] {
            continue;
        }
        let field = |object, class, name| field_of(graph, object, class, name);
        let Some(owner) = field(cleaner, "java.lang.ref.Reference", "referent") else {
            continue;
        };
        let Some(thunk) = field(cleaner, CLEANER, "thunk") else {
            continue;
        };
        if field(cleaner, CLEANER, "next") == Some(cleaner) {
            continue;
        }
        let Some(registry) = field(thunk, THUNK, "this$0") else {
            continue;
        };
        let size = sizes.get(&registry);
        let size = size.filter(|&&size| size != UNKNOWN_NATIVE_SIZE);
        let bytes = size.map_or(0, |size| size & !IS_MALLOC);
        if let Ok(bytes) = u64::try_from(bytes)
            && bytes != 0
        {
            let sum = owned.entry(owner).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    owned.into_iter().collect()
}

/// Returns the object that a field of a declaring class refers to.
pub(super) fn field_of(
    graph: &HeapGraph,
    object: ObjectIndex,
    class: &str,
    name: &str,
) -> Option<ObjectIndex> {
    let mut found = None;
    graph.contents().fields(graph, object, &mut |field| {
        let declared = field.declared_in.map(|class| graph.class(class));
        // A class without instances might not have a type in the dump.
        let in_class = declared.is_none_or(|declared| declared.name == class);
        match field.value {
            Value::Object(target) if field.name == Some(name) && in_class => {
                found = Some(target);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    });
    found
}
