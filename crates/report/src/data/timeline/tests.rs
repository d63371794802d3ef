//! Readings as columns: process runs, gaps, and the readings kept of many.

use super::*;
use heaptap_model::timeline::{
    Collection, HeaptapAction, Kept, Label, Parts, Process as Seenp, Resident,
    Timeline as Readings, Unread as UnreadSource,
};
use proptest::prelude::*;

fn at(boot_ms: u64, pid: u32, seen: Observation) -> Entry {
    Entry {
        boot_ns: boot_ms * 1_000_000,
        pid,
        cost: None,
        seen,
    }
}

fn rss(boot_ms: u64, pid: u32, rss: u64) -> Entry {
    let resident = Resident {
        source: Source::Status,
        rss,
        anon: Some(rss / 2),
        file: None,
        shmem: None,
        swap: Some(0),
        peak: None,
        oom_score_adj: Some(-5),
    };
    at(boot_ms, pid, Observation::Resident(resident))
}

fn of(entries: Vec<Entry>) -> Timeline {
    Timeline::new(&Readings { entries }, &|pid| Some(format!("p{pid}"))).unwrap()
}

#[test]
fn unreadable_source_names_missing_figures() {
    let unread = UnreadSource {
        source: Source::Dmabuf,
        why: "not for the shell".to_owned(),
    };
    let timeline = of(vec![
        rss(0, 7, 5),
        at(1, 7, Observation::Unreadable(unread)),
    ]);
    let why = "not for the shell; without it, the size of graphics buffers (dma-bufs) is missing";
    assert_eq!(timeline.unread[0].why, why);
}

#[test]
fn a_restart_is_another_life_and_a_silence_is_a_gap() {
    let process = |name: &str, restarted| {
        Observation::Process(Seenp {
            name: name.to_owned(),
            restarted,
        })
    };
    let mut entries = vec![at(0, 7, process("app", false))];
    entries.extend((0..10).map(|n| rss(n * 1000, 7, 100 + n)));
    entries.extend((30..35).map(|n| rss(n * 1000, 7, 100 + n)));
    entries.push(at(35_000, 7, Observation::Gone));
    // The same number, another process.
    entries.push(at(40_000, 7, process("app", true)));
    entries.extend((40..45).map(|n| rss(n * 1000, 7, 5)));
    entries.push(rss(41_000, 9, 5));
    entries.sort_by_key(|entry| entry.boot_ns);
    let timeline = of(entries);
    let lives: Vec<_> = timeline
        .processes
        .iter()
        .map(|life| {
            (
                life.pid,
                life.process.as_str(),
                life.restarted,
                life.gone_ms,
            )
        })
        .collect();
    assert_eq!(
        lives,
        [
            (7, "app", false, Some(35_000.0)),
            (7, "app", true, None),
            (9, "p9", false, None)
        ]
    );
    let first = &timeline.processes[0].resident;
    assert_eq!(first.breaks, [10]);
    assert_eq!(first.columns["rss"].len(), 15);
    assert_eq!(first.columns["oom_score_adj"][3], Some(-5));
    assert!(!first.columns.contains_key("file"));
    assert_eq!(timeline.words[first.source[0]], "status");
    assert!(!timeline.life(7, 36_000.0).unwrap().restarted);
    assert!(timeline.life(7, 39_000.0).unwrap().restarted);
    assert_eq!(timeline.life(8, 0.0), None);
    assert_eq!(first.nearest(9400.0), Some(9));
    assert_eq!(first.nearest(25_000.0), Some(10));
    assert_eq!(first.nearest(1e9), Some(14));
    assert_eq!(Rows::default().nearest(1.0), None);
}

#[test]
fn collections_keep_what_is_known_and_nothing_else() {
    let collection = Collection {
        source: Some(Source::Log),
        reason: "Explicit".to_owned(),
        freed_bytes: Some(-4),
        live: Some(0),
        pauses: vec![5, 7],
        ours: true,
        ..Collection::default()
    };
    let ours = Observation::HeaptapAction(HeaptapAction {
        what: "meminfo".to_owned(),
        until_ns: 3_000_000,
    });
    let label = Observation::Label(Label {
        label: "now".to_owned(),
    });
    let timeline = of(vec![
        at(1, 7, ours),
        at(1, 0, label),
        at(2, 7, Observation::Collection(collection)),
    ]);
    assert_eq!(timeline.processes.len(), 1);
    let rows = &timeline.processes[0].collections;
    let value = |column: &str| rows.value(column, 0);
    assert_eq!(
        timeline.words[value("reason").unwrap() as usize],
        "Explicit"
    );
    assert_eq!(timeline.words[value("collector").unwrap() as usize], "");
    assert_eq!(value("freed_bytes"), Some(-4));
    assert_eq!((value("live"), value("total")), (Some(0), None));
    assert_eq!(
        (value("longest_pause_ns"), value("paused_ns")),
        (Some(7), Some(12))
    );
    assert_eq!(value("ours"), Some(1));
    assert_eq!(timeline.ours[0].until_ms, Some(3.0));
    assert_eq!(timeline.labels[0].text, "now");
}

#[test]
fn a_label_has_its_capture_and_not_the_nearest_reading() {
    let read = |boot_ms, source| at(boot_ms, 7, parts(source, 0));
    let captured = |boot_ms, what: &str, label: &str| {
        let kept = Kept {
            what: what.to_owned(),
            file: String::new(),
            label: label.to_owned(),
            number: 1,
        };
        at(boot_ms, 7, Observation::Captured(kept))
    };
    let mut entries: Vec<Entry> = (0..10_000)
        .map(|n| read(n * 1000, Source::MeminfoLocal))
        .collect();
    // Taken 2.4 s after the label, while periodic readings are nearer to it.
    entries.insert(5003, read(5_002_400, Source::Meminfo));
    entries.insert(5003, captured(5_002_400, "meminfo", "a"));
    entries.insert(5003, captured(5_002_100, "smaps", "a"));
    entries.push(read(9_999_500, Source::Meminfo));
    entries.push(captured(9_999_500, "meminfo", ""));
    let timeline = of(entries);
    let life = &timeline.processes[0];
    let time = |label, ms| Some(life.parts.ms[timeline.captured(life, label, ms)?]);
    assert!(timeline.thinned_from.is_some());
    assert_eq!(time("a", 5_000_000.0), Some(5_002_400.0));
    assert_eq!(time("", 0.0), Some(9_999_500.0));
    assert_eq!(time("b", 5_000_000.0), None);
    // Mappings are captures only if meminfo was not read.
    let only = of(vec![read(5, Source::Smaps), captured(5, "smaps", "a")]);
    assert_eq!(only.captured(&only.processes[0], "a", 0.0), Some(0));
}

#[test]
fn of_a_long_recording_peaks_and_gaps_stay() {
    let mut entries: Vec<Entry> = (0..100_000u64)
        .filter(|n| !(60_000..61_000).contains(n))
        .map(|n| rss(n * 1000, 7, 1000 + n % 10))
        .collect();
    entries[12_345] = rss(12_345_000, 7, 9_000_000);
    entries[23_456] = rss(23_456_000, 7, 1);
    let timeline = of(entries);
    let rows = &timeline.processes[0].resident;
    assert_eq!(timeline.thinned_from, Some(99_000));
    assert!(
        rows.ms.len() <= ROWS && rows.ms.len() > ROWS / 4,
        "{}",
        rows.ms.len()
    );
    assert!(rows.columns["rss"].contains(&Some(9_000_000)));
    assert!(rows.columns["rss"].contains(&Some(1)));
    assert_eq!(rows.breaks.len(), 1);
    let after = rows.breaks[0];
    assert_eq!(
        (rows.ms[after - 1], rows.ms[after]),
        (59_999_000.0, 61_000_000.0)
    );
    assert_eq!((rows.ms[0], *rows.ms.last().unwrap()), (0.0, 99_999_000.0));
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let seen = prop_oneof![
        Just(Observation::Gone),
        any::<u64>().prop_map(|rss| Observation::Resident(Resident {
            file: Some(rss),
            ..Resident::new(Source::ProcessStats, rss)
        })),
        any::<[i64; 2]>().prop_map(|[java, system]| Observation::Parts(Parts {
            source: Source::Meminfo,
            java,
            native: 1,
            code: 2,
            stack: 3,
            graphics: 4,
            private_other: 5,
            system,
            total_pss: i64::MIN,
            total_rss: Some(u64::MAX),
            swap: None,
            native_heap: None,
            java_heap: None,
        })),
        any::<(String, Vec<u64>)>().prop_map(|(reason, pauses)| Observation::Collection(
            Collection {
                reason,
                pauses,
                ..Collection::default()
            }
        )),
        any::<String>().prop_map(|name| Observation::Process(Seenp {
            name,
            restarted: true
        })),
    ];
    // Three years: JSON represents their microseconds exactly.
    (0..100_000_000_000_000_000u64, 0..4u32, seen).prop_map(|(boot_ns, pid, seen)| Entry {
        boot_ns,
        pid,
        cost: None,
        seen,
    })
}

fn parts(source: Source, graphics: i64) -> Observation {
    Observation::Parts(Parts {
        source,
        java: 1,
        native: 1,
        code: 1,
        stack: 1,
        graphics,
        private_other: 1,
        system: 1,
        total_pss: 6 + graphics,
        total_rss: None,
        swap: None,
        native_heap: None,
        java_heap: None,
    })
}

#[test]
fn mappings_do_not_hide_graphics_that_meminfo_counts() {
    let both = of(vec![
        at(0, 7, parts(Source::MeminfoLocal, 40)),
        at(1000, 7, parts(Source::Smaps, 0)),
        at(2000, 8, parts(Source::Smaps, 0)),
    ]);
    let graphics = |pid| both.life(pid, 0.0).unwrap().parts.columns["graphics"].clone();
    assert_eq!(graphics(7), [Some(40)]);
    // Without meminfo readings, they are the only source.
    assert_eq!(graphics(8), [Some(0)]);
}

proptest! {
    #[test]
    fn columns_are_as_long_as_times_whatever_was_read(
        entries in proptest::collection::vec(any_entry(), 0..200)
    ) {
        let mut readings = Readings::default();
        readings.merge(Readings { entries });
        if let Some(timeline) = Timeline::new(&readings, &|_| None) {
            for life in &timeline.processes {
                for rows in [&life.resident, &life.parts, &life.collections] {
                    prop_assert_eq!(rows.source.len(), rows.ms.len());
                    prop_assert!(rows.columns.values().all(|c| c.len() == rows.ms.len()));
                    prop_assert!(rows.breaks.iter().all(|at| *at < rows.ms.len()));
                    prop_assert!(rows.ms.is_sorted());
                }
            }
            let text = serde_json::to_string(&timeline).unwrap();
            let back: Timeline = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back, timeline);
        }
    }
}
