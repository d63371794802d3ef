//! Recordings without faults.

use std::fs;

use crate::phone::{Phone, SERIAL, SOON};
use crate::{PATIENCE, STATS_AND_HEAP, TARGET, assert_collected, assert_kept, exit, kind, record};

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_recording_is_stopped_and_pulled() {
    let phone = Phone::boot("record");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_duration_ends_it_without_a_hand() {
    let phone = Phone::boot("duration");
    let run = record(&phone, STATS_AND_HEAP, &["--duration", "1s"]);
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_detached_recording_is_stopped_from_elsewhere() {
    let phone = Phone::boot("detach");
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_killed_heaptap_is_collected_later() {
    let phone = Phone::boot("killed");
    let run = record(&phone, STATS_AND_HEAP, &[]);
    run.signal("KILL");
    run.end(SOON);
    assert!(phone.shell("pidof perfetto").status.success(), "it runs on");
    let collect = phone.heaptap(&["stop"]).end(PATIENCE);
    assert_eq!(collect.code(), Some(exit::NO_SAMPLES), "{collect:?}");
    assert_collected(&phone, &collect);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_session_name_in_use_is_refused_and_said() {
    let phone = Phone::boot("unique");
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
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn android_10_is_recorded_its_way() {
    let phone = Phone::boot("ten");
    let props = phone.file("/data/fake/props");
    let text = fs::read_to_string(&props).expect("of every phone");
    let text = text
        .replace("sdk=34", "sdk=29")
        .replace("=14\n", "=10\n")
        .replace("x86_64", "arm64-v8a");
    fs::write(&props, text).expect("writable");
    let run = record(&phone, STATS_AND_HEAP, &["--no-check"]);
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_kept(&phone, &ended);
    assert!(!ended.words().contains("Java"), "not asked for: {ended:?}");
    // One file, which the shell user cannot remove; the next recording overwrites it.
    let left = phone.traces();
    let names: Vec<_> = left.iter().map(|(path, _)| path.file_name()).collect();
    assert_eq!(names, [Some("profile-shell".as_ref())]);
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn the_real_perfetto_takes_the_printed_config() {
    let phone = Phone::boot("printed");
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
        // Returns once tracing runs: a perfetto that is stopped earlier might never end.
        let taken = phone.shell(
            "cat /data/local/tmp/c | perfetto --txt -c - -o /data/misc/perfetto-traces/p \
             --background-wait > /data/local/tmp/pid || exit 9; \
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
