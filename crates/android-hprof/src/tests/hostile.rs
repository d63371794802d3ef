//! Damaged and hostile dumps: for any bytes, reading ends and intact records are read.

use super::dump::{ClassSpec, Dump, Val, put_record};
use super::graph_of;
use crate::info::info;
use crate::records::tag;
use crate::strip::{StripOptions, strip};
use crate::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::BasicType::{Boolean as Bool, Byte, Int, Long, Object};
use heaptap_model::heap_graph::{
    Dominators, FieldDecl, Follow, HeapGraph, MAX_NAME_BYTES, ShortestPaths, SizeModel,
};
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Writes a dump with one of everything.
fn everything(dump: &mut Dump) {
    let class = |id, name, superclass, fields| ClassSpec {
        id,
        name,
        superclass,
        fields,
        loader: 0x1000,
        instance_bytes: 16,
        statics: &[
            ("A", Val::Ref(0x1000)),
            ("B", Val::Long(1)),
            ("$classOverhead", Val::Ref(0x121)),
        ],
    };
    dump.heap(b'A', "app");
    let shadow = [("shadow$_klass_", Object), ("shadow$_monitor_", Int)];
    dump.class(&class(0x100, "java.lang.Object", 0, &shadow));
    dump.class(&class(0x110, "java.lang.Class", 0x100, &[]));
    dump.array(0x121, Byte, &[0; 16]);
    let string = [("count", Int), ("value", Object)];
    dump.class(&class(0x120, "java.lang.String", 0x100, &string));
    dump.class(&class(
        0x130,
        "java.lang.ref.Reference",
        0x100,
        &[("referent", Object)],
    ));
    dump.class(&class(0x140, "java.lang.ref.PhantomReference", 0x130, &[]));
    dump.class(&class(
        0x150,
        "sun.misc.Cleaner",
        0x140,
        &[("thunk", Object)],
    ));
    let registry = "libcore.util.NativeAllocationRegistry";
    dump.class(&class(0x160, registry, 0x100, &[("size", Long)]));
    let thunk = format!("{registry}$CleanerThunk");
    dump.class(&class(0x170, &thunk, 0x100, &[("this$0", Object)]));
    dump.class(&class(0x180, "java.lang.Object[]", 0x100, &[]));
    dump.segment();
    let base = [Val::Ref(0x100), Val::Int(-5)];
    let with = |own: &[Val]| [own, &base].concat();
    dump.instance_from(0x1000, 0x120, 7, &with(&[Val::Int(3), Val::Ref(0x1010)]));
    dump.array(0x1010, Byte, b"abc");
    dump.instance(0x1020, 0x160, &with(&[Val::Long(77)]));
    dump.instance(0x1030, 0x170, &with(&[Val::Ref(0x1020)]));
    dump.instance(0x1040, 0x150, &with(&[Val::Ref(0x1030), Val::Ref(0x1000)]));
    dump.objects(0x1050, 0x180, &[0x1000, 0, 0x1040, 0x9990]);
    dump.nodata(0x1060, Long, 9);
    dump.stack(7, 3, &[(1, "main", "Main.java", 3)]);
    for tag in [0x05, 0x07, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x90, 0xff] {
        dump.root(tag, 0x1050);
    }
    dump.root_of(0x01, 0x1050, &[]);
    dump.root_of(0x08, 0x1000, &[3, 7]);
    for tag in [0x02, 0x03, 0x8e] {
        dump.root_of(tag, 0x1050, &[3, 0]);
    }
    dump.root_of(0x04, 0x1050, &[3]).root_of(0x06, 0x1050, &[3]);
}

/// Requests everything that a dump can return.
fn ask_everything(graph: &HeapGraph) {
    let contents = graph.contents();
    for object in graph.objects() {
        let mut seen = 0;
        contents.fields(graph, object, &mut |_| {
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!(seen < 1 << 20);
        contents.string(graph, object);
        contents.primitive_array(graph, object);
        contents.allocated_at(graph, object);
        contents.identity_hash(graph, object);
        graph.shallow_bytes(object);
        graph.native_bytes(object);
        assert!(graph.ancestry(graph.class_of(object)).count() < 1 << 20);
    }
    for root in graph.roots() {
        contents.thread(graph, root.thread.unwrap_or(0));
    }
    let paths = ShortestPaths::new(graph, Follow::default());
    let dominators = Dominators::compute(graph, Follow::default());
    assert_eq!(paths.order().len(), dominators.order().len());
}

/// Reads a file in every way; returns whether it has a header.
fn survives(file: &[u8]) -> bool {
    let file = Bytes::from(file.to_vec());
    let counts = histogram(&file, &Options::default());
    let graph = read(file, &Options::default());
    assert_eq!(counts.is_ok(), graph.is_ok());
    match graph {
        Ok(graph) => {
            ask_everything(&graph);
            true
        }
        Err(_) => false,
    }
}

fn samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for mut dump in [Dump::art(), Dump::hotspot()] {
        everything(&mut dump);
        all.push(dump.finish());
    }
    all
}

#[test]
fn a_dump_cut_anywhere_gives_what_came_before_and_says_so() {
    for file in samples() {
        let whole = graph_of(file.clone());
        assert_eq!(whole.facts.losses.malformed, 0);
        assert!(!whole.facts.losses.truncated);
        let mut objects = 0;
        for cut in 0..file.len() {
            if !survives(&file[..cut]) {
                assert!(cut < 31, "it has a header");
                continue;
            }
            let graph = graph_of(file[..cut].to_vec());
            assert!(graph.len() >= objects, "more bytes, more objects");
            objects = graph.len();
            let at_a_record = graph.facts.losses.truncated || graph.is_empty();
            assert!(at_a_record, "cut at {cut} of {}", file.len());
        }
        assert_eq!(objects, whole.len());
    }
}

#[test]
fn what_a_record_claims_is_not_allocated() {
    let mut dump = Dump::hotspot();
    dump.array_without_data(0x23, 0x1000, Long, u32::MAX);
    let graph = graph_of(dump.finish());
    assert!(graph.is_empty());
    assert!(graph.facts.losses.truncated);
    // An array of 16 GiB without its data is one object and nothing more.
    let mut dump = Dump::hotspot();
    dump.nodata(0x1000, Long, u32::MAX);
    let graph = graph_of(dump.finish());
    let array = graph.objects().next().expect("there is one");
    assert!(graph.shallow_bytes(array) > 8 * u64::from(u32::MAX) - 8);
    ask_everything(&graph);
}

#[test]
fn a_million_classes_in_a_chain_end_soon() {
    let mut dump = Dump::art();
    let first = 0x10_0000;
    for at in 0..200_000u64 {
        let superclass = if at == 0 { 0 } else { first + 8 * (at - 1) };
        dump.raw(&class_bytes(first + 8 * at, superclass));
    }
    for at in 0..50_000u64 {
        dump.instance(0x8000_0000 + 8 * at, first + 8 * (199_999 - at), &[]);
    }
    let graph = graph_of(dump.finish());
    assert_eq!(graph.classes().len(), 200_001, "and java.lang.Class");
    let last = graph.objects().next_back().expect("there are some");
    graph.contents().identity_hash(&graph, last);
}

/// Writes a class without name and fields: [`Dump::class`] looks up names one by one.
fn class_bytes(id: u64, superclass: u64) -> Vec<u8> {
    let mut bytes = vec![0x20];
    bytes.extend((id as u32).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((superclass as u32).to_be_bytes());
    bytes.extend([0; 20 + 4 + 6]);
    bytes
}

#[test]
fn a_long_name_for_a_million_fields_is_not_copied_for_each() {
    let long = "x".repeat(1 << 20);
    let fields: Vec<(&str, _)> = (0..5_000).map(|_| (long.as_str(), Int)).collect();
    let mut dump = Dump::hotspot();
    dump.class(&ClassSpec {
        id: 0x100,
        name: "a.Long",
        fields: &fields,
        ..ClassSpec::default()
    });
    let graph = graph_of(dump.finish());
    let names = graph.classes().iter().flat_map(|class| &class.fields);
    let bytes: usize = names.map(|field| field.name.len()).sum();
    assert!(bytes < 8 << 20, "{bytes}");
    assert!(graph.facts.losses.damage[0].contains("names"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_do_no_harm(
        which in 0usize..2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = samples().swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        survives(&file);
    }

    #[test]
    fn any_bytes_behind_a_header_do_no_harm(
        wide in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut dump = if wide { Dump::hotspot() } else { Dump::art() };
        let file = dump.raw(&bytes).finish();
        prop_assert!(survives(&file));
        let front = dump.front();
        let records = [front.as_slice(), &bytes].concat();
        prop_assert!(survives(&records));
    }
}

#[test]
fn a_class_in_a_record_that_is_cut_short_is_not_the_class_of_strings() {
    let mut dump = Dump::hotspot();
    let name = dump.name("java.lang.String");
    dump.class(&ClassSpec {
        id: 0x120,
        name: "a.Secret",
        fields: &[("value", Object)],
        ..ClassSpec::default()
    });
    dump.instance(0x1000, 0x120, &[Val::Ref(0x2000)]);
    dump.array(0x2000, Byte, b"abc");
    let mut file = dump.finish();
    let [class, stack] = [0x120u64.to_be_bytes(), [0; 8]];
    let renamed = [&[0; 4][..], &class, &stack[..4], &name.to_be_bytes()].concat();
    put_record(&mut file, tag::LOAD_CLASS, &renamed, 1000);
    let options = StripOptions {
        keep_strings: true,
        fields: false,
    };
    let mut out = Vec::new();
    let done = strip(&file, options, &mut out).expect("it has a header");
    assert_eq!((done.strings_kept, done.arrays), (0, 1));
    let mut again = Vec::new();
    strip(&out, options, &mut again).expect("it has a header");
    assert_eq!(out, again);
}

#[test]
fn many_classes_below_one_with_many_fields_are_laid_out() {
    let fields = [("a", Byte), ("b", Long)].repeat(30_000);
    for circle in [0, 0x100_2000] {
        let mut dump = Dump::hotspot();
        let class = |id, name, superclass, fields| ClassSpec {
            id,
            name,
            superclass,
            fields,
            ..ClassSpec::default()
        };
        dump.class(&class(0x100, "java.lang.Object", 0, &[]));
        dump.class(&class(0x1000, "a.Wide", circle, &fields));
        for at in 0..2000 {
            let superclass = if at == 0 { 0x1000 } else { 0x100_1000 + at };
            dump.class(&class(
                0x100_1001 + at,
                "a.Narrow",
                superclass,
                &[("c", Int)],
            ));
        }
        let file = Bytes::from(dump.finish());
        for sizes in [SizeModel::Hotspot, SizeModel::Mat] {
            let options = Options {
                sizes: Some(sizes),
                ..Options::default()
            };
            assert!(read(file.clone(), &options).is_ok());
        }
    }
}

#[test]
fn the_name_of_a_class_is_cut_where_no_real_one_ends() {
    let mut dump = Dump::hotspot();
    let long = "x".repeat(100_000);
    dump.class(&ClassSpec {
        id: 0x100,
        name: &long,
        ..ClassSpec::default()
    });
    let graph = read(Bytes::from(dump.finish()), &Options::default()).expect("it has a class");
    let lengths: Vec<usize> = graph.classes().iter().map(|c| c.name.len()).collect();
    assert!(lengths.contains(&MAX_NAME_BYTES), "{lengths:?}");
    assert!(lengths.iter().all(|&bytes| bytes <= MAX_NAME_BYTES));
}

#[test]
fn of_heaps_without_number_the_first_are_told_apart() {
    let mut dump = Dump::art();
    let long = "x".repeat(100_000);
    dump.heap(0, &long);
    let name = dump.name(&long) as u32;
    for heap in 1..1000u32 {
        let numbers = [heap, name].map(u32::to_be_bytes).concat();
        dump.raw(&[&[0xfe], &numbers[..]].concat());
        dump.root(0x05, 0x1000)
            .array(0x1000 + u64::from(heap) * 16, Byte, b"a");
    }
    let found = info(&dump.finish()).expect("it has a header");
    assert_eq!(found.heaps.len(), 64);
    assert!(found.heaps.values().all(|heap| heap.name.len() == 256));
    assert_eq!(found.heaps[&63].objects, 1);
    assert_eq!(found.objects(), 999);
}

#[test]
fn what_is_stripped_of_an_instance_does_not_hang_on_the_others_of_its_class() {
    let mut dump = Dump::hotspot();
    let class = |id, name, superclass, fields| ClassSpec {
        id,
        name,
        superclass,
        fields,
        ..ClassSpec::default()
    };
    let string = [("hash", Int), ("value", Object)];
    dump.class(&class(0x100, "a.Base", 0, &[("n", Int)]));
    dump.class(&class(0x120, "java.lang.String", 0x100, &string));
    // The second is cut short within a field, the last has more than its classes say.
    let all = [Val::Int(5), Val::Ref(0x2000), Val::Int(6), Val::Long(7)];
    for (id, values) in [
        (0x1000, 0),
        (0x1010, 1),
        (0x1020, 3),
        (0x1030, 2),
        (0x1040, 4),
    ] {
        dump.instance(id, 0x120, &all[..values]);
    }
    dump.array(0x2000, Byte, b"abc").array(0x2010, Byte, b"def");
    let options = |fields| StripOptions {
        keep_strings: true,
        fields,
    };
    for (with_fields, numbers) in [(false, [0, 6, 0]), (true, [0, 0, 0])] {
        let mut out = Vec::new();
        let file = dump.finish();
        let done = strip(&file, options(with_fields), &mut out).expect("it has a header");
        assert_eq!((done.strings_kept, done.arrays), (1, 1));
        let mut same = Dump::hotspot();
        same.class(&class(0x100, "a.Base", 0, &[("n", Int)]));
        same.class(&class(0x120, "java.lang.String", 0x100, &string));
        let [hash, n, more] = numbers;
        let all = [
            Val::Int(hash),
            Val::Ref(0x2000),
            Val::Int(n),
            Val::Long(more.into()),
        ];
        for (id, values) in [
            (0x1000, 0),
            (0x1010, 1),
            (0x1020, 3),
            (0x1030, 2),
            (0x1040, 4),
        ] {
            same.instance(id, 0x120, &all[..values]);
        }
        same.array(0x2000, Byte, b"abc")
            .array(0x2010, Byte, &[0; 3]);
        assert_eq!(out, same.finish(), "{with_fields}");
    }
}

#[test]
fn many_classes_below_one_with_many_fields_are_stripped() {
    let fields = [("a", Byte), ("b", Bool)].repeat(30_000);
    let mut dump = Dump::hotspot();
    let class = |id, name, superclass, fields| ClassSpec {
        id,
        name,
        superclass,
        fields,
        ..ClassSpec::default()
    };
    dump.class(&class(0x100, "java.lang.String", 0x100, &fields));
    for at in 0..2000 {
        dump.class(&class(0x10_0000 + at * 16, "java.lang.String", 0x100, &[]));
        dump.instance(0x20_0000 + at * 16, 0x10_0000 + at * 16, &[Val::Int(1)]);
    }
    let options = StripOptions {
        keep_strings: true,
        fields: true,
    };
    assert!(strip(&dump.finish(), options, &mut std::io::sink()).is_ok());
}

#[test]
fn fields_take_no_more_memory_than_the_file_explains() {
    let fields = [("", Byte)].repeat(65_535);
    let mut dump = Dump::hotspot();
    for at in 0..8 {
        dump.class(&ClassSpec {
            id: 0x1000 + at * 16,
            name: "a.Wide",
            fields: &fields,
            ..ClassSpec::default()
        });
    }
    let file = dump.finish();
    let bytes = file.len();
    let graph = graph_of(file);
    let made: usize = graph.classes.iter().map(|class| class.fields.len()).sum();
    assert!(made * size_of::<FieldDecl>() <= 2 * bytes + (16 << 20));
    assert!(made >= 65_535);
    let told = &graph.facts.losses.damage;
    assert!(told.iter().any(|damage| damage.contains("memory limit")));
}
