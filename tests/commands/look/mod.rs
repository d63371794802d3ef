//! `heaptap top`, `paths` and `diff` as programs: the real binary on dumps with known figures
//! (fixtures/MANIFEST.toml describes them).
#![allow(missing_docs, clippy::unwrap_used)]

mod diff;
mod directories;
mod dumps;
mod incomplete;
mod java_se;
mod paths;
mod top;

use serde_json::Value;

use crate::program::{json, run as heaptap, words};

fn fixture(name: &str) -> String {
    let path = crate::program::fixture(name);
    path.to_str().unwrap().to_owned()
}

fn before() -> String {
    fixture("hprof/leaklab-before.hprof.zst")
}

fn after() -> String {
    fixture("hprof/leaklab-after.hprof.zst")
}

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no row of {name}"))
}
