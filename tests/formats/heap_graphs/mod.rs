//! Java heap graphs, compared with the profiles of Perfetto's converter and the tables of its trace
//! processor. Runs on `fixtures/heap_graphs`; with HEAPTAP_RECORDINGS=DIR also on every recording
//! in the directory `java` below it.

mod conversion;
mod csv;
mod judge;
mod profile;
mod rows;
mod tables;

use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heap_graphs")
}

/// Recordings to compare: name, trace, directory of the expected files.
fn recordings() -> Vec<(String, PathBuf, PathBuf)> {
    let mut folders = vec![fixtures()];
    if let Some(more) = std::env::var_os("HEAPTAP_RECORDINGS") {
        folders.push(Path::new(&more).join("java"));
    }
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some((stem, _)) = name.split_once(".pftrace") {
                found.push((stem.to_owned(), path.clone(), folder.join(stem)));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "recordings are there");
    found
}

#[test]
fn profiles_and_tables_are_perfettos() {
    let mut faults = Vec::new();
    for (name, trace, folder) in recordings() {
        let heaps = match judge::open(&trace) {
            Ok(heaps) => heaps,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let mut all = profile::judge(&heaps, &folder);
        all.extend(tables::judge(&heaps, &trace, &folder.join("sql")));
        faults.extend(all.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
