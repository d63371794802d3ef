//! Android 10: one file for all recordings, which the shell user can neither name nor remove. Android
//! 10 and 11: dumps have neither the name of their heap nor a sampling interval, types no superclass.

use virtual_phone::Fault;

use crate::lab::{APP, LIMIT, Lab, files, recording};

const TEN: &str = "android=10,build=userdebug,speed=10";

#[test]
fn what_was_left_on_the_phone_is_fetched_before_it_is_written_over() {
    let lab = Lab::new(TEN);
    lab.expect(0, "record -n com.example.app -d 3s -o first --detach");
    // It must have ended: two at a time do not fit.
    lab.until_ended();
    let second = recording("second", "-d 3s --json-lines");
    lab.expect(0, &second).assert_stdout("collecting-first");
    assert_eq!(lab.manifest("first")["dumps"].as_array().unwrap().len(), 1);
    lab.assert_truth("second");
    assert_eq!(files(&lab.dir.path().join("state/sessions")), [""; 0]);

    // A fetched recording is not fetched again.
    let third = lab.expect(0, &recording("third", "-d 3s --json-lines"));
    third.refute_stdout("collecting-first");
    lab.assert_truth("third");
}

#[test]
fn a_running_recording_is_not_written_over() {
    let lab = Lab::new(TEN);
    lab.expect(0, "record -n com.example.app -o first --detach");
    let refused = lab.fails(5, "record -n com.example.app -o second");
    assert_eq!(refused["kind"], "one-at-a-time", "{refused}");
    assert!(!lab.work().join("second").exists());
    lab.expect(0, "stop");
    lab.assert_truth("first");
}

#[test]
fn of_two_hosts_that_start_at_once_one_is_refused() {
    let lab = Lab::new(TEN);
    // It has found the file free, and is about to start.
    let gate = lab.phone.faults().close_gate(&["perfetto -c - -o"]);
    let late = lab.start_as("other-host", "record -n com.example.app -o late --json");
    assert!(gate.is_reached_within(LIMIT), "it did not start");
    lab.expect(0, "record -n com.example.app -o first --detach");
    drop(gate);
    let refused = late.ends(5);
    let refused = refused.json();
    assert_eq!(refused["error"]["kind"], "one-at-a-time", "{refused}");
    assert!(!lab.work().join("late").exists());
    lab.expect(0, "stop");
    lab.assert_truth("first");
}

#[test]
fn stop_of_a_session_that_never_started_does_not_end_another_hosts() {
    let lab = Lab::new(TEN);
    let gate = lab.phone.faults().close_gate(&["perfetto -c - -o"]);
    let never = lab.start(&recording("never", "--json"));
    assert!(gate.is_reached_within(LIMIT), "it did not start");
    never.signal("KILL");
    never.end();
    drop(gate);
    let theirs = recording("theirs", "-d 600s --json-lines");
    let mut theirs = lab.start_as("other-host", &theirs);
    theirs.until_recorded();
    let status = lab.status();
    let state = &status["sessions"][0]["state"];
    assert_eq!(state, "uncollected", "not running: {status}");
    let refused = lab.fails(5, "stop");
    assert_eq!(refused["kind"], "one-at-a-time", "{refused}");
    let before = theirs.until("progress")["elapsed_s"].as_f64();
    theirs.until_that("progress", |p| p["elapsed_s"].as_f64() > before);
    let theirs = theirs.interrupted(0);
    let ended_by = lab.manifest("theirs")["outcome"]["ended_by"].clone();
    assert_eq!(ended_by, "interrupted", "{theirs}");
    lab.assert_truth("theirs");
    // Nothing of the first is left, and nothing else is taken for it.
    let gone = lab.fails(5, "stop");
    assert_eq!(gone["kind"], "trace-gone", "{gone}");
    assert!(!lab.is_left());
}

#[test]
fn what_another_host_left_is_kept_too() {
    let lab = Lab::new(TEN);
    let first = ["record", "-n", APP, "-d", "3s", "-o", "first"];
    assert_eq!(lab.start_as("other-host", &first).end().code(), Some(0));
    lab.expect(0, &recording("second", "-d 3s --json-lines"))
        .assert_stdout("collecting-first");
    lab.assert_truth("second");
    let kept = files(&lab.work());
    assert_eq!(kept.len(), 3, "{kept:?}");
}

#[test]
fn what_another_host_recorded_since_is_not_taken_for_mine() {
    let lab = Lab::new(TEN);
    lab.expect(0, "record -n com.example.app -d 3s -o mine --detach");
    lab.until_ended();
    let theirs = recording("theirs", "-d 3s --json-lines");
    let theirs = lab.start_as("other-host", &theirs).end();
    theirs.assert_code(0);
    let refused = lab.fails(5, "stop");
    assert_eq!(refused["kind"], "trace-gone", "{refused}");
    let help = refused["help"].to_string();
    assert!(help.contains("heaptap-recording-"), "{refused}");
    assert!(!lab.work().join("mine").exists());
    lab.assert_truth("theirs");
    let rescued = |name: &&String| name.starts_with("heaptap-recording-");
    let all = files(&lab.work());
    let rescued = all.iter().find(rescued).expect("they fetched mine first");
    assert_eq!(lab.manifest(rescued)["dumps"].as_array().unwrap().len(), 1);
    let told = theirs.stdout.contains(rescued.as_str());
    assert!(told, "{theirs}");
}

#[test]
fn a_journal_of_which_nothing_is_left_stops_no_recording() {
    let lab = Lab::new(TEN);
    let detached = "record -n com.example.app -d 3s -o first --detach";
    lab.expect(0, detached);
    lab.until_ended();
    // A heaptap killed between cleaning up and forgetting the session leaves such a journal.
    let journal = lab.journal();
    let words = std::fs::read(&journal).unwrap();
    lab.expect(0, "stop");
    std::fs::write(&journal, words).unwrap();
    let again = "record -n com.example.app -d 3s -o second";
    lab.expect(0, again);
    lab.assert_truth("second");
    assert_eq!(files(&lab.dir.path().join("state/sessions")), [""; 0]);
}

#[test]
fn a_journal_that_cannot_be_read_is_told() {
    let lab = Lab::new(TEN);
    let detached = "record -n com.example.app -o out --detach";
    lab.expect(0, detached);
    let journal = lab.journal();
    let words = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, words.replace("\"version\":1", "\"version\":99")).unwrap();
    let status = lab.expect(0, "status");
    status.refute_stderr("no recording runs");
    status.assert_stderr("version is 99");
    assert!(status.stderr.contains("the heaptap version that wrote it"));
    let json = lab.status();
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 1, "{json}");
    let id = journal.file_stem().unwrap().to_str().unwrap();
    lab.expect(0, &["status", id])
        .assert_stderr("version is 99");
    let before = files(&lab.work());
    let stop = lab.fails(11, &["stop", id]);
    let message = stop["message"].to_string();
    assert!(message.contains("version is 99"), "{stop}");
    assert_eq!(files(&lab.work()), before);
    std::fs::write(&journal, words).unwrap();
    lab.expect(0, "stop");
    lab.assert_truth("out");
}

#[test]
fn what_another_host_records_before_the_end_of_a_fetch_is_kept() {
    let lab = Lab::new(TEN);
    let faults = lab.phone.faults();
    let fetching = faults.close_gate(&["RECV:", "profile-shell"]);
    let mine = lab.start(&recording("mine", "-d 3s --json-lines"));
    assert!(fetching.is_reached_within(LIMIT), "it was not fetched");
    let comparing = faults.close_gate(&["STA2:", "profile-shell"]);
    drop(fetching);
    assert!(comparing.is_reached_within(LIMIT), "it was not compared");
    let noting = faults.close_gate(&["STA2:", "profile-shell"]);
    drop(comparing);
    assert!(noting.is_reached_within(LIMIT), "it was not noted");
    let theirs = recording("theirs", "-d 6s");
    assert_eq!(lab.start_as("other-host", &theirs).end().code(), Some(0));
    drop(noting);
    assert_eq!(mine.end().code(), Some(0));
    lab.expect(0, &recording("next", "-d 3s --json-lines"))
        .assert_stdout("collecting-first");
}

#[test]
fn a_recording_of_android_11_is_judged_like_a_later_one() {
    let lab = Lab::new("android=11,build=userdebug,speed=10");
    let series = ["-c", "1s", "-d", "5s"];
    lab.expect(0, &recording("out", &series));
    let leaks = lab.expect(0, "leaks out --heap libc.malloc --json").json();
    let dump = &leaks["series"][0]["heaps"][0]["dumps"][0];
    assert_eq!(dump["sampling_interval_bytes"], 4096, "{leaks:#}");
    lab.expect(0, "dump -n com.example.app -o java");
    let found = lab.expect(9, "leaks java --fail --json").json();
    let leaks = found["leaks"]["groups"].as_array().unwrap();
    let activity = |leak: &&serde_json::Value| leak["class"] == "com.example.app.ui.DetailActivity";
    let leak = leaks.iter().find(activity).expect("the activity leaks");
    assert!(!leak["path"].to_string().contains("referent"), "{leak:#}");
}

#[test]
fn a_trace_without_an_end_does_not_prove_that_it_is_complete() {
    // The service of Android 10 does not report its end.
    for kind in ["recording-lost", "disk-full"] {
        let lab = Lab::new(TEN);
        let mut running = lab.start_recording("-d 3600s -c 500ms");
        running.until_that("progress", |progress| {
            progress["trace_bytes"].as_u64() > Some(10_000)
        });
        match kind {
            "disk-full" => lab.phone.faults().add(Fault::parse(kind).unwrap()),
            _ => assert_eq!(lab.phone.kill("/system/bin/traced"), 1),
        }
        let ended = running.ends(6);
        let manifest = lab.manifest("out");
        assert_eq!(manifest["warnings"][0]["kind"], kind, "{ended}");
        assert_eq!(manifest["outcome"]["complete"], false, "{ended}");
    }
}

#[test]
fn a_recording_that_is_lost_at_once_did_not_reach_its_duration() {
    for phone in ["android=14,build=userdebug", "android=10,build=userdebug"] {
        let lab = Lab::new(&format!("{phone},fault=traced-dies@1"));
        let ended = lab.run(&recording("out", "-d 20s"));
        assert!(matches!(ended.code(), Some(6 | 7)), "{ended}");
        let outcome = lab.manifest("out")["outcome"].clone();
        assert_eq!(outcome["ended_by"], "lost", "{ended}");
    }
}
