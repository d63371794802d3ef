//! Tables of Java heaps, flamegraphs and modules of Perfetto's library, compared with Perfetto's
//! trace processor for the same traces: a second database has its tables, and a query without ids
//! gives the same rows in both. Runs on `fixtures/heap_graphs`; with HEAPTAP_RECORDINGS=DIR also on
//! all recordings in the directories `java` and `native` below it.

mod docs;
mod documented;
mod flamegraphs;
mod sides;
mod tables;

use std::path::{Path, PathBuf};

/// A trace and the directory of Perfetto's tables.
struct Recording {
    name: String,
    trace: PathBuf,
    tables: PathBuf,
}

/// Recordings to compare.
fn recordings() -> Vec<Recording> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heap_graphs");
    let mut folders = vec![fixtures];
    if let Some(more) = std::env::var_os("HEAPTAP_RECORDINGS") {
        let more = Path::new(&more);
        folders.extend([more.join("java"), more.join("native")]);
    }
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let trace = entry.expect("the folder can be read").path();
            let name = trace.file_name().unwrap_or_default().to_string_lossy();
            if let Some((name, _)) = name.split_once(".pftrace") {
                found.push(Recording {
                    name: name.to_owned(),
                    tables: folder.join(name).join("sql"),
                    trace: trace.clone(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.trace.cmp(&b.trace));
    assert!(!found.is_empty(), "recordings are there");
    found
}

/// Runs a check on each recording with tables and fails with all its findings.
fn each(check: impl Fn(&Recording, &sides::Sides) -> Vec<String>) {
    let mut faults = Vec::new();
    for recording in recordings() {
        if !recording.tables.is_dir() {
            continue;
        }
        let sides = sides::Sides::open(&recording);
        let found = check(&recording, &sides);
        faults.extend(
            found
                .into_iter()
                .map(|fault| format!("{}: {fault}", recording.name)),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
