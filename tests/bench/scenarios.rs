//! A scenario from its steps to the files for CI systems. Snapshots need heapprofd, so the budgets
//! are of meminfo at the end.

use std::fs;

use serde_json::Value;

use crate::beside::fake_meminfo;
use crate::phone::{Phone, SERIAL};
use crate::{PATIENCE, TARGET, json};

/// Exit code of a budget over its limit.
const OVER: i32 = 9;

const STEPS: &str = r#"
measure: [meminfo]
repeats: 3
steps:
- shell: [sh, -c, 'print -r -- "$0" >>/data/local/tmp/words', "a 'b' $(id)"]
- sleep: 100ms
budgets:
- {name: within, meminfo: {row: TOTAL}, limit: 1GiB}
- {name: over, meminfo: {row: TOTAL}, limit: 1MiB}
"#;

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_scenario_is_run_and_judged() {
    let phone = Phone::boot("scenario");
    let pid = phone.shell(&format!("pidof {TARGET}")).stdout;
    fake_meminfo(&phone, pid.trim().parse().expect("a PID"), TARGET);
    let scenario = format!("version: 1\nname: bench\ntarget: {{name: {TARGET}}}{STEPS}");
    phone.write("s.yaml", &scenario);
    let args = ["run", "s.yaml", "-s", SERIAL, "-o", "out", "--json"];
    let ended = phone.heaptap(&args).end(PATIENCE);
    assert_eq!(ended.code(), Some(OVER), "{ended:?}");
    let result = &json(&ended)["results"][0];
    let texts = |list: &str, field: &str| -> Vec<String> {
        let rows = result[list].as_array().expect("a list").iter();
        rows.map(|row| {
            row.pointer(field)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        })
        .collect()
    };
    assert_eq!(
        texts("runs", "/state"),
        ["done", "done", "done"],
        "{result:#}"
    );
    assert_eq!(
        texts("budgets", "/judgement/verdict"),
        ["within", "over"],
        "{result:#}"
    );

    // The shell of the phone read no word of the step.
    let words = fs::read_to_string(phone.file("/data/local/tmp/words")).expect("written");
    assert_eq!(words, "a 'b' $(id)\n".repeat(3));
    assert_eq!(phone.traces(), [], "{ended:?}");
    for run in 1..=3 {
        let trace = phone.work().join(format!("out/run-{run}/raw-trace"));
        assert!(fs::metadata(trace).expect("collected").len() > 0);
    }
    let junit = fs::read_to_string(phone.work().join("out/junit.xml")).expect("JUnit");
    assert!(
        junit.contains("tests=\"3\" failures=\"1\" errors=\"0\""),
        "{junit}"
    );
    for file in [
        "result.json",
        "summary.md",
        "metrics.txt",
        "index.html",
        "index.css",
    ] {
        assert!(phone.work().join("out").join(file).is_file(), "{file}");
    }
}
