//! Baselines of scenarios: what earlier nights allow, and which nights are added.

use std::fs;

use crate::lab::Lab;
use crate::program::assert_contains;
use crate::run::{FAST, Scenario, begin, result_of, run, runs};

/// Four nights of a scenario, whose runs differ by some percent.
const NIGHTS: &str = "\
    libs default 2026-01-01T00:00:00Z: x = 1 2 3 4 5 6 7 8 9 10\n\
    native default 2026-01-01T00:00:00Z: x = 1000000 1020000 1040000\n\
    native default 2026-01-02T00:00:00Z: x = 1000000 1020000 1040000; 1.0\n\
    native default 2026-01-03T00:00:00Z: x = 1000000 1020000 1040000; 1.1\n\
    native default 2026-01-04T00:00:00Z: x = 1000000 1020000 1040000; 1.1\n";

#[test]
fn earlier_nights_allow_a_verdict_after_one_run() {
    let lab = Lab::new(FAST);
    let scenario = Scenario {
        measure: "[native, meminfo, smaps]",
        steps: &["start", "snapshot: up"],
        budgets: &[
            "{name: native, native: {}, at: up, limit: 1GiB}",
            "{name: libs, meminfo: {row: .so mmap}, at: up, limit: 1GiB}",
        ],
        ..Scenario::default()
    };
    scenario.write(&lab);
    let file = lab.work().join("s.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("repeats: 1\n", "repeats: {min: 1, max: 3}\n");
    fs::write(&file, text).unwrap();
    let baseline = lab.work().join("s.baseline");
    fs::write(&baseline, NIGHTS).unwrap();
    let result = run(&lab, 0, "--update-baseline");
    assert_eq!(runs(&result), ["1 done"], "{result:#}");
    let judged = &result["budgets"][0]["judgement"];
    assert_eq!(
        (&judged["runs"], &judged["earlier_runs"]),
        (&1.into(), &12.into())
    );
    let libs = &result["budgets"][1]["parts"];
    assert!(libs[0]["what"].to_string().contains(".so"), "{result:#}");
    let was = fs::read_to_string(&baseline).unwrap();
    for night in NIGHTS.lines() {
        assert_contains(&was, night);
    }
    assert_eq!(was.matches("\nnative default 2").count(), 5, "{was}");
    // A night is added once, and is not its own history.
    let args = "run s.yaml -o out --resume --update-baseline --json";
    let again = result_of(&lab.expect(0, args));
    assert_eq!(runs(&again), ["1 done"], "{again:#}");
    assert_eq!(fs::read_to_string(&baseline).unwrap(), was);
    // Without the nights, one run is too few.
    fs::remove_file(&baseline).unwrap();
    let result = result_of(&lab.expect(0, "run s.yaml -o new --json"));
    assert_eq!(runs(&result), ["1 done", "2 done", "3 done"], "{result:#}");
    // A baseline of another version is not overwritten.
    let other = "# heaptap baseline 1: another format\n";
    fs::write(&baseline, other).unwrap();
    let args = "run s.yaml -o other --update-baseline --json";
    let refused = lab.expect(8, args).json();
    assert_eq!(refused["error"]["kind"], "input-unreadable", "{refused:#}");
    assert_eq!(fs::read_to_string(&baseline).unwrap(), other);
}

#[test]
fn a_regression_is_over_its_change_until_somebody_accepts_it() {
    let lab = Lab::new(FAST);
    Scenario {
        measure: "[native]",
        repeats: 3,
        steps: &["start", "snapshot: up"],
        budgets: &[
            "{name: native, native: {}, at: up, change: 5%}",
            "{name: all, native: {}, at: up, limit: 1GiB}",
        ],
        ..Scenario::default()
    }
    .write(&lab);
    let baseline = lab.work().join("s.baseline");
    fs::write(&baseline, NIGHTS).unwrap();
    let args = ["run", "s.yaml", "--update-baseline", "-o"];
    // A baseline that cannot be written does not hide the verdicts.
    for (limit, code) in [("1KiB", 9), ("1GiB", 11)] {
        let file = lab.work().join("s.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("limit: 1GiB", &format!("limit: {limit}"));
        fs::write(lab.work().join("other.yaml"), text).unwrap();
        let out = format!("out-{code}");
        let args = format!("run other.yaml --update-baseline --baseline no/dir -o {out}");
        lab.expect(code, &args)
            .assert_stderr("cannot write no/dir")
            .assert_stdout("VERDICT");
    }
    for night in ["first", "second"] {
        lab.expect(9, &[&args[..], &[night]].concat())
            .assert_stderr("native grew beyond");
    }
    let text = fs::read_to_string(&baseline).unwrap();
    assert_eq!(text.matches("\nnative default 2").count(), 4, "{text}");
    assert_eq!(text.matches("\nall default 2").count(), 2, "{text}");
    // The lines of the budget are deleted: the next night is the first of the new size.
    let lines = text.lines().filter(|line| !line.starts_with("native "));
    fs::write(&baseline, lines.collect::<Vec<_>>().join("\n")).unwrap();
    lab.expect(0, (args, "accepted"));
    let text = fs::read_to_string(&baseline).unwrap();
    assert_eq!(text.matches("\nnative default 2").count(), 1, "{text}");
}

#[test]
fn a_baseline_keeps_what_another_job_adds_during_the_runs() {
    let lab = Lab::new(FAST);
    Scenario {
        steps: &["start", "snapshot: up", "rotate: 20"],
        budgets: &["{name: native, native: {}, at: up, limit: 1GiB}"],
        ..Scenario::default()
    }
    .write(&lab);
    let baseline = lab.work().join("s.baseline");
    let (first, later) = NIGHTS.trim().rsplit_once('\n').expect("nights");
    fs::write(&baseline, first).unwrap();
    let mut running = begin(&lab, "--update-baseline");
    running.until_line("rotation", |e| {
        e["event"] == "step" && e["what"] == "rotate:20"
    });
    fs::write(&baseline, format!("{first}\n{later}")).unwrap();
    let ended = running.end();
    let text = fs::read_to_string(&baseline).unwrap();
    assert!(text.contains(later.trim()), "{text} {ended}");
    assert_eq!(text.matches("\nnative default 2").count(), 5, "{text}");
}
