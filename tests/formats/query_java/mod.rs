//! Tables of Java heaps, flamegraphs and modules of Perfetto's library, compared with Perfetto's
//! trace processor for the same traces: a second database has its tables, and a query without ids
//! gives the same rows in both. The fixture has the results of queries; whole tables are too big to
//! be committed, so tests of tables need HEAPTAP_RECORDINGS=DIR and run on all recordings in the
//! directories `java` and `native` below it. The others run on those too if they are given.

mod docs;
mod documented;
mod flamegraphs;
mod sides;
mod tables;

use crate::recordings::Recording;

/// The directories of recordings with tables below HEAPTAP_RECORDINGS.
const DIRECTORIES: [&str; 2] = ["java", "native"];

fn recordings() -> Vec<Recording> {
    crate::recordings::recordings("heap_graphs", &DIRECTORIES)
}

/// The directory of Perfetto's tables.
fn tables_of(recording: &Recording) -> std::path::PathBuf {
    recording.expected.join("sql")
}

/// Runs a check on each recording with tables and fails with all its findings, or if there was
/// nothing to compare.
fn each(recordings: Vec<Recording>, check: impl Fn(&Recording, &sides::Sides) -> Vec<String>) {
    let (mut faults, mut compared) = (Vec::new(), 0);
    for recording in recordings {
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
        compared += sides.compared.get();
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared > 0, "there was nothing to compare");
}
