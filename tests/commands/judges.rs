//! Other programs check the demo's output: Go's pprof must open it and show the leak. Also checks
//! that CI has all of these programs.

use std::path::Path;
use std::process::Command;

use crate::program::assert_contains;
use crate::recorded::demo;

/// The call in the demo's app that leaks.
const LEAK: &str = "example::telemetry::EventHistory::Append";

/// The profiles in a directory, in the order of their names.
fn profiles(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(directory)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".pb.gz"))
        .collect();
    found.sort();
    found
}

fn pprof(arguments: &[&str], profile: &Path) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .arg(profile)
        .output()
        .expect("go runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}\n{errors}");
    // It searches for symbols only of the library whose frames have no names.
    let mut failed = errors
        .lines()
        .filter(|l| l.contains("symbolization failed"));
    assert!(failed.all(|line| line.contains("libengine.so")), "{errors}");
    text
}

/// The first function of a `-top` table.
fn first_row(table: &str) -> &str {
    let mut rows = table.lines().skip_while(|line| !line.contains("flat%"));
    rows.nth(1).expect("a table with a row")
}

/// The demo's snapshot `after`, by its index; `before` is the first.
const AFTER: usize = 5;

#[test]
#[ignore = "needs Go: tests/run.sh runs it"]
fn judged_by_go_pprof_names_the_demos_leak_first() {
    crate::judge::go();
    let profiles = profiles(&demo());
    assert_eq!(profiles.len(), 7, "six snapshots and the end: {profiles:?}");
    for profile in &profiles {
        // The default view is unreleased memory.
        let table = pprof(&["-top"], profile);
        assert_contains(&table, "Type: space");
        assert!(first_row(&table).contains(LEAK), "{table}");
    }
    let last = profiles.last().expect("a profile");
    for view in ["objects", "space", "alloc_objects", "alloc_space"] {
        let table = pprof(&["-top", &format!("-sample_index={view}")], last);
        assert_contains(&table, &format!("Type: {view}"));
        assert!(table.contains(LEAK), "{view}: {table}");
    }
    let table = pprof(&["-top", "-lines"], last);
    assert!(first_row(&table).contains("event_history.cpp:6"), "{table}");
    assert_contains(&table, "telemetry.h:43 (inline)");
    // Between the snapshots, the leak grew.
    let base = format!("-diff_base={}", profiles[0].display());
    let table = pprof(&["-top", &base], &profiles[AFTER]);
    assert!(first_row(&table).contains(LEAK), "{table}");
}

/// Rows of `-top`: flat and cumulative bytes of a function.
type Rows = std::collections::BTreeMap<String, (i64, i64)>;

/// All functions of a profile as pprof reports them with some flags, except those without bytes.
fn judged(flags: &[&str], profile: &Path) -> Rows {
    let all = [
        "-top",
        "-nodecount=100000",
        "-nodefraction=0",
        "-edgefraction=0",
        "-unit=B",
        "-symbolize=none",
    ];
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(all)
        .args(flags)
        .arg(profile)
        .output()
        .expect("go runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let bytes = |text: &str| -> i64 {
        let number = text.trim_end_matches('B');
        number
            .parse()
            .unwrap_or_else(|_| panic!("{text} is no number of bytes"))
    };
    let mut rows = Rows::new();
    for line in table
        .lines()
        .skip_while(|line| !line.contains("flat%"))
        .skip(1)
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [flat, _, _, cum, _, name @ ..] = &words[..] else {
            panic!("no row: {line}");
        };
        let name = name.join(" ");
        let name = name.strip_suffix(" (inline)").unwrap_or(&name);
        let name = name.strip_suffix(" (partial-inline)").unwrap_or(name);
        let row = rows.entry(name.to_owned()).or_default();
        row.0 += bytes(flat);
        row.1 += bytes(cum);
    }
    rows.retain(|_, row| *row != (0, 0));
    rows
}

/// The same from `heaptap top`.
fn told(flags: &[&str], profile: &Path) -> Rows {
    let output = crate::program::heaptap()
        .args([
            "top",
            "--json",
            "-l",
            "0",
            "--view",
            "space",
            "--all-frames",
        ])
        .args(flags)
        .arg(profile)
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {output:?}"));
    let mut rows = Rows::new();
    let all = document["heaps"][0]["rows"].as_array().expect("rows");
    for row in all {
        let figure = |figure: &str| row[figure]["space"].as_i64().expect("a number");
        let name = row["name"].as_str().expect("a name").to_owned();
        let sum = rows.entry(name).or_default();
        sum.0 += figure("self");
        sum.1 += figure("cumulative");
    }
    rows.retain(|_, row| *row != (0, 0));
    rows
}

#[test]
#[ignore = "needs Go: tests/run.sh runs it"]
fn judged_by_go_filters_leave_what_pprofs_leave() {
    crate::judge::go();
    let directory = tempfile::tempdir().expect("a folder");
    // Perfetto's column names do not make viewers drop allocators.
    let converted = crate::program::heaptap()
        .arg("convert")
        .arg(demo().join("symbolized-trace"))
        .args(["--sample-names", "perfetto", "-o"])
        .arg(directory.path().join("perfetto"))
        .env("HEAPTAP_CACHE_DIR", directory.path().join("cache"))
        .output()
        .expect("the binary runs");
    assert!(converted.status.success(), "{converted:?}");
    let profiles = profiles(&directory.path().join("perfetto"));
    let profile = profiles.last().expect("a profile");
    let filters: [&[&str]; 14] = [
        &[],
        &["focus=FeedCache"],
        &["focus=libexample"],
        &["ignore=libexample"],
        &["focus=Looper", "ignore=Append"],
        &["hide=EventHistory"],
        &["hide=libc"],
        &["hide=event_history.cpp"],
        &["show=example"],
        &["show=com.example|malloc"],
        &["show_from=FeedActivity"],
        &["show_from=libexample", "hide=Append"],
        &["focus=main", "hide=boot-framework", "ignore=Listener"],
        &["focus=nothing is called that"],
    ];
    for filter in filters {
        // heaptap is case-sensitive only if the pattern has a capital.
        let theirs: Vec<String> = filter
            .iter()
            .filter_map(|f| f.split_once('='))
            .map(
                |(flag, pattern)| match pattern.contains(char::is_uppercase) {
                    true => format!("-{flag}={pattern}"),
                    false => format!("-{flag}=(?i){pattern}"),
                },
            )
            .collect();
        let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
        let ours: Vec<String> = filter
            .iter()
            .map(|f| format!("--{}", f.replacen("show_from", "show-from", 1)))
            .collect();
        let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
        assert_eq!(told(&ours, profile), judged(&theirs, profile), "{filter:?}");
    }
}

#[test]
#[ignore = "needs Go: tests/run.sh runs it"]
fn judged_by_go_differences_are_those_that_pprof_computes() {
    crate::judge::go();
    let directory = tempfile::tempdir().expect("a folder");
    let profiles = profiles(&demo());
    let grown = directory.path().join("grown.pb.gz");
    let recording = demo().display().to_string();
    let output = crate::program::heaptap()
        .args([
            "diff",
            &format!("{recording}@before"),
            &format!("{recording}@after"),
        ])
        .args(["--json", "-l", "0", "-o"])
        .arg(&grown)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    let base = format!("-diff_base={}", profiles[0].display());
    for view in ["space", "objects", "alloc_space", "alloc_objects"] {
        let index = format!("-sample_index={view}");
        let ours = pprof(
            &["-top", "-nodecount=1000", "-nodefraction=0", &index],
            &grown,
        );
        let theirs = pprof(
            &["-top", "-nodecount=1000", "-nodefraction=0", &index, &base],
            &profiles[AFTER],
        );
        let rows = |table: &str| -> std::collections::BTreeSet<String> {
            let rows = table.lines().skip_while(|line| !line.contains("flat%"));
            // Running sums depend on the order of equal rows.
            let row = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let kept = words.iter().enumerate().filter(|(at, _)| *at != 2);
                let text = kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
                text.trim_end_matches(" (inline)").to_owned()
            };
            rows.map(row).collect()
        };
        assert_eq!(rows(&ours), rows(&theirs), "{view}");
        assert!(ours.contains(LEAK), "{view}: {ours}");
    }
    assert!(first_row(&pprof(&["-top"], &grown)).contains(LEAK));
    // The table has the same growth.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let leak = document["heaps"][0]["rows"].as_array().expect("rows");
    let leak = leak
        .iter()
        .find(|row| row["name"].as_str().is_some_and(|n| n.contains(LEAK)));
    let growth = leak.expect("the leak")["self"]["growth"]["value"]
        .as_f64()
        .expect("a number");
    let rows = judged(&[], &grown);
    let (name, flat) = rows
        .iter()
        .find(|(name, _)| name.contains(LEAK))
        .map(|(name, row)| (name, row.0))
        .expect("the leak");
    assert_eq!(growth, flat as f64, "{name}");
}

#[test]
fn in_ci_no_judge_is_missing() {
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    if is_ci {
        let missing = crate::judge::missing();
        assert!(
            missing.is_empty(),
            "tests/run.sh installs them: {missing:#?}"
        );
    }
}
