//! Apps that `run` installs, and two builds that alternate on one device.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;
use virtual_phone::Fault;

use crate::lab::{APP, Lab};
use crate::program::{Arguments, Ended};
use crate::run::{result_of, text};

/// Time runs faster on the phone; its libraries have names.
const PHONE: &str = "build=userdebug,stripped=no,speed=8";

/// Writes an APK of the virtual phone; a part without properties if they are empty.
pub fn apk(directory: &Path, name: &str, properties: &str) {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default();
    zip.start_file("classes.dex", stored).unwrap();
    if !properties.is_empty() {
        zip.start_file("virtual.properties", stored).unwrap();
        zip.write_all(properties.as_bytes()).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    fs::write(directory.join(name), bytes).expect("an APK");
}

/// Writes the APK of a version of the app that allocates so many percent.
fn build(lab: &Lab, name: &str, version: u64, memory: u64) {
    let properties = format!("package={APP}\nversion={version}\nmemory={memory}\n");
    apk(&lab.work(), name, &properties);
}

/// Writes `s.yaml`: what the app holds after its startup.
fn scenario(lab: &Lab, install: &str, repeats: &str) {
    let text = format!(
        "version: 1\nname: story\ntarget: {{name: {APP}}}\ninstall: {install}\nrecord: \
         {{interval: 1k}}\nrepeats: {repeats}\nsteps:\n- start\n- wait-for: {{activity: \
         .FeedActivity}}\n- sleep: 200ms\n- snapshot: up\nbudgets:\n- {{name: startup, native: \
         {{function: LoadDefaults}}, at: up, change: 5%}}\n- {{name: all, native: {{}}, limit: \
         1GiB}}\n"
    );
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
}

const RUN: &str = "run s.yaml -o out --json";

fn against(lab: &Lab, code: i32, more: impl Arguments) -> Value {
    let args = (RUN, ("--against old.apk", more));
    result_of(&lab.expect(code, &args))
}

/// Build and state of each run.
fn builds(result: &Value) -> Vec<String> {
    let runs = result["runs"].as_array().expect("runs").iter();
    let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    runs.map(|run| format!("{} {}", word(&run["build"]), word(&run["state"])))
        .collect()
}

/// Checks that the runs that count are in pairs: old new, new old, old new …
fn assert_paired(result: &Value) {
    let done = builds(result);
    let done = done.iter().filter_map(|run| run.strip_suffix(" done"));
    let expected = ["old", "new", "new", "old"].into_iter().cycle();
    let done: Vec<&str> = done.collect();
    let expected: Vec<&str> = expected.take(done.len()).collect();
    assert_eq!(done, expected, "{result:#}");
    assert_eq!(done.len() % 2, 0, "{result:#}");
}

fn startup(result: &Value) -> (String, f64) {
    let budget = &result["budgets"][0];
    let verdict = budget["judgement"]["verdict"].as_str().unwrap_or("none");
    let change = budget["change"]["change"].as_f64().unwrap_or(f64::NAN);
    (verdict.to_owned(), change)
}

/// Version code of the installed app.
fn installed(lab: &Lab) -> String {
    let text = lab.shell("dumpsys package com.example.app");
    let mut words = text.split_whitespace();
    let code = words.find_map(|word| word.strip_prefix("versionCode="));
    code.unwrap_or("none").to_owned()
}

#[test]
fn a_build_that_needs_more_than_the_old_one_is_over() {
    let lab = Lab::new(PHONE);
    build(&lab, "old.apk", 41, 100);
    build(&lab, "new.apk", 43, 130);
    apk(&lab.work(), "split.apk", "");
    scenario(&lab, "{apk: [new.apk, split.apk]}", "{min: 3, max: 5}");
    let result = against(&lab, 9, "");
    assert_paired(&result);
    assert_eq!(result["old_app_version"], "1.41 (41)");
    assert_eq!(result["app_version"], "1.43 (43)");
    assert_eq!(installed(&lab), "43");
    let (verdict, change) = startup(&result);
    assert_eq!(verdict, "over", "{result:#}");
    assert!((change - 0.3).abs() < 0.1, "{result:#}");
    // The judgement is in the unit of the values.
    let budget = &result["budgets"][0];
    let pairs = budget["pairs"].as_array().expect("pairs");
    assert!(pairs.len() >= 3, "{result:#}");
    let limit = budget["judgement"]["limit"].as_f64().unwrap_or(0.0);
    let old = pairs[0][0].as_f64().unwrap_or(0.0);
    assert!(limit > old && limit < old * 1.2, "{result:#}");
    // Other budgets are for the new build.
    let all = &result["budgets"][1];
    assert_eq!(all["judgement"]["verdict"], "within", "{result:#}");
    assert_eq!(all["judgement"]["runs"], pairs.len(), "{result:#}");
    for (file, part) in [
        ("junit.xml", "run 1 of the old build: done"),
        ("junit.xml", "name=\"app.old_version\" value=\"1.41 (41)\""),
        ("summary.md", "old build 1.41"),
        ("index.html", "run 2 new</a>"),
    ] {
        assert!(text(&lab, file).contains(part), "{part} in {file}");
    }
    lab.assert_tidy("out");
    assert_eq!(lab.phone.list("/data/local/tmp"), Vec::<String>::new());
    let dexopt = lab.shell("dumpsys package dexopt");
    let app = dexopt.split("[com.example.app]").nth(1).expect("the app");
    let app = app.split("\n  [").next().expect("its lines");
    assert!(app.contains("[status=speed-profile]"), "{dexopt}");

    let plan = "run s.yaml --plan out";
    lab.expect(0, plan).assert_stdout("pairs of runs (");
    // What is done is not done again.
    let before = lab.phone.truth().len();
    let again = against(&lab, 9, "--resume");
    assert_eq!(again["runs"], result["runs"]);
    assert_eq!(lab.phone.truth().len(), before);
}

#[test]
fn a_build_like_the_old_one_is_never_over() {
    let lab = Lab::new(PHONE);
    build(&lab, "old.apk", 42, 100);
    build(&lab, "new.apk", 42, 100);
    scenario(&lab, "{apk: new.apk}", "3");
    let ended = lab.run((RUN, "--against old.apk"));
    let result = result_of(&ended);
    assert_paired(&result);
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(6));
    let (verdict, change) = startup(&result);
    assert!(["within", "undecided"].contains(&&*verdict), "{result:#}");
    assert!(change.abs() < 0.1, "{result:#}");
}

#[test]
fn a_void_run_is_repeated_in_its_pair_and_the_new_build_stays() {
    let lab = Lab::new(PHONE);
    build(&lab, "old.apk", 41, 100);
    build(&lab, "new.apk", 43, 100);
    scenario(&lab, "{apk: new.apk}", "2");
    lab.phone.faults().add(Fault::parse("truncate#2").unwrap());
    // Two pairs are too few for a verdict.
    let result = against(&lab, 12, "");
    assert_eq!(
        builds(&result),
        ["old done", "new void", "new done", "new done", "old done"],
        "{result:#}"
    );
    assert_eq!(installed(&lab), "43");
}

#[test]
fn after_a_kill_the_builds_go_on_alternating() {
    let lab = Lab::new(PHONE);
    build(&lab, "old.apk", 41, 100);
    build(&lab, "new.apk", 43, 100);
    scenario(&lab, "{apk: new.apk}", "2");
    let args = "run s.yaml -o out --json-lines --against old.apk";
    let mut running = lab.start(args);
    let second = running.until_line("the second run", |e| e["event"] == "run" && e["run"] == 2);
    assert_eq!(
        (&second["build"], &second["at_most"]),
        (&"new".into(), &4.into())
    );
    running.until_line("its steps", |e| e["event"] == "step" && e["run"] == 2);
    running.signal("KILL");
    running.end();
    // Another APK of the same name and version is another build.
    build(&lab, "old.apk", 41, 110);
    let kind = |ended: Ended| ended.error()["kind"].clone();
    let resume = (RUN, "--resume");
    let other = lab.expect(8, (resume, "--against old.apk"));
    assert_eq!(kind(other), "cannot-resume");
    assert_eq!(kind(lab.expect(8, &resume)), "cannot-resume");
    build(&lab, "old.apk", 41, 100);
    let result = against(&lab, 12, "--resume");
    assert_paired(&result);
    assert_eq!(builds(&result)[..2], ["old done", "new void"], "{result:#}");
    assert_eq!(installed(&lab), "43");
    assert_eq!(lab.phone.list("/data/local/tmp"), Vec::<String>::new());
}

#[test]
fn a_resumed_scenario_measures_the_build_of_its_first_runs() {
    let lab = Lab::new(PHONE);
    build(&lab, "new.apk", 43, 100);
    build(&lab, "other.apk", 43, 110);
    let of = |install: &str| {
        format!(
            "version: 1\nname: story\ntarget: {{name: {APP}}}\n{install}repeats: 2\nsteps: \
             [start, rotate: 20]\n"
        )
    };
    fs::write(lab.work().join("s.yaml"), of("install: {apk: new.apk}\n")).unwrap();
    fs::write(lab.work().join("o.yaml"), of("install: {apk: other.apk}\n")).unwrap();
    fs::write(lab.work().join("n.yaml"), of("")).unwrap();
    let kill = |file: &str, output: &str| {
        let mut running = lab.start(&["run", file, "-o", output, "--json-lines"]);
        running.until_line("the second run", |e| e["event"] == "run" && e["run"] == 2);
        running.signal("KILL");
        running.end();
    };
    let resume = |file, output| ["run", file, "-o", output, "--json", "--resume"];
    kill("s.yaml", "out");
    // Another job installs another build of the same version.
    kill("o.yaml", "other");
    let ended = lab.expect(0, &resume("s.yaml", "out"));
    ended.assert_stderr("was installed again");
    let done = result_of(&ended);
    assert_eq!(
        builds(&done)
            .iter()
            .filter(|it| it.contains("done"))
            .count(),
        2
    );
    // What is done needs no installation.
    lab.expect(0, &resume("o.yaml", "other"))
        .assert_stderr("was installed again");
    lab.expect(0, &resume("s.yaml", "out"))
        .refute_stderr("was installed again");
    // Without `install`, heaptap does not have the build of the first runs.
    kill("n.yaml", "none");
    fs::remove_dir_all(lab.work().join("out")).unwrap();
    lab.expect(0, "run s.yaml -o out");
    let refused = lab.expect(8, &resume("n.yaml", "none")).json();
    assert_eq!(refused["error"]["kind"], "cannot-resume", "{refused:#}");
}

#[test]
fn a_device_that_keeps_no_data_of_a_newer_build_says_so() {
    // A release build of an app on a release build of Android.
    let lab = Lab::new("speed=8");
    let package = "com.example.profileable";
    for (name, version) in [("old.apk", 41), ("new.apk", 43)] {
        apk(
            &lab.work(),
            name,
            &format!("package={package}\nversion={version}\n"),
        );
    }
    let write = |data: &str| {
        let text = format!(
            "version: 1\nname: story\ntarget: {{name: {package}}}\ninstall: {{apk: new.apk, \
             data: {data}}}\nrepeats: 1\nsteps: [start]\n"
        );
        fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
    };
    write("keep");
    let refused = against(&lab, 5, "");
    let error = &refused["runs"][0]["error"];
    assert_eq!(error["kind"], "install-failed", "{refused:#}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("VERSION_DOWNGRADE"), "{refused:#}");
    let help = error["help"].as_str().unwrap_or_default();
    assert!(help.contains("data: remove"), "{refused:#}");
    write("remove");
    fs::remove_dir_all(lab.work().join("out")).unwrap();
    let result = against(&lab, 0, "");
    assert_eq!(builds(&result), ["old done", "new done"], "{result:#}");
}

#[test]
fn an_installed_app_keeps_its_data_or_loses_them() {
    let lab = Lab::new(PHONE);
    build(&lab, "new.apk", 43, 100);
    let data = || lab.phone.list(&format!("/data/user/0/{APP}"));
    let run = |install: &str, setup: &str| {
        let text = format!(
            "version: 1\nname: story\ntarget: {{name: {APP}}}\ninstall: {install}\nrepeats: \
             1\n{setup}steps: [start]\n"
        );
        fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
        let _ = fs::remove_dir_all(lab.work().join("out"));
        result_of(&lab.expect(0, RUN))
    };
    let setup = format!("setup:\n- shell: [run-as, {APP}, sh, -c, \"echo x > login\"]\n");
    let result = run("{apk: new.apk}", &setup);
    assert_eq!(result["app_version"], "1.43 (43)");
    assert!(result.get("old_app_version").is_none(), "{result:#}");
    assert_eq!(data(), ["login"]);
    run("{apk: new.apk}", "");
    assert_eq!(data(), ["login"]);
    run("{apk: new.apk, data: remove}", "");
    assert_eq!(data(), Vec::<String>::new());
}

#[test]
fn an_old_build_needs_a_new_one() {
    let lab = Lab::new("speed=8");
    build(&lab, "old.apk", 41, 100);
    let text = format!("version: 1\nname: story\ntarget: {{name: {APP}}}\nsteps: [start]\n");
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
    let args = (RUN, "--against old.apk");
    lab.expect(2, &args).assert_stdout("no `install`");
    let two = "run s.yaml t.yaml --json --against old.apk";
    fs::write(
        lab.work().join("t.yaml"),
        "version: 1\nname: t\ntarget: {name: a.b}\nsteps: [start]\n",
    )
    .unwrap();
    let ended = lab.expect(2, two);
    assert_eq!(ended.error()["kind"], "option-conflict", "{ended}");
}
