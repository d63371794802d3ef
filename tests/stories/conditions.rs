//! Conditions of the device around the runs of a scenario: heat, space, kills for memory, and
//! settings that hold for a run and no longer.

use std::fs;

use serde_json::Value;
use virtual_phone::{Fault, FaultKind};

use crate::lab::{APP, Lab, Running, files};
use crate::program::assert_contains;
use crate::run::{run, runs};

/// Writes a scenario of one run with `keys` and steps after `start`.
fn write(lab: &Lab, keys: &str, steps: &str) {
    let text = format!(
        "version: 1\nname: story\ntarget: {{name: {APP}}}\nrepeats: 1\n{keys}\nsteps:\n- start\n{steps}\n"
    );
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
}

/// State of each run, and the kind of its error.
fn states(result: &Value) -> Vec<String> {
    let runs = runs(result);
    let states = runs.iter().filter_map(|run| run.split_once(' '));
    states.map(|(_, state)| state.to_owned()).collect()
}

#[test]
fn a_run_waits_for_a_cool_device_and_one_that_ran_hot_is_repeated() {
    let lab = Lab::new("speed=8");
    write(&lab, "", "- sleep: 200ms");
    // Looks: hot, cool; hot after the first run; cool before and after the second.
    for fault in ["hot@3#1", "hot@2#3"] {
        lab.phone.faults().add(Fault::parse(fault).unwrap());
    }
    let args = "run s.yaml -o out --json-lines";
    let mut running = lab.start(args);
    let told = running.until_line("a warning", |e| e["event"] == "warning");
    let text = told["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("cool down (thermal status 3, severe)"),
        "{told}"
    );
    running.ends(0);
    let text = fs::read_to_string(lab.work().join("out/result.json")).expect("results");
    let result: Value = text.parse().expect("JSON");
    assert_eq!(states(&result), ["void device-hot", "done"], "{result:#}");
    let met = &result["runs"][0]["conditions"];
    assert_eq!(met["before"]["thermal_status"], 0, "{met:#}");
    assert_eq!(met["after"]["thermal_status"], 2, "{met:#}");
    assert_eq!(met["after"]["battery_percent"], 87, "{met:#}");
    assert_eq!(met["after"]["battery_celsius"], 28.1, "{met:#}");
    assert_eq!(met["after"]["is_charging"], true, "{met:#}");
    assert_eq!(met["after"]["is_screen_on"], true, "{met:#}");
    for file in ["summary.md", "index.html"] {
        let text = fs::read_to_string(lab.work().join("out").join(file)).expect("a file");
        assert!(text.contains("thermal status 2"), "{file}: {text}");
    }
}

#[test]
fn a_device_that_stays_hot_or_is_full_is_reported() {
    let lab = Lab::new("speed=8,fault=hot");
    write(&lab, "conditions: {cool: 100ms}", "- snapshot: up");
    let result = run(&lab, 5, "");
    assert_eq!(states(&result), ["void device-hot"; 4], "{result:#}");
    // What made the runs void can be mended.
    lab.phone.faults().remove(FaultKind::Hot);
    let result = run(&lab, 0, "--resume");
    let states_of_all = states(&result);
    assert_eq!(states_of_all[..4], ["void device-hot"; 4], "{result:#}");
    assert_eq!(states_of_all[4..], ["done"], "{result:#}");
    let lab = Lab::new("speed=8,space=100m");
    write(&lab, "", "- snapshot: up");
    let result = run(&lab, 5, "");
    assert_eq!(states(&result), ["void device-full"], "{result:#}");
    assert!(lab.phone.truth().is_empty(), "nothing was recorded");
}

#[test]
fn a_run_whose_app_was_killed_for_memory_is_void_and_names_it() {
    // Android 10 does not have exit-info: there the log of lmkd tells.
    for android in [10, 14] {
        let lab = Lab::new(&format!("speed=8,android={android}"));
        write(&lab, "", "- shell: [sleep, 6]\n- snapshot: up");
        let kill = Fault::parse("low-memory-kill@2000#1").unwrap();
        lab.phone.faults().add(kill);
        let result = run(&lab, 0, "");
        assert_eq!(
            states(&result),
            ["void low-memory-kill", "done"],
            "{result:#}"
        );
        let run = &result["runs"][0];
        let kills = run["conditions"]["low_memory_kills"]
            .as_array()
            .expect("kills");
        assert_eq!(kills.len(), 1, "{run:#}");
        assert_eq!(kills[0]["process"], APP, "{run:#}");
        let message = run["error"]["message"].as_str().unwrap_or_default();
        assert_contains(&message, "low watermark");
    }
}

#[test]
fn a_file_that_reaches_its_maximum_makes_a_run_void() {
    // Dumps write 130 bytes a second on the phone.
    let lab = Lab::new("speed=64");
    write(&lab, "record: {max-file: 21KiB}", "- shell: [sleep, 4000]");
    let result = run(&lab, 5, "");
    assert_eq!(states(&result), ["void recording-ended"; 4], "{result:#}");
    let message = result["runs"][0]["error"]["message"].to_string();
    assert_contains(&message, "max-file");
    lab.assert_tidy("out");
}

/// Settings that hold for a run.
const HELD: &str = "conditions: {awake: true, animations: off, doze: off}";

/// A step that takes until a file exists.
const WAITS: &str =
    "{shell: [sh, -c, 'while [ ! -e /data/local/tmp/go ]; do sleep 1; done'], timeout: 10m}";

fn begin_and_kill(lab: &Lab, directory: &str) {
    let args = format!("run s.yaml -o {directory} --json-lines");
    let mut running: Running = lab.start(&args);
    running.until_line("the last step", |e| {
        e["event"] == "step" && e["step"] == "steps[2]"
    });
    assert_eq!(settings(lab), ["7", "0", "0", "0", "0", "Awake"]);
    running.signal("KILL");
    running.end();
    assert_eq!(settings(lab), ["7", "0", "0", "0", "0", "Awake"]);
}

/// Screen and its setting, two animations, doze.
fn settings(lab: &Lab) -> [String; 6] {
    let one = |command: &'static str| lab.shell(command).trim().to_owned();
    let power = lab.shell("dumpsys power");
    let awake = power.split_once("mWakefulness=").expect("a state").1;
    [
        one("settings get global stay_on_while_plugged_in"),
        one("settings get global window_animation_scale"),
        one("settings get global animator_duration_scale"),
        one("cmd deviceidle enabled deep"),
        one("cmd deviceidle enabled light"),
        awake.lines().next().unwrap_or_default().to_owned(),
    ]
}

#[test]
fn settings_hold_for_a_run_and_are_restored_even_after_a_kill() {
    let lab = Lab::new("speed=8,screen=off");
    lab.shell("settings put global animator_duration_scale 0.5");
    let initial = ["0", "null", "0.5", "1", "1", "Asleep"];
    assert_eq!(settings(&lab), initial);
    // A rotation restores its own settings meanwhile, and wants the screen on, too.
    write(&lab, HELD, &format!("- rotate: 2\n- {WAITS}"));
    let planned = lab.expect(0, "run s.yaml --dry-run").stdout;
    for part in ["window_animation_scale 0", "deviceidle disable deep"] {
        let plain = planned.replace('\'', "");
        assert!(plain.contains(part), "{part}: {planned}");
    }
    begin_and_kill(&lab, "out");
    lab.shell("echo x > /data/local/tmp/go");
    let result = run(&lab, 0, "--resume");
    assert_eq!(states(&result), ["void interrupted", "done"], "{result:#}");
    assert_eq!(settings(&lab), initial);
    lab.assert_tidy("out");

    lab.shell("rm /data/local/tmp/go");
    begin_and_kill(&lab, "other");
    let restored = lab.expect(0, "provoke --restore --json").json();
    let restored = restored["restored"].to_string();
    assert_contains(&restored, "animator_duration_scale=0.5");
    assert_eq!(settings(&lab), initial);
    let notes = files(&lab.dir.path().join("state/provoke/runs"));
    assert!(!notes.iter().any(|f| f.ends_with(".json")), "{notes:?}");
}
