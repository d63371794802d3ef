//! Java allocations tracked by the app's own runtime: the recording has the allocations planted on
//! the phone, at each label; for other processes there is a reason.

// Most of them end a recording by Ctrl-C.
#![cfg_attr(not(unix), allow(dead_code, unused_imports))]

use std::collections::BTreeMap;
use std::io::Read as _;

use heaptap_proto::pprof::Profile;
use prost::Message as _;
use serde_json::Value;
use virtual_phone::TrackedTruth;

use crate::lab::{APP, Lab, recording};
use crate::program::{assert_contains, assert_lacks};

const OLD: &str = "android=11,build=user,speed=10";
const FLAG: &str = "--java-allocations";

/// Allocations and bytes by class and stack, innermost first.
type Sites = BTreeMap<(String, Vec<String>), (u64, u64)>;

/// Contents of a profile in the directory `out`; the runtime's original names if `recorded`.
fn profile(lab: &Lab, file: &str, recorded: bool) -> Sites {
    let packed = std::fs::File::open(lab.work().join("out").join(file)).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    let profile = Profile::decode(bytes.as_slice()).unwrap();
    let text = |id: i64| profile.string_table[usize::try_from(id).unwrap()].clone();
    assert_eq!(text(profile.default_sample_type), "alloc_space");
    let functions: BTreeMap<u64, String> = profile
        .function
        .iter()
        .map(|f| match f.system_name {
            0 => (f.id, text(f.name)),
            system if recorded => (f.id, text(system)),
            _ => (f.id, text(f.name)),
        })
        .collect();
    let locations: BTreeMap<u64, u64> = profile
        .location
        .iter()
        .map(|l| (l.id, l.line[0].function_id))
        .collect();
    let mut sites = Sites::new();
    for sample in &profile.sample {
        assert_eq!(text(sample.label[0].key), "thread");
        let ids = sample.location_id.iter();
        let mut names: Vec<String> = ids.map(|id| functions[&locations[id]].clone()).collect();
        let class = names.remove(0);
        if recorded {
            // Inlined calls are one frame of the runtime.
            names.dedup();
        }
        let sums = sites.entry((class, names)).or_default();
        sums.0 += u64::try_from(sample.value[0]).unwrap();
        sums.1 += u64::try_from(sample.value[1]).unwrap();
    }
    sites
}

/// Returns the lists of the manifest in `out`.
fn dumps(lab: &Lab) -> Vec<Value> {
    let manifest = lab.manifest("out");
    let told = &manifest["java_allocations"];
    assert_eq!(told["by"], "tracking", "{manifest:#}");
    assert_eq!(told["unknown"], serde_json::json!(["free", "history"]));
    told["dumps"].as_array().unwrap().clone()
}

/// Compares the list with the phone's.
fn assert_told(lab: &Lab, dump: &Value, truth: &TrackedTruth) {
    assert_eq!(dump["pid"], truth.pid, "{dump:#}");
    assert_eq!(dump["process"], truth.process.as_str());
    assert_eq!(dump["objects"], truth.entries);
    assert_eq!(dump["full"], truth.forgotten);
    let bytes: u64 = truth.sites.values().map(|sums| sums.1).sum();
    assert_eq!(dump["space"], bytes);
    let file = dump["file"].as_str().unwrap();
    assert_eq!(profile(lab, file, true), truth.sites);
}

fn until_tracking(lab: &Lab) {
    until_tracked_for(lab, 1);
}

/// Waits until allocations were tracked for that long, on the phone's clock.
fn until_tracked_for(lab: &Lab, seconds: u64) {
    lab.until("tracking", |lab| !lab.phone.tracking().is_empty());
    let since = lab.phone.boot_ns();
    lab.until("allocations", |lab| {
        lab.phone.boot_ns() > since + seconds * 1_000_000_000
    });
}

#[test]
fn what_is_tracked_at_labels_and_the_end_is_what_the_phone_planted() {
    let lab = Lab::new(OLD);
    let mut running = lab.record(&[FLAG]);
    running.until_recorded();
    until_tracking(&lab);
    lab.expect(0, &["snapshot", "--label", "after login"]);
    let captured = running.until("captured");
    assert_eq!(captured["captured"][0], "java-allocations", "{captured}");
    running.interrupted(0);
    lab.assert_tidy("out");
    let (dumps, truths) = (dumps(&lab), lab.phone.tracked_truth());
    assert_eq!((dumps.len(), truths.len()), (2, 2), "{dumps:#?}");
    for (dump, truth) in dumps.iter().zip(&truths) {
        assert_told(&lab, dump, truth);
        // On a busy host the list is full before it is requested.
        assert!(truth.entries > 1000, "{truth:?}");
    }
    assert_eq!(dumps[0]["label"], "after login");
    assert_eq!(dumps[1]["label"], Value::Null);
    assert!(lab.phone.tracking().is_empty(), "switched off again");
    let manifest = lab.manifest("out");
    assert_eq!(manifest["warnings"], serde_json::json!([]), "{manifest:#}");
    assert_eq!(manifest["labels"][0]["name"], "after login");
    // All readers of profiles accept them, by directory and by file.
    let first = dumps[0]["file"].as_str().unwrap();
    for input in ["out@after login".to_owned(), format!("out/{first}")] {
        let top = lab.expect(0, &["top", &input, "--json"]).json();
        let heap = &top["heaps"][0];
        assert_eq!(heap["dump"]["process"], APP, "{top:#}");
        let total = heap["total"].to_string();
        assert!(total.contains(&dumps[0]["space"].to_string()), "{top:#}");
    }
    let said = lab.expect(0, "top out@last").stdout;
    assert_contains(&said, "java.lang.Long");
    assert_contains(&said, "every allocation recorded");
    let file = format!("out/{first}");
    lab.expect(0, &format!("convert {file} --format folded -o folded"));
    lab.expect(0, &["report", &file, "-o", "page.html"]);
}

#[test]
fn a_runtime_keeps_the_last_allocations_alone_and_that_is_said() {
    let lab = Lab::new("android=10,build=userdebug,speed=5");
    // On this build every app accepts a debugger.
    let running = lab.start(&recording("out", &[FLAG, "--with", "meminfo"]));
    until_tracked_for(&lab, 40);
    let ended = running.interrupted(0);
    ended.assert_stderr("the app's own runtime tracks");
    ended.assert_stderr("they lack frees");
    ended.assert_stdout("only the most recent ones");
    let (dumps, truths) = (dumps(&lab), lab.phone.tracked_truth());
    assert_told(&lab, &dumps[0], &truths[0]);
    assert_eq!(dumps[0]["objects"], 65_535);
    assert_eq!(dumps[0]["full"], true);
    let manifest = lab.manifest("out");
    let with = &manifest["companion"]["with"];
    assert_eq!(*with, serde_json::json!(["meminfo", "java-allocations"]));
}

#[test]
fn obfuscated_names_become_those_of_the_source() {
    let lab = Lab::new("android=11,build=user,speed=10,obfuscated=yes");
    std::fs::write(lab.work().join("mapping.txt"), virtual_phone::MAPPING).unwrap();
    let running = lab.start(&recording("out", &[FLAG, "--mapping", "mapping.txt"]));
    until_tracking(&lab);
    let ended = running.interrupted(0);
    ended.refute_stderr("named no frame");
    let (dumps, truths) = (dumps(&lab), lab.phone.tracked_truth());
    assert_told(&lab, &dumps[0], &truths[0]);
    let file = dumps[0]["file"].as_str().unwrap();
    let named = profile(&lab, file, false);
    let has = |name: &str| {
        named
            .keys()
            .any(|(_, stack)| stack.iter().any(|f| f == name))
    };
    assert!(
        has("com.example.app.feed.FeedAdapter.onBindViewHolder"),
        "{named:?}"
    );
    assert!(!has("a.a.b"), "{named:?}");
}

#[test]
fn who_takes_no_debugger_is_refused() {
    let lab = Lab::new(OLD);
    let record =
        |name: &str, flag: &str| lab.expect(4, &format!("record -n {name} -d 4s -o out {flag}"));
    let refused = record("com.example.profileable", FLAG);
    refused.assert_stderr("does not accept debugger connections");
    refused.assert_stderr("android:debuggable");
    let refused = record(APP, "--java-allocations=heap");
    refused.assert_stderr("needs Android 12");
    refused.assert_stderr("--java-allocations=tracking");
    record("com.example.nowhere", FLAG);
    assert!(!lab.work().join("out").exists());
    assert!(lab.phone.tracked_truth().is_empty());
    let detached = ["record", "-n", APP, "-o", "out", FLAG, "--detach", "--json"];
    let refused = lab.expect(2, &detached).json();
    assert_eq!(refused["error"]["kind"], "tracking-detached");
}

#[test]
fn a_debugger_in_the_way_is_named() {
    let lab = Lab::new("android=11,build=user,speed=10,fault=debugger");
    let args = ["record", "-n", APP, "-d", "4s", "-o", "out", FLAG, "--json"];
    let ended = lab.expect(5, &args);
    let error = &ended.error();
    assert_eq!(error["kind"], "debugger-in-the-way", "{ended}");
    assert_contains(&error["help"].to_string(), "Android Studio");
    assert!(!lab.work().join("out").exists());
}

#[test]
fn a_lost_cable_and_an_app_that_ends_lose_nothing_that_was_fetched() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.record("--java-allocations=tracking");
    running.until_recorded();
    until_tracking(&lab);
    lab.phone.unplug(0);
    lab.phone.plug_in(0);
    lab.expect(0, "snapshot --label back");
    running.until("captured");
    assert_eq!(lab.phone.tracking().len(), 1, "the runtime tracked on");
    let tracked = lab.phone.tracked_truth().pop().unwrap();
    assert!(tracked.entries > 3000, "from before the cable was lost");
    lab.on_phone_ok("am", &["force-stop", APP]);
    running.interrupted(0);
    let dumps = dumps(&lab);
    assert_eq!(dumps.len(), 1, "{dumps:#?}");
    assert_told(&lab, &dumps[0], &tracked);
    let warnings = lab.manifest("out")["warnings"].to_string();
    assert_contains(&warnings, "no target was running");
}

#[test]
fn of_a_recorder_that_was_killed_there_is_what_it_had_fetched() {
    let lab = Lab::new(OLD);
    let mut running = lab.record(&[FLAG]);
    running.until_recorded();
    until_tracking(&lab);
    let said = lab.expect(0, "snapshot --label one");
    assert_contains(&said.to_string(), "does not sample a native heap");
    running.until("captured");
    running.signal("KILL");
    running.end();
    lab.expect(6, "stop");
    let (dumps, truths) = (dumps(&lab), lab.phone.tracked_truth());
    assert_eq!((dumps.len(), truths.len()), (1, 1), "{dumps:#?}");
    assert_told(&lab, &dumps[0], &truths[0]);
    let warnings = lab.manifest("out")["warnings"].to_string();
    assert_contains(&warnings, "java-allocations-end");
}

#[test]
fn a_cable_lost_within_a_list_has_it_fetched_again() {
    for fault in ["allocations-blink@1500#1", "allocations-cut@100#1"] {
        let lab = Lab::new(&format!("{OLD},fault={fault}"));
        let mut running = lab.record(&[FLAG]);
        running.until_recorded();
        until_tracking(&lab);
        lab.expect(0, "snapshot --label cut");
        let captured = running.until("captured");
        assert_eq!(captured["captured"][0], "java-allocations", "{captured}");
        running.interrupted(0);
        let (dumps, truths) = (dumps(&lab), lab.phone.tracked_truth());
        // The first of them was never completed.
        assert_eq!((dumps.len(), truths.len()), (2, 3), "{dumps:#?}");
        for (dump, truth) in dumps.iter().zip(truths.iter().skip(1)) {
            assert_told(&lab, dump, truth);
        }
        assert!(truths[1].entries >= truths[0].entries, "nothing forgotten");
        assert!(lab.phone.tracking().is_empty(), "switched off again");
    }
}

#[test]
fn tracking_is_switched_off_also_where_the_last_list_was_lost() {
    let lab = Lab::new(&format!("{OLD},fault=allocations-cut@100"));
    let mut running = lab.record(&[FLAG]);
    running.until_recorded();
    until_tracking(&lab);
    let ended = running.interrupted(7);
    assert_contains(&ended.to_string(), "the connection was closed");
    assert_lacks(&ended.to_string(), "cannot stop tracking");
    assert!(lab.phone.tracking().is_empty(), "switched off again");
}

#[test]
fn tracking_that_cannot_be_switched_off_is_told() {
    use virtual_phone::Fault;
    let lab = Lab::new(&format!("{OLD},fault=allocations-cut@100"));
    let mut running = lab.record(&[FLAG]);
    running.until_recorded();
    until_tracking(&lab);
    lab.phone.faults().add(Fault::parse("debugger").unwrap());
    running.signal("INT");
    let ended = running.end();
    assert_contains(&ended.to_string(), "cannot stop tracking");
    assert_eq!(lab.phone.tracking().len(), 1, "it tracks on");
}

#[cfg(unix)]
#[test]
fn what_was_tracked_is_told_by_class_and_thread_and_named_later() {
    let lab = Lab::new(&format!("{OLD},obfuscated=yes"));
    std::fs::write(lab.work().join("mapping.txt"), virtual_phone::MAPPING).unwrap();
    let mut running = lab.record(&[FLAG]);
    running.until_recorded();
    until_tracking(&lab);
    lab.expect(0, "snapshot --label one");
    running.until("captured");
    running.interrupted(0);
    let (before, truth) = (dumps(&lab), lab.phone.tracked_truth().remove(0));

    let rows = |by: &str| {
        let top = lab
            .expect(0, &format!("top out@one --by {by} --json"))
            .json();
        top["heaps"][0]["rows"].as_array().unwrap().clone()
    };
    let bytes = |row: &Value| row["self"]["alloc_space"].as_u64().unwrap();
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    for ((class, _), (_, bytes)) in &truth.sites {
        *classes.entry(class.as_str()).or_default() += bytes;
    }
    let by_class = rows("class");
    let owners = by_class.iter().filter(|row| bytes(row) > 0);
    let told: BTreeMap<&str, u64> = owners
        .map(|row| (row["name"].as_str().unwrap(), bytes(row)))
        .collect();
    assert_eq!(told, classes);
    let by_thread = rows("thread");
    assert_eq!(by_thread.len(), 1, "{by_thread:?}");
    assert_eq!(
        by_thread[0]["name"],
        format!("{} (main)", truth.pid & 0xffff)
    );
    assert_eq!(
        bytes(&by_thread[0]),
        truth.sites.values().map(|s| s.1).sum::<u64>()
    );
    lab.expect(2, "top out --by thread --tree");
    lab.expect(2, "leaks out")
        .assert_stderr("counts only allocations");

    // The names are added later, in another directory and in the recording itself.
    let named = |directory: &str, dump: &Value| {
        let file = format!("../{directory}/{}", dump["file"].as_str().unwrap());
        let sites = profile(&lab, &file, false);
        let recorded = profile(&lab, &file, true);
        assert_eq!(
            recorded.len(),
            profile(&lab, dump["file"].as_str().unwrap(), true).len()
        );
        sites.keys().any(|(_, stack)| {
            let name = "com.example.app.feed.FeedAdapter.onBindViewHolder";
            stack.iter().any(|frame| frame == name)
        })
    };
    assert!(!named("out", &before[0]));
    // A pipe provides the mapping file once.
    let pipe = lab.work().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let through_a_pipe = |code: i32, command: &str| {
        let path = pipe.clone();
        // Opening it for writing waits for a reader.
        let feeder = std::thread::spawn(move || std::fs::write(path, virtual_phone::MAPPING));
        let ended = lab.expect(code, (command, "--mapping pipe"));
        feeder.join().unwrap().unwrap();
        ended
    };
    // The lists stay in the recording: results elsewhere do not refer to them.
    let elsewhere = |dumps: &[Value]| {
        let mut dumps = dumps.to_vec();
        for dump in &mut dumps {
            dump["list"] = Value::Null;
        }
        Value::Array(dumps)
    };
    through_a_pipe(0, "convert out -o again");
    let again = lab.manifest("again");
    assert_eq!(again["java_allocations"]["dumps"], elsewhere(&before));
    assert_eq!(again["warnings"], serde_json::json!([]), "{again:#}");
    assert!(named("again", &before[0]) && named("again", &before[1]));
    let map = ["--mapping", "mapping.txt"];
    lab.expect(0, ("convert out@one -o one", &map));
    let one = &lab.manifest("one")["java_allocations"]["dumps"];
    assert_eq!(*one, elsewhere(&before[..1]));
    let top = lab.expect(0, "top again@one --json").json();
    assert_eq!(top["heaps"][0]["dump"]["label"], "one", "{top:#}");
    lab.expect(2, "convert out -o none --pid 1")
        .assert_stderr("none of the 2 dumps");
    through_a_pipe(0, "symbolize out");
    assert!(named("out", &before[0]) && named("out", &before[1]));
    assert_eq!(dumps(&lab), before);
    let warnings = &lab.manifest("out")["warnings"];
    assert_eq!(*warnings, serde_json::json!([]));

    // A missing list is reported, and only its own names are lost.
    let list = before[0]["list"].as_str().unwrap();
    std::fs::remove_file(lab.work().join("out").join(list)).unwrap();
    lab.expect(6, ("symbolize out", &map));
    let warnings = lab.manifest("out")["warnings"].to_string();
    assert_contains(&warnings, "java-allocations-unreadable");
    assert_eq!(dumps(&lab), before);
}
