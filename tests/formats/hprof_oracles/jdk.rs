//! Dumps created by the JDK's jmap during the test, with every object layout of its VM.

use crate::hprof_oracles::oracle::{differences, of_graph, of_histogram, of_jmap};
use crate::judge;
use android_hprof::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    Dominators, Field, Follow, HeapGraph, ObjectIndex, RootKind, Value,
};
use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A JVM with the planted heap; ends with the test.
struct Planted {
    process: Child,
    pid: String,
}

impl Planted {
    fn start(classes: &Path, options: &[&str]) -> Option<Planted> {
        let mut process = Command::new("java")
            .args(options)
            // Mirrors of shared classes that are not loaded are counted, but not dumped.
            .args(["-Xshare:off", "-cp"])
            .arg(classes)
            .arg("Planted")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("java was there before");
        let output = process.stdout.take().expect("it is piped");
        let mut line = String::new();
        let ready = BufReader::new(output).read_line(&mut line).is_ok();
        let pid = line.trim().strip_prefix("READY ").map(str::to_owned);
        let planted = Planted {
            process,
            pid: pid.clone().unwrap_or_default(),
        };
        (ready && pid.is_some()).then_some(planted)
    }

    fn jmap(&self, what: &str) -> String {
        let output = Command::new("jmap").arg(what).arg(&self.pid).output();
        let output = output.expect("jmap was there before");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _gone_already = self.process.kill();
        let _gone_already = self.process.wait();
    }
}

/// The compiled program.
fn compile() -> tempfile::TempDir {
    let classes = tempfile::tempdir().expect("there is room");
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/hprof_oracles/Planted.java");
    let javac = Command::new("javac")
        .args(["-encoding", "UTF-8", "-d"])
        .arg(classes.path())
        .arg(source)
        .status();
    assert!(javac.expect("javac was there before").success());
    classes
}

#[test]
#[ignore = "needs a JDK: tests/run.sh runs it"]
fn judged_by_jdk_counts_and_sizes_by_class_are_the_same_under_every_layout() {
    judge::jdk();
    let classes = compile();
    let layouts: [&[&str]; 6] = [
        &[],
        &["-XX:+UseSerialGC"],
        &["-XX:+UseParallelGC"],
        &["-XX:-UseCompressedOops"],
        &["-XX:+UseParallelGC", "-XX:-UseCompressedClassPointers"],
        &["-XX:ObjectAlignmentInBytes=16"],
    ];
    let mut unknown = Vec::new();
    for options in layouts {
        let Some(planted) = Planted::start(classes.path(), options) else {
            unknown.push(options);
            continue;
        };
        let path = classes.path().join("planted.hprof");
        let before = of_jmap(&planted.jmap("-histo:live"));
        planted.jmap(&format!("-dump:live,format=b,file={}", path.display()));
        let mut theirs = of_jmap(&planted.jmap("-histo:live"));
        drop(planted);
        // jmap's own objects in the heap vary between its runs.
        let moving = differences(&before, &theirs);
        let file = Bytes::map(&path).expect("jmap wrote it");
        let graph = read(file.clone(), &Options::default()).expect("it has a header");
        let mut ours = of_graph(&graph);
        let quick = histogram(&file, &Options::default()).expect("it has a header");
        assert_eq!(
            differences(&of_histogram(&quick), &ours),
            [""; 0],
            "{options:?}"
        );
        for name in moving.iter().filter_map(|line| line.split(": ours").next()) {
            ours.remove(name);
            theirs.remove(name);
        }
        assert!(theirs.len() > 200, "{moving:?}");
        assert_eq!(differences(&ours, &theirs), [""; 0], "{options:?}");
        find_what_was_planted(&graph, options);
        std::fs::remove_file(&path).expect("it is ours");
    }
    // Newer JVMs always compress class pointers.
    let may_miss = |options: &&[&str]| options.contains(&"-XX:-UseCompressedClassPointers");
    assert!(unknown.iter().all(may_miss), "no JVM with {unknown:?}");
}

/// A field of an object, or a static of a class object.
fn field(graph: &HeapGraph, object: ObjectIndex, name: &str) -> Value {
    let mut found = None;
    graph
        .contents()
        .fields(graph, object, &mut |field: Field<'_>| {
            if field.name == Some(name) {
                found = Some(field.value);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    found.unwrap_or_else(|| panic!("it has a field {name}"))
}

fn find_what_was_planted(graph: &HeapGraph, options: &[&str]) {
    let class_object = |name: &str| {
        let class = graph.classes().iter().find(|class| class.name == name);
        class.and_then(|class| class.object).expect("it was loaded")
    };
    let program = class_object("Planted");
    let registry = field(graph, program, "REGISTRY").object().expect("a list");
    let dominators = Dominators::compute(graph, Follow::default());
    let listeners: Vec<ObjectIndex> = graph
        .objects()
        .filter(|&object| graph.class(graph.class_of(object)).name == "Planted$Listener")
        .collect();
    assert_eq!(listeners.len(), 64);
    let array = field(graph, registry, "elementData")
        .object()
        .expect("an array");
    let payload = field(graph, listeners[0], "payload")
        .object()
        .expect("an array");
    let one = graph.shallow_bytes(listeners[0]) + graph.shallow_bytes(payload);
    let own = graph.shallow_bytes(registry) + graph.shallow_bytes(array);
    assert_eq!(
        dominators.retained_bytes(registry),
        own + 64 * one,
        "{options:?}"
    );
    assert_eq!(dominators.idom(listeners[5]), Some(array));
    let chain = field(graph, program, "chain").object().expect("a node");
    let node = graph.shallow_bytes(chain);
    assert_eq!(dominators.retained_bytes(chain), 5_000 * node);
    let map = field(graph, program, "MAP").object().expect("a map");
    assert_eq!(field(graph, map, "size"), Value::Int(303));

    let named = graph
        .objects()
        .find(|&object| graph.class(graph.class_of(object)).name == "Planted$Имя")
        .expect("a class with a name beyond ASCII");
    let text = field(graph, named, "поле").object().expect("a string");
    let text = graph.contents().string(graph, text);
    assert_eq!(text.as_deref(), Some("утечка \u{1f4a7}"));
    let statics = class_object("Planted$Statics");
    assert_eq!(field(graph, statics, "j"), Value::Long(42));
    assert_eq!(field(graph, statics, "d"), Value::Double(3.0));

    let soft = field(graph, program, "soft").object().expect("a reference");
    let target = graph.referents_of(soft).first().expect("it is set").target;
    assert!(!graph.references(soft).contains(&target), "set apart");
    let strong = Dominators::compute(graph, Follow::STRONG);
    assert!(dominators.is_reachable(target) && !strong.is_reachable(target));

    // The local variable of main, found by its thread.
    let frame = graph
        .roots()
        .iter()
        .filter(|root| root.kind == RootKind::JavaFrame)
        .find(|root| graph.class(graph.class_of(root.object)).name == "Planted$Derived")
        .expect("main holds it");
    let serial = frame.thread.expect("the thread is known");
    let thread = graph.contents().thread(graph, serial);
    let thread = thread.expect("the dump has its threads");
    assert_eq!(thread.name.as_deref(), Some("main"));
    let number = frame.frame.expect("the frame is known");
    let place = graph.contents().thread_frame(serial, number);
    let place = place.expect("the thread has a stack");
    assert!(place.starts_with("Planted.main (Planted.java:"), "{place}");
}
