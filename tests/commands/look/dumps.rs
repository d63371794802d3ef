//! Dumps of an input: their numbers and names, and what is not there.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{fixture, heaptap};
use crate::program::{assert_contains, expect};

#[test]
fn a_number_means_that_dump_of_each_process_wherever_it_stands() {
    let trace = fixture("conversions/two_same_name.pftrace");
    let directory = tempfile::tempdir().unwrap();
    let converted = directory.path().join("out");
    let output = heaptap(&format!("convert {trace} -o {}", converted.display()));
    assert!(matches!(output.code(), Some(0 | 6)), "{output}");
    let manifest = std::fs::read_to_string(converted.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dumps = manifest["dumps"].as_array().unwrap();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for dump in dumps {
        let (pid, number) = (
            dump["pid"].as_u64().unwrap(),
            dump["number"].as_u64().unwrap(),
        );
        let before = last.insert(pid, number).unwrap_or_default();
        assert_eq!(number, before + 1, "{dump:#}");
        let file = format!("heap_dump.{number}.{pid}.libc.malloc.pb.gz");
        assert_eq!(dump["file"], file);
    }
    let counts: Vec<u64> = last.values().copied().collect();
    assert_eq!(counts, [4, 3], "{manifest:#}");
    let input = converted.to_str().unwrap();
    // The trace, the recording and its profiles give the same counts.
    std::fs::create_dir(directory.path().join("profiles")).unwrap();
    let profiles = directory.path().join("profiles");
    for dump in dumps {
        let file = dump["file"].as_str().unwrap();
        std::fs::copy(converted.join(file), profiles.join(file)).unwrap();
    }
    for input in [&trace, input, profiles.to_str().unwrap()] {
        for number in 1..=last.values().copied().max().unwrap() {
            let top = heaptap(&["top", &format!("{input}@{number}"), "--json"]);
            let document = top.json();
            let heaps = document["heaps"].as_array().unwrap().iter();
            let found: BTreeMap<u64, (u64, u64)> = heaps
                .map(|heap| {
                    let number = |key: &str| heap["dump"][key].as_u64().unwrap();
                    (number("pid"), (number("number"), number("dumps")))
                })
                .collect();
            let expected = last.iter().filter(|(_, last)| **last >= number);
            let expected = expected.map(|(&pid, &last)| (pid, (number, last)));
            assert_eq!(found, expected.collect(), "{input}@{number}");
        }
    }
    // Commands for one dump require a process.
    let (pid, _) = last.first_key_value().unwrap();
    let picture = directory.path().join("one.svg");
    let one = [
        "convert",
        input,
        "--at",
        "1",
        "-o",
        picture.to_str().unwrap(),
    ];
    let one = [&one[..], &["--format", "svg", "--json"]].concat();
    expect(2, &one).assert_stdout("several-dumps");
    let meant = heaptap(&[&one[..], &["--pid", &pid.to_string()]].concat());
    assert!(picture.is_file(), "{meant}");
    meant.assert_code(0);
    expect(2, &["top", &format!("{input}@0")]).assert_stderr("@1");
}

#[test]
fn dumps_are_named_and_what_is_not_there_is_told_with_what_is() {
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    for (input, code, kind) in [
        (format!("{graph}@7"), 2, "no-such-dump"),
        (format!("{graph}@0"), 2, "no-such-dump"),
        (format!("{graph}@nope"), 2, "no-such-dump"),
        ("none.hprof".to_owned(), 8, "input-unreadable"),
        (fixture("MANIFEST.toml"), 8, "not-a-heap"),
    ] {
        let output = expect(code, &["top", &input, "--json"]);
        let failure = output.json();
        assert_eq!(failure["error"]["kind"], kind, "{input}");
    }
    for input in [format!("{graph}@last"), format!("{graph}@1")] {
        assert_eq!(heaptap(&["top", &input]).status.code(), Some(0), "{input}");
    }
    expect(2, &["top", &graph, "-n", "com.other"]).assert_stderr("com.example.synth (5151)");
    assert_eq!(
        heaptap(&["top", &graph, "-n", "com.example.*"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn a_directory_that_is_no_recording_names_what_to_pass() {
    let directory = tempfile::tempdir().expect("a directory");
    for dump in ["downloads/app.hprof", "downloads/monday.hprof"] {
        let path = directory.path().join(dump);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        std::fs::copy(fixture("hprof/android-a.hprof.gz"), path).expect("it is copied");
    }
    let run = directory.path().join("night/phone/run-1");
    std::fs::create_dir_all(&run).expect("a directory");
    std::fs::write(run.join("raw-trace"), "x").expect("a file");
    for (input, kind, says) in [
        ("downloads", "several-hprofs", "monday.hprof"),
        ("night", "no-trace-inside", "run-1"),
    ] {
        let input = directory.path().join(input);
        let input = input.to_str().expect("UTF-8");
        for command in ["top", "leaks", "report"] {
            let refused = expect(8, &[command, input, "--json"]);
            let told = refused.json();
            assert_eq!(told["error"]["kind"], kind, "{command}: {told}");
            assert_contains(&told["error"].to_string(), says);
        }
    }
}
