//! Memory of an app by category: from `dumpsys meminfo` of a running phone, from saved texts, and
//! as a difference of two.

use serde_json::Value;

use crate::lab::{APP, Lab};
use crate::program::{assert_contains, assert_lacks};

/// Time runs faster on the phone.
const FAST: &str = "android=14,build=user,speed=10";

fn processes(document: &Value) -> &[Value] {
    document["processes"]
        .as_array()
        .expect("processes")
        .as_slice()
}

fn row<'a>(process: &'a Value, label: &str) -> &'a Value {
    let rows = process["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["label"] == label);
    &row.unwrap_or_else(|| panic!("{label} in {process:#}"))["values"]
}

/// A text of the fixtures.
fn sample(name: &str) -> String {
    format!("{}/fixtures/meminfo/{name}.txt", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_package_stands_for_all_its_processes_on_every_release() {
    for android in [10, 11, 12, 14, 16] {
        let lab = Lab::new(&format!("android={android},build=user,speed=10"));
        let document = lab
            .expect(0, "meminfo --package com.example.app --json")
            .json();
        let found = processes(&document);
        let names: Vec<&str> = found.iter().map(|p| p["name"].as_str().unwrap()).collect();
        assert_eq!(names[0], APP, "Android {android}");
        assert!(
            names.len() > 1 && names.iter().all(|name| name.starts_with(APP)),
            "{names:?}"
        );
        for process in found {
            let native = row(process, "Native Heap");
            assert!(native["private_dirty"].as_i64() > Some(0), "{process:#}");
            assert!(native["heap_alloc"].as_i64() > Some(0), "{process:#}");
            let parts = &process["parts"];
            assert_eq!(parts["native"], native["private_dirty"]);
            assert_eq!(parts["source"], "meminfo");
        }
        assert_eq!(document["collected_garbage"], true);
        assert!(document["cost"]["bytes"].as_u64() > Some(1000));
    }
}

#[test]
fn one_process_is_found_by_its_name_and_by_its_pid() {
    let lab = Lab::new(FAST);
    let name = format!("{APP}:service");
    let by_name = lab.expect(0, &["meminfo", "-n", &name, "--json"]).json();
    let [process] = processes(&by_name) else {
        panic!("{by_name:#}");
    };
    assert_eq!(process["name"], name.as_str());
    let pid = process["pid"].to_string();
    let by_pid = lab.expect(0, &["meminfo", "-p", &pid, "--json"]).json();
    assert_eq!(processes(&by_pid)[0]["name"], name.as_str());
    let missing = lab.fails(4, "meminfo -n com.example.missing");
    assert_eq!(missing["kind"], "target-not-found");
}

#[test]
fn who_looks_on_reads_what_matters_and_what_it_means() {
    let lab = Lab::new(FAST);
    let shown = lab.expect(0, "meminfo -n com.example.app --explain").stdout;
    for said in [
        "private dirty",
        "Native Heap",
        "Used part of each heap",
        "█",
        "TOTAL RSS",
        "Native Heap: memory that the allocator",
        "Activities: ",
        "Explicit collection",
        "The request took",
    ] {
        assert!(shown.contains(said), "{said} in {shown}");
    }
    // The largest first.
    let at = |row: &str| {
        shown
            .rfind(row)
            .unwrap_or_else(|| panic!("{row} in {shown}"))
    };
    assert!(at("Native Heap: ") < at("Stack: "), "{shown}");
    let table = lab.expect(0, "meminfo -n com.example.app").stdout;
    assert_contains(&table, "% of private dirty");
    // One in detail; without a process, too.
    for args in [
        &["meminfo", "-n", APP, "--explain=.so"][..],
        &["meminfo", "--explain=.so"],
    ] {
        let one = lab.expect(0, args).stdout;
        assert_contains(&one, ".so mmap\n");
        assert_contains(&one, "part of: Code");
        assert_eq!(one.contains(&format!("{APP} (")), args.len() == 4, "{one}");
    }
    let csv = lab.expect(0, "meminfo -n com.example.app --csv").stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("process,pid,section,row,column,value,unit")
    );
    assert!(lines.all(|line| line.split(',').count() == 7), "{csv}");
}

#[test]
fn absent_app_has_one_message_in_all_commands() {
    let lab = Lab::new(FAST);
    let commands = [
        &["meminfo"][..],
        &["meminfo", "--every", "1s"],
        &["smaps"],
        &["gc"],
        &["dump", "--hprof", "-o", "none"],
        &["check"],
    ];
    for command in commands {
        let with = |name| {
            lab.expect(4, &[command, &["-n", name]].concat())
                .to_string()
        };
        let missing = with("com.example.nowhere");
        let text =
            "user 0 does not have a package com.example.nowhere, and no process has that name";
        assert_contains(&missing, text);
        if command != ["check"] {
            let stopped = with("com.example.stopped");
            let text = "com.example.stopped is not running";
            assert_contains(&stopped, text);
        }
    }
    // These start an app that does not run.
    let scenario = "version: 1\nname: story\ntarget: {name: com.exmaple.app}\nsteps: [start]\n";
    std::fs::write(lab.work().join("typo.yaml"), scenario).unwrap();
    let starting = [
        &["record", "--launch", "-n", "com.exmaple.app"][..],
        &["record", "--launch", "--package", "com.exmaple.app"],
        &["record", "--launch", "--no-check", "-n", "com.exmaple.app"],
        &["provoke", "-n", "com.exmaple.app", "rotate:2"],
        &["run", "typo.yaml", "--dry-run"],
    ];
    for args in starting {
        let missing = lab.expect(4, args).to_string();
        let text = "user 0 does not have a package com.exmaple.app, and no process has that name";
        assert_contains(&missing, text);
        assert_contains(&missing, "did you mean com.example.app?");
    }
}

#[test]
fn a_target_of_which_nothing_runs_is_told_beside_those_that_do() {
    let lab = Lab::new(FAST);
    let nope = "com.example.nope";
    let both = format!("{APP},{nope}");
    let document = lab.expect(6, &["meminfo", "-n", &both, "--json"]).json();
    assert_eq!(processes(&document)[0]["name"], APP);
    let troubles = document["problems"].as_array().unwrap();
    let told = troubles.iter().filter_map(Value::as_str);
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["com.example.nope is not running"]
    );
    let shown = lab.expect(6, &["meminfo", "-n", &both]);
    shown.assert_stderr(nope);
    for command in ["meminfo", "smaps", "gc"] {
        lab.expect(4, &[command, "-n", "com.exmaple.app"])
            .assert_stderr("did you mean com.example.app");
    }
    shown.assert_stdout("Native Heap");
}

#[test]
fn a_row_is_explained_however_it_is_typed_and_a_slip_is_told() {
    let lab = Lab::new(FAST);
    for (args, row) in [
        (&["--explain=graphics"][..], "Graphics"),
        (&["--explain=native heap"], "Native Heap"),
        (&["--explain=Native"], "Native Heap"),
        (&["--explain=Graphics"], "Graphics"),
        (&["--explain=egl"], "EGL mtrack"),
        (&["--explain=Activities"], "Activities"),
    ] {
        let shown = lab.expect(0, ("meminfo -n com.example.app", args)).stdout;
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some(row), "{shown}");
        assert_contains(&shown, "  to do: ");
        // Its services might not have one.
        let of_app = format!("  {APP} (");
        let of_app = lines.find(|line| line.starts_with(&of_app)).unwrap();
        assert!(!of_app.contains("does not have this row"), "{shown}");
        assert_lacks(&shown, "What the rows of");
    }
    for (args, row) in [
        (&["-n", APP, "--explain=Grafics"][..], "Graphics"),
        (&["-n", APP, "--explain=nativ heap"], "Native Heap"),
        (&["--explain=Activites"], "Activities"),
    ] {
        let error = lab.fails(2, ("meminfo", args));
        let help = error["help"].as_str().unwrap();
        assert_contains(&help, &format!("did you mean `--explain=\"{row}\"`"));
    }
    // Without a process the meaning is the same on every phone.
    let alone = lab.expect(0, "meminfo --explain=.so").stdout;
    assert!(alone.starts_with(".so mmap\n"), "{alone}");
    lab.expect(2, "meminfo --explain");
}

#[test]
fn what_is_saved_is_shown_again_and_compared() {
    let lab = Lab::new(FAST);
    for name in ["before", "after"] {
        lab.expect(0, &["meminfo", "-n", APP, "--details", "--save", name]);
    }
    lab.expect(0, "meminfo -n com.example.app --save later.txt --json");
    let text = std::fs::read_to_string(lab.work().join("before")).unwrap();
    assert!(text.starts_with("Applications Memory Usage"), "{text}");
    let shown = lab.expect(0, "meminfo before --json").json();
    assert_eq!(processes(&shown)[0]["name"], APP);
    assert_eq!(shown["collected_garbage"], Value::Null);
    let json = serde_json::to_string(&shown).unwrap();
    std::fs::write(lab.work().join("before.json"), json).unwrap();
    for before in ["before", "before.json"] {
        let changes = lab.expect(0, &["diff", before, "after", "--json"]).json();
        assert_eq!(changes["kind"], "meminfo");
        let rows = changes["processes"][0]["rows"].as_array().unwrap();
        let native = rows
            .iter()
            .find(|r| r["row"] == "Native Heap" && r["column"] == "pss");
        let native = native.expect("the native heap");
        let growth = native["after"].as_i64().unwrap() - native["before"].as_i64().unwrap();
        assert_eq!(native["growth"].as_i64(), Some(growth));
    }
}

#[test]
fn texts_of_other_phones_are_shown_and_compared() {
    let lab = Lab::new(FAST);
    let (old, new) = (sample("synthetic_api26"), sample("synthetic_api34_d"));
    let shown = lab.expect(0, &["meminfo", &new]).stdout;
    assert_contains(&shown, "com.example.app (4355)  PSS 309.4 MiB");
    assert!(
        shown.contains("base.apk:/assets/f.ttf: 76K"),
        "no line is lost: {shown}"
    );
    let grown = lab.expect(0, &["diff", &old, &new]).stdout;
    assert_contains(&grown, "restarted in between, PID 4347 is now 4355");
    assert_contains(&grown, "private dirty: 24.4 MiB → 15.6 MiB");
    let csv = lab.expect(0, &["diff", &old, &new, "--csv"]).stdout;
    assert_contains(&csv, "com.example.app,objects,Views,count,131,141,10,count");
    let none = lab.fails(8, &["meminfo", &sample("synthetic_no_process")]);
    assert_eq!(none["kind"], "not-a-meminfo");
    let missing = lab.fails(8, "meminfo nowhere");
    assert_eq!(missing["kind"], "input-unreadable");
}

#[test]
fn what_is_saved_is_never_written_over() {
    let lab = Lab::new(FAST);
    std::fs::write(lab.work().join("mine"), "kept").unwrap();
    let refused = lab.fails(2, "meminfo -n com.example.app --save mine");
    assert_eq!(refused["kind"], "output-taken");
    let text = || std::fs::read_to_string(lab.work().join("mine")).unwrap();
    assert_eq!(text(), "kept");
    lab.expect(0, "meminfo -n com.example.app --save mine --force");
    assert!(text().starts_with("Applications Memory Usage"));
}

#[test]
fn an_app_that_dies_while_it_is_asked_is_told_by_its_name() {
    let lab = Lab::new("android=14,build=user,speed=10,fault=meminfo-dies");
    let died = lab.fails(5, "meminfo -n com.example.app");
    assert_eq!(died["kind"], "target-gone");
    let message = died["message"].as_str().unwrap();
    assert!(message.starts_with("com.example.app ("), "{message}");
    let lab = Lab::new("android=14,build=user,speed=10,fault=meminfo-dies");
    let tables = lab
        .expect(0, "meminfo -n com.example.app --reconcile --json")
        .json();
    let missing = tables["tables"][0]["missing"].as_array().unwrap();
    let heap = missing.iter().find(|m| m["figure"] == "heap-alloc");
    let why = heap.expect("it is missing")["why"].as_str().unwrap();
    assert_contains(&why, "ended during the request");
}

#[test]
fn two_texts_of_the_whole_phone_are_compared() {
    let lab = Lab::new(FAST);
    for name in ["before", "after"] {
        lab.expect(0, &["meminfo", "--system", "--save", name]);
    }
    let shown = |name| {
        let document = lab.expect(0, &["meminfo", name, "--json"]).json();
        let lists = document["device"]["lists"].as_array().unwrap().clone();
        let is_it = |list: &Value| list["by"] == "process" && list["measure"] == "pss";
        let list = lists.into_iter().find(is_it).expect("processes by PSS");
        let items = list["items"].as_array().unwrap().clone();
        let app = items.into_iter().find(|item| item["name"] == APP);
        app.expect("the app")["bytes"].as_i64().unwrap()
    };
    let changes = lab.expect(0, "diff before after --json").json();
    let rows = changes["device"].as_array().unwrap();
    let of_app = |row: &&Value| {
        row["section"] == "device_processes" && row["row"] == APP && row["column"] == "pss"
    };
    let app = rows.iter().find(of_app).expect("the app");
    assert_eq!(app["before"].as_i64(), Some(shown("before")));
    assert_eq!(app["after"].as_i64(), Some(shown("after")));
    // Two users' processes with the same name are compared separately.
    let chats = rows
        .iter()
        .filter(|row| row["row"] == "com.example.chat" && row["section"] == "device_processes");
    assert_eq!(
        chats
            .filter(|row| row["before"].is_i64() && row["after"].is_i64())
            .count(),
        4
    );
    let text = lab.expect(0, "diff before after").stdout;
    assert_contains(&text, "PSS by process");
}

#[test]
fn the_whole_phone_is_listed_by_process_importance_and_kind() {
    let lab = Lab::new(FAST);
    let all = lab.expect(0, "meminfo --system --save phone.txt").stdout;
    for said in [
        "Total RAM",
        "swapped",
        "RSS",
        "Foreground",
        "category",
        "Native",
    ] {
        assert!(all.contains(said), "{said} in {all}");
    }
    let shown = |more: &str| {
        let args = ("meminfo phone.txt", more);
        lab.expect(0, &args).stdout
    };
    let few = shown("--by process -l 3");
    assert_eq!(few.matches("  pid ").count(), 3, "{few}");
    assert_contains(&few, "-l 0");
    let importances = shown("--by oom");
    let at = |what: &str| importances.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(at("Persistent") < at("Foreground"), "{importances}");
    assert!(
        at("Foreground") < at(&format!("{APP}  pid")),
        "{importances}"
    );
    assert_lacks(&importances, ".so mmap");
    assert!(shown("--by category").contains(".so mmap"));
    let document = lab.expect(0, "meminfo phone.txt --json").json();
    let processes = document["device"]["processes"].as_array().unwrap();
    let app = processes.iter().find(|of| of["name"] == APP).unwrap();
    assert_eq!(app["oom"], "Foreground", "{app}");
    assert!(app["rss"].as_i64() > app["pss"].as_i64(), "{app}");
    assert!(app["swap"].is_i64(), "{app}");
    lab.expect(2, "meminfo -n com.example.app --by oom");
    lab.expect(2, "meminfo -n com.example.app --system");
    lab.expect(0, "meminfo -n com.example.app --save app.txt");
    lab.expect(2, "meminfo app.txt -l 3");
}
