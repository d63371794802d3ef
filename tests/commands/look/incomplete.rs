//! Inputs that break off or still grow.

use serde_json::Value;

use super::{fixture, heaptap};

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
fn a_root_that_the_runtime_calls_unreachable_does_not_mean_that_roots_are_missing() {
    let dump = fixture("hprof/android-a.hprof.gz");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let objects = "SELECT count(*) FROM heap_graph_object";
    for command in [
        &["top", &dump][..],
        &["query", &dump, objects],
        &["convert", &dump, "-o", out.to_str().unwrap()],
    ] {
        let output = heaptap(command);
        assert_eq!(output.status.code(), Some(0), "{command:?} {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("GC roots is missing"), "{stderr}");
    }
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
