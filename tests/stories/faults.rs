//! Faults during a recording: each ends in a recording or in a named cause.

use crate::lab::{APP, Lab, Running, files, recording};
use crate::program::{Ended, assert_contains};

const PHONE: &str = "android=14,build=userdebug,speed=10";

/// Records for three of the phone's seconds with a fault from the start.
fn with_fault(fault: &str) -> (Lab, Ended) {
    let lab = Lab::new(&format!("{PHONE},fault={fault}"));
    let ended = lab.run("record -n com.example.app -d 3s -o out --json-lines");
    (lab, ended)
}

#[test]
fn broken_pulls_are_tried_again() {
    for fault in ["pull-cut#1", "pull-short#1", "pull-flip#1", "pull-cut@0#1"] {
        let (lab, ended) = with_fault(fault);
        assert_eq!(ended.code(), Some(0), "{fault}: {ended}");
        assert!(ended.stdout.contains("pull-retry"), "{fault}: {ended}");
        lab.assert_truth("out");
        lab.assert_tidy("out");
    }
}

#[test]
fn a_trace_that_grows_while_it_is_fetched_is_fetched_when_it_is_whole() {
    let lab = Lab::new(PHONE);
    lab.expect(0, "record -n com.example.app -d 3s -o out --detach");
    lab.until_ended();
    let name = lab.traces().pop().expect("a trace");
    let path = format!("/data/misc/perfetto-traces/{name}");
    let faults = lab.phone.faults();
    let mut gate = faults.close_gate(&["RECV:", &path]);
    let running = lab.start("stop --json-lines");
    for _ in 0..10 {
        assert!(gate.is_reached_within(crate::lab::LIMIT), "no attempt");
        let mut trace = lab.phone.file(&path).expect("its bytes");
        // An empty packet.
        trace.extend([0x0a, 0x00]);
        lab.phone.put_file(&path, &trace, 0o600);
        drop(gate);
        gate = faults.close_gate(&["RECV:", &path]);
    }
    drop(gate);
    let ended = running.ends(0);
    let retries = ended.stdout.matches("pull-retry").count();
    assert!(retries >= 10, "{ended}");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_pull_that_gets_no_further_or_always_differs_is_left_to_stop() {
    for (fault, kind) in [
        ("pull-flip", virtual_phone::FaultKind::PullFlip),
        ("pull-cut", virtual_phone::FaultKind::PullCut),
        ("stat-lies@-100", virtual_phone::FaultKind::StatLies),
    ] {
        let (lab, ended) = with_fault(fault);
        assert_eq!(ended.code(), Some(10), "{fault}: {ended}");
        assert!(!lab.work().join("out/raw-trace").exists(), "{fault}");
        lab.phone.faults().remove(kind);
        lab.expect(0, "stop");
        lab.assert_truth("out");
        lab.assert_tidy("out");
    }
}

#[test]
fn a_trace_that_cannot_be_removed_fails_nothing() {
    let (lab, ended) = with_fault("rm-fail");
    ended.assert_code(0);
    ended.assert_stderr("cannot remove");
    lab.assert_truth("out");
    // Its copy is there, but this host has fetched it.
    assert_eq!(lab.traces().len(), 1);
    let left = lab.status();
    assert_eq!(left["sessions"], serde_json::json!([]), "{left}");
    let stop = lab.fails(2, "stop");
    assert_eq!(stop["kind"], "no-session", "{stop}");
    let of_another = lab.start_as("other", "status --json").end().json();
    assert_eq!(
        of_another["sessions"][0]["state"], "uncollected",
        "{of_another}"
    );
}

#[test]
fn starts_that_fail_are_named() {
    for (fault, expected) in [
        ("perfetto-fail", "perfetto-failed"),
        ("perfetto-reject", "session-rejected"),
    ] {
        let (lab, ended) = with_fault(fault);
        assert_eq!(ended.code(), Some(5), "{fault}: {ended}");
        assert_eq!(ended.error()["kind"], expected, "{fault}: {ended}");
        assert!(!lab.work().join("out").exists(), "{fault}");
        lab.assert_tidy("out");
    }
}

#[test]
fn a_detached_start_that_is_rejected_leaves_nothing() {
    // Slow enough to see perfetto before its first write fails.
    let lab = Lab::new("android=14,build=userdebug,speed=2,fault=disk-full");
    let record = "record -n com.example.app -o out --detach --json-lines";
    let ended = lab.expect(5, record);
    assert_eq!(ended.error()["kind"], "session-rejected", "{ended}");
    ended.assert_stdout("free storage");
    assert!(!lab.is_left(), "{ended}");
    lab.assert_tidy("out");
}

#[test]
fn warnings_around_the_pid_do_no_harm() {
    let (lab, ended) = with_fault("perfetto-noise");
    ended.assert_code(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_cable_pulled_while_it_records_costs_nothing() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("");
    running.until_recorded();
    lab.phone.unplug(0);
    running.until("connection-lost");
    lab.phone.plug_in(0);
    running.until("reconnected");
    running.until_recorded();
    running.interrupted(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_cable_that_is_out_at_the_end_of_the_duration_costs_nothing() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("-d 120s");
    running.until_recorded();
    lab.phone.unplug(0);
    running.until("connection-lost");
    let over = lab.phone.boot_ns() + 121_000_000_000;
    lab.until("the duration", |lab| lab.phone.boot_ns() > over);
    lab.phone.plug_in(0);
    let ended = running.end();
    // The trace contains the time without a connection.
    ended.assert_code(0);
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "duration");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_cable_pulled_while_it_ends_costs_nothing() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("");
    running.until_recorded();
    lab.phone.unplug(0);
    running.signal("INT");
    running.until("stopping");
    running.until("connection-lost");
    lab.phone.plug_in(0);
    running.ends(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_cable_that_stays_out_leaves_it_for_stop() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("");
    running.until_recorded();
    lab.phone.unplug(0);
    running.until("connection-lost");
    running.signal("INT");
    running.until("stopping");
    running.interrupted(10);
    let away = lab.status();
    assert_eq!(away["sessions"][0]["state"], "away", "{away:#}");
    lab.phone.plug_in(0);
    lab.expect(0, "stop");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_connection_cut_while_it_starts_is_no_loss() {
    // The connections: first for facts; one of the next ones has the start command.
    for occasion in 1..=12 {
        let lab = Lab::new(&format!("{PHONE},fault=no-exit#{occasion}"));
        let ended = lab.run("record -n com.example.app -d 3s -o out --json-lines");
        match ended.code() {
            Some(0) => {
                lab.assert_truth("out");
                lab.assert_tidy("out");
            }
            // A query failed before anything was recorded.
            Some(5) => {
                assert_eq!(
                    ended.error()["kind"],
                    "connection-lost",
                    "#{occasion}: {ended}"
                );
                lab.assert_tidy("out");
            }
            // It might be running: the journal has it.
            Some(10) => {
                lab.expect(0, "stop");
                lab.assert_tidy("out");
            }
            _ => panic!("#{occasion}: {ended}"),
        }
    }
}

/// The kinds of a manifest's warnings.
fn warnings(lab: &Lab, directory: &str) -> Vec<String> {
    let manifest = lab.manifest(directory);
    let warnings = manifest["warnings"].as_array().unwrap();
    let kind = |w: &serde_json::Value| w["kind"].as_str().unwrap().to_owned();
    warnings.iter().map(kind).collect()
}

#[test]
fn one_rule_for_traces_that_are_cut_and_each_cause_once() {
    /// Fault, flags, code of `record`, its warnings, codes of `convert`.
    type Case = (
        &'static str,
        &'static str,
        i32,
        &'static [&'static str],
        &'static [i32],
    );
    let cases: [Case; 7] = [
        ("truncate", "3s", 8, &["trace-cut"], &[8]),
        // The cut is between two dumps, or in one.
        ("truncate", "continuous", 6, &["trace-cut"], &[0, 6]),
        ("reboot@3000", "20s", 6, &["device-rebooted"], &[8]),
        ("disk-full@2000", "20s", 6, &["disk-full"], &[8]),
        ("disk-full@6000", "continuous", 6, &["disk-full"], &[6]),
        ("traced-dies@3000", "20s", 6, &["recording-lost"], &[8]),
        ("heapprofd-dead", "3s", 7, &["heapprofd-silent"], &[7]),
    ];
    for (fault, how, code, said, converted) in cases {
        let lab = Lab::new(&format!("{PHONE},fault={fault}"));
        let mut args = vec!["record", "-n", APP, "-o", "out", "--json"];
        match how {
            "continuous" => args.extend(["-d", "5s", "-c", "500ms"]),
            duration => args.extend(["-d", duration]),
        }
        let ended = lab.expect(code, &args);
        let found = warnings(&lab, "out");
        match how {
            // With dumps, missing parts of them are reported, too.
            "continuous" => assert_eq!(found[0], said[0], "{fault}: {ended}"),
            _ => assert_eq!(found, said, "{fault}: {ended}"),
        }
        // JSON modes also print the text messages.
        assert!(ended.stderr.contains("warning: "), "{fault}: {ended}");
        if fault.starts_with("reboot") {
            lab.expect(8, "leaks out")
                .assert_stderr("the device restarted")
                .assert_stderr("help: record again");
        }
        if fault.starts_with("disk-full") {
            // A larger buffer does not help a full disk, neither now nor later.
            let top = lab.run("top out");
            let advice = "sizes and drains the buffers";
            assert!(!ended.stderr.contains(advice), "{fault}: {ended}");
            assert!(!top.stderr.contains(advice), "{fault}: {top}");
        }
        let again = lab.run("convert out/raw-trace -o again");
        let code = again.code().expect("it ends by itself");
        assert!(converted.contains(&code), "{fault}: {again}");
    }
}

#[test]
fn many_processes_are_told_once_for_each_cause() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let ended = lab.expect(6, "record -n com.example.* -d 3s -o out");
    let lines = |part: &str| ended.stderr.lines().filter(|l| l.contains(part)).count();
    assert_eq!(lines("attached after"), 1, "{ended}");
    assert_eq!(
        lines("com.example.closed"),
        2,
        "at the check and at the end: {ended}"
    );
    assert!(!warnings(&lab, "out").contains(&"not-from-startup".to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    for warning in lab.manifest("out")["warnings"].as_array().unwrap() {
        assert!(
            seen.insert(warning["pid"].as_u64()),
            "told twice: {warning}"
        );
    }
}

#[test]
fn a_phone_that_blinks_while_it_starts_is_no_loss() {
    for occasion in 5..=14 {
        let lab = Lab::new(&format!("{PHONE},fault=blink@300#{occasion}"));
        let ended = lab.run("record -n com.example.app -d 3s -o out --json-lines");
        match ended.code() {
            Some(0) => lab.assert_truth("out"),
            // A query failed before anything was recorded.
            Some(3 | 5) => assert!(lab.phone.truth().is_empty(), "#{occasion}: {ended}"),
            _ => panic!("#{occasion}: {ended}"),
        }
        lab.assert_tidy("out");
    }
}

#[test]
fn a_detached_start_names_its_stop_once_it_runs() {
    let mut unseen = 0;
    for occasion in 5..=14 {
        let lab = Lab::new(&format!("{PHONE},fault=no-exit#{occasion}"));
        let ended = lab.run("record -n com.example.app -o out --detach --json");
        lab.phone.faults().remove(virtual_phone::FaultKind::NoExit);
        match ended.code() {
            Some(0) => lab.expect(0, "stop"),
            Some(10) => {
                unseen += 1;
                ended.assert_stdout("heaptap stop");
                lab.run("stop")
            }
            Some(5) => continue,
            _ => panic!("#{occasion}: {ended}"),
        };
        assert!(lab.work().join("out/manifest.json").exists(), "#{occasion}");
        lab.assert_tidy("out");
    }
    assert!(unseen > 0, "no fault met the confirming");
}

#[test]
fn a_reboot_ends_it_and_what_was_written_is_kept() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("-c 1s");
    running.until_that("progress", |p| p["trace_bytes"].as_u64() > Some(100_000));
    lab.phone.reboot(0);
    running.ends(6);
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "lost");
    assert_contains(&manifest.to_string(), "device-rebooted");
    assert!(!manifest["dumps"].as_array().unwrap().is_empty());
    lab.assert_tidy("out");
}

#[test]
fn a_perfetto_that_dies_costs_no_more_than_its_last_seconds() {
    for fault in ["perfetto-dies@6000", "traced-dies@6000"] {
        let lab = Lab::new(&format!("{PHONE},fault={fault}"));
        lab.expect(6, "record -n com.example.app -c 1s -o out --json-lines");
        let manifest = lab.manifest("out");
        assert_eq!(manifest["outcome"]["ended_by"], "lost", "{fault}");
        assert!(!manifest["dumps"].as_array().unwrap().is_empty(), "{fault}");
        lab.assert_tidy("out");
    }
}

#[test]
fn a_later_process_tells_of_an_early_end_that_it_did_not_see() {
    // Slow, so that it is killed before it has fetched the trace.
    let lab = Lab::new(&format!("{PHONE},fault=perfetto-dies@6000+slow@100"));
    let mut running = lab.start_recording("-c 1s");
    running.until("ended");
    running.signal_at_once("KILL");
    running.end();
    lab.expect(6, "stop --json");
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "lost");
    lab.assert_tidy("out");
}

#[test]
fn an_empty_trace_is_a_recording_without_samples() {
    let (lab, ended) = with_fault("perfetto-dies@100");
    ended.assert_code(7);
    let warnings = lab.manifest("out")["warnings"].to_string();
    assert_contains(&warnings, "trace-empty");
    lab.assert_tidy("out");
}

#[test]
fn the_reason_of_an_end_outlives_a_directory_that_was_full() {
    let lab = Lab::new(&format!("{PHONE},fault=reboot@10000"));
    let mut running = lab.record("-d 20s");
    running.until_recorded();
    std::fs::remove_dir_all(lab.work().join("out")).unwrap();
    std::fs::write(lab.work().join("out"), b"in the way").unwrap();
    running.ends(11);
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    assert_contains(&journal, "rebooted");
    lab.expect(6, "stop -o elsewhere");
    assert_eq!(warnings(&lab, "elsewhere"), ["device-rebooted"]);
}

#[test]
fn a_host_that_cannot_write_keeps_the_phone_s_copy() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("");
    running.until_recorded();
    // The directory is replaced by a file during the recording.
    std::fs::remove_dir_all(lab.work().join("out")).unwrap();
    std::fs::write(lab.work().join("out"), b"in the way").unwrap();
    let ended = running.interrupted(11);
    assert_eq!(lab.traces().len(), 1);
    let help = ended.error()["help"].to_string();
    assert_contains(&help, "heaptap stop");
    lab.expect(0, "stop -o elsewhere");
    lab.assert_truth("elsewhere");
    lab.assert_tidy("elsewhere");
}

#[test]
fn an_end_before_the_beginning_leaves_nothing() {
    let lab = Lab::new(&format!("{PHONE},fault=shell-hang#1"));
    let running = lab.start_recording("");
    // The first query gets no answer, and no event shows when it was sent.
    while !lab.work().join("out").exists() {
        std::thread::yield_now();
    }
    running.interrupted(130);
    assert!(!lab.work().join("out").exists());
    assert!(lab.phone.truth().is_empty());
    lab.assert_tidy("out");
}

#[test]
fn a_target_that_exits_is_a_warning() {
    let lab = Lab::new(&format!("{PHONE},fault=target-dies@2000"));
    lab.expect(0, "record -n com.example.app -d 5s -o out")
        .assert_stderr("warning");
    lab.assert_truth("out");
    lab.assert_tidy("out");
    assert!(files(&lab.work().join("out")).len() > 2);
}

#[test]
fn an_app_that_was_killed_for_memory_is_named() {
    // Android 10 does not have exit-info: there the log of lmkd tells.
    for android in [10, 14] {
        let lab = Lab::new(&format!(
            "{PHONE},android={android},fault=low-memory-kill@2000"
        ));
        let ended = lab.expect(0, "record -n com.example.app -d 5s -c 1s -o out");
        let killed = format!("{APP}: the system killed it because memory was low");
        ended.assert_stderr(&killed);
        ended.refute_stderr("logcat -b crash");
        let manifest = lab.manifest("out");
        let kinds = manifest["warnings"].as_array().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|warning| &warning["kind"]).collect();
        assert_eq!(kinds, ["low-memory-kill"], "{manifest:#}");
        lab.assert_truth("out");
    }
}

#[test]
fn what_ended_a_profile_before_its_first_sample_is_the_one_cause_that_is_said() {
    for (fault, cause) in [
        ("overrun", "buffer-overran"),
        ("client-timeout", "buffer-overran"),
        ("bad-stack", "invalid-stack-bounds"),
        ("corrupt", "buffer-corrupted"),
        ("target-dies", "disconnected"),
        ("rejected", "rejected-concurrent"),
    ] {
        let (lab, ended) = with_fault(fault);
        assert!(matches!(ended.code(), Some(6 | 7)), "{fault}: {ended}");
        let manifest = lab.manifest("out");
        let dumps = manifest["dumps"].as_array().unwrap();
        assert!(
            dumps.iter().all(|dump| dump["file"].is_null()),
            "{manifest:#}"
        );
        let warnings = manifest["warnings"].as_array().unwrap();
        let kinds: Vec<_> = warnings.iter().map(|warning| &warning["kind"]).collect();
        assert_eq!(kinds, [cause], "{fault}: {manifest:#}");
        for command in [
            &["convert", "out/raw-trace", "-o", "again"][..],
            &["top", "out/raw-trace"],
        ] {
            let told = lab.expect(7, command);
            assert!(
                !told.stderr.contains("it has no samples"),
                "{fault}: {told}"
            );
            assert!(!told.stderr.contains("-i 512"), "{fault}: {told}");
        }
    }
}

#[test]
fn an_overrun_is_recorded_again_with_a_longer_interval() {
    let lab = Lab::new(&format!("{PHONE},fault=overrun@500#1"));
    let ended = lab.expect(0, &recording("out", "-d 3s --retry-overrun --json-lines"));
    ended.assert_stdout("\"record-again\"");
    let first = lab.manifest("out-incomplete");
    assert_eq!(first["dumps"][0]["flags"]["buffer_overran"], true);
    assert_eq!(first["outcome"]["exit_code"], 6);
    let told = ended.stdout.contains("out-incomplete");
    assert!(told, "{ended}");
    assert_eq!(
        lab.manifest("out")["dumps"][0]["sampling_interval_bytes"],
        16_384
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn selinux_is_relaxed_no_longer_than_the_recording() {
    let lab = Lab::new(PHONE);
    assert_eq!(lab.shell("getenforce"), "Enforcing\n");
    let mut running = lab.record("--disable-selinux");
    running.until_recorded();
    assert_eq!(lab.shell("getenforce"), "Permissive\n");
    // A guard of its own could not know when the other recording ends.
    let second = "record -n vold --disable-selinux -o second";
    assert_eq!(lab.fails(5, second)["kind"], "selinux-guarded");
    assert_eq!(lab.shell("getenforce"), "Permissive\n");
    let ended = running.interrupted(0);
    for enforcing in [false, true] {
        let event = format!("\"event\":\"selinux\",\"enforcing\":{enforcing}");
        ended.assert_stdout(&event);
    }
    assert_eq!(lab.shell("getenforce"), "Enforcing\n");
    // If heaptap is killed, the guard on the phone does it.
    let mut running = lab.start(&recording("two", "--json-lines --disable-selinux"));
    running.until_recorded();
    running.signal("KILL");
    running.end();
    assert_eq!(lab.shell("getenforce"), "Permissive\n");
    lab.expect(0, "status").assert_stdout("SELinux permissive");
    lab.expect(0, "doctor")
        .assert_stdout("SELinux is permissive");
    lab.expect(0, "stop");
    assert_eq!(lab.shell("getenforce"), "Enforcing\n");
}

#[test]
fn a_forgotten_recording_leaves_selinux_permissive_and_the_command_that_restores_it() {
    let lab = Lab::new(PHONE);
    let args = recording("out", "--disable-selinux --detach");
    let id = lab.expect(0, &args).stdout;
    let forgotten = lab.expect(0, &["stop", "--forget", id.trim()]);
    let (_, command) = forgotten.stderr.split_once(" shell ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    assert_eq!(lab.shell("getenforce"), "Permissive\n");
    let shell = heaptap_adb::Command::program("sh");
    lab.on_phone(&shell.arg("-c").arg(command));
    assert_eq!(lab.shell("getenforce"), "Enforcing\n", "{forgotten}");
}

#[test]
fn selinux_is_restored_where_nothing_starts() {
    let lab = Lab::new(&format!("{PHONE},fault=perfetto-fail"));
    lab.expect(5, "record -n com.example.app -o out --disable-selinux");
    assert_eq!(lab.shell("getenforce"), "Enforcing\n");
    assert!(!lab.shell("ps").contains("heaptap-guard"));
}

#[test]
fn the_guard_restores_selinux_by_itself() {
    let lab = Lab::new(PHONE);
    let mut running = lab.record("--disable-selinux -d 6s");
    running.until_recorded();
    running.signal("KILL");
    running.end();
    // No heaptap returns for it: the loop on the phone detects that perfetto has ended.
    lab.until("SELinux enforces again", |lab| {
        lab.shell("getenforce") == "Enforcing\n"
    });
    lab.expect(0, "stop");
}

/// The address can be that of a tunnel: a server of this host would be in the way of its return.
#[cfg(unix)]
#[test]
fn a_server_that_heaptap_did_not_start_is_waited_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new(PHONE);
    let bin = lab.dir.path();
    let adb = bin.join("adb");
    std::fs::write(&adb, "#!/bin/sh\necho \"$@\" >>\"${0%/*}/ran\"\n").unwrap();
    std::fs::set_permissions(&adb, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let args = recording("out", "--json-lines");
    let mut heaptap = lab.command(&args);
    heaptap
        .args(["--adb-server", &lab.phone.addr().to_string()])
        .env("PATH", format!("{}:{path}", bin.display()));
    let mut running = Running::new(heaptap.spawn().unwrap(), &args);
    running.until_recorded();
    lab.phone.shutdown();
    running.until("connection-lost");
    // Several attempts.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let ran = bin.join("ran");
    assert!(
        !ran.exists(),
        "adb {}",
        std::fs::read_to_string(&ran).unwrap()
    );
    running.signal("INT");
    let ended = running.interrupted(10);
    assert!(!ran.exists(), "{ended}");
}
