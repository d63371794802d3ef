//! Recording an app, and reading the results.

use crate::lab::{APP, Lab, files};
use crate::program::{assert_contains, assert_lacks};

/// Time runs faster on the phone, so a story is short.
const FAST: &str = "android=14,build=userdebug,speed=10";

#[test]
fn a_duration_ends_by_itself_and_leaves_profiles() {
    let lab = Lab::new(FAST);
    let ended = lab.expect(0, "record -n com.example.app -d 4s -o out --json");
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "duration", "{ended}");
    assert_eq!(manifest["outcome"]["complete"], true);
    assert_eq!(ended.json()["manifest"], manifest);
    lab.assert_truth("out");
    lab.assert_tidy("out");
    let trace = std::fs::metadata(lab.work().join("out/raw-trace")).unwrap();
    assert_eq!(manifest["trace"]["size"], trace.len());
}

#[test]
fn each_signal_ends_it_in_good_order() {
    for signal in ["INT", "TERM", "HUP"] {
        let lab = Lab::new(FAST);
        let mut running = lab.record("");
        running.until_recorded();
        running.signal(signal);
        running.ends(0);
        assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "interrupted");
        lab.assert_truth("out");
        lab.assert_tidy("out");
    }
}

#[cfg(unix)]
#[test]
fn under_nohup_it_goes_on_after_the_terminal_is_closed() {
    let lab = Lab::new(FAST);
    let mut running = lab.start_under_nohup(&crate::lab::recording("out", "--json-lines"));
    running.until_recorded();
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::HUP).unwrap();
    let last = running.until_that("progress", |_| true)["elapsed_s"].as_f64();
    running.until_that("progress", |p| p["elapsed_s"].as_f64() > last);
    running.interrupted(0);
    lab.assert_truth("out");
}

#[test]
fn continuous_dumps_are_all_there() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -c 1s -d 5s -o out");
    assert!(lab.manifest("out")["dumps"].as_array().unwrap().len() >= 4);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn an_app_is_recorded_from_its_launch() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,app=stopped");
    let mut running = lab.record("--launch --no-running");
    running.until("launched");
    running.until_that("progress", |p| p["pids"][0].is_u64());
    running.until_recorded();
    running.interrupted(0);
    let manifest = lab.manifest("out");
    assert_eq!(
        manifest["dumps"][0]["flags"]["from_startup"], true,
        "{manifest:#}"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

/// Name, pid and whether it was attached at launch, of each target.
fn targets(manifest: &serde_json::Value) -> Vec<(&str, Option<u64>, Option<bool>)> {
    manifest["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| {
            (
                t["name"].as_str().unwrap(),
                t["pid"].as_u64(),
                t["from_startup"].as_bool(),
            )
        })
        .collect()
}

#[test]
fn who_is_launched_takes_the_place_of_who_was_stopped() {
    for how in [
        &["-n", APP, "--no-running"][..],
        &["-n", APP],
        &["--package", APP],
        &["-n", APP, "--config", "startup"],
        &["-n", "com.example.stopped"],
    ] {
        let lab = Lab::new("android=14,speed=10");
        let mut args = vec!["record", "--launch", "-d", "8s", "-o", "out"];
        args.extend(how);
        lab.expect(0, &args);
        let manifest = lab.manifest("out");
        let launched = manifest["dumps"][0]["pid"].as_u64();
        let name = manifest["dumps"][0]["process"].as_str().unwrap();
        let named: Vec<_> = targets(&manifest)
            .into_iter()
            .filter(|t| t.0 == name)
            .collect();
        assert_eq!(named, [(name, launched, Some(true))], "{how:?}");
        lab.assert_truth("out");
        lab.assert_tidy("out");
    }
}

#[test]
fn a_launched_app_has_its_name_even_if_nobody_looks_before_the_end() {
    let lab = Lab::new("android=14,speed=10");
    lab.expect(
        0,
        "record -n com.example.app --launch -d 8s -o out --detach",
    );
    lab.until_ended();
    lab.expect(0, "stop");
    assert_eq!(lab.manifest("out")["dumps"][0]["process"], APP);
    lab.assert_tidy("out");
}

#[test]
fn a_process_that_is_being_recorded_is_not_recorded_again() {
    let lab = Lab::new(FAST);
    let first = "record -n com.example.app -o one --detach --json";
    let id = lab.expect(0, first).json()["session"].clone();
    let id = id.as_str().unwrap();
    for how in [["-n", APP], ["--package", APP]] {
        let mut args = vec!["record", "-d", "1s", "-o", "two", "--json"];
        args.extend(how);
        let error = lab.expect(5, &args).error();
        assert_eq!(error["kind"], "already-recorded", "{error}");
        let help = error["help"].as_str().unwrap();
        assert_contains(&help, &format!("heaptap stop {id}"));
        assert_lacks(&help, "--no-check");
        assert!(!lab.work().join("two").exists());
    }
    lab.run("record -n com.example.app -d 1s -o forced --no-check")
        .assert_stderr(&format!("heaptap stop {id}"))
        .refute_stderr("killall");
    let another = "record -n com.example.idle -d 1s -o two";
    lab.run(another);
    assert!(lab.work().join("two/manifest.json").exists());
    lab.expect(0, &["stop", id]);
    lab.assert_tidy("one");
}

#[test]
fn what_is_waited_for_and_what_is_not_meant_is_said_at_the_start() {
    let lab = Lab::new("android=14,speed=10");
    let waiting = lab.run("record -n com.example.stopped -d 1s");
    let said = waiting.to_string();
    assert_contains(
        &said,
        "note: com.example.stopped is not running; waiting for it to start",
    );
    assert_contains(&said, "--launch");
    let main_only = lab.run("record -n com.example.app -d 1s").to_string();
    let note = "note: com.example.app also runs com.example.app:service";
    assert_contains(&main_only, note);
    // Quiet, it is only what is wrong.
    let args = "record -n com.example.closed --no-check -d 1s -q";
    let quiet = lab.run(args).stderr;
    assert_contains(&quiet, "warning: com.example.closed is neither");
    assert_lacks(&quiet, "note: ");
}

#[test]
fn nothing_to_record_is_refused_with_what_there_is() {
    let lab = Lab::new("android=14,speed=10");
    let nobody = lab.expect(4, "record -n com.example.app --user 99");
    assert_contains(&nobody.to_string(), "does not have user 99");
    assert!(nobody.to_string().contains("0 and 10"), "{nobody}");
    let typo = lab.expect(4, "record -n surfaceflingr");
    assert_contains(&typo.to_string(), "did you mean surfaceflinger");
    let asked = lab.expect(4, "record -n com.example.stopped --no-startup");
    assert!(asked.to_string().contains("--no-startup"), "{asked}");
}

#[test]
fn who_detaches_hears_of_what_can_be_done_next() {
    let lab = Lab::new("android=14,speed=10");
    let left = lab.expect(0, "record -n com.example.app -o out --detach");
    let said = left.to_string();
    assert_contains(&said, "heaptap status");
    assert_lacks(&said, "Ctrl-C");
    assert_contains(&said, "heaptap snapshot");
    lab.expect(0, "stop");
    lab.assert_tidy("out");
    // Commands that cannot work are not suggested.
    let args = "record -n com.example.app -o without --detach";
    let left = lab.expect(0, &format!("{args} --no-snapshots"));
    assert!(!left.to_string().contains("heaptap snapshot"), "{left}");
    lab.expect(0, "stop");
    lab.assert_tidy("without");
}

#[test]
fn a_directory_with_something_in_it_is_refused_before_anything_is_recorded() {
    let lab = Lab::new(FAST);
    std::fs::create_dir(lab.work().join("out")).unwrap();
    std::fs::write(lab.work().join("out/notes.txt"), b"mine").unwrap();
    let error = lab.fails(2, "record -n com.example.app -d 1s -o out");
    assert_eq!(error["kind"], "output-not-empty");
    assert_eq!(error["message"], "the directory out is not empty");
    assert_eq!(files(&lab.work().join("out")), ["notes.txt"]);
    assert!(lab.phone.truth().is_empty(), "nothing was recorded");
}

#[test]
fn every_android_records() {
    for android in 10..=16 {
        let lab = Lab::new(&format!("android={android},build=userdebug,speed=10"));
        lab.expect(0, "record -n com.example.app -d 3s -o out");
        lab.assert_truth("out");
        if android > 10 {
            lab.assert_tidy("out");
        }
    }
}

#[test]
fn without_a_name_the_directory_is_named_after_target_time_and_session() {
    let lab = Lab::new(FAST);
    lab.expect(0, "record -n com.example.app -d 2s");
    let directories = files(&lab.work());
    assert_eq!(directories.len(), 1, "{directories:?}");
    assert!(
        directories[0].starts_with("heaptap-com.example.app-2"),
        "{directories:?}"
    );
    let manifest = lab.manifest(&directories[0]);
    let id = manifest["session"]["id"].as_str().unwrap();
    assert!(
        directories[0].ends_with(&format!("Z-{id}")),
        "{directories:?}"
    );
    lab.assert_truth(&directories[0]);
}

#[test]
fn why_an_app_that_no_check_stopped_has_no_samples_is_told_once() {
    let lab = Lab::new("android=14,build=user,speed=20");
    let closed = "com.example.closed";
    let args = format!("record -n {closed} --no-check -d 2s -o out");
    lab.expect(7, &args);
    let warnings = lab.manifest("out")["warnings"].clone();
    let kinds: Vec<_> = warnings
        .as_array()
        .unwrap()
        .iter()
        .map(|w| &w["kind"])
        .collect();
    assert_eq!(kinds, ["user-release"], "{warnings:#}");
}

#[test]
fn only_apps_are_launched() {
    let lab = Lab::new(FAST);
    let ended = lab.fails(2, "record -n surfaceflinger --launch --no-check -o out");
    assert_eq!(ended["kind"], "nothing-to-launch");
    assert!(lab.phone.truth().is_empty(), "nothing was recorded");
    assert!(!lab.work().join("out").exists());
    // Its process ends with the restart.
    lab.expect(2, "record -p 6201 --launch")
        .assert_stderr("name of an app");
    let left_out = "record -n com.example.app --launch --no-startup";
    assert_eq!(lab.fails(2, left_out)["kind"], "option-conflict");
}

#[test]
fn before_android_12_the_check_refuses_a_heap_by_name() {
    let lab = Lab::new("android=11");
    let check = ["check", "-n", APP, "--json", "--heap"];
    let named = lab.expect(4, (check, "com.android.art"));
    assert_eq!(named.json()["eligible"], false, "{named}");
    named.assert_stdout("SDK_LOW");
    assert_eq!(named.json()["targets"][0]["native"], "no", "{named}");
    for heap in ["libc.malloc", "native", "java"] {
        lab.expect(0, &[&check[..], &[heap]].concat());
    }
}

#[test]
fn processes_that_were_to_be_skipped_are_no_fault_of_the_device() {
    let lab = Lab::new("android=14,speed=10");
    let args = "record -n com.example.app --no-running -d 2s -o out";
    let ended = lab.expect(7, args);
    let said = "`--no-running` skips running processes";
    ended.assert_stderr(said);
    let warnings = lab.manifest("out")["warnings"].clone();
    assert_eq!(warnings[0]["kind"], "running-skipped", "{warnings}");
    assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
}

#[test]
fn the_check_knows_that_selinux_will_be_permissive() {
    let vold = "record -n vold --disable-selinux -d 1s -o out";
    for build in ["userdebug", "eng"] {
        let lab = Lab::new(&format!("android=14,build={build},speed=10"));
        let ended = lab.expect(7, vold);
        // vold allocates nothing on this phone, which is not SELinux's fault.
        ended.refute_stderr("SELinux forbids");
        let manifest = lab.manifest("out");
        assert_eq!(manifest["warnings"][0]["kind"], "no-allocation", "{ended}");
        assert_eq!(manifest["targets"][0]["eligibility"]["verdict"], "yes");
        assert_eq!(lab.shell("getenforce"), "Enforcing\n");
        // Only apps can be launched.
        ended.refute_stderr("--launch");
    }
    // On a user build, the option cannot help.
    let lab = Lab::new("android=14,speed=10");
    lab.expect(4, vold);
}

#[test]
fn a_heap_that_no_process_has_is_told_and_the_others_are_there() {
    let lab = Lab::new(FAST);
    let heaps = "libc.malloc,com.example.aren";
    lab.expect(
        0,
        &[
            "record", "-n", APP, "--heaps", heaps, "-d", "4s", "-o", "out",
        ],
    )
    .assert_stderr("warning: no process has samples of the heap com.example.aren");
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["complete"], true);
    let warnings = manifest["warnings"].to_string();
    assert_contains(&warnings, "heap-without-samples");
    lab.assert_tidy("out");
}

/// Returns the path of a config whose session waits `timeout_ms` for the trigger `seen`.
fn triggered_config(lab: &Lab, timeout_ms: u32) -> String {
    let path = lab.work().join("triggered.txtpb");
    let text = format!(
        "buffers {{ size_kb: 16384 }}
        data_sources {{ config {{
          name: 'android.heapprofd'
          heapprofd_config {{
            process_cmdline: '{APP}' sampling_interval_bytes: 4096 block_client: true
          }}
        }} }}
        trigger_config {{
          trigger_mode: START_TRACING
          trigger_timeout_ms: {timeout_ms}
          triggers {{ name: 'seen' stop_delay_ms: 4000 }}
        }}"
    );
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn a_trigger_of_the_config_ends_it_in_full() {
    let lab = Lab::new(FAST);
    let config = triggered_config(&lab, 3_600_000);
    let running = lab.start(&format!("record --config {config} -o out"));
    // A trigger that comes before the session waits for it is lost, and a second one does nothing.
    lab.until("its end", |lab| {
        let trigger = heaptap_adb::Command::program("trigger_perfetto");
        lab.on_phone(&trigger.arg("seen"));
        lab.work().join("out/manifest.json").exists()
    });
    let ended = running.ends(0);
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "trigger", "{ended}");
    assert_eq!(manifest["outcome"]["complete"], true);
    assert!(!manifest["dumps"].as_array().unwrap().is_empty());
    lab.assert_tidy("out");
}

#[test]
fn a_trigger_that_does_not_come_is_the_cause_of_an_empty_trace() {
    let lab = Lab::new(FAST);
    let config = triggered_config(&lab, 2_000);
    lab.expect(7, &format!("record --config {config} -o out"));
    let manifest = lab.manifest("out");
    assert_eq!(manifest["outcome"]["ended_by"], "trigger-timeout");
    let warnings = manifest["warnings"].as_array().unwrap();
    let kinds: Vec<_> = warnings.iter().map(|warning| &warning["kind"]).collect();
    assert_eq!(kinds, ["not-triggered"], "{manifest:#}");
    lab.assert_tidy("out");
}
