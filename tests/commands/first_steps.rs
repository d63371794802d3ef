//! Commands as a new user types them: a bare word for a process, a process instead of a recording,
//! one recording to compare, one dump to a file, a time without a unit.

use crate::program::assert_contains;
use std::path::Path;
use std::process::Output;

const APP: &str = "com.example.app";

fn run(directory: &Path, args: &[&str]) -> Output {
    crate::program::heaptap()
        .args(args)
        .current_dir(directory)
        .env("ADB_SERVER_SOCKET", "tcp:127.0.0.1:1")
        .output()
        .expect("the binary runs")
}

fn error_of(directory: &Path, code: i32, args: &[&str]) -> String {
    let run = run(directory, args);
    let said = String::from_utf8(run.stderr).expect("text");
    assert_eq!(run.status.code(), Some(code), "{args:?}: {said}");
    said
}

fn done(directory: &Path, args: &[&str]) -> String {
    let run = run(directory, args);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(0), "{args:?}: {said}");
    String::from_utf8(run.stdout).expect("text")
}

#[test]
fn a_recording_answers_commands_with_a_word_less() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    // A bare word is `-n` where no file is read.
    let phone = "--virtual=android=14,build=userdebug,speed=20";
    let record = [
        "record",
        phone,
        APP,
        "-c",
        "500ms",
        "-d",
        "4s",
        "-o",
        "runs/one",
        "--no-report",
    ];
    done(directory, &record);
    done(directory, &["check", phone, APP]);
    // A process without a recording.
    let listed = error_of(directory, 2, &["top", "-n", APP]);
    assert_contains(&listed, "\nheaptap top runs/one -n com.example.app\n");
    let none = error_of(directory, 2, &["leaks", "-n", "com.example.other"]);
    assert_contains(&none, "help: make one: heaptap record -n com.example.other");
    let none = error_of(directory, 2, &["explore", "-n", APP]);
    assert_contains(&none, "heaptap dump -n com.example.app");
    // A recording alone: its first dump with its last.
    let both = done(directory, &["diff", "runs/one"]);
    let last = done(directory, &["top", "runs/one@last"]);
    let last = last.split("  ").next().expect("a name");
    assert!(
        both.starts_with("runs/one@1  ") && both.contains(&format!("\n{last}  ")),
        "{both}"
    );
    let missing = error_of(directory, 2, &["diff", "runs/one@1"]);
    assert_contains(&missing, "heaptap diff runs/one");
    // One dump to one file, of every format.
    for name in [
        "x.pb.gz",
        "x.folded",
        "x.svg",
        "x.json",
        "x.csv",
        "x.speedscope.json",
    ] {
        done(directory, &["convert", "runs/one@1", "-o", name]);
        assert!(
            directory.join(name).metadata().expect("a file").len() > 0,
            "{name}"
        );
    }
    let of_file = done(directory, &["top", "x.pb.gz", "--csv"]);
    assert_eq!(of_file, done(directory, &["top", "runs/one@1", "--csv"]));
    let several = error_of(directory, 2, &["convert", "runs/one", "-o", "y.pb.gz"]);
    assert_contains(&several, "heaptap convert runs/one@last -o y.pb.gz");
    assert!(
        error_of(directory, 2, &["convert", "runs/one@1", "-o", "x.pb.gz"]).contains("--force")
    );
    let left = std::fs::read_dir(directory).expect("a directory").flatten();
    let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 7, "{names:?}");
}

#[test]
fn an_hprof_goes_to_the_file_that_was_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let dump = [
        "dump",
        "--virtual=speed=20",
        APP,
        "--hprof",
        "-o",
        "x.hprof",
    ];
    done(directory, &dump);
    let bytes = std::fs::read(directory.join("x.hprof")).expect("a file");
    assert!(bytes.starts_with(b"JAVA PROFILE 1.0."));
    assert_eq!(
        std::fs::read_dir(directory).expect("a directory").count(),
        1
    );
    assert!(error_of(directory, 2, &dump).contains("x.hprof already exists"));
}

#[test]
fn time_without_a_unit_is_answered_with_its_values_in_units() {
    let directory = tempfile::tempdir().expect("a directory");
    for (args, help) in [
        (&["record", "-n", "x", "-d", "10"][..], "10s is 10 seconds"),
        (&["record", "-n", "x", "--duration=7"], "7s is 7 seconds"),
        (&["meminfo", "-n", "x", "--every", "3"], "3s is 3 seconds"),
    ] {
        let said = error_of(directory.path(), 2, args);
        assert_contains(&said, help);
    }
}
