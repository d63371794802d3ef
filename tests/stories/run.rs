//! Scenarios: the steps run while the app is recorded, and the figures are held to budgets.
//! Whatever ends a run, the phone is restored and nothing remains on it.

use std::fs;

use heaptap_capture::provoke::catalog;
use serde_json::Value;
use virtual_phone::{Fault, FaultKind};

use crate::lab::{APP, Lab, Running, files};
use crate::program::{Arguments, Ended, assert_contains, assert_lacks, heaptap};

/// Time runs faster on the phone.
pub const FAST: &str = "speed=8";

/// A scenario of the app, written as `s.yaml` into the work directory.
pub struct Scenario<'a> {
    pub target: &'a str,
    pub measure: &'a str,
    pub repeats: usize,
    /// More keys, as lines.
    pub more: &'a str,
    pub steps: &'a [&'a str],
    pub budgets: &'a [&'a str],
}

impl Default for Scenario<'_> {
    fn default() -> Self {
        Scenario {
            target: APP,
            measure: "[native]",
            repeats: 1,
            more: "",
            steps: &["start"],
            budgets: &[],
        }
    }
}

impl Scenario<'_> {
    pub fn write(&self, lab: &Lab) {
        self.write_as(lab, "s.yaml");
    }

    fn write_as(&self, lab: &Lab, name: &str) {
        let list = |rows: &[&str]| -> String { rows.iter().map(|r| format!("- {r}\n")).collect() };
        let budgets = match self.budgets {
            [] => String::new(),
            budgets => format!("budgets:\n{}", list(budgets)),
        };
        let text = format!(
            "version: 1\nname: story\ntarget: {{name: {}}}\nmeasure: {}\nrepeats: {}\n{}\nsteps:\n{}{budgets}",
            self.target,
            self.measure,
            self.repeats,
            self.more,
            list(self.steps),
        );
        fs::write(lab.work().join(name), text).expect("a scenario");
    }
}

/// Runs `s.yaml` into `out`, and returns the result.
pub fn run(lab: &Lab, code: i32, more: impl Arguments) -> Value {
    let args = ("run s.yaml -o out --json", more);
    let ended = lab.expect(code, &args);
    result_of(&ended)
}

/// The only result of a run.
pub fn result_of(ended: &Ended) -> Value {
    let result = ended.json()["results"][0].clone();
    assert!(result.is_object(), "{ended}");
    result
}

pub fn begin(lab: &Lab, more: impl Arguments) -> Running {
    lab.start(("run s.yaml -o out --json-lines", more))
}

/// A file of the results.
pub fn text(lab: &Lab, file: &str) -> String {
    let path = lab.work().join("out").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Number and state of each run, and the kind of its error.
pub fn runs(result: &Value) -> Vec<String> {
    let runs = result["runs"].as_array().expect("runs");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    runs.iter()
        .map(|run| {
            let text = format!(
                "{} {} {}",
                run["number"],
                word(&run["state"]),
                word(&run["error"]["kind"])
            );
            text.trim_end().to_owned()
        })
        .collect()
}

pub fn verdict(result: &Value, budget: &str) -> String {
    let budgets = result["budgets"].as_array().expect("budgets");
    let found = budgets.iter().find(|row| row["name"] == budget);
    let found = found.unwrap_or_else(|| panic!("{budget}: {result:#}"));
    let verdict = &found["judgement"]["verdict"];
    verdict.as_str().unwrap_or("none").to_owned()
}

/// Checks that nothing remains on the phone, and that its settings are the initial ones.
pub fn assert_restored(lab: &Lab) {
    lab.assert_tidy("out");
    let system = lab.shell("settings list system");
    assert_contains(&system, "accelerometer_rotation=1\n");
    assert_lacks(&system, "user_rotation");
    let global = lab.shell("settings list global");
    assert_contains(&global, "stay_on_while_plugged_in=0\n");
    let notes = files(&lab.dir.path().join("state/provoke"));
    assert!(!notes.iter().any(|f| f.ends_with(".json")), "{notes:?}");
}

#[test]
fn a_scenario_is_within_its_budgets_and_then_within_its_baseline() {
    let lab = Lab::new(FAST);
    let scenario = Scenario {
        measure: "[native, java, meminfo]",
        repeats: 3,
        more: "keep: on-failure",
        steps: &[
            "start",
            "wait-for: {activity: .FeedActivity}",
            "snapshot: before",
        ],
        budgets: &[
            "{name: native, native: {}, limit: 1GiB}",
            "{name: details, java: {class: \"*.DetailActivity\", measure: instances}, at: before, limit: 1}",
        ],
        ..Scenario::default()
    };
    scenario.write(&lab);
    let result = run(&lab, 0, "--update-baseline");
    assert_eq!(runs(&result), ["1 done", "2 done", "3 done"]);
    assert_eq!(verdict(&result, "native"), "within");
    assert_eq!(verdict(&result, "details"), "within");
    assert_eq!(result["app_version"], "1.42 (42)");
    assert_restored(&lab);
    // The recordings are removed, the pages and the results stay.
    let left = files(&lab.work().join("out"));
    assert!(
        !left.iter().any(|name| name.starts_with("run-")),
        "{left:?}"
    );
    assert!(result["runs"][0].get("output").is_none(), "{result:#}");
    // A good night has nothing to archive, which is no error.
    lab.expect(0, "archive out --to store")
        .assert_stderr("has no recording");
    for name in [
        "result.json",
        "junit.xml",
        "summary.md",
        "metrics.txt",
        "index.html",
    ] {
        assert!(left.iter().any(|file| file == name), "{name}: {left:?}");
    }
    assert!(text(&lab, "junit.xml").contains("failures=\"0\" errors=\"0\""));
    assert_eq!(
        text(&lab, "result.json").parse::<Value>().expect("JSON"),
        result
    );

    let planned = lab.expect(0, "run s.yaml --plan out --json").json();
    assert_eq!(planned["plans"][1]["budget"], "details", "{planned:#}");
    assert_eq!(planned["plans"][1]["plan"]["needed"], 3, "{planned:#}");

    let baseline = lab.work().join("s.baseline");
    let was = fs::read_to_string(&baseline).expect("a baseline");
    assert_contains(&was, ": 1 object = 1 1 1; 1.42 (42)\n");
    let part = "details default part: 1 object = 1 com.example.app.ui.DetailActivity\n";
    assert_contains(&was, part);
    let change = Scenario {
        budgets: &[
            "{name: details, java: {class: \"*.DetailActivity\", measure: instances}, at: before, change: 5%}",
            "{name: new, meminfo: {row: Graphics}, change: 5%}",
        ],
        ..scenario
    };
    change.write_as(&lab, "change.yaml");
    let compare = |baseline: &str, out: &str, code: i32| {
        let args = format!("run change.yaml --baseline {baseline} -o {out} --json");
        result_of(&lab.expect(code, &args))
    };
    let planned = lab.expect(0, "run change.yaml --dry-run").stdout;
    for line in [
        "# 3 runs of at most 15m 00s",
        "# budget new: PSS of Graphics in meminfo at end, limit 5% over the baseline",
    ] {
        assert!(planned.lines().any(|planned| planned == line), "{planned}");
    }
    // The baseline does not have the budget `new`.
    let same = compare("s.baseline", "same", 12);
    assert_eq!(verdict(&same, "details"), "within", "{same:#}");
    assert_eq!(verdict(&same, "new"), "none", "{same:#}");
    // It is within its limit if it is added.
    fs::copy(&baseline, lab.work().join("first")).expect("a copy");
    let args = "run change.yaml --baseline first -o added --json";
    let added = result_of(&lab.expect(0, &format!("{args} --update-baseline")));
    let judged = &added["budgets"][1]["judgement"];
    assert_eq!(judged["verdict"], "within", "{added:#}");
    assert_eq!(judged["why"], "it is the first figure of the baseline");
    let first = fs::read_to_string(lab.work().join("first")).expect("a baseline");
    assert_contains(&first, "\nnew default 2");
    fs::write(
        lab.work().join("half"),
        was.replace(" = 1 1 1;", " = 0.5 0.5 0.5;")
            .replace(" = 1 com", " = 0.5 com"),
    )
    .unwrap();
    let grown = compare("half", "grown", 9);
    assert_eq!(verdict(&grown, "details"), "over", "{grown:#}");
    let details = &grown["budgets"][0];
    assert_eq!(details["excess"][0]["growth"], 0.5, "{details:#}");
    assert_eq!(
        details["history"][0]["app_version"], "1.42 (42)",
        "{details:#}"
    );
    // Nights that differ by more than the figure does from their mean: runs cannot decide.
    let night = |day: usize, value: usize| {
        format!("details default 2026-01-0{day}T00:00:00Z: x = {value} {value} {value}\n")
    };
    let nights = [night(1, 1), night(2, 2), night(3, 1)].concat();
    fs::write(lab.work().join("nights"), nights).unwrap();
    let differ = compare("nights", "differ", 12);
    assert_eq!(verdict(&differ, "details"), "undecided", "{differ:#}");
    let plan = ["run", "change.yaml", "--plan", "differ", "--json"];
    let planned = lab.expect(0, &plan).json();
    let why = planned["plans"][0]["plan"]["why"].as_str();
    assert!(
        why.is_some_and(|why| why.starts_with("more nights")),
        "{planned:#}"
    );
    let read = |file: &str| fs::read_to_string(lab.work().join("grown").join(file)).unwrap();
    assert!(read("summary.md").contains("| +0.5 objects to 1 object |"));
    assert!(read("junit.xml").contains("grew since the baseline:"));
    assert!(read("index.html").contains("<img src=\"trend-1.svg\""));
    assert!(read("trend-1.svg").starts_with("<svg "));
}

#[test]
fn what_is_over_its_budget_is_named() {
    let lab = Lab::new(&format!("build=userdebug,stripped=no,{FAST}"));
    Scenario {
        measure: "[native, java]",
        repeats: 3,
        steps: &["start", "rotate: 2", "sleep: 200ms", "snapshot: after"],
        budgets: &[
            "{name: native, native: {}, limit: 1KiB}",
            "{name: leaks, leaks: {}, at: after, limit: 0}",
            "{name: most, native: {}, limit: 1GiB}",
        ],
        ..Scenario::default()
    }
    .write(&lab);
    let before =
        "native default 2026-01-01T00:00:00Z: 8 B = 8 8 8\nnative default part: 8 B = 8 f\n";
    fs::write(lab.work().join("s.baseline"), before).unwrap();
    let result = run(&lab, 9, "");
    for (budget, part) in [
        ("native", "EventHistory::Append"),
        ("leaks", "FeedActivity"),
    ] {
        assert_eq!(verdict(&result, budget), "over", "{result:#}");
        let budgets = result["budgets"].as_array().unwrap();
        let over = budgets.iter().find(|row| row["name"] == budget).unwrap();
        assert!(over["excess"].to_string().contains(part), "{over:#}");
        // The baseline has one of them, and not the function.
        let is_new = over["excess"][0]["is_new"] == true;
        assert_eq!(is_new, budget == "native", "{over:#}");
    }
    assert_eq!(verdict(&result, "most"), "within", "{result:#}");
    let junit = text(&lab, "junit.xml");
    assert_contains(&junit, "failures=\"2\" errors=\"0\"");
    // Relative to the directory in which the CI system runs it.
    assert_contains(&junit, "[[ATTACHMENT|out/story-virtual-1-run-3.html]]");
    assert_restored(&lab);
}

#[test]
fn one_run_does_not_decide() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "sleep: 300ms"],
        budgets: &["{name: native, native: {}, limit: 1GiB}"],
        ..Scenario::default()
    }
    .write(&lab);
    let result = run(&lab, 12, "");
    assert_eq!(verdict(&result, "native"), "undecided", "{result:#}");
    assert!(text(&lab, "junit.xml").contains("<skipped"), "{result:#}");
    let other = Scenario {
        steps: &["start"],
        ..Scenario::default()
    };
    other.write(&lab);
    let args = ["run", "s.yaml", "-o", "out", "--resume", "--json"];
    let error = lab.expect(8, &args).json();
    assert_eq!(error["error"]["kind"], "cannot-resume", "{error:#}");
    lab.expect(2, &args[..4]).assert_stderr("not empty");
}

/// Runs one scenario that fails, and returns its only error.
fn failing(lab: &Lab, scenario: &Scenario<'_>) -> Value {
    scenario.write(lab);
    let _ = fs::remove_dir_all(lab.work().join("out"));
    let result = run(lab, 5, "");
    let all = result["runs"].as_array().expect("runs");
    assert_eq!(all.len(), 1, "a step that fails, fails again: {result:#}");
    assert_eq!(all[0]["state"], "failed", "{result:#}");
    let junit = text(lab, "junit.xml");
    assert_contains(&junit, "errors=\"1\"");
    assert_restored(lab);
    all[0]["error"].clone()
}

#[test]
fn a_step_that_fails_is_named_with_its_line() {
    let lab = Lab::new(&format!("build=userdebug,{FAST}"));
    let nowhere = "{wait-for: {activity: .Nowhere}, timeout: 1s, retry: 1}";
    let steps = |last: &'static str| -> [&'static str; 2] { ["start", last] };
    for (last, kind, part) in [
        (nowhere, "wait-timeout", ".FeedActivity"),
        (
            "{wait-for: {log: never}, timeout: 1s}",
            "wait-timeout",
            "never",
        ),
        ("shell: [ls, /nowhere]", "command-failed", "/nowhere"),
        (
            "{shell: [sleep, 1000], timeout: 1s}",
            "step-timeout",
            "sleep 1000",
        ),
    ] {
        let error = failing(
            &lab,
            &Scenario {
                steps: &steps(last),
                ..Scenario::default()
            },
        );
        assert_eq!(error["kind"], kind, "{error:#}");
        assert_eq!(error["step"], "steps[1]", "{error:#}");
        assert_eq!(error["line"], 9, "{error:#}");
        assert!(error["message"].to_string().contains(part), "{error:#}");
    }
    let out = files(&lab.work().join("out/run-1"));
    assert!(
        out.contains(&"manifest.json".to_owned()),
        "the recording is kept: {out:?}"
    );
}

#[test]
fn an_app_that_dies_or_does_nothing_fails_the_run() {
    let lab = Lab::new(&format!("build=userdebug,{FAST}"));
    let closed = "com.example.closed";
    for (target, steps, kind) in [
        (closed, ["start", "rotate: 4"].as_slice(), "app-died"),
        ("com.example.browser", &["start", "rotate: 2"], "no-effect"),
        (
            APP,
            &["start", "force-stop", "snapshot: dead"],
            "snapshot-failed",
        ),
    ] {
        let error = failing(
            &lab,
            &Scenario {
                target,
                steps,
                ..Scenario::default()
            },
        );
        assert_eq!(error["kind"], kind, "{error:#}");
    }
}

#[test]
fn an_app_that_is_being_recorded_is_not_stopped() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app --detach -o first");
    Scenario {
        steps: &["start"],
        ..Scenario::default()
    }
    .write(&lab);
    let ended = lab.expect(5, "run s.yaml -o out --json");
    assert_eq!(ended.error()["kind"], "already-recorded", "{ended}");
    lab.expect(0, "stop");
    let manifest = lab.manifest("first");
    let dumps = manifest["dumps"].as_array().expect("dumps");
    assert!(!dumps.is_empty(), "{manifest:#}");
    let is_gone = |dump: &Value| dump["flags"]["disconnected"] == true;
    assert!(!dumps.iter().any(is_gone), "{manifest:#}");
}

#[test]
fn a_run_that_takes_too_long_restores_the_device() {
    let lab = Lab::new(FAST);
    let error = failing(
        &lab,
        &Scenario {
            more: "timeout: 3s",
            steps: &["start", "rotate: 500"],
            ..Scenario::default()
        },
    );
    assert_eq!(error["kind"], "run-timeout", "{error:#}");
}

#[test]
fn words_of_a_command_reach_no_shell() {
    let lab = Lab::new(FAST);
    let name = "/data/local/tmp/$(reboot); touch x `id` '\\\"&|";
    // The last word is `$0` of the script, and no shell reads it.
    let quoted = serde_json::to_string(name).unwrap();
    let step = format!("shell: [sh, -c, 'echo x > \"$0\"', {quoted}]");
    Scenario {
        steps: &["start", &step],
        ..Scenario::default()
    }
    .write(&lab);
    let args = "run s.yaml --dry-run --json";
    let planned = lab.expect(0, args).json();
    let commands = planned["commands"].to_string();
    assert_contains(&commands, "am start");
    assert_contains(&commands, "\"sh '-c' 'echo x > ");
    let tmp = || lab.phone.list("/data/local/tmp");
    assert_eq!(tmp(), Vec::<String>::new(), "a dry run changes nothing");
    let result = run(&lab, 0, "");
    assert_eq!(runs(&result), ["1 done"]);
    assert_eq!(tmp(), [name.trim_start_matches("/data/local/tmp/")]);
}

#[test]
fn an_app_that_cannot_be_installed_fails_before_the_first_run() {
    let lab = Lab::new(FAST);
    let scenario = Scenario {
        more: "install: {apk: app.apk}",
        ..Scenario::default()
    };
    scenario.write(&lab);
    let kind = |code: i32| {
        let _ = fs::remove_dir_all(lab.work().join("out"));
        let ended = lab.expect(code, "run s.yaml -o out --json");
        ended.error()["kind"].clone()
    };
    let before = lab.phone.requests().len();
    assert_eq!(kind(8), "app-unreadable");
    fs::write(lab.work().join("app.apk"), "text").unwrap();
    assert_eq!(kind(8), "app-unreadable");
    assert_eq!(
        lab.phone.requests().len(),
        before,
        "before a device is asked"
    );
    fs::write(lab.work().join("app.apk"), "PK\x03\x04").unwrap();
    assert_eq!(kind(5), "install-failed");
    assert_eq!(lab.phone.list("/data/local/tmp"), Vec::<String>::new());
    fs::write(lab.work().join("s.yaml"), "version: 1\nnam: x\n").unwrap();
    assert_eq!(kind(8), "bad-scenario");
    let misspelled = Scenario {
        budgets: &["{name: total, meminfo: {row: Grafics}, at: end, limit: 1MiB}"],
        ..Scenario::default()
    };
    misspelled.write(&lab);
    assert_eq!(kind(8), "bad-scenario");
}

#[test]
fn a_scenario_that_cannot_begin_has_result_files() {
    let lab = Lab::new(FAST);
    Scenario {
        // Under wine, a run takes longer.
        more: if cfg!(windows) {
            "timeout: 30s"
        } else {
            "timeout: 2s"
        },
        ..Scenario::default()
    }
    .write(&lab);
    lab.phone
        .faults()
        .add(Fault::parse("transport-fail").unwrap());
    let ended = lab.fails(3, "run s.yaml -o out");
    let kind = ended["kind"].clone();
    assert!(text(&lab, "junit.xml").contains("<error "), "{ended}");
    let result: Value = text(&lab, "result.json").parse().expect("JSON");
    assert_eq!(result["exit_code"], 3, "{result:#}");
    assert_eq!(result["runs"][0]["error"]["kind"], kind, "{result:#}");
    // The same command begins it later.
    lab.phone.faults().remove(FaultKind::TransportFail);
    let result = run(&lab, 0, "--resume");
    assert_eq!(runs(&result), ["1 done"], "{result:#}");
}

#[test]
fn after_a_kill_it_goes_on_where_it_was() {
    let lab = Lab::new(FAST);
    Scenario {
        repeats: 2,
        steps: &["start", "snapshot: before", "rotate: 20"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("the second run", |e| e["event"] == "run" && e["run"] == 2);
    running.until_line("rotation", |e| {
        e["event"] == "step" && e["what"] == "rotate:20"
    });
    lab.wait_on_phone(1.0);
    running.signal("KILL");
    running.end();
    assert!(!lab.traces().is_empty() || lab.is_left(), "killed too late");
    let result = run(&lab, 0, "--resume");
    assert_eq!(runs(&result), ["1 done", "2 void interrupted", "3 done"]);
    assert_eq!(result["runs"][1]["output"], "run-2", "{result:#}");
    assert_restored(&lab);
    // What is done is not done again.
    let before = lab.phone.truth().len();
    let again = run(&lab, 0, "--resume");
    assert_eq!(again["runs"], result["runs"]);
    assert_eq!(lab.phone.truth().len(), before);
}

/// Returns the lab of a job that was killed during its steps.
fn killed_while_it_rotated() -> Lab {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "rotate: 20"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("rotation", |e| {
        e["event"] == "step" && e["what"] == "rotate:20"
    });
    lab.wait_on_phone(1.0);
    running.signal("KILL");
    running.end();
    lab
}

#[test]
fn a_recording_that_is_lost_does_not_keep_a_night_from_being_resumed() {
    let lab = killed_while_it_rotated();
    lab.reboot_without_traces();
    let ended = lab.expect(0, "run s.yaml -o out --resume");
    ended.assert_stderr("of a killed run is lost");
    ended.refute_stderr("another host");
    assert!(lab.is_left(), "{ended}");
}

#[test]
fn a_new_job_fetches_what_a_killed_one_left_on_the_device() {
    let lab = killed_while_it_rotated();
    let ended = lab.expect(0, "run s.yaml -o new");
    ended.assert_stderr("of a killed run into");
    let manifest = lab.work().join("out/run-1/manifest.json");
    assert!(manifest.is_file(), "{ended}");
    assert_restored(&lab);
    // The first job can still go on.
    let result = run(&lab, 0, "--resume");
    assert_eq!(runs(&result), ["1 void interrupted", "2 done"]);
}

#[test]
fn what_a_run_has_nowhere_is_not_measured() {
    let lab = Lab::new(FAST);
    Scenario {
        measure: "[native, java]",
        steps: &["start", "wait-for: {activity: .FeedActivity}", "snapshot: up"],
        budgets: &[
            "{name: library, native: {library: libexampel.so}, at: up, limit: 1GiB}",
            "{name: class, java: {class: \"*.FeedActivty\", measure: instances}, at: up, limit: 9}",
            // Its class is loaded.
            "{name: right, java: {class: \"*.FeedActivity\", measure: instances}, at: up, limit: 9}",
        ],
        ..Scenario::default()
    }
    .write(&lab);
    let result = run(&lab, 12, "");
    let missing = |at: usize| result["budgets"][at]["missing"].clone();
    assert_eq!(
        missing(0),
        "no sampled stack of the run goes through libexampel.so"
    );
    assert_eq!(missing(1), "no class of the heap matches *.FeedActivty");
    assert!(missing(2).is_null(), "{result:#}");
}

#[test]
fn an_interrupted_run_is_fetched_and_can_be_resumed() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "rotate: 40"],
        budgets: &["{name: native, native: {}, limit: 1GiB}"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("rotation", |e| {
        e["event"] == "step" && e["what"] == "rotate:40"
    });
    lab.wait_on_phone(1.0);
    let ended = running.interrupted(130);
    assert_restored(&lab);
    let result: Value = text(&lab, "result.json").parse().expect("JSON");
    assert_eq!(runs(&result), ["1 void interrupted"]);
    assert_eq!(result["exit_code"], 130);
    assert!(
        lab.work().join("out/run-1/manifest.json").is_file(),
        "{ended}"
    );
    let result = run(&lab, 12, "--resume");
    assert_eq!(runs(&result), ["1 void interrupted", "2 done"]);
}

#[test]
fn a_device_that_vanishes_makes_a_run_void() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "shell: [sleep, 40]"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("sleep", |e| e["event"] == "step" && e["step"] == "steps[1]");
    lab.wait_on_phone(1.0);
    lab.phone.unplug(0);
    running.until("connection-lost");
    lab.phone.plug_in(0);
    running.ends(0);
    let result: Value = text(&lab, "result.json").parse().expect("JSON");
    assert_eq!(
        runs(&result),
        ["1 void connection-lost", "2 done"],
        "{result:#}"
    );
    assert_restored(&lab);
}

#[test]
fn a_run_after_a_restart_of_the_device_waits_for_android() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "shell: [sleep, 40]"],
        ..Scenario::default()
    }
    .write(&lab);
    lab.phone.faults().add(Fault::parse("late-boot").unwrap());
    let mut running = begin(&lab, "");
    running.until_line("sleep", |e| e["event"] == "step" && e["step"] == "steps[1]");
    lab.phone.reboot(0);
    running.ends(0);
    let result: Value = text(&lab, "result.json").parse().expect("JSON");
    let states = result["runs"].as_array().expect("runs").iter();
    let states: Vec<&Value> = states.map(|run| &run["state"]).collect();
    assert_eq!(states, ["void", "done"], "{result:#}");
    assert_restored(&lab);
}

/// The limit of the size of files is of Linux.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_of_the_host_ends_the_runs_and_they_go_on_when_it_has_space() {
    let lab = Lab::new(FAST);
    Scenario {
        repeats: 2,
        steps: &["start", "shell: [sleep, 4]"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("sleep", |e| e["event"] == "step" && e["step"] == "steps[1]");
    // The results have space, the trace of 9 kB has not.
    crate::fault_table::faults::limit_files(running.id(), 6_000);
    running.ends(11);
    let result: Value = text(&lab, "result.json").parse().expect("JSON");
    assert_eq!(runs(&result), ["1 void host-write"], "{result:#}");
    // The recording is fetched then.
    let result = run(&lab, 0, "--resume");
    assert_eq!(
        runs(&result),
        ["1 void host-write", "2 done", "3 done"],
        "{result:#}"
    );
    assert!(lab.work().join("out/run-1/manifest.json").is_file());
    assert_restored(&lab);
}

#[test]
fn a_recording_with_missing_data_makes_a_run_void() {
    for (fault, kind, help) in [
        ("truncate#1", "recording-incomplete", "logcat"),
        ("perfetto-dies@1500#1", "recording-ended", ""),
        // The scenario has keys where `record` has options.
        ("overrun@500#1", "recording-incomplete", "of the scenario"),
        ("guardrail@500#1", "recording-incomplete", "of the scenario"),
        (
            "client-timeout@500#1",
            "recording-incomplete",
            "of the scenario",
        ),
    ] {
        let lab = Lab::new(FAST);
        Scenario {
            steps: &["start", "sleep: 1s"],
            ..Scenario::default()
        }
        .write(&lab);
        lab.phone.faults().add(Fault::parse(fault).unwrap());
        let result = run(&lab, 0, "");
        assert_eq!(
            runs(&result),
            [&format!("1 void {kind}"), "2 done"],
            "{result:#}"
        );
        let told = result["runs"][0]["error"]["help"].to_string();
        assert!(told.contains(help), "{result:#}");
        assert_restored(&lab);
    }
}

#[test]
fn github_marks_a_mistyped_heap_in_the_file_of_the_repository() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "snapshot: up"],
        budgets: &["{name: typo, native: {heap: libc.maloc}, at: up, limit: 1GiB}"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut command = lab.command("run s.yaml -o out");
    command.env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_WORKSPACE", lab.dir.path());
    let output = command.args(["--adb-server", &lab.phone.addr().to_string()]);
    let output = output.output().expect("heaptap runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(12), "{said}");
    assert_contains(&said, "::error file=work/s.yaml,line=");
    let why = "there is no dump of the heap libc.maloc at up, only of libc.malloc";
    assert_contains(&said, why);
}

#[test]
fn an_app_of_two_users_is_measured_for_one() {
    let lab = Lab::new(FAST);
    let app = "com.example.chat";
    Scenario {
        target: app,
        ..Scenario::default()
    }
    .write(&lab);
    let refused = run(&lab, 4, "--user 10");
    let error = &refused["runs"][0]["error"];
    assert_eq!(error["kind"], "other-user", "{refused:#}");
    let stop = heaptap_adb::Command::program("am");
    lab.on_phone(&stop.args(["force-stop", "--user", "0", app]));
    let args = "run s.yaml -o new --json --user 10";
    let result = result_of(&lab.expect(0, args));
    assert_eq!(runs(&result), ["1 done"], "{result:#}");
}

#[test]
fn a_dry_run_is_for_the_user_of_the_flag() {
    let lab = Lab::new("speed=8");
    Scenario {
        // It is installed for this user only.
        target: "com.example.work",
        steps: &["start"],
        ..Scenario::default()
    }
    .write(&lab);
    lab.expect(0, "run s.yaml --dry-run --user 10")
        .assert_stdout("--user 10");
}

#[test]
fn a_dry_run_without_a_device_leaves_out_only_the_commands_of_actions() {
    let lab = Lab::new("fault=no-device");
    Scenario {
        steps: &["start"],
        ..Scenario::default()
    }
    .write(&lab);
    let planned = lab.expect(0, "run s.yaml --dry-run");
    planned.assert_stdout("# steps[0]: start");
    planned.refute_stdout("am start");
    let warning = "so the commands of actions are left out";
    planned.assert_stderr(warning);
    // A selected device is expected to be there.
    lab.expect(3, "run s.yaml --dry-run -s OTHER");
}

#[test]
fn a_dry_run_is_for_each_device_and_classes_are_known() {
    let lab = Lab::new("devices=2,speed=8");
    Scenario::default().write(&lab);
    let dry = |more: &str| {
        let args = ("run s.yaml --dry-run", more);
        let ended = lab.expect(0, &args);
        ended.stdout.matches("am start").count()
    };
    assert_eq!(dry("--all-devices"), 2);
    assert_eq!(dry("-s virtual-1-2"), 1);
    let of_class = "run s.yaml --all-devices --device-class nosuch";
    lab.expect(2, of_class).assert_stderr("device class nosuch");
    // A device of the built-in phone is selected, too.
    let of_its_own = [
        "run",
        "s.yaml",
        "--dry-run",
        "--virtual=devices=2,speed=8",
        "-s",
        "virtual-1-2",
    ];
    let output = crate::program::heaptap()
        .args(of_its_own)
        .current_dir(lab.work())
        .output()
        .expect("heaptap runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn the_scenarios_of_the_pages_are_valid() {
    let lab = Lab::new(FAST);
    let pages = [
        include_str!("../../docs/guide/ci.md"),
        include_str!("../../docs/reference/formats.md"),
    ];
    for page in pages {
        let mut blocks = page.split("\n```yaml\n").skip(1);
        let block = blocks.find(|block| block.starts_with("version: 1"));
        let text = block.and_then(|rest| rest.split("\n```").next());
        let text = text.expect("a scenario").replace("${APK}", "app.apk");
        fs::write(lab.work().join("s.yaml"), text).unwrap();
        let ended = lab.fails(8, "run s.yaml --plan nope");
        assert_eq!(ended["kind"], "input-unreadable", "{ended}");
    }
}

#[test]
fn the_schema_names_every_action_and_the_first_scenario_is_valid() {
    let out = |args: &str| {
        let output = heaptap().args(args.list()).output().expect("heaptap runs");
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let schema: Value = out("run --schema").parse().expect("JSON");
    let step = schema["$defs"]["step"].to_string();
    for action in catalog::ALL {
        let key = format!("\"{}\"", action.name);
        assert!(step.contains(&key), "{key}");
    }
    let lab = Lab::new(FAST);
    let first = out("run --init com.example.app");
    let document: Value = out("run --init com.example.app --json")
        .parse()
        .expect("JSON");
    assert_eq!(document["scenario"], first.as_str());
    fs::write(lab.work().join("first.yaml"), first).unwrap();
    lab.expect(0, "run first.yaml --dry-run")
        .assert_stdout("user-rotation");
    assert!(lab.traces().is_empty() && lab.phone.truth().is_empty());
}

#[test]
fn run_that_fails_has_the_error_of_other_commands() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "shell: [sh, -c, 'exit 3']"],
        ..Scenario::default()
    }
    .write(&lab);
    let args = "run s.yaml -o out --json";
    let ended = lab.expect(5, args).json();
    assert_eq!(ended["event"], "finished", "{ended:#}");
    let error = &ended["error"];
    assert_eq!(error["code"], 5, "{ended:#}");
    assert_eq!(error["kind"], "command-failed", "{ended:#}");
    assert_eq!(
        error["message"],
        ended["results"][0]["runs"][0]["error"]["message"]
    );
    // Two devices, one of which is away.
    let lines = "run s.yaml -o b --json-lines -s virtual-1,gone";
    let ended = lab.expect(3, lines);
    assert_eq!(ended.error()["code"], 3, "{ended}");
    // The locks of directories go with their owners.
    let locks = crate::lab::files(&lab.dir.path().join("state/locks"));
    assert_eq!(locks, [""; 0]);
    let devices = crate::lab::files(&lab.dir.path().join("state/devices"));
    assert!(
        !devices.iter().any(|name| name.ends_with(".lock")),
        "{devices:?}"
    );
}
