//! Companion data of the native heap: one timeline, even if the cable, the app, heaptap or the
//! phone fails.

use heaptap_model::timeline::{Entry, Observation, Source, Timeline};
use serde_json::Value;

use crate::lab::{APP, Lab, files, recording};
use crate::program::assert_contains;

/// Slow enough that a busy host answers within the phone's time limits.
const PHONE: &str = "android=14,build=userdebug,speed=5";
const S: u64 = 1_000_000_000;

/// Returns the timeline in a directory of the work directory; every line must be complete.
fn timeline(lab: &Lab, directory: &str) -> Vec<Entry> {
    let path = lab.work().join(directory).join("memory.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (timeline, strange) = Timeline::parse(&text);
    assert_eq!(strange, 0, "{text}");
    timeline.entries
}

/// Returns the current number of samples of resident memory.
fn samples(lab: &Lab) -> usize {
    let seen = timeline(lab, "out");
    let resident = |entry: &&Entry| matches!(entry.seen, Observation::Resident(_));
    seen.iter().filter(resident).count()
}

fn until_samples(lab: &Lab, more: usize) {
    let wanted = samples(lab) + more;
    lab.until("samples", |lab| samples(lab) >= wanted);
}

fn kinds(manifest: &Value) -> Vec<&str> {
    let warnings = manifest["warnings"].as_array().unwrap();
    warnings
        .iter()
        .filter_map(|warning| warning["kind"].as_str())
        .filter(|kind| kind.starts_with("companion"))
        .collect()
}

#[test]
fn samples_and_labels_are_in_one_directory_on_one_clock() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo,gc");
    running.until_recorded();
    lab.expect(0, &["snapshot", "--label", "after: login", "--json"]);
    let taken = running.until("captured");
    assert_eq!(taken["label"], "after: login", "{taken}");
    assert_eq!(taken["captured"][0], "meminfo", "{taken}");
    until_samples(&lab, 25);
    let ended = running.interrupted(0);
    let observed = ended.last_with("bytes_per_s");
    assert_eq!(observed["event"], "observed");
    assert_eq!(
        files(&lab.work().join("out/meminfo")),
        ["01-after_ login.txt", "02-end.txt"]
    );
    let text = std::fs::read_to_string(lab.work().join("out/meminfo/02-end.txt")).unwrap();
    assert_contains(&text, "MEMINFO in pid");

    let seen = timeline(&lab, "out");
    let count =
        |holds: &dyn Fn(&Observation) -> bool| seen.iter().filter(|e| holds(&e.seen)).count();
    assert!(count(&|s| matches!(s, Observation::Resident(r) if r.rss > 0)) >= 25);
    // Every ten seconds, regardless of the number of samples.
    let parts: Vec<u64> = seen
        .iter()
        .filter(|e| matches!(&e.seen, Observation::Parts(p) if p.source == Source::MeminfoLocal))
        .map(|e| e.boot_ns)
        .collect();
    assert!(parts.len() >= 2, "{parts:?}");
    // On a busy host one can be late, and the next on time.
    let span = parts[parts.len() - 1] - parts[0];
    assert!(parts.len() as u64 <= span / (10 * S) + 2, "{parts:?}");
    assert_eq!(
        count(&|s| matches!(s, Observation::Process(p) if p.name == APP)),
        1
    );
    assert_eq!(
        count(&|s| matches!(s, Observation::HeaptapAction(o) if o.what == "meminfo")),
        2
    );
    assert_eq!(count(&|s| matches!(s, Observation::Gap(_))), 0);
    // Collections that heaptap caused are not attributed to the app.
    let theirs = |s: &Observation| matches!(s, Observation::Collection(c) if c.reason == "Explicit" && !c.ours);
    assert_eq!(count(&theirs), 0, "{seen:#?}");

    let manifest = lab.manifest("out");
    let label = &manifest["labels"][0];
    let at = label["requested_ns"].as_u64().unwrap();
    assert!(
        seen.iter()
            .any(|e| e.boot_ns == at && matches!(e.seen, Observation::Label(_)))
    );
    let beside = &manifest["companion"];
    assert_eq!(beside["with"], serde_json::json!(["meminfo", "gc"]));
    assert_eq!(beside["files"].as_array().unwrap().len(), 2, "{beside:#}");
    assert_eq!(beside["files"][0]["label"], "after: login");
    assert_eq!(beside["timeline"]["entries"], seen.len());
    // One connection for the loop, two for the log: fewer than one for ten samples.
    let cost = &beside["cost"];
    let polls = cost["polls"].as_u64().unwrap();
    assert!(cost["round_trips"].as_u64().unwrap() * 5 < polls, "{cost}");
    assert_eq!(kinds(&manifest), Vec::<&str>::new(), "{manifest:#}");

    // `gc` reports only the collections, and can read the log.
    assert_eq!(
        (&beside["collections"], &beside["log"]),
        (&"gc.jsonl".into(), &"logcat.txt".into())
    );
    let text = std::fs::read_to_string(lab.work().join("out/gc.jsonl")).unwrap();
    let (alone, strange) = Timeline::parse(&text);
    assert_eq!(strange, 0, "{text}");
    let told = lab.expect(0, "gc out --json").json();
    let lines = lab.expect(0, "gc out/logcat.txt --json").json();
    let collections = |report: &Value| {
        let processes = report["processes"].as_array().unwrap().iter();
        let of = |p: &Value| {
            p["collections"].as_u64().unwrap() + p["collections_by_heaptap"].as_u64().unwrap_or(0)
        };
        processes.map(of).sum::<u64>()
    };
    assert_eq!(alone.entries.len() as u64, collections(&told), "{told:#}");
    let of_lines = lab.expect(0, "gc out/gc.jsonl --json").json();
    assert_eq!(collections(&of_lines), collections(&told), "{of_lines:#}");
    assert_eq!(of_lines["processes"][0]["name"], APP, "{of_lines:#}");
    let of_all = lab.run("gc out/memory.jsonl --json").json();
    assert_eq!(of_all["source"], "recording", "{of_all:#}");
    let logged =
        count(&|s| matches!(s, Observation::Collection(c) if c.source == Some(Source::Log)));
    assert!(logged >= 2, "those for meminfo at least");
    assert_eq!(logged as u64, collections(&lines), "{lines:#}");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_directory_that_was_moved_away_gets_no_capture_and_the_recording_goes_on() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with all");
    running.until_recorded();
    std::fs::rename(lab.work().join("out"), lab.work().join("moved")).unwrap();
    lab.expect(0, "snapshot --label late");
    running.until("captured");
    assert!(!lab.work().join("out").exists());
    let ended = running.interrupted(0);
    ended.assert_stderr("out was moved or removed");
    assert_eq!(lab.manifest("out")["labels"][0]["name"], "late");
    lab.assert_truth("out");
    let moved = files(&lab.work().join("moved"));
    assert!(moved.contains(&"memory.jsonl".to_owned()), "{moved:?}");
}

#[test]
fn a_cable_that_was_out_is_a_gap_and_no_restart() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo,gc");
    running.until_recorded();
    until_samples(&lab, 3);
    lab.phone.unplug(0);
    running.until("connection-lost");
    lab.phone.plug_in(0);
    running.until("reconnected");
    until_samples(&lab, 3);
    running.interrupted(0);
    let seen = timeline(&lab, "out");
    let processes = seen
        .iter()
        .filter(|e| matches!(e.seen, Observation::Process(_)));
    assert_eq!(processes.count(), 1, "{seen:#?}");
    let gap = seen.iter().find_map(|e| match &e.seen {
        Observation::Gap(gap) => Some((e.boot_ns, gap.until_ns)),
        _ => None,
    });
    let (from, until) = gap.expect("a gap");
    assert!(from < until);
    let inside = seen.iter().filter(|e| {
        matches!(e.seen, Observation::Resident(_)) && e.boot_ns > from && e.boot_ns < until
    });
    assert_eq!(inside.count(), 0);
    let manifest = lab.manifest("out");
    assert_eq!(kinds(&manifest), ["companion-gaps"], "{manifest:#}");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn an_app_that_is_started_again_is_followed() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo");
    running.until_recorded();
    until_samples(&lab, 2);
    lab.on_phone_ok("am", &["force-stop", APP]);
    lab.until("it is gone", |lab| {
        timeline(lab, "out")
            .iter()
            .any(|e| matches!(e.seen, Observation::Gone))
    });
    let activity = format!("{APP}/.ui.FeedActivity");
    lab.on_phone_ok("am", &["start", "-n", &activity]);
    let again = running.until("restarted");
    assert_eq!(again["name"], APP);
    until_samples(&lab, 2);
    running.signal("INT");
    let ended = running.end();
    let seen = timeline(&lab, "out");
    let restarted = seen.iter().find_map(|e| match &e.seen {
        Observation::Process(process) if process.restarted => Some(e.pid),
        _ => None,
    });
    assert_eq!(restarted.map(u64::from), again["pid"].as_u64(), "{ended}");
    assert_eq!(lab.manifest("out")["companion"]["timeline"]["restarts"], 1);
}

#[test]
fn killed_it_leaves_every_line_and_who_collects_says_what_is_missing() {
    let lab = Lab::new("android=14,build=userdebug,speed=50");
    let mut running = lab.record("--with meminfo,gc");
    running.until_recorded();
    until_samples(&lab, 5);
    running.signal("KILL");
    running.end();
    let left = timeline(&lab, "out");
    let last = left.iter().map(|e| e.boot_ns).max().unwrap();
    // Long enough that samples must be missing.
    lab.until("time passes", |lab| lab.phone.boot_ns() > last + 40 * S);
    // As if it was killed while it wrote a file.
    let inside = lab.work().join("out/meminfo");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join(".heaptap-part-x"), "half").unwrap();
    lab.expect(0, "stop --json-lines");
    let seen = timeline(&lab, "out");
    assert!(seen.len() > left.len());
    for entry in &left {
        assert!(seen.contains(entry), "{entry:?}");
    }
    let gap = seen.iter().any(
        |e| matches!(&e.seen, Observation::Gap(gap) if gap.why.contains("heaptap did not follow")),
    );
    assert!(gap, "{seen:#?}");
    let manifest = lab.manifest("out");
    assert_eq!(
        kinds(&manifest),
        ["companion-unobserved", "companion-gaps"],
        "{manifest:#}"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn where_no_target_ran_what_is_missing_is_said_once() {
    let lab = Lab::new(PHONE);
    let stopped = "com.example.stopped";
    let args = format!("record -n {stopped} --with meminfo -d 3s -o out");
    let ended = lab.run(&args);
    ended.refute_stderr("no observations");
    assert_eq!(
        ended.stderr.matches("cannot capture meminfo").count(),
        1,
        "{ended}"
    );
    let manifest = lab.manifest("out");
    assert!(
        kinds(&manifest).contains(&"companion-missed"),
        "{manifest:#}"
    );
}

#[test]
fn detached_nobody_observes_and_that_is_said() {
    let lab = Lab::new(PHONE);
    let args = recording("out", "--detach --with meminfo,gc");
    lab.expect(0, &args);
    assert_eq!(files(&lab.work().join("out")), [".heaptap-session"]);
    lab.expect(0, "snapshot --label one");
    lab.expect(0, "stop").assert_stderr("no observations");
    let seen = timeline(&lab, "out");
    assert!(
        seen.iter()
            .any(|e| matches!(&e.seen, Observation::Label(l) if l.label == "one"))
    );
    assert!(
        !seen
            .iter()
            .any(|e| matches!(e.seen, Observation::Resident(_)))
    );
    let manifest = lab.manifest("out");
    assert_eq!(kinds(&manifest), ["companion-unobserved"], "{manifest:#}");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_restarted_phone_ends_it_and_what_was_seen_is_kept() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo,gc");
    running.until_recorded();
    until_samples(&lab, 5);
    let before = timeline(&lab, "out");
    lab.phone.reboot(0);
    let ended = running.end();
    assert_ne!(ended.code(), Some(0), "{ended}");
    let seen = timeline(&lab, "out");
    for entry in &before {
        assert!(seen.contains(entry), "{entry:?}");
    }
}

#[test]
fn a_recording_without_it_has_no_trace_of_it() {
    let lab = Lab::new(PHONE);
    lab.expect(0, "record -n com.example.app -d 1s -o out --json-lines");
    assert!(!lab.work().join("out/memory.jsonl").exists());
    assert!(lab.manifest("out").get("companion").is_none());
}

#[test]
fn a_label_takes_what_is_beside_where_nothing_can_be_dumped() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.start_recording("--with meminfo,java --no-snapshots");
    let checked = running.until("checked");
    assert_eq!(checked["snapshots"], "impossible", "{checked}");
    assert_eq!(checked["with"][1], "meminfo", "{checked}");
    running.until_recorded();
    let set = lab.expect(0, "snapshot --label here --json").json();
    assert_eq!(set["snapshot"]["dumps"], 0, "{set}");
    let why = set["snapshot"]["no_dump"].as_str().unwrap();
    assert!(why.contains("heapprofd"), "{set}");
    let taken = running.until("captured");
    assert_eq!(
        taken["captured"],
        serde_json::json!(["meminfo", "java"]),
        "{taken}"
    );
    // A second one, as text.
    lab.expect(0, "snapshot --label there")
        .assert_stdout("--snapshots=PERIOD");
    running.until_that("captured", |of| of["label"] == "there");
    running.interrupted(0);
    let manifest = lab.manifest("out");
    // The final dump does not have a label.
    let native = manifest["dumps"].as_array().unwrap();
    assert!(
        native.iter().all(|dump| dump["label"].is_null()),
        "{manifest:#}"
    );
    let warnings = manifest["warnings"].as_array().unwrap();
    let unbound: Vec<&Value> = warnings
        .iter()
        .filter(|warning| warning["kind"] == "label-unbound")
        .collect();
    assert_eq!(unbound.len(), 2, "{manifest:#}");
    assert!(unbound[0]["help"].as_str().unwrap().contains("--snapshots"));
    assert_eq!(
        files(&lab.work().join("out/meminfo")),
        ["01-here.txt", "02-there.txt", "03-end.txt"]
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn without_somebody_who_follows_a_label_that_dumps_nothing_is_refused() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let args = "record -n com.example.app -o out --detach --with meminfo --no-snapshots";
    lab.expect(0, args);
    let refused = lab.fails(5, "snapshot --label x");
    assert_eq!(refused["kind"], "snapshot-impossible");
    lab.expect(0, "stop");
}

#[test]
fn a_file_that_cannot_be_written_is_missed_and_nothing_else() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo,smaps");
    running.until_recorded();
    // A file instead of the directory.
    std::fs::write(lab.work().join("out/meminfo"), "in the way").unwrap();
    lab.expect(0, "snapshot --label one --json");
    let taken = running.until("captured");
    assert_eq!(taken["missed"][0][0], "meminfo", "{taken}");
    std::fs::remove_file(lab.work().join("out/meminfo")).unwrap();
    running.interrupted(0);
    let manifest = lab.manifest("out");
    assert!(
        kinds(&manifest).contains(&"companion-missed"),
        "{manifest:#}"
    );
    assert_eq!(files(&lab.work().join("out/meminfo")), ["02-end.txt"]);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn killed_in_any_step_it_leaves_whole_lines_and_whole_files() {
    for step in ["started", "progress", "captured", "pulled", "converting"] {
        let lab = Lab::new(PHONE);
        let mut running = lab.record("--with meminfo,gc,java");
        if step != "started" {
            running.until_recorded();
            lab.expect(0, "snapshot --label one");
        }
        if !matches!(step, "started" | "progress") {
            running.until("captured");
            running.signal("INT");
        }
        if !matches!(step, "started" | "captured") {
            running.until(step);
        }
        running.signal("KILL");
        running.end();
        let left = timeline(&lab, "out");
        let collected = lab.is_left().then(|| lab.run("stop --json-lines"));
        // If killed at the very beginning, it might have recorded nothing, which is reported.
        let nothing = step == "started" && lab.truth_of("out").dumps.is_empty();
        if let Some(ended) = collected {
            let expected = if nothing { 7 } else { 0 };
            assert_eq!(ended.code(), Some(expected), "killed at {step}: {ended}");
        }
        let seen = timeline(&lab, "out");
        assert!(left.iter().all(|entry| seen.contains(entry)), "{step}");
        let manifest = lab.manifest("out");
        for file in manifest["companion"]["files"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = lab.work().join("out").join(file["file"].as_str().unwrap());
            assert!(path.exists(), "killed at {step}: {}", path.display());
        }
        if nothing {
            assert_eq!(manifest["dumps"], serde_json::json!([]), "{manifest:#}");
            let mut warnings = manifest["warnings"].as_array().unwrap().iter();
            assert!(
                warnings.any(|warning| warning["kind"] == "no-allocation"),
                "{manifest:#}"
            );
        } else {
            lab.assert_truth("out");
        }
        lab.assert_tidy("out");
    }
}

/// The missing captures in the manifest: each source with its label, the end without one.
fn missed(manifest: &Value) -> Vec<(&str, Option<&str>)> {
    let missed = manifest["companion"]["missed"].as_array().unwrap();
    let each = missed
        .iter()
        .map(|m| (m["what"].as_str().unwrap(), m["label"].as_str()));
    each.collect()
}

#[test]
fn label_after_a_kill_takes_the_dump_alone_and_the_manifest_lists_the_rest() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--with meminfo,gc,java");
    running.until_recorded();
    lab.expect(0, "snapshot --label a1");
    running.until_that("captured", |of| of["label"] == "a1");
    running.signal("KILL");
    running.end();
    lab.expect(0, "snapshot --label a2")
        .assert_stderr("took only the heap dump");
    let told = lab.expect(0, "snapshot --label a3 --json").json();
    assert_eq!(
        told["not_captured"],
        serde_json::json!(["java", "meminfo"]),
        "{told}"
    );
    lab.expect(0, "stop")
        .assert_stderr("at snapshot a2: java and meminfo");
    let manifest = lab.manifest("out");
    let of = |label| [("java", label), ("meminfo", label)];
    let expected = [of(Some("a2")), of(Some("a3")), of(None)].concat();
    assert_eq!(missed(&manifest), expected, "{manifest:#}");
    assert_eq!(
        kinds(&manifest),
        ["companion-unobserved", "companion-gaps"],
        "{manifest:#}"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn detached_recording_with_java_says_that_no_label_has_a_java_heap() {
    let lab = Lab::new(PHONE);
    lab.expect(0, &recording("out", "--detach --with java"));
    lab.expect(0, "snapshot --label one")
        .assert_stderr("`--with java` is missing");
    lab.expect(0, "stop");
    let manifest = lab.manifest("out");
    assert_eq!(
        missed(&manifest),
        [("java", Some("one")), ("java", None)],
        "{manifest:#}"
    );
    assert_eq!(kinds(&manifest), ["companion-unobserved"], "{manifest:#}");
    lab.assert_tidy("out");
}
