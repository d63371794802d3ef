//! Faults: each ends in a collected recording or a named cause, never in a hang or false success.

use std::fs;
use std::path::Path;

use crate::phone::{Phone, SOON, until};
use crate::{PATIENCE, STATS_AND_HEAP, TARGET, assert_collected, exit, kind, record};

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_recording_survives_its_adb_server() {
    let phone = Phone::boot("noserver");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    // The next server does not know the phone: a client must connect again.
    phone.host("adb", &["kill-server"]).end(SOON);
    until("the loss", SOON, || run.said().contains("waiting for it"));
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_recording_survives_a_stalled_phone() {
    let phone = Phone::boot("stalled");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("STOP", "adbd");
    // adbd stays stopped while perfetto writes the trace 20 times.
    let size = || phone.traces().iter().map(|(_, size)| *size).sum::<u64>();
    let (mut last, mut written) = (size(), 0);
    until("more of the trace", SOON, || {
        let now = size();
        written += u32::from(now > last);
        last = now;
        written == 20
    });
    phone.signal("CONT", "adbd");
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_phone_that_stays_stalled_is_given_up() {
    let phone = Phone::boot("stuck");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("STOP", "adbd");
    run.signal("INT");
    until("the end", SOON, || run.said().contains("Ctrl-C leaves it"));
    // The second one means: do not wait. Signals within 100 ms are one.
    std::thread::sleep(std::time::Duration::from_millis(200));
    run.signal("INT");
    let given_up = run.end(PATIENCE);
    assert_eq!(given_up.code(), Some(exit::NOT_FETCHED), "{given_up:?}");
    assert!(
        given_up.words().contains("heaptap stop"),
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn adbd_dies_in_mid_pull() {
    let phone = Phone::boot("midpull");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    // A tail of zeros makes the pull last; heaptap reports at the end that it is not part of a
    // trace.
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
    // Either heaptap fetched the rest, or it suggests the command for it.
    match ended.code() {
        Some(exit::DAMAGED) => {}
        Some(exit::NOT_FETCHED) => {
            assert!(ended.words().contains("heaptap stop"), "{ended:?}");
            assert!(!phone.traces().is_empty(), "the phone keeps it: {ended:?}");
            ended = phone.heaptap(&["stop"]).end(PATIENCE);
            assert_eq!(ended.code(), Some(exit::DAMAGED), "{ended:?}");
        }
        _ => panic!("{ended:?}"),
    }
    assert_collected(&phone, &ended);
    let size = fs::metadata(phone.work().join("out/raw-trace"));
    assert_eq!(size.expect("just seen").len(), bytes, "whole");
}

fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_killed_perfetto_ends_the_recording_with_a_cause() {
    let phone = Phone::boot("noperfetto");
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_killed_tracing_daemon_ends_the_recording_with_a_cause() {
    let phone = Phone::boot("notraced");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    phone.signal("KILL", "traced");
    let ended = run.end(PATIENCE);
    assert!(
        matches!(ended.code(), Some(exit::INCOMPLETE | exit::DEVICE_FAILED)),
        "{ended:?}"
    );
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn without_a_tracing_daemon_nothing_starts() {
    let phone = Phone::boot("untraced");
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
    // With `--no-check`, perfetto itself fails.
    let forced = record(&["--no-check"]);
    assert_eq!(forced.code(), Some(exit::DEVICE_FAILED), "{forced:?}");
    assert!(!kind(&forced).is_empty());
    assert_eq!(phone.traces(), [], "nothing is left: {forced:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_full_disk_leaves_the_recording_on_the_phone() {
    let phone = Phone::boot("full");
    let config = phone.write("config.txtproto", STATS_AND_HEAP);
    // A disk of 8 KiB at the output, visible to this process only.
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
        run.said().contains("Ctrl-C: end") && phone.traces().iter().any(|t| t.1 > 16 << 10)
    });
    run.signal("INT");
    let full = run.end(PATIENCE);
    assert_eq!(full.code(), Some(exit::HOST), "{full:?}");
    assert!(full.words().contains("heaptap stop"), "{full:?}");
    let collect = phone.heaptap(&["stop", "-o", "out"]).end(PATIENCE);
    assert_eq!(collect.code(), Some(exit::NO_SAMPLES), "{collect:?}");
    assert_collected(&phone, &collect);
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_source_that_cannot_start_does_not_hang_it() {
    let phone = Phone::boot("ftrace");
    let run = record(&phone, &with_ftrace(), &[]);
    assert!(run.said().contains("slow to start"), "{}", run.said());
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn an_interrupted_start_leaves_nothing_behind() {
    let phone = Phone::boot("early");
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
