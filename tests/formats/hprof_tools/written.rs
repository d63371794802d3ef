//! Graphs written as HPROFs and read again: the same objects, classes, sizes, references, roots and
//! dominators.

use super::dump::{ANDROID, Shape, dump};
use crate::heap_graphs::judge::open;
use crate::judge;
use android_hprof::convert::{ConvertOptions, convert};
use android_hprof::info::info;
use android_hprof::{Options, Unwritten, read, write};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    BasicType, Class, ClassIndex, ClassKind, Contents, Dominators, DumpFacts, Field, Follow,
    GraphBuilder, HeapGraph, HeapKind, NewObject, ObjectId, ObjectIndex, ReferenceKind, RootKind,
    SizeModel, Value,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

fn read_back(bytes: Vec<u8>, sizes: Option<SizeModel>) -> HeapGraph {
    let options = Options {
        sizes,
        ..Options::default()
    };
    read(Bytes::from(bytes), &options).expect("a dump")
}

fn written(graph: &HeapGraph) -> Vec<u8> {
    let mut out = Vec::new();
    let unwritten = write(graph, 0, &mut out).expect("memory");
    assert_eq!(unwritten, Unwritten::default());
    let info = info(&out).expect("a dump");
    assert!(info.is_whole(), "{:?}", info.damage);
    out
}

fn graph_of_trace() -> HeapGraph {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heap_graphs");
    let mut heaps = open(&fixtures.join("graph_10k.pftrace.zst")).expect("the fixture");
    heaps.remove(0).graph
}

/// Graphs of dumps of many shapes, with values of primitive fields.
fn graphs_of_dumps() -> Vec<HeapGraph> {
    let of = |seed| {
        let shape = Shape {
            objects: 40 + 60 * seed as usize,
            id: 4 + 4 * (seed as usize % 2),
            odd: false,
            ..ANDROID
        };
        read_back(dump(seed, shape).bytes, None)
    };
    (0..8).map(of).collect()
}

/// The IDs of a graph and those of its HPROF.
struct Same<'g> {
    graph: &'g HeapGraph,
    back: &'g HeapGraph,
    shift: u32,
}

impl Same<'_> {
    fn of(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        self.back
            .find(ObjectId(self.graph.id(object).0 << self.shift))
    }

    fn all(&self, objects: impl Iterator<Item = ObjectIndex>) -> BTreeSet<ObjectIndex> {
        objects.filter_map(|object| self.of(object)).collect()
    }
}

fn assert_same(graph: &HeapGraph) {
    let back = &read_back(written(graph), None);
    let bits = graph.objects().fold(0, |bits, o| bits | graph.id(o).0);
    let shift = 3u32.saturating_sub(bits.trailing_zeros());
    let same = Same { graph, back, shift };
    let [ours, theirs] = [graph, back].map(|graph| Dominators::compute(graph, Follow::default()));
    let known = same.all(graph.objects());
    let mut compared = 0;
    for object in graph.objects().filter(|&o| !graph.is_placeholder(o)) {
        let name = &graph.class(graph.class_of(object)).name;
        let found = same.of(object).expect("every object is written");
        let class = back.class(back.class_of(found));
        let what = format!("{name} {}", graph.id(object));
        let kinds = |graph: &HeapGraph, object| -> Vec<RootKind> {
            graph
                .roots_of(object)
                .iter()
                .map(|root| root.kind)
                .collect()
        };
        assert_eq!(kinds(back, found), kinds(graph, object), "{what}");
        assert_eq!(back.heap_of(found), graph.heap_of(object), "{what}");
        let targets = |graph: &HeapGraph, object| -> Vec<ObjectIndex> {
            let all = graph.references(object).iter().copied();
            all.filter(|&target| target != ObjectIndex::NONE).collect()
        };
        let expected = same.all(targets(graph, object).into_iter());
        let got: BTreeSet<ObjectIndex> = targets(back, found).into_iter().collect();
        let is_class = graph.class_behind(object).is_some();
        assert!(got.is_superset(&expected), "{what}");
        // Arrays that only the file has have no references of their own.
        let more = got.difference(&expected).count();
        assert!(is_class || more <= 2, "{what}: {more}");
        let held = |graph: &HeapGraph, object| -> Vec<ObjectIndex> {
            graph
                .referents_of(object)
                .iter()
                .map(|r| r.target)
                .collect()
        };
        let expected = same.all(held(graph, object).into_iter());
        assert_eq!(expected, held(back, found).into_iter().collect(), "{what}");
        let idom = ours.idom(object).and_then(|idom| same.of(idom));
        assert_eq!(theirs.idom(found), idom, "{what}");
        let bytes = graph.shallow_bytes(object);
        if is_class {
            assert!(back.shallow_bytes(found) >= bytes, "{what}");
            continue;
        }
        assert_eq!(&class.name, name);
        compared += 1;
        let behind = targets(back, found).into_iter();
        let behind = behind.filter(|o| !known.contains(o));
        let more: u64 = behind.map(|o| back.shallow_bytes(o)).sum();
        match name.strip_suffix("[]") {
            None => assert_eq!(back.shallow_bytes(found) + more, bytes, "{what}"),
            Some("long" | "double") => {
                assert_eq!(
                    back.shallow_bytes(found),
                    bytes.saturating_sub(16) / 8 * 8,
                    "{what}"
                );
            }
            Some(_) => assert!(
                bytes.saturating_sub(back.shallow_bytes(found)) < 24,
                "{what}"
            ),
        }
    }
    assert!(compared > 0);
}

/// Names of the fields of a small graph: the class that declares each, and its own name.
struct Named;

impl Contents for Named {
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        // The list has a field of its own, one of its superclass, and one without a name.
        let fields = [(Some("own"), 0), (Some("next"), 1), (None, 0)];
        let referent = graph.referents_of(object).first();
        for (at, &target) in graph.references(object).iter().enumerate() {
            let (name, class) = match referent {
                Some(_) => (Some("referent"), 5),
                None => fields[at % fields.len()],
            };
            let field = Field {
                name,
                declared_in: name.map(|_| ClassIndex(class)),
                ..Field::from_value(match referent.map_or(target, |referent| referent.target) {
                    ObjectIndex::NONE => Value::Null,
                    target => Value::Object(target),
                })
            };
            if visit(field).is_break() {
                return;
            }
        }
    }
}

/// A graph as of Android 11: small IDs, no superclasses; and an array larger than a segment.
fn small_graph() -> HeapGraph {
    let classes = [
        ("x.List", ClassKind::Normal),
        ("x.Base", ClassKind::Normal),
        ("byte[]", ClassKind::Array),
        ("java.lang.String", ClassKind::String),
        ("java.lang.ref.WeakReference", ClassKind::WeakReference),
        ("java.lang.ref.Reference", ClassKind::Normal),
        ("x.List[]", ClassKind::Array),
    ];
    let mut builder = GraphBuilder::default();
    let mut object = |id: u64, class: u32, shallow_bytes: u64, heap: HeapKind, to: &[u64]| {
        builder.object(NewObject {
            id: ObjectId(id),
            class: ClassIndex(class),
            shallow_bytes,
            heap,
        });
        to.iter().for_each(|&to| match class {
            4 => builder.referent(ReferenceKind::Weak, ObjectId(to)),
            _ => builder.reference(ObjectId(to)),
        });
    };
    object(1, 0, 28, HeapKind::App, &[2, 3, 99]);
    object(2, 2, 12 + 200_001, HeapKind::App, &[]);
    object(3, 3, 16 + 5, HeapKind::Zygote, &[]);
    object(4, 4, 24, HeapKind::App, &[1]);
    object(5, 6, 12 + 4 * 30_000, HeapKind::BootImage, &[1, 0, 4]);
    object(6, 0, 44, HeapKind::Unknown, &[0, 5]);
    builder.root(ObjectId(6), RootKind::ThreadObject, None, None);
    builder.root(ObjectId(6), RootKind::InternedString, None, None);
    builder.root(ObjectId(4), RootKind::JniLocal, None, None);
    let classes = classes.map(|(name, kind)| Class {
        name: name.to_owned(),
        kind,
        ..Class::default()
    });
    let facts = DumpFacts::default();
    builder
        .finish(classes.into(), Vec::new(), Box::new(Named), facts, true)
        .expect("it is small")
}

#[test]
fn a_graph_of_android_11_keeps_them_too() {
    let graph = small_graph();
    assert_same(&graph);
    let back = read_back(written(&graph), None);
    assert_eq!(back.referents().len(), 1);
    let find = |id: u64| back.find(ObjectId(8 * id)).expect("it is written");
    let of_class = |id: u64| back.class(back.class_of(find(id)));
    let name = |class| &*back.class(class).name;
    let superclass = |id| of_class(id).superclass.map(name);
    assert_eq!(superclass(1), None);
    assert_eq!(superclass(4), Some("java.lang.ref.Reference"));
    let fields = |class: &Class| -> Vec<String> {
        class
            .fields
            .iter()
            .map(|field| field.name.clone())
            .collect()
    };
    assert_eq!(
        fields(of_class(1)),
        ["own", "next", "$reference2", "$more", "$unknown0"]
    );
    let bytes = back.contents().primitive_array(&back, find(2));
    let bytes = bytes.map(|array| (array.element, array.length));
    assert_eq!(bytes, Some((BasicType::Byte, 200_001)));
    let length = back.contents().object_array_length(&back, find(5));
    assert_eq!(length, Some(30_000));
    let text = back.contents().string(&back, find(3));
    assert_eq!(text.as_deref(), Some("\0\0\0\0\0"));
}

#[test]
fn a_heap_graph_keeps_objects_sizes_references_roots_and_dominators() {
    assert_same(&graph_of_trace());
}

#[test]
fn a_graph_with_values_keeps_them() {
    for graph in graphs_of_dumps() {
        let back = read_back(written(&graph), None);
        let numbers = |graph: &HeapGraph| {
            let mut all = Vec::new();
            let instances = graph.objects().filter(|&o| graph.class_behind(o).is_none());
            for object in instances {
                graph.contents().fields(graph, object, &mut |field| {
                    let is_named = field.name.is_some_and(|name| !name.starts_with('$'));
                    if let (true, Some(number)) = (is_named, field.value.integer())
                        && number != 0
                    {
                        all.push((field.name.unwrap_or_default().to_owned(), number));
                    }
                    ControlFlow::Continue(())
                });
            }
            all.sort();
            all
        };
        let expected = numbers(&graph);
        assert!(!expected.is_empty());
        assert_eq!(numbers(&back), expected);
    }
}

#[test]
fn the_sizes_of_art_are_those_of_the_graph() {
    let graph = graph_of_trace();
    let back = read_back(written(&graph), Some(SizeModel::Art));
    let sum = |graph: &HeapGraph| -> u64 {
        let rounded = |o| graph.shallow_bytes(o).next_multiple_of(8);
        graph.objects().map(rounded).sum()
    };
    let (ours, theirs) = (sum(&graph), sum(&back));
    assert!(
        theirs.abs_diff(ours) * 50 < ours,
        "{theirs} instead of {ours}"
    );
}

#[test]
#[ignore = "needs hprof-conv: tests/run.sh runs it"]
fn judged_by_hprof_conv_written_graphs_are_converted() {
    let judge = judge::hprof_conv();
    for graph in graphs_of_dumps().into_iter().chain([graph_of_trace()]) {
        let bytes = written(&graph);
        // It does not support IDs of 8 bytes.
        if bytes[22] != 4 {
            continue;
        }
        let theirs = super::conv::judged(&judge, &bytes, false).expect("hprof-conv converts it");
        let mut ours = Vec::new();
        convert(&bytes, ConvertOptions::default(), &mut ours).expect("Android's dialect");
        assert!(ours == theirs);
    }
}

#[test]
#[ignore = "needs VisualVM's library and a JDK: tests/run.sh runs it"]
fn judged_by_visualvm_written_graphs_are_read() {
    let jar = judge::visualvm();
    let directory = tempfile::tempdir().expect("a folder");
    let graphs = graphs_of_dumps().into_iter().chain([graph_of_trace()]);
    let (mut files, mut expected) = (Vec::new(), Vec::new());
    for (at, graph) in graphs.enumerate() {
        let mut java_se = Vec::new();
        convert(&written(&graph), ConvertOptions::default(), &mut java_se).expect("Android's");
        expected.push(format!(
            " instances {} ",
            info(&java_se).expect("a dump").objects()
        ));
        files.push(directory.path().join(format!("{at}.hprof")));
        std::fs::write(&files[at], java_se).expect("room");
    }
    let lines = super::visualvm::judged(&jar, &files);
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.contains(expected), "{line}, not{expected}");
    }
}
