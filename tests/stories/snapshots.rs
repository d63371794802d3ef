//! Snapshots on demand: permissions for a dump, and the dump that belongs to a label.

use crate::lab::{APP, Lab, recording};
use crate::program::{assert_contains, assert_lacks};

#[test]
fn labels_are_bound_to_the_dumps_they_caused() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let mut running = lab.record("");
    running.until_recorded();
    for label in ["before", "after"] {
        let taken = lab
            .expect(0, &["snapshot", "--label", label, "--json"])
            .json();
        assert_eq!(taken["snapshot"]["label"], label, "{taken}");
        // The command returns only once the dump is in the phone's file: if heaptap is killed now,
        // nothing of it is lost.
        assert!(taken["snapshot"]["dumps"].as_u64() >= Some(1), "{taken}");
    }
    running.interrupted(0);
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
    // Converting again keeps data that only the manifest has.
    lab.expect(0, "convert out -o again");
    let again = lab.manifest("again");
    for field in ["labels", "dumps", "session", "device", "targets"] {
        assert_eq!(again[field], manifest[field], "{field}");
    }
    let last = manifest["dumps"][2]["time_ns"].to_string();
    lab.expect(0, &format!("convert out --timestamps {last} -o last"));
    let part = lab.manifest("last");
    assert_eq!(part["dumps"].as_array().unwrap().len(), 1);
    assert!(part["dumps"][0]["label"].is_null(), "{part:#}");
    assert_eq!(part["labels"][0]["dumps"].as_array().unwrap().len(), 0);
    // None of the requested dumps exists, so there is no directory.
    let none = lab.expect(2, "convert out -p 1 -o none");
    none.assert_stderr(APP);
    assert!(!lab.work().join("none").exists());
    lab.assert_tidy("out");
}

#[test]
fn a_user_build_arms_dumps_by_itself_and_a_label_gets_one() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.start_recording("");
    let checked = running.until("checked");
    let way = &checked["snapshots"]["continuous"];
    assert_eq!(way["period_ms"], 5000, "{checked}");
    assert_eq!(way["armed"], true, "{checked}");
    running.until_recorded();
    let taken = lab.expect(0, "snapshot --label x --json").json();
    assert_eq!(taken["snapshot"]["dumps"], 1, "{taken}");
    running.interrupted(0);
    let manifest = lab.manifest("out");
    assert_eq!(manifest["session"]["snapshots_by"], "continuous");
    assert_eq!(manifest["labels"][0]["name"], "x", "{manifest:#}");
    let bound = manifest["labels"][0]["dumps"].as_array().unwrap();
    assert_eq!(bound.len(), 1, "{manifest:#}");
    lab.assert_truth("out");
    let top = lab.expect(0, "top out@x --json").json();
    assert_eq!(top["heaps"][0]["dump"]["label"], "x", "{top:#}");
}

#[test]
fn a_detached_recording_on_a_user_build_takes_labels() {
    let lab = Lab::new("android=14,build=user,speed=40");
    lab.expect(0, "record -n com.example.app -o out --detach")
        .assert_stderr("heaptap snapshot");
    let taken = lab.expect(0, "snapshot --label x --json").json();
    assert_eq!(taken["snapshot"]["dumps"], 1, "{taken}");
    let quiet = lab.expect(0, "snapshot -q");
    assert_eq!(quiet.stdout, "snapshot-2\n", "{quiet}");
    let quiet = lab.expect(0, "snapshot --label y -q");
    assert_eq!(quiet.stdout, "", "{quiet}");
    lab.expect(0, "stop");
    let manifest = lab.manifest("out");
    let bound = manifest["labels"][0]["dumps"].as_array().unwrap();
    assert_eq!(bound.len(), 1, "{manifest:#}");
    let config = manifest["config"]["text"].as_str().unwrap();
    assert_contains(&config, "dump_interval_ms: 10000");
    lab.assert_tidy("out");
}

#[test]
fn no_snapshots_arms_none_and_says_that_labels_are_not_taken() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.start_recording("--no-snapshots");
    let checked = running.until("checked");
    assert_eq!(checked["snapshots"], "impossible", "{checked}");
    running.until_recorded();
    let refused = lab.fails(5, "snapshot --label x");
    assert_eq!(refused["kind"], "snapshot-impossible");
    let help = refused["help"].as_str().unwrap();
    assert_contains(&help, "--no-snapshots");
    running.interrupted(0);
    let manifest = lab.manifest("out");
    assert!(manifest["labels"].as_array().unwrap().is_empty());
    assert_eq!(
        manifest["dumps"].as_array().unwrap().len(),
        1,
        "{manifest:#}"
    );
    lab.expect(0, "record -n com.example.app -d 1s -o quiet --no-snapshots")
        .assert_stderr("snapshots: none");
    lab.expect(2, "record -n com.example.app --no-snapshots --snapshots=1s");
}

#[test]
fn one_line_says_which_dumps_are_armed_and_the_users_own_period_wins() {
    let lab = Lab::new("android=14,build=user,speed=20");
    let said = |directory: &str, more: &str| {
        let ended = lab.expect(0, recording(directory, ("-d 6s", more)));
        let lines = ended.stderr.lines();
        let lines: Vec<String> = lines
            .filter(|line| line.starts_with("snapshots: "))
            .map(str::to_owned)
            .collect();
        let [line] = &lines[..] else {
            panic!("one line: {ended}");
        };
        let config = lab.manifest(directory)["config"]["text"].to_string();
        (line.clone(), config)
    };
    let (line, config) = said("armed", "");
    assert_contains(&line, "every 2.0 s");
    assert_contains(&line, "--no-snapshots");
    assert_contains(&config, "dump_interval_ms: 2000");
    let (line, config) = said("own", "-c 3s");
    assert_contains(&line, "up to 3.0 s");
    assert_contains(&config, "dump_interval_ms: 3000");
    let (line, config) = said("period", "--snapshots=1s");
    assert_contains(&line, "up to 1.0 s");
    assert_contains(&config, "dump_interval_ms: 1000");
    // If heapprofd can dump on request, this is not needed.
    let root = Lab::new("android=14,build=userdebug,speed=20");
    root.expect(0, "record -n com.example.app -d 2s -o out");
    let config = root.manifest("out")["config"]["text"].to_string();
    assert_lacks(&config, "dump_interval_ms");
}

#[test]
fn an_armed_label_waits_for_the_next_dump() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.record("--snapshots=1s");
    running.until_recorded();
    let taken = lab.expect(0, "snapshot --label x --json").json();
    let lag = taken["snapshot"]["lag_ms"].as_u64().unwrap();
    assert!(lag <= 3000, "{taken}");
    running.interrupted(0);
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
    // The profiler attaches to nothing, so there is nothing to dump.
    let lab = Lab::new("android=14,build=userdebug,speed=200,fault=heapprofd-dead");
    let mut running = lab.record("");
    running.until_recorded();
    let late = lab.fails(5, "snapshot --label x");
    assert_eq!(late["kind"], "snapshot-late", "{late}");
    let message = late["message"].as_str().unwrap();
    assert!(message.contains("has not attached"), "{late}");
    running.interrupted(7);
}

#[test]
fn a_snapshot_of_an_app_that_ended_fails_at_once() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    lab.expect(0, "record -n com.example.app -o out --detach");
    lab.expect(0, "snapshot --label start");
    lab.on_phone_ok("am", &["force-stop", APP]);
    let gone = lab.fails(4, "snapshot --label end");
    assert_eq!(gone["kind"], "not-running", "{gone}");
    lab.expect(0, "stop");
    // The label exists, so another dump does not stand for it.
    let none = lab.fails(2, "top out@end");
    assert_eq!(none["kind"], "no-such-dump", "{none}");
    let help = none["help"].as_str().unwrap();
    assert!(help.starts_with("no dump came for this label"), "{help}");
    let check = lab.fails(12, "leaks out@end --fail");
    assert_eq!(check["kind"], "nothing-judged", "{check}");
}

#[test]
fn nothing_is_asked_of_a_recording_that_has_ended() {
    let lab = Lab::new("android=14,build=userdebug,speed=100");
    lab.expect(0, "record -n com.example.app -d 1s -o out --detach");
    // A second of the phone is over before another program has started; it can take longer.
    lab.until_ended();
    let over = lab.fails(2, "snapshot --label x");
    assert_eq!(over["kind"], "not-recording");
    lab.expect(0, "stop");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_label_given_twice_means_the_last_and_what_there_is_is_listed() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let mut running = lab.record("");
    running.until_recorded();
    // `out@2` selects another dump.
    for label in ["2", "last", "feed/list", "a@b", ""] {
        lab.expect(2, &["snapshot", "--label", label])
            .assert_stderr("label");
    }
    lab.expect(0, "snapshot --label login")
        .refute_stderr("already");
    lab.expect(0, "snapshot --label login")
        .assert_stderr("already has a snapshot `login`")
        .assert_stderr("@login selects the last");
    running.interrupted(0);
    let manifest = lab.manifest("out");
    let warnings = manifest["warnings"].as_array().unwrap();
    let repeated = warnings.iter().find(|w| w["kind"] == "label-repeated");
    let repeated = repeated.expect("it is said at the end, too");
    let numbers = repeated["dumps"].as_array().unwrap().iter();
    let numbers: Vec<_> = numbers.map(|dump| &dump["number"]).collect();
    assert_eq!(numbers, [1, 2], "{repeated}");
    let meant = lab.expect(0, "top out@login --json").json();
    let heaps = meant["heaps"].as_array().unwrap();
    assert_eq!(heaps.len(), 1, "{meant:#}");
    assert_eq!(heaps[0]["dump"]["number"], 2, "{meant:#}");
    // Available moments, instead of the missing one.
    let wrong = lab.fails(2, "top out@logn");
    let help = wrong["help"].as_str().unwrap();
    assert_eq!(
        help,
        "did you mean @login? Available: @login (@1, @2), @3, @last, @end"
    );
    // One moment under two names has no differences.
    let same = lab.expect(0, "diff out@login out@2");
    same.assert_stderr("both sides are the same");
    let document = lab.expect(0, "diff out out --json").json();
    let mut warnings = document["warnings"].as_array().unwrap().iter();
    assert!(warnings.any(|w| w["kind"] == "same-dump"), "{document:#}");
    lab.expect(0, "diff out@1 out@2")
        .refute_stderr("both sides are the same");
}

#[test]
fn of_armed_dumps_without_a_label_leaks_says_what_a_round_is() {
    let lab = Lab::new("android=14,build=user,speed=20");
    lab.expect(0, recording("out", "-c 2s -d 10s"));
    let leaks = lab.expect(0, "leaks out");
    leaks.assert_stdout("no dump has a label");
    // Without the last dump, which the end of the recording causes.
    leaks.assert_stdout("2.0 s on average");
    let document = lab.expect(0, "leaks out --json").json();
    assert!(
        document["series"][0]["leaks"].as_u64() >= Some(1),
        "{document:#}"
    );
    let top = lab.expect(0, "top out --json").json();
    assert_eq!(top["heaps"].as_array().unwrap().len(), 1, "the last dump");
}
