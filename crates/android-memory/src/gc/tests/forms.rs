//! Lines of every Android version with their expected values, from `fixtures/gclog`. With
//! HEAPTAP_DEVICE_TEXTS=DIR also logs of real devices in its `gclog` directory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::super::*;
use heaptap_model::timeline::Collection;
use std::io::Read as _;

const LOG: &str = include_str!("../../../../../fixtures/gclog/gc_forms.log");
const EXPECTED: &str = include_str!("../../../../../fixtures/gclog/gc_forms.expected.json");

fn logged(message: &str) -> Logged {
    match parse_message(None, message) {
        Some(Event::Collection(logged)) => *logged,
        other => panic!("{message}: {other:?}"),
    }
}

/// Returns all parsed values of a line, by the names of the expected values.
fn found(text: &str) -> BTreeMap<&'static str, Value> {
    let line = parse_line(text).expect("a line");
    let mut found = BTreeMap::new();
    found.insert("pid", line.pid.into());
    found.insert("tag", line.tag.into());
    match parse_event(&line) {
        Some(Event::Collection(logged)) => {
            let Logged {
                runtime,
                collection,
                ..
            } = *logged;
            let runtime_name = match runtime {
                Runtime::Dalvik => "dalvik",
                Runtime::Art => "art",
            };
            found.insert("rt", runtime_name.into());
            let us = |ns: u64| ns / 1000;
            let Collection {
                reason,
                collector,
                freed_objects,
                freed_bytes,
                freed_large,
                live,
                total,
                pauses,
                duration,
                ..
            } = collection;
            found.insert("reason", reason.clone().into());
            found.insert("cause", reason.into());
            found.insert("collector", collector.into());
            found.insert("freed_objects", freed_objects.into());
            found.insert("freed_bytes", freed_bytes.into());
            found.insert("los_objects", freed_large.map(|l| l.0).into());
            found.insert("los_bytes", freed_large.map(|l| l.1).into());
            found.insert("used_bytes", live.into());
            found.insert("heap_bytes", total.into());
            found.insert(
                "pauses_us",
                pauses.into_iter().map(us).collect::<Vec<_>>().into(),
            );
            found.insert("total_us", duration.map(us).into());
        }
        Some(Event::Blocked(blocked)) => {
            found.insert("blocked_us", (blocked.ns / 1000).into());
            found.insert("cause", blocked.reason.into());
        }
        Some(Event::OutOfMemory(_)) => {
            found.insert("oom", true.into());
        }
        _ => {
            found.insert("other", true.into());
        }
    }
    found
}

#[test]
fn every_form_gives_its_values() {
    let expected: Vec<BTreeMap<String, Value>> = serde_json::from_str(EXPECTED).unwrap();
    let lines: Vec<&str> = LOG.lines().collect();
    assert_eq!(lines.len(), 40);
    assert_eq!(expected.len(), lines.len());
    let mut compared = 0;
    for (text, row) in lines.iter().zip(&expected) {
        let found = found(text);
        let collected = found.contains_key("collector");
        for (key, value) in row {
            match key.as_str() {
                "line" | "note" => {}
                // Not read.
                "tid" | "uid" | "free_pct" | "ext_used" | "ext_limit" | "sampled" => {}
                "rt" if !collected => {}
                key => {
                    assert_eq!(found.get(key), Some(value), "{key} of {text}");
                    compared += 1;
                }
            }
        }
        let wants = row.contains_key("reason")
            || row.contains_key("cause") && !row.contains_key("blocked_us");
        let wants = wants || row.contains_key("collector");
        assert_eq!(collected, wants, "{text}");
    }
    assert!(compared > 100, "{compared} values were compared");
}

#[test]
fn lesser_lines_are_told_apart() {
    let of = |message: &str| parse_message(Some("art"), message);
    assert_eq!(
        of("Clamp target GC heap from 193MB to 192MB"),
        Some(Event::Clamp {
            from: 193 << 20,
            to: 192 << 20
        })
    );
    assert_eq!(
        of("Clamp target GC heap from 25.500MB to 24.000MB"),
        Some(Event::Clamp {
            from: 51 << 19,
            to: 24 << 20
        })
    );
    assert_eq!(
        of("Grow heap (frag case) to 17.500MB for 79892-byte allocation"),
        Some(Event::GrowHeap {
            to: 35 << 19,
            wanted: Some(79_892)
        })
    );
    assert_eq!(
        of("Forcing collection of SoftReferences for 12MB allocation"),
        Some(Event::SoftReferences {
            wanted: Some(12 << 20)
        })
    );
    assert_eq!(
        of("Forcing collection of SoftReferences for 1234-byte allocation"),
        Some(Event::SoftReferences { wanted: Some(1234) })
    );
    for text in [
        "SIGUSR1 forcing GC (no HPROF)",
        "SIGUSR1 forcing GC (no HPROF) and profile save",
    ] {
        assert_eq!(of(text), Some(Event::Forced));
    }
    assert_eq!(
        of("Waiting for a blocking GC NativeAlloc"),
        Some(Event::Blocking {
            reason: "NativeAlloc".to_owned(),
            waits: true
        })
    );
    assert_eq!(
        of("Starting a blocking GC Explicit"),
        Some(Event::Blocking {
            reason: "Explicit".to_owned(),
            waits: false
        })
    );
    assert_eq!(
        of("WaitForGcToComplete blocked Alloc on Background for 12.5ms"),
        Some(Event::Blocked(Blocked {
            ns: 12_500_000,
            reason: Some("Alloc".to_owned()),
            on: Some("Background".to_owned()),
        }))
    );
    // Unknown messages of a runtime are kept; messages of other programs are not.
    assert_eq!(of("Skipping GC since heap is small"), Some(Event::Other));
    assert_eq!(
        of("WaitForGcToComplete did something else"),
        Some(Event::Other)
    );
    assert_eq!(
        parse_message(Some("MyApp"), "Skipping GC since heap is small"),
        None
    );
    assert_eq!(of("Late-enabling -Xcheck:jni"), None);
    assert_eq!(of("GCM registered"), None);
}

#[test]
fn rare_values_are_read() {
    // Only the first part must be complete.
    let one = logged(
        "Background concurrent copying GC freed -12(-384KB) AllocSpace objects, 0(0B) LOS objects, 12% free, 10GB/12GB, paused  total 0",
    );
    assert_eq!(one.collection.freed_objects, None);
    assert_eq!(one.collection.freed_bytes, Some(-384 << 10));
    assert!(one.collection.pauses.is_empty());
    assert_eq!(one.collection.duration, Some(0));
    assert_eq!(
        (one.collection.live, one.steps.live),
        (Some(10 << 30), 1 << 30)
    );
    let one = logged(
        "Explicit new shiny (4 threads) GC freed 18446744073709551615(7MB) AllocSpace objects, 3 regions evacuated, 33% free, 25MB/38MB, paused 1us,2us,3us total 67.216ms (cpu 12ms)",
    );
    assert_eq!(one.collection.collector, "new shiny (4 threads)");
    assert_eq!(one.collection.freed_objects, Some(u64::MAX));
    assert_eq!(one.collection.pauses, [1000, 2000, 3000]);
    assert_eq!(one.collection.duration, Some(67_216_000));
    let one = logged("Explicit GC freed 7MB AllocSpace bytes");
    assert_eq!(
        (one.collection.collector.as_str(), one.steps.freed),
        ("", 1 << 20)
    );
    let one = logged("GC freed 3184 objects / 205496 bytes in 67ms");
    assert_eq!(one.collection.freed_bytes, Some(205_496));
    assert_eq!(one.collection.duration, Some(67_000_000));
    for text in [
        "Explicit concurrent copying GC freed",
        "Explicit concurrent copying GC freed 7 AllocSpace objects",
        " GC freed 7MB AllocSpace bytes",
        "GC_ freed lots",
        "He freed 7K, paused 1ms",
    ] {
        assert!(
            !matches!(parse_message(None, text), Some(Event::Collection(_))),
            "{text}"
        );
    }
}

/// The same three lines in each logcat format.
const FORMATS: [(&str, &str); 8] = [
    (
        "brief",
        "I/keeper  (  188): Watching for pressure\nI/keeper  (  188): Polling is supported\n\
         W/auditor (  187): type=2000 audit(0.0:1): state=ready res=1\n",
    ),
    (
        "long",
        "[ 11-20 09:00:00.101   188:  188 I/keeper   ]\nWatching for pressure\n\n\
         [ 11-20 09:00:00.102   188:  188 I/keeper   ]\nPolling is supported\n\n\
         [ 11-20 09:00:00.103   187:  187 W/auditor  ]\n\
         type=2000 audit(0.0:1): state=ready res=1\n\n",
    ),
    (
        "process",
        "I(  188) Watching for pressure  (keeper)\nI(  188) Polling is supported  (keeper)\n\
         W(  187) type=2000 audit(0.0:1): state=ready res=1  (auditor)\n",
    ),
    (
        "raw",
        "Watching for pressure\nPolling is supported\n\
         type=2000 audit(0.0:1): state=ready res=1\n",
    ),
    (
        "tag",
        "I/keeper  : Watching for pressure\nI/keeper  : Polling is supported\n\
         W/auditor : type=2000 audit(0.0:1): state=ready res=1\n",
    ),
    (
        "thread",
        "I(  188:  188) Watching for pressure\nI(  188:  188) Polling is supported\n\
         W(  187:  187) type=2000 audit(0.0:1): state=ready res=1\n",
    ),
    (
        "threadtime",
        "11-20 09:00:00.101   188   188 I keeper  : Watching for pressure\n\
         11-20 09:00:00.102   188   188 I keeper  : Polling is supported\n\
         11-20 09:00:00.103   187   187 W auditor : type=2000 audit(0.0:1): state=ready res=1\n",
    ),
    (
        "time",
        "11-20 09:00:00.101 I/keeper  (  188): Watching for pressure\n\
         11-20 09:00:00.102 I/keeper  (  188): Polling is supported\n\
         11-20 09:00:00.103 W/auditor (  187): type=2000 audit(0.0:1): state=ready res=1\n",
    ),
];

#[test]
fn lines_come_out_of_every_format() {
    let lines = [
        (188, 'I', "keeper", "Watching for pressure"),
        (188, 'I', "keeper", "Polling is supported"),
        (
            187,
            'W',
            "auditor",
            "type=2000 audit(0.0:1): state=ready res=1",
        ),
    ];
    for (name, text) in FORMATS {
        assert_lines(name, text, lines);
    }
}

/// Output of a real logcat: three lines, the same in each format.
#[test]
#[ignore = "needs HEAPTAP_DEVICE_TEXTS, a directory of texts from real devices"]
fn given_device_texts_lines_come_out_of_every_format() {
    let directory =
        std::env::var_os("HEAPTAP_DEVICE_TEXTS").expect("HEAPTAP_DEVICE_TEXTS is not set");
    let directory = Path::new(&directory).join("gclog");
    let lines = [
        (
            188,
            'I',
            "lowmemorykiller",
            "Using psi monitors for memory pressure detection",
        ),
        (188, 'I', "lowmemorykiller", "Process polling is supported"),
        (
            187,
            'W',
            "auditd",
            "type=2000 audit(0.0:1): state=initialized audit_enabled=0 res=1",
        ),
    ];
    for (name, _) in FORMATS {
        let path = directory.join(format!("andlogview_format_{name}.txt"));
        let text = std::fs::read_to_string(path).expect("the sample");
        assert_lines(name, &text, lines);
    }
}

fn assert_lines(name: &str, text: &str, lines: [(u32, char, &str, &str); 3]) {
    let mut splitter = Splitter::default();
    let mut seen = 0;
    for row in text.lines() {
        let Row::Line(line) = splitter.line(row) else {
            continue;
        };
        let (pid, level, tag, message) = lines[seen];
        seen += 1;
        let known = |there: bool| !matches!(name, "raw") && there;
        assert_eq!(line.message, message, "{name}");
        assert_eq!(line.level, known(true).then_some(level), "{name}");
        assert_eq!(line.pid, known(name != "tag").then_some(pid), "{name}");
        assert_eq!(line.tag, known(name != "thread").then_some(tag), "{name}");
        assert_eq!(
            line.time.is_some(),
            matches!(name, "time" | "threadtime" | "long"),
            "{name}"
        );
    }
    assert_eq!(seen, lines.len(), "{name}");
}

const GC: &str = "Explicit concurrent mark compact GC freed 10130KB AllocSpace bytes, 22(704KB) \
    LOS objects, 49% free, 9010KB/18MB, paused 274us,607us total 19.749ms";

#[test]
fn headers_are_found_behind_what_ci_systems_and_wrappers_put_before_them() {
    for header in [
        "09-15 15:09:12.773 13999 14001 I com.example.app: ",
        "2026-09-15 15:09:12.773 +0200 13999 14001 I com.example.app: ",
        "        1773748800.123 10123 13999 14001 I com.example.app: ",
        "09-15 15:09:12.773 I/com.example.app(13999): ",
        "I/com.example.app(13999): ",
        "2026-09-15 15:09:12.773 13999-14001 com.example.app com.example.app I ",
    ] {
        for prefix in [
            "",
            "2026-09-15T15:09:12.7730000Z ",
            "2026-09-15T15:09:12.773Z 01O ",
            "2026-09-15 15:09:12.773 ",
            "[2026-09-15T15:09:12.773Z] ",
            "[15:09:12] ",
            "15:09:12  ",
            "Sep 15 15:09:12 ",
            "test\tRun tests\t2026-09-15T15:09:12.7730000Z ",
            "emulator-5554: ",
            "logcat  | ",
            "\u{1b}[36mlogcat_1 |\u{1b}[0m ",
            "09-15 15:09:12 I/Logcat: ",
            "I/flutter: ",
        ] {
            let text = format!("{prefix}\u{1b}[32m{header}{GC}\u{1b}[0m\r");
            let line = parse_line(&text).unwrap();
            assert_eq!(line.pid, Some(13999), "{text}");
            assert_eq!(line.tag, Some("com.example.app"), "{text}");
            assert_eq!(line.message, GC, "{text}");
        }
    }
    // A message quotes a line of the log.
    let quoted = format!("09-15 15:09:13.000 7 8 I Crash: 09-15 15:09:12.773 1 2 I x: {GC}");
    let line = parse_line(&quoted).unwrap();
    assert_eq!((line.pid, line.tag), (Some(7), Some("Crash")));
    assert!(!matches!(parse_event(&line), Some(Event::Collection(_))));
}

#[test]
fn messages_without_a_header_are_found_behind_a_prefix() {
    let mut log = GcLog::default();
    log.push_all(&format!("2026-09-15T15:09:12.773Z {GC}\n"));
    let long = "T [ 09-15 15:09:12.773 13999:14001 I/com.example.app ]";
    log.push_all(&format!("{long}\n2026-09-15T15:09:12.773Z {GC}\n\n"));
    let found: Vec<_> = log
        .processes()
        .map(|p| (p.pid, p.collections.len()))
        .collect();
    assert_eq!(found, [(None, 1), (Some(13999), 1)]);
}

#[test]
fn a_reason_that_art_does_not_have_is_no_collection() {
    for reason in ["2026-09-15T15:09:12Z", "\"message\":", "I/art:", "explicit"] {
        let text = GC.replacen("Explicit", reason, 1);
        assert_eq!(parse_message(None, &text), Some(Event::Other), "{text}");
    }
    // One that a later release adds is shown as it is.
    let text = GC.replacen("Explicit", "MadeLater", 1);
    assert_eq!(logged(&text).collection.reason, "MadeLater");
    let text = format!("2026-09-15T15:09:12Z Device {text}");
    assert_eq!(
        logged(parse_line(&text).unwrap().message).collection.reason,
        "MadeLater"
    );
}

#[test]
fn an_export_of_android_studio_gives_its_processes() {
    let message = |pid: u32, name: &str, seconds: u64, message: &str| {
        serde_json::json!({
            "header": {
                "logLevel": "INFO", "pid": pid, "tid": 7, "applicationId": name,
                "processName": name, "tag": "e.myapplicatio",
                "timestamp": {"seconds": seconds, "nanos": 824_000_000}
            },
            "message": message
        })
    };
    let first = GC.replace("19.749ms", "2.679s");
    let messages = [
        message(22935, "com.example.app", 1_720_000_000, &first),
        message(
            22935,
            "com.example.app",
            1_720_000_005,
            &format!("one line\n{GC}"),
        ),
        message(8, "pid-8", 1_720_000_006, GC),
    ];
    let export = serde_json::json!({
        "metadata": {"device": {"release": "14"}, "filter": "package:mine"},
        "logcatMessages": messages
    });
    for text in [
        export.to_string(),
        serde_json::to_string_pretty(&export).unwrap(),
    ] {
        assert!(is_export(text.as_bytes()));
        let mut log = GcLog::default();
        push_export(&mut log, text.as_bytes()).unwrap();
        let found: Vec<_> = log
            .processes()
            .map(|p| {
                (
                    p.pid,
                    p.name.as_ref().unwrap().text.as_str(),
                    p.collections.len(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (Some(8), "e.myapplicatio", 1),
                (Some(22935), "com.example.app", 2)
            ]
        );
        let pause = &log.processes().nth(1).unwrap().collections[0];
        assert_eq!(pause.at, Some(1_720_000_000_824_000_000));
        assert_eq!(pause.logged.collection.duration, Some(2_679_000_000));
        // What is cut gives the messages before.
        let mut log = GcLog::default();
        assert!(push_export(&mut log, &text.as_bytes()[..text.len() - 20]).is_err());
        assert_eq!(log.processes().nth(1).unwrap().collections.len(), 2);
    }
    let endless = "{\"logcatMessages\": [{\"message\": \""
        .as_bytes()
        .chain(std::io::repeat(b'x'));
    let error = push_export(&mut GcLog::default(), endless).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}
