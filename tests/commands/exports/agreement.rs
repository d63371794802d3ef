//! One set of numbers everywhere: compares `top --json`, the data block of a report and the tables
//! of `query` with the pprofs of the same dumps, stack by stack. (The files for other tools have
//! their own tests.)

use crate::exports::read::{DumpId, Numbers, put};
use crate::exports::{assert_same, convert, fixture, heaptap, of_pprofs};
use heaptap_model::names::{demangle, nameless};
use heaptap_model::stacks::StackProfile;
use heaptap_report::data::{Data, from_page};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The document printed by a command; findings in its input can end it with 6.
fn document(directory: &Path, arguments: &[&str]) -> Value {
    let output = heaptap(directory, arguments);
    let code = output.status.code();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(code, Some(0 | 6)), "{arguments:?}: {told}");
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// Every view of a dump by callsite, as shown by `top`, and the time of the dump.
fn of_top(numbers: &mut Numbers, directory: &Path, input: &Path, dump: &DumpId) -> Option<i64> {
    let (number, heap) = dump;
    let input = format!("{}@{number}", input.display());
    let arguments = [
        "top",
        &input,
        "--json",
        "--heap",
        heap,
        "--by",
        "callsite",
        "--all-frames",
        "-l",
        "0",
    ];
    let document = document(directory, &arguments);
    let heaps = document["heaps"].as_array().expect("heaps");
    assert_eq!(heaps.len(), 1, "one was named");
    assert_eq!(heaps[0]["dump"]["number"], *number);
    let mut totals: BTreeMap<String, i64> = BTreeMap::new();
    for row in heaps[0]["rows"].as_array().expect("rows") {
        let stack = row["stack"].as_array().expect("a stack").iter();
        let mut names: Vec<&str> = stack
            .map(|f| f["function"].as_str().expect("a name"))
            .collect();
        names.reverse();
        for (view, value) in row["self"].as_object().expect("views") {
            let value = value.as_i64().expect("a number");
            *totals.entry(view.clone()).or_default() += value;
            put(numbers, dump, view, &names, value);
        }
    }
    for (view, total) in heaps[0]["total"].as_object().expect("views") {
        let sum = totals.get(view).copied().unwrap_or(0);
        assert_eq!(total.as_i64(), Some(sum), "the total of {view}");
    }
    heaps[0]["dump"]["time_ns"].as_i64()
}

/// Every view of all dumps of a profile.
fn of_profile(profile: &StackProfile) -> Numbers {
    let mut numbers = Numbers::new();
    for dump in &profile.dumps {
        let id = (dump.facts.number, dump.facts.heap.clone());
        for (measure, column) in dump.measures.iter().zip(&dump.values.columns) {
            for (&node, &value) in dump.values.nodes.iter().zip(column) {
                let stack = profile.table.stack(node);
                let mut names: Vec<&str> = stack.map(|node| profile.table.name_of(node)).collect();
                names.reverse();
                put(&mut numbers, &id, &measure.name, &names, value);
            }
        }
    }
    numbers
}

fn of_report(directory: &Path, input: &Path) -> Numbers {
    let page = directory.join("report.html");
    let arguments = ["report", &*input.to_string_lossy(), "-o", "report.html"];
    let output = heaptap(directory, &arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(page.is_file(), "{told}");
    let page = std::fs::read_to_string(page).expect("UTF-8");
    let data = from_page(&page).expect("it has data");
    of_profile(&Data::decode(&data).expect("whole data").native)
}

fn demangled(name: impl AsRef<str>) -> String {
    demangle(name.as_ref()).into_owned()
}

/// Perfetto's tables: the changes at each callsite, summed up to the time of each dump.
struct Tables {
    allocations: Vec<Vec<Value>>,
    /// Names of each callsite, callers first.
    stacks: BTreeMap<i64, Vec<String>>,
}

impl Tables {
    fn new(directory: &Path, input: &Path) -> Tables {
        // Columns are named a, b, c … in the requested order.
        let rows = |sql: &str| -> Vec<Vec<Value>> {
            let input = input.to_string_lossy();
            let document = document(directory, &["query", &input, sql, "--json"]);
            let rows = document.as_array().expect("rows").iter();
            let row = |row: &Value| row.as_object().expect("a row").values().cloned().collect();
            rows.map(row).collect()
        };
        let int = |value: &Value| value.as_i64().expect("a number");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut symbols: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for row in
            rows("SELECT symbol_set_id AS a, name AS b FROM stack_profile_symbol ORDER BY id")
        {
            symbols.entry(int(&row[0])).or_default().push(text(&row[1]));
        }
        let frames: BTreeMap<i64, Vec<String>> = rows(
            "SELECT f.id AS a, coalesce(f.deobfuscated_name, f.name) AS b, f.symbol_set_id AS c, \
             m.name AS d, f.rel_pc AS e \
             FROM stack_profile_frame f LEFT JOIN stack_profile_mapping m ON f.mapping = m.id",
        )
        .iter()
        .map(|row| {
            let own = match &*text(&row[1]) {
                "" => nameless(&text(&row[3]), int(&row[4]) as u64),
                name => demangled(name),
            };
            let lines = row[2].as_i64().and_then(|set| symbols.get(&set));
            let known = lines.filter(|lines| lines.iter().any(|line| !line.is_empty()));
            // Outermost first.
            let lines = known.map(|lines| lines.iter().rev().map(demangled).collect());
            (int(&row[0]), lines.unwrap_or_else(|| vec![own]))
        })
        .collect();
        let mut stacks: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let callsites = "SELECT id AS a, parent_id AS b, frame_id AS c \
                         FROM stack_profile_callsite ORDER BY id";
        for row in rows(callsites) {
            let parent = row[1].as_i64().map(|parent| stacks[&parent].clone());
            let mut stack = parent.unwrap_or_default();
            stack.extend(frames[&int(&row[2])].iter().cloned());
            stacks.insert(int(&row[0]), stack);
        }
        let sql = "SELECT ts AS a, callsite_id AS b, count AS c, size AS d \
                   FROM heap_profile_allocation";
        Tables {
            allocations: rows(sql),
            stacks,
        }
    }

    /// Adds the unreleased and allocated values of a time.
    fn add(&self, numbers: &mut Numbers, dump: &DumpId, time: i64, views: &BTreeSet<String>) {
        for row in &self.allocations {
            let int = |at: usize| row[at].as_i64().expect("a number");
            if int(0) > time {
                continue;
            }
            let (count, size) = (int(2), int(3));
            let stack: Vec<&str> = self.stacks[&int(1)].iter().map(String::as_str).collect();
            let is_allocated = size >= 0;
            for (view, value, counts) in [
                ("objects", count, true),
                ("space", size, true),
                ("alloc_objects", count, is_allocated),
                ("alloc_space", size, is_allocated),
            ] {
                if counts && views.contains(view) {
                    put(numbers, dump, view, &stack, value);
                }
            }
        }
    }
}

fn without_zeros(numbers: Numbers) -> Numbers {
    numbers
        .into_iter()
        .filter(|(_, value)| *value != 0)
        .collect()
}

/// All surfaces of a trace of one process and heap against its pprofs.
fn all_agree(input: &Path) {
    let directory = tempfile::tempdir().expect("a folder");
    convert(directory.path(), input, &["-o", "pprof"]);
    let expected = of_pprofs(&directory.path().join("pprof"));
    let dumps: BTreeSet<DumpId> = expected.keys().map(|(dump, ..)| dump.clone()).collect();
    assert!(!dumps.is_empty(), "there is something to compare");
    let tables = Tables::new(directory.path(), input);
    let (mut shown, mut queried) = (Numbers::new(), Numbers::new());
    for dump in &dumps {
        let time = of_top(&mut shown, directory.path(), input, dump).expect("dumps have times");
        let keys = expected.keys().filter(|(at, ..)| at == dump);
        let views = keys.map(|(_, view, _)| view.clone()).collect();
        tables.add(&mut queried, dump, time, &views);
    }
    assert_same(&expected, &shown, "top");
    assert_same(&expected, &of_report(directory.path(), input), "report");
    assert_same(&expected, &without_zeros(queried), "query");
}

#[test]
fn top_report_and_query_have_the_numbers_of_the_pprofs() {
    for name in ["allheaps", "c_cont", "deep", "rust_cont_symbolized"] {
        all_agree(&fixture(&format!("conversions/{name}.pftrace")));
    }
}

/// A recording of Java and native code on the virtual phone, with labels and the files written by
/// `record`.
#[test]
fn a_recording_of_the_demo_has_the_numbers_of_the_pprofs_beside_it() {
    let directory = tempfile::tempdir().expect("a folder");
    let recording = crate::recorded::demo();
    let mut expected = of_pprofs(&recording);
    expected.retain(|(dump, ..), _| dump.1 != "java");
    let native: BTreeSet<DumpId> = expected.keys().map(|(dump, ..)| dump.clone()).collect();
    assert!(native.len() > 2, "there is a series");
    let mut shown = Numbers::new();
    for dump in &native {
        of_top(&mut shown, directory.path(), &recording, dump);
    }
    assert_same(&expected, &shown, "top");
    assert_same(
        &expected,
        &of_report(directory.path(), &recording),
        "report",
    );
}
