//! Companion lines, and the same garbage collection from two sources.

use super::*;

const MS: u64 = 1_000_000;

fn collected(boot_ms: u64, pid: u32, collection: Collection) -> Entry {
    Entry {
        boot_ns: boot_ms * MS,
        pid,
        cost: None,
        seen: Observation::Collection(collection),
    }
}

fn logged(boot_ms: u64, pid: u32, took_ms: u64, live: u64) -> Entry {
    let collection = Collection {
        source: Some(Source::Log),
        reason: "Background".to_owned(),
        freed_bytes: Some(7),
        live: Some(live),
        duration: Some(took_ms * MS),
        ..Collection::default()
    };
    collected(boot_ms, pid, collection)
}

fn traced(boot_ms: u64, pid: u32, took_ms: u64, reason: &str) -> Entry {
    let collection = Collection {
        source: Some(Source::Ftrace),
        reason: reason.to_owned(),
        duration: Some(took_ms * MS),
        ..Collection::default()
    };
    collected(boot_ms, pid, collection)
}

fn known(entries: Vec<Entry>, more: Vec<Entry>) -> Timeline {
    let mut known = LoadedTimeline::default();
    known.add(Timeline { entries });
    known.add(Timeline { entries: more });
    known.timeline
}

fn collections(timeline: &Timeline) -> Vec<(u64, u32, Option<u64>, Option<Source>)> {
    let of = |entry: &Entry| {
        let collection = collection(entry)?.clone();
        let ms = entry.boot_ns / MS;
        Some((ms, entry.pid, collection.live, collection.source))
    };
    timeline.entries.iter().filter_map(of).collect()
}

#[test]
fn a_collection_of_both_log_and_trace_is_one_with_all_that_is_known_of_it() {
    let timeline = known(
        vec![
            logged(1000, 7, 100, 50),
            logged(2000, 7, 5, 60),
            logged(3000, 7, 5, 70),
        ],
        vec![
            traced(990, 7, 101, "Background"),
            // Another process, at the same time.
            traced(2000, 8, 5, "Background"),
            traced(2500, 7, 5, "Background"),
            // Two in a row: the nearer one.
            traced(2958, 7, 5, "NativeAlloc"),
            traced(3004, 7, 5, ""),
        ],
    );
    let (log, trace) = (Some(Source::Log), Some(Source::Ftrace));
    assert_eq!(
        collections(&timeline),
        [
            (990, 7, Some(50), trace),
            (2000, 7, Some(60), log),
            (2000, 8, None, trace),
            (2500, 7, None, trace),
            (2958, 7, None, trace),
            (3004, 7, Some(70), trace),
        ]
    );
    let last = collection(timeline.entries.last().unwrap()).unwrap();
    assert_eq!(
        (last.reason.as_str(), last.freed_bytes),
        ("Background", Some(7))
    );
}

#[test]
fn joining_again_changes_nothing_and_many_stay_quick() {
    let entries: Vec<Entry> = (0..20_000).map(|n| logged(n * 200, 7, 20, n)).collect();
    let more: Vec<Entry> = (0..20_000)
        .map(|n| traced(n * 200 + 3, 7, 20, "Background"))
        .collect();
    let timeline = known(entries, more);
    assert_eq!(timeline.entries.len(), 20_000);
    let again = known(timeline.entries.clone(), Vec::new());
    assert_eq!(again, timeline);
}

#[test]
fn a_collection_that_was_asked_for_is_ours_and_one_by_the_app_is_not() {
    let asked = Entry {
        boot_ns: 1000 * MS,
        pid: 7,
        cost: None,
        seen: Observation::HeaptapAction(HeaptapAction {
            what: "meminfo".to_owned(),
            until_ns: 1500 * MS,
        }),
    };
    let timeline = known(
        vec![asked],
        vec![
            traced(900, 7, 5, "Explicit"),
            traced(1100, 7, 5, "Explicit"),
            traced(1100, 8, 5, "Explicit"),
            traced(1200, 7, 5, "Background"),
            traced(1600, 7, 5, "Explicit"),
        ],
    );
    let ours = timeline
        .entries
        .iter()
        .filter_map(collection)
        .map(|c| c.ours);
    assert_eq!(ours.collect::<Vec<_>>(), [false, true, false, false, false]);
}

#[test]
fn a_directory_without_lines_has_none_and_strange_ones_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let none = beside(directory.path());
    assert!(none.timeline.entries.is_empty() && none.findings.is_empty());
    let text = format!("{}what\n{{\"boot_ns\":3,\"pid\"", logged(1, 7, 0, 9).line());
    std::fs::write(directory.path().join(timeline::FILE), text).unwrap();
    let some = beside(directory.path());
    assert_eq!(some.timeline.entries.len(), 1);
    assert_eq!(some.findings.len(), 1);
    assert_eq!(some.findings[0].kind, "timeline-strange-lines");
    assert!(some.findings[0].message.contains("1 line of "));
    // A file next to it that is not the trace of the recording.
    let stranger = directory.path().join("other.pb");
    std::fs::write(&stranger, "x").unwrap();
    assert!(beside(&stranger).timeline.entries.is_empty());
}
