//! A recording that outlives its process, terminal and host.

use crate::claims::{blocked_by_a_file, profile_name};
use crate::lab::{APP, Lab, files, recording};
use crate::program::assert_contains;
use std::io::Write as _;
use virtual_phone::FaultKind;

const FAST: &str = "android=14,build=userdebug,speed=10";

#[test]
fn a_detached_recording_is_looked_at_labelled_stopped_and_collected() {
    let lab = Lab::new(FAST);
    let started = lab.expect(0, "record -n com.example.app -o out --detach");
    let id = started.stdout.trim().to_owned();
    assert_eq!(id.len(), 8, "{started}");

    let status = lab.status();
    let session = &status["sessions"][0];
    assert_eq!(session["session"], id.as_str(), "{status:#}");
    assert_eq!(session["state"], "detached");
    assert_eq!(session["targets"][0], APP);

    lab.expect(0, &["snapshot", &id, "--label", "after-login"]);
    let status = lab.expect(0, "status");
    status.assert_stdout("after-login");

    // A prefix of the id is enough.
    lab.expect(0, &["stop", &id[..4]]);
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "stopped");
    assert_eq!(
        manifest["dumps"][0]["label"]["name"], "after-login",
        "{manifest:#}"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
    let empty = lab.status();
    assert_eq!(empty["sessions"].as_array().unwrap().len(), 0);
}

#[test]
fn sessions_are_listed_without_an_adb_server() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    lab.phone.shutdown();
    let status = lab.status();
    assert_eq!(status["sessions"][0]["state"], "server-down", "{status:#}");
    lab.expect(0, "status")
        .assert_stdout("adb server not running");
}

#[test]
fn stop_from_elsewhere_lets_the_recorder_finish() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("");
    running.until_recorded();
    lab.expect(0, "stop");
    running.ends(0);
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "stopped");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_second_interrupt_leaves_it_on_the_phone_for_stop() {
    for fault in ["stop-timeout", "perfetto-stuck"] {
        let lab = Lab::new(&format!("android=14,build=userdebug,speed=1,fault={fault}"));
        let ended = lab.record("").interrupt_twice();
        ended.assert_code(10);
        let error = ended.error();
        assert_eq!(error["kind"], "not-fetched", "{ended}");
        assert_contains(&error["help"].to_string(), "heaptap stop");
        assert_eq!(lab.traces().len(), 1, "{fault}");
    }
}

/// heapprofd does not write its data in time, as for a process that keeps it too busy.
#[test]
fn a_final_dump_that_does_not_come_is_told() {
    let lab = Lab::new("android=14,build=userdebug,speed=20,fault=stop-timeout");
    let warning = |directory: &str| {
        let manifest = lab.manifest(directory);
        assert_eq!(manifest["outcome"]["complete"], false, "{manifest:#}");
        let warnings = manifest["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{manifest:#}");
        let text = |key: &str| warnings[0][key].as_str().unwrap().to_owned();
        (text("kind"), text("message"))
    };
    let record = "record -n com.example.app -d 4500ms -o";
    lab.expect(6, &format!("{record} some -c 1s"));
    let (kind, message) = warning("some");
    assert_eq!(kind, "final-dump-missing");
    assert_contains(&message, "the final dump is missing");
    // Later commands report it again, but not for an earlier dump.
    let top = lab.run("top some");
    top.assert_stderr("the final dump is missing");
    lab.expect(0, "top some@1").refute_stderr("final dump");
    let diff = "diff some@1 some@last --fail-over 1gb";
    lab.expect(12, diff)
        .assert_stderr("data is missing from one side")
        .refute_stderr("grew by no more");
    lab.expect(7, &format!("{record} none --no-snapshots"));
    assert_eq!(warning("none").0, "stop-timed-out");
}

#[test]
fn another_host_finds_a_recording_by_its_name() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -d 3s -o out --detach");
    let elsewhere = |args: &str| lab.start_as("other-host", args).end();
    let status = elsewhere("status --json").json();
    let id = status["sessions"][0]["session"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(status["sessions"][0]["in_journal"], false);
    assert!(elsewhere("status").stdout.contains("started elsewhere"));
    // It runs, or has ended by now.
    let refused = elsewhere(&format!("snapshot {id} --json")).json();
    let kind = refused["error"]["kind"].as_str();
    assert!(
        matches!(kind, Some("started-elsewhere" | "not-recording")),
        "{refused:#}"
    );
    let collected = elsewhere(&format!("stop {id} -o there"));
    collected.assert_code(0);
    lab.assert_truth("there");
    assert!(lab.traces().is_empty());
    // The host that started it detects that nothing remains, and forgets it.
    let gone = lab.fails(5, "stop");
    assert_eq!(gone["kind"], "trace-gone");
    lab.assert_tidy("out");
}

#[cfg(unix)]
#[test]
fn a_recorder_whose_recording_another_host_fetched_prints_its_labels() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("");
    running.until_recorded();
    for label in ["before", "here"] {
        lab.expect(0, &["snapshot", "--label", label]);
    }
    running.signal_at_once("STOP");
    let journal = lab.journal();
    let id = journal.file_stem().unwrap().to_str().unwrap();
    let fetched = lab
        .start_as("other-host", &["stop", id, "-o", "there"])
        .end();
    fetched.assert_code(0);
    running.signal_at_once("CONT");
    let gone = running.ends(5);
    let error = &gone.error();
    assert_eq!(error["kind"], "trace-gone", "{gone}");
    let help = error["help"].as_str().unwrap();
    let after = help.split("`here` from ").nth(1).expect("the label");
    let from_ns: u64 = after.split(' ').next().unwrap().parse().unwrap();
    // As the help says, it selects the second dump of three.
    let manifest = lab.manifest("there");
    let dumps = manifest["dumps"].as_array().unwrap().iter();
    let is_later = dumps.map(|dump| dump["written_ns"].as_u64() >= Some(from_ns));
    let is_later: Vec<bool> = is_later.collect();
    assert_eq!(is_later, [false, true, true], "{help} {manifest:#}");
    lab.assert_tidy("out");
}

#[test]
fn of_two_sessions_one_must_be_named() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o one --detach");
    lab.expect(0, "record -n com.example.app -o two --detach --no-check");
    let torn = lab.fails(2, "stop");
    assert_eq!(torn["kind"], "several-sessions", "{torn}");
    let status = lab.status();
    let id = |n: usize| {
        status["sessions"][n]["session"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    lab.expect(0, &["stop", &id(0)]);
    // The second one was too late: the first occupied the process.
    lab.expect(7, &["stop", &id(1)]);
    lab.assert_truth("one");
    lab.assert_tidy("one");
}

#[test]
fn the_journal_knows_nothing_more_once_all_is_done() {
    let lab = Lab::new(FAST);
    for command in ["stop", "snapshot"] {
        let none = lab.fails(2, &[command]);
        assert_eq!(none["kind"], "no-session", "{command}");
    }
    let unknown = lab.fails(2, "stop zzzz");
    assert_eq!(unknown["kind"], "no-such-session");
}

/// Another phone, with the state directory and the work directory of `lab`, whose phone no longer
/// exists.
fn phone_lost(lab: Lab, spec: &str) -> Lab {
    let Lab { phone, dir } = lab;
    drop(phone);
    let Lab { phone, .. } = Lab::new(spec);
    Lab { phone, dir }
}

#[test]
fn a_lost_phone_stands_in_nobodys_way_and_is_forgotten_by_name() {
    let lab = Lab::new(FAST);
    let old = lab.expect(0, "record -n com.example.app -o old --detach");
    let old = old.stdout.trim();
    // The same serial, at another server.
    let lab = phone_lost(lab, FAST);
    lab.expect(0, "status")
        .assert_stderr(&format!("stop --forget {old}"));

    for command in ["stop", "snapshot"] {
        let waits = lab.run(&[command, old, "--json"]).json();
        let help = waits["error"]["help"].as_str().unwrap();
        assert!(help.contains(&format!("{command} {old}")), "{waits}");
    }
    let kept = lab.fails(10, &["stop", old]);
    assert_eq!(kept["kind"], "not-fetched", "{kept}");

    lab.expect(0, "record -n com.example.app -o new --detach");
    lab.expect(0, "snapshot --label here");
    lab.expect(0, "stop");
    lab.assert_truth("new");

    let left = lab.status();
    assert_eq!(left["sessions"][0]["session"], old, "{left:#}");
    let gone = lab.expect(0, &["stop", old, "--forget", "--json"]).json();
    assert_eq!(gone["forgotten"], old);
    lab.assert_tidy("new");
}

#[test]
fn flags_narrow_the_choice_among_sessions() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    for command in ["stop", "snapshot"] {
        let other = lab.run(&[command, "-s", "another", "--json"]).json();
        let kind = &other["error"]["kind"];
        // `stop` also queries that device.
        let wanted = match command {
            "stop" => "device-not-found",
            _ => "no-session",
        };
        assert_eq!(kind, wanted, "{other:#}");
    }
    let elsewhere = Lab::new(FAST);
    let other = lab.start_on(&elsewhere.phone, "state", "stop --json");
    assert_eq!(other.end().error()["kind"], "no-session");
    lab.expect(0, "stop -s virtual-1");
    lab.assert_truth("out");
}

#[test]
fn stop_with_another_phone_names_the_session_and_its_phone() {
    let lab = Lab::new(FAST);
    let old = lab.expect(0, "record -n com.example.app -o old --detach");
    let old = old.stdout.trim();
    let lab = phone_lost(
        lab,
        "android=14,build=userdebug,speed=10,serial=other-1,seed=2",
    );
    let none = lab.fails(2, "stop");
    let message = none["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("session {old} is on device virtual-1")),
        "{none}"
    );
    let none = lab.start(&["snapshot", old, "--label", "my label"]).end();
    let again = format!("heaptap snapshot --label 'my label' {old}");
    none.assert_stderr(&again);
}

#[test]
fn session_whose_trace_is_lost_is_lost_for_every_command() {
    let lab = Lab::new(FAST);
    let started = lab.expect(0, "record -n com.example.app -d 1s -o out --detach");
    let id = started.stdout.trim();
    let fetched = lab
        .start_as("other-host", &["stop", id, "-o", "there"])
        .end();
    fetched.assert_code(0);
    let status = lab.expect(0, "status");
    status.assert_stdout("lost");
    let forget = format!("heaptap stop --forget {id}");
    status.assert_stderr(&forget);
    let none = lab.fails(5, "snapshot");
    assert_eq!(none["kind"], "trace-gone", "{none}");
    assert!(none["help"].as_str().unwrap().contains(&forget), "{none}");
    lab.expect(0, &["stop", id, "--forget"]);
    lab.assert_tidy("out");
}

/// Without a server or serial, only the running session counts.
#[test]
fn dead_sessions_do_not_block_the_default() {
    let lab = Lab::new(FAST);
    for directory in ["one", "two"] {
        lab.expect(
            0,
            &[
                "record",
                "-n",
                APP,
                "-o",
                directory,
                "--detach",
                "--no-check",
            ],
        );
    }
    let lab = phone_lost(lab, "android=14,build=userdebug,speed=10,serial=other-1");
    lab.expect(0, "record -n com.example.app -o new --detach");
    let run = |command: &str| lab.command(&[command, "--json"]).output().unwrap();
    assert_eq!(run("snapshot").status.code(), Some(0));
    assert_eq!(run("stop").status.code(), Some(0));
    lab.assert_truth("new");
    let none = String::from_utf8(run("stop").stdout).unwrap();
    assert_contains(&none, "no-session-serves");
}

#[test]
fn status_tells_a_killed_heaptap_from_a_detached_one() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("");
    running.until_recorded();
    running.signal("KILL");
    running.end();
    let status = lab.expect(0, "status");
    status.assert_stdout("recording; its heaptap process is gone");
    let status = lab.status();
    assert_eq!(status["sessions"][0]["state"], "unattended", "{status:#}");
    lab.expect(0, "stop");
    lab.assert_tidy("out");
}

#[test]
fn the_list_of_devices_is_narrowed_by_the_serial() {
    let lab = Lab::new("android=14,devices=2");
    let all = lab.expect(0, "devices --json").json();
    let serial = all["devices"][1]["serial"].as_str().unwrap();
    let one = lab.expect(0, &["devices", "-s", serial, "--json"]).json();
    assert_eq!(one["devices"].as_array().unwrap().len(), 1, "{one:#}");
    assert_eq!(one["devices"][0]["serial"], serial);
    let none = lab.fails(3, "devices -s foo");
    assert_eq!(none["kind"], "device-not-found");
}

#[test]
fn nothing_is_forgotten_because_another_phone_does_not_have_it() {
    let lab = Lab::new(FAST);
    let started = lab.expect(0, "record -n com.example.app -o out --detach");
    let id = started.stdout.trim();
    // The seed changes its boot id.
    let other = Lab::new("android=14,build=userdebug,speed=10,serial=other-1,seed=2");
    lab.phone.unplug(0);
    let state = lab.dir.path().join("state");
    let refused = other.start_as(&state.display().to_string(), &["stop", id, "--json"]);
    refused.ends(10);
    lab.phone.plug_in(0);
    lab.expect(0, "stop");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_stop_collects_where_its_recorder_is_killed() {
    let lab = Lab::new("android=14,build=userdebug,speed=20,fault=stop-timeout");
    let mut running = lab.record("-c 500ms");
    running.until_that("progress", |p| p["trace_bytes"].as_u64() > Some(50_000));
    let mut stop = lab.start("stop --json-lines");
    stop.until("stopping");
    running.signal("KILL");
    running.end();
    let ended = stop.end();
    // The final dump is missing.
    ended.assert_code(6);
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "stopped");
    lab.assert_tidy("out");
}

#[test]
fn a_reboot_is_named_by_whoever_collects() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -c 1s -o out --detach");
    lab.until("a dump", |lab| {
        let status = lab.status();
        status["sessions"][0]["trace_bytes"].as_u64() > Some(100_000)
    });
    lab.phone.reboot(0);
    lab.until("the phone is back", |lab| {
        lab.run("devices --json").stdout.contains("virtual-1")
    });
    let status = lab.status();
    assert_eq!(status["sessions"][0]["restarted"], true, "{status:#}");
    lab.expect(0, "status")
        .assert_stdout("a restart of the device");
    lab.expect(6, "stop");
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "lost", "{manifest:#}");
    assert_eq!(manifest["warnings"][0]["kind"], "device-rebooted");
    lab.assert_tidy("out");
}

#[test]
fn status_finds_what_others_record_on_any_device_and_says_how_to_stop_it() {
    let lab = Lab::new("speed=10,devices=2,serial=fleet");
    let args = "-s fleet-2 record -n com.example.app -o a --detach";
    let begun = lab.start_as("elsewhere", args).end();
    begun.assert_code(0);
    let status = lab.status();
    let session = &status["sessions"][0];
    assert_eq!(session["serial"], "fleet-2", "{status:#}");
    assert_eq!(session["in_journal"], false);
    let id = session["session"].as_str().unwrap();
    let told = lab.expect(0, "status");
    let server = lab.phone.addr();
    let next = format!("heaptap --adb-server {server} -s fleet-2 stop {id}");
    told.assert_stderr(&format!("next: {next}"));
    assert_eq!(session["next"], next, "{status:#}");
    let refused = lab.fails(2, "-s fleet-2 stop");
    assert_eq!(refused["kind"], "no-session", "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert_contains(&message, id);
    lab.expect(0, "-s fleet-1 status")
        .assert_stderr("no recording runs");
    lab.expect(0, &format!("-s fleet-2 stop {id} -o b"));
    lab.assert_has("b", &lab.phone.truth_of(1)[0]);
}

#[test]
fn a_device_that_does_not_answer_hides_no_session() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    let no_exit = virtual_phone::Fault::parse("no-exit").unwrap();
    lab.phone.faults().add(no_exit);
    let told = lab.expect(0, "status");
    told.assert_stdout(APP);
    let silent = "cannot look for recordings on virtual-1";
    told.assert_stderr(silent);
    let told = lab.status();
    assert_eq!(told["sessions"].as_array().unwrap().len(), 1, "{told:#}");
    assert!(told["unreadable"].to_string().contains(silent), "{told:#}");
}

#[test]
fn another_output_is_refused_while_a_process_records() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("");
    running.until_recorded();
    lab.expect(2, "stop -o b").assert_stderr("leave out `-o`");
    lab.expect(0, "stop");
    assert_eq!(running.end().code(), Some(0));
    lab.assert_truth("out");
}

#[test]
fn a_session_whose_trace_was_removed_leaves_nothing() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -d 1s -o out --detach");
    lab.until_ended();
    for trace in lab.traces() {
        let remove = heaptap_adb::Command::program("rm");
        lab.on_phone(&remove.arg(format!("/data/misc/perfetto-traces/{trace}")));
    }
    lab.expect(5, "stop").assert_stderr("no trace of session");
    assert!(!lab.is_left() && !lab.work().join("out").exists());
}

/// A phone with another boot can have had the address of this one for a while.
#[test]
fn a_restart_of_another_phone_does_not_keep_a_recording_from_being_stopped() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -c 1s -o out --detach");
    let mut journal = std::fs::OpenOptions::new()
        .append(true)
        .open(lab.journal())
        .unwrap();
    writeln!(journal, "{{\"event\":\"rebooted\"}}").unwrap();
    // Windows lists a removed file while it is open.
    drop(journal);
    lab.expect(0, "stop");
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "stopped");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_stop_beside_another_says_that_it_waits_and_goes_on_where_that_is_killed() {
    let lab = Lab::new(&format!("{FAST},fault=pull-hang"));
    lab.expect(0, &recording("out", "--detach --no-report"));
    let mut first = lab.start("stop --json-lines");
    first.until("ended");
    let mut second = lab.start("stop --json-lines");
    second.until("waiting-for-other");
    lab.phone.faults().remove(FaultKind::PullHang);
    first.signal("KILL");
    first.end();
    let ended = second.ends(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
    // As it was started.
    assert!(!lab.work().join("out/report.html").exists(), "{ended}");
}

/// As of an unset variable of a shell.
#[test]
fn an_empty_id_is_that_of_no_session() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    for args in [
        &["stop", "--forget", ""][..],
        &["stop", ""],
        &["status", ""],
    ] {
        let refused = lab.expect(2, args);
        let why = "cannot use \"\": a session ID has at least one character";
        refused.assert_stderr(why);
    }
    lab.expect(0, "stop");
}

/// A trace survives a restart, so one that is missing can be on another device with the same serial.
#[test]
fn a_session_without_a_trace_after_a_reboot_stays_until_it_is_forgotten() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    let status = lab.status();
    let id = status["sessions"][0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    lab.reboot_without_traces();
    for _ in 0..2 {
        let ended = lab.expect(5, &["stop", &id]);
        let goes_on = format!("heaptap stop --forget {id}");
        ended.assert_stderr(&goes_on);
        assert!(lab.is_left());
    }
    lab.expect(0, &["stop", "--forget", &id]);
    assert!(!lab.is_left());
}

#[test]
fn what_was_fetched_comes_along_to_another_directory() {
    let lab = Lab::new(FAST);
    let name = profile_name(&lab);
    assert_eq!(blocked_by_a_file(&lab, &name).code(), Some(10));
    let no_pull = virtual_phone::Fault::parse("pull-fail").unwrap();
    lab.phone.faults().add(no_pull);
    lab.expect(0, "stop -o elsewhere");
    lab.assert_truth("elsewhere");
    lab.assert_tidy("elsewhere");
    // The copied trace does not stay in the old directory.
    assert_eq!(files(&lab.work().join("out")), [name]);
}

#[test]
fn another_spelling_of_the_directory_moves_nothing() {
    let lab = Lab::new(FAST);
    std::fs::create_dir(lab.work().join("sub")).unwrap();
    let name = profile_name(&lab);
    assert_eq!(blocked_by_a_file(&lab, &name).code(), Some(10));
    let trace = lab.work().join("out/raw-trace");
    let before = std::fs::read(&trace).unwrap();
    lab.expect(10, "stop -o sub/../out");
    assert!(std::fs::read(&trace).unwrap() == before, "the trace");
    std::fs::remove_file(lab.work().join("out").join(&name)).unwrap();
    lab.expect(0, "stop -o sub/../out");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn a_move_to_another_directory_that_was_killed_is_finished_later() {
    for step in ["claimed", "journal", "files"] {
        finish_move(step);
    }
}

/// Finishes a move that was killed after that step.
fn finish_move(step: &str) {
    let lab = Lab::new(FAST);
    let mut running = lab.record("--with java,meminfo");
    running.until_recorded();
    lab.expect(0, "snapshot --label here");
    running.until("captured");
    running.signal("KILL");
    running.end();
    // As `stop -o elsewhere` leaves it.
    let (old, new) = (lab.work().join("out"), lab.work().join("elsewhere"));
    std::fs::create_dir(&new).unwrap();
    let marker = ".heaptap-session";
    std::fs::copy(old.join(marker), new.join(marker)).unwrap();
    if step == "claimed" {
        let id = lab.status()["sessions"][0]["session"].clone();
        let part = format!(".heaptap-{}-part", id.as_str().unwrap());
        std::fs::write(new.join(part), "half").unwrap();
        lab.expect(0, "stop -o elsewhere");
        assert_moved(&lab);
        return;
    }
    if step == "files" {
        std::fs::rename(old.join("meminfo"), new.join("meminfo")).unwrap();
    }
    let journal = lab.journal();
    let mut text = std::fs::read_to_string(&journal).unwrap();
    let moved = serde_json::json!({"event": "moved", "output": new});
    text.push_str(&format!("{moved}\n"));
    std::fs::write(&journal, text).unwrap();

    lab.expect(0, "stop");
    assert_moved(&lab);
}

fn assert_moved(lab: &Lab) {
    let (old, new) = (lab.work().join("out"), lab.work().join("elsewhere"));
    let manifest = lab.manifest("elsewhere");
    assert_eq!(manifest["labels"][0]["name"], "here", "{manifest:#}");
    assert_eq!(manifest["companion"]["files"].as_array().unwrap().len(), 2);
    let java = lab.manifest("elsewhere/java");
    let profile = java["dumps"][0]["file"].as_str().unwrap();
    assert!(new.join("java").join(profile).is_file());
    assert!(files(&new.join("meminfo")).len() == 1 && !old.exists());
    lab.assert_tidy("elsewhere");
}

#[cfg(unix)]
#[test]
fn a_directory_of_a_move_that_was_killed_is_free_again() {
    let lab = Lab::new(FAST);
    let name = profile_name(&lab);
    assert_eq!(blocked_by_a_file(&lab, &name).code(), Some(10));
    let (out, new) = (lab.work().join("out"), lab.work().join("elsewhere"));
    // The copy of a pipe does not end.
    let (trace, aside) = (out.join("raw-trace"), out.join("aside"));
    std::fs::rename(&trace, &aside).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&trace).status();
    assert!(made.expect("there is mkfifo").success());
    let moving = lab.start("stop -o elsewhere");
    let marker = new.join(".heaptap-session");
    lab.until("the claim", |_| {
        std::fs::read(&marker).is_ok_and(|text| !text.is_empty())
    });
    moving.signal("KILL");
    moving.end();
    std::fs::rename(&aside, &trace).unwrap();
    std::fs::remove_file(out.join(&name)).unwrap();
    // As if it had been killed after the copy.
    std::fs::copy(&trace, new.join("raw-trace")).unwrap();
    lab.expect(0, "stop");
    lab.assert_truth("out");
    lab.assert_tidy("out");
    assert!(!new.exists(), "{:?}", files(&new));
    lab.expect(0, "record -n com.example.app -d 2s -o elsewhere");
}

#[test]
fn a_trace_that_was_noted_and_got_no_name_is_fetched_again() {
    let lab = Lab::new("build=userdebug,speed=10");
    lab.expect(0, "record -n com.example.app -d 3s -o out --detach");
    lab.until_ended();
    // heaptap was killed between the two.
    let journal = lab.journal();
    let mut text = std::fs::read_to_string(&journal).unwrap();
    let pulled = serde_json::json!({"event": "pulled", "size": 9, "sha256": "0".repeat(64)});
    text.push_str(&format!("{pulled}\n"));
    std::fs::write(&journal, text).unwrap();
    let status = lab.status();
    assert_eq!(status["sessions"][0]["state"], "uncollected", "{status}");
    lab.expect(0, "stop");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

/// The phone's adb server answers in this way, from its next answer on.
fn broken_server(fault: &str) -> Lab {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -o out --detach");
    let fault = virtual_phone::Fault::parse(fault).expect("a fault");
    lab.phone.faults().add(fault);
    lab
}

#[test]
fn status_at_a_broken_adb_server_is_unreadable() {
    for (fault, answer) in [
        ("hang", "did not answer"),
        ("drop", "closed the connection"),
    ] {
        let lab = broken_server(fault);
        let status = lab.expect(3, "status --json").json();
        assert_eq!(status["sessions"][0]["state"], "unreadable", "{status:#}");
        let told = status["unreadable"][0].as_str().unwrap_or_default();
        assert!(told.contains(answer), "{status:#}");
        // Another host has nothing in its journal, and is as blind.
        let elsewhere = lab.start_as("elsewhere", "status").end();
        elsewhere.assert_code(3);
        elsewhere.assert_stderr("warning: cannot look");
        elsewhere.refute_stderr("no recording runs");
        lab.expect(12, "status --fail");
    }
}

#[test]
fn status_of_what_is_not_an_adb_server_is_unreadable() {
    let lab = Lab::new(FAST);
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"FAIL0004nope"] {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut stream in server.incoming().map_while(Result::ok) {
                let _ = std::io::Read::read(&mut stream, &mut [0; 64]);
                let _ = stream.write_all(answer);
            }
        });
        let told = lab.start_at(&address, "status").end();
        told.assert_code(3);
        told.assert_stderr("warning: cannot look");
    }
    // Nothing listens where a server is named.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let told = lab.start_at(&address, "status").end();
    told.assert_code(3);
}

#[test]
fn snapshot_during_the_start_waits_for_it() {
    let lab = Lab::new(FAST);
    let gate = lab.phone.faults().close_gate(&["perfetto -c - -o"]);
    let mut recording = lab.start_recording("");
    assert!(gate.is_reached_within(crate::lab::LIMIT), "no start");
    let state = lab.status()["sessions"][0]["state"].clone();
    assert_eq!(state, "starting");
    let mut snapshot = lab.start("snapshot --label early --json-lines");
    snapshot.until("waiting-for-start");
    drop(gate);
    recording.until("started");
    let taken = snapshot.ends(0);
    taken.refute_stderr("stop");
    recording.interrupted(0);
    let label = lab.manifest("out")["dumps"][0]["label"]["name"].clone();
    assert_eq!(label, "early");
    lab.assert_truth("out");
}

#[test]
fn snapshot_of_a_start_that_fails_does_not_advise_stop() {
    let lab = Lab::new(&format!("{FAST},fault=perfetto-fail"));
    let gate = lab.phone.faults().close_gate(&["perfetto -c - -o"]);
    let recording = lab.start_recording("");
    assert!(gate.is_reached_within(crate::lab::LIMIT), "no start");
    let mut snapshot = lab.start("snapshot --json-lines");
    snapshot.until("waiting-for-start");
    drop(gate);
    assert_eq!(recording.end().code(), Some(5));
    let failed = snapshot.ends(5);
    assert_eq!(failed.error()["kind"], "not-started", "{failed}");
    failed.refute_stderr("heaptap stop");
}

#[test]
fn complete_recording_with_a_copy_on_the_device_is_finished() {
    let lab = Lab::new(FAST);
    let removing = lab.phone.faults().close_gate(&["rm -f"]);
    let mut running = lab.record("");
    running.until_recorded();
    running.signal("INT");
    assert!(removing.is_reached_within(crate::lab::LIMIT), "no removal");
    running.signal("KILL");
    running.end();
    drop(removing);
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "interrupted");
    let status = lab.status();
    assert_eq!(status["sessions"][0]["state"], "finished", "{status:#}");
    lab.expect(0, "status --fail");
    // Also while the device is away.
    lab.phone.unplug(0);
    lab.expect(0, "status").assert_stdout("finished; a copy");
    let done = lab.expect(0, "stop --all --json").json();
    assert!(done["sessions"][0]["output"].is_string(), "{done:#}");
    lab.phone.plug_in(0);
    lab.expect(0, "stop --all");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn stop_all_ends_every_recording_and_reports_each() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,devices=2,serial=rack");
    lab.expect(0, "stop --all").assert_stderr("no recordings");
    lab.expect(0, "status --fail");
    for (phone, directory) in [("rack", "a"), ("rack-2", "b")] {
        let args = [
            "-s", phone, "record", "-n", APP, "-o", directory, "--detach",
        ];
        lab.expect(0, &args);
    }
    let ended = lab.expect(0, "stop --all --json").json();
    let sessions = ended["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{ended:#}");
    assert!(
        sessions.iter().all(|one| one["manifest"].is_object()),
        "{ended:#}"
    );
    lab.assert_has("a", &lab.phone.truth_of(0)[0]);
    lab.assert_has("b", &lab.phone.truth_of(1)[0]);
    lab.expect(0, "status --fail");
}

#[test]
fn stop_all_goes_on_after_a_failure() {
    let lab = Lab::new(FAST);
    let short = "record -n com.example.app -d 1s -o lost --detach";
    let lost = lab.expect(0, short).stdout.trim().to_owned();
    lab.until_ended();
    lab.expect(9, "status --fail");
    let fetched = lab
        .start_as("other-host", &["stop", &lost, "-o", "there"])
        .end();
    fetched.assert_code(0);
    lab.expect(9, "status --fail");
    lab.expect(0, "record -n com.example.app -o out --detach");
    let ended = lab.expect(5, "stop --all --json").json();
    let sessions = ended["sessions"].as_array().unwrap();
    assert_eq!(sessions[0]["session"], lost.as_str(), "{ended:#}");
    assert_eq!(sessions[0]["error"]["kind"], "trace-gone", "{ended:#}");
    assert!(sessions[1]["manifest"].is_object(), "{ended:#}");
    lab.assert_truth("out");
    let refused = lab.fails(2, "stop --all -o there");
    assert!(refused["message"].as_str().unwrap().contains("--all"));
}

#[test]
fn output_that_is_a_file_is_refused_before_anything_is_recorded() {
    let lab = Lab::new(FAST);
    std::fs::write(lab.work().join("file"), "mine").unwrap();
    std::fs::write(
        lab.work().join("s.yaml"),
        format!("version: 1\nname: s\ntarget: {{name: {APP}}}\nsteps: [start]\n"),
    )
    .unwrap();
    for command in [
        &["record", "-n", APP, "-d", "1s"][..],
        &["dump", "-n", APP],
        &["dump", "-n", APP, "--hprof"],
        &["run", "s.yaml"],
        &["doctor", "--try"],
    ] {
        let refused = lab.fails(2, (command, "-o file"));
        assert_eq!(refused["kind"], "output-is-file", "{command:?} {refused}");
    }
    assert!(lab.traces().is_empty() && lab.phone.truth().is_empty());
    lab.expect(0, "record -n com.example.app -o out --detach");
    let refused = lab.fails(2, "stop -o file");
    assert_eq!(refused["kind"], "output-is-file", "{refused}");
    lab.expect(0, "stop");
    // A directory in the place of a file.
    std::fs::create_dir(lab.work().join("folder")).unwrap();
    for command in [
        &["report", "out", "-o", "folder"][..],
        &["symbolize", "out/raw-trace", "-o", "folder"],
        &["query", "out", "SELECT 1", "-o", "folder"],
        &["meminfo", "-n", APP, "--save", "folder"],
        &["smaps", "-n", APP, "--save", "folder"],
    ] {
        let refused = lab.fails(2, command);
        assert_eq!(
            refused["kind"], "output-is-directory",
            "{command:?} {refused}"
        );
    }
    let kept = std::fs::read(lab.work().join("file")).unwrap();
    assert_eq!(kept, b"mine");
}

#[test]
fn record_waits_for_its_device() {
    let lab = Lab::new(FAST);
    lab.phone.unplug(0);
    let none = lab.fails(3, "record -n com.example.app -o out --wait-device 1s");
    assert_eq!(none["kind"], "no-device", "{none}");
    let mut recording = lab.start_recording("--wait-device 60s -s virtual-1");
    recording.until("waiting-for-device");
    lab.phone.plug_in(0);
    recording.until_recorded();
    recording.interrupted(0);
    lab.assert_truth("out");
    // Ctrl-C ends the wait.
    lab.phone.unplug(0);
    let args = "record -n com.example.app -o b --wait-device 60s --json-lines";
    let mut waiting = lab.start(args);
    waiting.until("waiting-for-device");
    waiting.interrupted(130);
}

#[test]
fn offline_device_is_no_choice_beside_another() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,devices=2,serial=rack,fault=offline#2");
    let args = "record -n com.example.app -d 1s -o out";
    lab.expect(0, args)
        .assert_stderr("note: rack-2 is offline; using rack");
    lab.assert_truth("out");
}

#[test]
fn recording_that_is_over_at_once_has_started() {
    let lab = Lab::new("android=14,build=userdebug,speed=100");
    let args = "record -n com.example.app -d 10ms -o out --json-lines";
    let ended = lab.run(args);
    let started = ended.last_with("pid");
    assert_eq!(started["event"], "started", "{ended}");
}
