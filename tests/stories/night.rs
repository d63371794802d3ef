//! Scenarios on several devices at once: what fails on one does not end the others, and each device
//! and scenario is in the results.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::lab::{APP, Lab};
use crate::program::{Arguments, Ended, assert_contains};

/// Writes a short scenario.
fn write(lab: &Lab, name: &str) {
    let text = format!(
        "version: 1\nname: {name}\ntarget: {{name: {APP}}}\nrepeats: 3\nsteps:\n- start\n- \
         snapshot: up\nbudgets:\n- {{name: native, native: {{}}, at: up, limit: 1GiB}}\n"
    );
    fs::write(lab.work().join(format!("{name}.yaml")), text).expect("a scenario");
}

/// Exit codes and states of the runs, by scenario and device.
fn outcomes(ended: &Ended) -> BTreeMap<String, String> {
    let document = ended.json();
    let results = document["results"].as_array().expect("results");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |result: &Value| {
        let runs = result["runs"].as_array().expect("runs").iter();
        let states: Vec<String> = runs.map(|run| word(&run["state"])).collect();
        let key = format!(
            "{} {}",
            word(&result["scenario"]),
            word(&result["device"]["serial"])
        );
        (key, format!("{} {}", result["exit_code"], states.join(" ")))
    };
    results.iter().map(line).collect()
}

#[test]
fn all_scenarios_run_on_all_devices_and_their_results_are_together() {
    let lab = Lab::new("devices=3,speed=8");
    write(&lab, "one");
    write(&lab, "two");
    let args = "run one.yaml two.yaml --all-devices -o out --json";
    let ended = lab.expect(0, args);
    let found = outcomes(&ended);
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(
        found.values().all(|outcome| outcome == "0 done done done"),
        "{found:?}"
    );
    let junit = fs::read_to_string(lab.work().join("out/junit.xml")).expect("JUnit");
    assert!(junit.starts_with("<?xml"), "{junit}");
    assert_eq!(junit.matches("<testsuite ").count(), 6, "{junit}");
    // Pages are named once in all directories.
    let page = "one-virtual-1/one-virtual-1-run-1.html";
    assert_contains(&junit, page);
    assert!(lab.work().join("out").join(page).is_file());

    // Only some of the devices, and one part of the scenarios.
    let some = "virtual-1,virtual-1-3";
    let args = format!("run one.yaml two.yaml -s {some} --shard 2/2");
    let ended = lab.expect(0, &format!("{args} -o part --json"));
    let found: Vec<String> = outcomes(&ended).into_keys().collect();
    assert_eq!(found, ["two virtual-1", "two virtual-1-3"]);

    // Everything is done already, and nothing is done twice.
    let args = "run one.yaml two.yaml --all-devices -o out --json";
    let again = lab.expect(0, &format!("{args} --resume"));
    assert_eq!(outcomes(&again).len(), 6, "{again}");
    assert!(!lab.work().join("out/one-virtual-1/run-4").exists());
    lab.expect(2, args);
}

#[test]
fn a_device_is_of_one_job_at_a_time() {
    let lab = Lab::new("speed=8");
    write(&lab, "one");
    let first = lab.start("run one.yaml -o first --json");
    let second = lab.start("run one.yaml -o second --json");
    for job in [first, second] {
        let ended = job.ends(0);
        let found: Vec<String> = outcomes(&ended).into_values().collect();
        assert_eq!(found, ["0 done done done"], "{ended}");
    }
}

#[test]
fn a_job_does_not_wait_for_a_device_for_ever() {
    let lab = Lab::new("speed=8");
    let text = |steps: &str| {
        format!("version: 1\nname: one\ntarget: {{name: {APP}}}\nrepeats: 1\ntimeout: {steps}\n")
    };
    fs::write(
        lab.work().join("long.yaml"),
        text("10m\nsteps:\n- start\n- shell: [sleep, 4000]"),
    )
    .expect("a scenario");
    fs::write(lab.work().join("short.yaml"), text("1s\nsteps:\n- start")).expect("a scenario");
    let mut first = lab.start("run long.yaml -o first --json-lines");
    first.until("step");
    let second = "run short.yaml -o second --json";
    let ended = lab.expect(5, second);
    assert_eq!(ended.error()["kind"], "device-busy", "{ended}");
}

#[test]
fn devices_of_several_adb_servers_run_side_by_side() {
    let lab = Lab::new("speed=8");
    // Both devices have the same serial.
    let spec = virtual_phone::PhoneSpec::parse("speed=8,seed=7").expect("a valid spec");
    let other = virtual_phone::VirtualPhone::start(spec).expect("a virtual phone");
    write(&lab, "one");
    let (here, there) = (lab.phone.addr().to_string(), other.addr().to_string());
    let both = format!("{here},{there}");
    let run = |args: &str| {
        let running = lab.start_at(&both, (args, "--json"));
        // Equal serial numbers are one device to others, so that the two take turns.
        running.end_within(3 * crate::lab::LIMIT)
    };
    let listed = run("devices").json();
    assert_eq!(listed["server"], both, "{listed:#}");
    assert_eq!(listed["devices"][0]["server"], here, "{listed:#}");
    assert_eq!(listed["devices"][1]["server"], there, "{listed:#}");
    let ended = run("run one.yaml --all-devices -o out");
    ended.assert_code(0);
    let wanted = [&here, &there].map(|server| format!("one {server}/virtual-1"));
    let found = outcomes(&ended);
    assert!(
        wanted.iter().all(|name| found[name] == "0 done done done"),
        "{found:?}"
    );
    for phone in [&lab.phone, &other] {
        assert_eq!(phone.truth().len(), 3);
        assert_eq!(phone.list("/data/misc/perfetto-traces"), [""; 0]);
    }
    let one = format!("{there}/virtual-1");
    let ended = run(&format!("run one.yaml -s {one} -o part"));
    ended.assert_code(0);
    assert_eq!(other.truth().len(), 6);
    // Both devices have this serial, and other commands take one server.
    let ended = run("run one.yaml -s virtual-1 -o none");
    assert_eq!(ended.error()["kind"], "several-devices", "{ended}");
    let ended = run("apps");
    ended.assert_code(2);
    ended.assert_stdout("`run` and `devices`");
}

#[test]
fn emulators_of_two_adb_servers_leave_each_other_alone() {
    let lab = Lab::new("speed=8,serial=emulator-5554");
    let spec = virtual_phone::PhoneSpec::parse("speed=8,serial=emulator-5554,seed=7");
    let other = virtual_phone::VirtualPhone::start(spec.expect("a valid spec"));
    let other = other.expect("a virtual phone");
    write(&lab, "one");
    let path = lab.work().join("long.yaml");
    let text = fs::read_to_string(lab.work().join("one.yaml")).expect("a scenario");
    let text = text.replace("- snapshot", "- shell: [sleep, 4000]\n- snapshot");
    fs::write(path, text).expect("a scenario");
    let long = ["run", "long.yaml", "-o", "long", "--json-lines"];
    let mut running = lab.start_on(&other, "state", &long);
    running.until_line("sleep", |e| e["what"] == "shell sleep 4000");
    lab.expect(0, "run one.yaml -o out --json")
        .refute_stderr("killed run");
    running.interrupted(130);
    let result = fs::read_to_string(lab.work().join("long/result.json")).expect("a result");
    let result: Value = result.parse().expect("JSON");
    assert_eq!(
        result["runs"][0]["error"]["kind"], "interrupted",
        "{result:#}"
    );
}

#[test]
fn a_missing_device_ends_the_command_before_anything_runs() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    let args = "run one.yaml -s virtual-1,nobody -o out --json";
    let ended = lab.expect(3, args);
    assert_eq!(ended.error()["kind"], "device-not-found", "{ended}");
    assert!(!lab.work().join("out/one-virtual-1").exists());
}

#[test]
fn what_is_resumed_is_of_this_device_and_of_this_directory() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    let resume = ["run", "one.yaml", "-o", "out", "--resume", "--json", "-s"];
    let kind = |ended: Ended| ended.error()["kind"].clone();
    fs::create_dir(lab.work().join("out")).expect("a directory");
    fs::write(lab.work().join("out/notes"), "mine").expect("a file");
    let foreign = lab.expect(8, (resume, "virtual-1"));
    assert_eq!(kind(foreign), "cannot-resume");
    fs::remove_file(lab.work().join("out/notes")).expect("the file");
    lab.expect(0, "run one.yaml -o out -s virtual-1");
    let other = lab.expect(8, (resume, "virtual-1-2"));
    assert_eq!(kind(other), "cannot-resume");

    // A night of two devices goes on with the one that is left, in its own directory.
    let both = "run one.yaml -o night --json --all-devices";
    lab.expect(0, both);
    let left = "run one.yaml -o night --json --resume -s virtual-1-2";
    let ended = lab.expect(0, left);
    assert_eq!(
        outcomes(&ended).into_values().next().unwrap(),
        "0 done done done"
    );
    assert!(!lab.work().join("night/progress.json").exists());
}

/// Adds keys to the scenario `one`, and limits its runs to 10 s.
fn with_keys(lab: &Lab, keys: &str) {
    let text = fs::read_to_string(lab.work().join("one.yaml")).expect("a scenario");
    let keys = format!("timeout: 10s\n{keys}steps");
    fs::write(
        lab.work().join("one.yaml"),
        text.replacen("steps", &keys, 1),
    )
    .expect("a scenario");
}

/// Keys of a scenario that say that its devices are alike.
const CLASS: &str = "devices: {alike: {sdk: \">=29\"}}\n";

/// Runs `one` once on the devices, and unplugs the first one as its run begins.
fn without_the_first(lab: &Lab, keys: &str, more: impl Arguments) -> Ended {
    with_keys(lab, keys);
    let text = fs::read_to_string(lab.work().join("one.yaml")).expect("a scenario");
    let text = text.replace("repeats: 3", "repeats: 1");
    fs::write(lab.work().join("one.yaml"), text).expect("a scenario");
    let args = ["run", "one.yaml", "-o", "out", "--json-lines"];
    let mut running = lab.start((&args, more));
    running.until_line("the run", |event| {
        event["event"] == "run" && event["serial"] == "virtual-1"
    });
    lab.phone.unplug(0);
    running.end_within(2 * crate::lab::LIMIT)
}

#[test]
fn a_device_that_stays_away_is_reported_if_no_class_says_that_the_others_are_like_it() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    let ended = without_the_first(&lab, "", "--all-devices");
    ended.assert_code(3);
    let text = fs::read_to_string(lab.work().join("out/result.json")).expect("results");
    let results: Value = text.parse().expect("JSON");
    let codes: Vec<&Value> = (results.as_array().expect("results").iter())
        .map(|result| &result["exit_code"])
        .collect();
    // One run does not decide the budget.
    assert_eq!(codes, [3, 12], "{results:#}");
    assert_eq!(results[0]["device"]["serial"], "virtual-1", "{results:#}");
    let junit = fs::read_to_string(lab.work().join("out/junit.xml")).expect("JUnit");
    assert_contains(&junit, "device-away");
    let last = ended.stdout.lines().last().expect("a line");
    let last: Value = last.parse().expect("JSON");
    assert_eq!(last["event"], "finished", "{last:#}");
}

#[test]
fn devices_that_are_not_ready_and_servers_that_do_not_answer_are_in_the_results() {
    let lab = Lab::new("speed=8");
    let spec = virtual_phone::PhoneSpec::parse("fault=unauthorized").expect("a valid spec");
    let other = virtual_phone::VirtualPhone::start(spec).expect("a virtual phone");
    // No adb server listens there.
    let away = "127.0.0.1:1";
    write(&lab, "one");
    with_keys(&lab, "");
    let servers = format!("{},{},{away}", lab.phone.addr(), other.addr());
    let args = "run one.yaml --all-devices -o out --json";
    let ended = lab
        .start_at(&servers, args)
        .end_within(2 * crate::lab::LIMIT);
    ended.assert_code(3);
    let found = outcomes(&ended);
    let of = |device: String| found[&format!("one {device}")].as_str();
    let (here, there) = (lab.phone.addr(), other.addr());
    assert_eq!(
        of(format!("{here}/virtual-1")),
        "0 done done done",
        "{ended}"
    );
    assert_eq!(of(format!("{there}/virtual-1")), "3 failed", "{ended}");
    assert_eq!(of(away.to_owned()), "3 failed", "{ended}");
    let junit = fs::read_to_string(lab.work().join("out/junit.xml")).expect("JUnit");
    assert_contains(&junit, "no-adb-server");
    assert_contains(&junit, "unauthorized");

    for cause in [
        format!("{away}: no adb server answers"),
        format!("{there}/virtual-1: "),
    ] {
        ended.assert_stderr(&cause);
    }

    // Devices of an unknown class are told only.
    let args = ["run", "one.yaml", "--all-devices", "-o", "class", "--json"];
    let args = (args, "--device-class default");
    let two = format!("{},{}", lab.phone.addr(), other.addr());
    let ended = lab.start_at(&two, &args).end();
    ended.assert_code(0);
    ended.assert_stderr("unauthorized");

    // The list has the devices of the servers that answer.
    let ended = lab.start_at(&servers, "devices --json").end();
    ended.assert_code(3);
    let devices = ended.json()["devices"].as_array().map(Vec::len);
    assert_eq!(devices, Some(2), "{ended}");
    ended.assert_stderr(away);
}

#[test]
fn another_device_of_its_class_stands_in_for_one_that_stays_away() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    let ended = without_the_first(&lab, CLASS, "--all-devices");
    // One run does not decide the budget.
    ended.assert_code(12);
    let text = fs::read_to_string(lab.work().join("out/result.json")).expect("results");
    let results: Value = text.parse().expect("JSON");
    let device = |at: usize| results[at]["device"].clone();
    assert_eq!(device(0)["serial"], "virtual-1-2", "{results:#}");
    assert_eq!(device(0)["instead_of"], "virtual-1", "{results:#}");
    assert!(device(1)["instead_of"].is_null(), "{results:#}");
    assert_eq!(results[0]["runs"][0]["state"], "done", "{results:#}");
    // The device that stayed away is reported in its own directory.
    let away = fs::read_to_string(lab.work().join("out/one-virtual-1/result.json"));
    let away: Value = away.expect("its result").parse().expect("JSON");
    assert_eq!(away["runs"][0]["error"]["kind"], "device-away", "{away:#}");
    assert_eq!(away["exit_code"], 3);
    let junit = fs::read_to_string(lab.work().join("out/junit.xml")).expect("JUnit");
    let pages = junit
        .lines()
        .filter(|line| line.starts_with("[[ATTACHMENT|"));
    let pages: std::collections::BTreeSet<&str> = pages.collect();
    assert_eq!(pages.len(), 2, "{junit}");
}

#[test]
fn a_resumed_night_reports_a_device_that_is_gone() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    with_keys(&lab, CLASS);
    let night = ["run", "one.yaml", "--all-devices", "-o", "out"];
    let mut running = lab.start((night, "--json-lines"));
    running.until_line("the second run", |event| {
        event["event"] == "run" && event["serial"] == "virtual-1" && event["run"] == 2
    });
    running.signal("KILL");
    running.end();
    lab.phone.unplug(0);
    let resume = (night, "--resume --json");
    let ended = lab.run(&resume);
    let results = ended.json()["results"].clone();
    let results = results.as_array().expect("results");
    assert_eq!(results.len(), 2, "{ended}");
    // The other device stands in for it, as in a night that was not killed.
    let stand_in = results
        .iter()
        .find(|it| !it["device"]["instead_of"].is_null());
    let stand_in = stand_in.unwrap_or_else(|| panic!("{ended}"));
    assert_eq!(stand_in["device"]["instead_of"], "virtual-1", "{ended}");
    let away = fs::read_to_string(lab.work().join("out/one-virtual-1/result.json"));
    let away: Value = away.expect("its result").parse().expect("JSON");
    assert_eq!(away["exit_code"], 3, "{away:#}");
    let runs = away["runs"].as_array().expect("runs");
    assert_eq!(runs[0]["state"], "done", "{away:#}");
    let last = runs.last().expect("a run");
    assert_eq!(last["error"]["kind"], "device-away", "{away:#}");
    // It goes on when it is back, and is not needed when everything is done.
    lab.phone.plug_in(0);
    let found = outcomes(&lab.expect(0, &resume));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found["one virtual-1"].ends_with("done done"), "{found:?}");
    lab.phone.unplug(0);
    assert_eq!(outcomes(&lab.expect(0, &resume)), found);
}

#[test]
fn a_resumed_night_waits_for_its_device_that_is_not_ready() {
    let lab = Lab::new("speed=8");
    let spec = |fault: &str| {
        let spec = format!("speed=8,serial=other{fault}");
        virtual_phone::PhoneSpec::parse(&spec).expect("a valid spec")
    };
    let other = virtual_phone::VirtualPhone::start(spec("")).expect("a virtual phone");
    write(&lab, "one");
    with_keys(&lab, "");
    let both = format!("{},{}", lab.phone.addr(), other.addr());
    let name = format!("{}/other", other.addr());
    let night = ["run", "one.yaml", "--all-devices", "-o", "out"];
    let mut running = lab.start_at(&both, (night, "--json-lines"));
    running.until_line("the second run", |event| {
        event["event"] == "run" && event["serial"] == name.as_str() && event["run"] == 2
    });
    running.signal("KILL");
    running.end();
    let port = other.addr().port();
    other.shutdown();
    drop(other);
    // The port is free a moment later.
    let offline = || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        virtual_phone::VirtualPhone::start_on(spec(",fault=offline"), port).ok()
    };
    let offline = (0..1000).find_map(|_| offline());
    let _offline = offline.expect("the same port");
    let resume = (night, "--resume --json");
    let ended = lab
        .start_at(&both, &resume)
        .end_within(2 * crate::lab::LIMIT);
    ended.assert_code(3);
    let results = ended.json()["results"].clone();
    let mut all = results.as_array().expect("results").iter();
    let own = all.find(|result| result["device"]["serial"] == name.as_str());
    let own = own.unwrap_or_else(|| panic!("{ended}"));
    let last = own["runs"].as_array().and_then(|runs| runs.last());
    let error = &last.expect("a run")["error"];
    assert_eq!(error["kind"], "device-away", "{own:#}");
}

#[test]
fn a_device_that_stays_away_is_reported_if_it_is_the_only_one_of_its_class() {
    let lab = Lab::new("speed=8");
    write(&lab, "one");
    let ended = without_the_first(&lab, "", "");
    ended.assert_code(3);
    let result = fs::read_to_string(lab.work().join("out/result.json")).expect("results");
    let result: Value = result.parse().expect("JSON");
    assert_eq!(
        result["runs"][0]["error"]["kind"], "device-away",
        "{result:#}"
    );
    // It goes on when the device is back, as the help of the error says.
    lab.phone.plug_in(0);
    let again = "run one.yaml -o out --resume --json";
    let result = lab.expect(12, again).json()["results"][0].clone();
    let states: Vec<&Value> = result["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| &run["state"])
        .collect();
    assert_eq!(states, ["void", "done"], "{result:#}");
}

#[test]
fn a_device_at_two_servers_is_used_once() {
    let lab = Lab::new("speed=8");
    // The same serial number and boot: one phone on USB and on the network.
    let spec = virtual_phone::PhoneSpec::parse("speed=8").expect("a valid spec");
    let other = virtual_phone::VirtualPhone::start(spec).expect("a virtual phone");
    write(&lab, "one");
    let servers = format!("{},{}", lab.phone.addr(), other.addr());
    let args = "run one.yaml --all-devices -o out --json";
    let ended = lab.start_at(&servers, args).end();
    assert_eq!(outcomes(&ended).len(), 1, "{ended}");
    ended.assert_stderr("on another connection");
    assert_eq!((lab.phone.truth().len(), other.truth().len()), (3, 0));
}

#[test]
fn what_one_device_began_goes_on_with_more_devices() {
    let lab = Lab::new("devices=2,speed=8");
    write(&lab, "one");
    let path = lab.work().join("one.yaml");
    let text = fs::read_to_string(&path).expect("a scenario");
    fs::write(&path, text.replacen("steps", "keep: always\nsteps", 1)).expect("a scenario");
    let run = ["run", "one.yaml", "-o", "night", "--json-lines"];
    let mut running = lab.start((run, "-s virtual-1"));
    running.until_line("the second run", |e| e["event"] == "run" && e["run"] == 2);
    running.signal("KILL");
    running.end();
    let run = ["run", "one.yaml", "-o", "night", "--json", "--resume"];
    let resume = (run, "--all-devices");
    for _ in 0..2 {
        let found = outcomes(&lab.expect(0, &resume));
        assert!(found["one virtual-1"].contains("done"), "{found:?}");
        assert_eq!(found["one virtual-1-2"], "0 done done done");
        let night = lab.work().join("night");
        assert!(night.join("run-1/manifest.json").is_file() || night.join("run-2").exists());
        assert!(!night.join("one-virtual-1").exists());
        assert!(night.join("one-virtual-1-2/progress.json").is_file());
        let text = fs::read_to_string(night.join("result.json")).expect("results");
        let results: Value = text.parse().expect("JSON");
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results:#}");
    }
    lab.assert_tidy("night");
    // Its runs are found where they are.
    let archived = lab.expect(0, "archive night --to fleet --json");
    let added = archived.json()["added"].as_array().map(Vec::len);
    assert!(added >= Some(6), "{archived}");
}

#[test]
fn one_result_of_several_scenarios_is_a_list_and_is_archived() {
    let lab = Lab::new("speed=8");
    write(&lab, "one");
    write(&lab, "two");
    for (name, class) in [("one", "old"), ("two", "new")] {
        let path = lab.work().join(format!("{name}.yaml"));
        let text = fs::read_to_string(&path).expect("a scenario");
        let sdk = if class == "new" { ">=30" } else { "<30" };
        let more = format!("keep: always\ndevices: {{{class}: {{sdk: \"{sdk}\"}}}}\nsteps");
        fs::write(&path, text.replacen("steps", &more, 1)).expect("a scenario");
    }
    let run = ["run", "one.yaml", "two.yaml", "--device-class", "new"];
    lab.expect(0, (run, "-o out --json"));
    let text = fs::read_to_string(lab.work().join("out/result.json")).expect("results");
    let results: Value = text.parse().expect("JSON");
    assert_eq!(results[0]["scenario"], "two", "{results:#}");
    let archived = lab.expect(0, "archive out --to fleet --json");
    let added = &archived.json()["added"];
    assert_eq!(added.as_array().map(Vec::len), Some(3), "{archived}");
    lab.expect(0, "run two.yaml --plan out")
        .assert_stdout("native: ");
}
