//! Results in directories.

use super::{before, fixture};
use crate::program::{assert_contains, assert_lacks, expect};

#[test]
fn commands_that_convert_prints_for_an_hprof_name_no_file_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let output = expect(0, &["convert", &before(), "-o", out.to_str().unwrap()]);
    let told = output.stderr + &output.stdout;
    assert_contains(&told, "go tool pprof");
    assert_lacks(&told, "heaptap leaks");
}

#[test]
fn java_heaps_beside_tracked_allocations_are_mentioned_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    expect(0, &format!("convert {graph} -o {}", out.display()));
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
    expect(0, &["top", out.to_str().unwrap()]).assert_stderr("also has 1 Java heap;");
    let folded = directory.path().join("folded");
    let folded = folded.to_str().unwrap();
    expect(
        0,
        &format!(
            "convert {} --format folded --at 1 -o {folded}",
            out.display()
        ),
    );
}
