//! Tables of Java heaps, flamegraphs and modules of Perfetto's library, compared with Perfetto's
//! trace processor for the same traces: a second database has its tables, and a query without ids
//! gives the same rows in both. Runs on `fixtures/heap_graphs`; with HEAPTAP_RECORDINGS=DIR also on
//! all recordings in the directories `java` and `native` below it.

mod docs;
mod documented;
mod flamegraphs;
mod sides;
mod tables;

use crate::recordings::Recording;

fn recordings() -> Vec<Recording> {
    crate::recordings::recordings("heap_graphs", &["java", "native"])
}

/// The folder of Perfetto's tables.
fn tables_of(recording: &Recording) -> std::path::PathBuf {
    recording.expected.join("sql")
}

/// Runs a check on each recording with tables and fails with all its findings.
fn each(check: impl Fn(&Recording, &sides::Sides) -> Vec<String>) {
    let mut faults = Vec::new();
    for recording in recordings() {
        if !tables_of(&recording).is_dir() {
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
