//! Companion data recorded by Perfetto: Java heap graphs at labels, memory figures and collections
//! in the same trace, and Java allocations.

use std::collections::BTreeSet;

use heaptap_model::timeline::{Collection, Observation};
use perfetto_heap::{MemoryWanted, Trace, TraceMemory};
use serde_json::Value;
use virtual_phone::Answer;

use crate::lab::{APP, LIMIT, Lab, recording};
use crate::program::assert_contains;

const FAST: &str = "android=14,build=userdebug,speed=10";

/// Data in a recording's trace about one process, or about the phone.
fn memory(lab: &Lab, directory: &str, pid: u32) -> TraceMemory {
    let file = std::fs::File::open(lab.work().join(directory).join("raw-trace")).unwrap();
    let mut trace = Trace::open(Box::new(file)).unwrap();
    let wanted = MemoryWanted {
        pids: Some(BTreeSet::from([pid])),
        ..MemoryWanted::default()
    };
    trace.memory(&wanted).unwrap()
}

fn pid(manifest: &Value) -> u32 {
    let pid = manifest["targets"][0]["pid"].as_u64().expect("a pid");
    u32::try_from(pid).unwrap()
}

fn collections(memory: &TraceMemory) -> Vec<&Collection> {
    let entries = memory.timeline.entries.iter();
    let collections = entries.filter_map(|entry| match &entry.seen {
        Observation::Collection(collection) => Some(collection),
        _ => None,
    });
    collections.collect()
}

#[test]
fn the_trace_holds_figures_of_memory_and_the_dumps_are_as_without() {
    for android in [10, 12, 14, 16] {
        let lab = Lab::new(&format!("android={android},build=userdebug,speed=4"));
        lab.expect(0, &recording("out", "-d 14s --with meminfo,gc"));
        lab.assert_truth("out");
        let manifest = lab.manifest("out");
        let memory = memory(&lab, "out", pid(&manifest));
        let count = |what: fn(&Observation) -> bool| {
            let entries = memory.timeline.entries.iter();
            entries.filter(|entry| what(&entry.seen)).count()
        };
        // About one a second; a host that is busy leaves some out, and stops late.
        let residents = count(|seen| matches!(seen, Observation::Resident(r) if r.rss > 10 << 20));
        assert!(
            (1..=30).contains(&residents),
            "{residents} on Android {android}"
        );
        let system = count(|seen| matches!(seen, Observation::System(s) if s.total > s.available));
        assert!((1..=30).contains(&system), "{system} on Android {android}");
        assert!(count(|seen| matches!(seen, Observation::JavaHeap(_))) > 2);
        assert_eq!(memory.loss.torn_collections, 0, "{:?}", memory.loss);
        assert_eq!(memory.loss.damaged_packets, 0);
        assert_eq!(memory.loss.packets_without_clock, 0);
        let found = collections(&memory);
        assert!(!found.is_empty(), "{memory:?}");
        for collection in found {
            assert!(
                collection.collector.contains("concurrent"),
                "{collection:?}"
            );
            assert!(collection.duration > Some(0) && !collection.pauses.is_empty());
            assert!(collection.live > Some(1 << 20), "{collection:?}");
        }
        let config = manifest["config"]["text"].as_str().unwrap();
        assert_contains(&config, "atrace_categories: \"dalvik\"");
        // The shell user of Android 10 cannot remove a trace.
        if android > 10 {
            lab.assert_tidy("out");
        }
    }
}

#[test]
fn a_java_heap_is_taken_at_each_label_and_found_by_who_looks_for_it() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("--with java");
    running.until_recorded();
    for label in ["before", "after login", "later"] {
        lab.expect(0, &["snapshot", "--label", label]);
        let captured = running.until("captured");
        assert_eq!(captured["label"], label, "{captured}");
        assert_eq!(captured["captured"][0], "java", "{captured}");
    }
    running.interrupted(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
    let java = lab.manifest("out/java");
    let dumps = java["dumps"].as_array().unwrap();
    let labels: Vec<Option<&str>> = dumps.iter().map(|d| d["label"]["name"].as_str()).collect();
    assert_eq!(
        &labels[..3],
        [Some("before"), Some("after login"), Some("later")],
        "{java:#}"
    );
    for (number, dump) in (1..).zip(dumps) {
        assert_eq!(dump["number"], number);
        assert_eq!(dump["complete"], true, "{dump:#}");
        let file = dump["file"].as_str().expect("a profile");
        assert!(lab.work().join("out/java").join(file).is_file(), "{file}");
    }
    let trace = std::fs::metadata(lab.work().join("out/java/raw-trace")).unwrap();
    assert_eq!(java["trace"]["size"], trace.len());
    // No directory of a single label remains.
    let directories: Vec<_> = std::fs::read_dir(lab.work().join("out/java"))
        .unwrap()
        .filter(|item| item.as_ref().unwrap().path().is_dir())
        .collect();
    assert!(directories.is_empty(), "{directories:?}");
    // Commands for Java heaps of the recording find them by label.
    let top = lab.expect(0, &["top", "out@after login", "--json"]).json();
    assert!(top.to_string().contains("com.example.app"), "{top:#}");
    lab.expect(0, &["diff", "out@before", "out@after login"]);
    lab.expect(0, "convert out --heap java -o pprofs");
    let converted = lab.manifest("pprofs");
    let converted = converted["dumps"].as_array().unwrap();
    assert_eq!(converted.len(), dumps.len());
    assert!(converted.iter().all(|dump| dump["heap"] == "java"));
    let one = ["convert", "out@after login", "--heap", "java"];
    lab.expect(0, (one, "-o one"));
    let one_of = lab.manifest("one");
    assert_eq!(one_of["dumps"].as_array().unwrap().len(), 1, "{one_of:#}");
    assert_eq!(one_of["dumps"][0]["time_ns"], dumps[1]["time_ns"]);
    lab.expect(0, (one, "-o one.folded"));
    let both = ["convert", "out", "--heap", "java,native"];
    lab.expect(2, (both, "-o refused"));
    let folded = (both, "--format json -o both.json");
    lab.expect(0, &folded);
    let both = std::fs::read_to_string(lab.work().join("both.json")).unwrap();
    assert!(both.contains("\"java\"") && both.contains("libc.malloc"));
    // The default of a recording is its native heaps, but the other input has none.
    let mixed = "diff out out/java";
    lab.expect(2, mixed).assert_stderr("add `--heap java`");
    lab.expect(0, &format!("{mixed} --heap java"));
    // The default is the newest heap, with or without a label.
    let newest = &dumps.last().unwrap()["number"];
    let mut manifest = java.clone();
    let last = manifest["dumps"].as_array_mut().unwrap().last_mut();
    last.unwrap()["label"] = Value::Null;
    let path = lab.work().join("out/java/manifest.json");
    std::fs::write(path, manifest.to_string()).unwrap();
    let leaks = lab.run("leaks out/java --json").json();
    let heaps = leaks["heaps"].as_array().unwrap();
    let looked_at: Vec<&Value> = heaps.iter().map(|heap| &heap["label"]).collect();
    assert_eq!(looked_at[..2], ["before", "after login"]);
    assert_eq!(&heaps.last().unwrap()["number"], newest, "{heaps:#?}");
}

#[test]
fn code_that_methods_share_is_a_note_whoever_shows_the_heap() {
    let lab = Lab::new(FAST);
    let service = format!("{APP}:service");
    let record = format!("record -n {service} -i 1 -d 3s -o out");
    lab.expect(0, &record);
    for args in [
        &["top", "out"][..],
        &["query", "out", "SELECT 1"],
        &["report", "out", "-o", "page.html"],
        &["convert", "out/raw-trace", "-o", "converted"],
    ] {
        let ended = lab.expect(0, args);
        let said: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|line| line.contains("[DEDUPED]"))
            .collect();
        assert!(!said.is_empty(), "{args:?}: {}", ended.stderr);
        for line in said {
            assert!(line.trim_start().starts_with("note: "), "{args:?}: {line}");
        }
    }
}

#[test]
fn where_no_java_heap_can_be_taken_the_check_says_so() {
    let lab = Lab::new("android=10,build=userdebug,speed=10");
    lab.expect(0, "record -n com.example.app -d 3s -o out --with java")
        .assert_stderr("`--with java` cannot dump Java heaps here")
        .assert_stderr("Android 11");
    lab.assert_truth("out");
}

#[test]
fn java_allocations_say_what_they_are_and_what_they_lack() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "-d 4s --java-allocations"))
        .assert_stderr("without classes and threads");
    let manifest = lab.manifest("out");
    let told = &manifest["java_allocations"];
    assert_eq!(told["by"], "heapprofd", "{manifest:#}");
    assert_eq!(
        told["unknown"],
        serde_json::json!(["class", "thread", "free"])
    );
    let dump = &manifest["dumps"][0];
    assert_eq!(dump["heap"], "com.android.art");
    // ART's frees are bogus, so unreleased bytes are not reported.
    assert!(dump["totals"]["alloc_space"].as_u64() > Some(0), "{dump:#}");
    assert!(dump["totals"]["space"].is_null(), "{dump:#}");
}

#[test]
fn one_native_dump_points_to_the_java_heaps_beside_it() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "-d 2s --with java"));
    let few = lab.fails(2, "leaks out");
    assert_eq!(few["kind"], "too-few-dumps", "{few:#}");
    let help = few["help"].as_str().unwrap();
    let java = std::path::Path::new("out").join("java");
    let command = format!("`heaptap leaks {}`", java.display());
    assert_contains(&help, &command);
    lab.expect(0, "leaks out/java")
        .assert_stdout("DetailActivity");
    lab.expect(0, "diff out/java out/java@last")
        .assert_stderr("both sides are the same");
}

#[test]
fn a_java_heap_that_is_cut_off_keeps_nobody_from_the_native_one() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "-d 2s --with java"));
    let trace = lab.work().join("out/java/raw-trace");
    let whole = std::fs::read(&trace).expect("a trace");
    std::fs::write(&trace, &whole[..2000]).expect("a part");
    let told = lab.expect(6, "report out -o page.html");
    let why = "cannot read a Java heap from out";
    told.assert_stderr(why);
    lab.expect(8, "paths out --focus Activity");
}

#[test]
fn a_java_heap_that_a_second_interruption_leaves_on_the_device_is_reported_with_its_command() {
    let lab = Lab::new(FAST);
    let with = ["--with", "java", "--json-lines"];
    let mut running = lab.start(recording("out", &with));
    running.until_recorded();
    let pull = ["RECV:/data/misc/perfetto-traces"];
    let gate = lab.phone.faults().close_gate(&pull);
    running.signal("INT");
    assert!(gate.is_reached_within(LIMIT), "no Java heap at the end");
    running.signal("INT");
    let ended = running.end();
    gate.answer(Answer::Close);
    ended.assert_code(0);
    let status = lab.status();
    let id = status["sessions"][0]["session"].as_str().expect("an ID");
    let command = format!("`heaptap stop {id}`");
    ended.assert_stderr(&command);
    let missed = &lab.manifest("out")["companion"]["missed"][0];
    assert_eq!(missed["what"], "java", "{ended}");
    let why = missed["why"].as_str().expect("a reason");
    assert_contains(&why, &command);
    lab.expect(0, &["stop", id]);
    assert_merged(&lab, Value::Null);
    assert_eq!(lab.manifest("out")["warnings"], serde_json::json!([]));
}

/// Checks that all Java heaps are in the recording, the last one with that label.
fn assert_merged(lab: &Lab, label: Value) {
    let java = lab.manifest("out/java");
    let last = java["dumps"].as_array().and_then(|dumps| dumps.last());
    assert_eq!(last.expect("a dump")["label"]["name"], label, "{java:#}");
    let companion = &lab.manifest("out")["companion"];
    assert_eq!(companion["missed"], serde_json::json!([]), "{companion:#}");
    let file = companion["files"][0]["file"].as_str().expect("a file");
    assert!(lab.work().join("out").join(file).is_file(), "{companion:#}");
    let inside = std::fs::read_dir(lab.work().join("out/java")).unwrap();
    let directories = inside.filter(|item| item.as_ref().unwrap().path().is_dir());
    assert_eq!(directories.count(), 0);
    lab.assert_tidy("out");
}

#[test]
fn a_java_heap_that_cannot_be_merged_stays_and_stop_merges_it() {
    let lab = Lab::new(FAST);
    let with = ["--with", "java", "--json-lines"];
    let mut running = lab.start(recording("out", &with));
    running.until_recorded();
    // The trace of all labels cannot be written.
    let obstacle = lab.work().join("out/java/raw-trace");
    let gate = lab
        .phone
        .faults()
        .close_gate(&["RECV:/data/misc/perfetto-traces"]);
    lab.expect(0, "snapshot --label here");
    assert!(gate.is_reached_within(LIMIT), "no Java heap at the label");
    std::fs::create_dir(&obstacle).unwrap();
    drop(gate);
    let captured = running.until("captured");
    let why = captured["missed"][0].to_string();
    let (_, id) = why.split_once("`heaptap stop ").expect("a command");
    let (id, _) = id.split_once('`').expect("its end");
    // It belongs to the recording, which is still listed alone.
    let status = lab.status();
    let sessions = status["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{status:#}");
    assert_ne!(sessions[0]["session"], id, "{status:#}");
    lab.expect(0, &["status", id]);
    // While the recording goes on, it stays for it.
    let early = lab.expect(0, &["stop", id]);
    assert!(early.stderr.contains("is not finished"), "{}", early.stderr);
    std::fs::remove_dir(&obstacle).unwrap();
    running.interrupted(0);
    lab.expect(0, &["stop", id]);
    assert_merged(&lab, "here".into());
}
