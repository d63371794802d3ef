//! One recording with all sources: the planted leaks grow by the same amount, at the same times, in
//! heapprofd's dumps, in meminfo and in the live sets after collections; and the page contains
//! exactly those figures.
//!
//! Each source is read at different times, so the system's figures are interpolated at the times of
//! the dumps, and the growth between dumps is compared: only some sources include memory from
//! before the profiler.

use std::io::Read as _;
use std::path::Path;

use android_memory::meminfo::{Column, Meminfo};
use base64::Engine as _;
use heaptap_analyze::sampling::{Counters, Interval, Turnover};
use heaptap_model::timeline::{Entry, FILE, Observation, Source, Timeline};
use serde_json::Value;

use crate::lab::Lab;

/// Slow enough that a busy host answers within seconds of the phone.
const PHONE: &str = "android=14,build=userdebug,speed=3";
const LABELS: [&str; 3] = ["one", "two", "three"];
/// Between two labels, in seconds of the phone: long compared with the time error of a sample.
const BETWEEN: f64 = 12.0;
/// Before the first label: a freshly started app also grows for other reasons.
const WARM: f64 = 4.0;
/// Memory that varies between a dump and the nearest reading: the engine's block of 1.5 MB, a pool
/// of bitmaps.
const CHURN: f64 = 6e6;
/// The allocator rounds each block up.
const ROUNDED: f64 = 1.03;
/// For the native heap's pages: holes between blocks vary.
const HOLES: f64 = 0.07;
/// The app leaks listeners: bytes of each, two per second.
const LISTENER: f64 = 10_086.0;
const LISTENERS: f64 = 2.0;
/// A collection is logged at its end, but counts the objects live at marking: seconds of growth
/// between the two on a busy host.
const LATE: f64 = 2.0;
/// Objects that remain besides the listeners, as a share of them: thumbnails while their cache
/// fills, and survivors of a young collection.
const OTHERS: f64 = 0.1;

/// Values of a figure with their times, in order.
type Readings = Vec<(u64, f64)>;

/// The figure at `ns`, interpolated between the adjacent readings, or from the nearest two.
fn at(readings: &Readings, ns: u64) -> f64 {
    assert!(readings.len() >= 2, "{readings:?}");
    let next = readings.partition_point(|(when, _)| *when < ns);
    let next = next.clamp(1, readings.len() - 1);
    let ((from, a), (to, b)) = (readings[next - 1], readings[next]);
    a + (b - a) * (ns as f64 - from as f64) / (to - from) as f64
}

/// A dump of libc.malloc in the manifest.
#[derive(Debug)]
struct Dump {
    ns: u64,
    counters: Counters,
    interval: Interval,
}

fn dumps(manifest: &Value) -> Vec<Dump> {
    let dumps = manifest["dumps"].as_array().unwrap().iter();
    let of = |dump: &Value| {
        let total = |key: &str| dump["totals"][key].as_i64().unwrap();
        Dump {
            ns: dump["time_ns"].as_u64().unwrap(),
            counters: Counters {
                space: total("space"),
                objects: total("objects"),
                alloc_space: total("alloc_space"),
                alloc_objects: total("alloc_objects"),
                small: None,
            },
            interval: Interval::new(dump["sampling_interval_bytes"].as_u64().unwrap()).unwrap(),
        }
    };
    dumps
        .filter(|dump| dump["heap"] == "libc.malloc")
        .map(of)
        .collect()
}

/// The full meminfo values at each label and at the end: Heap Alloc and private dirty of the native
/// heap. It queries the app for the former after a collection.
fn meminfo(directory: &Path, entries: &[Entry]) -> (Readings, Readings) {
    let (mut alloc, mut dirty) = (Vec::new(), Vec::new());
    let answered = live(entries, |reason| reason == "Explicit");
    for entry in entries {
        let Observation::Captured(kept) = &entry.seen else {
            continue;
        };
        if kept.what != "meminfo" {
            continue;
        }
        let text = std::fs::read_to_string(directory.join(&kept.file)).unwrap();
        let meminfo = Meminfo::parse(&text);
        let table = meminfo.processes().next().and_then(|p| p.table());
        let cell = |column| table.unwrap().cell("Native Heap", &column).unwrap() as f64;
        let when = answered.iter().find(|(ns, _)| *ns >= entry.boot_ns);
        let (when, _) = when.expect("a collection for meminfo");
        alloc.push((*when, cell(Column::HeapAlloc)));
        dirty.push((*when, cell(Column::PrivateDirty)));
    }
    (alloc, dirty)
}

/// Live sets after collections for which `holds`.
fn live(entries: &[Entry], holds: impl Fn(&str) -> bool) -> Readings {
    let of = |entry: &Entry| match &entry.seen {
        Observation::Collection(c) if holds(&c.reason) => Some((entry.boot_ns, c.live? as f64)),
        _ => None,
    };
    entries.iter().filter_map(of).collect()
}

/// Only the header of the data in a page: see viewer/README.md.
fn data_of(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let mut data = Vec::new();
    for block in html.split("class=\"heaptap-data\"").skip(1) {
        let (_, block) = block.split_once('>').unwrap();
        let (block, _) = block.split_once("</script>").unwrap();
        let packed = base64::prelude::BASE64_STANDARD.decode(block).unwrap();
        flate2::read::ZlibDecoder::new(&packed[..])
            .read_to_end(&mut data)
            .unwrap();
    }
    assert_eq!(&data[..4], b"HTR1");
    let length = u32::from_le_bytes(data[4..8].try_into().unwrap()) as usize;
    serde_json::from_slice(&data[8..8 + length]).unwrap()
}

/// A column of a table of the page, with its times in ms.
fn column(rows: &Value, name: &str) -> Vec<(f64, f64)> {
    let numbers = rows["ms"].as_array().unwrap().iter();
    let values = rows["columns"][name].as_array().unwrap();
    numbers
        .zip(values)
        .filter_map(|(ms, value)| Some((ms.as_f64()?, value.as_f64()?)))
        .collect()
}

/// Whether the page has each reading, at its time.
fn assert_shown(shown: &[(f64, f64)], readings: &Readings, what: &str) {
    assert!(!readings.is_empty(), "{what}");
    for (ns, value) in readings {
        let is_it = |(ms, shown): &&(f64, f64)| {
            (ms - *ns as f64 / 1e6).abs() < 0.001 && (shown - value).abs() < 0.5
        };
        assert!(
            shown.iter().any(|row| is_it(&row)),
            "{what}: {value} at {ns} ns is not in {shown:?}"
        );
    }
}

#[test]
fn planted_growth_shows_in_all_sources_at_the_same_times() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with all");
    running.until_recorded();
    // Caches and pools exist only once the app has run for a while.
    let mut passed = WARM;
    running.until_that("progress", |p| p["elapsed_s"].as_f64() >= Some(passed));
    for label in LABELS {
        lab.expect(0, &["snapshot", "--label", label]);
        let captured = running.until_that("captured", |event| event["label"] == label);
        assert_eq!(captured["missed"], serde_json::json!([]), "{captured}");
        let now = running.until("progress")["elapsed_s"].as_f64().unwrap();
        passed = f64::max(passed, now) + BETWEEN;
        running.until_that("progress", |p| p["elapsed_s"].as_f64() >= Some(passed));
    }
    running.interrupted(0);
    lab.assert_truth("out");

    let directory = lab.work().join("out");
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap();
    let mut entries = Timeline::parse(&text).0.entries;
    entries.sort_by_key(|entry| entry.boot_ns);
    let dumps = dumps(&lab.manifest("out"));
    assert_eq!(
        dumps.len(),
        LABELS.len() + 1,
        "at each label, and at the end"
    );

    // The native heap: each dump against the previous one, and the last against the first.
    let (alloc, dirty) = meminfo(&directory, &entries);
    assert_eq!(alloc.len(), dumps.len());
    let (first, last) = (&dumps[0], &dumps[dumps.len() - 1]);
    let each = dumps.windows(2).map(|two| (&two[0], &two[1]));
    for (before, after) in each.chain([(first, last)]) {
        let grown = Turnover::paired(&before.counters, &after.counters, after.interval);
        let grown = grown.estimate();
        assert!(grown.low > 0, "the leak is beyond doubt: {grown:?}");
        let low = grown.low as f64 - CHURN;
        let high = grown.high as f64 * ROUNDED + CHURN;
        let growth = |of: &Readings| at(of, after.ns) - at(of, before.ns);
        let of_alloc = growth(&alloc);
        assert!(
            (low..=high).contains(&of_alloc),
            "Heap Alloc grew by {of_alloc}, the dumps by {grown:?}"
        );
        let (of_pages, holes) = (growth(&dirty), HOLES * at(&dirty, after.ns));
        assert!(
            (low - holes..=high + holes).contains(&of_pages),
            "private dirty grew by {of_pages}, the dumps by {grown:?}"
        );
    }

    // The Java heap: the live sets after meminfo's collections grow as planted.
    let explicit = live(&entries, |reason| reason == "Explicit");
    assert!(explicit.len() >= dumps.len(), "{explicit:?}");
    let as_planted = |ns: f64, live: f64| {
        let (begin, least) = explicit[0];
        let listeners = (ns - begin as f64) / 1e9 * LISTENERS;
        // One is added every half second.
        let planted = listeners * LISTENER;
        (live - least - planted).abs() <= LATE * LISTENERS * LISTENER + OTHERS * planted.abs()
    };
    for (ns, live) in &explicit {
        assert!(as_planted(*ns as f64, *live), "{explicit:?}");
    }

    // The page has all of it, at the same times.
    let data = data_of(&directory.join("report.html"));
    let shown = data["dumps"].as_array().unwrap();
    assert_eq!(shown.len(), dumps.len());
    for (shown, dump) in shown.iter().zip(&dumps) {
        let ms = shown["time_ms"].as_f64().unwrap();
        assert!((ms - dump.ns as f64 / 1e6).abs() < 0.001, "{shown}");
        let measures = shown["measures"].as_array().unwrap();
        let space = measures.iter().find(|m| m["name"] == "space").unwrap();
        assert_eq!(space["total"], dump.counters.space);
    }
    let timeline = &data["timeline"];
    let labels: Vec<&str> = timeline["labels"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|label| label["text"].as_str())
        .collect();
    assert_eq!(labels, LABELS);
    let processes = timeline["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "one life");
    let process = &processes[0];
    let parts: Readings = entries
        .iter()
        .filter_map(|entry| match &entry.seen {
            // Mappings do not have a graphics category, so meminfo's is excluded.
            Observation::Parts(parts) if parts.source != Source::Smaps => {
                Some((entry.boot_ns, parts.native as f64))
            }
            _ => None,
        })
        .collect();
    assert_shown(&column(&process["parts"], "native"), &parts, "parts");

    // Collections in both log and trace are merged, those for meminfo marked as heaptap's; the
    // app's own, which only the trace has, are in the same series.
    let collections = column(&process["collections"], "live");
    let ours = column(&process["collections"], "ours");
    for (ns, value) in &explicit {
        let near = |ms: f64| (ms - *ns as f64 / 1e6).abs() < 500.0;
        let mut is_there = collections.iter().zip(&ours);
        assert!(
            is_there.any(|((ms, live), (_, ours))| near(*ms) && live == value && *ours == 1.0),
            "{value} at {ns} ns is not in {collections:?}, ours: {ours:?}"
        );
    }
    let sources = process["collections"]["source"].as_array().unwrap();
    let words = timeline["words"].as_array().unwrap();
    let is_traced = |place: &&Value| words[place.as_u64().unwrap() as usize] == "ftrace";
    let traced = sources.iter().filter(is_traced).count();
    assert!(traced >= dumps.len(), "{sources:?} of {words:?}");
    assert!(collections.len() > explicit.len(), "{collections:?}");
    for (ms, live) in &collections {
        assert!(as_planted(ms * 1e6, *live), "{live} at {ms}: {explicit:?}");
    }
}
