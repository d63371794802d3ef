//! Garbage collections: of a process on the phone, followed, requested; from saved logs.

use super::lab::{APP, Lab};
use serde_json::Value;
use std::path::Path;

/// The only process of a report.
fn process(report: &Value) -> &Value {
    let processes = report["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 1, "{report:#}");
    &processes[0]
}

#[test]
fn a_process_collects_when_it_is_asked_and_its_log_says_so() {
    for (spec, target, way) in [
        ("android=14", APP, "run-as"),
        ("android=12", APP, "run-as"),
        ("android=16,build=userdebug", APP, "root"),
        ("android=14", "com.example.profileable", "meminfo"),
    ] {
        let lab = Lab::new(spec);
        let asked = lab
            .expect(0, &format!("gc -n {target} --now --json"))
            .json();
        let first = &asked["collected"][0];
        assert_eq!(first["method"], way, "{asked:#}");
        assert_eq!(first["collection"]["reason"], "Explicit", "{asked:#}");
        assert!(first["after"]["live"].as_u64().unwrap() > 0, "{asked:#}");
        // The second one has the live set of the first.
        let asked = lab
            .expect(0, &format!("gc -n {target} --now --json"))
            .json();
        let second = &asked["collected"][0];
        assert_eq!(
            second["before"]["live"], first["after"]["live"],
            "{asked:#}"
        );
        // Both are in the log.
        let report = lab.expect(0, &["gc", "-n", target, "--json"]).json();
        assert_eq!(report["source"], "device");
        let process = process(&report);
        assert_eq!(process["name"], target, "{report:#}");
        assert_eq!(process["coverage"], "logged", "{report:#}");
        assert_eq!(process["per_minute"], Value::Null, "ART logs some only");
        let explicit: u64 = process["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|group| group["reason"] == "Explicit")
            .map(|group| group["count"].as_u64().unwrap())
            .sum();
        assert!(explicit >= 2, "{report:#}");
        let live = process["live"].as_array().unwrap();
        assert_eq!(
            live.last().unwrap()["bytes"],
            second["after"]["live"],
            "{report:#}"
        );
    }
}

#[test]
fn empty_log_of_a_device_has_next_steps() {
    let lab = Lab::new("android=14");
    let shown = lab.expect(7, "gc -n com.example.idle");
    for option in ["`--now`", "`--follow`"] {
        shown.assert_stderr(option);
    }
}

#[test]
fn who_cannot_collect_is_told_why_and_gets_no_signal() {
    let lab = Lab::new("android=14,build=userdebug");
    for (target, kind, message) in [
        ("logd", "gc-no-java", "does not have a Java heap"),
        ("com.example.frozen", "gc-frozen", "is frozen"),
        ("com.example.nobody", "gc-not-running", "com.example.nobody"),
    ] {
        let error = lab.fails(4, &["gc", "-n", target, "--now"]);
        assert_eq!(error["kind"], kind, "{error:#}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(message), "{error:#}");
    }
    // It continues to run.
    let refused = lab.fails(4, "gc -n logd --now");
    assert_eq!(refused["kind"], "gc-no-java", "{refused:#}");
}

#[test]
fn a_process_that_cannot_collect_keeps_no_other_from_it() {
    let lab = Lab::new("android=14,build=userdebug");
    let both = format!("com.example.frozen,{APP}");
    let asked = lab.expect(4, &format!("gc -n {both} --now --json"));
    asked.assert_stderr("is frozen");
    let collected = asked.json()["collected"].take();
    assert_eq!(collected.as_array().map(Vec::len), Some(1), "{collected:#}");
    assert_eq!(collected[0]["name"], APP, "{collected:#}");
    let warnings = asked.json()["warnings"].take();
    assert_eq!(warnings[0]["kind"], "gc-frozen", "{warnings:#}");
}

#[test]
fn a_log_is_followed_and_summed_up_when_it_is_interrupted() {
    let lab = Lab::new("android=14");
    // Collections that are already in the log are not reported.
    lab.expect(0, "gc -n com.example.app --now");
    let mut following = lab.start("gc -n com.example.app --follow --json-lines");
    let begin = following.until("following")["from_ns"].as_i64().unwrap();
    let mut seen = vec![begin];
    for _ in 0..2 {
        let asked = lab.expect(0, "gc -n com.example.app --now --json").json();
        let collection = &asked["collected"][0]["collection"];
        let event = following.until_that("collection", |event| {
            event["collection"]["reason"] == "Explicit"
        });
        assert_eq!(event["collection"]["live"], collection["live"], "{event:#}");
        seen.push(event["time_ns"].as_i64().unwrap());
    }
    assert!(seen[0] < seen[1] && seen[1] < seen[2], "{seen:?}");
    following.signal("INT");
    let report = following.until("report");
    let process = process(&report["report"]);
    assert!(process["collections"].as_u64().unwrap() >= 2, "{report:#}");
    assert_eq!(process["observed_by"], "followed", "{report:#}");
    let ended = following.ends(0);
    let times = ended.stdout.lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        event["time_ns"].as_i64()
    });
    assert!(times.min() >= Some(begin), "{ended}");
    // The requested one comes first, marked as such.
    let mut following = lab.start("gc -n com.example.app --follow --since 1h --json-lines");
    let earlier = following.until("collection");
    assert_eq!(earlier["earlier"], true, "{earlier:#}");
    following.interrupted(0);
}

#[test]
fn a_bugreport_gives_its_log_and_its_limits() {
    let lab = Lab::new("android=14");
    let line = |day: u32, live: u32| {
        format!(
            "01-{day:02} 03:04:05.678 10234  4321  4330 I e.myapplicatio: Alloc concurrent copying \
             GC freed 10(2KB) AllocSpace objects, 0(0B) LOS objects, 2% free, {live}MB/{live}MB, \
             paused 200us total 1ms\n"
        )
    };
    let text = format!(
        "========================================================\n\
         == dumpstate: 2025-01-07 10:11:12\n\
         ------ SYSTEM LOG (logcat -v threadtime -v printable -v uid -d *:v) ------\n\
         01-07 03:04:01.000  1000  1000  1010 I ActivityManager: Start proc \
         4321:com.example.myapplication/u0a12 for activity\n{}{}\
         ------ 0.1s was the duration of 'SYSTEM LOG' ------\n\
         ------ LAST LOGCAT (logcat -L) ------\n{}\
         ------ SYSTEM PROPERTIES (getprop) ------\n\
         [dalvik.vm.heapgrowthlimit]: [256m]\n[dalvik.vm.heapsize]: [512m]\n\
         ------ DUMPSYS (/system/bin/dumpsys) ------\n  \
         Package [com.example.myapplication] (1a):\n    flags=[ HAS_CODE LARGE_HEAP ]\n",
        line(7, 250),
        line(7, 254),
        line(6, 9),
    );
    std::fs::write(lab.work().join("bugreport.txt"), &text).unwrap();
    let mut zip =
        zip::ZipWriter::new(std::fs::File::create(lab.work().join("bugreport-phone.zip")).unwrap());
    let mut add = |name: &str, text: &str| {
        use std::io::Write as _;
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };
    add("version.txt", "2.0");
    add("bugreport-phone-2025-01-07.txt", &text);
    add("main_entry.txt", "bugreport-phone-2025-01-07.txt");
    add("FS/data/anr/anr_1.txt", "nothing");
    zip.finish().unwrap();
    for file in ["bugreport.txt", "bugreport-phone.zip"] {
        let report = lab.expect(0, &["gc", file, "--json"]).json();
        let process = process(&report);
        assert_eq!(process["name"], "com.example.myapplication", "{report:#}");
        assert_eq!(process["collections"], 2, "{report:#}");
        // 254 MiB are far below the limit of an app with a large heap.
        assert_eq!(process["limit"], 512 << 20, "{report:#}");
        assert_eq!(process["limit_from"], "heap-size", "{report:#}");
        assert_eq!(process["diagnoses"], serde_json::json!([]), "{report:#}");
    }
    let small = text.replace("LARGE_HEAP", "ALLOW_BACKUP");
    std::fs::write(lab.work().join("small.txt"), small).unwrap();
    let report = lab.expect(0, "gc small.txt --json").json();
    let found = &process(&report)["diagnoses"][0];
    assert_eq!(found["kind"], "near-limit", "{report:#}");
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("dalvik.vm.heapgrowthlimit"), "{report:#}");
}

#[test]
fn a_saved_log_tells_of_a_leak() {
    let lab = Lab::new("android=14");
    let mut text = String::from("--------- beginning of main\r\n");
    for n in 0..30 {
        let (minute, second) = (n / 6, n % 6 * 10);
        text += &format!(
            "03-17 12:{minute:02}:{second:02}.123  4321  4330 I e.myapplicatio: Background \
             concurrent copying GC freed 131642(12MB) AllocSpace objects, 3(60KB) LOS objects, \
             38% free, {}MB/90MB, paused 200us,3.190ms total 225.032ms\r\n",
            20 + n
        );
    }
    std::fs::write(lab.work().join("logcat.txt"), &text).unwrap();
    let report = lab.expect(0, "gc logcat.txt --json").json();
    let found = &process(&report)["diagnoses"][0];
    assert_eq!(found["kind"], "live-set-grows", "{report:#}");
    let pace = found["per_minute"].as_f64().unwrap() / f64::from(1 << 20);
    assert!((pace - 6.0).abs() < 0.1, "{found:#}");
    let shown = lab.expect(0, "gc logcat.txt -n com.example.myapplication");
    shown.assert_stdout("the live set keeps growing: from 20.0 MiB to 49.0 MiB");
    shown.assert_stdout("30 logged collections by ART");
    let csv = lab.expect(0, "gc logcat.txt --csv").stdout;
    assert_eq!(csv.lines().count(), 31, "{csv}");

    // The message names the missing process, and the existing ones.
    let slip = lab.expect(7, "gc logcat.txt -n nope");
    assert!(
        slip.stderr.contains("no collections of nope")
            && slip.stderr.contains("choose from …e.myapplicatio… 4321"),
        "{slip}"
    );
    slip.refute_stderr("were logged in");

    std::fs::write(lab.work().join("other.txt"), "I/x( 1): nothing\n").unwrap();
    let nothing = lab.expect(7, "gc other.txt --json").json();
    assert_eq!(nothing["lines"], 1);
    std::fs::write(lab.work().join("shown.txt"), &shown.stdout).unwrap();
    let refused = lab.fails(8, "gc shown.txt");
    assert_eq!(refused["kind"], "not-a-log");
    let refused = lab.fails(8, "gc missing.log");
    assert_eq!(refused["kind"], "input-unreadable");
    lab.expect(2, "gc logcat.txt --now");
    lab.expect(8, "gc logcat.txt missing.txt");
}

#[test]
fn a_slip_in_the_name_of_a_file_is_told_without_asking_for_a_phone() {
    let lab = Lab::new("devices=0");
    for file in ["logcat.txt", "logd.txt"] {
        std::fs::write(lab.work().join(file), "").unwrap();
    }
    std::fs::create_dir(lab.work().join("rec")).unwrap();
    std::fs::write(lab.work().join("rec/manifest.json"), "{}").unwrap();
    let here = Path::new(".").join("rec").display().to_string();
    for (args, meant) in [
        (["gc", "logcat.tx"], "logcat.txt"),
        (["gc", "recc"], "rec"),
        (["gc", "recc@before..after"], "rec"),
        (["meminfo", "./recc"], here.as_str()),
        (["meminfo", "recc@end"], "rec"),
        (["smaps", "recc"], "rec"),
        (["meminfo", "recc@last"], "rec"),
        (["meminfo", "logcta.txt"], "logcat.txt"),
    ] {
        let ended = lab.expect(8, &[args[0], args[1], "--json"]);
        let error = &ended.error();
        assert_eq!(error["kind"], "input-unreadable", "{ended}");
        assert_eq!(error["help"], format!("did you mean {meant}?"), "{ended}");
    }
    // A bare word is never a process; if it looks like one, the help is the option.
    for command in ["gc", "meminfo", "smaps"] {
        let ended = lab.fails(8, &[command, "com.example.log"]);
        let help = ended["help"].to_string();
        let meant = format!("heaptap {command} -n com.example.log");
        assert!(help.contains(&meant), "{ended}");
        lab.expect(3, &[command, "-n", "com.example.log"]);
    }
    assert!(
        lab.phone.requests().iter().all(|r| !r.contains("shell")),
        "{:#?}",
        lab.phone.requests()
    );
}

#[test]
fn a_recording_is_told_between_two_labels() {
    // A collection in both the log and the trace counts once if they cover the same time.
    let lab = Lab::new("android=14,speed=4");
    let mut running = lab.record("--with gc");
    running.until_recorded();
    lab.expect(0, "gc -n com.example.app --now");
    lab.expect(0, "snapshot --label before");
    lab.expect(0, "gc -n com.example.app --now");
    lab.expect(0, "snapshot --label after");
    lab.expect(0, "gc -n com.example.app --now");
    running.interrupted(0);
    let explicit = |input: &str| {
        let ended = lab.run(&["gc", input, "-n", APP, "--csv"]);
        assert!(matches!(ended.code(), Some(0 | 6)), "{ended}");
        let rows = ended.stdout.lines();
        rows.filter(|row| row.contains(",Explicit,")).count()
    };
    for (input, collections) in [
        ("out", 3),
        ("out@before..after", 1),
        ("out@before..", 2),
        ("out@..after", 2),
        ("out@after..end", 1),
    ] {
        assert_eq!(explicit(input), collections, "{input}");
    }
    lab.expect(2, "gc out@before")
        .assert_stderr("use `out@before..` for");
    let slip = lab.fails(2, "gc out@befor..after");
    assert_eq!(slip["kind"], "no-such-capture");
    assert_eq!(slip["help"], "did you mean before?");
    lab.expect(2, "gc out@before.. out/logcat.txt");
}

/// Runs `gc` on a named pipe that provides `bytes` once.
#[cfg(unix)]
fn through_a_pipe(lab: &Lab, bytes: Vec<u8>) -> Value {
    let pipe = lab.work().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let path = pipe.clone();
    // Opening it for writing waits for a reader.
    let feeder = std::thread::spawn(move || std::fs::write(path, bytes));
    let report = lab.run("gc pipe --json");
    // A trace can have lost events.
    assert!(matches!(report.code(), Some(0 | 6)), "{report}");
    let report = report.json();
    feeder.join().expect("a feeder").expect("all was read");
    std::fs::remove_file(pipe).expect("the pipe");
    report
}

#[cfg(unix)]
#[test]
fn a_pipe_gives_a_log_or_a_trace_once() {
    let lab = Lab::new("android=14,speed=20");
    let line = "03-17 12:00:00.123  4321  4330 I e.myapplicatio: Background concurrent copying GC \
                freed 131642(12MB) AllocSpace objects, 3(60KB) LOS objects, 38% free, 20MB/90MB, \
                paused 200us,3.190ms total 225.032ms\n";
    let report = through_a_pipe(&lab, line.repeat(3000).into_bytes());
    assert_eq!(process(&report)["collections"], 3000, "{report:#}");

    let mut running = lab.record("--with gc");
    running.until_recorded();
    lab.expect(0, "gc -n com.example.app --now");
    running.interrupted(0);
    // Without the companion files.
    let trace = std::fs::read(lab.work().join("out/raw-trace")).expect("a trace");
    std::fs::write(lab.work().join("alone.pftrace"), &trace).expect("a copy");
    let alone = lab.run("gc alone.pftrace --json").json();
    assert!(!alone["processes"].as_array().expect("processes").is_empty());
    std::fs::write(lab.work().join("cut.pftrace"), &trace[..trace.len() - 10]).expect("a part");
    lab.expect(0, "gc cut.pftrace")
        .assert_stderr("later data are missing");
    assert_eq!(through_a_pipe(&lab, trace), alone);
}
