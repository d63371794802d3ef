//! Somebody records an app, and looks at what came of it.

use crate::lab::{APP, Lab, files};

/// Time runs faster on the phone: a story needs no patience.
const FAST: &str = "android=14,build=userdebug,speed=10";

#[test]
fn a_duration_ends_by_itself_and_leaves_profiles() {
    let lab = Lab::new(FAST);
    let ended = lab.expect(0, &["record", "-n", APP, "-d", "4s", "-o", "out", "--json"]);
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "duration", "{ended}");
    assert_eq!(manifest["outcome"]["complete"], true);
    assert_eq!(ended.json()["manifest"], manifest);
    lab.assert_truth("out");
    lab.assert_tidy("out");
    let trace = std::fs::metadata(lab.work().join("out/raw-trace")).unwrap();
    assert_eq!(manifest["trace"]["size"], trace.len());
}

#[cfg(unix)]
#[test]
fn each_signal_ends_it_in_good_order() {
    for signal in ["INT", "TERM", "HUP"] {
        let lab = Lab::new(FAST);
        let mut running = lab.record(&[]);
        running.until_recorded();
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code(), Some(0), "{signal}: {ended}");
        assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "interrupted");
        lab.assert_truth("out");
        lab.assert_tidy("out");
    }
}

#[test]
fn continuous_dumps_are_all_there() {
    let lab = Lab::new(FAST);
    lab.expect(
        0,
        &["record", "-n", APP, "-c", "1s", "-d", "5s", "-o", "out"],
    );
    assert!(lab.manifest("out")["dumps"].as_array().unwrap().len() >= 4);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[cfg(unix)]
#[test]
fn an_app_is_recorded_from_its_launch() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,app=stopped");
    let mut running = lab.record(&["--launch", "--no-running"]);
    running.until("launched");
    running.until_that("progress", |p| p["pids"][0].is_u64());
    running.until_recorded();
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code(), Some(0), "{ended}");
    let manifest = lab.manifest("out");
    assert_eq!(
        manifest["dumps"][0]["flags"]["from_startup"], true,
        "{manifest:#}"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_folder_with_something_in_it_is_refused_before_anything_is_recorded() {
    let lab = Lab::new(FAST);
    std::fs::create_dir(lab.work().join("out")).unwrap();
    std::fs::write(lab.work().join("out/notes.txt"), b"mine").unwrap();
    let ended = lab.expect(2, &["record", "-n", APP, "-d", "1s", "-o", "out", "--json"]);
    assert_eq!(ended.json()["error"]["kind"], "output-not-empty");
    assert_eq!(files(&lab.work().join("out")), ["notes.txt"]);
    assert!(lab.phone.truth().is_empty(), "nothing was recorded");
}

#[test]
fn every_android_records() {
    for android in 10..=16 {
        let lab = Lab::new(&format!("android={android},build=userdebug,speed=10"));
        let ended = lab.run(&["record", "-n", APP, "-d", "3s", "-o", "out"]);
        assert_eq!(ended.code(), Some(0), "Android {android}: {ended}");
        lab.assert_truth("out");
        if android > 10 {
            lab.assert_tidy("out");
        }
    }
}

#[test]
fn without_a_name_the_folder_is_named_after_target_and_time() {
    let lab = Lab::new(FAST);
    lab.expect(0, &["record", "-n", APP, "-d", "2s"]);
    let folders = files(&lab.work());
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert!(
        folders[0].starts_with("heaptap-com.example.app-2"),
        "{folders:?}"
    );
    lab.assert_truth(&folders[0]);
}
