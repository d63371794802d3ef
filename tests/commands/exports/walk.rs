//! Compares every surface that shows numbers with the pprofs of the same dumps: tables, pages, SQL.
//! `main.rs` compares the formats of `convert`.

use crate::exports::read::{DumpId, Numbers, by_view, put};
use crate::exports::{assert_same, convert, fixture, heaptap, of_pprofs};
use heaptap_model::stacks::{NodeId, StackProfile};
use heaptap_report::data;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The document printed by a command.
fn document(directory: &Path, arguments: &[&str]) -> Value {
    let output = heaptap(directory, arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 6)),
        "{arguments:?}: {code:?} {told}"
    );
    serde_json::from_slice(&output.stdout).expect("a document")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `top --json` by callsite, one dump at a time.
fn of_top(directory: &Path, input: &str, dumps: &BTreeSet<DumpId>) -> Numbers {
    let mut numbers = Numbers::new();
    for dump in dumps {
        let (number, heap) = (dump.0.to_string(), &dump.1);
        let every_row = ["--by", "callsite", "--all-frames", "-l", "0", "--json"];
        let of_dump = ["top", input, "--at", &number, "--heap", heap];
        let document = document(directory, &[&of_dump[..], &every_row].concat());
        let shown = &document["heaps"][0];
        assert_eq!(list(&document["heaps"]).len(), 1);
        assert_eq!(shown["dump"]["number"], dump.0);
        for row in list(&shown["rows"]) {
            let name = |frame: &'_ Value| frame["function"].as_str().expect("a name").to_owned();
            let mut names: Vec<String> = list(&row["stack"]).iter().map(name).collect();
            names.reverse();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            for (view, value) in row["self"].as_object().expect("figures") {
                put(
                    &mut numbers,
                    dump,
                    view,
                    &names,
                    value.as_i64().unwrap_or(0),
                );
            }
        }
    }
    numbers
}

/// The data in the page of `report`.
fn of_report(directory: &Path, input: &str) -> Numbers {
    let output = heaptap(directory, &["report", input, "-o", "page.html"]);
    assert!(
        output
            .status
            .code()
            .is_some_and(|code| [0, 6].contains(&code))
    );
    let page = std::fs::read_to_string(directory.join("page.html")).expect("it is there");
    let data = data::from_page(&page).expect("it has data");
    of_profile(&data::Data::decode(&data).expect("it can be read").native)
}

fn of_profile(profile: &StackProfile) -> Numbers {
    let mut numbers = Numbers::new();
    for dump in &profile.dumps {
        let id = (dump.facts.number, dump.facts.heap.clone());
        for (measure, column) in dump.measures.iter().zip(&dump.values.columns) {
            for (&node, &value) in dump.values.nodes.iter().zip(column) {
                let name = |node: NodeId| profile.table.name_of(node);
                let mut names: Vec<&str> = profile.table.stack(node).map(name).collect();
                names.reverse();
                put(&mut numbers, &id, &measure.name, &names, value);
            }
        }
    }
    numbers
}

/// Perfetto's tables have the change of each dump; the sum up to its time is the dump.
const SUMS: &str = "SELECT d.ts, d.upid, d.heap_name, \
     sum(a.size) AS space, sum(a.count) AS objects, \
     sum(CASE WHEN a.size > 0 THEN a.size ELSE 0 END) AS alloc_space, \
     sum(CASE WHEN a.count > 0 THEN a.count ELSE 0 END) AS alloc_objects \
   FROM (SELECT DISTINCT ts, upid, heap_name FROM heap_profile_allocation) d \
   JOIN heap_profile_allocation a \
     ON a.upid = d.upid AND a.heap_name = d.heap_name AND a.ts <= d.ts \
   GROUP BY d.ts, d.upid, d.heap_name ORDER BY d.upid, d.heap_name, d.ts";

#[test]
fn tables_and_pages_have_the_numbers_of_the_pprofs() {
    for name in ["allheaps", "c_max", "c_cont"] {
        let directory = tempfile::tempdir().expect("a folder");
        let input = fixture(&format!("conversions/{name}.pftrace"));
        convert(directory.path(), &input, &["-o", "pprof"]);
        let expected = of_pprofs(&directory.path().join("pprof"));
        let input = input.to_string_lossy();
        let dumps: BTreeSet<DumpId> = expected.keys().map(|key| key.0.clone()).collect();
        assert_same(&expected, &of_top(directory.path(), &input, &dumps), "top");
        assert_same(&expected, &of_report(directory.path(), &input), "report");
    }
}

#[test]
fn sql_adds_up_to_the_pprofs() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    convert(directory.path(), &input, &["-o", "pprof"]);
    let sums = by_view(&of_pprofs(&directory.path().join("pprof")));
    let answer = document(
        directory.path(),
        &["query", &input.to_string_lossy(), SUMS, "--json"],
    );
    let views = ["space", "objects", "alloc_space", "alloc_objects"];
    let mut expected: Vec<Vec<i64>> = Vec::new();
    for dump in sums.keys().map(|key| &key.0).collect::<BTreeSet<_>>() {
        let of = |view: &&str| {
            sums.get(&(dump.clone(), (*view).to_owned()))
                .copied()
                .unwrap_or(0)
        };
        expected.push(views.iter().map(of).collect());
    }
    let figure = |row: &Value, view: &str| row[view].as_i64().expect("a number");
    let found: Vec<Vec<i64>> = list(&answer)
        .iter()
        .map(|row| views.iter().map(|view| figure(row, view)).collect())
        .collect();
    assert_eq!(found, expected);
}
