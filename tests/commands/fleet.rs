//! The questions of `fleet/` on generated stores. DuckDB gives the answers that the generator
//! counted before, between and after two compactions, Spark SQL between them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptap_archive::{Recording, Store};
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

/// Writes a store with findings, and returns it with the answers.
fn generated(path: &Path) -> (Store, Value) {
    let mut store = Store::open(path).expect("a store");
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
    (store, known)
}

fn compact(store: &mut Store) {
    let done = store.compact().expect("a store");
    assert!(done.replaced > 1_000, "{done:?}");
}

#[test]
#[ignore = "needs DuckDB: tests/run.sh runs it"]
fn judged_by_duckdb_fleet_questions_have_the_answers_of_the_generator() {
    let python = judge::duckdb();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let (mut store, known) = generated(&path);
    assert_answers(&ask(&python, "duckdb", &path), &known);
    compact(&mut store);
    assert_answers(&ask(&python, "duckdb", &path), &known);
    store.compact().expect("a store");
    assert_answers(&ask(&python, "duckdb", &path), &known);
}

/// Counts the rows of each table, again after each line on stdin, in one session of DuckDB.
const COUNT: &str = r#"
import duckdb, json, sys
connection = duckdb.connect()
for path in sys.argv[3:]:
    with open(path, encoding="utf-8") as file:
        text = file.read().replace("${store}", sys.argv[1]).replace("${app}", sys.argv[2])
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    connection.execute("\n".join(lines))
tables = ["recording", "dump", "sample", "class", "leak"]
count = lambda table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
print(json.dumps([count(table) for table in tables]), flush=True)
for line in sys.stdin:
    print(json.dumps([count(table) for table in tables]), flush=True)
"#;

/// A recording that a compaction moves between two listings must not lose its rows: the rows are
/// those of the recordings that were listed first.
#[test]
#[ignore = "needs DuckDB: tests/run.sh runs it"]
fn judged_by_duckdb_a_session_has_the_rows_of_the_recordings_that_it_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let mut store = Store::open(&path).expect("a store");
    // Half of them are of this app.
    generate::generate(&mut store, 40, SHAPE).expect("a store");
    let fleet = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fleet");
    let mut session = Command::new(judge::duckdb())
        .args(["-c", COUNT])
        .arg(&path)
        .arg(APP)
        .args(["prologue.duckdb.sql", "views.sql"].map(|name| fleet.join(name)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut lines = BufReader::new(session.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("a text");
    let before = next();
    assert!(before.starts_with("[20, "), "{before}");
    let later = Recording {
        sha256: "ab".repeat(32),
        app: APP.to_owned(),
        ..Recording::default()
    };
    store.append(&later).expect("a store");
    store.compact().expect("a store");
    let mut stdin = session.stdin.take().expect("a pipe");
    stdin.write_all(b"again\n").expect("a pipe");
    assert_eq!(next(), before);
    drop(stdin);
    assert!(session.wait().expect("Python ends").success());
}

#[test]
#[ignore = "needs Spark: tests/run.sh all runs it"]
fn judged_by_spark_fleet_questions_have_the_answers_of_the_generator() {
    let python = judge::spark();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let (mut store, known) = generated(&path);
    // Spark takes long to start, so it answers once: while each row is in two files.
    compact(&mut store);
    assert_answers(&ask(&python, "spark", &path), &known);
}
