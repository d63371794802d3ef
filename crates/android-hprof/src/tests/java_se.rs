//! Dumps of JVMs on computers: stacks of virtual threads, several dumps in a file, buffers outside
//! of the heap; and files with parts that are missing or do not belong to them.

use super::dump::{ClassSpec, Dump, Val};
use super::{graph_of, object};
use crate::convert::{ConvertOptions, convert};
use crate::info::info;
use crate::{Options, dumps, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::BasicType::{Byte, Int, Long, Object};
use heaptap_model::heap_graph::{BasicType, HeapGraph};

const OBJECT: u64 = 0x108;
const CLASS: u64 = 0x110;

fn class(dump: &mut Dump, id: u64, name: &str, superclass: u64, fields: &[(&str, BasicType)]) {
    dump.class(&ClassSpec {
        id,
        name,
        superclass,
        fields,
        ..ClassSpec::default()
    });
}

/// Returns a dump of a JDK since 15 with the classes that each has.
fn jdk() -> Dump {
    let mut dump = Dump::hotspot();
    class(&mut dump, OBJECT, "java/lang/Object", 0, &[]);
    class(
        &mut dump,
        CLASS,
        "java/lang/Class",
        OBJECT,
        &[("classData", Object)],
    );
    dump
}

/// Returns the bytes of all objects of a class, which a graph and a count agree on.
fn bytes_of(file: &[u8], class: &str) -> u64 {
    let graph = graph_of(file.to_vec());
    let is_it = |&object: &_| graph.class(graph.class_of(object)).name == class;
    let bytes = graph
        .objects()
        .filter(is_it)
        .map(|object| graph.shallow_bytes(object));
    let bytes = bytes.sum();
    let counted = histogram(&Bytes::from(file.to_vec()), &Options::default()).expect("a header");
    let row = counted.rows.iter().find(|row| row.class == class);
    assert_eq!(row.map_or(0, |row| row.shallow_bytes), bytes, "{class}");
    bytes
}

#[test]
fn a_stack_chunk_contains_a_stack_and_its_bitmap() {
    let mut dump = jdk();
    let fields = [
        ("parent", Object),
        ("size", Int),
        ("sp", Int),
        ("bottom", Int),
    ];
    class(
        &mut dump,
        0x120,
        "jdk/internal/vm/StackChunk",
        OBJECT,
        &fields,
    );
    let sizes = [0, 222, -1];
    for (at, words) in sizes.into_iter().enumerate() {
        let values = [Val::Ref(0), Val::Int(words), Val::Int(7), Val::Int(9)];
        dump.instance(0x1008 + at as u64 * 0x808, 0x120, &values);
    }
    let file = dump.finish();
    let graph = graph_of(file.clone());
    let [empty, full, hostile] =
        [0x1008, 0x1810, 0x2018].map(|id| graph.shallow_bytes(object(&graph, id)));
    // A word is 8 bytes. Of each, the bitmap has a bit: 4 words for 222.
    assert_eq!(full - empty, (222 + 4) * 8);
    assert_eq!(hostile, empty);
    // Header 12, fields 8 and 3 × 4, hidden fields 8, 8, 4 and 1.
    assert_eq!(empty, 56);
    assert_eq!(
        bytes_of(&file, "jdk.internal.vm.StackChunk"),
        empty + full + hostile
    );
    assert_eq!(
        graph
            .class(graph.class_of(object(&graph, 0x1008)))
            .instance_bytes,
        None
    );
}

/// The sizes are those of JDK 17 (`jmap -histo`), with references of 8 bytes here.
#[test]
fn contended_classes_and_fields_have_padding() {
    let mut dump = jdk();
    let pool = "java/util/concurrent/ForkJoinPool";
    let queue = format!("{pool}$WorkQueue");
    for (at, (name, fields)) in [
        (
            "java/util/concurrent/Exchanger$Node",
            &[("index", Int), ("item", Object)][..],
        ),
        (
            "java/util/concurrent/atomic/Striped64$Cell",
            &[("value", Long)],
        ),
        (pool, &[("stealCount", Long), ("ctl", Long)]),
        (
            &queue,
            &[
                ("base", Int),
                ("top", Int),
                ("source", Int),
                ("nsteals", Int),
            ],
        ),
        ("a/Plain", &[("ctl", Long)]),
    ]
    .into_iter()
    .enumerate()
    {
        let id = 0x200 + at as u64 * 0x18;
        class(&mut dump, id, name, OBJECT, fields);
        let values = fields.iter().map(|(_, basic)| match basic {
            Object => Val::Ref(0),
            Int => Val::Int(0),
            _ => Val::Long(0),
        });
        dump.instance(0x1000 + at as u64 * 0x408, id, &values.collect::<Vec<_>>());
    }
    let file = dump.finish();
    // Header 12, padding, fields, padding.
    for (name, bytes) in [
        (
            "java.util.concurrent.Exchanger$Node",
            12 + 128 + 4 + 8 + 128,
        ),
        (
            "java.util.concurrent.atomic.Striped64$Cell",
            12 + 128 + 4 + 8 + 128,
        ),
        ("java.util.concurrent.ForkJoinPool", 16 + 8 + 128 + 8 + 128),
        (
            "java.util.concurrent.ForkJoinPool$WorkQueue",
            16 + 128 + 12 + 4 + 128,
        ),
        ("a.Plain", 16 + 8),
    ] {
        assert_eq!(bytes_of(&file, name), bytes, "{name}");
    }
}

/// Returns a file of two dumps: the first has a second object of the class.
fn two_dumps(tag: u8) -> Vec<u8> {
    let mut first = jdk();
    first.segment_tag = tag;
    first.ended = tag != crate::records::tag::HEAP_DUMP;
    class(&mut first, 0x200, "a/Box", OBJECT, &[]);
    first.instance(0x1000, 0x200, &[]).root(0x05, 0x1000);
    let mut second = first.clone();
    first.instance(0x1010, 0x200, &[]);
    second.root(0x05, 0x200);
    let front = second.front().len();
    [first.finish(), second.finish().split_off(front)].concat()
}

#[test]
fn of_several_dumps_the_last_is_read_and_a_number_selects_one() {
    for tag in [0x0c, 0x1c] {
        let file = two_dumps(tag);
        assert_eq!(dumps(&file), Ok(2));
        let facts = |graph: HeapGraph| (graph.len(), graph.facts.number, graph.facts.among);
        assert_eq!(facts(graph_of(file.clone())), (4, 2, 2));
        for (number, objects) in [(1, 5), (2, 4)] {
            let options = Options {
                dump: Some(number),
                ..Options::default()
            };
            let file = Bytes::from(file.clone());
            let graph = read(file.clone(), &options).expect("a header");
            assert_eq!(graph.facts.losses, Default::default());
            assert_eq!(facts(graph), (objects, number, 2));
            let counted = histogram(&file, &options).expect("a header");
            let all: u64 = counted.rows.iter().map(|row| row.objects).sum();
            assert_eq!((all, counted.number), (objects as u64, number));
        }
        // The second breaks off: the first is still whole.
        let cut = &file[..file.len() - 12];
        assert!(graph_of(cut.to_vec()).facts.losses.truncated);
    }
    assert_eq!(dumps(&jdk().finish()), Ok(1));
}

#[test]
fn bytes_behind_the_end_are_no_damage() {
    let whole = jdk().finish();
    for behind in [
        &b"\nDone.\n"[..],
        b"JAVA PROFILE 1.0.2\0\0\0\0\x08",
        &[0; 5],
    ] {
        let file = [&whole[..], behind].concat();
        let losses = graph_of(file.clone()).facts.losses;
        assert_eq!(
            (losses.truncated, losses.malformed),
            (false, 0),
            "{behind:?}"
        );
        assert_eq!(losses.bytes_behind, behind.len() as u64);
        assert!(info(&file).expect("a header").is_whole());
    }
    // A dump record that breaks off is one.
    let file = [&whole[..], b"\x1c\0\0\0\0\0\0\0\x40\x21"].concat();
    assert!(graph_of(file).facts.losses.truncated);
}

#[test]
fn a_missing_superclass_costs_fields() {
    let mut dump = jdk();
    dump.load_class(0x300, "lib/Base");
    class(&mut dump, 0x310, "app/Sub", 0x300, &[("own", Int)]);
    class(&mut dump, 0x320, "app/SubSub", 0x310, &[]);
    class(&mut dump, 0x330, "app/Other", OBJECT, &[]);
    dump.instance(
        0x1000,
        0x310,
        &[Val::Int(1), Val::Long(2), Val::Ref(0x1020)],
    );
    dump.instance(
        0x1040,
        0x320,
        &[Val::Int(1), Val::Long(2), Val::Ref(0x1020)],
    );
    dump.instance(0x1020, 0x330, &[]);
    let file = dump.finish();
    let graph = graph_of(file.clone());
    let losses = &graph.facts.losses;
    assert_eq!(losses.missing_supers, ["lib.Base"]);
    assert_eq!(losses.partial_objects, 2);
    assert!(losses.lacks_objects());
    // A header of 12 bytes and 20 of data.
    assert_eq!(graph.shallow_bytes(object(&graph, 0x1000)), 32);
    assert_eq!(bytes_of(&file, "app.Sub"), 32);
    let counted = histogram(&Bytes::from(file), &Options::default()).expect("a header");
    assert_eq!(counted.losses.partial_objects, 2);
    assert_eq!(graph_of(jdk().finish()).facts.losses, Default::default());
}

#[test]
fn direct_buffers_own_their_capacity() {
    let mut dump = jdk();
    class(
        &mut dump,
        0x200,
        "java/nio/DirectByteBuffer",
        OBJECT,
        &[("cleaner", Object), ("capacity", Int)],
    );
    class(
        &mut dump,
        0x210,
        "jdk/internal/ref/Cleaner",
        OBJECT,
        &[("next", Object), ("thunk", Object)],
    );
    class(
        &mut dump,
        0x220,
        "java/nio/DirectByteBuffer$Deallocator",
        OBJECT,
        &[],
    );
    class(
        &mut dump,
        0x230,
        "sun/nio/ch/FileChannelImpl$DefaultUnmapper",
        OBJECT,
        &[],
    );
    dump.instance(0x300, 0x220, &[]).instance(0x310, 0x230, &[]);
    let cleaners = [(0x400, 0, 0x300), (0x410, 0, 0x310), (0x420, 0x420, 0x300)];
    for (cleaner, next, thunk) in cleaners {
        dump.instance(cleaner, 0x210, &[Val::Ref(next), Val::Ref(thunk)]);
    }
    // Own memory, a duplicate, a mapped file, and memory that was freed.
    for (buffer, cleaner) in [(0x500, 0x400), (0x510, 0), (0x520, 0x410), (0x530, 0x420)] {
        dump.instance(buffer, 0x200, &[Val::Ref(cleaner), Val::Int(1 << 28)]);
    }
    let graph = graph_of(dump.finish());
    assert_eq!(graph.natives(), [(object(&graph, 0x500), 1 << 28)]);
}

#[test]
fn threads_without_a_name_have_their_number() {
    let mut dump = jdk();
    class(
        &mut dump,
        0x200,
        "java/lang/Thread",
        OBJECT,
        &[("name", Object), ("tid", Long)],
    );
    class(&mut dump, 0x210, "java/lang/VirtualThread", 0x200, &[]);
    class(
        &mut dump,
        0x220,
        "java/lang/String",
        OBJECT,
        &[("value", Object)],
    );
    dump.array(0x300, Byte, b"")
        .instance(0x310, 0x220, &[Val::Ref(0x300)]);
    dump.array(0x320, Byte, b"orders-1")
        .instance(0x330, 0x220, &[Val::Ref(0x320)]);
    for (serial, thread, class, name, tid) in [
        (1, 0x400, 0x210, 0x310, 42),
        (2, 0x410, 0x210, 0, 43),
        (3, 0x420, 0x210, 0x330, 44),
        (4, 0x430, 0x200, 0x310, 45),
    ] {
        dump.instance(thread, class, &[Val::Ref(name), Val::Long(tid)]);
        dump.root_of(0x08, thread, &[serial, 0]);
    }
    let graph = graph_of(dump.finish());
    let name = |serial| {
        graph
            .contents()
            .thread(&graph, serial)
            .and_then(|facts| facts.name)
    };
    let names: Vec<_> = (1..5).filter_map(name).collect();
    assert_eq!(
        names,
        [
            "virtual thread #42",
            "virtual thread #43",
            "orders-1",
            "thread #45"
        ]
    );
}

#[test]
fn contents_of_arrays_that_were_cut_out_are_noticed() {
    let made = |cut: bool| {
        let mut dump = jdk();
        class(&mut dump, 0x200, "a/Box", OBJECT, &[]);
        match cut {
            true => dump.array_without_data(0x23, 0x1000, Byte, 100),
            false => dump.array(0x1000, Byte, &[0x21; 100]),
        };
        dump.instance(0x1100, 0x200, &[]).segment();
        dump.instance(0x1110, 0x200, &[]);
        dump
    };
    // The lengths of records stay.
    let losses =
        graph_of(made(true).finish_with(|at, bytes| bytes + if at == 0 { 100 } else { 0 }));
    assert!(losses.facts.losses.contents_cut);
    let whole = made(false).finish();
    assert!(!graph_of(whole.clone()).facts.losses.contents_cut);
    let broken = graph_of(whole[..whole.len() - 20].to_vec()).facts.losses;
    assert!(broken.truncated && !broken.contents_cut);
}

#[test]
fn a_converted_dump_is_of_android_and_a_jvm_with_its_classes_is_not() {
    let mut dump = Dump::art();
    class(&mut dump, OBJECT, "java.lang.Object", 0, &[]);
    class(
        &mut dump,
        0x120,
        "android.app.Activity",
        OBJECT,
        &[("mResult", Int)],
    );
    dump.instance(0x1008, 0x120, &[Val::Int(7)]);
    let of_device = dump.finish();
    let mut converted = Vec::new();
    convert(&of_device, ConvertOptions::default(), &mut converted).expect("of Android");
    let [of_device, converted] = [of_device, converted].map(graph_of);
    assert!(!converted.is_of_java_se());
    let bytes = |graph: &HeapGraph| graph.shallow_bytes(object(graph, 0x1008));
    assert_eq!(bytes(&converted), bytes(&of_device));
    let mut dump = jdk();
    class(&mut dump, 0x120, "android/app/Activity", OBJECT, &[]);
    assert!(graph_of(dump.finish()).is_of_java_se());
}
