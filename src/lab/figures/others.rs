//! Figures of `dumpsys meminfo` and of the log of garbage collections at a label. Mappings, if they
//! were captured, are the parts of a row.

use std::path::Path;

use heaptap_lab::results::Excess;
use heaptap_lab::scenario::END;

use crate::heaps::java::ProgressReporter;
use crate::heaps::meminfo::{self, ProcessFacts};
use crate::heaps::selector::{DumpSelector, JavaInput, ProcessFilter};
use crate::heaps::smaps;
use crate::lab::state::Figure;
use android_memory::gc::printed_step;
use android_memory::smaps::{By, Field, Grouped};
use android_memory::summary_row;
use heaptap_model::timeline::{Entry, Observation, Timeline};

/// Column of the rows.
const PSS: &str = "pss";

/// Returns the selector of a snapshot.
pub(super) fn selector(label: &str) -> DumpSelector {
    match label {
        END => DumpSelector::End,
        label => DumpSelector::Label(label.to_owned()),
    }
}

/// Returns the PSS of a row of the table or of the App Summary, summed over the processes.
pub(super) fn pss(directory: &Path, label: &str, row: &str) -> Figure {
    let input = JavaInput {
        path: directory.to_owned(),
        which: Some(selector(label)),
    };
    let document = match meminfo::read(&input, &ProcessFilter::default()) {
        Ok(document) => document,
        Err(error) => return Figure::missing(error.to_string()),
    };
    match row_of(&document, row, |process| {
        mappings(directory, label, process)
    }) {
        Ok((value, parts)) => Figure::new(value, None, parts),
        Err(why) => Figure::missing(format!("at {label}: {why}")),
    }
}

/// Returns the PSS of a row in bytes, summed over the processes, and its parts.
pub(in crate::lab) fn row_of(
    document: &meminfo::Document,
    row: &str,
    mappings: impl Fn(&ProcessFacts) -> Vec<Grouped>,
) -> Result<(f64, Vec<Excess>), String> {
    let mut found = None;
    let mut parts = Vec::new();
    for process in &document.processes {
        let rows = process
            .summary
            .iter()
            .chain(&process.rows)
            .chain(&process.details);
        let named = rows.clone().find(|r| {
            r.label.trim_end_matches(':').eq_ignore_ascii_case(row) && r.values.contains_key(PSS)
        });
        let Some(value) = named.and_then(|row| row.values.get(PSS)) else {
            let process = process.called();
            return Err(format!(
                "meminfo of {process} does not have a row {row} with PSS"
            ));
        };
        *found.get_or_insert(0i64) += value;
        parts.extend(parts_of(process, row, &mappings(process)));
    }
    match found {
        Some(value) => Ok((value as f64, parts)),
        None => Err("meminfo does not have a process".to_owned()),
    }
}

/// Returns the memory mappings of a process at a label by library; empty if they were not captured.
fn mappings(directory: &Path, label: &str, process: &ProcessFacts) -> Vec<Grouped> {
    let input = JavaInput {
        path: directory.to_owned(),
        which: Some(selector(label)),
    };
    let only = ProcessFilter {
        pids: process.pid.map(u64::from).into_iter().collect(),
        ..ProcessFilter::default()
    };
    let loaded = smaps::load(&input, &only, &ProgressReporter::default());
    loaded.map_or(Vec::new(), |mapped| mapped.smaps.groups(By::Library).rows)
}

/// Returns the parts of a row: the rows of the table that count in it, and instead of each of them
/// its mappings. A total has too many mappings.
fn parts_of(process: &ProcessFacts, row: &str, mappings: &[Grouped]) -> Vec<Excess> {
    let is_total = row.to_ascii_uppercase().starts_with("TOTAL");
    let counts = |label: &str| {
        label.eq_ignore_ascii_case(row)
            || summary_row(label).is_some_and(|summary| summary.eq_ignore_ascii_case(row))
    };
    let mut parts = Vec::new();
    for table_row in &process.rows {
        let label = table_row.label.as_str();
        if label.starts_with("TOTAL") || !(is_total || counts(label)) {
            continue;
        }
        let of_row = |mapping: &&Grouped| !is_total && mapping.group.kind.label() == label;
        let before = parts.len();
        parts.extend(mappings.iter().filter(of_row).filter_map(|mapping| {
            let pss = mapping.sums.get(Field::Pss).filter(|pss| *pss > 0)?;
            Some(Excess::new(&mapping.group.label(), pss as f64))
        }));
        let pss = table_row.values.get(PSS).filter(|pss| **pss > 0);
        if let Some(pss) = pss
            && parts.len() == before
        {
            parts.push(Excess::new(label, *pss as f64));
        }
    }
    parts
}

/// Returns the live set after the last collection before the label, summed over the processes. The
/// runtime rounds it down, from 10 MB on to whole ones.
pub(super) fn live_set(timeline: &Timeline, label: &str) -> Figure {
    let entries = &timeline.entries;
    let is_label = |entry: &&Entry| match &entry.seen {
        Observation::Label(it) => it.label == label,
        _ => false,
    };
    // A step that is retried takes its label again.
    let until = match entries.iter().rfind(is_label) {
        Some(entry) => entry.boot_ns,
        None if label == END => u64::MAX,
        None => return Figure::missing(format!("there is no label {label} in the log")),
    };
    let mut last = std::collections::BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.boot_ns <= until) {
        match &entry.seen {
            Observation::Collection(collection) => {
                let live = collection.live.map(|live| (live, printed_step(live)));
                last.extend(live.map(|live| (entry.pid, live)));
            }
            Observation::Gone => drop(last.remove(&entry.pid)),
            _ => {}
        }
    }
    match last.is_empty() {
        true => Figure::missing(format!("no garbage collection was logged before {label}")),
        false => {
            let sum = |of: fn(&(u64, u64)) -> u64| last.values().map(of).sum::<u64>() as f64;
            Figure {
                step: Some(sum(|(_, step)| *step)),
                ..Figure::new(sum(|(live, _)| *live), None, Vec::new())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collections of two processes, and a label that a retried step took twice.
    const LOG: &str = r#"
{"boot_ns":1,"pid":7,"kind":"collection","reason":"Background","live":13631488}
{"boot_ns":2,"pid":8,"kind":"collection","reason":"Background","live":5120}
{"boot_ns":3,"pid":0,"kind":"label","label":"up"}
{"boot_ns":4,"pid":7,"kind":"collection","reason":"Background","live":26214400}
{"boot_ns":5,"pid":0,"kind":"label","label":"up"}
{"boot_ns":6,"pid":7,"kind":"collection","reason":"Background","live":1048576}
"#;

    #[test]
    fn a_live_set_is_that_of_the_last_attempt_with_its_rounding() {
        let (timeline, strange) = Timeline::parse(LOG);
        assert_eq!(strange, 0);
        let figure = live_set(&timeline, "up");
        assert_eq!(figure.measured.unwrap().value, 26_219_520.0);
        assert_eq!(figure.step, Some(1_048_577.0));
        assert_eq!(live_set(&timeline, END).step, Some(1025.0));
        assert!(live_set(&timeline, "down").measured.is_none());
    }
}
