//! `doctor --try`: the verdict on every step for every release and build, the directory for a bug
//! report, and a phone that is as before, whatever happens meanwhile.

use std::collections::BTreeMap;
use std::path::Path;

use heaptap_adb::Command;
use serde_json::Value;

use crate::lab::{APP, Lab, files};
use crate::program::{Ended, assert_contains};

/// The steps, in their order.
const STEPS: [&str; 9] = [
    "app",
    "native",
    "java-heap",
    "hprof",
    "meminfo",
    "smaps",
    "gc",
    "malloc-info",
    "put-back",
];
/// An app that is profileable, but not debuggable.
const PROFILEABLE: &str = "com.example.profileable";
/// A text in the Java heap of the app.
const TEXT_OF_APP: &[u8] = b"placeholder-256.webp";

/// Releases and builds, the app, and the letters of the verdicts in the order of [`STEPS`]:
/// **w**orks, not **p**ossible.
const TABLE: [(&[u32], &str, &str, &str); 8] = [
    // Of the one trace file of Android 10, something always stays.
    (&[10], "user", APP, "wwpwwwwwp"),
    (&[10], "userdebug", APP, "wwpwwwwwp"),
    (&[10], "user", PROFILEABLE, "wwppwpwpp"),
    (&[10], "userdebug", PROFILEABLE, "wwpwwwwwp"),
    (&[11, 12, 13, 14, 15, 16], "user", APP, "wwwwwwwww"),
    (&[11, 12, 13, 14, 15, 16], "userdebug", APP, "wwwwwwwww"),
    (&[11, 12, 13, 14, 15, 16], "user", PROFILEABLE, "wwwpwpwpw"),
    (
        &[11, 12, 13, 14, 15, 16],
        "userdebug",
        PROFILEABLE,
        "wwwwwwwww",
    ),
];

/// What a recording can change on the phone.
fn state(lab: &Lab) -> BTreeMap<&'static str, String> {
    let list = |directory| {
        let mut names = lab.phone.list(directory);
        // The shell of Android 10 cannot remove it.
        names.retain(|name| name != "profile-shell");
        names.join("\n")
    };
    let pids = lab.on_phone(&Command::program("ps").args(["-A", "-o", "PID,NAME"]));
    // The columns are as wide as the highest PID.
    let is_app = |line: &&str| line.contains("com.example.") || line.contains("perfetto");
    BTreeMap::from([
        ("traces", list("/data/misc/perfetto-traces")),
        ("temporary files", list("/data/local/tmp")),
        ("properties", lab.shell("getprop")),
        ("SELinux", lab.shell("getenforce")),
        (
            "apps",
            pids.lines()
                .map(str::trim)
                .filter(is_app)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    ])
}

fn document(lab: &Lab, directory: &str) -> Value {
    let text = std::fs::read(lab.work().join(directory).join("try.json")).expect("try.json");
    serde_json::from_slice(&text).expect("a document")
}

fn step<'a>(document: &'a Value, name: &str) -> &'a Value {
    let steps = document["steps"].as_array().expect("steps");
    let found = steps.iter().find(|step| step["step"] == name);
    found.unwrap_or_else(|| panic!("no step {name}: {document:#}"))
}

/// The first letters of the verdicts: works, fails, not **p**ossible, not **t**ried.
fn verdicts(document: &Value) -> String {
    let steps = document["steps"].as_array().expect("steps");
    let names: Vec<&str> = steps.iter().filter_map(|s| s["step"].as_str()).collect();
    assert_eq!(names, STEPS);
    let letter = |step: &Value| match step["verdict"].as_str() {
        Some("works") => 'w',
        Some("fails") => 'f',
        Some("not-possible") => 'p',
        Some("not-tried") => 't',
        other => panic!("{other:?}"),
    };
    steps.iter().map(letter).collect()
}

/// Checks that the directory has exactly what the document names.
fn assert_named(directory: &Path, document: &Value) {
    fn add(directory: &Path, before: &str, found: &mut Vec<String>) {
        for name in files(directory) {
            let path = directory.join(&name);
            match path.is_dir() {
                true => add(&path, &format!("{before}{name}/"), found),
                false => found.push(format!("{before}{name}")),
            }
        }
    }
    let mut found = Vec::new();
    add(directory, "", &mut found);
    let steps = document["steps"].as_array().expect("steps");
    let listed = steps
        .iter()
        .flat_map(|step| step["files"].as_array().expect("files"));
    let mut named: Vec<String> = listed
        .filter_map(|f| f.as_str().map(str::to_owned))
        .collect();
    named.extend(["try.json", "try.txt"].map(str::to_owned));
    named.sort();
    found.sort();
    assert_eq!(found, named);
}

fn kind_of(step: &Value) -> &str {
    step["error"]["kind"].as_str().unwrap_or_default()
}

fn assert_left_nothing(lab: &Lab) {
    let journals = files(&lab.dir.path().join("state/sessions"));
    assert_eq!(journals, Vec::<String>::new());
}

#[test]
fn every_release_and_build_has_its_verdicts() {
    for (releases, build, app, expected) in TABLE {
        for android in releases {
            let spec = format!("android={android},build={build},speed=10,java=500");
            let lab = Lab::new(&spec);
            let before = state(&lab);
            let ended = lab.expect(0, &format!("doctor --try -n {app} -o out"));
            let document = document(&lab, "out");
            assert_eq!(verdicts(&document), expected, "{spec} {app}: {ended}");
            assert_eq!(state(&lab), before, "{spec} {app}");
            assert_named(&lab.work().join("out"), &document);
            assert_left_nothing(&lab);
            assert_eq!(document["exit_code"], 0);
            assert_eq!(document["device"]["android"], android.to_string());
            assert_eq!(document["device"]["build_type"], build);
            assert_eq!(document["app"]["process"], app);
            assert!(
                document["checks"]
                    .as_array()
                    .is_some_and(|all| all.len() > 5)
            );
            for step in document["steps"].as_array().expect("steps") {
                let has = |key: &str| !step[key].is_null();
                let works = step["verdict"] == "works";
                assert!(has("result") == works && has("error") != works, "{step}");
            }
        }
    }
}

#[test]
fn the_directory_has_what_the_steps_recorded() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let ended = lab.expect(0, "doctor --try");
    let made = files(&lab.work());
    let [directory] = made.as_slice() else {
        panic!("{made:?}: {ended}");
    };
    assert!(directory.starts_with("heaptap-try-"), "{directory}");
    let path = lab.work().join(directory);
    let text = std::fs::read_to_string(path.join("try.txt")).expect("try.txt");
    assert_eq!(text, ended.stdout);
    let (_, closing) = text.split_once("results  ").expect("the directory");
    let words = closing.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(directory.as_str()) && words.contains("can be private"),
        "{closing}"
    );
    assert!(
        closing.lines().skip(1).all(|line| line.len() <= 80),
        "{closing}"
    );
    for words in [
        "one of them on request",
        "about garbage collections in the log",
    ] {
        assert_contains(&text, words);
    }
    let document = document(&lab, directory);
    assert_eq!(document["app"]["chosen"], "in-front");
    assert_eq!(document["app"]["process"], APP);
    // Each is an input of other commands.
    for (command, input, words) in [
        ("top", "native", "libexample.so"),
        ("top", "java-heap", "com.example.app"),
        ("meminfo", "meminfo/meminfo.txt", "Native Heap"),
        ("smaps", "smaps/smaps.txt", "mappings"),
        ("gc", "gc/logcat.txt", "com.example"),
    ] {
        let input = format!("{directory}/{input}");
        let shown = lab.expect(0, &[command, &input]);
        assert!(shown.stdout.contains(words), "{command} {input}: {shown}");
    }
    let manifest = lab.manifest(&format!("{directory}/native"));
    assert_eq!(manifest["labels"][0]["name"], "try");
}

#[test]
fn no_contents_of_the_heap_are_kept() {
    let lab = Lab::new("android=14,build=user,speed=10");
    lab.expect(0, "dump -n com.example.app --hprof -o whole");
    lab.expect(0, "doctor --try -o out");
    let has_text = |path: &Path| {
        let bytes = std::fs::read(path).expect("a file");
        memchr::memmem::find(&bytes, TEXT_OF_APP).is_some()
    };
    let of = |directory: &str| {
        let directory = lab.work().join(directory);
        let names = files(&directory)
            .into_iter()
            .filter(|name| name.ends_with(".hprof"));
        names.map(|name| directory.join(name)).collect::<Vec<_>>()
    };
    let (whole, kept) = (of("whole"), of("out/hprof"));
    assert!(whole.iter().any(|path| has_text(path)), "{whole:?}");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(!has_text(&kept[0]));
    lab.expect(0, &["top", &kept[0].to_string_lossy(), "--json"])
        .assert_stdout("com.example.app.ui");
}

#[test]
fn without_an_app_the_rest_is_tried() {
    let lab = Lab::new("android=14,build=user,speed=10");
    for app in [
        "com.example.app",
        "com.example.profileable",
        "com.example.chat",
        "com.example.browser",
        "com.example.work",
        "com.example.idle",
        "com.example.frozen",
        "com.example.legacy",
    ] {
        lab.on_phone(&Command::program("am").args(["force-stop", "--user", "all", app]));
    }
    let before = state(&lab);
    let ended = lab.expect(4, "doctor --try -o out --json");
    let document = ended.json();
    assert_eq!(verdicts(&document), "ftttwtttw", "{ended}");
    assert_eq!(kind_of(step(&document, "app")), "no-app");
    assert!(document["app"].is_null());
    assert_eq!(document["steps"][1]["error"]["kind"], "no-app");
    assert_eq!(state(&lab), before);
    assert_named(&lab.work().join("out"), &document);
}

#[test]
fn an_app_that_does_not_run_is_named_and_not_started() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let before = state(&lab);
    for (app, kind, message) in [
        ("com.example.stopped", "not-running", "is not running"),
        (
            "com.example.nowhere",
            "target-not-found",
            "does not have a package",
        ),
    ] {
        let ended = lab.expect(4, &format!("doctor --try -n {app} -o {app} --json"));
        let document = ended.json();
        // Of a typo, no other app's data are taken.
        assert_eq!(verdicts(&document), "ftttttttw", "{ended}");
        let refused = step(&document, "app");
        assert_eq!(kind_of(refused), kind, "{ended}");
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{ended}");
        assert_eq!(kind_of(step(&document, "meminfo")), "no-app", "{ended}");
        assert_named(&lab.work().join(app), &document);
    }
    // The reason is printed once.
    let ended = lab.expect(4, "doctor --try -n com.example.nowhere");
    let lines = |text: &str| ended.stdout.lines().filter(|l| l.contains(text)).count();
    assert_eq!(lines("there is none to try"), 1, "{ended}");
    assert_eq!(lines("same reason as native"), 6, "{ended}");
    // This one runs, and its manifest forbids everything.
    let ended = lab.expect(4, "doctor --try -n com.example.closed --json");
    assert_eq!(verdicts(&ended.json()), "fpppwpwpw", "{ended}");
    assert_eq!(state(&lab), before);
}

#[test]
fn another_app_is_tried_if_the_one_in_front_is_not_possible() {
    let lab = Lab::new("android=14,build=user,speed=10,app=stopped");
    let ended = lab.run("doctor --try -o out --json");
    let document = ended.json();
    assert_eq!(document["app"]["chosen"], "running", "{ended}");
    assert_eq!(document["app"]["native"], "yes", "{ended}");
}

#[test]
fn a_pattern_names_the_app_that_it_selects() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let ended = lab.expect(0, "doctor --try -n com.example.* --json");
    let app = step(&ended.json(), "app")["result"].clone();
    let app = app.as_str().unwrap_or_default();
    assert_contains(&app, "com.example.app (");
    assert_contains(&app, ", one of ");
    assert!(app.ends_with(" matching processes"), "{app}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_host_disk_is_the_reason_not_the_device() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let args = "doctor --try -o out --json";
    let running = lab.start(args);
    // The report has room, large data have none.
    crate::fault_table::faults::limit_files(running.id(), 64 << 10);
    let ended = running.ends(11);
    let document = ended.json();
    assert_eq!(verdicts(&document), "wwffwfwwf", "{ended}");
    let put_back = step(&document, "put-back");
    assert_eq!(put_back["error"]["exit_code"], 11, "{ended}");
    for name in ["java-heap", "hprof"] {
        let session = step(&document, name)["sessions"][0].as_str();
        lab.expect(0, &["stop", session.expect("a session"), "-o", name]);
    }
    assert_left_nothing(&lab);
}

#[test]
fn an_idle_app_is_the_reason_for_no_samples() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let args = "doctor --try -n com.example.idle --json";
    let ended = lab.expect(7, args);
    let document = ended.json();
    assert_eq!(verdicts(&document), "wfwwwwwww", "{ended}");
    assert_eq!(
        kind_of(step(&document, "native")),
        "no-allocation",
        "{ended}"
    );
    assert!(!step(&document, "native")["error"]["help"].is_null());
}

#[test]
fn a_step_that_fails_does_not_end_the_others() {
    for (fault, code, expected, failed, kind) in [
        ("perfetto-fail", 5, "wffwwwwww", "native", "perfetto-failed"),
        (
            "heapprofd-dead",
            7,
            "wffwwwwww",
            "native",
            "heapprofd-silent",
        ),
        ("java-dump-cut", 7, "wwfwwwwww", "java-heap", "no-dump"),
        ("dumpheap-short", 6, "wwwfwwwww", "hprof", ""),
        ("traced-off", 4, "wffwwwwww", "java-heap", "not-eligible"),
    ] {
        let lab = Lab::new(&format!(
            "android=14,build=userdebug,speed=20,fault={fault}"
        ));
        let before = state(&lab);
        let ended = lab.run("doctor --try -o out --json");
        let document = ended.json();
        assert_eq!(verdicts(&document), expected, "{fault}: {ended}");
        assert_eq!(ended.code(), Some(code), "{fault}: {ended}");
        if !kind.is_empty() {
            assert_eq!(kind_of(step(&document, failed)), kind, "{fault}: {ended}");
        }
        assert_eq!(state(&lab), before, "{fault}");
        assert_left_nothing(&lab);
    }
}

#[test]
fn an_app_that_dies_is_named() {
    let lab = Lab::new("android=14,build=userdebug,speed=20,fault=target-dies");
    let ended = lab.expect(5, "doctor --try -o out --json");
    let document = ended.json();
    assert_eq!(verdicts(&document), "wffffffff", "{ended}");
    let last = step(&document, "put-back");
    assert_eq!(kind_of(last), "target-gone", "{ended}");
    assert_left_nothing(&lab);
}

#[test]
fn what_cannot_be_fetched_is_named() {
    let lab = Lab::new("android=14,build=userdebug,speed=20,fault=pull-flip");
    let ended = lab.run("doctor --try -o out --json");
    let document = ended.json();
    let native = step(&document, "native");
    assert_eq!(native["verdict"], "fails", "{ended}");
    let session = native["sessions"][0]
        .as_str()
        .expect("a session")
        .to_owned();
    assert_eq!(step(&document, "put-back")["verdict"], "fails", "{ended}");
    assert_eq!(
        kind_of(step(&document, "put-back")),
        "not-restored",
        "{ended}"
    );
    ended.assert_code(5);
    lab.phone
        .faults()
        .remove(virtual_phone::FaultKind::PullFlip);
    lab.expect(0, &["stop", &session]);
    lab.assert_truth("out/native");
}

/// Starts a try, and returns it once `event` of a step came.
fn until_event(lab: &Lab, in_step: &str, event: &str) -> crate::lab::Running {
    let mut running = lab.start("doctor --try -o out --json-lines");
    running.until_that("try-begins", |begins| begins["step"] == in_step);
    running.until(event);
    running
}

fn last(ended: &Ended) -> Value {
    ended.last_with("steps")
}

#[test]
fn a_cable_that_stays_out_ends_the_try_with_verdicts() {
    let lab = Lab::new("android=14,build=userdebug,speed=5");
    let running = until_event(&lab, "native", "started");
    lab.phone.unplug(0);
    let ended = running.end();
    let document = last(&ended);
    assert_eq!(verdicts(&document), "wfttttttf", "{ended}");
    ended.assert_code(3);
    for step in ["java-heap", "put-back"] {
        assert_eq!(
            kind_of(self::step(&document, step)),
            "device-away",
            "{ended}"
        );
    }
    // What is on the phone is named, and can be fetched.
    let session = step(&document, "native")["sessions"][0].as_str();
    let session = session.expect("a session").to_owned();
    assert_named(&lab.work().join("out"), &document);
    lab.phone.plug_in(0);
    lab.expect(0, &["stop", &session]);
    assert_left_nothing(&lab);
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
fn a_cable_that_returns_costs_nothing() {
    // The second one breaks the connection of the snapshot.
    for event in ["started", "snapshot-requested"] {
        let lab = Lab::new("android=14,build=userdebug,speed=2");
        let before = state(&lab);
        let mut running = until_event(&lab, "native", event);
        lab.phone.unplug(0);
        running.until("connection-lost");
        lab.phone.plug_in(0);
        running.until("reconnected");
        let ended = running.end();
        assert_eq!(verdicts(&last(&ended)), "wwwwwwwww", "{event}: {ended}");
        assert_eq!(ended.code(), Some(0), "{event}: {ended}");
        assert_eq!(state(&lab), before);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_puts_back_and_keeps_what_there_is() {
    for (in_step, event, expected) in [
        ("native", "progress", "wtttttttw"),
        ("java-heap", "started", "wwttttttw"),
        ("hprof", "started", "wwwtttttw"),
    ] {
        let lab = Lab::new("android=14,build=userdebug,speed=1");
        let before = state(&lab);
        let running = until_event(&lab, in_step, event);
        running.signal("INT");
        let ended = running.end();
        let document = last(&ended);
        assert_eq!(verdicts(&document), expected, "{in_step}: {ended}");
        let after = document["steps"].as_array().expect("steps");
        let kinds = after.iter().map(kind_of).filter(|kind| !kind.is_empty());
        assert!(kinds.clone().all(|kind| kind == "interrupted"), "{ended}");
        assert_eq!(state(&lab), before, "{in_step}");
        assert_named(&lab.work().join("out"), &document);
        assert_left_nothing(&lab);
    }
}

#[cfg(unix)]
#[test]
fn a_killed_try_leaves_no_hprof_in_its_directory() {
    let lab = Lab::new("android=14,build=userdebug,speed=5");
    let running = until_event(&lab, "hprof", "started");
    running.signal("KILL");
    running.end();
    assert_eq!(files(&lab.work().join("out/hprof")), Vec::<String>::new());
    let remains = || {
        let mut names = files(&lab.work());
        names.retain(|name| name.starts_with(".heaptap-try-"));
        names
    };
    assert_eq!(remains().len(), 1);
    lab.expect(0, "stop");
    // What the user fetched stays.
    lab.expect(0, "doctor --try -o again");
    let [directory] = remains().try_into().expect("the one of the killed run");
    let fetched = files(&lab.work().join(directory).join("hprof"));
    assert!(
        fetched.iter().any(|name| name.ends_with(".hprof")),
        "{fetched:?}"
    );
}

#[test]
fn without_a_device_nothing_is_written() {
    let lab = Lab::new("devices=0");
    let ended = lab.fails(3, "doctor --try");
    assert_eq!(ended["kind"], "no-device", "{ended}");
    assert_eq!(files(&lab.work()), Vec::<String>::new());
    // A name is of no use without it.
    lab.expect(2, "doctor -n com.example.app");
}

#[test]
fn every_key_of_the_document_is_on_the_page() {
    let page = include_str!("../../docs/reference/formats.md");
    let section = page.split("\n### try.json\n").nth(1).expect("the section");
    let section = section.split("\n### ").next().expect("its end");
    let lab = Lab::new("android=10,build=user,speed=10");
    let document = lab.expect(0, "doctor --try --json").json();
    let mut keys = Vec::new();
    for of in [
        &document["host"],
        &document["adb"],
        &document["device"],
        &document["app"],
    ] {
        keys.extend(of.as_object().expect("an object").keys());
    }
    for step in document["steps"].as_array().expect("steps") {
        keys.extend(step.as_object().expect("an object").keys());
        keys.extend(
            step["error"]
                .as_object()
                .iter()
                .flat_map(|error| error.keys()),
        );
    }
    for key in keys {
        let forms = [format!("`{key}`"), format!("`{key}[]`")];
        assert!(forms.iter().any(|form| section.contains(form)), "add {key}");
    }
}
