//! Java heap graphs, compared with the profiles of Perfetto's converter and the tables of its trace
//! processor. Runs on `fixtures/heap_graphs`; with HEAPTAP_RECORDINGS=DIR also on every recording
//! in the directory `java` below it.

mod conversion;
mod csv;
mod judge;
mod profile;
mod rows;
mod tables;

use crate::recordings::{Recording, recordings};
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heap_graphs")
}

#[test]
fn profiles_and_tables_are_perfettos() {
    let mut faults = Vec::new();
    for recording in recordings("heap_graphs", &["java"]) {
        let Recording {
            name,
            trace,
            expected,
        } = recording;
        let heaps = match judge::open(&trace) {
            Ok(heaps) => heaps,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let mut all = profile::judge(&heaps, &expected);
        all.extend(tables::judge(&heaps, &trace, &expected.join("sql")));
        faults.extend(all.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
