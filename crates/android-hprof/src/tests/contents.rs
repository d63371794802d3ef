//! Contents of objects through [`Contents`](heaptap_model::heap_graph::Contents).

use super::dump::{ClassSpec, Dump, Val};
use super::{fields, graph_of, object};
use crate::records::tag;
use heaptap_model::heap_graph::BasicType::{
    Boolean, Byte, Char, Double, Float, Int, Long, Object, Short,
};
use heaptap_model::heap_graph::{
    AllocationSite, FieldRenamer, HeapGraph, ObjectId, OriginalField, Value,
};
use std::ops::ControlFlow;

const OBJECT: u64 = 0x100;
const CLASS: u64 = 0x110;
const STRING: u64 = 0x120;

fn with_classes<'a>(
    dump: &'a mut Dump,
    string: &[(&str, heaptap_model::heap_graph::BasicType)],
) -> &'a mut Dump {
    dump.class(&ClassSpec {
        id: OBJECT,
        name: "java.lang.Object",
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: CLASS,
        name: "java.lang.Class",
        superclass: OBJECT,
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: STRING,
        name: "java.lang.String",
        superclass: OBJECT,
        fields: string,
        ..ClassSpec::default()
    })
}

#[test]
fn fields_have_names_and_values_through_superclasses_nulls_too() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump, &[]);
    dump.class(&ClassSpec {
        id: 0x200,
        name: "a.Base",
        superclass: OBJECT,
        fields: &[
            ("held", Object),
            ("gone", Object),
            ("none", Object),
            ("same", Int),
        ],
        ..ClassSpec::default()
    });
    let kinds = [
        ("z", Boolean),
        ("c", Char),
        ("f", Float),
        ("d", Double),
        ("b", Byte),
        ("s", Short),
        ("same", Int),
        ("j", Long),
    ];
    dump.class(&ClassSpec {
        id: 0x210,
        name: "a.Derived",
        superclass: 0x200,
        fields: &kinds,
        ..ClassSpec::default()
    });
    let values = [
        Val::Bool(true),
        Val::Char(0x416),
        Val::Float(1.5),
        Val::Double(-2.25),
        Val::Byte(-3),
        Val::Short(-4),
        Val::Int(-5),
        Val::Long(-6),
        Val::Ref(0x1000),
        Val::Ref(0xdead0),
        Val::Ref(0),
        Val::Int(9),
    ];
    dump.instance(0x1000, 0x210, &values);
    let graph = graph_of(dump.finish());
    let own = object(&graph, 0x1000);
    let expected = [
        ("z", Value::Boolean(true)),
        ("c", Value::Char(0x416)),
        ("f", Value::Float(1.5)),
        ("d", Value::Double(-2.25)),
        ("b", Value::Byte(-3)),
        ("s", Value::Short(-4)),
        ("same", Value::Int(-5)),
        ("j", Value::Long(-6)),
        ("held", Value::Object(own)),
        ("gone", Value::Dangling(ObjectId(0xdead0))),
        ("none", Value::Null),
        ("same", Value::Int(9)),
    ];
    let found = fields(&graph, 0x1000);
    let found: Vec<_> = found
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(found, expected);
    let mut declared_in = Vec::new();
    graph.contents().fields(&graph, own, &mut |field| {
        if field.name == Some("same") {
            declared_in.push(graph.class(field.declared_in.expect("known")).name.clone());
        }
        match field.name {
            Some("held") => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(declared_in, ["a.Derived"], "it stopped when told");
}

#[test]
fn statics_are_fields_of_the_class_object_and_those_of_class_lose_their_prefix() {
    let mut dump = Dump::art();
    dump.class(&ClassSpec {
        id: CLASS,
        name: "java.lang.Class",
        ..ClassSpec::default()
    });
    dump.class(&ClassSpec {
        id: 0x200,
        name: "a.Holder",
        superclass: CLASS,
        statics: &[
            ("$class$superClass", Val::Ref(CLASS)),
            ("INSTANCE", Val::Ref(0)),
            ("COUNT", Val::Int(3)),
        ],
        ..ClassSpec::default()
    });
    let mut graph = graph_of(dump.finish());
    let class = object(&graph, CLASS);
    let mut expected = vec![
        ("superClass".to_owned(), Value::Object(class)),
        ("INSTANCE".to_owned(), Value::Null),
        ("COUNT".to_owned(), Value::Int(3)),
    ];
    assert_eq!(fields(&graph, 0x200), expected);

    struct Plain;
    impl FieldRenamer for Plain {
        fn field(
            &self,
            class: &str,
            field: &str,
            type_name: Option<&str>,
        ) -> Option<OriginalField> {
            let known = (class, field, type_name) == ("a.Holder", "COUNT", Some("int"));
            known.then(|| OriginalField {
                class: "a.Holder".to_owned(),
                name: "numberOfThings".to_owned(),
            })
        }
        fn type_name(&self, _: &str) -> Option<String> {
            None
        }
    }
    graph.contents_mut().rename_fields(&Plain);
    expected[2].0 = "numberOfThings".to_owned();
    assert_eq!(fields(&graph, 0x200), expected);
    let mut recorded = Vec::new();
    let holder = object(&graph, 0x200);
    graph.contents().fields(&graph, holder, &mut |field| {
        recorded.push(field.recorded.map(str::to_owned));
        ControlFlow::Continue(())
    });
    assert_eq!(recorded, [None, None, Some("COUNT".to_owned())]);
}

#[test]
fn elements_are_fields_with_numbers() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump, &[]);
    dump.class(&ClassSpec {
        id: 0x200,
        name: "[Ljava/lang/Object;",
        superclass: OBJECT,
        ..ClassSpec::default()
    });
    dump.objects(0x1000, 0x200, &[0, 0x1010]);
    dump.array(0x1010, Short, &[0, 1, 0xff, 0xff]);
    let graph = graph_of(dump.finish());
    let other = Value::Object(object(&graph, 0x1010));
    let expected = [("0".to_owned(), Value::Null), ("1".to_owned(), other)];
    assert_eq!(fields(&graph, 0x1000), expected);
    let expected = [
        ("0".to_owned(), Value::Short(1)),
        ("1".to_owned(), Value::Short(-1)),
    ];
    assert_eq!(fields(&graph, 0x1010), expected);
    let values = graph
        .contents()
        .primitive_array(&graph, object(&graph, 0x1010));
    let values = values.expect("it is an array of numbers");
    assert_eq!((values.element, values.length), (Short, 2));
    assert_eq!(values.bytes, Some(&[0, 1, 0xff, 0xff][..]));
    let none = graph
        .contents()
        .primitive_array(&graph, object(&graph, 0x1000));
    assert_eq!(none, None);
}

fn string(graph: &HeapGraph, id: u64) -> Option<String> {
    graph.contents().string(graph, object(graph, id))
}

#[test]
fn strings_of_all_eras_are_read() {
    // Dalvik and ART to 5: a shared array.
    let mut dump = Dump::art();
    with_classes(
        &mut dump,
        &[("value", Object), ("offset", Int), ("count", Int)],
    );
    dump.chars(0x1000, "hello, world");
    dump.instance(
        0x1010,
        STRING,
        &[Val::Ref(0x1000), Val::Int(7), Val::Int(5)],
    );
    let graph = graph_of(dump.finish());
    assert_eq!(string(&graph, 0x1010).as_deref(), Some("world"));
    assert_eq!(string(&graph, 0x1000), None, "an array is not a string");

    // ART 6 to 7, then 8 and later: the value comes last and exists in dumps only.
    let mut dump = Dump::art();
    with_classes(&mut dump, &[("count", Int), ("value", Object)]);
    dump.instance(0x1000, STRING, &[Val::Int(5), Val::Ref(0x1010)]);
    dump.chars(0x1010, "Жizn\u{1}");
    dump.instance(0x2000, STRING, &[Val::Int(5), Val::Ref(0x2010)]);
    dump.array(0x2010, Byte, b"plain");
    dump.instance(0x3000, STRING, &[Val::Int(0), Val::Ref(0x3008)]);
    let graph = graph_of(dump.finish());
    assert_eq!(string(&graph, 0x1000).as_deref(), Some("Жizn\u{1}"));
    assert_eq!(string(&graph, 0x2000).as_deref(), Some("plain"));
    assert_eq!(
        string(&graph, 0x3000).as_deref(),
        Some(""),
        "an empty one without its array"
    );

    // HotSpot since 9.
    let mut dump = Dump::hotspot();
    with_classes(&mut dump, &[("value", Object), ("coder", Byte)]);
    dump.array(0x1000, Byte, b"caf\xe9");
    dump.instance(0x1010, STRING, &[Val::Ref(0x1000), Val::Byte(0)]);
    dump.array(0x1020, Byte, b"\x16\x04\x3d\xd8\x00\xde");
    dump.instance(0x1030, STRING, &[Val::Ref(0x1020), Val::Byte(1)]);
    dump.nodata(0x1040, Byte, 30);
    dump.instance(0x1050, STRING, &[Val::Ref(0x1040), Val::Byte(0)]);
    let graph = graph_of(dump.finish());
    assert_eq!(string(&graph, 0x1010).as_deref(), Some("café"));
    assert_eq!(string(&graph, 0x1030).as_deref(), Some("Ж\u{1f600}"));
    assert_eq!(string(&graph, 0x1050), None, "its text was left out");
}

#[test]
fn stacks_tell_where_objects_were_allocated_and_what_threads_do() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump, &[("value", Object), ("coder", Byte)]);
    dump.class(&ClassSpec {
        id: 0x200,
        name: "java/lang/Thread",
        superclass: OBJECT,
        fields: &[("name", Object)],
        ..ClassSpec::default()
    });
    dump.array(0x1000, Byte, b"worker");
    dump.instance(0x1010, STRING, &[Val::Ref(0x1000), Val::Byte(0)]);
    dump.instance_from(0x1020, 0x200, 7, &[Val::Ref(0x1010)]);
    dump.instance_from(0x1030, OBJECT, 1, &[]);
    let frames = [
        (4, "run", "Thread.java", 829),
        (3, "wait", "Object.java", -3),
        (4, "main", "", 0),
    ];
    dump.stack(1, 0, &[]).stack(7, 3, &frames);
    dump.root_of(0x08, 0x1020, &[3, 7]);
    let graph = graph_of(dump.finish());
    let frames = [
        "java.lang.Thread.run (Thread.java:829)",
        "java.lang.String.wait (native method)",
        "java.lang.Thread.main (unknown source)",
    ];
    let frames = frames.map(str::to_owned).to_vec();
    let thread = graph.contents().thread(&graph, 3).expect("it is a root");
    assert_eq!(thread.name.as_deref(), Some("worker"));
    assert_eq!(thread.object, Some(object(&graph, 0x1020)));
    let frame = |at| graph.contents().thread_frame(3, at);
    let all: Vec<String> = (0..).map_while(frame).collect();
    assert_eq!(all, frames);
    assert_eq!(graph.contents().thread_frame(4, 0), None);
    assert_eq!(graph.contents().thread(&graph, 4), None);
    let site = |id| graph.contents().allocated_at(&graph, object(&graph, id));
    let thread = "worker".to_owned();
    assert_eq!(site(0x1020), Some(AllocationSite { thread, frames }));
    assert_eq!(site(0x1030), None, "stack 1 is the one for nothing known");
}

#[test]
fn a_lock_word_that_holds_a_hash_tells_it() {
    let mut dump = Dump::art();
    dump.class(&ClassSpec {
        id: OBJECT,
        name: "java.lang.Object",
        fields: &[("shadow$_klass_", Object), ("shadow$_monitor_", Int)],
        ..ClassSpec::default()
    });
    let hashed = 0x8000_0000_u32 | 0x1a2_b3c4;
    dump.instance(0x1000, OBJECT, &[Val::Ref(OBJECT), Val::Int(hashed as i32)]);
    dump.instance(0x1010, OBJECT, &[Val::Ref(OBJECT), Val::Int(0x1a2)]);
    let graph = graph_of(dump.finish());
    let hash = |id| graph.contents().identity_hash(&graph, object(&graph, id));
    assert_eq!(hash(0x1000), Some(0x1a2_b3c4));
    assert_eq!(hash(0x1010), None, "a thin lock");
}

#[test]
fn a_started_thread_has_the_first_name_of_its_number() {
    let mut dump = Dump::hotspot();
    for (serial, name) in [(9, "nine"), (3, "three"), (9, "other"), (5, "five")] {
        let name = dump.name(name).to_be_bytes();
        let serial = u32::to_be_bytes(serial);
        let body = [&serial[..], &[0; 12], &name, &[0; 16]].concat();
        dump.record(tag::START_THREAD, &body);
    }
    let graph = graph_of(dump.finish());
    let name = |serial| graph.contents().thread(&graph, serial)?.name;
    assert_eq!(name(9).as_deref(), Some("nine"));
    assert_eq!(name(5).as_deref(), Some("five"));
    assert_eq!([2, 4, 10].map(name), [None, None, None]);
}
