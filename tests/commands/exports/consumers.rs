//! Readers of other projects: Go's pprof, DuckDB, and the strict parsers of Python.

use crate::exports::{convert, fixture, read};
use crate::judge;
use std::path::Path;
use std::process::Command;

/// All files of an input for `consumers.py`, with the expected totals.
fn check(python: &str, directory: &Path, input: &Path, name: &str) {
    let at = directory.join(name);
    std::fs::create_dir(&at).expect("it can be made");
    for (format, output) in [
        ("json", "all.json"),
        ("csv", "all.csv"),
        ("speedscope", "all.speedscope.json"),
        ("svg", "svg"),
        ("parquet", "parquet"),
    ] {
        let output = at.join(output);
        let output = output.to_string_lossy();
        convert(directory, input, &["--format", format, "-o", &output]);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/exports/consumers.py");
    let output = Command::new(python)
        .arg(script)
        .arg(&at)
        .output()
        .expect("Python runs");
    let told = String::from_utf8_lossy(&output.stderr);
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {found}{told}");
    assert!(found.contains("all the same"), "{name}: {found}");
}

#[test]
#[ignore = "needs a Python with DuckDB: tests/run.sh runs it"]
fn judged_by_duckdb_and_strict_parsers_the_numbers_are_the_same() {
    let python = judge::duckdb();
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path();
    check(
        &python,
        directory,
        &fixture("conversions/allheaps.pftrace"),
        "native",
    );
    check(
        &python,
        directory,
        &fixture("heap_graphs/graph_10k.pftrace.zst"),
        "java",
    );
    check(&python, directory, &crate::recorded::demo(), "demo");
}

/// Output of `go tool pprof -raw` for a pprof: sample types and the sums of their columns.
fn go_totals(file: &Path) -> Option<Vec<(String, i64)>> {
    let output = Command::new("go")
        .args(["tool", "pprof", "-raw", "-symbolize=none"])
        .arg(file)
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().skip_while(|line| *line != "Samples:").skip(1);
    // `objects/count space/bytes[dflt] …`
    let types = lines.next()?.split_whitespace();
    let mut totals: Vec<(String, i64)> = types
        .map(|kind| (kind.split('/').next().unwrap_or(kind).to_owned(), 0))
        .collect();
    for line in lines.take_while(|line| *line != "Locations") {
        let Some((numbers, _)) = line.split_once(':') else {
            continue;
        };
        for (total, number) in totals.iter_mut().zip(numbers.split_whitespace()) {
            total.1 += number.parse::<i64>().expect("a number");
        }
    }
    Some(totals)
}

#[test]
#[ignore = "needs Go: tests/run.sh runs it"]
fn judged_by_go_totals_are_those_that_json_has() {
    judge::go();
    let directory = tempfile::tempdir().expect("a folder");
    for (name, input) in [
        ("native", "conversions/allheaps.pftrace"),
        ("java", "heap_graphs/graph_10k.pftrace.zst"),
    ] {
        let input = fixture(input);
        convert(directory.path(), &input, &["-o", name]);
        let json = format!("{name}.json");
        convert(directory.path(), &input, &["--format", "json", "-o", &json]);
        let sums = read::by_view(&read::json(&directory.path().join(json)));
        for file in read::files(&directory.path().join(name), ".pb.gz") {
            let dump = read::dump_of(&file);
            for (view, total) in go_totals(&file).expect("samples") {
                let found = sums
                    .get(&(dump.clone(), view.clone()))
                    .copied()
                    .unwrap_or(0);
                assert_eq!(total, found, "{} {view}", file.display());
            }
        }
    }
}
