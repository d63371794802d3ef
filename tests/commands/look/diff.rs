//! `diff` of Java heaps.

use super::{after, before, fixture, heaptap, json, row, words};
use crate::program::{assert_contains, expect};

#[test]
fn a_diff_shows_eighty_listeners_and_nothing_else_of_size() {
    let document = json(&["diff", &before(), &after()]);
    let classes = document["classes"].as_array().unwrap();
    let grown: Vec<(&str, i64)> = classes
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["growth"]["count"].as_i64().unwrap(),
            )
        })
        .filter(|(_, count)| *count != 0)
        .collect();
    assert_eq!(grown, [("byte[]", 80), ("lab.LeakLab$Listener", 80)]);
    for row in classes {
        let bytes = row["growth"]["shallow_bytes"].as_i64().unwrap();
        let is_known = matches!(
            row["name"].as_str(),
            Some("byte[]" | "lab.LeakLab$Listener")
        );
        assert!(is_known || bytes.abs() < 1024, "{row}");
    }
    assert_eq!(document["total"]["growth"]["count"], 160);
    let names: Vec<&str> = document["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect();
    let list = [
        "java.util.ArrayList",
        "java.lang.Object[]",
        "lab.LeakLab$Listener",
        "byte[]",
    ];
    assert!(names.windows(4).any(|names| names == list), "{names:?}");
    let leaks = document["leaks"].as_array().unwrap();
    assert!(!leaks.is_empty());
    assert!(
        leaks.iter().all(|leak| leak["status"] == "same"),
        "{leaks:?}"
    );
    let same = json(&["diff", &after(), &after()]);
    assert_eq!(same["classes"], serde_json::json!([]));
}

#[test]
fn a_budget_of_growth_ends_in_9() {
    let code = |limit: &str| {
        let output = heaptap(&["diff", &before(), &after(), "--fail-over", limit]);
        (output.code(), output.stderr)
    };
    assert_eq!(code("1MiB").0, Some(0));
    let (over, said) = code("700k");
    assert_eq!(over, Some(9));
    assert_contains(&said, "grew by more than 700.0 KiB: +784.9 KiB");
    expect(
        0,
        &format!("diff {} {} --fail-over 1k --focus Node", before(), after()),
    );
    // Their own sizes grow by 1.9 KiB.
    let (a, b) = (before(), after());
    let of_listeners = |limit: &str| {
        let check = format!("diff {a} {b} --focus Listener --fail-over {limit}");
        let judged = heaptap(&format!("{check} --json"));
        let document = judged.json();
        let outcome = document["verdict"]["outcome"].as_str().unwrap().to_owned();
        (judged.code(), outcome, judged.stderr)
    };
    let (code, outcome, said) = of_listeners("700k");
    assert_eq!((code, outcome.as_str()), (Some(9), "exceeded"), "{said}");
    let what = "+784.4 KiB in what the matching objects retain";
    assert_contains(&said, what);
    let (code, outcome, said) = of_listeners("800k");
    assert_eq!(
        (code, outcome.as_str()),
        (Some(0), "within-limit"),
        "{said}"
    );
    for (flag, nothing) in [
        ("--focus", "NoSuchClass"),
        ("--focus", "nODE"),
        ("--ignore", "."),
    ] {
        let args = [
            "diff",
            &before(),
            &after(),
            "--fail-over",
            "1gb",
            flag,
            nothing,
        ];
        expect(12, &args).assert_stderr("nothing was checked");
    }
    let smart = format!("diff {} {} --fail-over 1k --focus node", before(), after());
    assert_eq!(heaptap(&smart).status.code(), Some(0));
}

#[test]
fn new_leaks_are_told_between_two_android_heaps() {
    let (a, b) = (
        fixture("hprof/android-a.hprof.gz"),
        fixture("hprof/android-b.hprof.gz"),
    );
    let document = json(&["diff", &a, &b]);
    let grown = document["leaks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|leak| leak["status"] == "grown");
    let leak = grown.expect("five more activities leak");
    assert_eq!(
        leak["after_count"].as_u64().unwrap() - leak["before_count"].as_u64().unwrap(),
        5
    );
}

#[test]
fn a_heap_graph_and_an_hprof_compare_by_name() {
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let document = json(&["diff", &graph, &after()]);
    assert_eq!(document["before"]["source"], "heap-graph");
    assert_eq!(document["after"]["source"], "hprof");
    assert_eq!(
        row(&document["classes"], "lab.LeakLab$Listener")["status"],
        "new"
    );
    let top = json(&["top", &graph]);
    assert_eq!(top["heap"]["process"], "com.example.synth");
    assert_eq!(top["heap"]["pid"], 5151);
}

#[test]
fn sizes_of_different_models_are_said_not_to_be_comparable() {
    let dump = fixture("hprof/android-a.hprof.gz");
    let directory = tempfile::tempdir().unwrap();
    let converted = directory.path().join("converted.hprof");
    let converted = converted.to_str().unwrap();
    words(&["hprof", "conv", &dump, converted]);
    let warnings = |other: &str, flags: &[&str]| {
        let document = json(&[&["diff", &dump, other][..], flags].concat());
        let warnings = document["after"]["warnings"].as_array().unwrap().clone();
        let kinds = warnings.iter().map(|warning| warning["kind"].to_string());
        kinds.collect::<Vec<_>>()
    };
    let differ = "\"sizes-differ\"".to_owned();
    assert!(warnings(&after(), &[]).contains(&differ));
    assert!(!warnings(&after(), &["--sizes", "mat"]).contains(&differ));
    // A converted dump is of Android as well.
    assert!(warnings(converted, &[]).is_empty());
}

#[test]
fn packages_of_a_difference_are_those_of_both_heaps() {
    let report = json(&[
        "diff",
        &before(),
        &after(),
        "--by",
        "package",
        "--unchanged",
    ]);
    for (side, file) in [("before", before()), ("after", after())] {
        let heap = json(&format!("top {file} --by package -l 0"));
        let groups = heap["rows"].as_array().unwrap();
        let rows = report["packages"].as_array().unwrap();
        let rows = rows.iter().filter(|row| row[side]["count"] != 0);
        assert_eq!(rows.count(), groups.len(), "{side}");
        for group in groups {
            let name = group["name"].as_str().unwrap();
            let figures = &row(&report["packages"], name)[side];
            for (figure, value) in figures.as_object().unwrap() {
                assert_eq!(*value, group[figure], "{side} {name} {figure}");
            }
        }
    }
}
