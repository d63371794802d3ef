//! Conversions of real and synthetic traces, compared with Perfetto's converter. Runs on
//! `fixtures/conversions`; with HEAPTAP_RECORDINGS=DIR also on every recording in the directories
//! below it.

mod damage;
mod differences;
mod flags;
mod judge;
mod outcomes;
mod pprof;
mod symbolized;

use crate::recordings::Recording;
use std::path::{Path, PathBuf};

/// The committed recordings.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conversions")
}

fn recordings() -> Vec<Recording> {
    let found = crate::recordings::recordings("conversions", &["native", "edge", "damaged"]);
    assert!(found.len() > 30, "recordings are there");
    found
}

/// Files that are not traces; `outcomes` covers them.
const NO_TRACES: [&str; 4] = ["empty", "one_byte", "text", "zeros"];

#[test]
fn profiles_are_those_of_the_converter_or_a_difference_on_purpose() {
    let rows = differences::read();
    let all = recordings();
    let mut faults = Vec::new();
    for recording in &all {
        let Recording {
            name,
            trace,
            expected,
        } = recording;
        // A gigabyte of memory in a debug build; the benchmark covers it.
        if NO_TRACES.contains(&name.as_str()) || name == "many_one" {
            continue;
        }
        let (ours, _) = match judge::convert(trace) {
            Ok(converted) => converted,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let references = judge::references(expected);
        let row = rows.iter().find(|row| row.0 == *name).map(|row| &row.1);
        let whole = |of: &str| {
            let original = all.iter().find(|recording| recording.name == of);
            judge::references(&original.expect("the undamaged recording").expected)
        };
        for fault in judge::judge(&ours, &references, row, whole) {
            faults.push(format!("{name}: {fault}"));
        }
        // An unused row would hide the next difference.
        if row.is_some() && judge::judge(&ours, &references, None, whole).is_empty() {
            faults.push(format!("{name}: does not differ any more"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
