//! Lines of Rust by room against the ceilings of `weight.txt`.
//!
//! A line counts once, and blank lines do not count: `//` lines are documentation; files and blocks
//! that only tests compile are tests; the rest is code. A room is a crate, a directory of `src`, or
//! a directory at the top.
//!
//! The table is a ratchet: `UPDATE_DOCS=1 cargo test --test architecture weight` lowers each
//! ceiling to the room's weight and adds new rooms. It raises none: a ceiling rises only by hand,
//! with a line above its row that names the capability it pays for.

use super::sources::root;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Lines below its ceiling at which a room has to lower it: small changes do not touch the table.
const MAX_SLACK: usize = 100;

/// Lines of a room, or their ceilings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weight {
    code: usize,
    tests: usize,
}

fn room(place: &str) -> String {
    let names: Vec<&str> = place.split('/').collect();
    match names[..] {
        ["crates", package, ..] => format!("crates/{package}"),
        ["src", directory, _, ..] => format!("src/{directory}"),
        _ => names[0].to_owned(),
    }
}

/// Whether only tests, benchmarks or examples compile the file.
fn is_of_tests(place: &str) -> bool {
    let (directories, file) = place.rsplit_once('/').unwrap_or(("", place));
    let of_tests = ["tests", "benches", "fuzz", "examples", "testing"];
    directories.split('/').any(|name| of_tests.contains(&name))
        || matches!(file, "tests.rs" | "testing.rs" | "fixture.rs")
        || file.ends_with("_test.rs")
        || file.ends_with("_tests.rs")
}

/// Opened minus closed braces of a line.
fn depth_of(line: &str) -> isize {
    let count = |brace| line.matches(brace).count().cast_signed();
    count('{') - count('}')
}

fn weigh(place: &str, text: &str) -> Weight {
    let mut weight = Weight::default();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if is_of_tests(place) {
        weight.tests = lines.count();
        return weight;
    }
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            weight.tests += 1;
            let mut depth = 0;
            // The item: its other attributes, its first line, and what its braces enclose.
            for line in lines.by_ref() {
                weight.tests += 1;
                if depth == 0 && line.starts_with("#[") {
                    continue;
                }
                depth += depth_of(line);
                if depth <= 0 {
                    break;
                }
            }
        } else if !line.starts_with("//") {
            weight.code += 1;
        }
    }
    weight
}

fn rooms() -> BTreeMap<String, Weight> {
    let mut rooms: BTreeMap<String, Weight> = BTreeMap::new();
    let tops = [
        "benches", "crates", "fixtures", "fuzz", "proto", "src", "tests",
    ];
    let mut directories: Vec<_> = tops.iter().map(|top| root().join(top)).collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.expect("a directory can be read").path();
            if path.is_dir() {
                // Build output of packages that are not in the workspace.
                if !path.ends_with("target") {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                let place = path.strip_prefix(root()).expect("in the repository");
                let place = place.to_string_lossy().replace('\\', "/");
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let weight = weigh(&place, &text);
                let room = rooms.entry(room(&place)).or_default();
                room.code += weight.code;
                room.tests += weight.tests;
            }
        }
    }
    rooms
}

/// The rows of the table by room, each with the comments above it.
fn table(text: &str) -> BTreeMap<String, (Weight, String)> {
    let mut rows = BTreeMap::new();
    let mut comments = String::new();
    for line in text.lines().skip_while(|line| !line.is_empty()).skip(1) {
        if line.starts_with('#') {
            let _ = writeln!(comments, "{line}");
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [room, code, tests] = cells[..] else {
            panic!("a row has a room, its code and its tests: {line}");
        };
        let count = |cell: &str| {
            cell.parse()
                .unwrap_or_else(|_| panic!("a number in {line}"))
        };
        let ceiling = Weight {
            code: count(code),
            tests: count(tests),
        };
        rows.insert(room.to_owned(), (ceiling, std::mem::take(&mut comments)));
    }
    rows
}

const HEADER: &str = "\
# Ceilings of the rooms in lines of Rust: code, tests (see weight.rs).
# A row rises only by hand, below a line that names the capability it pays for.
";

/// Lowers the ceilings to what the rooms weigh.
fn lowered(rows: &BTreeMap<String, (Weight, String)>, rooms: &BTreeMap<String, Weight>) -> String {
    let mut text = format!("{HEADER}\n");
    for (room, weight) in rooms {
        let (ceiling, comments) = rows.get(room).cloned().unwrap_or((*weight, String::new()));
        let code = weight.code.min(ceiling.code);
        let tests = weight.tests.min(ceiling.tests);
        let _ = writeln!(text, "{comments}{room:24} {code:7} {tests:7}");
    }
    text
}

#[test]
fn weight_of_rooms_stays_below_ceilings() {
    let path: &Path = &root().join("tests/architecture/weight.txt");
    let text = fs::read_to_string(path).expect("the table is there");
    let rows = table(&text);
    let rooms = rooms();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, lowered(&rows, &rooms)).expect("the table can be written");
    }
    let mut wrong = Vec::new();
    for (room, weight) in &rooms {
        let ceiling = rows.get(room).map(|row| row.0).unwrap_or_default();
        for (kind, lines, most) in [
            ("code", weight.code, ceiling.code),
            ("tests", weight.tests, ceiling.tests),
        ] {
            if lines > most {
                wrong.push(format!("{room}: {lines} lines of {kind}, at most {most}"));
            } else if lines + MAX_SLACK < most {
                wrong.push(format!("{room}: {lines} lines of {kind}, lower {most}"));
            }
        }
    }
    let gone = rows.keys().filter(|room| !rooms.contains_key(*room));
    wrong.extend(gone.map(|room| format!("{room}: has no sources, remove its row")));
    assert!(
        wrong.is_empty(),
        "tests/architecture/weight.txt has it otherwise; take lines out, or lower its rows with \
         UPDATE_DOCS=1:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn each_line_is_weighed_once() {
    let text = "\
//! Doc.
use a::b;

#[cfg(test)]
#[allow(dead_code)]
mod tests {
    fn f() {
        if x {}
    }
}
fn g() {} // A comment after code.
#[cfg(test)]
use c::d;
fn h() {}
";
    let weight = |place| weigh(place, text);
    assert_eq!(weight("src/a/b.rs"), Weight { code: 3, tests: 9 });
    for place in [
        "tests/a.rs",
        "crates/a/src/tests.rs",
        "crates/a/examples/b.rs",
    ] {
        assert_eq!(weight(place), Weight { code: 0, tests: 13 });
    }
    let rooms = [
        "crates/a/src/b/c.rs",
        "src/a/b.rs",
        "src/lib.rs",
        "tests/a/b.rs",
    ]
    .map(room);
    assert_eq!(rooms, ["crates/a", "src/a", "src", "tests"]);
}

#[test]
fn ceilings_are_lowered_and_never_raised() {
    let text = format!("{HEADER}\n# For a capability.\na 10 20\nb 5 5\n");
    let rooms = [("a", 8, 30), ("c", 1, 2)];
    let rooms = rooms.map(|(room, code, tests)| (room.to_owned(), Weight { code, tests }));
    let lowered = lowered(&table(&text), &BTreeMap::from(rooms));
    let rows: Vec<&str> = lowered.lines().skip(3).collect();
    let [reason, a, c] = rows[..] else {
        panic!("a reason and two rows: {lowered}");
    };
    assert_eq!(reason, "# For a capability.");
    let cells = |row: &str| {
        row.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(cells(a), ["a", "8", "20"]);
    assert_eq!(cells(c), ["c", "1", "2"]);
}
