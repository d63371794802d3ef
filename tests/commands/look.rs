//! `heaptap top`, `paths` and `diff` as programs: the real binary on dumps with known figures
//! (fixtures/MANIFEST.toml describes them).
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
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

#[test]
fn top_shows_where_the_memory_went_at_one_look() {
    let text = words(&["top", &after()]);
    let line = |part: &str| {
        let line = text.lines().find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("no {part} in\n{text}"))
            .to_owned()
    };
    let registry = line("lab.LeakLab.REGISTRY");
    assert!(registry.contains("1.7 MiB"), "{registry}");
    assert!(
        registry.contains("java.util.ArrayList  of 180 × LeakLab$Listener  ← lab.LeakLab.REGISTRY"),
        "{registry}"
    );
    assert!(line("lab.LeakLab.LEAKED").contains("of 5 × LeakLab$DetailActivity"));
    assert!(line("lab.LeakLab.HUGE").contains("1.4 MiB"));
    assert!(line("unreachable, not yet collected").contains("objects"));
    // Listeners appear below their list, and in the table of classes.
    assert_eq!(text.matches("LeakLab$Listener").count(), 2, "{text}");
    assert!(!text.contains('\x1b'), "no colours where nobody looks");
}

#[test]
fn figures_in_json_csv_and_text_agree() {
    let document = json(&["top", &after(), "--by", "class"]);
    let listener = row(&document["rows"], "lab.LeakLab$Listener");
    assert_eq!(listener["count"], 180);
    assert_eq!(listener["shallow_bytes"], 180 * 24);
    assert_eq!(listener["retained_count"], 360);
    // Each has 10,000 bytes after a header of 16.
    assert_eq!(listener["retained_bytes"], 180 * (24 + 10_016));
    let total: u64 = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["shallow_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(document["reachable"]["shallow_bytes"], total);
    assert_eq!(document["reachable"]["retained_bytes"], total);
    assert_eq!(document["heap"]["source"], "hprof");
    assert_eq!(document["heap"]["sizes"], "hotspot");
    let csv = words(&["top", &after(), "--by", "class", "--csv"]);
    let line = csv
        .lines()
        .find(|line| line.starts_with("lab.LeakLab$Listener,"));
    assert_eq!(
        line.unwrap(),
        format!(
            "lab.LeakLab$Listener,180,4320,0,360,{},0,,,,,,",
            180 * 10_040
        )
    );
    assert_eq!(
        csv.lines().count(),
        1 + document["rows_total"].as_u64().unwrap() as usize
    );
}

#[test]
fn every_grouping_adds_up_to_the_whole() {
    let heap = after();
    let whole = json(&["top", &heap])["reachable"]["shallow_bytes"].clone();
    for by in ["class", "package", "heap", "loader", "root"] {
        let document = json(&["top", &heap, "--by", by]);
        let rows = document["rows"].as_array().unwrap();
        let sum: u64 = rows
            .iter()
            .map(|row| row["shallow_bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(whole, sum, "{by}");
    }
    let superclasses = json(&["top", &heap, "--by", "superclass"]);
    let activities = row(&superclasses["rows"], "android.app.Activity");
    assert_eq!(activities["count"], 9, "8 details and the main one");
    let packages = json(&["top", &heap, "--by", "package", "--focus", "^lab"]);
    assert_eq!(packages["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_count_without_a_graph_is_that_of_all_objects() {
    let count = json(&["top", &after(), "--no-retained"]);
    let all = json(&["top", &after(), "--reachable", "any", "--by", "class"]);
    assert_eq!(count["reachable"], Value::Null);
    for name in [
        "lab.LeakLab$Listener",
        "java.util.ArrayList",
        "lab.LeakLab$Node",
    ] {
        let (a, b) = (row(&count["rows"], name), row(&all["rows"], name));
        assert_eq!(a["count"], b["count"], "{name}");
        assert_eq!(a["shallow_bytes"], b["shallow_bytes"], "{name}");
        assert_eq!(a["retained_bytes"], Value::Null, "{name}");
    }
    let refused = heaptap(&["top", &after(), "--no-retained", "--by", "root"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn android_heaps_keep_native_bytes_apart() {
    let heap = fixture("hprof/android-a.hprof.gz");
    let document = json(&["top", &heap, "--by", "class"]);
    let bitmaps = row(&document["rows"], "android.graphics.Bitmap");
    assert!(
        bitmaps["native_bytes"].as_u64().unwrap() > 1 << 20,
        "{bitmaps}"
    );
    assert_eq!(bitmaps["native_bytes"], bitmaps["retained_native_bytes"]);
    let objects = json(&[
        "top", &heap, "--by", "object", "--focus", "Bitmap$", "-l", "1",
    ]);
    let largest = &objects["rows"][0];
    assert_eq!(largest["native_bytes"], bitmaps["native_bytes"]);
    let holder = largest["object"]["held_by"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert!(
        holder.as_str().unwrap().starts_with("Object[]["),
        "{holder}"
    );
    let heaps = json(&["top", &heap, "--by", "heap"]);
    assert!(heaps["rows"].as_array().unwrap().len() > 1, "{heaps}");
}

#[test]
fn the_dominator_tree_unfolds_to_a_depth() {
    let text = words(&["top", &after(), "--tree", "--focus", "^class lab.LeakLab$"]);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|l| l.ends_with("  class lab.LeakLab"))
        .unwrap();
    assert!(lines[at + 1].contains("├ "), "{text}");
    assert!(
        lines.iter().any(|l| l.ends_with("├ lab.LeakLab$Listener")),
        "{text}"
    );
    let document = json(&["top", &after(), "--tree", "--depth", "2", "--min", "100k"]);
    for node in document["nodes"].as_array().unwrap() {
        assert!(node["depth"].as_u64().unwrap() < 2);
        let bytes = |field: &str| node[field].as_u64().unwrap();
        assert!(bytes("retained_bytes") + bytes("retained_native_bytes") >= 100 << 10);
    }
}

#[test]
fn paths_name_the_fields_from_the_root_on() {
    let document = json(&["paths", &after(), "--focus", "LeakLab.Listener$"]);
    assert_eq!(document["reachable"]["count"], 180);
    let steps = document["shortest"]["steps"].as_array().unwrap();
    let links: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["via"]["text"].as_str())
        .collect();
    let end = &links[links.len() - 3..];
    assert_eq!(end[..2], ["lab.LeakLab.REGISTRY", "ArrayList.elementData"]);
    assert!(end[2].starts_with("Object[]["), "{links:?}");
    let text = words(&["paths", &after(), "--focus", "LeakLab.Listener$"]);
    assert!(text.contains("↓ static lab.LeakLab.REGISTRY"), "{text}");
    assert!(text.contains("╰→ lab.LeakLab$Listener"), "{text}");
}

#[test]
fn all_ways_to_the_roots_are_merged() {
    let document = json(&["paths", &after(), "--focus", "LeakLab.Shared$"]);
    let holders = document["holders"].as_array().unwrap();
    let texts: Vec<&str> = holders
        .iter()
        .filter_map(|row| row["via"]["text"].as_str())
        .collect();
    assert!(texts.contains(&"LeakLab$OwnerA.s"), "{texts:?}");
    assert!(texts.contains(&"LeakLab$OwnerB.s"), "{texts:?}");
    let root = &holders[0]["roots"][0];
    assert_eq!(root["kind"], "ROOT_JAVA_FRAME");
    assert_eq!(root["thread"], "main");
    assert!(
        root["frame"]
            .as_str()
            .unwrap()
            .starts_with("lab.LeakLab.main"),
        "{root}"
    );
    let activities = json(&["paths", &after(), "--focus", "DetailActivity$"]);
    let holders = activities["holders"].as_array().unwrap();
    let list = holders
        .iter()
        .find(|row| row["parent"] == 0 && row["via"]["kind"] == "element");
    assert_eq!(list.unwrap()["referenced"], 5, "LEAKED has five");
    // 20,000 nodes in a chain are one row, without recursion.
    let chain = json(&["paths", &after(), "--focus", "LeakLab.Node$"]);
    assert_eq!(chain["holders"][1]["via"]["text"], "lab.LeakLab.CHAIN");
}

#[test]
fn one_object_is_told_in_full() {
    let largest = json(&[
        "top",
        &after(),
        "--by",
        "object",
        "--focus",
        "DetailActivity$",
        "-l",
        "1",
    ]);
    let id = largest["rows"][0]["object"]["id"].as_str().unwrap();
    let document = json(&["paths", &after(), "--object", id]);
    let object = &document["object"];
    assert_eq!(object["name"], "lab.LeakLab$DetailActivity");
    let field = |name: &str| {
        let fields = object["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()
    };
    assert_eq!(field("mDestroyed")["value"], "true");
    assert_eq!(field("mTitle")["object"]["text"], "Detail");
    assert_eq!(field("bulk")["object"]["length"], 100_000);
    let text = words(&["paths", &after(), "--object", id]);
    assert!(text.contains("byte[100000]"), "{text}");
    let none = heaptap(&["paths", &after(), "--object", "0x3", "--json"]);
    assert_eq!(none.status.code(), Some(2));
    let failure: Value = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(failure["error"]["kind"], "no-such-object");
}

#[test]
fn a_pattern_that_no_class_matches_is_refused_with_the_nearest() {
    for (typed, help) in [
        ("DetialActivity", "did you mean lab.LeakLab$DetailActivity?"),
        (
            "detailACTIVITY$",
            "did you mean lab.LeakLab$DetailActivity?",
        ),
        ("NoSuchThingAtAll", "--by class` lists the classes"),
    ] {
        let refused = heaptap(&["paths", &after(), "--focus", typed, "--json"]);
        assert_eq!(refused.status.code(), Some(2), "{typed}");
        let failure: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!(failure["error"]["kind"], "no-such-class");
        let told = failure["error"]["help"].as_str().unwrap();
        assert!(told.contains(help), "{typed}: {told}");
    }
}

#[test]
fn a_diff_shows_eighty_listeners_and_nothing_else_of_size() {
    let document = json(&["diff", &before(), &after()]);
    let classes = document["classes"].as_array().unwrap();
    let grown: Vec<(&str, i64)> = classes
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["growth"]["count"].as_i64().unwrap(),
            )
        })
        .filter(|(_, count)| *count != 0)
        .collect();
    assert_eq!(grown, [("byte[]", 80), ("lab.LeakLab$Listener", 80)]);
    for row in classes {
        let bytes = row["growth"]["shallow_bytes"].as_i64().unwrap();
        let is_known = matches!(
            row["name"].as_str(),
            Some("byte[]" | "lab.LeakLab$Listener")
        );
        assert!(is_known || bytes.abs() < 1024, "{row}");
    }
    assert_eq!(document["total"]["growth"]["count"], 160);
    let names: Vec<&str> = document["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect();
    let list = [
        "java.util.ArrayList",
        "java.lang.Object[]",
        "lab.LeakLab$Listener",
        "byte[]",
    ];
    assert!(names.windows(4).any(|names| names == list), "{names:?}");
    let leaks = document["leaks"].as_array().unwrap();
    assert!(!leaks.is_empty());
    assert!(
        leaks.iter().all(|leak| leak["status"] == "same"),
        "{leaks:?}"
    );
    let same = json(&["diff", &after(), &after()]);
    assert_eq!(same["classes"], serde_json::json!([]));
}

#[test]
fn a_budget_of_growth_ends_in_9() {
    let code = |limit: &str| {
        let output = heaptap(&["diff", &before(), &after(), "--fail-over", limit]);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(code("1MiB").0, Some(0));
    let (over, said) = code("700k");
    assert_eq!(over, Some(9));
    assert!(
        said.contains("grew by 784.9 KiB, more than 700.0 KiB"),
        "{said}"
    );
    let filtered = heaptap(&[
        "diff",
        &before(),
        &after(),
        "--fail-over",
        "1k",
        "--focus",
        "Node",
    ]);
    assert_eq!(filtered.status.code(), Some(0));
    for (flag, nothing) in [
        ("--focus", "NoSuchClass"),
        ("--focus", "nODE"),
        ("--ignore", "."),
    ] {
        let args = [
            "diff",
            &before(),
            &after(),
            "--fail-over",
            "1gb",
            flag,
            nothing,
        ];
        let output = heaptap(&args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(12), "{flag} {nothing}: {said}");
        assert!(
            said.contains("nothing was checked"),
            "{flag} {nothing}: {said}"
        );
    }
    let smart = [
        "diff",
        &before(),
        &after(),
        "--fail-over",
        "1k",
        "--focus",
        "node",
    ];
    assert_eq!(heaptap(&smart).status.code(), Some(0));
}

#[test]
fn new_leaks_are_told_between_two_android_heaps() {
    let (a, b) = (
        fixture("hprof/android-a.hprof.gz"),
        fixture("hprof/android-b.hprof.gz"),
    );
    let document = json(&["diff", &a, &b]);
    let grown = document["leaks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|leak| leak["status"] == "grown");
    let leak = grown.expect("five more activities leak");
    assert_eq!(
        leak["after_count"].as_u64().unwrap() - leak["before_count"].as_u64().unwrap(),
        5
    );
}

#[test]
fn a_heap_graph_and_an_hprof_compare_by_name() {
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let document = json(&["diff", &graph, &after()]);
    assert_eq!(document["before"]["source"], "heap-graph");
    assert_eq!(document["after"]["source"], "hprof");
    assert_eq!(
        row(&document["classes"], "lab.LeakLab$Listener")["status"],
        "new"
    );
    let top = json(&["top", &graph]);
    assert_eq!(top["heap"]["process"], "com.example.synth");
    assert_eq!(top["heap"]["pid"], 5151);
}

#[test]
fn a_number_means_that_dump_of_each_process_wherever_it_stands() {
    let trace = fixture("conversions/two_same_name.pftrace");
    let folder = tempfile::tempdir().unwrap();
    let converted = folder.path().join("out");
    let output = heaptap(&["convert", &trace, "-o", converted.to_str().unwrap()]);
    assert!(matches!(output.status.code(), Some(0 | 6)), "{output:?}");
    let manifest = std::fs::read_to_string(converted.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dumps = manifest["dumps"].as_array().unwrap();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for dump in dumps {
        let (pid, number) = (
            dump["pid"].as_u64().unwrap(),
            dump["number"].as_u64().unwrap(),
        );
        let before = last.insert(pid, number).unwrap_or_default();
        assert_eq!(number, before + 1, "{dump:#}");
        let file = format!("heap_dump.{number}.{pid}.libc.malloc.pb.gz");
        assert_eq!(dump["file"], file);
    }
    let counts: Vec<u64> = last.values().copied().collect();
    assert_eq!(counts, [4, 3], "{manifest:#}");
    let input = converted.to_str().unwrap();
    // The trace, the recording and its profiles give the same counts.
    std::fs::create_dir(folder.path().join("profiles")).unwrap();
    let profiles = folder.path().join("profiles");
    for dump in dumps {
        let file = dump["file"].as_str().unwrap();
        std::fs::copy(converted.join(file), profiles.join(file)).unwrap();
    }
    for input in [&trace, input, profiles.to_str().unwrap()] {
        for number in 1..=last.values().copied().max().unwrap() {
            let top = heaptap(&["top", &format!("{input}@{number}"), "--json"]);
            let document: Value = serde_json::from_slice(&top.stdout).unwrap();
            let heaps = document["heaps"].as_array().unwrap().iter();
            let found: BTreeMap<u64, (u64, u64)> = heaps
                .map(|heap| {
                    let number = |key: &str| heap["dump"][key].as_u64().unwrap();
                    (number("pid"), (number("number"), number("dumps")))
                })
                .collect();
            let expected = last.iter().filter(|(_, last)| **last >= number);
            let expected = expected.map(|(&pid, &last)| (pid, (number, last)));
            assert_eq!(found, expected.collect(), "{input}@{number}");
        }
    }
    // Commands for one dump require a process.
    let (pid, _) = last.first_key_value().unwrap();
    let picture = folder.path().join("one.svg");
    let one = [
        "convert",
        input,
        "--at",
        "1",
        "-o",
        picture.to_str().unwrap(),
    ];
    let one = [&one[..], &["--format", "svg", "--json"]].concat();
    let several = heaptap(&one);
    assert_eq!(several.status.code(), Some(2), "{several:?}");
    let told = String::from_utf8_lossy(&several.stdout).into_owned();
    assert!(told.contains("several-dumps"), "{told}");
    let meant = heaptap(&[&one[..], &["--pid", &pid.to_string()]].concat());
    assert!(picture.is_file(), "{meant:?}");
    assert_eq!(meant.status.code(), Some(0), "{meant:?}");
    let none = heaptap(&["top", &format!("{input}@0")]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("@1"), "{said}");
}

/// Offsets of the packets of a trace, and its length.
fn packets(trace: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    while at < trace.len() {
        at += 1;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = trace[at];
            at += 1;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        at += length;
        starts.push(at);
    }
    starts
}

#[test]
fn the_last_dump_of_a_growing_trace_is_the_last_whole_one() {
    let trace = std::fs::read(fixture("conversions/c_cont.pftrace")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing");
    let input = path.to_str().unwrap();
    let starts = packets(&trace);
    let (mut open_ones, mut noted, mut left_open) = (0, 0, 0);
    for pair in starts.windows(2) {
        // After a packet, and inside the next one.
        for cut in [pair[0], pair[0] + 1, pair[0].midpoint(pair[1]), pair[1] - 1] {
            std::fs::write(&path, &trace[..cut]).unwrap();
            let mut scanner = heaptap::trace::DumpScanner::default();
            scanner.push(&trace[..cut]);
            let whole = scanner.dumps().len();
            let top = heaptap(&["top", input, "--json"]);
            let code = top.status.code();
            if whole == 0 {
                assert!(matches!(code, Some(6 | 8)), "{cut}: {top:?}");
                continue;
            }
            assert_eq!(code, Some(0), "{cut}: {top:?}");
            let document: Value = serde_json::from_slice(&top.stdout).unwrap();
            let shown = &document["heaps"][0]["dump"];
            assert_eq!(shown["number"], whole, "{cut}: {shown:#}");
            assert_eq!(shown["unfinished"], false, "{cut}: {shown:#}");
            let warnings = document["warnings"].as_array().unwrap();
            let has = |kind: &str| warnings.iter().any(|warning| warning["kind"] == kind);
            assert!(
                !has("trace-damaged") && !has("callstacks-lost"),
                "{cut}: {document:#}"
            );
            noted += u32::from(has("trace-cut"));
            if has("trace-cut") && noted == 1 {
                let out = folder.path().join("out");
                let convert = heaptap(&["convert", input, "-o", out.to_str().unwrap()]);
                assert_eq!(convert.status.code(), Some(0), "{convert:?}");
                let manifest = std::fs::read(out.join("manifest.json")).unwrap();
                let manifest: Value = serde_json::from_slice(&manifest).unwrap();
                assert_eq!(manifest["outcome"]["complete"], false, "{cut}");
                // Later dumps would be compared, too.
                let first = format!("{input}@1");
                let diff = heaptap(&["diff", &first, &first, "--fail-over", "1GiB"]);
                assert_eq!(diff.status.code(), Some(12), "{diff:?}");
            }
            if !has("dump-open") {
                continue;
            }
            open_ones += 1;
            // An explicit selection shows the available part, marked as incomplete.
            let open = heaptap(&["top", &format!("{input}@{}", whole + 1), "--json"]);
            assert_eq!(open.status.code(), Some(6), "{cut}: {open:?}");
            let document: Value = serde_json::from_slice(&open.stdout).unwrap();
            let shown = &document["heaps"][0]["dump"];
            assert_eq!(
                (&shown["number"], &shown["unfinished"]),
                (&(whole + 1).into(), &true.into())
            );
            // A series ends before it.
            let leaks = heaptap(&["leaks", input, "--json"]);
            let told = String::from_utf8_lossy(&leaks.stdout);
            assert!(!told.contains("\"incomplete\": true"), "{cut}: {told}");
            let judged = heaptap(&["leaks", input, "--fail"]).status.code();
            // 2: too few dumps. 9 stays valid with any later dump.
            assert!(matches!(judged, Some(2 | 9 | 12)), "{cut}: {judged:?}");
            left_open += u32::from(judged == Some(12));
        }
    }
    assert!(open_ones > 10, "{open_ones} cuts inside a dump");
    assert!(noted > 50, "{noted} cuts are told");
    assert!(left_open > 0, "a check is left open");
}

#[test]
fn the_only_dump_of_a_growing_trace_is_shown_as_lower_bounds() {
    let trace = std::fs::read(fixture("conversions/c_cont.pftrace")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing");
    let input = path.to_str().unwrap();
    let mut scanner = heaptap::trace::DumpScanner::default();
    let mut from = 0;
    let starts = packets(&trace);
    let closing = starts.iter().find(|&&at| {
        scanner.push(&trace[from..at]);
        from = at;
        !scanner.dumps().is_empty()
    });
    let before = starts.iter().rfind(|&at| Some(at) < closing).unwrap();
    std::fs::write(&path, &trace[..*before]).unwrap();
    let top = heaptap(&["top", input, "--json"]);
    assert_eq!(top.status.code(), Some(6), "{top:?}");
    let document: Value = serde_json::from_slice(&top.stdout).unwrap();
    assert_eq!(
        document["heaps"][0]["dump"]["unfinished"], true,
        "{document:#}"
    );
    let warnings = document["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning["kind"] == "dump-unfinished"),
        "{warnings:?}"
    );
}

#[test]
fn dumps_are_named_and_what_is_not_there_is_told_with_what_is() {
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    for (input, code, kind) in [
        (format!("{graph}@7"), 2, "no-such-dump"),
        (format!("{graph}@0"), 2, "no-such-dump"),
        (format!("{graph}@nope"), 2, "no-such-dump"),
        (fixture("hprof/none.hprof"), 8, "input-unreadable"),
        (fixture("MANIFEST.toml"), 8, "not-a-heap"),
    ] {
        let output = heaptap(&["top", &input, "--json"]);
        assert_eq!(output.status.code(), Some(code), "{input}");
        let failure: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(failure["error"]["kind"], kind, "{input}");
    }
    for input in [format!("{graph}@last"), format!("{graph}@1")] {
        assert_eq!(heaptap(&["top", &input]).status.code(), Some(0), "{input}");
    }
    let other = heaptap(&["top", &graph, "-n", "com.other"]);
    assert_eq!(other.status.code(), Some(2));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("com.example.synth (5151)"), "{said}");
    assert_eq!(
        heaptap(&["top", &graph, "-n", "com.example.*"])
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn a_dump_that_breaks_off_gives_what_it_has_and_6() {
    let whole = {
        let packed = std::fs::read(fixture("hprof/android-a.hprof.gz")).unwrap();
        let mut bytes = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(&packed[..]);
        std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        bytes
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.hprof");
    std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
    let path = path.to_str().unwrap();
    for args in [
        vec!["top", path],
        vec!["top", path, "--no-retained"],
        vec!["diff", path, path],
    ] {
        let output = heaptap(&args);
        assert_eq!(output.status.code(), Some(6), "{args:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("warning: "),
            "{args:?}"
        );
    }
}

#[test]
fn patterns_are_checked_and_colours_come_where_they_are_asked_for() {
    let refused = heaptap(&["top", &after(), "--focus", "("]);
    assert_eq!(refused.status.code(), Some(2), "no regular expression");
    let text = words(&["top", &after(), "--color", "always"]);
    assert!(text.contains("\x1b[1m"), "colours where they are asked for");
}

#[test]
fn commands_that_convert_prints_for_an_hprof_name_no_file_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = heaptap(&["convert", &before(), "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told =
        String::from_utf8(output.stderr).unwrap() + std::str::from_utf8(&output.stdout).unwrap();
    assert!(told.contains("go tool pprof"), "{told}");
    assert!(!told.contains("heaptap leaks"), "{told}");
}

#[test]
fn a_folder_that_a_session_has_is_not_fetched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".heaptap-session"), "k3f9q2ma\n").unwrap();
    let output = heaptap(&["top", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("does not contain a trace yet"), "{told}");
    assert!(told.contains("heaptap status"), "{told}");
}
