//! Random heaps: the search terminates and its results are consistent.

use super::*;

/// Random heaps: any class with any fields, references to anywhere, cycles and unreachable objects.
fn random(seed: u64) -> HeapGraph {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut heap = android();
    if chance.bool() {
        heap = heap.without_values();
    }
    heap.class(
        "java.util.ArrayList",
        "java.lang.Object",
        &[("elementData", Is::Null), ("size", Is::Int(0))],
    );
    heap.class(
        "java.util.HashMap",
        "java.lang.Object",
        &[("size", Is::Int(0)), ("table", Is::Null)],
    );
    heap.class(
        "java.util.HashMap$Node",
        "java.lang.Object",
        &[("key", Is::Null), ("value", Is::Null), ("next", Is::Null)],
    );
    heap.class(
        "java.util.concurrent.ConcurrentHashMap",
        "java.util.HashMap",
        &[("counterCells", Is::Null)],
    );
    heap.class(
        "java.util.ArrayDeque",
        "java.lang.Object",
        &[
            ("head", Is::Int(0)),
            ("tail", Is::Int(0)),
            ("elements", Is::Null),
        ],
    );
    heap.class(
        "java.lang.Integer",
        "java.lang.Object",
        &[("value", Is::Int(0))],
    );
    heap.class(
        "android.graphics.Bitmap",
        "java.lang.Object",
        &[
            ("mWidth", Is::Int(0)),
            ("mHeight", Is::Int(0)),
            ("mBuffer", Is::Null),
            ("mNativePtr", Is::Long(0)),
        ],
    );
    let declared = heap.declared();
    let mut all: Vec<Obj> = Vec::new();
    for _ in 0..chance.usize(5..60) {
        let object = match chance.u8(0..10) {
            0 => heap.string("text"),
            1 => heap.primitives(heaptap_model::heap_graph::BasicType::Byte, &[7; 9]),
            2 => {
                let elements: Vec<Option<Obj>> = (0..chance.usize(0..80))
                    .map(|_| chance.choice(&all).copied().filter(|_| chance.bool()))
                    .collect();
                heap.array("java.lang.Object[]", &elements)
            }
            _ => {
                let class = chance.choice(&declared).expect("there are some").clone();
                heap.new_object(&class, &[])
            }
        };
        all.push(object);
    }
    for &object in &all {
        for (field, is) in heap.fields_of(object) {
            let any = chance.choice(&all).map_or(Is::Null, |&o| Is::Ref(o));
            let is = match is {
                _ if chance.u8(0..3) == 0 => continue,
                Is::Null | Is::Ref(_) => any,
                Is::Bool(_) => Is::Bool(chance.bool()),
                Is::Int(_) => Is::Int(chance.i32(..)),
                Is::Long(_) => Is::Long(chance.i64(..)),
            };
            heap.set(object, &field, is);
        }
    }
    for _ in 0..chance.usize(1..8) {
        let object = *chance.choice(&all).expect("there are some");
        match chance.u8(0..4) {
            0 => heap.fixed(
                "android.app.ActivityThread",
                "sCurrentActivityThread",
                Is::Ref(object),
            ),
            1 => heap.fixed("android.graphics.Bitmap", "dumpData", Is::Ref(object)),
            2 => heap.thread_root(object, RootKind::JavaFrame, chance.u32(0..3)),
            _ => keep(&mut heap, "ANY", object),
        }
    }
    heap.graph()
}

#[test]
fn heaps_of_chance_end_and_agree_with_themselves() {
    for seed in 0..400 {
        let graph = random(seed);
        let leaks = find(&graph);
        let reachable = heaptap_model::heap_graph::Reachable::new(
            &graph,
            heaptap_model::heap_graph::Follow::ALL,
        );
        for group in &leaks.groups {
            assert!(!group.leaks.is_empty(), "{seed}");
            assert_eq!(
                group.path.last().map(|s| s.status),
                Some(Status::Leaking),
                "{seed}"
            );
            assert!(
                group.path.iter().all(|step| !step.class.is_empty()),
                "{seed}"
            );
            let count: u64 = group.leaks.iter().map(|leak| leak.kept.count).sum();
            assert_eq!(group.kept.count, count, "{seed}");
            for leak in &group.leaks {
                assert!(reachable.contains(leak.object), "{seed}");
                assert!(leak.kept.count >= 1, "{seed}");
            }
        }
        // Kept objects are counted once.
        let kept: u64 = leaks.groups.iter().map(|group| group.kept.count).sum();
        assert!(kept <= graph.len() as u64, "{seed}");
        let waste = crate::waste::find(&graph, &reachable, 3);
        assert!(waste.strings.groups.len() <= 3, "{seed}");
        let snapshot = crate::growth::Snapshot::from_graph(&graph);
        let same = crate::growth::compare(&[snapshot.clone(), snapshot], &graph, 1);
        assert!(same.paths.is_empty() && same.classes.is_empty(), "{seed}");
    }
}
