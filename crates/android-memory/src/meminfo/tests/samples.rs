//! Whole texts with their expected values: those in `fixtures/meminfo`, and with
//! HEAPTAP_DEVICE_TEXTS=DIR also those in its `meminfo` directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

fn directories() -> Vec<PathBuf> {
    let mut directories =
        vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/meminfo")];
    if let Some(more) = std::env::var_os("HEAPTAP_DEVICE_TEXTS") {
        directories.push(Path::new(&more).join("meminfo"));
    }
    directories
}

fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for directory in directories() {
        for entry in std::fs::read_dir(&directory).expect("cannot list the texts") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                let text = std::fs::read_to_string(&path).expect("a text");
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                texts.push((name, text));
            }
        }
    }
    assert!(texts.len() > 10);
    texts
}

#[test]
fn no_text_has_a_line_that_is_not_understood() {
    for (name, text) in texts() {
        let meminfo = Meminfo::parse(&text);
        for process in meminfo.processes() {
            let unknown: Vec<_> = process
                .texts()
                .filter(|(title, _)| *title != Some("Asset Allocations"))
                .collect();
            assert_eq!(unknown, [], "{name}");
            assert!(process.parts(Source::Meminfo).is_some(), "{name}");
        }
        assert_eq!(meminfo.unknown().count(), 0, "{name}");
        let found = meminfo.processes().count();
        assert_eq!(found == 0, meminfo.no_process().is_some(), "{name}");
    }
}

#[test]
fn rows_add_up_to_the_devices_total() {
    for (name, text) in texts() {
        for process in Meminfo::parse(&text).processes() {
            let table = process.table().unwrap();
            for sum in table.sums() {
                assert_eq!(sum.difference(), 0, "{name}: {sum:?}");
            }
        }
    }
}

#[test]
fn the_summary_is_what_its_rules_give() {
    for (name, text) in texts() {
        for process in Meminfo::parse(&text).processes() {
            if process.summary().is_none() || process.details().is_some() {
                // The details list JIT code, which the creator of these texts did not count as
                // code.
                continue;
            }
            let mut bare = process.clone();
            bare.sections
                .retain(|section| section.title.as_deref() != Some("App Summary"));
            let (said, computed) = (process.parts(Source::Meminfo), bare.parts(Source::Meminfo));
            assert_eq!(said, computed, "{name}");
        }
    }
}

fn column(key: &str) -> Column {
    match key {
        "pss" => Column::Pss,
        "pcl" => Column::PssClean,
        "sd" => Column::SharedDirty,
        "pd" => Column::PrivateDirty,
        "sc" => Column::SharedClean,
        "pc" => Column::PrivateClean,
        "rss" => Column::Rss,
        "hs" => Column::HeapSize,
        "ha" => Column::HeapAlloc,
        "hf" => Column::HeapFree,
        other => panic!("{other}"),
    }
}

fn compare(table: &Table, rows: &Value, name: &str) {
    let rows = rows.as_object().unwrap();
    assert_eq!(table.rows.values().count(), rows.len(), "{name}");
    for (label, cells) in rows {
        let row = table
            .row(label)
            .unwrap_or_else(|| panic!("{name}: {label}"));
        let cells = cells.as_object().unwrap();
        assert_eq!(
            row.cells.iter().flatten().count(),
            cells.len(),
            "{name}: {label}"
        );
        for (key, kb) in cells {
            let found = match key.as_str() {
                "swap" => table
                    .value(row, &Column::SwapPss)
                    .or_else(|| table.value(row, &Column::Swap)),
                key => table.value(row, &column(key)),
            };
            assert_eq!(
                found,
                kb.as_i64().map(|kb| kb * 1024),
                "{name}: {label} {key}"
            );
        }
    }
}

#[test]
fn every_value_is_the_one_that_was_written() {
    let path = "fixtures/meminfo/synthetic_expected.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    let expected = std::fs::read_to_string(path).expect("expected values");
    let expected: BTreeMap<String, Value> = serde_json::from_str(&expected).unwrap();
    let mut compared = 0;
    for (name, text) in texts() {
        let Some(expected) = expected.get(&name) else {
            continue;
        };
        let expected = match expected {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        let meminfo = Meminfo::parse(&text);
        let processes: Vec<&Process> = meminfo.processes().collect();
        assert_eq!(processes.len(), expected.len(), "{name}");
        for (process, expected) in processes.iter().zip(&expected) {
            assert_eq!(process.pid.map(u64::from), expected["pid"].as_u64());
            assert_eq!(process.name.as_deref(), expected["process"].as_str());
            compare(process.table().unwrap(), &expected["rows"], &name);
            let details = &expected["dalvik_details"];
            match process.details() {
                Some(found) => compare(found, details, &name),
                None => assert_eq!(details.as_object().unwrap().len(), 0, "{name}"),
            }
            let summary = process.summary().unwrap();
            for (label, kb) in expected["summary"].as_object().unwrap() {
                assert_eq!(
                    super::values(summary, label)[0],
                    kb.as_i64(),
                    "{name}: {label}"
                );
            }
            let objects = expected["objects"].as_object().unwrap();
            for (label, count) in objects {
                assert_eq!(process.object(label), count.as_i64(), "{name}: {label}");
            }
            let counted = process.counts("Objects").unwrap().entries().count();
            assert_eq!(counted, objects.len(), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared} processes were compared");
}
