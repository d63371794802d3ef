//! Dumps of Java heaps: by Perfetto, and as files by `am dumpheap`.

use serde_json::Value;

use crate::lab::{APP, LIMIT, Lab, Running, files};
use crate::program::{Arguments, Ended, assert_contains, assert_lacks};

/// Time runs faster on the phone.
const FAST: &str = "android=14,build=userdebug,speed=10";

fn dump(lab: &Lab, code: i32, more: impl Arguments) -> Ended {
    let args = ("dump -n com.example.app -o out --json", more);
    lab.expect(code, &args)
}

/// A dump of `APP` under way.
fn begin(lab: &Lab, more: impl Arguments) -> Running {
    let args = ("dump -n com.example.app -o out --json-lines", more);
    let mut running = lab.start(&args);
    running.until("started");
    running
}

fn java(manifest: &Value) -> &[Value] {
    manifest["dumps"].as_array().expect("dumps").as_slice()
}

fn kinds(manifest: &Value) -> Vec<&str> {
    let warnings = manifest["warnings"].as_array().expect("warnings");
    warnings.iter().filter_map(|w| w["kind"].as_str()).collect()
}

/// Checks that no heap files remain on the phone.
fn assert_no_files(lab: &Lab) {
    let left = lab.phone.list("/data/local/tmp");
    let left: Vec<_> = left.iter().filter(|f| f.contains("heaptap")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// One complete dump of `APP` by Perfetto, without remaining files.
fn assert_whole(lab: &Lab) {
    let manifest = lab.manifest("out");
    let [dump] = java(&manifest) else {
        panic!("{manifest:#}");
    };
    assert_eq!(dump["kind"], "java_heap_graph");
    assert_eq!(dump["process"], APP);
    assert_eq!(dump["complete"], true, "{dump:#}");
    let reachable = dump["totals"]["reachable"]["objects"].as_u64().unwrap();
    assert!(reachable > 1000, "{dump:#}");
    let file = dump["file"].as_str().expect("a profile");
    assert!(lab.work().join("out").join(file).is_file(), "{file}");
    lab.assert_tidy("out");
}

#[test]
fn a_restarted_app_is_selected_by_both_of_its_pids() {
    let lab = Lab::new(FAST);
    let dump = |directory: &str| {
        lab.expect(0, &["dump", "-n", APP, "-o", directory]);
        java(&lab.manifest(directory))[0]["pid"].to_string()
    };
    let first = dump("a");
    lab.on_phone_ok("am", &["force-stop", APP]);
    lab.on_phone_ok("am", &["start", "-n", &format!("{APP}/.ui.FeedActivity")]);
    let second = dump("b");
    assert_ne!(first, second);
    let both = format!("{first},{second}");
    let misspelled = format!("{both},77");
    let looks: [&[&str]; 4] = [
        &["leaks", "a", "b"],
        &["diff", "a", "b"],
        &["report", "b", "--base", "a", "-o", "page.html", "--force"],
        &["query", "a", "SELECT 1"],
    ];
    for look in looks {
        let told = |pids: &str| {
            let ended = lab.run(&[look, &["-p", pids]].concat());
            let missing = ended.stderr.matches("the input does not have").count();
            (missing, ended)
        };
        let (missing, ended) = told(&both);
        // A query reads one of them.
        assert_eq!(
            missing,
            usize::from(look[0] == "query"),
            "{look:?}: {ended}"
        );
        let (missing, ended) = told(&misspelled);
        assert_eq!(
            missing,
            1 + usize::from(look[0] == "query"),
            "{look:?}: {ended}"
        );
    }
    let check = |pids: &str, code: i32| {
        let over = format!("diff a b --fail-over 1GiB -p {pids}");
        lab.expect(code, &over);
    };
    check(&both, 0);
    check(&misspelled, 12);
}

#[test]
fn a_heap_is_dumped_on_every_release_that_can() {
    for android in [11, 12, 13, 14, 16] {
        let lab = Lab::new(&format!("android={android},build=userdebug,speed=10"));
        let ended = dump(&lab, 0, "--dominators");
        let manifest = lab.manifest("out");
        assert_eq!(manifest["outcome"]["ended_by"], "done", "Android {android}");
        assert_whole(&lab);
        let document = ended.json();
        assert_eq!(document["manifest"], manifest);
        let heap = &document["java_heaps"][0];
        assert_eq!(heap["process"], APP);
        let top = heap["top"].as_array().unwrap();
        assert!(top.len() > 5 && top[0]["retained_bytes"].as_u64() > Some(0));
        let second = java(&manifest)[0]["dominators"].as_str().unwrap();
        assert!(lab.work().join("out").join(second).is_file());
    }
}

#[test]
fn who_looks_on_is_told_the_size_and_what_to_do_next() {
    let lab = Lab::new(FAST);
    let ended = lab.expect(0, "dump -n com.example.app -o out");
    for said in ["reachable", "retained", "com.example.app"] {
        ended.assert_stdout(said);
    }
    for said in ["heaptap leaks out", "heaptap top out"] {
        ended.assert_stderr(said);
    }
    let with = "retained sizes include native memory";
    ended.assert_stdout(with);
    for command in [
        &["paths", "out", "--focus", "DetailActivity"][..],
        &["top", "out"],
        &["top", "out", "--tree"],
        &["leaks", "out"],
    ] {
        lab.expect(0, command).assert_stdout(with);
    }
    // The bitmap of an Activity: the Java part alone is less than 2 KiB.
    let leaks = lab.expect(0, "leaks out");
    leaks.assert_stdout("retains 2.0 MiB (2.0 MiB native)");
    let top = lab.expect(0, "top out --focus DetailActivity");
    let mut row = top
        .stdout
        .lines()
        .filter(|line| line.contains("DetailActivity"));
    let row = row.find(|line| line.contains("2.0 MiB")).expect("a row");
    assert_eq!(row.matches("2.0 MiB").count(), 2, "{top}");
    lab.expect(0, "diff out out --by class").refute_stdout(with);
    lab.expect(0, "dump -n com.example.app -o later");
    lab.expect(0, "diff out later").assert_stdout(with);
    let grown = lab.expect(0, "leaks out later");
    let growth = "growth includes native memory";
    grown.assert_stdout(growth);
}

#[test]
fn a_dump_that_does_not_fit_is_made_again_with_more_room() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,java=60000");
    let ended = dump(&lab, 0, "-b 64k");
    assert_whole(&lab);
    let first = lab.manifest("out-incomplete");
    assert_eq!(first["outcome"]["complete"], false, "{ended}");
    assert!(java(&first).iter().all(|d| d["complete"] == false));
    assert!(kinds(&first).contains(&"service-lost-data"), "{first:#}");
    let config = lab.manifest("out")["config"]["text"].to_string();
    assert_lacks(&config, "size_kb: 64\n");
}

#[test]
fn a_dump_that_stays_cut_says_so() {
    let lab = Lab::new("android=14,build=userdebug,speed=20,java=60000,fault=java-dump-cut");
    let ended = dump(&lab, 6, "");
    let manifest = lab.manifest("out");
    assert_eq!(java(&manifest)[0]["flags"]["truncated"], true, "{ended}");
    assert_eq!(manifest["outcome"]["complete"], false);
    lab.assert_tidy("out");
    // Without GC roots, nothing looks unreachable.
    let count = "SELECT count(*) FROM heap_graph_object WHERE reachable";
    for look in [
        &["top", "out"][..],
        &["query", "out", count],
        &["convert", "out", "-o", "again"],
    ] {
        lab.run(look)
            .assert_stderr("GC roots is missing")
            .refute_stderr("look unreachable");
    }
}

#[test]
fn who_may_not_be_dumped_is_told_before() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let refused = |args: &str, kind: &str| {
        let ended = lab.expect(4, args);
        assert_eq!(ended.error()["kind"], kind, "{ended}");
        assert_no_files(&lab);
    };
    let closed = "com.example.closed";
    refused(&format!("dump -n {closed} --json"), "not-eligible");
    let stopped = "com.example.stopped";
    refused(&format!("dump -n {stopped} --json"), "not-running");
    for kind in [&[][..], &["--hprof"]] {
        let ended = lab.expect(4, &[&["dump", "-n", stopped], kind].concat());
        // With the server, as typed.
        let server = lab.phone.addr();
        let help = format!("(`heaptap apps --adb-server {server}` lists running apps)");
        ended.assert_stderr(&help);
    }
    refused("dump -n com.example.nowhere --json", "target-not-found");
    refused(
        &format!("dump -n {closed} --hprof --json"),
        "not-debuggable",
    );
    // Perfetto requires only a profileable app, am a debuggable one.
    let profileable = "com.example.profileable";
    refused(
        &format!("dump -n {profileable} --hprof --json"),
        "not-debuggable",
    );
    lab.expect(0, &format!("dump -n {profileable} -o out"));
    let old = Lab::new("android=10,build=userdebug,speed=10");
    old.expect(4, "dump -n com.example.app");
    old.expect(4, "dump -n com.example.app --hprof --bitmaps");
    let thirteen = Lab::new("android=13,build=userdebug,speed=10");
    let ended = thirteen.expect(4, "dump -n com.example.app --wait-for-oom --json");
    assert_eq!(ended.error()["kind"], "android-too-old", "{ended}");
}

#[test]
fn an_out_of_memory_error_is_dumped_when_it_comes() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,oom=2");
    dump(&lab, 0, "--wait-for-oom");
    let manifest = lab.manifest("out");
    assert_eq!(java(&manifest)[0]["process"], APP);
    assert_eq!(java(&manifest)[0]["complete"], true);
    lab.assert_tidy("out");
}

#[test]
fn an_app_that_does_not_run_out_of_memory_leaves_an_empty_hand() {
    let lab = Lab::new(FAST);
    let wait = "--wait-for-oom --oom-wait-seconds 3";
    let ended = dump(&lab, 7, wait);
    assert_eq!(ended.error()["kind"], "no-out-of-memory");
    assert!(files(&lab.work()).is_empty());
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
fn a_reboot_while_it_waits_for_an_out_of_memory_error_is_no_good_news() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "--wait-for-oom --oom-wait-seconds 1h");
    running.until("progress");
    lab.phone.reboot(0);
    let ended = running.ends(7);
    ended.assert_stderr("the device restarted");
    assert_eq!(kinds(&lab.manifest("out"))[0], "device-rebooted");
}

#[test]
fn waiting_for_an_out_of_memory_error_ends_with_ctrl_c() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "--wait-for-oom --oom-wait-seconds 1h");
    running.until("progress");
    running.interrupted(130);
    assert_eq!(lab.traces(), Vec::<String>::new());
    assert!(files(&lab.work()).is_empty(), "{:?}", files(&lab.work()));
}

#[test]
fn ctrl_c_waits_for_the_dump_that_is_being_written() {
    let lab = Lab::new(&format!("{FAST},fault=java-dump-slow@8000"));
    let mut running = begin(&lab, "");
    running.until("progress");
    running.interrupted(0);
    assert_whole(&lab);
}

/// The service stops waiting for it; the cause is not heapprofd.
#[test]
fn a_dump_that_never_ends_is_tried_again_and_called_so() {
    let lab = Lab::new("android=14,speed=200,fault=java-dump-slow@100000000");
    lab.expect(7, "dump -n com.example.app -o out")
        .assert_stderr("dumping again");
    assert_eq!(lab.manifest("out")["warnings"][0]["kind"], "no-dump");
}

#[test]
fn continuous_dumps_go_on_until_ctrl_c_and_take_labels() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "-c 2s");
    running.until_that("progress", |p| p["elapsed_s"].as_f64() >= Some(5.0));
    let taken = lab.expect(0, "snapshot --label after --json");
    assert_eq!(taken.json()["snapshot"]["label"], "after");
    running.interrupted(0);
    let manifest = lab.manifest("out");
    assert!(java(&manifest).len() >= 3, "{manifest:#}");
    let labelled = java(&manifest)
        .iter()
        .filter(|d| d["label"]["name"] == "after");
    assert_eq!(labelled.count(), 1, "{manifest:#}");
    lab.assert_tidy("out");
}

#[test]
fn a_snapshot_of_a_single_dump_is_refused_with_the_way_to_have_one() {
    let lab = Lab::new(&format!("{FAST},fault=java-dump-slow@20000"));
    let running = begin(&lab, "");
    let ended = lab.expect(5, "snapshot --json");
    assert_eq!(ended.error()["kind"], "snapshot-impossible");
    ended.assert_stdout("dump -c");
    assert_eq!(running.end().code(), Some(0));
}

#[test]
fn a_pulled_cable_costs_nothing() {
    for more in [&[][..], &["--hprof"]] {
        let lab = Lab::new(&format!(
            "{FAST},fault=java-dump-slow@30000,fault=dumpheap-slow@30000"
        ));
        let mut running = begin(&lab, more);
        running.until("progress");
        lab.phone.unplug(0);
        running.until("connection-lost");
        lab.phone.plug_in(0);
        running.ends(0);
        assert_eq!(java(&lab.manifest("out"))[0]["complete"], true);
        lab.assert_tidy("out");
        assert_no_files(&lab);
    }
}

#[test]
fn killed_anywhere_the_dump_is_collected_whole() {
    let stages = [
        "checked",
        "started",
        "progress",
        "ended",
        "pulled",
        "converting",
    ];
    for more in [&[][..], &["--hprof"]] {
        for stage in stages {
            let lab = Lab::new(&format!(
                "{FAST},fault=java-dump-slow@5000,fault=dumpheap-slow@5000"
            ));
            let args = ("dump -n com.example.app -o out --json-lines", more);
            let mut running = lab.start(&args);
            if running.comes(stage) {
                running.signal("KILL");
            }
            let killed = running.end();
            if stage == "checked" && killed.code() != Some(0) {
                // The phone might not have received the request.
                continue;
            }
            if lab.is_left() {
                let ended = lab.run("stop");
                assert_eq!(ended.code(), Some(0), "{more:?} {stage}: {killed} {ended}");
            }
            let manifest = lab.manifest("out");
            assert_eq!(java(&manifest).len(), 1, "{more:?} {stage}");
            assert_eq!(java(&manifest)[0]["complete"], true, "{more:?} {stage}");
            lab.assert_tidy("out");
            assert_no_files(&lab);
        }
    }
}

#[test]
fn detached_dumps_are_collected_later() {
    for more in [&[][..], &["--hprof"]] {
        let lab = Lab::new(&format!(
            "{FAST},fault=java-dump-slow@5000,fault=dumpheap-slow@5000"
        ));
        let args = ("dump -n com.example.app -o out --detach --json", more);
        let begun = lab.expect(0, &args);
        let session = begun.json()["session"].as_str().unwrap().to_owned();
        let status = lab.status();
        assert_eq!(status["sessions"][0]["session"], session.as_str());
        let ended = lab.expect(0, &["stop", &session]);
        assert_eq!(java(&lab.manifest("out"))[0]["complete"], true, "{ended}");
        lab.assert_tidy("out");
        assert_no_files(&lab);
    }
}

#[test]
fn several_processes_are_dumped_in_one_session() {
    let service = format!("{APP}:service");
    for more in [&[][..], &["--hprof"]] {
        let lab = Lab::new(FAST);
        let both = format!("{APP},{service}");
        let args = (format!("dump -n {both} -o out"), more);
        lab.expect(0, &args);
        let manifest = lab.manifest("out");
        let mut names: Vec<&str> = java(&manifest)
            .iter()
            .map(|d| d["process"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, [APP, &service], "{manifest:#}");
        lab.assert_tidy("out");
    }
}

#[test]
fn status_has_the_app_and_the_size_of_a_heap_dump() {
    let lab = Lab::new(FAST);
    lab.expect(0, "dump -n com.example.app --hprof --detach -o out");
    lab.until_ended();
    let found = &lab.status()["sessions"][0];
    assert_eq!(found["targets"], serde_json::json!([APP]), "{found}");
    let shown = lab.expect(0, "status").stdout;
    let row = format!("ended, not fetched  {APP}  on virtual-1  heap dump ");
    assert_contains(&shown, &row);
    lab.expect(0, "stop");
    let dumps = lab.manifest("out")["dumps"].clone();
    let file = dumps[0]["file"].as_str().expect("a file");
    let size = std::fs::metadata(lab.work().join("out").join(file)).expect("a file");
    assert_eq!(found["trace_bytes"], size.len(), "{found}");
}

#[test]
fn nothing_is_advised_to_a_native_program_that_needs_a_java_heap() {
    let lab = Lab::new(FAST);
    for (code, command, option) in [
        (4, "dump", "--no-check"),
        (0, "meminfo", "--local"),
        (7, "gc", "--now"),
    ] {
        let ended = lab.expect(code, &format!("{command} -n surfaceflinger"));
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!told.contains(option), "{command}: {told}");
    }
    lab.run("gc -n com.example.idle").assert_stderr("--now");
}

#[test]
fn a_full_disk_on_the_phone_is_told() {
    let lab = Lab::new(&format!("{FAST},java=60000,fault=disk-full@300000"));
    let ended = lab.run("dump -n com.example.app -o out");
    assert!(matches!(ended.code(), Some(5 | 6)), "{ended}");
    ended.refute_stderr("larger buffer");
    for of_native in ["sample", "interval"] {
        ended.refute_stderr(of_native);
    }
    assert_eq!(lab.traces(), Vec::<String>::new());
    let lab = Lab::new(&format!("{FAST},java=60000,fault=disk-full@300000"));
    let ended = lab.run("dump -n com.example.app -o out --hprof");
    assert!(matches!(ended.code(), Some(5 | 6)), "{ended}");
    assert_no_files(&lab);
}

#[test]
fn a_file_of_the_heap_is_whole_and_named_in_the_manifest() {
    for (android, more) in [
        (10, &[][..]),
        (11, &["--malloc-info"]),
        (15, &["--bitmaps", "--malloc-info"]),
        (16, &["--bitmaps=webp"]),
    ] {
        let lab = Lab::new(&format!("android={android},build=userdebug,speed=10"));
        let args = ("--hprof", more);
        let ended = dump(&lab, 0, &args);
        let manifest = lab.manifest("out");
        let [dump] = java(&manifest) else {
            panic!("{manifest:#}");
        };
        assert_eq!(dump["kind"], "hprof");
        let name = dump["file"].as_str().unwrap();
        assert!(name.starts_with(APP) && name.ends_with(".hprof"), "{name}");
        lab.expect(0, "convert out -o converted");
        let profile = format!("converted/java_heap_dump.1.{}.pb.gz", dump["pid"]);
        let top = lab.expect(0, &["top", &profile]).stdout;
        assert_contains(&top, "Java heap\n");
        assert_contains(&top, " of Java objects");
        let facts = &lab.expect(0, &["top", &profile, "--json"]).json()["heaps"][0]["dump"];
        assert_eq!(
            (&facts["pid"], &facts["kind"]),
            (&dump["pid"], &"java-heap".into())
        );
        let compared = lab.expect(0, &["diff", &profile, &profile]).stdout;
        assert_lacks(&compared, "sampling");
        lab.expect(2, &["leaks", &profile])
            .assert_stderr("on the recording or HPROF itself");
        let size = std::fs::metadata(lab.work().join("out").join(name)).unwrap();
        assert_eq!(dump["size"], size.len());
        assert!(dump["totals"]["objects"].as_u64() > Some(1000), "{ended}");
        if more.contains(&"--malloc-info") {
            let words = lab
                .work()
                .join("out")
                .join(dump["malloc_info"].as_str().unwrap());
            let words = std::fs::read_to_string(words).unwrap();
            assert_contains(&words, "<malloc");
        }
        lab.assert_tidy("out");
        assert_no_files(&lab);
    }
}

#[test]
fn an_app_that_hangs_is_given_up() {
    let lab = Lab::new(&format!("{FAST},fault=dumpheap-hang"));
    let ended = dump(&lab, 5, "--hprof --timeout 5s");
    assert_eq!(ended.error()["kind"], "dumpheap-silent", "{ended}");
    assert_no_files(&lab);
    assert!(!lab.work().join("out").exists());
}

#[test]
fn a_given_up_file_that_begins_to_grow_is_not_removed() {
    let lab = Lab::new(&format!("{FAST},fault=dumpheap-hang"));
    let faults = lab.phone.faults();
    let stat = ["STA2:/data/local/tmp", ".hprof"];
    let first = faults.close_gate(&stat);
    let dumping = begin(&lab, "--hprof --timeout 5s");
    assert!(first.is_reached_within(LIMIT), "it was not fetched");
    // It is empty when it is to be fetched, and no longer when it is to be removed.
    let second = faults.close_gate(&stat);
    drop(first);
    assert!(
        second.is_reached_within(LIMIT),
        "it was not looked at again"
    );
    let files = lab.phone.list("/data/local/tmp");
    let file = files.iter().find(|file| file.ends_with(".hprof"));
    let file = format!("/data/local/tmp/{}", file.expect("a heap file"));
    const MORE: &str = "echo more >> $1";
    let more = heaptap_adb::Command::script(MORE).arg(&file);
    lab.on_phone(&more);
    drop(second);
    let ended = dumping.ends(10);
    ended.assert_stdout("heaptap stop");
    lab.expect(6, "stop");
    assert_eq!(kinds(&lab.manifest("out"))[0], "heap-file-cut");
}

#[test]
fn an_app_without_a_heap_file_has_a_reason() {
    for (fault, kind) in [
        ("dumpheap-short@0", "dumpheap-empty"),
        ("dumpheap-dies@0", "dumpheap-died"),
    ] {
        let lab = Lab::new(&format!("{FAST},fault={fault}"));
        let ended = dump(&lab, 5, "--hprof");
        assert_eq!(ended.error()["kind"], kind, "{ended}");
    }
    let lab = Lab::new(FAST);
    let init = "dump -p 1 --hprof --no-check -o out";
    let ended = lab.expect(5, &format!("{init} --json"));
    assert_eq!(ended.error()["kind"], "dumpheap-refused", "{ended}");
}

#[test]
fn what_came_of_a_file_that_breaks_off_is_kept() {
    for fault in ["dumpheap-short", "dumpheap-dies"] {
        let lab = Lab::new(&format!("{FAST},fault={fault}"));
        let ended = dump(&lab, 6, "--hprof --timeout 5s");
        let manifest = lab.manifest("out");
        assert_eq!(kinds(&manifest), ["heap-file-cut"], "{fault}: {ended}");
        assert_eq!(java(&manifest)[0]["flags"]["truncated"], true);
        let name = java(&manifest)[0]["file"].as_str().unwrap();
        assert!(lab.work().join("out").join(name).is_file(), "{fault}");
        assert_no_files(&lab);
    }
}

#[test]
fn a_file_that_an_app_goes_on_writing_later_is_fetched_again() {
    let lab = Lab::new(&format!("{FAST},fault=dumpheap-hang@100000"));
    let ended = dump(&lab, 6, "--hprof --timeout 5s");
    let stop = |expected: u64| {
        lab.expect(6, "stop --json");
        let manifest = lab.manifest("out");
        assert_eq!(kinds(&manifest), ["heap-file-cut"]);
        let name = java(&manifest)[0]["file"].as_str().unwrap();
        let size = std::fs::metadata(lab.work().join("out").join(name))
            .unwrap()
            .len();
        assert_eq!(size, expected);
    };
    let manifest = lab.manifest("out");
    let id = manifest["session"]["id"].as_str().unwrap();
    let help = manifest["warnings"][0]["help"].as_str().unwrap();
    assert!(help.contains(&format!("heaptap stop {id}")), "{ended}");
    const MORE: &str = "for file in $(ls /data/local/tmp | grep hprof); \
                        do echo more >> /data/local/tmp/$file; done";
    lab.on_phone(&heaptap_adb::Command::script(MORE));
    stop(100_005);
    assert_eq!(lab.status()["sessions"][0]["session"], id);
    // It has not grown since.
    stop(100_005);
    assert_no_files(&lab);
    lab.assert_tidy("out");
}

#[test]
fn a_converted_dump_is_the_same_again() {
    let lab = Lab::new(FAST);
    dump(&lab, 0, "");
    lab.expect(0, "convert out -o again");
    let (first, second) = (lab.manifest("out"), lab.manifest("again"));
    assert_eq!(first["dumps"], second["dumps"]);
    assert_eq!(first["session"], second["session"]);
}

#[test]
fn a_file_that_an_app_completes_later_is_fetched_whole() {
    let lab = Lab::new(&format!("{FAST},fault=dumpheap-hang@100000"));
    dump(&lab, 6, "--hprof --timeout 5s");
    let name = java(&lab.manifest("out"))[0]["file"].clone();
    let on_device = lab.phone.list("/data/local/tmp");
    let on_device = on_device.iter().find(|file| file.ends_with(".hprof"));
    let on_device = format!("/data/local/tmp/{}", on_device.expect("a heap file"));
    lab.phone
        .faults()
        .remove(virtual_phone::FaultKind::DumpheapHang);
    lab.expect(0, "dump -n com.example.app --hprof -o whole");
    let whole = java(&lab.manifest("whole"))[0]["file"].clone();
    let whole = lab.work().join("whole").join(whole.as_str().unwrap());
    let whole = std::fs::read(whole).unwrap();
    lab.phone.put_file(&on_device, &whole, 0o660);

    lab.expect(0, "stop");
    let manifest = lab.manifest("out");
    assert_eq!(kinds(&manifest), [""; 0]);
    assert_eq!(java(&manifest)[0]["complete"], true);
    let file = lab.work().join("out").join(name.as_str().unwrap());
    assert_eq!(std::fs::read(file).unwrap(), whole);
    assert_no_files(&lab);
    lab.assert_tidy("out");
}

#[test]
fn java_heaps_of_two_apps_are_compared_with_a_warning() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    lab.expect(0, "dump -n com.example.app -o a");
    lab.expect(0, "dump -n com.example.browser -o b");
    for (command, heap) in [("diff", "/after"), ("leaks", "/heaps/1")] {
        let report = lab.expect(0, &[command, "a", "b", "--json"]).json();
        let heap = report.pointer(heap).unwrap();
        let warnings = heap["warnings"].as_array().unwrap();
        let is_it = |warning: &Value| warning["kind"] == "other-process";
        assert!(warnings.iter().any(is_it), "{command}: {warnings:?}");
    }
}
