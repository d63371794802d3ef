//! Results in directories.

use super::{before, fixture, heaptap};

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
fn java_heaps_beside_tracked_allocations_are_mentioned_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let output = heaptap(&["convert", &graph, "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    std::fs::copy(&graph, out.join("raw-trace")).unwrap();
    let profile = fixture("conversions/c_cont/heap_dump.4.2050.libc.malloc.pb.gz");
    std::fs::copy(profile, out.join("java_allocations.1.5151.pb.gz")).unwrap();
    let file = out.join("manifest.json");
    let manifest = std::fs::read(&file).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["java_allocations"] = serde_json::json!({
        "by": "tracking", "heap": "java-allocations", "known": [], "unknown": [],
        "dumps": [{
            "number": 1, "label": null, "time_ns": 1, "pid": 5151, "process": "com.example.synth",
            "file": "java_allocations.1.5151.pb.gz", "list": null,
            "objects": 1, "space": 2, "threads": 1, "full": false,
        }],
    });
    std::fs::write(&file, manifest.to_string()).unwrap();
    let output = heaptap(&["top", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("also has 1 Java heap;"), "{said}");
    let folded = folder.path().join("folded");
    let folded = folded.to_str().unwrap();
    let output = heaptap(&[
        "convert",
        out.to_str().unwrap(),
        "--format",
        "folded",
        "--at",
        "1",
        "-o",
        folded,
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
