//! Heap graphs of each version, built packet by packet, and the effects of damage on them.

use super::super::Trace;
use crate::made;
use heaptap_model::heap_graph::{
    Follow, HeapGraph, HeapKind, MAX_NAME_BYTES, ObjectId, ObjectIndex, Reachable, ReferenceKind,
    RootKind, Value,
};
use std::io::Cursor;
use std::ops::ControlFlow;

/// A message under construction.
#[derive(Debug, Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u32, number: u64) -> Self {
        self.0.extend(made::number(field, number));
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.0.extend(made::bytes(field, bytes));
        self
    }

    fn message(self, field: u32, inner: Message) -> Self {
        self.bytes(field, &inner.0)
    }

    fn packed(self, field: u32, numbers: &[u64]) -> Self {
        let inner: Vec<u8> = numbers.iter().flat_map(|n| made::varint(*n)).collect();
        self.bytes(field, &inner)
    }
}

fn message() -> Message {
    Message::default()
}

fn object(id: u64, type_id: u64) -> Message {
    message().number(1, id).number(2, type_id)
}

fn next_object(delta: u64, type_id: u64) -> Message {
    message().number(7, delta).number(2, type_id)
}

fn interned(id: u64, text: &str) -> Message {
    message().number(1, id).bytes(2, text.as_bytes())
}

/// Builds a type as in Android 12.
fn class(id: u64, name: &str, superclass: u64, fields: &[u64], kind: u64, size: u64) -> Message {
    message()
        .number(1, id)
        .bytes(3, name.as_bytes())
        .number(4, size)
        .number(5, superclass)
        .packed(6, fields)
        .number(7, kind)
}

fn roots(kind: u64, ids: &[u64]) -> Message {
    message().packed(1, ids).number(2, kind)
}

/// Builds a `HeapGraph` of process 7.
fn graph(index: u64, continued: bool) -> Message {
    message()
        .number(1, 7)
        .number(6, index)
        .number(5, u64::from(continued))
}

/// Builds a packet at time 10 on sequence 1.
fn packet(graph: Message) -> Vec<u8> {
    packet_at(10, 1, graph)
}

fn packet_at(time: u64, sequence: u64, graph: Message) -> Vec<u8> {
    let body = message()
        .number(8, time)
        .number(10, sequence)
        .message(56, graph);
    message().message(1, body).0
}

fn open(trace: &[Vec<u8>]) -> Trace {
    Trace::open(Box::new(Cursor::new(trace.concat()))).unwrap()
}

/// Decodes the only dump of a trace.
fn decode(trace: &[Vec<u8>]) -> HeapGraph {
    let mut trace = open(trace);
    assert_eq!(trace.java_dumps().len(), 1);
    trace.read_java_dump(0).unwrap()
}

fn at(graph: &HeapGraph, id: u64) -> ObjectIndex {
    graph.find(ObjectId(id)).expect("the object is there")
}

/// Returns the fields as `declaring.field: value`.
fn fields(graph: &HeapGraph, id: u64) -> Vec<String> {
    let mut all = Vec::new();
    let object = at(graph, id);
    graph.contents().fields(graph, object, &mut |field| {
        let class = field.declared_in.map(|c| graph.class(c).shown().to_owned());
        let name = match (field.name, field.element) {
            (Some(name), _) => name.to_owned(),
            (None, Some(element)) => format!("[{element}]"),
            (None, None) => "?".to_owned(),
        };
        let value = match field.value {
            Value::Object(target) => graph.id(target).0.to_string(),
            other => format!("{other:?}"),
        };
        let is_static = if field.is_static { "static " } else { "" };
        let class = class.map_or(String::new(), |class| format!("{class}."));
        all.push(format!("{is_static}{class}{name}: {value}"));
        ControlFlow::Continue(())
    });
    all
}

#[test]
fn the_name_of_a_class_is_cut_where_no_real_one_ends() {
    let long = "x".repeat(100_000);
    let graph = graph(0, false)
        .message(2, object(100, 1))
        .message(7, roots(1, &[100]))
        .message(9, class(1, &long, 0, &[], 1, 24));
    let graph = decode(&[packet(graph)]);
    let class = graph.class(graph.class_of(at(&graph, 100)));
    assert_eq!(class.name.len(), MAX_NAME_BYTES);
}

#[test]
fn android_12_names_fields_by_type_and_superclass() {
    let first = graph(0, true)
        .message(2, object(100, 1).number(6, 99).packed(5, &[0, 2, 3]))
        .message(2, next_object(1, 2))
        .message(2, next_object(1, 3).number(3, 64).packed(5, &[101]));
    let second = graph(1, false)
        .message(7, roots(1, &[100]))
        .message(4, interned(1, "Base Child.own"))
        .message(4, interned(2, "Leaf Base.first"))
        .message(4, interned(3, "Base.second"))
        .message(9, class(1, "Child", 9, &[1], 1, 24))
        .message(9, class(9, "Base", 0, &[2, 3], 1, 16))
        .message(9, class(2, "Leaf", 0, &[], 2, 8))
        .message(9, class(3, "Leaf[]", 0, &[], 4, 0));
    let graph = decode(&[packet(first), packet(second)]);
    assert_eq!(graph.len(), 3);
    assert_eq!(graph.shallow_bytes(at(&graph, 100)), 24);
    assert_eq!(graph.shallow_bytes(at(&graph, 102)), 64);
    assert_eq!(
        fields(&graph, 100),
        ["Child.own: Null", "Base.first: 101", "Base.second: 102"]
    );
    assert_eq!(fields(&graph, 102), ["[0]: 101"]);
    assert_eq!(graph.root_kind(at(&graph, 100)), Some(RootKind::JniGlobal));
    let child = graph.class_of(at(&graph, 100));
    assert!(graph.is_a(child, "Base"));
    assert_eq!(graph.facts.pid, Some(7));
    assert_eq!(graph.facts.time_ns, 10);
    assert_eq!(graph.facts.losses, Default::default());
}

#[test]
fn referents_are_set_apart_by_kind() {
    let names = "java.lang.Object java.lang.ref.Reference.referent";
    let dump = graph(0, false)
        .message(2, object(1, 1).packed(5, &[0, 3]))
        .message(2, object(2, 2).packed(5, &[0, 3]))
        .message(2, object(3, 3))
        .message(7, roots(3, &[1, 2]))
        .message(4, interned(1, "Q java.lang.ref.Reference.queue"))
        .message(4, interned(2, names))
        .message(9, class(8, "java.lang.ref.Reference", 0, &[1, 2], 1, 16))
        .message(9, class(1, "java.lang.ref.WeakReference", 8, &[], 9, 16))
        .message(9, class(2, "java.lang.ref.SoftReference", 8, &[], 8, 16))
        .message(9, class(3, "Thing", 0, &[], 2, 16));
    let graph = decode(&[packet(dump)]);
    let kinds: Vec<ReferenceKind> = graph.referents().iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [ReferenceKind::Weak, ReferenceKind::Soft]);
    assert_eq!(
        fields(&graph, 1),
        [
            "java.lang.ref.Reference.queue: Null",
            "java.lang.ref.Reference.referent: 3"
        ]
    );
    let reached = |follow| Reachable::new(&graph, follow).contains(at(&graph, 3));
    assert!(reached(Follow::default()));
    assert!(!reached(Follow::STRONG));
}

#[test]
fn heaps_stick_and_those_never_collected_are_roots() {
    let dump = graph(0, true)
        .message(2, object(1, 1).number(9, 2))
        .message(2, next_object(1, 1));
    let rest = graph(1, false)
        .message(2, next_object(1, 1).number(9, 1))
        .message(9, class(1, "Thing", 0, &[], 2, 16));
    let graph = decode(&[packet(dump), packet(rest)]);
    let heaps: Vec<HeapKind> = graph.objects().map(|o| graph.heap_of(o)).collect();
    assert_eq!(heaps, [HeapKind::Zygote, HeapKind::Zygote, HeapKind::App]);
    let kinds: Vec<_> = graph.objects().map(|o| graph.root_kind(o)).collect();
    let internal = Some(RootKind::VmInternal);
    assert_eq!(kinds, [internal, internal, None]);
}

#[test]
fn android_11_names_fields_by_object_and_classes_without_kind() {
    let dump = graph(0, false)
        .message(
            2,
            object(1, 1)
                .number(3, 16)
                .packed(4, &[1, 2])
                .packed(5, &[2, 0]),
        )
        .message(
            2,
            object(2, 2)
                .number(3, 40)
                .packed(4, &[3; 20])
                .packed(5, &[1; 20]),
        )
        .message(7, roots(4, &[1]))
        .message(4, interned(1, "a.b"))
        .message(4, interned(2, "java.lang.String a.c"))
        .message(4, interned(3, ""))
        .message(9, message().number(1, 1).bytes(3, b"a"))
        .message(9, message().number(1, 2).bytes(3, b"a[]"));
    let graph = decode(&[packet(dump)]);
    assert_eq!(fields(&graph, 1), ["a.b: 2", "a.c: Null"]);
    let elements = fields(&graph, 2);
    assert_eq!((elements.len(), &*elements[19]), (20, "[19]: 1"));
    assert_eq!(graph.facts.losses, Default::default());
    assert_eq!(graph.root_kind(at(&graph, 1)), Some(RootKind::NativeStack));
}

#[test]
fn class_objects_give_superclasses_and_statics() {
    let dump = graph(0, false)
        .message(2, object(1, 1).packed(4, &[1, 2, 3]).packed(5, &[2, 0, 3]))
        .message(2, object(2, 2).packed(4, &[1]).packed(5, &[0]))
        .message(2, object(3, 3))
        .message(4, interned(1, "java.lang.Class java.lang.Class.superClass"))
        .message(4, interned(2, "java.lang.Object java.lang.Class.dexCache"))
        .message(4, interned(3, "Cache x.Child.shared"))
        .message(8, interned(7, "/data/app/base.apk"))
        .message(
            9,
            class(1, "java.lang.Class<x.Child>", 0, &[], 5, 0).number(2, 7),
        )
        .message(
            9,
            class(2, "java.lang.Class<x.Base>", 0, &[], 5, 0).number(2, 7),
        )
        .message(
            9,
            class(3, "x.Child", 0, &[], 1, 8).number(2, 7).number(8, 3),
        )
        .message(9, class(4, "x.Base", 0, &[], 1, 8).number(2, 7));
    let graph = decode(&[packet(dump)]);
    assert_eq!(
        fields(&graph, 1),
        [
            "superClass: 2",
            "dexCache: Null",
            "static x.Child.shared: 3"
        ]
    );
    let child = graph.class_of(at(&graph, 3));
    assert_eq!(graph.class(child).object, Some(at(&graph, 1)));
    assert_eq!(graph.class(child).loader, Some(at(&graph, 3)));
    assert_eq!(
        graph.class(child).location.as_deref(),
        Some("/data/app/base.apk")
    );
    assert!(graph.is_a(child, "x.Base"));
    assert_eq!(graph.class_behind(at(&graph, 1)), Some(child));
}

#[test]
fn android_11_gives_superclasses_without_instances_and_weak_references() {
    let named = |id, name: &str| class(id, name, 0, &[], 0, 0);
    let referent = "java.lang.Object java.lang.ref.Reference.referent";
    let dump = graph(0, false)
        .message(2, object(1, 1).packed(4, &[1]).packed(5, &[2]))
        .message(2, object(2, 2))
        .message(2, object(3, 3))
        .message(2, object(4, 4).packed(4, &[2, 3]).packed(5, &[3, 1]))
        .message(4, interned(1, "java.lang.Class java.lang.Class.superClass"))
        .message(4, interned(2, referent))
        .message(4, interned(3, "java.lang.Class x.Key.owner"))
        .message(9, named(1, "java.lang.Class<x.Screen>"))
        .message(9, named(2, "java.lang.Class<android.app.Activity>"))
        .message(9, named(3, "x.Screen"))
        .message(9, named(4, "x.Key"));
    let graph = decode(&[packet(dump)]);
    let screen = graph.class_of(at(&graph, 3));
    assert!(graph.is_a(screen, "android.app.Activity"));
    let key = at(&graph, 4);
    let kinds: Vec<_> = graph.referents_of(key).iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [ReferenceKind::Weak]);
    assert_eq!(fields(&graph, 4), ["referent: 3", "x.Key.owner: 1"]);
}

/// Adds classes of native allocations: a Cleaner's fields are next, thunk, referent.
fn cleaners(dump: Message) -> Message {
    let thunk = "libcore.util.NativeAllocationRegistry$CleanerThunk";
    dump.message(4, interned(1, "sun.misc.Cleaner sun.misc.Cleaner.next"))
        .message(4, interned(2, "java.lang.Runnable sun.misc.Cleaner.thunk"))
        .message(
            4,
            interned(3, "java.lang.Object java.lang.ref.Reference.referent"),
        )
        .message(4, interned(4, &format!("Registry {thunk}.this$0")))
        .message(9, class(1, "Owner", 0, &[], 1, 8))
        .message(9, class(2, "sun.misc.Cleaner", 9, &[1, 2], 11, 8))
        .message(9, class(9, "java.lang.ref.Reference", 0, &[3], 1, 8))
        .message(9, class(3, thunk, 0, &[4], 1, 8))
        .message(
            9,
            class(4, "libcore.util.NativeAllocationRegistry", 0, &[], 1, 8),
        )
}

#[test]
fn native_bytes_belong_to_whom_a_cleaner_refers() {
    let registry = |id, size: i64| object(id, 4).number(8, size as u64);
    let dump = graph(0, false)
        .message(2, object(1, 1))
        .message(2, object(2, 2).packed(5, &[0, 10, 1]))
        .message(2, object(3, 2).packed(5, &[2, 11, 1]))
        // One that has run, and one with an invalid size.
        .message(2, object(4, 2).packed(5, &[4, 10, 1]))
        .message(2, object(5, 2).packed(5, &[0, 12, 1]))
        .message(2, object(10, 3).packed(5, &[20]))
        .message(2, object(11, 3).packed(5, &[21]))
        .message(2, object(12, 3).packed(5, &[22]))
        .message(2, registry(20, 1001))
        .message(2, registry(21, 24))
        .message(2, registry(22, -8));
    let graph = decode(&[packet(cleaners(dump))]);
    assert_eq!(graph.natives(), [(at(&graph, 1), 1024)]);
    assert!(!Reachable::new(&graph, Follow::ALL).contains(at(&graph, 2)));
}

#[test]
fn what_only_the_runtime_refers_to_and_bitmaps_show_as_fields() {
    let bitmap = object(1, 1)
        .packed(5, &[2])
        .packed(10, &[3, 2])
        .number(11, 77)
        .number(13, 640)
        .number(14, (-1i64) as u64);
    let dump = graph(0, false)
        .message(2, bitmap)
        .message(2, object(2, 2))
        .message(2, object(3, 2))
        .message(7, roots(1, &[1]))
        .message(10, Message::default())
        .number(10, 123_456)
        .message(4, interned(1, "Thing android.graphics.Bitmap.thing"))
        .message(9, class(1, "android.graphics.Bitmap", 0, &[1], 1, 48))
        .message(9, class(2, "Thing", 0, &[], 2, 8));
    let graph = decode(&[packet(dump)]);
    assert_eq!(
        fields(&graph, 1),
        [
            "android.graphics.Bitmap.thing: 2",
            "runtimeInternalObjects: 3",
            "runtimeInternalObjects: 2",
            "android.graphics.Bitmap.mId: Long(77)",
            "android.graphics.Bitmap.mWidth: Int(640)",
            "android.graphics.Bitmap.mHeight: Int(-1)",
        ]
    );
    assert_eq!(graph.facts.heap_bytes_allocated, Some(123_456));
    assert_eq!(Reachable::new(&graph, Follow::STRONG).count(), 3);
}

/// Builds a dump of one packet with a few objects.
fn small(index: u64, continued: bool, ids: &[u64]) -> Message {
    let all = ids.iter().fold(graph(index, continued), |graph, &id| {
        graph.message(2, object(id, 1))
    });
    all.message(9, class(1, "Thing", 0, &[], 2, 8))
}

#[test]
fn gaps_and_missing_ends_are_told() {
    let gap = decode(&[packet(small(0, true, &[1])), packet(small(3, false, &[2]))]);
    assert_eq!(gap.len(), 2);
    assert_eq!(gap.facts.losses.missing_packets, 2);
    assert!(gap.facts.losses.truncated);
    let unfinished = decode(&[packet(small(0, true, &[1]))]);
    assert_eq!(unfinished.facts.losses.missing_packets, 0);
    assert!(unfinished.facts.losses.truncated);
    let late = decode(&[packet(small(1, false, &[1]))]);
    assert_eq!(late.facts.losses.missing_packets, 1);
}

#[test]
fn gaps_as_large_as_numbers_get_are_borne() {
    let graph = decode(&[
        packet(small(u64::MAX, true, &[100])),
        packet(small(u64::MAX, true, &[200])),
        packet(small(u64::MAX, false, &[300])),
    ]);
    assert_eq!(graph.len(), 3);
    assert_eq!(graph.facts.losses.missing_packets, u64::MAX);
    assert!(graph.facts.losses.truncated);
}

#[test]
fn dumps_are_told_apart_by_process_and_time_and_joined_by_both() {
    let at_time = |time, sequence, id| packet_at(time, sequence, small(0, false, &[id]));
    let mut trace = open(&[at_time(20, 1, 1), at_time(10, 1, 2), at_time(20, 2, 3)]);
    let times: Vec<u64> = trace.java_dumps().iter().map(|dump| dump.time_ns).collect();
    assert_eq!(times, [10, 20]);
    assert_eq!(trace.read_java_dump(0).unwrap().len(), 1);
    let both = trace.read_java_dump(1).unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(both.facts.losses, Default::default());
    // A second reading gives the same.
    assert_eq!(trace.read_java_dump(1).unwrap().len(), 2);
}

#[test]
fn packets_of_another_dump_inside_a_chain_are_left_out_and_told() {
    let other = small(1, true, &[9]).number(1, 8);
    let graph = decode(&[
        packet(small(0, true, &[1])),
        packet(other),
        packet_at(11, 1, small(2, true, &[8])),
        packet(small(3, false, &[2])),
    ]);
    assert_eq!(graph.len(), 2);
    assert_eq!(graph.facts.losses.damage.len(), 1);
    assert!(graph.facts.losses.damage[0].ends_with("another process or dump: 2"));
}

#[test]
fn a_dump_whose_end_is_damaged_leaves_the_next_one_whole() {
    let mut cut = small(1, false, &[2]);
    // A field that is longer than the rest.
    cut.0.extend([2 << 3 | 2, 0xe8, 7]);
    let mut trace = open(&[
        packet(small(0, true, &[1])),
        packet(cut),
        packet_at(20, 1, small(0, true, &[3])),
        packet_at(20, 1, small(1, false, &[4, 5])),
    ]);
    let times: Vec<u64> = trace.java_dumps().iter().map(|dump| dump.time_ns).collect();
    assert_eq!(times, [10, 20]);
    let first = trace.read_java_dump(0).unwrap();
    assert_eq!(first.len(), 2);
    assert!(first.facts.losses.truncated);
    assert_eq!(first.facts.losses.damage, ["damaged packets: 1"]);
    let second = trace.read_java_dump(1).unwrap();
    assert_eq!(second.len(), 3);
    assert_eq!(second.facts.losses, Default::default());
}

#[test]
fn objects_that_contradict_themselves_are_left_out() {
    let odd = next_object(5, 1).packed(4, &[1, 2]).packed(5, &[1]);
    let cut = object(30, 1).bytes(5, &[0x80]);
    let first = graph(0, true)
        .message(2, object(1, 1))
        .message(2, odd)
        // Relative to the last intact object.
        .message(2, next_object(1, 1))
        .message(2, cut)
        .message(2, object(40, 1));
    let graph = decode(&[packet(first), packet(small(1, false, &[50]))]);
    let ids: Vec<u64> = graph.objects().map(|o| graph.id(o).0).collect();
    assert_eq!(ids, [1, 2, 50]);
    assert_eq!(graph.facts.losses.malformed, 2);
    assert_eq!(graph.facts.losses.damage.len(), 1);
}

#[test]
fn long_messages_are_read_in_parts() {
    let count = 2 * super::columns::MAX_AHEAD as u64 + 7;
    let mut long = graph(0, true).message(2, object(1000, 1));
    for n in 1..count {
        let mut next = next_object(1, 1);
        if n % 1000 == 0 {
            next = next.number(8, n).packed(4, &[1]).packed(5, &[1000]);
        }
        long = long.message(2, next);
    }
    let rest = small(1, false, &[5]).message(4, interned(1, "java.lang.Object x.Y.z"));
    let graph = decode(&[packet(long), packet(rest)]);
    assert_eq!(graph.len() as u64, count + 1);
    let last = at(&graph, 1000 + count / 1000 * 1000);
    assert_eq!(graph.references(last), [at(&graph, 1000)]);
    let both = ["z: 1000", "Thing.size: Long(33000)"];
    assert_eq!(fields(&graph, 1000 + 33_000), both);
}

#[test]
fn what_leads_nowhere_is_kept_as_a_placeholder() {
    let dump = graph(0, false)
        .message(2, object(5, 1).packed(5, &[9, 3, 9]))
        .message(2, object(7, 6))
        .message(7, roots(1, &[5, 99, 3]))
        .message(4, interned(1, "Thing Holder.only"))
        .message(9, class(1, "Holder", 0, &[1], 1, 8));
    let graph = decode(&[packet(dump)]);
    let ids: Vec<u64> = graph.objects().map(|o| graph.id(o).0).collect();
    assert_eq!(ids, [3, 5, 7, 9]);
    let ghosts: Vec<bool> = graph.objects().map(|o| graph.is_placeholder(o)).collect();
    assert_eq!(ghosts, [true, false, false, true]);
    assert_eq!(
        graph.class(graph.class_of(at(&graph, 3))).name,
        "[not dumped]"
    );
    assert_eq!(fields(&graph, 5), ["Holder.only: 9", "?: 3", "?: 9"]);
    let losses = &graph.facts.losses;
    assert_eq!(losses.dangling_references, 3);
    assert_eq!(losses.dangling_roots, 1);
    assert_eq!(losses.unknown_classes, 1);
    assert_eq!(losses.unnamed_references, 2);
}

#[test]
fn of_objects_with_one_id_the_last_counts() {
    let dump = graph(0, false)
        .message(2, object(9, 1).number(3, 8).packed(5, &[1]))
        .message(2, object(1, 1).number(3, 16))
        .message(2, object(9, 2).number(3, 24).packed(5, &[9]))
        .message(7, roots(1, &[9, 9]))
        .message(9, class(1, "Old[]", 0, &[], 4, 0))
        .message(9, class(2, "New[]", 0, &[], 4, 0));
    let graph = decode(&[packet(dump)]);
    assert_eq!(graph.len(), 2);
    assert_eq!(graph.shallow_bytes(at(&graph, 9)), 24);
    assert_eq!(fields(&graph, 9), ["[0]: 9"]);
    assert_eq!(graph.roots().len(), 1);
    assert_eq!(graph.facts.losses.repeated_objects, 1);
}

#[test]
fn sizes_beyond_32_bits_and_unknown_numbers_are_borne() {
    let dump = graph(0, false)
        .message(2, object(1, 1).number(3, 1 << 40).number(9, 77))
        .message(2, object(2, 2))
        .message(7, roots(99, &[1]))
        .message(9, class(1, "Huge", 0, &[], 1 << 40, 0))
        .message(9, class(2, "Vast", 0, &[], 1, u64::from(u32::MAX)))
        .number(77, 1);
    let graph = decode(&[packet(dump)]);
    assert_eq!(graph.shallow_bytes(at(&graph, 1)), 1 << 40);
    assert_eq!(graph.shallow_bytes(at(&graph, 2)), u64::from(u32::MAX));
    assert_eq!(graph.root_kind(at(&graph, 1)), Some(RootKind::Unknown));
    assert_eq!(graph.heap_of(at(&graph, 1)), HeapKind::Unknown);
}

#[test]
fn superclasses_that_go_in_a_circle_end() {
    let dump = graph(0, false)
        .message(2, object(1, 1).packed(5, &[1; 9]))
        .message(4, interned(1, "T A.a"))
        .message(9, class(1, "A", 2, &[1], 1, 8))
        .message(9, class(2, "B", 1, &[], 1, 8));
    let graph = decode(&[packet(dump)]);
    assert_eq!(fields(&graph, 1).len(), 9);
}

#[test]
fn many_fields_under_many_classes_are_looked_through_once() {
    // A class above itself, with the kind of a reference, and as many classes below it.
    const MANY: u64 = 50_000;
    let fields = vec![1; MANY as usize];
    let top = graph(0, false)
        .message(2, object(1, 2).packed(5, &[1; 9]))
        .message(4, interned(1, "T A.a"))
        .message(9, class(1, "A", 1, &fields, 9, 8));
    let dump = (2..MANY).fold(top, |dump, id| {
        dump.message(9, class(id, "B", 1, &[], 9, 8))
    });
    let graph = decode(&[packet(dump)]);
    assert_eq!(graph.len(), 1);
    assert_eq!(graph.classes().len(), MANY as usize - 1);
    assert_eq!(graph.facts.losses.unnamed_references, 0);
}

#[test]
fn an_error_that_ran_out_of_memory_is_told_with_its_stack() {
    let frame = message()
        .bytes(1, b"void com.example.Cache.grow(int)")
        .bytes(2, b"Cache.java")
        .number(3, 42);
    let process = message()
        .number(1, 7)
        .number(2, 10_100)
        .bytes(3, b"com.example")
        .bytes(4, b"com.example.pkg")
        .number(5, 4096)
        .message(8, message().message(1, frame))
        .bytes(9, b"Failed to allocate");
    let metadata = message().number(8, 10).number(10, 1).message(131, process);
    let metadata = message().message(1, metadata).0;
    let mut trace = open(&[metadata.clone(), metadata, packet(small(0, false, &[1]))]);
    let dump = &trace.java_dumps()[0];
    assert_eq!(dump.process, "com.example");
    let oom = dump.out_of_memory.as_ref().expect("the error is recorded");
    assert_eq!(oom.allocation_bytes, 4096);
    assert_eq!(oom.stack[0].method, "com.example.Cache.grow");
    assert_eq!(
        (oom.stack[0].file.as_str(), oom.stack[0].line),
        ("Cache.java", 42)
    );
    let packages = &trace.recording().packages;
    assert_eq!(packages.len(), 1, "listed once");
    assert_eq!(packages[0].name, "com.example.pkg");
    let graph = trace.read_java_dump(0).unwrap();
    assert_eq!(graph.facts.reason.as_deref(), Some("OOME"));
}

#[test]
fn an_error_without_a_graph_is_listed_with_its_callsite() {
    let frame = |method: &[u8], line| message().bytes(1, method).number(3, line);
    let stack = message()
        .message(1, frame(b"void com.example.Cache.grow(int)", 42))
        .message(1, frame(b"void com.example.Main.run()", 7));
    let process = message().number(1, 7).number(5, 4096).message(8, stack);
    let error = message().number(8, 10).number(10, 1).message(131, process);
    let plain = message().message(131, message().number(1, 8)).number(8, 20);
    let packets = [error, plain].map(|packet| message().message(1, packet).0);
    let mut trace = open(&packets);
    assert!(trace.java_dumps().is_empty());
    let dumps = trace.graphless_dumps().to_vec();
    let facts = dumps
        .iter()
        .map(|dump| (dump.pid, dump.time_ns, dump.out_of_memory.is_some()));
    assert_eq!(facts.collect::<Vec<_>>(), [(7, 10, true), (8, 20, false)]);
    let callsite = dumps[0].out_of_memory.as_ref().unwrap().callsite.unwrap();
    let tables = &trace.recording().tables;
    let frames = tables.callsite(callsite).map(|frame| tables.frame(frame));
    let frames = frames.map(|frame| (tables.string(frame.name), frame.line));
    let leaf_first = [("com.example.Cache.grow", 42), ("com.example.Main.run", 7)];
    assert_eq!(frames.collect::<Vec<_>>(), leaf_first);
    let graph = trace.read_java_dump(1).unwrap();
    assert!(graph.is_empty() && graph.facts.pid == Some(8));
}

/// Builds a graph with something of everything.
fn rich() -> Vec<Vec<u8>> {
    let objects = (1..60u64).fold(graph(0, true), |graph, id| {
        let one = match id {
            1 => object(1, 1),
            id => next_object(1, 1 + id % 4),
        };
        let one = one.number(6, id).packed(5, &[0, 1, 61 - id]);
        let one = if id % 7 == 0 {
            one.packed(10, &[1, id])
        } else {
            one
        };
        let one = if id % 9 == 0 {
            one.number(8, 100).number(11, id)
        } else {
            one
        };
        let one = if id % 5 == 0 {
            one.packed(4, &[1, 2, 3])
        } else {
            one
        };
        graph.message(2, one.number(9, id % 5))
    });
    let tables = graph(1, false)
        .message(7, roots(1, &[1, 2, 80]))
        .message(7, roots(5, &[2, 3]));
    vec![packet(objects), packet(cleaners(tables))]
}

#[test]
fn every_prefix_and_many_mutations_are_borne() {
    let whole = rich().concat();
    let read = |bytes: &[u8]| {
        let mut trace = Trace::open(Box::new(Cursor::new(bytes.to_vec()))).unwrap();
        let mut objects = 0;
        for at in 0..trace.java_dumps().len() {
            let graph = trace.read_java_dump(at).unwrap();
            for object in graph.objects() {
                let visit =
                    &mut |_: heaptap_model::heap_graph::Field<'_>| ControlFlow::Continue(());
                graph.contents().fields(&graph, object, visit);
            }
            objects += graph.len();
        }
        objects
    };
    assert_eq!(read(&whole), 59 + 2, "with placeholders for 60 and 61");
    for end in 0..whole.len() {
        read(&whole[..end]);
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % limit as u64) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            bytes[at] = below(256) as u8;
        }
        read(&bytes);
    }
}
