//! The questions of `fleet/` on generated stores: DuckDB and Spark SQL give the answers that the
//! generator counted, before, during and after a compaction.

use std::path::{Path, PathBuf};
use std::process::Command;

use heaptap_archive::Store;
use serde_json::Value;

use crate::judge;

#[allow(dead_code, reason = "the example has a shape and a `main` of its own")]
#[path = "../../crates/archive/examples/generate_fleet.rs"]
mod generate;

use generate::{APP, FROM, Shape, TO};

const SHAPE: Shape = Shape {
    callsites: 60,
    dumps: 2,
    depth: 8,
    classes: 40,
};
/// Each phone has a recording of each build.
const RECORDINGS: usize = 800;

fn ask(python: &str, engine: &str, store: &Path) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fleet/ask.py");
    let output = Command::new(python)
        .arg(script)
        .arg(store)
        .args(["all", "--app", APP, "--from", FROM, "--to", TO, "--json"])
        .args(["--engine", engine])
        .output()
        .expect("Python runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("ask.py prints JSON")
}

fn assert_answers(told: &Value, known: &Value) {
    let questions = known.as_object().expect("answers");
    assert_eq!(questions.len(), 5);
    for (question, rows) in questions {
        assert_eq!(
            &told[question]["rows"], rows,
            "{question}: {}",
            told["engine"]
        );
    }
}

/// Asks before, between and after two compactions.
fn judge_by(python: &str, engine: &str) {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("store");
    let mut store = Store::open(&path).expect("a store");
    let known = generate::generate(&mut store, RECORDINGS, SHAPE).expect("a store");
    for (question, column, planted) in [
        ("grew", 1, "feed::Cache::put(Key const&)"),
        ("classes", 1, "com.example.model.Row3"),
        ("outliers", 1, "phone-7"),
        ("leaks", 0, "com.example.feed.new.DetailActivity"),
    ] {
        let rows = known[question].as_array().expect("rows");
        let is_there = rows.iter().any(|row| row[column] == planted);
        assert!(is_there, "{question}: {rows:#?}");
    }
    assert_answers(&ask(python, engine, &path), &known);
    let done = store.compact().expect("a store");
    assert!(done.replaced > 1_000, "{done:?}");
    assert_answers(&ask(python, engine, &path), &known);
    store.compact().expect("a store");
    assert_answers(&ask(python, engine, &path), &known);
}

#[test]
#[ignore = "needs DuckDB: tests/run.sh runs it"]
fn judged_by_duckdb_fleet_questions_have_the_answers_of_the_generator() {
    judge_by(&judge::duckdb(), "duckdb");
}

#[test]
#[ignore = "needs Spark: tests/run.sh runs it"]
fn judged_by_spark_fleet_questions_have_the_answers_of_the_generator() {
    judge_by(&judge::spark(), "spark");
}
