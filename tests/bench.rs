//! Stories against a real adb, adbd, perfetto and traced (see docs/bench.md). heapprofd is not
//! there, so what is recorded are process stats, and a profile is always empty: the stories
//! hold heaptap to what it says and to what it leaves, not to samples.
//!
//! Run by `tests/bench/bench.sh test`; without it each story is skipped.

#[path = "bench/phone.rs"]
mod phone;

use std::fs;
use std::path::Path;
use std::time::Duration;

use phone::{Ended, Phone, Run, SERIAL, SOON, until};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What heaptap may take to see that something went wrong and to say so.
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
    pub const NOT_FETCHED: i32 = 10;
    pub const HOST: i32 = 11;
    pub const INTERRUPTED: i32 = 130;
}

/// Starts a recording into `out` and waits until it says that it records and the phone's trace
/// grows.
fn record(phone: &Phone, config: &str, more: &[&str]) -> Run {
    let config = phone.write("config.txtproto", config);
    let mut args = vec!["record", "-n", TARGET, "--config", &config, "-o", "out"];
    args.extend(more);
    let mut run = phone.heaptap(&args);
    let mut early = false;
    until("the recording", PATIENCE, || {
        early = run.ended();
        let traced = phone.traces().iter().any(|(_, size)| *size > 0);
        early || traced && run.said().contains("Ctrl-C ends it")
    });
    if early {
        panic!("the recording ended at once: {:?}", run.end(SOON));
    }
    run
}

/// The whole trace is there, says the manifest, and the phone's copy is gone.
fn assert_collected(phone: &Phone, ended: &Ended) {
    assert_kept(phone, ended);
    assert_eq!(phone.traces(), [], "the phone still has it: {ended:?}");
}

/// The whole trace is there, says the manifest.
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

/// What a failure says of itself.
fn kind(ended: &Ended) -> String {
    let error = json(ended);
    let kind = error.pointer("/error/kind").and_then(Value::as_str);
    kind.unwrap_or_else(|| panic!("no kind: {ended:?}"))
        .to_owned()
}

#[test]
fn the_bench_itself_works() {
    let Some(phone) = Phone::boot("itself") else {
        return;
    };
    let three = phone.shell("echo out; echo err >&2; exit 3");
    assert_eq!(three.code(), Some(3), "{three:?}");
    assert_eq!((&*three.stdout, &*three.stderr), ("out\n", "err\n"));
    assert_eq!(phone.shell("getprop ro.build.type").stdout, "user\n");
    let sources = phone.shell("perfetto --query-raw");
    assert!(
        sources.stdout.contains("linux.process_stats"),
        "the tracing daemons are not up: {sources:?}"
    );
}

#[test]
fn devices_come_from_the_real_server() {
    let Some(phone) = Phone::boot("devices") else {
        return;
    };
    let ended = phone.heaptap(&["devices", "--json"]).end(SOON);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    assert!(ended.stdout.contains(SERIAL), "{ended:?}");
    // What the server does not know is asked of the phone.
    assert!(ended.stdout.contains("Bench Phone"), "{ended:?}");

    phone.host("adb", &["disconnect"]).end(SOON);
    let none = phone.heaptap(&["devices", "--json"]).end(SOON);
    assert_eq!(
        none.code(),
        Some(exit::DONE),
        "none is no failure: {none:?}"
    );
    let check = phone.heaptap(&["check", TARGET, "--json"]).end(SOON);
    assert_eq!(check.code(), Some(exit::NO_DEVICE), "{check:?}");
}

#[test]
fn a_missing_server_is_started_and_stays() {
    // The server finds a phone at an emulator's port by itself.
    let Some(phone) = Phone::boot_unconnected("server", 5555) else {
        return;
    };
    let mut listed = phone.heaptap(&["devices"]).end(SOON);
    until("the phone in the list", SOON, || {
        assert_eq!(listed.code(), Some(exit::DONE), "{listed:?}");
        let found = listed.words().contains("emulator-5554");
        if !found {
            listed = phone.heaptap(&["devices"]).end(SOON);
        }
        found
    });
    // adb itself finds that server running: it would say so when it had to start one.
    let adb = phone.host("adb", &["devices"]).end(SOON);
    assert!(!adb.words().contains("daemon"), "not kept: {adb:?}");
    assert!(adb.stdout.contains("emulator-5554"), "{adb:?}");
}

#[test]
fn of_two_phones_one_must_be_named() {
    let Some(phone) = Phone::boot("two") else {
        return;
    };
    let other = phone.boot_another(5603);
    let torn = phone.heaptap(&["check", TARGET]).end(SOON);
    assert_eq!(torn.code(), Some(exit::NO_DEVICE), "{torn:?}");
    assert!(
        torn.stderr.contains(SERIAL) && torn.stderr.contains(&other.serial),
        "both are listed: {torn:?}"
    );
    let named = phone
        .heaptap(&["-s", &other.serial, "check", TARGET])
        .end(SOON);
    assert_eq!(named.code(), Some(exit::DONE), "{named:?}");
}

#[test]
fn doctor_finds_the_bench_healthy() {
    let Some(phone) = Phone::boot("doctor") else {
        return;
    };
    let ended = phone.heaptap(&["doctor"]).end(SOON);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    // A phone whose tracing is off is not.
    phone.signal("KILL", "traced");
    let ill = phone.heaptap(&["doctor"]).end(SOON);
    assert_eq!(ill.code(), Some(exit::NO_DEVICE), "{ill:?}");
}

#[test]
fn check_tells_apart_what_may_be_profiled() {
    let Some(phone) = Phone::boot("check") else {
        return;
    };
    let yes = phone.heaptap(&["check", TARGET]).end(SOON);
    assert_eq!(yes.code(), Some(exit::DONE), "{yes:?}");
    let no = phone.heaptap(&["check", "com.example.release"]).end(SOON);
    assert_eq!(no.code(), Some(exit::NOT_ELIGIBLE), "{no:?}");
    assert!(no.words().contains("profileable"), "the fix: {no:?}");
    let unknown = phone.heaptap(&["check", "com.example.nowhere"]).end(SOON);
    assert_eq!(unknown.code(), Some(exit::NOT_ELIGIBLE), "{unknown:?}");
}

#[test]
fn a_silent_phone_is_told_from_an_absent_one() {
    let Some(phone) = Phone::boot("silent") else {
        return;
    };
    phone.signal("STOP", "adbd");
    let silent = phone.heaptap(&["check", TARGET, "--json"]).end(PATIENCE);
    assert_eq!(silent.code(), Some(exit::DEVICE_FAILED), "{silent:?}");
    let devices = phone.heaptap(&["devices"]).end(PATIENCE);
    assert_eq!(devices.code(), Some(exit::DONE), "{devices:?}");
    phone.host("adb", &["disconnect"]).end(SOON);
    let absent = phone.heaptap(&["check", TARGET, "--json"]).end(PATIENCE);
    assert_eq!(absent.code(), Some(exit::NO_DEVICE), "{absent:?}");
    assert_ne!(kind(&silent), kind(&absent));
}

#[test]
fn a_recording_is_stopped_and_pulled() {
    let Some(phone) = Phone::boot("record") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn a_duration_ends_it_without_a_hand() {
    let Some(phone) = Phone::boot("duration") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &["--duration", "1s"]);
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn a_detached_recording_is_stopped_from_elsewhere() {
    let Some(phone) = Phone::boot("detach") else {
        return;
    };
    let config = phone.write("config.txtproto", STATS_AND_HEAP);
    let start = phone
        .heaptap(&[
            "record", "-n", TARGET, "--config", &config, "--detach", "-o", "out",
        ])
        .end(PATIENCE);
    assert_eq!(start.code(), Some(exit::DONE), "{start:?}");
    assert!(phone.shell("pidof perfetto").status.success(), "it runs on");
    let status = phone.heaptap(&["status"]).end(SOON);
    assert_eq!(status.code(), Some(exit::DONE), "{status:?}");
    assert!(status.words().contains(TARGET), "{status:?}");
    let stop = phone.heaptap(&["stop"]).end(PATIENCE);
    assert_eq!(stop.code(), Some(exit::NO_SAMPLES), "{stop:?}");
    assert_collected(&phone, &stop);
    assert!(!phone.shell("pidof perfetto").status.success(), "it ended");
}

#[test]
fn a_killed_heaptap_is_collected_later() {
    let Some(phone) = Phone::boot("killed") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    run.signal("KILL");
    run.end(SOON);
    assert!(phone.shell("pidof perfetto").status.success(), "it runs on");
    let collect = phone.heaptap(&["stop"]).end(PATIENCE);
    assert_eq!(collect.code(), Some(exit::NO_SAMPLES), "{collect:?}");
    assert_collected(&phone, &collect);
}

#[test]
fn a_recording_survives_its_adb_server() {
    let Some(phone) = Phone::boot("noserver") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    // The next server knows no phone: whoever starts it has to connect again.
    phone.host("adb", &["kill-server"]).end(SOON);
    until("the loss", SOON, || run.said().contains("waiting for it"));
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn a_recording_survives_a_stalled_phone() {
    let Some(phone) = Phone::boot("stalled") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("STOP", "adbd");
    std::thread::sleep(Duration::from_secs(3));
    phone.signal("CONT", "adbd");
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn a_phone_that_stays_stalled_is_given_up() {
    let Some(phone) = Phone::boot("stuck") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("STOP", "adbd");
    run.signal("INT");
    // The second says: don't wait.
    std::thread::sleep(Duration::from_secs(1));
    run.signal("INT");
    let given_up = run.end(PATIENCE);
    assert_eq!(given_up.code(), Some(exit::NOT_FETCHED), "{given_up:?}");
    assert!(
        given_up.words().contains("heaptap collect"),
        "how to get it: {given_up:?}"
    );
    let patient = phone.heaptap(&["devices"]).end(PATIENCE);
    assert!(patient.code().is_some(), "{patient:?}");

    phone.signal("CONT", "adbd");
    let collect = phone.heaptap(&["stop"]).end(PATIENCE);
    assert_eq!(collect.code(), Some(exit::NO_SAMPLES), "{collect:?}");
    assert_collected(&phone, &collect);
}

#[test]
fn adbd_dies_in_mid_pull() {
    let Some(phone) = Phone::boot("midpull") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    // A tail of zeros, which readers skip, makes the pull last.
    let traces = phone.traces();
    let (trace, _) = &traces[0];
    let name = trace.file_name().expect("a file").to_string_lossy();
    let remote = format!("/data/misc/perfetto-traces/{name}");
    let bytes = 600 << 20;
    phone.on(&["truncate", "-s", &bytes.to_string(), &remote]);
    run.signal("INT");
    let fetched = || -> u64 {
        walk(phone.work())
            .iter()
            .map(|file| file.metadata().map_or(0, |metadata| metadata.len()))
            .sum()
    };
    until("the pull", SOON, || fetched() > 1 << 20);
    phone.signal("KILL", "adbd");
    assert!(fetched() < bytes, "the pull was over before adbd died");
    let mut ended = run.end(PATIENCE);
    // Either it came back for the rest, or it says how to.
    match ended.code() {
        Some(exit::NO_SAMPLES) => {}
        Some(exit::NOT_FETCHED) => {
            assert!(ended.words().contains("heaptap collect"), "{ended:?}");
            assert!(!phone.traces().is_empty(), "the phone keeps it: {ended:?}");
            ended = phone.heaptap(&["collect"]).end(PATIENCE);
            assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
        }
        _ => panic!("{ended:?}"),
    }
    assert_collected(&phone, &ended);
    let size = fs::metadata(phone.work().join("out/raw-trace"));
    assert_eq!(size.expect("just seen").len(), bytes, "whole");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn a_session_name_in_use_is_refused_and_said() {
    let Some(phone) = Phone::boot("unique") else {
        return;
    };
    let config = format!("{STATS_AND_HEAP}unique_session_name: \"heaptap-bench\"\n");
    let first = record(&phone, &config, &[]);
    let config = phone.work().join("config.txtproto");
    let second = phone
        .heaptap(&[
            "record",
            "-n",
            TARGET,
            "--config",
            &config.to_string_lossy(),
            "-o",
            "second",
            "--json",
        ])
        .end(PATIENCE);
    assert_eq!(second.code(), Some(exit::DEVICE_FAILED), "{second:?}");
    assert!(!kind(&second).is_empty());
    first.signal("INT");
    let ended = first.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn a_killed_perfetto_ends_the_recording_with_a_cause() {
    let Some(phone) = Phone::boot("noperfetto") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("KILL", "perfetto");
    let ended = run.end(PATIENCE);
    assert!(
        matches!(ended.code(), Some(exit::INCOMPLETE | exit::DEVICE_FAILED)),
        "{ended:?}"
    );
    assert!(ended.words().contains("perfetto"), "the cause: {ended:?}");
    assert!(phone.work().join("out/raw-trace").is_file(), "{ended:?}");
}

#[test]
fn a_killed_tracing_daemon_ends_the_recording_with_a_cause() {
    let Some(phone) = Phone::boot("notraced") else {
        return;
    };
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("KILL", "traced");
    let ended = run.end(PATIENCE);
    assert!(
        matches!(ended.code(), Some(exit::INCOMPLETE | exit::DEVICE_FAILED)),
        "{ended:?}"
    );
}

#[test]
fn without_a_tracing_daemon_nothing_starts() {
    let Some(phone) = Phone::boot("untraced") else {
        return;
    };
    phone.signal("KILL", "traced");
    let config = phone.write("config.txtproto", STATS_AND_HEAP);
    let record = |more: &[&str]| {
        let mut args = vec!["record", "-n", TARGET, "--config", &config, "--json"];
        args.extend(more);
        phone.heaptap(&args).end(PATIENCE)
    };
    let checked = record(&[]);
    assert_eq!(checked.code(), Some(exit::NOT_ELIGIBLE), "{checked:?}");
    assert!(checked.words().contains("tracing daemon"), "{checked:?}");
    // Told to try all the same, it is perfetto that fails.
    let forced = record(&["--force"]);
    assert_eq!(forced.code(), Some(exit::DEVICE_FAILED), "{forced:?}");
    assert!(!kind(&forced).is_empty());
    assert_eq!(phone.traces(), [], "nothing is left: {forced:?}");
}

#[test]
fn a_full_disk_leaves_the_recording_on_the_phone() {
    let Some(phone) = Phone::boot("full") else {
        return;
    };
    let config = phone.write("config.txtproto", STATS_AND_HEAP);
    // A disk of 8 KiB where the recording is to go, seen by this one process alone.
    let small = "mkdir small && mount -t tmpfs -o size=8k none small && exec \"$@\"";
    let heaptap = env!("CARGO_BIN_EXE_heaptap");
    let run = phone.host(
        "unshare",
        &[
            "--mount",
            "sh",
            "-c",
            small,
            "sh",
            heaptap,
            "record",
            "-n",
            TARGET,
            "--config",
            &config,
            "-o",
            "small/out",
        ],
    );
    until("a trace that does not fit", SOON, || {
        run.said().contains("Ctrl-C ends it") && phone.traces().iter().any(|t| t.1 > 16 << 10)
    });
    run.signal("INT");
    let full = run.end(PATIENCE);
    assert_eq!(full.code(), Some(exit::HOST), "{full:?}");
    assert!(full.words().contains("heaptap collect"), "{full:?}");
    let collect = phone.heaptap(&["collect", "-o", "out"]).end(PATIENCE);
    assert_eq!(collect.code(), Some(exit::NO_SAMPLES), "{collect:?}");
    assert_collected(&phone, &collect);
}

#[test]
fn android_10_is_recorded_its_way() {
    let Some(phone) = Phone::boot("ten") else {
        return;
    };
    let props = phone.file("/data/fake/props");
    let text = fs::read_to_string(&props).expect("of every phone");
    let text = text
        .replace("sdk=34", "sdk=29")
        .replace("=14\n", "=10\n")
        .replace("x86_64", "arm64-v8a");
    fs::write(&props, text).expect("writable");
    let run = record(&phone, STATS_AND_HEAP, &["--force"]);
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_kept(&phone, &ended);
    assert!(!ended.words().contains("Java"), "not asked for: {ended:?}");
    // One file, which its shell may not remove: the next recording overwrites it.
    let left = phone.traces();
    let names: Vec<_> = left.iter().map(|(path, _)| path.file_name()).collect();
    assert_eq!(names, [Some("profile-shell".as_ref())]);
}

/// A source that traced_probes registers but, without tracefs, never reports as started or
/// stopped.
fn with_ftrace() -> String {
    format!(
        "{STATS_AND_HEAP}data_source_stop_timeout_ms: 2000 data_sources {{ config {{ \
         name: \"linux.ftrace\" ftrace_config {{ ftrace_events: \"sched/sched_switch\" }} }} }}\n"
    )
}

#[test]
fn a_source_that_cannot_start_does_not_hang_it() {
    let Some(phone) = Phone::boot("ftrace") else {
        return;
    };
    let run = record(&phone, &with_ftrace(), &[]);
    assert!(run.said().contains("slow to start"), "{}", run.said());
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
fn an_interrupted_start_leaves_nothing_behind() {
    let Some(phone) = Phone::boot("early") else {
        return;
    };
    // The start waits 30 s for its sources.
    let config = phone.write("config.txtproto", &with_ftrace());
    let run = phone.heaptap(&["record", "-n", TARGET, "--config", &config, "-o", "out"]);
    until("perfetto", SOON, || {
        phone.shell("pidof perfetto").status.success()
    });
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::INTERRUPTED), "{ended:?}");
    assert!(!phone.shell("pidof perfetto").status.success(), "{ended:?}");
    assert_eq!(phone.traces(), [], "{ended:?}");
    let status = phone.heaptap(&["status", "--json"]).end(SOON);
    assert!(!status.stdout.contains(TARGET), "{status:?}");
}

#[test]
fn the_real_perfetto_takes_the_printed_config() {
    let Some(phone) = Phone::boot("printed") else {
        return;
    };
    let all = [
        "--interval",
        "8192",
        "--duration",
        "1s",
        "--continuous-dump",
        "500ms",
        "--shmem-size",
        "16MiB",
        "--block-client-timeout",
        "1000",
        "--disable-fork-teardown",
        "--all-heaps",
        "--no-startup",
    ];
    for more in [&[][..], &["--duration", "1s", "--dump-at-max"], &all] {
        let mut args = vec![
            "record",
            "-n",
            "com.example.app,com.example.b*",
            "--print-config",
        ];
        args.extend(more);
        let printed = phone.heaptap(&args).end(SOON);
        assert_eq!(printed.code(), Some(exit::DONE), "{printed:?}");
        let config = phone.write("printed.txtproto", &printed.stdout);
        phone
            .host("adb", &["-s", SERIAL, "push", &config, "/data/local/tmp/c"])
            .end(SOON);
        let taken = phone.shell(
            "cat /data/local/tmp/c | perfetto --txt -c - -o /data/misc/perfetto-traces/p \
             --background > /data/local/tmp/pid || exit 9; \
             p=$(cat /data/local/tmp/pid); [ -d /proc/$p ] || exit 8; kill $p; \
             while [ -d /proc/$p ]; do sleep 0.02; done; [ -s /data/misc/perfetto-traces/p ]",
        );
        assert!(
            taken.status.success(),
            "{more:?}: {taken:?}\n{}",
            printed.stdout
        );
    }
}
