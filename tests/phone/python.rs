//! Reads the phone's output with Perfetto's own protos (the Python package `perfetto`), and
//! recomputes its sums.

use std::process::Command;

use heaptap_proto::perfetto as pb;

use crate::client::{TRACE, config, heapprofd, phone, pull, record};

/// Prints for each dump: pid, heap, allocated, freed, counts, and number of fully resolved stacks.
const SCRIPT: &str = r#"
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
tables = {}
dumps = []
chain = []
def close(sequence):
    names, frames, stacks, mappings = tables.get(sequence, ({}, {}, {}, {}))
    for header, samples in chain:
        whole = sum(1 for s in samples if s.callstack_id in stacks and all(
            f in frames and frames[f].mapping_id in mappings and frames[f].function_name_id in names
            for f in stacks[s.callstack_id]))
        dumps.append((header.pid, header.heap_name, sum(s.self_allocated for s in samples),
            sum(s.self_freed for s in samples), sum(s.alloc_count for s in samples),
            sum(s.free_count for s in samples), len(samples), whole))
    chain.clear()
for packet in trace.packet:
    s = packet.trusted_packet_sequence_id
    names, frames, stacks, mappings = tables.setdefault(s, ({}, {}, {}, {}))
    data = packet.interned_data
    for e in data.function_names: names[e.iid] = e.str
    for e in data.frames: frames[e.iid] = e
    for e in data.callstacks: stacks[e.iid] = list(e.frame_ids)
    for e in data.mappings: mappings[e.iid] = e
    if packet.HasField("profile_packet"):
        p = packet.profile_packet
        for e in p.strings: names[e.iid] = e.str
        for e in p.frames: frames[e.iid] = e
        for e in p.callstacks: stacks[e.iid] = list(e.frame_ids)
        for e in p.mappings: mappings[e.iid] = e
        for d in p.process_dumps:
            if chain and chain[-1][0].pid == d.pid and chain[-1][0].heap_name == d.heap_name:
                chain[-1][1].extend(d.samples)
            else:
                chain.append((d, list(d.samples)))
        if not p.continued:
            close(s)
            if p.strings or p.callstacks: tables[s] = ({}, {}, {}, {})
for d in dumps: print(*[x if x != "" else "-" for x in d])
"#;

#[test]
#[ignore = "needs a Python with Perfetto's protos: tests/run.sh runs it"]
fn judged_by_perfetto_protos_sums_are_the_same() {
    let python = crate::judge::perfetto_protos();
    let directory = tempfile::tempdir().expect("a folder");
    for spec in [
        "android=10",
        "android=11",
        "android=14",
        "android=16,perfetto=58",
        "android=14,app=heavy,sites=30000",
    ] {
        let phone = phone(&format!("{spec},speed=50"));
        let mut config = pb::TraceConfig {
            duration_ms: Some(4_000),
            ..config(&["com.example.app"])
        };
        let heapprofd = heapprofd(&mut config);
        heapprofd.all_heaps = Some(true);
        heapprofd.exclude_heaps = vec!["com.android.art".to_owned()];
        heapprofd.continuous_dump_config = Some(pb::heapprofd_config::ContinuousDumpConfig {
            dump_phase_ms: Some(1_000),
            dump_interval_ms: Some(1_000),
        });
        record(&phone, &config);
        let file = directory.path().join("trace");
        std::fs::write(&file, pull(&phone, TRACE).expect("a trace")).expect("written");
        let ran = Command::new(&python)
            .args(["-c", SCRIPT])
            .arg(&file)
            .output()
            .expect("python runs");
        assert!(
            ran.status.success(),
            "{spec}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let lines: Vec<Vec<String>> = String::from_utf8_lossy(&ran.stdout)
            .lines()
            .map(|l| l.split(' ').map(str::to_owned).collect())
            .collect();
        let truth = &phone.truth()[0].dumps;
        assert_eq!(lines.len(), truth.len(), "{spec}");
        for (line, truth) in lines.iter().zip(truth) {
            let n = |i: usize| line[i].parse::<u64>().expect("a number");
            assert_eq!(n(0), u64::from(truth.pid), "{spec}");
            let of =
                |f: fn(&virtual_phone::SiteTruth) -> u64| truth.sites.iter().map(f).sum::<u64>();
            let gone = of(|s| s.sampled_allocated) - n(2);
            assert_eq!(of(|s| s.sampled_freed) - n(3), gone, "{spec}: bytes");
            assert_eq!(
                of(|s| s.sampled_alloc_count) - n(4),
                of(|s| s.sampled_free_count) - n(5)
            );
            assert_eq!(n(6), n(7), "{spec}: every callstack resolves");
        }
    }
}
