//! Heap graphs of each version, written packet by packet in a small language, and what becomes
//! of damage in them.

use super::super::Trace;
use crate::heap_graph::{
    Follow, HeapGraph, HeapKind, ObjectId, ObjectIndex, Reachable, ReferenceKind, RootKind, Value,
};
use std::io::Cursor;
use std::ops::ControlFlow;

/// A message under construction.
#[derive(Debug, Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, field: u32, number: u64) -> Self {
        self.varint(u64::from(field) << 3).varint(number)
    }

    fn bytes(self, field: u32, bytes: &[u8]) -> Self {
        let mut next = self
            .varint(u64::from(field) << 3 | 2)
            .varint(bytes.len() as u64);
        next.0.extend_from_slice(bytes);
        next
    }

    fn message(self, field: u32, inner: Message) -> Self {
        self.bytes(field, &inner.0)
    }

    fn packed(self, field: u32, numbers: &[u64]) -> Self {
        let inner = numbers
            .iter()
            .fold(Message::default(), |inner, &n| inner.varint(n));
        self.message(field, inner)
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

/// A type as Android 12 has it.
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

/// A `HeapGraph` of process 7.
fn graph(index: u64, continued: bool) -> Message {
    message()
        .number(1, 7)
        .number(6, index)
        .number(5, u64::from(continued))
}

/// A packet at time 10 on sequence 1.
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

/// The one dump of a trace.
fn decode(trace: &[Vec<u8>]) -> HeapGraph {
    let mut trace = open(trace);
    assert_eq!(trace.java_dumps().len(), 1);
    trace.read_java_dump(0).unwrap()
}

fn at(graph: &HeapGraph, id: u64) -> ObjectIndex {
    graph.find(ObjectId(id)).expect("the object is there")
}

/// `declaring.field: what it holds`.
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
    let reached = |follow| Reachable::of(&graph, follow).contains(at(&graph, 3));
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
