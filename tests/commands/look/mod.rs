//! `heaptap top`, `paths` and `diff` as programs: the real binary on dumps with known figures
//! (fixtures/MANIFEST.toml describes them).
#![allow(missing_docs, clippy::unwrap_used)]

mod diff;
mod dumps;
mod folders;
mod incomplete;
mod paths;
mod top;

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    path.join(name).to_str().unwrap().to_owned()
}

fn before() -> String {
    fixture("hprof/leaklab-before.hprof.zst")
}

fn after() -> String {
    fixture("hprof/leaklab-after.hprof.zst")
}

fn heaptap(args: &[&str]) -> Output {
    crate::program::heaptap().args(args).output().unwrap()
}

/// Its output; it must exit with 0.
fn words(args: &[&str]) -> String {
    let output = heaptap(args);
    assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&words(&[args, &["--json"]].concat())).unwrap()
}

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no row of {name}"))
}
