//! The model contains each flag that heapprofd reports, with a message.

use super::{Recording, judge, recordings};
use heaptap_results::findings;
use std::collections::BTreeMap;

#[test]
fn every_flag_of_a_recording_is_told() {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for recording in recordings() {
        let Recording {
            name,
            trace,
            expected,
        } = recording;
        let Ok(text) = std::fs::read_to_string(expected.join("flags.csv")) else {
            continue;
        };
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |row: &[&str], name: &str| -> String {
            let at = header.iter().position(|h| *h == name).expect(name);
            row.get(at).copied().unwrap_or_default().to_owned()
        };
        // Flags are cumulative: the last row of a process and heap has them all.
        let mut last: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
        for line in lines {
            let row: Vec<&str> = line.split(',').collect();
            let pid = column(&row, "pid");
            if !pid.is_empty() {
                last.insert((pid, column(&row, "heap_name")), row);
            }
        }
        let (ours, _) = judge::convert(&trace).expect("a trace");
        for ((pid, heap), row) in last {
            let heap = if heap.is_empty() { "unknown" } else { &heap };
            let (dump, tables) = ours
                .iter()
                .rev()
                .find(|o| o.dump.pid.to_string() == pid && o.dump.heap == heap)
                .map(|o| (&o.dump, &o.recording.tables))
                .unwrap_or_else(|| panic!("{name}: no dump of {pid} {heap}"));
            let set = |name: &str| !matches!(column(&row, name).as_str(), "" | "0");
            let kinds: Vec<&str> = findings::findings_for_dump(dump, tables)
                .iter()
                .map(|f| f.kind)
                .collect();
            for (flag, kind) in [
                ("rejected_concurrent", "rejected-concurrent"),
                ("disconnected", "disconnected"),
                ("buffer_overran", "buffer-overran"),
                ("buffer_corrupted", "buffer-corrupted"),
                ("hit_guardrail", "hit-guardrail"),
            ] {
                // The cause of a profile's end also ends the connection; only the cause is
                // reported.
                let causes = [
                    "rejected_concurrent",
                    "buffer_overran",
                    "buffer_corrupted",
                    "hit_guardrail",
                    "client_error",
                ];
                let follows = flag == "disconnected" && causes.iter().any(|cause| set(cause));
                let is_told = set(flag) && !follows;
                assert_eq!(is_told, kinds.contains(&kind), "{name} {pid}: {flag}");
                *told.entry(kind).or_default() += usize::from(set(flag));
            }
            assert_eq!(set("from_startup"), dump.flags.from_startup, "{name} {pid}");
            assert_eq!(set("disconnected"), dump.flags.disconnected, "{name} {pid}");
            let error = column(&row, "client_error");
            assert_eq!(dump.flags.client_error.to_string(), error_or_zero(&error));
            if error == "2" {
                assert!(kinds.contains(&"invalid-stack-bounds"), "{name} {pid}");
            }
            for (field, value) in [
                ("timestamp", dump.raw_time_ns),
                ("sampling_interval_bytes", dump.sampling_interval_bytes),
                ("heap_samples", dump.heap_samples),
                ("unwinding_errors", dump.unwinding_errors),
            ] {
                let stated = column(&row, field);
                assert_eq!(
                    value.to_string(),
                    error_or_zero(&stated),
                    "{name} {pid}: {field}"
                );
            }
        }
    }
    for kind in [
        "rejected-concurrent",
        "disconnected",
        "buffer-overran",
        "hit-guardrail",
    ] {
        assert!(told.get(kind).is_some_and(|n| *n > 0), "{kind} was seen");
    }
}

fn error_or_zero(text: &str) -> &str {
    if text.is_empty() { "0" } else { text }
}
