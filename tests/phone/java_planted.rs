//! Heaptap's analysis of the phone's Java heap dumps: exactly the planted leaks, for every Android
//! version and format.

use heaptap::heaps::java::{JavaFile, JavaHeap, JavaOptions, OpenedJava, ProgressReporter};
use heaptap_model::heap_graph::{Follow, HeapGraph, ObjectId, ObjectIndex, Reachable, Retained};
use virtual_phone::{JavaDumpKind, JavaDumpTruth, PlantTruth, VirtualPhone};

use crate::client::{TRACE, phone, pull, record, text};
use crate::java::{APP, java_config};

/// Opens the file on the phone at `path`; also returns the truth about the last dump.
fn open(phone: &VirtualPhone, path: &str, name: &str) -> (JavaHeap, JavaDumpTruth) {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let file = directory.path().join(name);
    std::fs::write(&file, pull(phone, path).expect("it is there")).expect("room for it");
    let mut file = JavaFile::open(
        &file,
        OpenedJava::Unread,
        JavaOptions::default(),
        &ProgressReporter::default(),
    )
    .unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(file.dumps().len(), 1);
    let heap = file.read(0).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(heap.findings.is_empty(), "{:?}", heap.findings);
    (heap, phone.java_truth().pop().expect("a dump"))
}

/// Returns the object at an address of the truth.
fn find(graph: &HeapGraph, truth: &JavaDumpTruth, address: u64) -> Option<ObjectIndex> {
    graph.find(ObjectId(match truth.kind {
        JavaDumpKind::HeapGraph => address / 4,
        JavaDumpKind::Hprof => address,
    }))
}

fn check(heap: &JavaHeap, truth: &JavaDumpTruth, android: u32) {
    let graph = &heap.graph;
    assert_eq!(graph.len() as u64, truth.objects, "{android}");
    let bytes: u64 = graph.objects().map(|o| graph.shallow_bytes(o)).sum();
    assert_eq!(bytes, truth.shallow_bytes, "{android}");
    assert_eq!(heap.follow, Follow::default(), "soft references only");
    let total = heap.dominators().total();
    let reachable = (truth.reachable_objects, truth.reachable_bytes);
    assert_eq!((total.count, total.bytes), reachable, "{android}");
    let natives = truth.kind == JavaDumpKind::Hprof || android >= 13;
    let native: u64 = graph.natives().iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(
        native,
        if natives { truth.native_bytes } else { 0 },
        "{android}"
    );
    for plant in &truth.planted {
        check_plant(heap, truth, plant, natives);
    }
}

fn check_plant(heap: &JavaHeap, truth: &JavaDumpTruth, plant: &PlantTruth, natives: bool) {
    let (graph, dominators) = (&heap.graph, heap.dominators());
    for address in &plant.addresses {
        let object = find(graph, truth, *address).expect("it is in the dump");
        let class = graph.class(graph.class_of(object));
        assert!(
            plant.class.is_empty() || class.name == plant.class,
            "{plant:?}"
        );
        let held = plant.what != "garbage";
        assert_eq!(dominators.is_reachable(object), held, "{plant:?}");
    }
    let Some(keeper) = plant.keeper else {
        return;
    };
    let keeper = find(graph, truth, keeper).expect("it is in the dump");
    assert_eq!(
        dominators.retained(keeper),
        Retained {
            count: plant.retained.objects,
            bytes: plant.retained.bytes,
            native_bytes: if natives {
                plant.retained.native_bytes
            } else {
                0
            },
        },
        "{}",
        plant.what
    );
}

#[test]
fn heap_graphs_of_every_android_hold_what_was_planted() {
    for android in 11..=16 {
        let phone = phone(&format!("android={android},speed=40,java=3000"));
        record(&phone, &java_config(&[APP], android));
        let (heap, truth) = open(&phone, TRACE, "raw-trace");
        assert_eq!(truth.kind, JavaDumpKind::HeapGraph);
        check(&heap, &truth, android);
    }
}

#[test]
fn hprofs_of_every_android_hold_what_was_planted() {
    for android in [10, 11, 13, 16] {
        let phone = phone(&format!("android={android},speed=40,java=3000"));
        let file = "/data/local/tmp/app.hprof";
        text(&phone, &format!("am dumpheap {APP} {file}"));
        let (heap, truth) = open(&phone, file, "app.hprof");
        assert_eq!(truth.kind, JavaDumpKind::Hprof);
        check(&heap, &truth, android);
    }
}

/// The findings of `leaks` for the planted objects: class, the reference to it, and retained bytes.
const LEAKS: [(&str, &str, &str); 4] = [
    ("destroyed-activity", "destroyed Activity", "previous"),
    ("removed-fragment", "removed Fragment", "fragment"),
    ("stopped-service", "stopped Service", "[0]"),
    ("detached-view", "detached View", "mDecor"),
];

#[test]
fn each_planted_leak_is_found_with_what_it_keeps_and_nothing_else() {
    for android in [10, 14, 16] {
        let phone = phone(&format!("android={android},speed=40,java=3000"));
        let file = "/data/local/tmp/app.hprof";
        text(&phone, &format!("am dumpheap {APP} {file}"));
        let (heap, truth) = open(&phone, file, "app.hprof");
        let leaks = heaptap_analyze::leaks::find(&heap.graph);
        let found: Vec<&str> = leaks.groups.iter().map(|g| g.what).collect();
        assert_eq!(found.len(), LEAKS.len(), "{android}: {found:?}");
        for (planted, what, reference) in LEAKS {
            let plant = truth.planted.iter().find(|p| p.what == planted);
            let plant = plant.expect("it is planted");
            let group = leaks.groups.iter().find(|g| g.what == what);
            let group = group.unwrap_or_else(|| panic!("{what} is not in {found:?}"));
            assert_eq!(
                (group.class.as_str(), group.leaks.len()),
                (plant.class.as_str(), 1)
            );
            assert_eq!(Some(group.leaks[0].id.0), plant.keeper, "{what}");
            let kept = group.kept;
            let kept = (kept.count, kept.bytes, kept.native_bytes);
            let retained = plant.retained;
            let retained = (retained.objects, retained.bytes, retained.native_bytes);
            assert_eq!(kept, retained, "{what}");
            let last = &group.path[group.path.len() - 2];
            let shown = last.reference.as_ref().map(|r| r.shown());
            assert_eq!(shown.as_deref(), Some(reference), "{what}");
        }
    }
}

#[test]
fn waste_that_was_planted_is_counted() {
    let phone = phone("android=16,speed=40,java=3000");
    let file = "/data/local/tmp/app.hprof";
    text(&phone, &format!("am dumpheap -b png {APP} {file}"));
    let (heap, truth) = open(&phone, file, "app.hprof");
    let reachable = Reachable::new(&heap.graph, Follow::default());
    let waste = heaptap_analyze::waste::find(&heap.graph, &reachable, 10);
    let planted = |what: &str| {
        let found = truth.planted.iter().find(|p| p.what == what);
        found.unwrap_or_else(|| panic!("no {what}"))
    };
    let strings = planted("duplicate-strings");
    let most = &waste.strings.groups[0];
    assert_eq!(most.count, strings.count);
    assert_eq!(most.each_bytes * most.count, strings.retained.bytes);
    let sparse = planted("sparse-map");
    let table = waste
        .sparse
        .iter()
        .find(|c| Some(c.example_id.0) == sparse.keeper);
    let table = table.expect("the map with far too much room");
    assert_eq!((table.used, table.capacity), (12, 8_192));
    let same = &waste.bitmaps.groups[0];
    assert_eq!(
        (same.count, &same.value[..3], waste.bitmaps.groups.len()),
        (4, "128", 1)
    );
}
