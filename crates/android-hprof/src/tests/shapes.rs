//! Dumps as the runtimes write them.

use super::dump::{ClassSpec, Dump, Val};
use super::{class_name, fields, graph_of, object, references};
use crate::records::{IdSize, tag};
use crate::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::BasicType::{Byte, Int, Long, Object};
use heaptap_model::heap_graph::{
    ClassKind, Follow, HeapKind, ObjectId, Reachable, ReferenceKind, RootKind, SizeModel,
};

pub(super) const OBJECT: u64 = 0x100;
const CLASS: u64 = 0x110;
pub(super) const NODE: u64 = 0x120;
pub(super) const ARRAY: u64 = 0x130;

/// Adds `java.lang.Object`, `java.lang.Class`, a class with a reference and a number, and arrays of
/// objects, with the runtime's names.
pub(super) fn with_classes(dump: &mut Dump) -> &mut Dump {
    dump.class(&ClassSpec {
        id: OBJECT,
        name: "java.lang.Object",
        instance_bytes: 8,
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: CLASS,
        name: "java.lang.Class",
        superclass: OBJECT,
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: NODE,
        name: "a.Node",
        superclass: OBJECT,
        instance_bytes: 16,
        fields: &[("next", Object), ("n", Int)],
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: ARRAY,
        name: "java.lang.Object[]",
        superclass: OBJECT,
        ..ClassSpec::default()
    })
}

pub(super) fn node(dump: &mut Dump, id: u64, next: u64) -> &mut Dump {
    dump.instance(id, NODE, &[Val::Ref(next), Val::Int(7)])
}

#[test]
fn the_filled_fields_of_instances_like_the_first_one_are_known_without_reading() {
    const TRIPLE: u64 = 0x140;
    let mut dump = Dump::art();
    with_classes(&mut dump);
    dump.class(&ClassSpec {
        id: TRIPLE,
        name: "a.Triple",
        superclass: NODE,
        fields: &[("one", Object), ("n", Int), ("two", Object)],
        ..ClassSpec::default()
    });
    let triples = [
        ([1, 0, 0], Some(0b001)),
        ([0, 1, 0], None),
        ([1, 0, 0], Some(0b001)),
        ([0, 1, 1], Some(0b110)),
        ([1, 1, 0], None),
        ([1, 1, 1], Some(0b111)),
        ([0, 0, 0], None),
    ];
    for ([one, two, next], id) in triples.iter().map(|triple| triple.0).zip(0x1000..) {
        let reference = |is_there: u64| Val::Ref(is_there * 0x1000);
        let values = [reference(one), Val::Int(7), reference(two), reference(next)];
        dump.instance(id, TRIPLE, &[&values[..], &[Val::Int(7)]].concat());
    }
    // In a damaged dump, the class of an array can be an ordinary one.
    dump.objects(0x1100, TRIPLE, &[0x1000]);
    // Referents have fields, but are not among the references.
    const REFERENCE: u64 = 0x150;
    const WEAK: u64 = 0x160;
    for (id, name, superclass, fields) in [
        (
            REFERENCE,
            "java.lang.ref.Reference",
            OBJECT,
            &[("referent", Object), ("queue", Object)][..],
        ),
        (WEAK, "java.lang.ref.WeakReference", REFERENCE, &[]),
    ] {
        dump.class(&ClassSpec {
            id,
            name,
            superclass,
            fields,
            ..ClassSpec::default()
        });
    }
    dump.instance(0x1110, WEAK, &[Val::Ref(0x1000), Val::Ref(0x1001)]);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1110), [0x1001]);
    let expected = triples.iter().map(|triple| triple.1).zip(0x1000..);
    for (usual, id) in expected.chain([(None, 0x1100), (None, 0x1110), (None, TRIPLE)]) {
        let own = object(&graph, id);
        let class = graph.class_of(own);
        let count = graph.references(own).len();
        let known = graph.contents().known_filled_fields(class, own, count);
        assert_eq!(known, usual, "{id:x}");
    }
}

#[test]
fn either_width_of_id_is_read_under_any_version_segmented_or_not() {
    for version in [
        "JAVA PROFILE 1.0.1",
        "JAVA PROFILE 1.0.2",
        "JAVA PROFILE 1.0.3",
    ] {
        for id_size in [IdSize::Four, IdSize::Eight] {
            for segment_tag in [tag::HEAP_DUMP, tag::HEAP_DUMP_SEGMENT] {
                let mut dump = Dump::new(version, id_size);
                dump.segment_tag = segment_tag;
                dump.ended = segment_tag == tag::HEAP_DUMP_SEGMENT;
                with_classes(&mut dump);
                node(&mut dump, 0x1000, 0x1010);
                node(&mut dump, 0x1010, 0);
                dump.objects(0x1020, ARRAY, &[0, 0x1000, 0, 0x1010]);
                dump.root(0x05, 0x1020);
                let graph = graph_of(dump.finish());
                assert_eq!(graph.len(), 7, "{version} {id_size:?}");
                assert_eq!(references(&graph, 0x1000), [0x1010]);
                assert_eq!(references(&graph, 0x1020), [0x1000, 0x1010], "no nulls");
                assert_eq!(class_name(&graph, 0x1010), "a.Node");
                assert_eq!(class_name(&graph, NODE), "java.lang.Class");
                assert_eq!(references(&graph, NODE), [OBJECT], "its superclass");
                assert_eq!(graph.facts.losses, Default::default());
            }
        }
    }
}

#[test]
fn objects_may_come_before_their_classes_and_roots_anywhere() {
    let mut dump = Dump::hotspot();
    dump.root(0x07, 0x1010);
    node(&mut dump, 0x1010, 0x1000).segment();
    node(&mut dump, 0x1000, NODE).segment();
    with_classes(&mut dump);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1000), [NODE]);
    let root = graph.roots()[0];
    assert_eq!(root.object, object(&graph, 0x1010));
    assert_eq!(root.kind, RootKind::MonitorUsed);
}

#[test]
fn referents_are_set_apart_by_the_nearest_superclass() {
    let mut dump = Dump::art();
    with_classes(&mut dump);
    let reference = ClassSpec {
        id: 0x200,
        name: "java.lang.ref.Reference",
        superclass: OBJECT,
        fields: &[("queue", Object), ("referent", Object)],
        ..ClassSpec::default()
    };
    dump.class(&reference);
    let sorts = [
        (0x210, "java.lang.ref.WeakReference", ReferenceKind::Weak),
        (0x220, "java.lang.ref.SoftReference", ReferenceKind::Soft),
        (
            0x230,
            "java.lang.ref.FinalizerReference",
            ReferenceKind::Finalizer,
        ),
        (
            0x240,
            "java.lang.ref.PhantomReference",
            ReferenceKind::Phantom,
        ),
    ];
    for (id, name, _) in sorts {
        dump.class(&ClassSpec {
            id,
            name,
            superclass: 0x200,
            ..ClassSpec::default()
        });
        let subclass = ClassSpec {
            id: id + 8,
            name: "a.Mine",
            superclass: id,
            fields: &[("own", Object)],
            ..ClassSpec::default()
        };
        dump.class(&subclass);
        let values = [Val::Ref(0x1000), Val::Ref(0x1010), Val::Ref(0x1020)];
        dump.instance(0x2000 + id, id + 8, &values);
    }
    for id in [0x1000, 0x1010, 0x1020] {
        node(&mut dump, id, 0);
    }
    let graph = graph_of(dump.finish());
    for (id, name, kind) in sorts {
        assert_eq!(references(&graph, 0x2000 + id), [0x1000, 0x1010], "{name}");
        let owner = object(&graph, 0x2000 + id);
        let referents = graph.referents_of(owner);
        assert_eq!(referents.len(), 1, "{name}");
        assert_eq!(referents[0].target, object(&graph, 0x1020));
        assert_eq!(referents[0].kind, kind);
        assert_eq!(
            ReferenceKind::of_class(graph.class(graph.class_of(owner)).kind),
            Some(kind)
        );
    }
}

#[test]
fn heaps_hold_till_the_end_of_their_segment() {
    let mut dump = Dump::art();
    dump.heap(b'Z', "zygote");
    with_classes(&mut dump);
    dump.heap(b'A', "app");
    node(&mut dump, 0x1000, 0);
    dump.segment();
    node(&mut dump, 0x1010, 0);
    dump.heap(b'I', "image");
    node(&mut dump, 0x1020, 0);
    let graph = graph_of(dump.finish());
    let heap = |id| graph.heap_of(object(&graph, id));
    assert_eq!(heap(NODE), HeapKind::Zygote);
    assert_eq!(heap(0x1000), HeapKind::App);
    assert_eq!(heap(0x1010), HeapKind::Unknown);
    assert_eq!(heap(0x1020), HeapKind::BootImage);
}

#[test]
fn what_art_writes_for_a_class_is_its_object_and_not_objects_of_the_program() {
    let mut dump = Dump::art();
    let class_fields = [
        ("$class$shadow$_klass_", Val::Ref(CLASS)),
        ("$class$dexCache", Val::Ref(0x1000)),
        ("$classOverhead", Val::Ref(0x121)),
        ("INSTANCE", Val::Ref(0x1010)),
        ("COUNT", Val::Int(3)),
    ];
    dump.class(&ClassSpec {
        id: CLASS,
        name: "java.lang.Class",
        superclass: OBJECT,
        ..ClassSpec::default()
    });
    dump.array(0x121, Byte, &[0; 40]);
    dump.class(&ClassSpec {
        id: NODE,
        name: "a.Node",
        superclass: OBJECT,
        loader: 0x1020,
        statics: &class_fields,
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: OBJECT,
        name: "java.lang.Object",
        fields: &[("shadow$_klass_", Object), ("shadow$_monitor_", Int)],
        ..ClassSpec::default()
    });
    for id in [0x1000, 0x1010, 0x1020] {
        dump.instance(id, OBJECT, &[Val::Ref(OBJECT), Val::Int(0)]);
    }
    // The ID is odd, but no class claims it: an ordinary array.
    dump.array(0x1031, Byte, &[1, 2]);
    let file = dump.finish();
    let graph = graph_of(file.clone());
    assert!(
        graph.find(ObjectId(0x121)).is_none(),
        "no object of the program"
    );
    assert_eq!(references(&graph, NODE), [0x1000, 0x1010, OBJECT, 0x1020]);
    let own = object(&graph, NODE);
    assert_eq!(graph.shallow_bytes(own), 4 * 4 + 4 + 40);
    assert!(
        references(&graph, 0x1010).is_empty(),
        "shadow$_klass_ is not a reference"
    );
    assert_eq!(class_name(&graph, 0x1031), "byte[]");
    let loader = graph
        .class(graph.class_behind(own).expect("it is a class"))
        .loader;
    assert_eq!(loader, Some(object(&graph, 0x1020)));
    let counts = histogram(&Bytes::from(file), &Options::default()).expect("it has a header");
    let bytes = counts.rows.iter().find(|row| row.class == "byte[]");
    assert_eq!(
        bytes.map(|row| (row.objects, row.shallow_bytes)),
        Some((1, 2))
    );
}

#[test]
fn native_bytes_belong_to_the_referent_of_a_cleaner_that_has_not_run() {
    let mut dump = Dump::art();
    with_classes(&mut dump);
    let mut class = |id, name: &str, superclass, fields: &[_]| {
        dump.class(&ClassSpec {
            id,
            name,
            superclass,
            fields,
            ..ClassSpec::default()
        });
    };
    class(
        0x200,
        "java.lang.ref.Reference",
        OBJECT,
        &[("referent", Object)],
    );
    class(0x210, "java.lang.ref.PhantomReference", 0x200, &[]);
    let fields = [("next", Object), ("thunk", Object)];
    class(0x220, "sun.misc.Cleaner", 0x210, &fields);
    let registry = "libcore.util.NativeAllocationRegistry";
    class(0x230, registry, OBJECT, &[("size", Long)]);
    let thunk = format!("{registry}$CleanerThunk");
    class(0x240, &thunk, OBJECT, &[("this$0", Object)]);
    node(&mut dump, 0x1000, 0);
    // The last one has no size of its own.
    let cleaners = [
        (0, 4097, false),
        (1, 1000, false),
        (2, 70_000, true),
        (3, 99, false),
    ];
    for (at, size, has_run) in cleaners {
        let (cleaner, thunk, registry) = (0x2000 + at * 8, 0x2100 + at * 8, 0x2200 + at * 8);
        dump.instance(registry, 0x230, &[Val::Long(size)]);
        dump.instance(thunk, 0x240, &[Val::Ref(registry)]);
        let next = Val::Ref(if has_run { cleaner } else { 0 });
        dump.instance(cleaner, 0x220, &[next, Val::Ref(thunk), Val::Ref(0x1000)]);
    }
    let graph = graph_of(dump.finish());
    let owner = object(&graph, 0x1000);
    assert_eq!(graph.natives(), [(owner, 5096)], "bit 0 is a flag");
}

#[test]
fn hotspot_names_its_classes_as_the_vm_does_and_keeps_arrays_with_their_elements() {
    let mut dump = Dump::hotspot();
    dump.class(&ClassSpec {
        id: OBJECT,
        name: "java/lang/Object",
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: CLASS,
        name: "java/lang/Class",
        superclass: OBJECT,
        statics: &[
            ("<resolved_references>", Val::Ref(0x1000)),
            ("cache", Val::Ref(0x1000)),
        ],
        ..ClassSpec::default()
    });
    for (id, name) in [
        (ARRAY, "[[Ljava/lang/Object;"),
        (ARRAY + 8, "[Ljava/lang/Object;"),
    ] {
        dump.class(&ClassSpec {
            id,
            name,
            superclass: OBJECT,
            ..ClassSpec::default()
        });
    }
    dump.objects(0x1000, ARRAY, &[]);
    let graph = graph_of(dump.finish());
    assert_eq!(class_name(&graph, 0x1000), "java.lang.Object[][]");
    assert_eq!(
        graph.class(graph.class_of(object(&graph, 0x1000))).kind,
        ClassKind::Array
    );
    assert_eq!(references(&graph, CLASS), [0x1000, 0x1000, OBJECT]);
    assert_eq!(references(&graph, OBJECT), [ARRAY + 8]);
    assert_eq!(references(&graph, ARRAY + 8), [OBJECT, ARRAY]);
    let names: Vec<_> = fields(&graph, ARRAY + 8)
        .into_iter()
        .map(|field| field.0)
        .collect();
    assert_eq!(names, ["<superclass>", "<array class>"]);
}

#[test]
fn of_classes_of_one_name_and_loader_the_first_has_the_arrays() {
    for _ in 0..8 {
        let mut dump = Dump::hotspot();
        with_classes(&mut dump);
        let twins = (0..16).map(|at| (0x1000 - at * 16, "a.Twin"));
        for (id, name) in twins.chain([(0x2000, "[La.Twin;")]) {
            dump.class(&ClassSpec {
                id,
                name,
                superclass: OBJECT,
                ..ClassSpec::default()
            });
        }
        let graph = graph_of(dump.finish());
        assert!(references(&graph, 0x1000).contains(&0x2000));
        assert!(!references(&graph, 0xff0).contains(&0x2000));
    }
}

#[test]
fn arrays_without_data_count_by_what_they_say() {
    let mut dump = Dump::art();
    with_classes(&mut dump);
    dump.nodata(0x1000, Int, 1_000_000);
    node(&mut dump, 0x1010, 0x1000);
    let graph = graph_of(dump.finish());
    let array = object(&graph, 0x1000);
    assert_eq!(graph.shallow_bytes(array), 4_000_000);
    let values = graph.contents().primitive_array(&graph, array);
    let values = values.expect("it is an array of numbers");
    assert_eq!((values.length, values.bytes), (1_000_000, None));
    assert_eq!(references(&graph, 0x1010), [0x1000]);
}

#[test]
fn sizes_by_model() {
    let mut dump = Dump::art();
    node(with_classes(&mut dump), 0x1000, 0);
    dump.objects(0x1010, ARRAY, &[0; 3]);
    dump.array(0x1020, Long, &[0; 16]);
    dump.array(0x1040, Byte, &[0; 5]);
    let file = Bytes::from(dump.finish());
    let sizes = |model| {
        let options = Options {
            sizes: Some(model),
            ..Options::default()
        };
        let graph = read(file.clone(), &options).expect("it has a header");
        assert_eq!(graph.facts.sizes, model);
        [0x1000, 0x1010, 0x1020, 0x1040].map(|id| graph.shallow_bytes(object(&graph, id)))
    };
    assert_eq!(sizes(SizeModel::Dump), [16, 12, 16, 5]);
    assert_eq!(sizes(SizeModel::Art), [16, 24, 32, 24]);
    assert_eq!(sizes(SizeModel::Mat), [16, 32, 32, 32]);
}

#[test]
fn threads_and_frames_of_roots_are_kept() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump);
    node(&mut dump, 0x1000, 0);
    dump.root_of(0x03, 0x1000, &[5, 2]);
    dump.root_of(0x03, 0x1000, &[5, u32::MAX]);
    dump.root_of(0x08, 0x1000, &[5, 9]);
    dump.root_of(0x06, 0x1000, &[6]);
    dump.root_of(0x01, 0x1000, &[]);
    dump.root_of(0x8e, 0x1000, &[7, 8]);
    let graph = graph_of(dump.finish());
    let roots: Vec<_> = graph
        .roots()
        .iter()
        .map(|r| (r.kind, r.thread, r.frame))
        .collect();
    let expected = [
        (RootKind::JavaFrame, Some(5), Some(2)),
        (RootKind::JavaFrame, Some(5), None),
        (RootKind::ThreadObject, Some(5), None),
        (RootKind::ThreadBlock, Some(6), None),
        (RootKind::JniGlobal, None, None),
        (RootKind::JniMonitor, Some(7), Some(8)),
    ];
    assert_eq!(roots, expected);
}

#[test]
fn a_class_that_only_its_instances_hold_is_held_by_them() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump);
    dump.class(&ClassSpec {
        id: 0x200,
        name: "java.lang.ClassLoader",
        superclass: OBJECT,
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: 0x210,
        name: "a.PluginLoader",
        superclass: 0x200,
        fields: &[("classes", Object)],
        ..ClassSpec::default()
    });
    for (id, name) in [(0x220, "a.Plugin"), (0x230, "a.Other")] {
        dump.class(&ClassSpec {
            id,
            name,
            superclass: OBJECT,
            loader: 0x2000,
            fields: &[("own", Object)],
            ..ClassSpec::default()
        });
    }
    dump.instance(0x2000, 0x210, &[Val::Ref(0x2010)]);
    dump.objects(0x2010, ARRAY, &[0x220, 0x230]);
    dump.instance(0x1000, 0x220, &[Val::Ref(0x1010)]);
    dump.instance(0x1010, 0x220, &[Val::Ref(0)]);
    node(&mut dump, 0x1020, 0x1000);
    dump.root(0x05, 0x1020);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1000), [0x1010, 0x220]);
    assert_eq!(references(&graph, 0x1010), [0x220]);
    assert_eq!(
        references(&graph, 0x1020),
        [0x1000],
        "its class is the boot loader's"
    );
    assert_eq!(references(&graph, 0x2010), [0x220, 0x230]);
    let names: Vec<_> = fields(&graph, 0x1000)
        .into_iter()
        .map(|field| field.0)
        .collect();
    assert_eq!(names, ["own", "<class>"]);
    let reached = Reachable::new(&graph, Follow::default());
    assert!(
        reached.contains(object(&graph, 0x2000)),
        "the leaked loader"
    );

    // If something else holds the loader, instances do not.
    dump.root_of(0x01, 0x2000, &[]);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1000), [0x1010]);
}

#[test]
fn arrays_that_exist_in_dumps_of_art_only_take_no_memory_there() {
    let mut dump = Dump::art();
    with_classes(&mut dump);
    dump.class(&ClassSpec {
        id: 0x200,
        name: "java.lang.String",
        superclass: OBJECT,
        instance_bytes: 16,
        fields: &[("count", Int), ("value", Object)],
        ..ClassSpec::default()
    });
    dump.instance(0x1000, 0x200, &[Val::Int(3), Val::Ref(0x1010)]);
    dump.chars(0x1010, "abc");
    dump.instance(0x1020, 0x200, &[Val::Int(0), Val::Ref(0x1028)]);
    dump.array(0x1028, Byte, &[]);
    // A string of Dalvik, whose array is a real one.
    dump.instance(0x1040, 0x200, &[Val::Int(3), Val::Ref(0x1060)]);
    dump.chars(0x1060, "abc");
    // The objects that a loader holds.
    dump.objects(0x1084, ARRAY, &[NODE; 4]);
    let file = Bytes::from(dump.finish());
    let sizes = |sizes| {
        let options = Options {
            sizes: Some(sizes),
            ..Options::default()
        };
        let graph = read(file.clone(), &options).expect("it has a header");
        let ids = [0x1000, 0x1010, 0x1020, 0x1028, 0x1040, 0x1060, 0x1084];
        let all = ids.map(|id| graph.shallow_bytes(object(&graph, id)));
        let counts = histogram(&file, &options).expect("it has a header");
        let counted: u64 = counts.rows.iter().map(|row| row.shallow_bytes).sum();
        let whole: u64 = graph.objects().map(|o| graph.shallow_bytes(o)).sum();
        assert_eq!(counted, whole);
        all
    };
    assert_eq!(sizes(SizeModel::Dump), [16, 6, 16, 0, 16, 6, 16]);
    assert_eq!(sizes(SizeModel::Art), [24, 0, 16, 0, 16, 24, 0]);
}
