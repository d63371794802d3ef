//! Dumps, triggers and the matrix of scenarios.

use std::fs;

use serde_json::Value;
use virtual_phone::Fault;

use crate::lab::{APP, Lab, files};
use crate::program::assert_contains;
use crate::run::{Scenario, assert_restored, begin, run, runs, verdict};

/// Time runs faster on the phone.
const FAST: &str = "build=userdebug,speed=8";
/// The last step of a trigger, and the step of a run that waits for it.
const ACTED: &str = "{shell: [log, -t, Story, acted]}";
const UNTIL_ACTED: &str = "wait-for: {log: \"Story *: acted\"}";

/// The triggers of the first run that acted.
fn acted(result: &Value) -> &Vec<Value> {
    let triggers = &result["runs"][0]["triggers"];
    triggers.as_array().unwrap_or_else(|| panic!("{result:#}"))
}

/// Files in the directory of a dump of the first run.
fn dump(lab: &Lab, label: &str) -> Vec<String> {
    files(&lab.work().join("out/run-1/dumps").join(label))
}

#[test]
fn dumps_of_the_java_heap_are_read_by_budgets() {
    let lab = Lab::new(FAST);
    let details = "java: {class: \"*.DetailActivity\", measure: instances}";
    Scenario {
        repeats: 3,
        steps: &["start", "dump: java", "rotate: 2", "dump: {hprof: after}"],
        budgets: &[
            &format!("{{name: details, {details}, at: java, limit: 1}}"),
            "{name: leaks, leaks: {}, at: after, limit: 0}",
            "{name: native, native: {}, limit: 1GiB}",
        ],
        ..Scenario::default()
    }
    .write(&lab);
    lab.expect(0, "run s.yaml --dry-run")
        .assert_stdout("dump hprof after");
    let result = run(&lab, 9, "");
    assert_eq!(verdict(&result, "details"), "within", "{result:#}");
    assert_eq!(verdict(&result, "leaks"), "over", "{result:#}");
    assert_eq!(verdict(&result, "native"), "within", "{result:#}");
    assert!(dump(&lab, "java").contains(&"raw-trace".to_owned()));
    let hprofs = dump(&lab, "after");
    assert!(
        hprofs.iter().any(|name| name.ends_with(".hprof")),
        "{hprofs:?}"
    );
    assert_restored(&lab);
    lab.expect(0, "leaks out/run-1/dumps/after")
        .assert_stdout("FeedActivity");
}

#[test]
fn a_dump_without_a_heap_fails_its_step() {
    let lab = Lab::new("build=user,speed=8");
    Scenario {
        target: "com.example.closed",
        more: "record: {no-check: true}",
        steps: &["start", "dump: java"],
        ..Scenario::default()
    }
    .write(&lab);
    let result = run(&lab, 5, "");
    assert_eq!(runs(&result), ["1 failed dump-failed"], "{result:#}");
    assert_eq!(result["runs"][0]["error"]["kind"], "dump-failed");
    assert_eq!(result["runs"][0]["error"]["step"], "steps[1]", "{result:#}");
    assert_restored(&lab);
}

#[test]
fn an_interrupted_dump_leaves_nothing_on_the_phone() {
    let lab = Lab::new(&format!("{FAST},fault=java-dump-slow@30000"));
    Scenario {
        steps: &["start", "dump: java", "rotate: 40"],
        ..Scenario::default()
    }
    .write(&lab);
    let mut running = begin(&lab, "");
    running.until_line("dump", |e| {
        e["event"] == "step" && e["what"] == "dump java java"
    });
    lab.until("a session of the dump", |lab| lab.traces().len() == 2);
    running.interrupted(130);
    assert_restored(&lab);
}

#[test]
fn a_line_of_the_log_takes_snapshots_and_dumps() {
    let lab = Lab::new(FAST);
    let low = "shell: [log, -t, App, low memory]";
    Scenario {
        more: &format!(
            "triggers:\n- log: low mem.*\n  times: 2\n  steps: [{{snapshot: low}}, {{dump: {{java: \
             heap}}}}, {ACTED}]\n- log: never\n  steps: [{{snapshot: never}}]"
        ),
        steps: &[
            "start",
            low,
            UNTIL_ACTED,
            low,
            UNTIL_ACTED,
            low,
            "snapshot: done",
        ],
        repeats: 3,
        budgets: &[
            "{name: low, native: {}, at: low-1, limit: 1GiB}",
            "{name: heap, java: {class: \"*.DetailActivity\"}, at: heap, limit: 1}",
            "{name: never, native: {}, at: never, limit: 1GiB}",
        ],
        ..Scenario::default()
    }
    .write(&lab);
    lab.expect(0, "run s.yaml --dry-run")
        .assert_stdout("# triggers[0]: at a log line low mem.*")
        .assert_stdout("# triggers[0].steps[0]: snapshot low");
    let result = run(&lab, 12, "");
    assert_eq!(runs(&result), ["1 done", "2 done", "3 done"], "{result:#}");
    let acted = acted(&result);
    assert_eq!(acted.len(), 2, "{result:#}");
    assert_eq!(acted[1]["trigger"], "triggers[0]");
    assert_eq!(acted[1]["labels"], serde_json::json!(["low-2", "heap-2"]));
    assert_contains(&acted[0]["cause"].to_string(), "low memory");
    assert!(
        acted[0]["seconds"].as_f64() < acted[1]["seconds"].as_f64(),
        "{result:#}"
    );
    assert_eq!(verdict(&result, "low"), "within", "{result:#}");
    assert_eq!(verdict(&result, "heap"), "within", "{result:#}");
    let missing = result["budgets"][2]["missing"].to_string();
    assert!(missing.contains("did not take never"), "{result:#}");
    assert_restored(&lab);
}

#[test]
fn meminfo_above_a_size_and_a_trigger_of_perfetto_act_once() {
    let lab = Lab::new(FAST);
    for (trigger, step, cause) in [
        (
            "meminfo: {row: TOTAL, over: 1MiB}",
            "sleep: 10ms",
            "TOTAL of meminfo: ",
        ),
        (
            "perfetto: com.example.slow",
            "shell: [trigger_perfetto, com.example.slow]",
            "trigger com.example.slow of Perfetto",
        ),
    ] {
        Scenario {
            more: &format!(
                "triggers: [{{{trigger}, steps: [{{snapshot: seen}}, {ACTED}]}}, {{meminfo: {{row: \
                 TOTAL, over: 100GiB}}, steps: [{{snapshot: never}}]}}]"
            ),
            steps: &["start", step, UNTIL_ACTED],
            ..Scenario::default()
        }
        .write(&lab);
        let _ = fs::remove_dir_all(lab.work().join("out"));
        let result = run(&lab, 0, "");
        let acted = acted(&result);
        assert_eq!(acted.len(), 1, "{result:#}");
        let found = acted[0]["cause"].as_str().unwrap_or_default();
        assert!(found.starts_with(cause), "{result:#}");
        assert_eq!(acted[0]["labels"], serde_json::json!(["seen"]));
        assert_restored(&lab);
    }
    lab.until("no session of the trigger", |lab| {
        let listed = lab.shell("perfetto --query-raw");
        !["CONFIGURED", "STARTED"]
            .iter()
            .any(|state| listed.contains(state))
    });
}

#[test]
fn an_out_of_memory_error_is_dumped() {
    let out_of_memory = "shell: [am, broadcast, -a, com.example.app.RUN_OUT_OF_MEMORY]";
    for (android, cause) in [
        (14, format!("OutOfMemoryError of {APP}")),
        // The app has died before the dump.
        (13, "Throwing OutOfMemoryError".to_owned()),
    ] {
        let lab = Lab::new(&format!("android={android},{FAST}"));
        Scenario {
            more: "triggers: [{oom: , steps: [{dump: {java: oom}}]}]",
            steps: &["start", "sleep: 1s", out_of_memory, "sleep: 1s"],
            ..Scenario::default()
        }
        .write(&lab);
        let result = run(&lab, 5, "");
        assert_eq!(runs(&result), ["1 failed app-died"], "{result:#}");
        let acted = acted(&result);
        assert!(acted[0]["cause"].to_string().contains(&cause), "{result:#}");
        let is_dumped = dump(&lab, "oom").contains(&"raw-trace".to_owned());
        assert_eq!(is_dumped, android == 14, "{result:#}");
        assert_eq!(acted[0]["error"].is_string(), !is_dumped, "{result:#}");
        assert_restored(&lab);
    }
}

#[test]
fn a_trigger_that_cannot_be_watched_ends_the_run() {
    for (trigger, code, states) in [
        // The session is refused as a recording is: another run can have it.
        ("oom: , steps: [{dump: java}]", 0, &["void", "done"][..]),
        ("perfetto: x, steps: [{snapshot: x}]", 5, &["failed"]),
    ] {
        let lab = Lab::new(FAST);
        Scenario {
            more: &format!("triggers: [{{{trigger}}}]"),
            // The run lasts until the refusal.
            steps: &["start", "sleep: 2s"],
            ..Scenario::default()
        }
        .write(&lab);
        // The first session is the recording.
        let reject = Fault::parse("perfetto-reject#2").expect("a fault");
        lab.phone.faults().add(reject);
        let result = run(&lab, code, "");
        let runs = result["runs"].as_array().expect("runs").iter();
        let found: Vec<&str> = runs.filter_map(|run| run["state"].as_str()).collect();
        assert_eq!(found, states, "{result:#}");
        let error = &result["runs"][0]["error"];
        assert_eq!(error["step"], "triggers[0]", "{result:#}");
        let message = error["message"].to_string();
        assert!(message.contains("Too many concurrent"), "{result:#}");
        assert_restored(&lab);
    }
}

#[test]
fn after_a_kill_triggers_that_waited_leave_nothing() {
    let lab = Lab::new(FAST);
    Scenario {
        more: "triggers: [{oom: , steps: [{dump: {java: oom}}]}, {perfetto: slow, steps: \
               [{snapshot: slow}]}]",
        steps: &["start", "snapshot: before", "rotate: 20"],
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
    let result = run(&lab, 0, "--resume");
    assert_eq!(
        runs(&result),
        ["1 void interrupted", "2 done"],
        "{result:#}"
    );
    assert!(dump(&lab, "oom").is_empty());
    assert_restored(&lab);
}

#[test]
fn each_cell_of_a_matrix_has_its_results_and_its_baseline() {
    let lab = Lab::new(FAST);
    Scenario {
        more: "matrix: {turns: [1, 2]}",
        steps: &["start", "rotate: ${turns}"],
        repeats: 3,
        budgets: &["{name: native, native: {}, limit: 1GiB}"],
        ..Scenario::default()
    }
    .write(&lab);
    let args = "run s.yaml -o out --json --update-baseline";
    let document = lab.expect(0, args).json();
    let results = document["results"].as_array().expect("results");
    let names: Vec<&str> = results
        .iter()
        .filter_map(|r| r["scenario"].as_str())
        .collect();
    assert_eq!(names, ["story[turns=1]", "story[turns=2]"]);
    for cell in ["turns=1", "turns=2"] {
        let baseline = lab.work().join(format!("s[{cell}].baseline"));
        assert!(baseline.is_file(), "{cell}");
        let part = lab.work().join(format!("out/story[{cell}]-virtual-1"));
        assert!(part.join("run-3/manifest.json").is_file(), "{cell}");
    }
    let junit = fs::read_to_string(lab.work().join("out/junit.xml")).expect("JUnit");
    assert_eq!(junit.matches("<testsuite ").count(), 2, "{junit}");
    lab.expect(0, "run s.yaml --dry-run")
        .assert_stdout("# story[turns=2]\n")
        .assert_stdout("rotate:2");
    let plan = "run s.yaml --plan out/story[turns=2]-virtual-1";
    lab.expect(0, plan);
}
