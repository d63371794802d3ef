//! Java heap graphs, compared with the profiles of Perfetto's converter and the tables of its trace
//! processor. The fixture has a profile and a flamegraph; the tables, too big to be committed, are
//! those of HEAPTAP_RECORDINGS=DIR, in the directory `java` below it.

mod conversion;
mod csv;
pub(crate) mod judge;
mod profile;
mod rows;
mod tables;

use crate::recordings::{Recording, given, recordings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heap_graphs")
}

/// Fails unless profiles and tables are Perfetto's; returns the names of the compared tables.
fn assert_equal(recordings: Vec<Recording>) -> BTreeSet<&'static str> {
    let (mut faults, mut compared) = (Vec::new(), BTreeSet::new());
    for recording in recordings {
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
        all.extend(tables::judge(
            &heaps,
            &trace,
            &expected.join("sql"),
            &mut compared,
        ));
        faults.extend(all.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    compared
}

#[test]
fn a_profile_and_a_flamegraph_are_perfettos() {
    let compared = assert_equal(recordings("heap_graphs", &[]));
    assert_eq!(compared, BTreeSet::from(["flamegraph"]));
}

#[test]
#[ignore = "needs HEAPTAP_RECORDINGS, a folder of recordings and of Perfetto's tables"]
fn given_recordings_have_the_profiles_and_tables_of_perfetto() {
    let compared = assert_equal(given(&["java"]));
    assert_eq!(compared.len(), 9, "{compared:?}");
}
