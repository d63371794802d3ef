//! Tables of native heaps, compared with those of Perfetto's trace processor for the same traces,
//! and with heaptap's pprofs. Row numbers differ, so the referenced rows are compared. Runs on
//! `fixtures/query`, whose traces are in `fixtures/conversions`; with HEAPTAP_RECORDINGS=DIR also
//! on every recording with tables below it.

#![allow(missing_docs, clippy::unwrap_used)]

mod content;
mod page;
mod plans;
mod reference;
mod sums;

use std::path::{Path, PathBuf};

use content::{differences, ours, read_csv, select, theirs};
use heaptap::commands::query::run::{QueryOptions, open};
use heaptap::heaps::input::LookOptions;
use heaptap::heaps::java::ProgressReporter;
use heaptap::heaps::selector::JavaInput;
use heaptap::names::options::NameOptions;
use heaptap_query::Database;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn database(trace: &Path) -> Database {
    let options = QueryOptions {
        look: LookOptions {
            names: NameOptions {
                symbolize: false,
                discover: false,
                ..NameOptions::default()
            },
            ..LookOptions::default()
        },
        ..QueryOptions::default()
    };
    let input = JavaInput::parse(trace.as_os_str());
    let opened = open(&input, options, &ProgressReporter::default());
    let opened = opened.unwrap_or_else(|error| panic!("{}: {error}", trace.display()));
    opened.database
}

/// Traces with the directories of Perfetto's tables.
fn recordings() -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    let listed = std::fs::read_dir(fixtures().join("query")).expect("the fixtures");
    for entry in listed {
        let tables = entry.expect("the folder can be read").path();
        let name = tables
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let trace = fixtures().join(format!("conversions/{name}.pftrace"));
        assert!(trace.is_file(), "{}", trace.display());
        found.push((trace, tables));
    }
    let mut directories: Vec<PathBuf> = std::env::var_os("HEAPTAP_RECORDINGS")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.join("sql/alloc.csv").is_file() {
                let traces = ["pftrace", "pftrace.zst"].map(|ending| path.with_extension(ending));
                let trace = traces.into_iter().find(|trace| trace.is_file());
                found.extend(trace.map(|trace| (trace, path.join("sql"))));
            } else if path.is_dir() {
                directories.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 4);
    found
}

/// Known differences in which heaptap is better or more complete: name of the recording, a word of
/// each permitted difference, and the reason.
const BETTER: [(&str, &str, &str); 15] = [
    (
        "exec_self",
        "allocations: 1 more, 0 less",
        "memory of the image before exec is gone with it",
    ),
    (
        "max_cont",
        "allocations: 4 more, 0 less",
        "shares that fell are taken back, not dropped",
    ),
    (
        "zero_alloc",
        "allocations: 4 more, 4 less",
        "sums beyond 2^63 saturate",
    ),
    (
        "heap_profile_tracker_new_stack",
        "",
        "a frame without a name has an empty one",
    ),
    (
        "heap_profile_data_local_tmp",
        "allocations: 3 more, 3 less",
        "times before any clock are kept as they are",
    ),
    (
        "heap_profile_deobfuscate",
        "allocations",
        "a trace time below zero",
    ),
    (
        "heap_profile_dump_max",
        "allocations",
        "a trace time below zero",
    ),
    (
        "heap_profile_no_symbols",
        "allocations",
        "a trace time below zero",
    ),
    ("inline_positions", "allocations", "a trace time below zero"),
    (
        "inline_positions",
        "frames: 3 more, 3 less",
        "inlined Java methods keep the source file of their frame",
    ),
    (
        "inline_positions",
        "callsites: 3 more, 3 less",
        "inlined Java methods keep the source file of their frame",
    ),
    (
        "staticized_method",
        "allocations",
        "a trace time below zero",
    ),
    (
        "vertical_class_merging",
        "allocations",
        "a trace time below zero",
    ),
    ("method_overload", "allocations", "a trace time below zero"),
    (
        "symbolization_candidates_heap_profile",
        "allocations",
        "a trace time below zero",
    ),
];

fn may_differ(name: &str, heading: &str) -> bool {
    BETTER
        .iter()
        .any(|(known, what, _)| *known == name && heading.starts_with(what))
}

#[test]
fn tables_are_those_of_perfetto() {
    let mut faults = Vec::new();
    for (trace, tables) in recordings() {
        let name = trace
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let name = name.split('.').next().unwrap_or_default();
        for found in differences(&ours(&mut database(&trace)), &theirs(&tables)) {
            if !may_differ(name, &found[0]) {
                faults.push(format!("{name}: {}", found.join("\n    ")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Rows not compared: the duration of Perfetto's own reading; its data on the config and on cloned
/// sessions, which `stats` omits here; and samples that it drops and heaptap counts.
const NOT_TOLD: [&str; 13] = [
    "config_write_into_file_discard",
    "traced_clone_started_timestamp_ns",
    "traced_buf_clone_done_timestamp_ns",
    "heapprofd_malformed_packet|1|",
    "guess_trace_type_duration_ns",
    "parse_trace_duration_ns",
    "clock_sync_cache_miss",
    "clock_sync_failure_unknown_source_clock",
    "interned_data_tokenizer_errors",
    "interned_data_skipped_incremental_state_invalid",
    "stackprofile_invalid_callstack_id",
    "deobfuscate_location_parse_error",
    "symbolization_tmp_build_id_not_found",
];

#[test]
fn counters_are_those_of_perfetto() {
    let mut faults = Vec::new();
    for (trace, tables) in recordings() {
        let Some(theirs) = read_csv(&tables.join("stats.csv")) else {
            continue;
        };
        let text = |value: &Option<String>| value.clone().unwrap_or("NULL".to_owned());
        let sql = "SELECT name, idx, severity, value FROM stats";
        let ours = select(&mut database(&trace), sql);
        let rows = |table: &content::Table| -> Vec<String> {
            let rows = table.iter().map(|row| {
                ["name", "idx", "severity", "value"]
                    .map(|column| text(&row[column]))
                    .join("|")
            });
            let mut rows: Vec<String> = rows
                .filter(|row| !NOT_TOLD.iter().any(|name| row.starts_with(name)))
                .collect();
            rows.sort();
            rows
        };
        let (ours, theirs) = (rows(&ours), rows(&theirs));
        let more: Vec<&String> = ours.iter().filter(|row| !theirs.contains(row)).collect();
        let less: Vec<&String> = theirs.iter().filter(|row| !ours.contains(row)).collect();
        if !more.is_empty() || !less.is_empty() {
            faults.push(format!("{}: +{more:?} -{less:?}", trace.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
