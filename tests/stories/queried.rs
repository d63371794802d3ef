//! SQL over a recording with all sources returns the contents of its files: every figure of
//! `memory.jsonl`, the results of `gc` and `meminfo` for the directory, and each counter of the
//! trace, decoded here by the generated messages.

use std::collections::BTreeSet;

use heaptap_proto::perfetto::Trace;
use prost::Message as _;
use serde_json::{Value, json};

use crate::lab::Lab;

const PHONE: &str = "android=14,build=userdebug,speed=6";

/// Rows of a query, each with its values in the order of the column names.
fn rows(lab: &Lab, sql: &str) -> Vec<Value> {
    let told = lab.run(&["query", "out", sql, "--json"]);
    assert!(matches!(told.code(), Some(0 | 6)), "{told}");
    let Value::Array(rows) = told.json() else {
        panic!("no rows: {told}");
    };
    rows
}

/// Position of each part of a figure in an entry of its kind.
const PARTS: [(&str, &[(&str, &str)]); 5] = [
    (
        "resident",
        &[
            ("rss", "/rss"),
            ("rss.anon", "/anon"),
            ("rss.file", "/file"),
            ("rss.shmem", "/shmem"),
            ("swap", "/swap"),
            ("rss.peak", "/peak"),
        ],
    ),
    (
        "parts",
        &[
            ("java", "/java"),
            ("native", "/native"),
            ("code", "/code"),
            ("stack", "/stack"),
            ("graphics", "/graphics"),
            ("private-other", "/private_other"),
            ("system", "/system"),
            ("pss", "/total_pss"),
            ("rss", "/total_rss"),
            ("swap", "/swap"),
            ("native-heap.size", "/native_heap/size"),
            ("native-heap.alloc", "/native_heap/alloc"),
            ("native-heap.free", "/native_heap/free"),
            ("java-heap.size", "/java_heap/size"),
            ("java-heap.alloc", "/java_heap/alloc"),
            ("java-heap.free", "/java_heap/free"),
        ],
    ),
    ("graphics", &[("gpu", "/bytes")]),
    ("java-heap", &[("java-heap.alloc", "/allocated")]),
    (
        "system",
        &[
            ("total", "/total"),
            ("available", "/available"),
            ("free", "/free"),
            ("swap-free", "/swap_free"),
        ],
    ),
];

/// Part and bytes of all figures in an entry.
fn figures(kind: &str, entry: &Value) -> Vec<(&'static str, Value)> {
    let known = PARTS.iter().find(|known| known.0 == kind);
    let parts = known.map_or(&[][..], |known| known.1).iter();
    let told = |(part, at): &(&'static str, &str)| Some((*part, entry.pointer(at)?.clone()));
    parts.filter_map(told).collect()
}

/// Each line as text: lists are compared completely, in any order.
fn sorted(mut all: Vec<Value>) -> Vec<String> {
    let lines = all.iter_mut().map(|value| value.to_string());
    let mut lines = Vec::from_iter(lines);
    lines.sort();
    lines
}

#[test]
fn sql_gives_what_files_and_commands_say() {
    let lab = Lab::new(PHONE);
    let args = "record -n com.example.app -d 24s -o out --with all";
    let recorded = lab.run(args);
    // A busy host loses dumps, which does not matter here.
    assert!(matches!(recorded.code(), Some(0 | 6)), "{recorded}");
    let directory = lab.work().join("out");
    let manifest = lab.manifest("out");
    let pid = manifest["targets"][0]["pid"].as_u64().expect("a pid");

    // The lines of memory.jsonl.
    let text = std::fs::read_to_string(directory.join("memory.jsonl")).unwrap();
    let mut lines = Vec::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        for (part, bytes) in figures(entry["kind"].as_str().unwrap(), &entry) {
            let pid = match entry["pid"].as_u64() {
                Some(0) => Value::Null,
                pid => json!(pid),
            };
            let ts = &entry["boot_ns"];
            let source = &entry["source"];
            lines.push(
                json!({"ts": ts, "pid": pid, "source": source, "part": part, "bytes": bytes}),
            );
        }
    }
    assert!(lines.len() > 60, "{text}");
    let told = rows(
        &lab,
        "SELECT ts, pid, source, part, bytes FROM heaptap_memory \
         WHERE source NOT IN ('process-stats', 'sys-stats', 'ftrace')",
    );
    assert_eq!(sorted(told), sorted(lines));

    // The last answer of meminfo, as parsed by `meminfo`.
    let shown = lab.run("meminfo out --json");
    assert!(matches!(shown.code(), Some(0 | 6)), "{shown}");
    let expected = figures("parts", &shown.json()["processes"][0]["parts"]);
    let told = rows(
        &lab,
        "SELECT part, bytes FROM heaptap_memory WHERE source = 'meminfo' AND ts = \
         (SELECT max(ts) FROM heaptap_memory WHERE source = 'meminfo')",
    );
    let expected = expected.into_iter();
    let expected = expected.map(|(part, bytes)| json!({"part": part, "bytes": bytes}));
    assert!(!told.is_empty());
    assert_eq!(sorted(told), sorted(expected.collect()));

    // Collections, as summarized by `gc`.
    let report = lab.run("gc out --json");
    assert!(matches!(report.code(), Some(0 | 6)), "{report}");
    let report = report.json();
    let processes = report["processes"].as_array().unwrap();
    let process = processes.iter().find(|process| process["pid"] == pid);
    let process = process.unwrap_or_else(|| panic!("no {pid}: {report}"));
    let told = rows(
        &lab,
        &format!(
            "SELECT sum(NOT ours) AS collections, sum(ours) AS ours, \
             sum(iif(ours OR coalesce(freed_bytes, freed_large_bytes) IS NULL, NULL, \
             ifnull(freed_bytes, 0) + ifnull(freed_large_bytes, 0))) \
             AS freed_bytes, max(iif(ours, NULL, longest_pause_ns)) AS longest, \
             count(iif(ours, NULL, live_bytes)) AS live \
             FROM heaptap_gc WHERE pid = {pid}"
        ),
    );
    assert_eq!(told[0]["collections"], process["collections"], "{report}");
    assert_eq!(
        told[0]["ours"], process["collections_by_heaptap"],
        "{report}"
    );
    assert_eq!(told[0]["freed_bytes"], process["freed_bytes"], "{report}");
    assert_eq!(told[0]["longest"], process["pauses"]["max_ns"], "{report}");
    assert!(told[0]["ours"].as_u64() >= Some(1), "meminfo caused one");

    // Each counter of the trace.
    let trace = std::fs::read(directory.join("raw-trace")).unwrap();
    let counters = counters(&Trace::decode(&trace[..]).unwrap());
    assert!(counters.len() > 100);
    let told = rows(
        &lab,
        "SELECT c.ts, p.pid, t.name, t.type, u.unit, c.value \
         FROM counter c JOIN counter_track u ON u.id = c.track_id \
         LEFT JOIN process_counter_track t ON t.id = c.track_id LEFT JOIN process p USING (upid) \
         WHERE u.type <> 'atrace_counter'",
    );
    let of_phone = rows(
        &lab,
        "SELECT DISTINCT name FROM counter_track WHERE type = 'meminfo'",
    );
    let of_phone: BTreeSet<&str> = of_phone.iter().filter_map(|r| r["name"].as_str()).collect();
    assert!(of_phone.contains("MemAvailable"), "{of_phone:?}");
    assert_eq!(told.len(), counters.len());
    let told = told.iter().map(|row| {
        let value = row["value"].as_f64().unwrap();
        let is_phone = row["unit"] == "bytes";
        assert_eq!(row["name"].is_null(), is_phone, "{row}");
        json!([row["ts"], row["pid"], row["name"], value])
    });
    assert_eq!(sorted(told.collect()), sorted(counters));
}

/// Time, process, name and value of the counters in the trace's packets; those of the phone have no
/// process.
fn counters(trace: &Trace) -> Vec<Value> {
    let mut found = Vec::new();
    for packet in &trace.packet {
        let at = packet.timestamp();
        let processes = packet
            .process_stats
            .iter()
            .flat_map(|stats| &stats.processes);
        for of in processes {
            let kb = [
                ("mem.virt", of.vm_size_kb),
                ("mem.rss", of.vm_rss_kb),
                ("mem.rss.anon", of.rss_anon_kb),
                ("mem.rss.file", of.rss_file_kb),
                ("mem.rss.shmem", of.rss_shmem_kb),
                ("mem.swap", of.vm_swap_kb),
                ("mem.locked", of.vm_locked_kb),
                ("mem.rss.watermark", of.vm_hwm_kb),
            ];
            for (name, kb) in kb {
                let value = kb.map(|kb| json!([at, of.pid(), name, kb as f64 * 1024.0]));
                found.extend(value);
            }
            if let Some(score) = of.oom_score_adj {
                found.push(json!([at, of.pid(), "oom_score_adj", score as f64]));
            }
        }
        let lines = packet.sys_stats.iter().flat_map(|stats| &stats.meminfo);
        for line in lines {
            found.push(json!([at, null, null, line.value() as f64 * 1024.0]));
        }
    }
    found
}
