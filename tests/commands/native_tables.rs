//! `heaptap top` and `diff` of native heaps: the real binary on recordings of the virtual phone.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Arguments, Ended, assert_contains, assert_lacks};
use crate::recorded::{demo, home};

/// The call in the demo's app that leaks.
const LEAK: &str = "example::telemetry::EventHistory::Append";
/// One of its caches, which is full at the first snapshot.
const CACHE: &str = "example::feed::FeedCache::Copy";

fn heaptap(args: impl Arguments) -> Ended {
    let home = home();
    Ended::from_command(
        crate::program::heaptap()
            .args(args.list())
            .env("HEAPTAP_STATE_DIR", home.join("state"))
            .env("HEAPTAP_CACHE_DIR", home.join("cache")),
    )
}

fn expect(code: i32, args: impl Arguments) -> Ended {
    let ended = heaptap(args);
    ended.assert_code(code);
    ended
}

fn rec() -> String {
    demo().to_str().unwrap().to_owned()
}

fn dump(which: &str) -> String {
    format!("{}@{which}", rec())
}

/// Its output; it must exit with 0.
fn words(args: impl Arguments) -> String {
    expect(0, args).stdout
}

fn json(args: impl Arguments) -> Value {
    expect(0, (args, "--json")).json()
}

/// The first line below a table's headings.
fn first_row(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(heading));
    lines.nth(1).unwrap_or_default().to_owned()
}

const APP: &str = "com.example.app";
const VIEWS: [&str; 4] = ["space", "alloc_space", "objects", "alloc_objects"];

fn sum(rows: &Value, figure: &str, view: &str) -> i64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[figure][view].as_i64().unwrap()).sum()
}

#[test]
fn the_first_line_is_whose_memory_it_is() {
    let text = words(&["top", &rec()]);
    let row = first_row(&text, "cumulative");
    assert_contains(&row, LEAK);
    assert_contains(&row, "libexample.so");
    assert!(row.contains('±'), "{row}");
    let heading = text.lines().next().unwrap();
    for part in [
        "rec@after",
        "dump 6 of 7",
        "com.example.app",
        "libc.malloc",
        "sampled every 4.0 KiB",
    ] {
        assert_contains(&heading, part);
    }
    assert_lacks(&text, "malloc  libc.so");
    assert!(!text.contains('\x1b'), "no colours where nobody looks");
    let whole = words(&["top", &rec(), "--all-frames"]);
    assert!(
        first_row(&whole, "cumulative").ends_with("libc.so"),
        "{whole}"
    );
}

#[test]
fn every_grouping_holds_what_the_manifest_says() {
    let manifest = std::fs::read_to_string(demo().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dumps = manifest["dumps"].as_array().unwrap();
    for which in ["before", "after", "last"] {
        for by in [
            "callsite", "function", "library", "file", "line", "class", "package",
        ] {
            let document = json(&["top", &dump(which), "--by", by, "-l", "0"]);
            let heap = &document["heaps"][0];
            let is_it = |dump: &&Value| {
                ["pid", "heap", "number"]
                    .iter()
                    .all(|key| dump[key] == heap["dump"][key])
            };
            let dump = dumps.iter().find(is_it).unwrap();
            for view in VIEWS {
                let total = dump["totals"][view].as_i64().unwrap();
                assert_eq!(heap["total"][view], total, "{which} {by} {view}");
                assert_eq!(
                    sum(&heap["rows"], "self", view),
                    total,
                    "{which} {by} {view}"
                );
            }
            let rows = heap["rows"].as_array().unwrap();
            assert_eq!(heap["rows_total"], rows.len());
            for row in rows {
                let figure = |figure: &str| row[figure]["space"].as_i64().unwrap();
                assert!(figure("self") <= figure("cumulative"), "{row}");
                let limits = &row["self_limits"];
                assert!(limits["low"].as_i64().unwrap() <= figure("self"), "{row}");
                assert!(limits["high"].as_i64().unwrap() >= figure("self"), "{row}");
            }
        }
    }
}

#[test]
fn trees_hold_all_bytes_whatever_is_pruned() {
    for flags in [
        &["--tree"][..],
        &["--tree", "--invert"],
        &["--tree", "--depth", "3"],
    ] {
        let document = json(&[&["top", &rec()], flags].concat());
        let heap = &document["heaps"][0];
        let tree = &heap["tree"];
        let nodes = tree["nodes"].as_array().unwrap();
        let left_out = |of: &Value| of["left_out"]["cumulative"]["space"].as_i64().unwrap_or(0);
        let own: i64 = nodes
            .iter()
            .map(|node| node["self"]["space"].as_i64().unwrap())
            .sum();
        // Inverted, the roots own all bytes, and the nodes below repeat them.
        let rest: i64 = match flags.contains(&"--invert") {
            true => 0,
            false => nodes.iter().map(left_out).sum(),
        };
        let total = heap["total"]["space"].as_i64().unwrap();
        assert_eq!(own + rest + left_out(tree), total, "{flags:?}");
        for node in nodes {
            if let Some(above) = node["parent"].as_u64() {
                let above = &nodes[usize::try_from(above).unwrap()];
                assert_eq!(above["depth"].as_u64().unwrap() + 1, node["depth"]);
            }
        }
    }
    let drawn = words(&["top", &rec(), "--tree", "--invert"]);
    assert!(first_row(&drawn, "cumulative").contains(LEAK), "{drawn}");
    assert_contains(&drawn, "more)");
}

#[test]
fn a_dump_a_directory_a_trace_and_a_pprof_are_one() {
    let directory = demo();
    let profile = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut profiles = profile.map(|path| path.to_string_lossy().into_owned());
    let after = profiles.find(|path| path.contains("heap_dump.6.")).unwrap();
    let trace = directory.join("symbolized-trace");
    let rows = |input: &str| {
        let document = json(&["top", input, "-l", "0"]);
        let rows = document["heaps"][0]["rows"].as_array().unwrap().clone();
        let mut rows: Vec<String> = rows
            .iter()
            .map(|row| {
                format!(
                    "{} {} {}",
                    row["name"], row["library"], row["self"]["space"]
                )
            })
            .collect();
        rows.sort();
        rows
    };
    let all = rows(&rec());
    assert_eq!(rows(&dump("after")), all);
    assert_eq!(rows(&dump("6")), all);
    assert_eq!(rows(&after), all);
    // Labels are in the manifest, not in the trace.
    assert_eq!(rows(trace.to_str().unwrap()), rows(&dump("7")));
    assert_eq!(rows(&dump("last")), rows(&dump("7")));
}

#[test]
fn filters_narrow_what_is_shown_and_say_so() {
    let text = words(&["top", &rec(), "--focus", "FeedCache"]);
    assert!(first_row(&text, "cumulative").contains(CACHE), "{text}");
    assert_contains(&text, "shown: ");
    assert_lacks(&text, LEAK);
    let hidden = json(&["top", &rec(), "--hide", "EventHistory"]);
    let heap = &hidden["heaps"][0];
    assert_eq!(
        heap["shown"], heap["total"],
        "hidden frames give theirs to their callers"
    );
    assert_contains(
        heap["rows"][0]["name"].as_str().unwrap(),
        "EventRecorder::Subscribe",
    );
    let none = words(&["top", &rec(), "--focus", "nothing is called that"]);
    assert_contains(&none, "nothing matches");
    // Every stack has `malloc`, which is hidden.
    let kept = json(&["top", &rec(), "--ignore", "^malloc$"]);
    assert_eq!(kept["heaps"][0]["shown"], heap["total"]);
    let none = words(&["top", &rec(), "--focus", "^malloc$"]);
    assert_contains(&none, "nothing matches");
    let all = json(&["top", &rec(), "--focus", "^malloc$", "--all-frames"]);
    assert_ne!(all["heaps"][0]["shown"]["space"], 0);
    let none = words(&["top", &rec(), "--ignore", "."]);
    assert_contains(&none, "`--ignore` leaves nothing of ");
    assert_lacks(&none, "nothing matches");
    let csv = words(&["top", &rec(), "--csv", "--by", "library", "-l", "0"]);
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].starts_with("dump,process,pid,heap,name,library,file,line,self_space"));
    assert!(rows[1].contains("libexample.so"), "{csv}");
}

#[test]
fn views_order_rows_and_a_view_that_is_not_there_is_refused() {
    for view in VIEWS {
        let document = json(&["top", &rec(), "--view", view, "-l", "0"]);
        let rows = document["heaps"][0]["rows"].as_array().unwrap().clone();
        let figures: Vec<i64> = rows
            .iter()
            .map(|row| row["self"][view].as_i64().unwrap())
            .collect();
        assert!(figures.is_sorted_by(|a, b| a >= b), "{view}: {figures:?}");
    }
    expect(2, &["top", &rec(), "--view", "cpu"]).assert_stderr("alloc_space");
    let output = heaptap(&["top", &rec(), "--by", "object"]);
    // The demo's Java heap has its own directory, and is named after the recording.
    output.assert_stdout("rec  HPROF");
    expect(2, &["top", &rec(), "--by", "object", "--hide", "x"]);
}

#[test]
fn without_a_limit_only_rows_without_a_value_are_left_out_and_named_so() {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/conversions/c_cont.pftrace"
    );
    for by in ["function", "callsite"] {
        let rows = |sort: &str| {
            let document = json(&["top", trace, "--by", by, "--sort", sort]);
            let all = document["heaps"][0]["rows"].as_array().unwrap().clone();
            let zero = |row: &&Value| row["cumulative"]["space"] == 0;
            (all.len(), all.iter().filter(zero).count())
        };
        for sort in ["cumulative", "name"] {
            let (all, zero) = rows(sort);
            assert!(zero > 0 && zero < all);
            let text = words(&["top", trace, "--by", by, "--sort", sort, "-l", "0"]);
            assert_contains(&text, &format!("… and {zero} fully released"));
            assert_lacks(&text, "`-l 0`");
            let text = words(&["top", trace, "--by", by, "--sort", sort, "-l", "3"]);
            let more = format!(
                "… and {} more (`-l 0` shows all), {zero} fully",
                all - zero - 3
            );
            assert_contains(&text, &more);
        }
    }
}

#[test]
fn a_profile_without_the_names_of_its_columns_is_an_error() {
    let directory = std::fs::read_dir(rec()).unwrap().flatten();
    let profile = directory.map(|entry| entry.path()).find(|path| {
        let name = path.to_string_lossy();
        name.contains("heap_dump") && name.ends_with(".pb.gz")
    });
    let whole = profile.unwrap();
    let bytes = std::fs::read(&whole).unwrap();
    let cut = home().join("cut.pb.gz");
    // The names are at the end.
    std::fs::write(&cut, &bytes[..bytes.len() / 3]).unwrap();
    let (cut, whole) = (cut.to_str().unwrap(), whole.to_str().unwrap());
    for args in [
        &["top", cut][..],
        &["leaks", cut, whole],
        &["diff", cut, whole],
    ] {
        expect(8, args).assert_stderr("the names of its columns are missing");
    }
}

#[test]
fn dumps_of_one_run_the_wrong_way_round_are_no_two_runs() {
    let backwards = words(&["diff", &dump("after"), &dump("before")]);
    assert_contains(&backwards, "the first dump is the later one");
    assert_lacks(&backwards, "two runs");
}

#[test]
fn profiles_of_one_recording_are_compared_as_its_dumps_are() {
    let profile = |number: u32| {
        let mut files = std::fs::read_dir(rec()).unwrap().flatten();
        let start = format!("heap_dump.{number}.");
        let is_it =
            |file: &std::fs::DirEntry| file.file_name().to_string_lossy().starts_with(&start);
        files
            .find(is_it)
            .unwrap()
            .path()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let profiles = json(&["diff", &profile(1), &profile(2)]);
    let dumps = json(&["diff", &dump("1"), &dump("2")]);
    assert_eq!(profiles["heaps"][0]["same_run"], true);
    assert_eq!(profiles["heaps"][0]["total"], dumps["heaps"][0]["total"]);
    let backwards = words(&["diff", &profile(2), &profile(1)]);
    let said = "the first dump is the later one";
    assert_contains(&backwards, said);
}

#[test]
fn what_grew_comes_first_and_the_rest_is_said_to_be_noise() {
    // All of them: their order by size differs between recordings.
    let text = words(&["diff", "--noise", &dump("before"), &dump("after")]);
    assert!(first_row(&text, "growth").contains(LEAK), "{text}");
    let (certain, noise) = text.split_once("Within sampling error").unwrap();
    assert!(!certain.contains(CACHE) && noise.contains(CACHE), "{text}");
    assert_contains(&text, "dumps of one run");
    let document = json(&["diff", &dump("before"), &dump("after")]);
    let heap = &document["heaps"][0];
    assert_eq!(heap["same_run"], true);
    let first = &heap["rows"][0];
    assert!(first["name"].as_str().unwrap().contains(LEAK));
    assert_eq!(
        (&first["self"]["confirmed"], &first["self"]["status"]),
        (&true.into(), &"grown".into())
    );
    let bytes = |side: &str| heap["total"][side]["bytes"].as_f64().unwrap();
    assert_eq!(
        heap["total"]["growth"]["value"],
        bytes("after") - bytes("before")
    );
    let rows = heap["rows"].as_array().unwrap();
    let grown: f64 = rows
        .iter()
        .map(|row| row["self"]["growth"]["value"].as_f64().unwrap())
        .sum();
    assert_eq!(
        heap["total"]["growth"]["value"], grown,
        "rows are all that changed"
    );
    let per = json(&["diff", &dump("before"), &dump("after"), "--rounds", "8"]);
    assert_eq!(per["heaps"][0]["total"]["growth"]["value"], grown / 8.0);
    let two = ["diff", &dump("before"), &dump("after"), "--rounds", "8,9"];
    assert_eq!(ended(&two).1, Some(2));
    let same = words(&["diff", &dump("after"), &dump("after")]);
    assert_contains(&same, "no change");
    assert_contains(&same, "nothing changed");
}

#[test]
fn limits_on_growth_are_kept_exceeded_or_open() {
    let code = |limit: &str| {
        let (a, b) = (dump("before"), dump("after"));
        let output = heaptap(&["diff", &a, &b, "--fail-over", limit]);
        (output.code(), output.stderr)
    };
    let document = json(&["diff", &dump("before"), &dump("after")]);
    let growth = &document["heaps"][0]["total"]["growth"];
    let value = growth["value"].as_f64().unwrap();
    assert_eq!(code("1mb").0, Some(9));
    assert_eq!(code("1gb").0, Some(0));
    let (open, said) = code(&format!("{value:.0}"));
    assert_eq!(open, Some(12));
    assert_contains(&said, "cannot decide");
}

#[test]
fn heaps_that_do_not_tell_what_is_held_are_refused() {
    let directory = home().join("maximum");
    let name = directory.to_str().unwrap();
    let recorded = heaptap(&[
        "record",
        "--virtual",
        "-n",
        "com.example.app",
        "--dump-at-max",
        "-d",
        "3s",
        "-o",
        name,
    ]);
    assert!(recorded.status.success(), "{recorded}");
    let text = words(&["top", name]);
    assert_contains(&text, "at the maximum");
    expect(2, &["diff", name, &rec()]).assert_stderr("dump-at-max");
}

#[test]
fn two_recordings_are_joined_by_name() {
    let directory = home().join("again");
    let name = directory.to_str().unwrap();
    let recorded = heaptap(&["demo", "-o", name]);
    assert!(recorded.status.success(), "{recorded}");
    let document = json(&["diff", &format!("{name}@before"), &dump("after")]);
    let heap = &document["heaps"][0];
    assert_eq!(heap["same_run"], false);
    let first = &heap["rows"][0];
    assert!(first["name"].as_str().unwrap().contains(LEAK), "{first}");
    assert_eq!(
        first["self"]["status"], "grown",
        "functions meet under their names"
    );
    let width = |diff: &Value| {
        let growth = &diff["heaps"][0]["total"]["growth"];
        growth["high"].as_f64().unwrap() - growth["low"].as_f64().unwrap()
    };
    let of_one_run = json(&["diff", &dump("before"), &dump("after")]);
    assert!(width(&document) > width(&of_one_run));
    let text = words(&["diff", name, &rec()]);
    assert_contains(&text, "two runs");
    let divided = json(&["diff", name, &rec(), "--rounds", "10,20"]);
    let total = &divided["heaps"][0]["total"];
    let bytes = |side: &str| total[side]["bytes"].as_f64().unwrap();
    let growth = bytes("after") / 20.0 - bytes("before") / 10.0;
    let told = total["growth"]["value"].as_f64().unwrap();
    assert!((told - growth).abs() < 1.0, "{told} {growth}");
}

#[test]
fn a_difference_goes_into_a_page_and_a_profile() {
    let page = home().join("grown.html");
    let profile = home().join("grown.pb.gz");
    let (page_name, profile_name) = (page.to_str().unwrap(), profile.to_str().unwrap());
    let (a, b) = (dump("before"), dump("after"));
    let text = words(&["diff", &a, &b, "-o", page_name]);
    assert!(first_row(&text, "growth").contains(LEAK), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Content-Security-Policy") && html.contains("heaptap-data"));
    // Existing profiles are not overwritten without `--force`.
    let profiled = ["diff", &a, &b, "-o", profile_name];
    words(&profiled);
    expect(2, &profiled);
    words(&[&profiled[..], &["--force"]].concat());
    // The file extension selects the format; unknown ones are refused.
    expect(2, &["diff", &a, &b, "-o", "grown.txt"]);
    let shown = words(&["top", profile_name, "--view", "space"]);
    assert!(first_row(&shown, "cumulative").contains(LEAK), "{shown}");
}

#[test]
fn top_of_a_difference_shows_changes_and_their_shares_of_all_changes() {
    let fixture = format!(
        "{}/fixtures/conversions/c_cont.pftrace",
        env!("CARGO_MANIFEST_DIR")
    );
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("d.pb.gz");
    let path = path.to_str().unwrap();
    let sides = [format!("{fixture}@5"), format!("{fixture}@last")];
    words(&["diff", &sides[0], &sides[1], "-o", path]);
    let text = words(&["top", path]);
    assert_contains(&text, "difference of two dumps");
    assert_contains(&text, "-13.9 MiB change in unreleased bytes\n");
    assert_lacks(&text, "nearly all memory was freed");
    // The largest change comes first.
    assert!(
        first_row(&text, "cumulative").contains("peak_build"),
        "{text}"
    );
    for rows in [
        &json(&["top", path])["heaps"][0]["rows"],
        &json(&["top", path, "--tree"])["heaps"][0]["tree"]["nodes"],
    ] {
        for row in rows.as_array().unwrap() {
            let value = row["cumulative"]["space"].as_i64().unwrap();
            let share = row["cumulative_share"].as_f64().unwrap();
            assert!(share.abs() <= 1.0 && share * value as f64 >= 0.0, "{row}");
        }
    }
    // Growth alone has no negative values; the profile says what it is.
    words(&[
        "diff",
        &format!("{fixture}@1"),
        &sides[0],
        "-o",
        path,
        "--force",
    ]);
    let text = words(&["top", path]);
    assert_contains(&text, "change in unreleased bytes");
}

/// Its stderr and exit code.
pub(crate) fn ended(args: &[&str]) -> (String, Option<i32>) {
    let output = heaptap(args);
    let code = output.code();
    (output.stderr, code)
}

#[test]
fn checks_that_match_nothing_are_inconclusive_and_say_so() {
    let (rec, a, b) = (rec(), dump("before"), dump("after"));
    let leaks = ["leaks", &rec, "--fail"];
    let diff = ["diff", &a, &b, "--fail-over", "1gb"];
    for filter in [
        ["--focus", "NoSuchFunction"],
        // A capital makes a pattern case-sensitive.
        ["--focus", "eventHistory"],
        ["--ignore", "."],
        ["--hide", "."],
        ["--show", "NoSuchFunction"],
        ["--show-from", "NoSuchFunction"],
    ] {
        for check in [&leaks[..], &diff[..]] {
            let (said, code) = ended(&[check, &filter].concat());
            assert_eq!(code, Some(12), "{check:?} {filter:?} {said}");
            assert!(said.contains("nothing was checked"), "{filter:?} {said}");
        }
        let output = heaptap(&["leaks", &rec, filter[0], filter[1]]);
        let message = match filter[0] {
            "--ignore" => "`--ignore` leaves nothing of any dump",
            _ => "nothing matches",
        };
        output.assert_stdout(message);
        output.refute_stdout("No confirmed leaks");
    }
    for (place, code_without) in [
        (["-n", "com.example.other"], 2),
        (["--heap", "no.such.heap"], 2),
        (["--at", "no-such-label"], 2),
    ] {
        // Both sides of the difference name their dump.
        let checks = match place[0] {
            "--at" => vec![&leaks[..]],
            _ => vec![&leaks[..], &diff[..]],
        };
        for check in checks {
            let (said, code) = ended(&[check, &place].concat());
            assert_eq!(code, Some(12), "{check:?} {place:?} {said}");
            assert!(said.contains("nothing was checked"), "{place:?} {said}");
        }
        let (_, code) = ended(&["leaks", &rec, place[0], place[1]]);
        assert_eq!(code, Some(code_without), "no check, no verdict: {place:?}");
    }
    let (said, code) = ended(&["leaks", &format!("{rec}@nowhere"), &b, "--fail"]);
    assert_eq!(code, Some(12), "{said}");
    // Matching rows are still checked.
    let (said, code) = ended(&[&leaks[..], &["--focus", "eventhistory"]].concat());
    assert_eq!(code, Some(9), "{said}");
    assert_eq!(
        ended(&[&diff[..], &["--focus", "eventhistory"]].concat()).1,
        Some(0)
    );
}

#[test]
fn a_warm_up_that_leaves_nothing_to_compare_is_refused() {
    let (said, code) = ended(&["leaks", &rec(), "--warmup", "99"]);
    assert_eq!(code, Some(2), "{said}");
    assert_contains(&said, "--warmup excludes 6 of 6 dumps");
    assert_contains(&said, "`--warmup 4` or less");
}

#[test]
fn filters_are_case_sensitive_only_with_a_capital() {
    let rows = |filter: &[&str]| {
        let args = ["top", &rec(), "-l", "0", "--by", "callsite"];
        json(&[&args[..], filter].concat())["heaps"][0]["rows"].clone()
    };
    let named = rows(&["--focus", "EventHistory"]);
    assert!(!named.as_array().unwrap().is_empty());
    assert_eq!(rows(&["--focus", "eventhistory"]), named);
    assert_eq!(rows(&["--focus", r"event\S*history::append"]), named);
    assert_eq!(rows(&["--focus", "(?i)EVENTHISTORY"]), named);
    for other in ["Eventhistory", "(?-i)eventhistory"] {
        let rows = rows(&["--focus", other]);
        assert!(rows.as_array().unwrap().is_empty(), "{other}: {rows}");
    }
    for flag in ["--ignore", "--hide", "--show", "--show-from"] {
        let capital = rows(&[flag, "EventHistory"]);
        assert_eq!(rows(&[flag, "eventhistory"]), capital, "{flag}");
        assert_ne!(capital, rows(&[]), "{flag}");
    }
}

#[test]
fn growth_of_what_matches_stands_beside_what_that_holds() {
    let text = words(&["leaks", &rec(), "--focus", "Listener"]);
    let line = text
        .lines()
        .find(|line| line.contains("matching stacks"))
        .unwrap();
    let document = json(&["leaks", &rec(), "--focus", "Listener"]);
    let heap = &document["series"][0]["heaps"][0];
    let held = heap["unreleased_bytes"].as_i64().unwrap();
    let all = heap["dumps"].as_array().unwrap().last().unwrap()["space"]
        .as_i64()
        .unwrap();
    assert!(0 < held && held < all / 10, "{heap}");
    let size = format!("{} of", heaptap_base::units::ByteSize(held as u64));
    assert_contains(&line, &size);
}

/// Bytes of a size as shown in tables.
fn bytes(size: &str) -> Option<f64> {
    let (number, unit) = size.trim().trim_start_matches('~').split_once(' ')?;
    let power = ["B", "KiB", "MiB", "GiB"].iter().position(|u| *u == unit)?;
    Some(number.parse::<f64>().ok()? * 1024f64.powi(power as i32))
}

#[test]
fn rounding_makes_no_part_larger_than_its_whole() {
    let text = words(&["top", &rec(), "-l", "0"]);
    let mut lines = text.lines().skip_while(|line| !line.contains("cumulative"));
    let heading = lines.next().unwrap();
    let end = |name: &str| heading.find(name).unwrap() + name.len();
    // Cells and headings end at the same columns.
    let columns = ["self", "cumulative", "alloc_space"].map(end);
    let mut seen = 0;
    for line in lines.take_while(|line| !line.starts_with('…')) {
        let size = |end: usize| {
            let cell: String = line.chars().take(end).collect();
            let at = cell.trim_end().rfind("  ").map_or(0, |at| at + 2);
            bytes(&cell[at..])
        };
        let [Some(own), Some(cumulative), allocated] = columns.map(size) else {
            continue;
        };
        assert!(own <= cumulative, "{line}");
        assert!(allocated.is_none_or(|all| own <= all), "{line}");
        seen += 1;
    }
    assert!(seen >= 5, "{text}");
}

#[test]
fn leaks_per_iteration_name_its_time() {
    let text = words(&["leaks", &rec()]);
    assert_contains(&text, "\nan iteration took ");
    assert_contains(&text, "grows with time");
}

#[test]
fn rows_of_churn_by_one_line_are_told_apart() {
    let text = words(&["leaks", &rec()]);
    let (_, churn) = text.split_once("Churn:").unwrap();
    let heading = churn.lines().nth(1).unwrap();
    let rows: Vec<&str> = churn.lines().skip(2).take(5).collect();
    let begin = heading.find("function").unwrap();
    let function = |row: &&str| -> String { row.chars().skip(begin).collect() };
    let mut told: Vec<String> = rows.iter().map(function).collect();
    let alike = told
        .iter()
        .filter(|row| row.contains("FeedView.onDraw"))
        .count();
    assert!(alike >= 2, "{rows:#?}");
    let all = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), all, "{rows:#?}");
}

#[test]
fn counts_are_called_samples_where_heaps_are_sampled() {
    let text = words(&["top", &rec()]);
    let heading = text.lines().find(|line| line.contains("cumulative"));
    let heading = heading.unwrap();
    assert_contains(&heading, " samples  alloc_samples  ");
    assert_lacks(&heading, "objects");
    assert_contains(&text, "sampled allocations unreleased");
    // JSON and CSV keep pprof's names.
    let document = json(&["top", &rec()]);
    let total = &document["heaps"][0]["total"];
    assert!(total["objects"].as_i64() < total["alloc_objects"].as_i64());
    let csv = words(&["top", &rec(), "--csv"]);
    assert_contains(&csv, "self_alloc_objects");
    let exact = home().join("exact");
    let exact = exact.to_str().unwrap();
    let recorded = heaptap(&[
        "record",
        "-n",
        APP,
        "-i",
        "1",
        "--duration",
        "2s",
        "--virtual=speed=20",
        "-o",
        exact,
    ]);
    assert!(recorded.status.success(), "{recorded}");
    let text = words(&["top", exact]);
    assert_contains(&text, " objects  alloc_objects  ");
    for text in [recorded.stdout, text] {
        assert_contains(&text, "allocations");
        assert_lacks(&text, "sampled allocations");
    }
    // Nor does the profile.
    let profile = std::fs::read_dir(exact).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.to_str()?.ends_with(".pb.gz").then_some(path)
    });
    let packed = std::fs::read(profile.unwrap()).unwrap();
    let mut whole = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed), &mut whole).unwrap();
    let whole = String::from_utf8_lossy(&whole);
    assert!(whole.contains("every allocation is recorded"));
    assert!(!whole.contains("sampled allocations"));
}

#[test]
fn figures_of_a_process_that_ran_before_are_said_to_lack_that() {
    let (a, b) = (dump("before"), dump("after"));
    for args in [
        &["top", &a, "--view", "alloc_space"][..],
        &["top", &a, "--tree"],
        &["diff", &a, &b, "--view", "alloc_space"],
    ] {
        let text = words(args);
        let heading = text.lines().next().unwrap();
        assert!(heading.contains("attached after start"), "{text}");
        assert_contains(&text, "earlier allocations are missing");
    }
    let launched = home().join("launched");
    let launched = launched.to_str().unwrap();
    let recorded = heaptap(&[
        "record",
        "-n",
        APP,
        "--launch",
        "--no-running",
        "--duration",
        "2s",
        "--virtual=speed=20",
        "-o",
        launched,
    ]);
    assert!(recorded.status.success(), "{recorded}");
    let text = words(&["top", launched]);
    assert_lacks(&text, "attached after start");
}

#[test]
fn one_total_has_one_error_wherever_it_is_shown() {
    let directory = home().join("totals");
    std::fs::create_dir_all(&directory).unwrap();
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/conversions");
    for trace in [
        "deep",
        "c_cont",
        "clonevm_teardown",
        "jit",
        "phone_tracedkill",
    ] {
        let rec = directory.join(trace);
        std::fs::create_dir_all(&rec).unwrap();
        let path = rec.join("raw-trace");
        std::fs::copy(fixtures.join(format!("{trace}.pftrace")), &path).unwrap();
        let rec = rec.to_str().unwrap();
        let printed = |args: &[&str]| heaptap(args).stdout;
        let top = printed(&["top", rec]);
        let total = top
            .lines()
            .nth(1)
            .unwrap()
            .split(" unreleased")
            .next()
            .unwrap()
            .to_owned();
        assert!(total.contains('±'), "{trace}: {top}");
        let reconciled = printed(&["meminfo", rec, "--reconcile"]);
        assert!(
            reconciled.contains(&format!("{total}  ")),
            "{trace}: {total} {reconciled}"
        );
        let page = printed(&["report", rec, "-o", "-"]);
        assert!(
            page.contains(&format!("{total} in total")),
            "{trace}: {total}"
        );
    }
}

#[test]
fn a_tree_has_one_order() {
    expect(2, &["top", &rec(), "--tree", "--sort", "self"])
        .assert_stderr("trees are sorted by cumulative value");
    words(&["top", &rec(), "--tree", "--sort", "cumulative"]);
}
