//! What the commands print on terminals of 80 and of 120 columns. `snapshots/` has the texts: after
//! an intended change, run the tests with `INSTA_UPDATE=always` and review the difference.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::command;
use super::narrow::on_terminal;

/// What `line` prints on a terminal. No line is wider, except suggested commands.
fn printed(columns: u16, line: &str, directory: &Path, state: &Path, device: &str) -> String {
    let mut command = command(&line.split(' ').collect::<Vec<_>>());
    command
        .current_dir(directory)
        .env("HEAPTAP_STATE_DIR", state)
        .env("ADB_SERVER_SOCKET", format!("tcp:{device}"))
        .stdin(Stdio::null())
        .arg("--no-progress");
    let text = on_terminal(columns, command, true);
    for printed in text.lines() {
        let is_command = printed.trim_start().starts_with("heaptap ");
        assert!(
            console::measure_text_width(printed) <= usize::from(columns) || is_command,
            "{columns} columns: {line}\n{printed}"
        );
    }
    text
}

fn compare(name: &str, all: &str) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, all);
    });
}

/// Compares what commands on `fixtures/` and on an unchanging virtual phone print, exactly.
fn compare_exactly(name: &str, lines: &[&str]) {
    let fixtures = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    let state = tempfile::tempdir().expect("a directory");
    let mut all = String::new();
    for columns in [80, 120] {
        for line in lines {
            let text = printed(columns, line, &fixtures, state.path(), "127.0.0.1:1");
            all.push_str(&format!("$ heaptap {line}  # {columns} columns\n{text}\n"));
        }
    }
    compare(name, &all);
}

#[test]
fn views_of_native_heaps() {
    compare_exactly(
        "widths_native",
        &[
            "top conversions/rust_cont_symbolized.pftrace",
            "top --tree -l 12 conversions/rust_cont_symbolized.pftrace",
            "diff conversions/rust_cont_symbolized.pftrace@1 conversions/rust_cont_symbolized.pftrace@last",
            "leaks conversions/rust_cont_symbolized.pftrace",
            "leaks conversions/c_cont.pftrace",
            "query conversions/c_cont.pftrace .tables",
        ],
    );
}

#[test]
fn views_of_java_heaps() {
    compare_exactly(
        "widths_java",
        &[
            "top hprof/leaklab-after.hprof.zst",
            "top --tree -l 12 hprof/leaklab-after.hprof.zst",
            "top heap_graphs/graph_10k.pftrace.zst",
            "leaks hprof/leaklab-after.hprof.zst",
            "diff hprof/leaklab-before.hprof.zst hprof/leaklab-after.hprof.zst",
            "paths hprof/leaklab-after.hprof.zst --focus Activity",
            "hprof info hprof/android-a.hprof.gz",
        ],
    );
}

#[test]
fn views_of_a_process() {
    compare_exactly(
        "widths_process",
        &[
            "meminfo meminfo/synthetic_api34_d.txt",
            "meminfo meminfo/synthetic_api34_d.txt --explain",
            "diff meminfo/synthetic_api26_a.txt meminfo/synthetic_api26_d.txt",
            "gc gclog/gc_forms.log",
            "gc gclog/gc_forms.log -p 1105 --by collection",
        ],
    );
}

#[test]
fn views_of_a_device() {
    compare_exactly(
        "widths_device",
        &[
            "devices --virtual=devices=2",
            "apps --virtual",
            "check -n com.example.app --virtual",
            "check -n com.android.shell --virtual",
            "record -n com.example.app --print-config",
            "provoke --list",
            "status --virtual",
        ],
    );
}

/// The recorded figures differ from run to run, so only the widths of lines are compared.
#[test]
fn recordings_fit_the_terminal() {
    let own = tempfile::tempdir().expect("a directory");
    let state = own.path().join("state");
    for columns in [80, 120] {
        let lines = [
            format!("demo -o d{columns}"),
            format!("leaks d{columns}"),
            format!("leaks d{columns}/java"),
            format!("top d{columns}"),
            format!("meminfo d{columns} --reconcile"),
            format!("gc d{columns}"),
            format!("smaps d{columns}"),
            format!("report d{columns} -o d{columns}.html"),
            format!("record -n com.example.app -d 2s -o r{columns} --virtual=speed=10"),
            format!("symbolize r{columns}"),
            format!("convert r{columns}/raw-trace -o c{columns}"),
            format!("dump -n com.example.app -o j{columns} --virtual"),
            "provoke -n com.example.app home-and-back --virtual=speed=100".to_owned(),
            "smaps -n com.example.app --virtual=build=userdebug".to_owned(),
            "doctor --virtual".to_owned(),
        ];
        for line in &lines {
            let text = printed(columns, line, own.path(), &state, "127.0.0.1:1");
            assert!(!text.contains("error:"), "{line}\n{text}");
            if line.starts_with("demo") {
                let count = text.lines().count();
                assert!(count <= 30, "{count} lines of {columns} columns\n{text}");
            }
        }
    }
}
