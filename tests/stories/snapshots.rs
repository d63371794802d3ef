//! Snapshots on demand: who may cause a dump, and which dump a label belongs to.

use crate::lab::{APP, Lab};

#[test]
fn labels_are_bound_to_the_dumps_they_caused() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let mut running = lab.record(&[]);
    running.until_recorded();
    for label in ["before", "after"] {
        let taken = lab
            .expect(0, &["snapshot", "--label", label, "--json"])
            .json();
        assert_eq!(taken["snapshot"]["label"], label, "{taken}");
        // It returns only once the dump is in the phone's file: a heaptap that dies now loses
        // nothing of it.
        assert!(taken["snapshot"]["dumps"].as_u64() >= Some(1), "{taken}");
    }
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
    let manifest = lab.manifest("out");
    let labels: Vec<_> = manifest["dumps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["label"]["name"].as_str())
        .collect();
    assert_eq!(
        labels,
        [Some("before"), Some("after"), None],
        "{manifest:#}"
    );
    assert_eq!(manifest["session"]["snapshots_by"], "signal");
    let bound = &manifest["labels"][0];
    assert_eq!(bound["name"], "before");
    assert_eq!(bound["dumps"][0]["number"], 1);
    assert_eq!(bound["dumps"][0]["pid"], manifest["dumps"][0]["pid"]);
    lab.assert_truth("out");
    // Converting again keeps what only the manifest knows.
    lab.expect(0, &["convert", "out", "-o", "again"]);
    let again = lab.manifest("again");
    for field in ["labels", "dumps", "session", "device", "targets"] {
        assert_eq!(again[field], manifest[field], "{field}");
    }
    let last = manifest["dumps"][2]["time_ns"].to_string();
    lab.expect(0, &["convert", "out", "--timestamps", &last, "-o", "last"]);
    let part = lab.manifest("last");
    assert_eq!(part["dumps"].as_array().unwrap().len(), 1);
    assert!(part["dumps"][0]["label"].is_null(), "{part:#}");
    assert_eq!(part["labels"][0]["dumps"].as_array().unwrap().len(), 0);
    // Nothing asked for is there: no folder.
    let none = lab.expect(7, &["convert", "out", "--pid", "1", "-o", "none"]);
    assert!(none.stderr.contains(APP), "{none}");
    assert!(!lab.work().join("none").exists());
    lab.assert_tidy("out");
}

#[test]
fn a_user_build_takes_none_unless_they_are_armed() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.start_recording(&[]);
    let checked = running.until("checked");
    assert_eq!(checked["snapshots"], "impossible", "{checked}");
    running.until_recorded();
    let refused = lab
        .expect(5, &["snapshot", "--label", "x", "--json"])
        .json();
    assert_eq!(refused["error"]["kind"], "snapshot-impossible");
    let help = refused["error"]["help"].as_str().unwrap();
    assert!(help.contains("--snapshots"), "{help}");
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
    assert!(lab.manifest("out")["labels"].as_array().unwrap().is_empty());
}

#[test]
fn an_armed_label_waits_for_the_next_dump() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.record(&["--snapshots=1s"]);
    running.until_recorded();
    let taken = lab
        .expect(0, &["snapshot", "--label", "x", "--json"])
        .json();
    let lag = taken["snapshot"]["lag_ms"].as_u64().unwrap();
    assert!(lag <= 3000, "{taken}");
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
    let manifest = lab.manifest("out");
    let labelled: Vec<_> = manifest["dumps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|d| !d["label"].is_null())
        .collect();
    assert_eq!(labelled.len(), 1, "{manifest:#}");
    assert_eq!(labelled[0]["label"]["name"], "x");
    lab.assert_truth("out");
}

#[test]
fn a_dump_that_never_comes_is_said() {
    // The profiler attaches to nothing: there is nothing to dump.
    let lab = Lab::new("android=14,build=userdebug,speed=200,fault=heapprofd-dead");
    let mut running = lab.record(&[]);
    running.until_recorded();
    let late = lab
        .expect(5, &["snapshot", "--label", "x", "--json"])
        .json();
    assert_eq!(late["error"]["kind"], "snapshot-late", "{late}");
    running.signal("INT");
    assert_eq!(running.end().code(), Some(7));
}

#[test]
fn nothing_is_asked_of_a_recording_that_has_ended() {
    let lab = Lab::new("android=14,build=userdebug,speed=100");
    lab.expect(
        0,
        &["record", "-n", APP, "-d", "1s", "-o", "out", "--detach"],
    );
    // A second of the phone is over before another program has started; it may take longer.
    loop {
        let status = lab.expect(0, &["status", "--json"]).json();
        if status["sessions"][0]["state"] == "uncollected" {
            break;
        }
    }
    let over = lab
        .expect(5, &["snapshot", "--label", "x", "--json"])
        .json();
    assert_eq!(over["error"]["kind"], "not-recording");
    lab.expect(0, &["collect"]);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_label_given_twice_means_the_last_and_what_there_is_is_listed() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let mut running = lab.record(&[]);
    running.until_recorded();
    let first = lab.expect(0, &["snapshot", "--label", "login"]);
    assert!(!first.stderr.contains("already"), "{first}");
    let second = lab.expect(0, &["snapshot", "--label", "login"]);
    assert!(second.stderr.contains("login already"), "{second}");
    assert!(second.stderr.contains("@login means the last"), "{second}");
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
    let manifest = lab.manifest("out");
    let warnings = manifest["warnings"].as_array().unwrap();
    let repeated = warnings.iter().find(|w| w["kind"] == "label-repeated");
    let repeated = repeated.expect("it is said at the end, too");
    let numbers = repeated["dumps"].as_array().unwrap().iter();
    let numbers: Vec<_> = numbers.map(|dump| &dump["number"]).collect();
    assert_eq!(numbers, [1, 2], "{repeated}");
    let meant = lab.expect(0, &["top", "out@login", "--json"]).json();
    let heaps = meant["heaps"].as_array().unwrap();
    assert_eq!(heaps.len(), 1, "{meant:#}");
    assert_eq!(heaps[0]["dump"]["number"], 2, "{meant:#}");
    // What may be named instead of what is not there.
    let wrong = lab.expect(2, &["top", "out@logn", "--json"]).json();
    let help = wrong["error"]["help"].as_str().unwrap();
    assert_eq!(
        help,
        "did you mean @login? it has @login (@1, @2), @3, @last, @end"
    );
    // One moment under two names differs in nothing.
    let same = lab.expect(0, &["diff", "out@login", "out@2"]);
    assert!(same.stderr.contains("the same moment"), "{same}");
    let document = lab.expect(0, &["diff", "out", "out", "--json"]).json();
    assert_eq!(
        document["warnings"][0]["kind"], "same-moment",
        "{document:#}"
    );
    let differ = lab.expect(0, &["diff", "out@1", "out@2"]);
    assert!(!differ.stderr.contains("the same moment"), "{differ}");
}
