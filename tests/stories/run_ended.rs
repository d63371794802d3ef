//! Ctrl-C during `run`: the first one ends all devices cleanly, a second one leaves the recordings on
//! them.

use std::fs;

use serde_json::Value;
use virtual_phone::{Fault, FaultKind};

use crate::lab::{APP, Lab, Running, files};
use crate::program::assert_contains;
use crate::run::text;

const RUN: &str = "run s.yaml -o out --all-devices --json-lines";

fn lab(more: &str) -> Lab {
    let lab = Lab::new("devices=2,speed=8");
    let text = format!(
        "version: 1\nname: story\ntarget: {{name: {APP}}}\nrepeats: 1\n{more}steps:\n- start\n\
         - rotate: 400\n"
    );
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
    lab
}

/// Waits until both devices are being recorded and rotated.
fn until_both_rotate(running: &mut Running) {
    let mut seen: Vec<Value> = Vec::new();
    while seen.len() < 2 {
        let line = running.until_line("rotation", |e| {
            e["event"] == "step" && e["what"] == "rotate:400"
        });
        seen.push(line["serial"].clone());
    }
    assert_ne!(seen[0], seen[1]);
}

/// Number, state and kind of error of the only run of each device.
fn runs(lab: &Lab) -> Vec<String> {
    let results: Value = text(lab, "result.json").parse().expect("JSON");
    let results = results.as_array().expect("results").iter();
    let runs = results.map(|result| crate::run::runs(result).join(", "));
    runs.collect()
}

#[test]
fn the_first_interruption_ends_all_devices_cleanly() {
    let lab = lab("");
    let mut running = lab.start(RUN);
    until_both_rotate(&mut running);
    let ended = running.interrupted(130);
    assert_eq!(runs(&lab), ["1 void interrupted"; 2], "{ended}");
    for device in ["virtual-1", "virtual-1-2"] {
        let directory = format!("out/story-{device}/run-1");
        assert!(
            lab.work().join(&directory).join("manifest.json").is_file(),
            "{directory} {ended}"
        );
    }
    lab.assert_tidy("out");
    assert_eq!(
        files(&lab.dir.path().join("state/provoke"))
            .iter()
            .filter(|name| name.ends_with(".json"))
            .count(),
        0
    );
}

#[test]
fn the_second_interruption_leaves_the_recordings_on_the_devices() {
    let lab = lab("");
    let mut running = lab.start(RUN);
    until_both_rotate(&mut running);
    // Otherwise the end takes less time than a second key press.
    lab.phone.faults().add(Fault::parse("slow@2000").unwrap());
    running.signal("INT");
    running.until("stopping");
    running.signal("INT");
    let ended = running.end();
    lab.phone.faults().remove(FaultKind::Slow);
    ended.assert_code(10);
    let status = lab.status();
    let sessions = status["sessions"].as_array().expect("sessions");
    assert!(!sessions.is_empty(), "{ended}");
    for session in sessions {
        let id = session["session"].as_str().expect("an ID");
        ended.assert_stderr(&format!("`heaptap stop {id}`"));
        lab.expect(0, &["stop", id]);
        let output = session["output"].as_str().expect("a directory");
        assert!(std::path::Path::new(output).join("manifest.json").is_file());
    }
    lab.expect(0, "provoke --restore");
    lab.assert_tidy("out");
}

#[test]
fn an_interruption_of_the_setup_is_no_failure() {
    let lab = lab("setup:\n- shell: [sleep, 4000]\n");
    let mut running = lab.start(RUN);
    running.until_line("setup", |e| {
        e["event"] == "step" && e["what"] == "shell sleep 4000"
    });
    let ended = running.interrupted(130);
    assert_eq!(runs(&lab), ["1 void interrupted"; 2], "{ended}");
    lab.assert_tidy("out");
    // It goes on with the setup.
    let mut running = lab.start((RUN, "--resume"));
    running.until_line("setup", |e| {
        e["event"] == "step" && e["what"] == "shell sleep 4000"
    });
}

#[test]
fn an_interrupted_installation_leaves_nothing_and_can_be_resumed() {
    let lab = Lab::new("speed=8");
    let properties = format!("package={APP}\nversion=43\nseconds=60\n");
    crate::builds::apk(&lab.work(), "new.apk", &properties);
    crate::builds::apk(&lab.work(), "split.apk", "");
    let text = format!(
        "version: 1\nname: story\ntarget: {{name: {APP}}}\ninstall: {{apk: [new.apk, \
         split.apk]}}\nrepeats: 1\nsteps:\n- start\n"
    );
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
    let run = "run s.yaml -o out --json";
    let sessions = |lab: &Lab| lab.shell("dumpsys package installs").contains("Session ");
    let running = lab.start(run);
    lab.until("a session of the installer", sessions);
    assert_eq!(lab.phone.list("/data/local/tmp").len(), 2);
    let ended = running.interrupted(130);
    assert_eq!(lab.phone.list("/data/local/tmp"), Vec::<String>::new());
    assert!(!sessions(&lab), "{ended}");
    lab.expect(0, &format!("{run} --resume"));
    let installed = lab.shell("dumpsys package com.example.app");
    assert_contains(&installed, "versionCode=43");
    lab.assert_tidy("out");
}
