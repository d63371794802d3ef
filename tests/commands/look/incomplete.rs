//! Inputs that break off or still grow.

use std::collections::BTreeSet;

use heaptap_proto::perfetto as pb;
use serde_json::Value;

use super::{fixture, heaptap};
use crate::program::{assert_contains, assert_lacks, expect};

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
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("growing");
    let input = path.to_str().unwrap();
    let starts = packets(&trace);
    let (mut open_ones, mut noted, mut left_open) = (0, 0, 0);
    for pair in starts.windows(2) {
        // After a packet, and inside the next one.
        for cut in [pair[0], pair[0] + 1, pair[0].midpoint(pair[1]), pair[1] - 1] {
            std::fs::write(&path, &trace[..cut]).unwrap();
            let mut scanner = perfetto_heap::DumpScanner::default();
            scanner.push(&trace[..cut]);
            let whole = scanner.dumps().len();
            let top = heaptap(&["top", input, "--json"]);
            let code = top.code();
            if whole == 0 {
                assert!(matches!(code, Some(6 | 8)), "{cut}: {top}");
                continue;
            }
            assert_eq!(code, Some(0), "{cut}: {top}");
            let document = top.json();
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
                let out = directory.path().join("out");
                expect(0, &format!("convert {input} -o {}", out.display()));
                let manifest = std::fs::read(out.join("manifest.json")).unwrap();
                let manifest: Value = serde_json::from_slice(&manifest).unwrap();
                assert_eq!(manifest["outcome"]["complete"], false, "{cut}");
                // Later dumps would be compared, too.
                let first = format!("{input}@1");
                expect(12, &["diff", &first, &first, "--fail-over", "1GiB"]);
            }
            if !has("dump-open") {
                continue;
            }
            open_ones += 1;
            // An explicit selection shows the available part, marked as incomplete.
            let open = expect(6, &["top", &format!("{input}@{}", whole + 1), "--json"]);
            let document = open.json();
            let shown = &document["heaps"][0]["dump"];
            assert_eq!(
                (&shown["number"], &shown["unfinished"]),
                (&(whole + 1).into(), &true.into())
            );
            // A series ends before it.
            let leaks = heaptap(&["leaks", input, "--json"]);
            assert!(
                !leaks.stdout.contains("\"incomplete\": true"),
                "{cut}: {leaks}"
            );
            let judged = heaptap(&["leaks", input, "--fail"]).code();
            // 9 stays valid with any later dump.
            assert!(matches!(judged, Some(9 | 12)), "{cut}: {judged:?}");
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
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("growing");
    let input = path.to_str().unwrap();
    let mut scanner = perfetto_heap::DumpScanner::default();
    let mut from = 0;
    let starts = packets(&trace);
    let closing = starts.iter().find(|&&at| {
        scanner.push(&trace[from..at]);
        from = at;
        !scanner.dumps().is_empty()
    });
    let before = starts.iter().rfind(|&at| Some(at) < closing).unwrap();
    std::fs::write(&path, &trace[..*before]).unwrap();
    let top = expect(6, &["top", input, "--json"]);
    let document = top.json();
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
fn a_root_that_the_runtime_calls_unreachable_does_not_mean_that_roots_are_missing() {
    let dump = fixture("hprof/android-a.hprof.gz");
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let objects = "SELECT count(*) FROM heap_graph_object";
    for command in [
        &["top", &dump][..],
        &["query", &dump, objects],
        &["convert", &dump, "-o", out.to_str().unwrap()],
    ] {
        expect(0, command).refute_stderr("GC roots is missing");
    }
}

#[test]
fn a_dump_that_breaks_off_gives_what_it_has_and_6() {
    let whole = hprof();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.hprof");
    std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
    let path = path.to_str().unwrap();
    for args in [
        vec!["top", path],
        vec!["top", path, "--no-retained"],
        vec!["diff", path, path],
    ] {
        let output = expect(6, &args);
        assert!(!output.stdout.is_empty(), "{args:?}");
        output.assert_stderr("warning: ");
    }
}

/// Returns the bytes of the HPROF of an app with leaks.
fn hprof() -> Vec<u8> {
    let packed = std::fs::read(fixture("hprof/android-a.hprof.gz")).unwrap();
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&packed[..]);
    std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
    bytes
}

#[test]
fn what_holds_an_object_in_a_dump_that_breaks_off_is_unknown() {
    let whole = hprof();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // Without the array of the collection that holds the leaks.
    let (full, cut) = (file("a.hprof", &whole), file("b.hprof", &whole[..70_000]));
    let text = |args: &[&str], code| expect(code, args).stdout;
    let json = |args: &[&str], code| -> Value {
        serde_json::from_str(&text(&[args, &["--json"]].concat(), code)).unwrap()
    };
    let unheld = "3 × com.example.app.MainActivity (destroyed Activity): unknown, because objects \
                  that refer to them might be missing from the dump";
    let leaks = text(&["leaks", &cut], 6);
    assert_contains(&leaks, unheld);
    assert_lacks(&leaks, "not a leak");
    let leaks = json(&["leaks", &cut], 6);
    let unheld_rows = leaks["leaks"]["unreachable"].as_array().unwrap();
    assert!(unheld_rows.len() > 1, "{leaks:#}");
    assert!(
        unheld_rows.iter().all(|row| row["unknown"] == true),
        "{leaks:#}"
    );
    let page = directory.path().join("page.html");
    text(&["report", &cut, "-o", page.to_str().unwrap()], 6);
    let page = std::fs::read_to_string(page).unwrap();
    let (_, same) = unheld.split_once("MainActivity").unwrap();
    assert!(page.contains(same), "the page says the same");

    let diff = |rows: &str, before: &str, after: &str, code| {
        let diff = json(&["diff", before, after], code);
        let rows = diff[rows].as_array().unwrap();
        let words = rows
            .iter()
            .map(|row| row["status"].as_str().unwrap().to_owned());
        words.collect::<BTreeSet<String>>()
    };
    for rows in ["leaks", "classes", "paths"] {
        assert!(diff(rows, &full, &cut, 6).iter().eq(["unknown"]), "{rows}");
        assert!(diff(rows, &cut, &full, 6).iter().eq(["unknown"]), "{rows}");
    }
    assert!(diff("leaks", &full, &full, 0).iter().eq(["same"]));

    let series = json(&["leaks", &cut, &full], 6);
    assert!(
        series["leaks"]["groups"][0]["count_before"].is_null(),
        "{series:#}"
    );
    assert!(series["growth"].is_null(), "{series:#}");
    let note = series["notes"][0].as_str().unwrap();
    assert!(note.ends_with("b.hprof is not compared with other dumps because it lacks objects"));
    assert!(json(&["leaks", &full, &cut], 6)["growth"].is_null());
    for more in ["--no-retained", "--every-object"] {
        let lacks =
            |path: &str, code| json(&["top", path, more], code)["heap"]["lacks_objects"].clone();
        assert_eq!(
            (lacks(&full, 0), lacks(&cut, 6)),
            (false.into(), true.into()),
            "{more}"
        );
    }
    let three = json(&["leaks", &full, &cut, &full], 6);
    assert_eq!(three["growth"]["dumps"], 2, "{three:#}");
    let series = json(&["leaks", &full, &full], 0);
    assert!(
        series["leaks"]["groups"][0]["count_before"].is_u64(),
        "{series:#}"
    );

    let found = "unreachable in what was dumped";
    for args in [
        &["top", &cut][..],
        &["top", &cut, "--tree"],
        &["paths", &cut, "--object", "0x12c00160"],
        &["paths", &cut, "--focus", "Activity"],
    ] {
        let text = text(args, 6);
        assert!(text.contains(found), "{args:?} {text}");
        assert!(!text.contains("not yet collected"), "{args:?} {text}");
    }
}

#[test]
fn a_warning_about_a_file_names_it_once() {
    let packed = std::fs::read(fixture("hprof/android-a.hprof.gz")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.hprof.gz");
    std::fs::write(&path, &packed[..13_000]).unwrap();
    let path = path.to_str().unwrap();
    for args in [
        &["top", path][..],
        &["top", path, "--no-retained"],
        &["leaks", path],
        &["paths", path, "--focus", "Activity"],
        &["diff", path, path],
    ] {
        let told = heaptap(args).stderr;
        let lines: Vec<&str> = told
            .lines()
            .filter(|line| line.contains("breaks off"))
            .collect();
        assert!(!lines.is_empty(), "{args:?} {told}");
        for line in lines {
            assert_eq!(line.matches("cut.hprof.gz").count(), 1, "{args:?} {line}");
        }
    }
}

#[test]
fn a_dump_without_objects_is_an_error() {
    let whole = hprof();
    let header = whole.iter().position(|&byte| byte == 0).unwrap() + 13;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.hprof");
    let path = path.to_str().unwrap();
    // The intact one has an empty dump segment, and the record that ends a dump.
    let segments = [0x1c, 0x2c]
        .map(|tag| [tag, 0, 0, 0, 0, 0, 0, 0, 0])
        .concat();
    for (rest, code) in [(&[][..], 8), (&segments, 7)] {
        std::fs::write(path, [&whole[..header], rest].concat()).unwrap();
        for args in [
            &["top", path][..],
            &["top", path, "--no-retained"],
            &["leaks", path],
            &["paths", path, "--focus", "Activity"],
            &["diff", path, path],
        ] {
            let output = expect(code, args);
            assert!(output.stdout.is_empty(), "{args:?} {output}");
            let kind = ["hprof-truncated", "java-heap-dump"][usize::from(code == 7)];
            let json = heaptap(&[args, &["--json"]].concat());
            let document = json.json();
            assert_eq!(document["error"]["kind"], kind, "{document:#}");
            output
                .assert_stderr("error: ")
                .assert_stderr("contains no objects");
        }
    }
    // The intact one is the second.
    for args in [
        &["leaks", path, "--fail"][..],
        &["diff", path, path, "--fail-over", "1mb"],
    ] {
        assert_eq!(heaptap(args).status.code(), Some(12), "{args:?}");
    }
    let full = directory.path().join("full.hprof");
    std::fs::write(&full, &whole).unwrap();
    let full = full.to_str().unwrap();
    assert_eq!(heaptap(&["leaks", full, path]).status.code(), Some(7));
    heaptap(&["leaks", path, full])
        .assert_stdout("is not compared with other dumps because it contains no objects")
        .refute_stdout(" · new");
}

#[test]
fn a_heap_graph_without_objects_names_the_packets_that_are_missing() {
    use prost::Message as _;
    let graph = pb::HeapGraph {
        pid: Some(7),
        index: Some(2),
        ..pb::HeapGraph::default()
    };
    let packet = pb::TracePacket {
        timestamp: Some(1_000),
        trusted_packet_sequence_id: Some(3),
        heap_graph: Some(graph),
        ..pb::TracePacket::default()
    };
    let trace = pb::Trace {
        packet: vec![packet],
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, trace.encode_to_vec()).unwrap();
    let output = expect(7, &format!("top {} --json", path.display()));
    let document = output.json();
    let error = &document["error"];
    assert_eq!(error["kind"], "java-heap-dump", "{document:#}");
    let message = error["message"].as_str().unwrap();
    assert_contains(&message, "packets of the heap graph are missing");
    assert_contains(error["help"].as_str().unwrap(), "a larger buffer");
}

#[test]
fn growth_in_a_trace_that_breaks_off_after_one_dump_is_unknown() {
    let trace = std::fs::read(fixture("conversions/c_cont.pftrace")).unwrap();
    let mut scanner = perfetto_heap::DumpScanner::default();
    let starts = packets(&trace);
    let mut pairs = starts.windows(2);
    let closed = pairs.find(|pair| {
        scanner.push(&trace[pair[0]..pair[1]]);
        !scanner.dumps().is_empty()
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut");
    std::fs::write(&path, &trace[..closed.unwrap()[1]]).unwrap();
    let output = expect(12, &format!("leaks {} --json", path.display()));
    let document = output.json();
    let error = &document["error"];
    assert_eq!(error["kind"], "incomplete-series", "{document:#}");
    let message = error["message"].as_str().unwrap();
    assert_contains(&message, "the trace ends before");
}

#[test]
fn a_recording_that_is_twice_in_its_file_is_told() {
    use prost::Message as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("twice");
    let path = path.to_str().unwrap();
    let native = std::fs::read(fixture("conversions/c_cont.pftrace")).unwrap();
    // Before Android 14, there is no UUID.
    let mut older = pb::Trace::decode(native.as_slice()).unwrap();
    older.packet.retain(|packet| packet.trace_uuid.is_none());
    let packets = native.len() - older.encoded_len();
    assert!(packets > 20, "it had a UUID");
    for once in [native, older.encode_to_vec()] {
        std::fs::write(path, [once.as_slice(), &once].concat()).unwrap();
        for (args, code) in [
            (&["top", path][..], 0),
            (&["query", path, "SELECT 1"], 0),
            (&["leaks", path, "--tolerance", "1g", "--fail"], 12),
            (
                &[
                    "diff",
                    &format!("{path}@1"),
                    &format!("{path}@9"),
                    "--fail-over",
                    "1gb",
                ],
                12,
            ),
        ] {
            let output = expect(code, args);
            output.assert_stderr("contains 2 copies of the recording");
            let reason = "an input has several recordings, or copies of one";
            assert_eq!(
                output.stderr.contains(reason),
                code == 12,
                "{args:?} {output}"
            );
        }
    }
}

#[test]
fn a_growth_table_names_the_dumps_that_it_compares() {
    let whole = hprof();
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("1", &whole[..]), ("2", &whole[..70_000]), ("3", &whole)] {
        std::fs::write(directory.path().join(format!("{name}.hprof")), bytes).unwrap();
    }
    let zip = directory.path().join("all.zip");
    let mut out = zip::ZipWriter::new(std::fs::File::create(&zip).unwrap());
    for name in ["1.hprof", "2.hprof", "3.hprof"] {
        out.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        let bytes = std::fs::read(directory.path().join(name)).unwrap();
        std::io::Write::write_all(&mut out, &bytes).unwrap();
    }
    out.finish().unwrap();
    expect(6, &["leaks", zip.to_str().unwrap()])
        .assert_stdout("compared with the earlier dumps: @1\n")
        .assert_stdout("@2 is not compared with other dumps");
}

#[test]
fn changes_on_other_paths_of_a_dump_that_lacks_objects_are_unknown() {
    let (before, after) = (super::before(), super::after());
    let whole = zstd::decode_all(std::fs::File::open(&after).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.hprof");
    for share in [3, 6, 9] {
        std::fs::write(&path, &whole[..whole.len() * share / 10]).unwrap();
        let cut = path.to_str().unwrap();
        for sides in [[&before[..], cut], [cut, &before]] {
            let output = expect(6, &["diff", sides[0], sides[1], "--json"]);
            let diff = output.json();
            for rows in ["classes", "paths", "leaks"] {
                let rows = diff[rows].as_array().unwrap();
                let known = |row: &&Value| row["status"] != "unknown" && row["status"] != "same";
                assert_eq!(rows.iter().find(known), None, "{share}");
            }
        }
    }
}
