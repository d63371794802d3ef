//! Sizes kept by leaks: bytes that only leaks reach, each counted once, for the first leak that
//! reaches them.

use std::collections::BTreeMap;

use heaptap_model::heap_graph::{
    ClassIndex, Follow, HeapGraph, ObjectIndex, ObjectSet, Retained, RootKind,
};

/// Size kept by a leak, and the number of leaking objects among them by class.
pub(super) type KeptByLeak = (Retained, BTreeMap<ClassIndex, u64>);

/// Returns the size that each of `leaks` keeps, in their order, and the marks of all kept objects.
pub(super) fn of(
    graph: &HeapGraph,
    leaks: &[ObjectIndex],
    leaking: &ObjectSet,
) -> (Vec<KeptByLeak>, ObjectSet) {
    // Objects that roots reach without passing a leak are not kept by leaks.
    let mut seen = ObjectSet::new(graph.len());
    let mut stack = Vec::new();
    for root in graph.roots() {
        if root.kind != RootKind::Unreachable
            && !leaking.contains(root.object)
            && seen.insert(root.object)
        {
            stack.push(root.object);
        }
    }
    while let Some(object) = stack.pop() {
        for target in graph.kept_by(object, Follow::STRONG) {
            if !leaking.contains(target) && seen.insert(target) {
                stack.push(target);
            }
        }
    }
    let mut claimed = ObjectSet::new(graph.len());
    for &leak in leaks {
        seen.insert(leak);
    }
    let mut all = Vec::with_capacity(leaks.len());
    for &leak in leaks {
        let mut kept = Retained::default();
        let mut nested = BTreeMap::new();
        stack.push(leak);
        while let Some(object) = stack.pop() {
            claimed.insert(object);
            kept.add(Retained {
                bytes: graph.shallow_bytes(object),
                native_bytes: graph.native_bytes(object),
                count: 1,
            });
            if object != leak && leaking.contains(object) {
                *nested.entry(graph.class_of(object)).or_default() += 1;
            }
            for target in graph.kept_by(object, Follow::STRONG) {
                if seen.insert(target) {
                    stack.push(target);
                }
            }
        }
        all.push((kept, nested));
    }
    (all, claimed)
}
