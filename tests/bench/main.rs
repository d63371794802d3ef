//! Stories against a real adb, adbd, perfetto and traced (see CONTRIBUTING.md). heapprofd is
//! missing, so recordings contain process stats, and a profile is always empty: the stories check
//! messages and remaining files, not samples.
//!
//! Run by `tests/bench/bench.sh test`; `cargo test` ignores them.

#[path = "../common/judge.rs"]
mod judge;

mod beside;
mod faults;
mod host;
mod phone;
mod phones;
mod provoked;
mod recordings;
mod scenarios;

use std::fs;
use std::time::Duration;

use phone::{Ended, Phone, Run, SOON, until};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Time for heaptap to notice and report a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// Process stats, which need no heapprofd, and a heap profile, which never gets a producer.
const STATS_AND_HEAP: &str = r#"
buffers { size_kb: 8192 fill_policy: RING_BUFFER }
data_sources { config {
  name: "linux.process_stats"
  process_stats_config { scan_all_processes_on_start: true proc_stats_poll_ms: 100 }
} }
data_sources { config {
  name: "android.heapprofd"
  heapprofd_config {
    sampling_interval_bytes: 4096 process_cmdline: "com.example.app" shmem_size_bytes: 8388608
  }
} }
write_into_file: true
file_write_period_ms: 100
flush_timeout_ms: 5000
"#;

const TARGET: &str = "com.example.app";

/// Exit codes of cli.md.
mod exit {
    pub const DONE: i32 = 0;
    pub const NO_DEVICE: i32 = 3;
    pub const NOT_ELIGIBLE: i32 = 4;
    pub const DEVICE_FAILED: i32 = 5;
    pub const INCOMPLETE: i32 = 6;
    pub const NO_SAMPLES: i32 = 7;
    pub const DAMAGED: i32 = 8;
    pub const NOT_FETCHED: i32 = 10;
    pub const HOST: i32 = 11;
    pub const INTERRUPTED: i32 = 130;
}

/// Starts a recording into `out`; waits until heaptap reports it and the phone's trace grows.
fn record(phone: &Phone, config: &str, more: &[&str]) -> Run {
    let config = phone.write("config.txtproto", config);
    let mut args = vec!["record", "-n", TARGET, "--config", &config, "-o", "out"];
    args.extend(more);
    let mut run = phone.heaptap(&args);
    let mut early = false;
    until("the recording", PATIENCE, || {
        early = run.ended();
        let traced = phone.traces().iter().any(|(_, size)| *size > 0);
        early || traced && run.said().contains("Ctrl-C: end")
    });
    if early {
        panic!("the recording ended at once: {:?}", run.end(SOON));
    }
    run
}

/// The manifest reports a complete trace, and the phone's copy is removed.
fn assert_collected(phone: &Phone, ended: &Ended) {
    assert_kept(phone, ended);
    assert_eq!(phone.traces(), [], "the phone still has it: {ended:?}");
}

/// The manifest reports a complete trace.
fn assert_kept(phone: &Phone, ended: &Ended) {
    let out = phone.work().join("out");
    let trace = fs::read(out.join("raw-trace"))
        .unwrap_or_else(|error| panic!("no raw-trace ({error}): {ended:?}"));
    assert!(
        contains(&trace[..trace.len().min(1 << 20)], TARGET.as_bytes()),
        "the trace does not name the app's process: {ended:?}"
    );
    let text = fs::read_to_string(out.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&text).expect("of JSON");
    assert_eq!(manifest["trace"]["size"], trace.len(), "{manifest:#}");
    let sha256: String = Sha256::digest(&trace)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(manifest["trace"]["sha256"], sha256, "{manifest:#}");
    assert_eq!(
        manifest["outcome"]["exit_code"].as_i64(),
        ended.code().map(i64::from),
        "{manifest:#}"
    );
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("not one JSON document ({error}): {ended:?}"))
}

/// The messages of a failure.
fn kind(ended: &Ended) -> String {
    let error = json(ended);
    let kind = error.pointer("/error/kind").and_then(Value::as_str);
    kind.unwrap_or_else(|| panic!("no kind: {ended:?}"))
        .to_owned()
}
