//! Results of collections and their diagnoses.

use super::super::*;

fn log(lines: impl IntoIterator<Item = String>) -> GcLog {
    let mut log = GcLog::default();
    for line in lines {
        log.push(&line);
    }
    log
}

fn only(log: &GcLog, context: GcContext) -> ProcessReport {
    let mut reports = log.processes().map(|p| analyze(p, context));
    let report = reports.next().expect("a process");
    assert!(reports.next().is_none());
    report
}

fn art(second: u64, reason: &str, collector: &str, live_mb: u64, total_mb: u64) -> String {
    format!(
        "01-02 03:{:02}:{:02}.000  7  8 I example.app: {reason} {collector} GC freed 10(2MB) \
         AllocSpace objects, 1(1MB) LOS objects, 33% free, {live_mb}MB/{total_mb}MB, paused 2ms \
         total 100ms",
        second / 60,
        second % 60
    )
}

const FULL: &str = "concurrent copying";
const YOUNG: &str = "young concurrent copying";

fn kinds(report: &ProcessReport) -> Vec<&'static str> {
    let kind = |d: &Diagnosis| match d.evidence {
        Evidence::LiveSetGrows(_) => "grows",
        Evidence::NearLimit { .. } => "near",
        Evidence::OutOfMemory { .. } => "oom",
        Evidence::LongPauses { .. } => "pauses",
        Evidence::ExplicitCollections { .. } => "explicit",
    };
    report.diagnoses.iter().map(kind).collect()
}

#[test]
fn figures_are_nearest_rank() {
    let of = |values: &[u64]| {
        let figures = Figures::from_values(values.to_vec());
        (
            figures.p50_ns,
            figures.p90_ns,
            figures.p99_ns,
            figures.max_ns,
        )
    };
    assert_eq!(of(&[]), (0, 0, 0, 0));
    assert_eq!(of(&[7]), (7, 7, 7, 7));
    assert_eq!(of(&[4, 1, 3, 2]), (2, 4, 4, 4));
    let hundred: Vec<u64> = (1..=100).collect();
    assert_eq!(of(&hundred), (50, 90, 99, 100));
    assert_eq!(Figures::from_values(hundred).total_ns, 5050);
}

#[test]
fn rates_are_told_where_every_collection_is_logged() {
    let dalvik = |n: u64| {
        format!(
            "01-02 03:04:{:02}.000  7  8 D dalvikvm: GC_FOR_ALLOC freed 884K, 30% free \
             10010K/14104K, paused 13ms, total 14ms",
            n * 10
        )
    };
    let report = only(&log((0..4).map(dalvik)), GcContext::default());
    assert_eq!(report.coverage, Coverage::Every);
    assert_eq!(report.per_minute, Some(6.0));
    assert_eq!(report.span_ns, Some(30_000_000_000));
    assert_eq!(
        (report.freed_bytes, report.frees_known),
        (Some(4 * 884 * 1024), 4)
    );
    assert_eq!(report.pauses.count, 4);
    // Four collections in a minute of observation.
    let context = GcContext {
        observed: Some(Observed {
            ns: 60_000_000_000,
            by: ObservedBy::Log,
        }),
        ..GcContext::default()
    };
    let report = only(&log((0..4).map(dalvik)), context);
    assert_eq!(report.per_minute, Some(4.0));
    assert_eq!(report.observed_by, Some(ObservedBy::Log));
    let art: Vec<String> = (0..4)
        .map(|n| art(n * 10, "Background", FULL, 20, 30))
        .collect();
    let report = only(&log(art.clone()), GcContext::default());
    assert_eq!(
        (report.coverage, report.per_minute),
        (Coverage::Logged, None)
    );
    assert!(
        report
            .coverage
            .caveat()
            .unwrap()
            .contains("rate is unknown")
    );
    let context = GcContext {
        every: true,
        ..GcContext::default()
    };
    assert_eq!(only(&log(art), context).per_minute, Some(6.0));
}

#[test]
fn kinds_are_counted_apart_and_ours_left_out() {
    let mut log = log([
        art(0, "Background", YOUNG, 20, 30),
        art(1, "Background", YOUNG, 20, 30),
        art(2, "Explicit", FULL, 20, 30),
    ]);
    let process = log.processes().next().unwrap().clone();
    let mut ours = process.clone();
    ours.collections[2].logged.collection.ours = true;
    let report = analyze(&process, GcContext::default());
    let groups: Vec<(&str, &str, u64, i64)> = report
        .groups
        .iter()
        .map(|g| {
            (
                g.reason.as_str(),
                g.collector.as_str(),
                g.count,
                g.freed_bytes.unwrap() >> 20,
            )
        })
        .collect();
    assert_eq!(
        groups,
        [("Background", YOUNG, 2, 6), ("Explicit", FULL, 1, 3)]
    );
    assert_eq!((report.collections, report.ours), (3, 0));
    let report = analyze(&ours, GcContext::default());
    assert_eq!((report.collections, report.ours), (2, 1));
    assert_eq!((report.groups.len(), report.pauses.count), (1, 2));
    // The live set is recorded, whatever caused the collection.
    assert_eq!(report.live.len(), 3);
    assert!(report.live[2].ours);
    log.push("");
}

#[test]
fn a_live_set_that_grows_is_told_with_its_pace() {
    // 1 MB more every ten seconds after full GCs; young collections do not count.
    let lines = (0..20).flat_map(|n| {
        [
            art(n * 10, "Background", FULL, 20 + n, 60),
            art(n * 10 + 5, "Background", YOUNG, 45, 60),
        ]
    });
    let context = GcContext {
        limit: Some(100 << 20),
        ..GcContext::default()
    };
    let report = only(&log(lines), context);
    let Growth::Grows(growing) = report.growth else {
        panic!("{:?}", report.growth);
    };
    assert_eq!(growing.collections, 20);
    let mb = f64::from(1 << 20);
    assert!(
        (growing.per_collection / mb - 1.0).abs() < 0.01,
        "{growing:?}"
    );
    assert!(
        (growing.per_minute.unwrap() / mb - 6.0).abs() < 0.05,
        "{growing:?}"
    );
    assert!((growing.growth / mb - 19.0).abs() < 0.2, "{growing:?}");
    assert_eq!(kinds(&report), ["grows"]);
    let text = &report.diagnoses[0].text;
    assert!(
        text.contains("from 20.0 MiB to 39.0 MiB over 20 full GCs, trend 1.0 MiB per GC"),
        "{text}"
    );
    assert!(!text.contains("confidence interval"), "{text}");
    assert!(
        text.contains("6.0 MiB per minute") && text.contains("reaches its limit of 100.0 MiB in"),
        "{text}"
    );
}

#[test]
fn a_live_set_that_does_not_grow_is_left_alone() {
    let steady = (0..40).map(|n| art(n, "Background", FULL, 30 + n * 7 % 5, 60));
    let report = only(&log(steady), GcContext::default());
    assert!(matches!(
        report.growth,
        Growth::Steady {
            collections: 40,
            ..
        }
    ));
    assert_eq!(kinds(&report), Vec::<&str>::new());
    // With only young collections, there is no result.
    let young = (0..40).map(|n| art(n, "Background", YOUNG, 20 + n, 90));
    let report = only(&log(young), GcContext::default());
    assert_eq!(
        report.growth,
        Growth::TooFew {
            collections: 0,
            wanted: 8
        }
    );
    // A rise of too few collections is not called steady.
    let curved = (0..12).map(|n| art(n, "Background", FULL, 20 + n * n, 200));
    let report = only(&log(curved), GcContext::default());
    assert!(
        matches!(
            report.growth,
            Growth::TooFew { collections: 12, wanted } if wanted > 12
        ),
        "{:?}",
        report.growth
    );
    // Less than the unit hides, and less than the threshold.
    let little = (0..12).map(|n| {
        art(n, "Background", FULL, 30, 60)
            .replace("30MB/60MB", &format!("{}KB/60MB", 9000 + n * 20))
    });
    let report = only(&log(little), GcContext::default());
    let Growth::Steady {
        growth,
        noise,
        least,
        ..
    } = report.growth
    else {
        panic!("{:?}", report.growth);
    };
    let why = why_steady(growth, noise, least);
    assert!(why.contains("below the leak threshold"), "{why}");
}

#[test]
fn allocations_that_wait_while_the_heap_is_full_are_told() {
    let lines = |live, total| (0..4).map(move |n| art(n, "Alloc", FULL, live, total));
    // 94 of 96 MB: the runtime would leave more free if it could.
    assert_eq!(
        kinds(&only(&log(lines(94, 96)), GcContext::default())),
        ["near"]
    );
    assert_eq!(
        kinds(&only(&log(lines(94, 140)), GcContext::default())),
        Vec::<&str>::new()
    );
    // If the limit is known, it decides.
    let limit = |mb: u64| GcContext {
        limit: Some(mb << 20),
        ..GcContext::default()
    };
    assert_eq!(kinds(&only(&log(lines(94, 100)), limit(100))), ["near"]);
    assert_eq!(
        kinds(&only(&log(lines(94, 96)), limit(256))),
        Vec::<&str>::new()
    );
    // No allocation waits for background collections of a full heap. Young collections do not
    // change its size.
    let other = |reason: &'static str, collector: &'static str| {
        only(
            &log((0..4).map(move |n| art(n, reason, collector, 94, 96))),
            GcContext::default(),
        )
    };
    assert_eq!(kinds(&other("Background", FULL)), Vec::<&str>::new());
    assert_eq!(kinds(&other("Alloc", YOUNG)), Vec::<&str>::new());
    // The limit in the log takes precedence.
    let clamped = lines(94, 140)
        .chain(["I/example.app(7): Clamp target GC heap from 110MB to 96MB".to_owned()]);
    let report = only(&log(clamped), limit(512));
    assert_eq!(
        (report.limit, kinds(&report)),
        (Some(96 << 20), vec!["near"])
    );
}

#[test]
fn errors_pauses_and_habits_are_told() {
    let thrown = "01-02 03:04:05.000  7  8 W example.app: Throwing OutOfMemoryError \"Failed to allocate a 16777228 byte allocation with 8388608 free bytes and 8MB until OOM, target footprint 201326592, growth limit 201326592\" (VmSize 12 kB)";
    let reported = "01-02 03:04:06.000  7  8 E AndroidRuntime: java.lang.OutOfMemoryError: Failed to allocate a 16777228 byte allocation with 8388608 free bytes and 8MB until OOM, target footprint 201326592, growth limit 201326592";
    let report = only(
        &log([thrown.to_owned(), reported.to_owned()]),
        GcContext::default(),
    );
    assert_eq!(kinds(&report), ["oom"]);
    assert_eq!(report.out_of_memory.len(), 1);
    assert_eq!(
        (
            report.out_of_memory[0].thrown,
            report.out_of_memory[0].reported
        ),
        (1, 1)
    );
    let text = &report.diagnoses[0].text;
    assert!(
        text.contains(
            "an OutOfMemoryError was thrown: 16.0 MiB requested, 8.0 MiB free of at most 192.0 MiB"
        ),
        "{text}"
    );

    let slow = |n: u64| art(n, "Explicit", FULL, 20, 30).replace("paused 2ms", "paused 20ms,1ms");
    let report = only(&log((0..3).map(slow)), GcContext::default());
    assert_eq!(kinds(&report), ["pauses", "explicit"]);
    let text = &report.diagnoses[1].text;
    assert!(text.contains("which `heaptap meminfo` runs"), "{text}");
    assert_eq!((report.pauses.count, report.pauses.p50_ns), (6, 1_000_000));
    let slower = slow(0).replace("paused 20ms", "paused 200ms");
    let report = only(&log([slower]), GcContext::default());
    assert_eq!(report.diagnoses[0].severity, Severity::Warning);
}

#[test]
fn what_no_collection_tells_of_is_unknown_and_not_zero() {
    use heaptap_model::timeline::{Collection, Entry, Observation, Source, Timeline};
    let of = |freed: &[Option<i64>]| {
        let entries = (0..).zip(freed).map(|(n, freed_bytes)| Entry {
            boot_ns: n * 1_000_000_000,
            pid: 7,
            cost: None,
            seen: Observation::Collection(Collection {
                source: Some(Source::Ftrace),
                reason: "Background".to_owned(),
                freed_bytes: *freed_bytes,
                ..Collection::default()
            }),
        });
        let timeline = Timeline {
            entries: entries.collect(),
        };
        let recorded = of_timeline(timeline).pop().unwrap();
        let report = analyze(&recorded.log, GcContext::default());
        assert_eq!(report.groups[0].freed_bytes, report.freed_bytes);
        (report.freed_bytes, report.frees_known)
    };
    assert_eq!(of(&[None, None]), (None, 0));
    assert_eq!(of(&[None, Some(4096), None]), (Some(4096), 1));
    assert_eq!(of(&[Some(1), Some(-2)]), (Some(-1), 2));
}
