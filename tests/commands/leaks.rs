//! `heaptap leaks` as a program: the real binary on dumps with known leaks and waste; its document,
//! text and exit codes.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::program::{Ended, assert_contains};
use serde_json::Value;

fn path_of(fixture: &str) -> String {
    let path = crate::program::fixture(fixture);
    path.to_str().unwrap().to_owned()
}

fn fixture(name: &str) -> String {
    path_of(&format!("hprof/{name}"))
}

fn heaptap(args: &[&str]) -> Ended {
    crate::program::run(("leaks", args))
}

/// Its text and exit code.
fn words(args: &[&str]) -> (String, i32) {
    let output = heaptap(args);
    let code = output.code().unwrap();
    (output.stdout, code)
}

fn expect(code: i32, args: &[&str]) -> Ended {
    crate::program::expect(code, ("leaks", args))
}

fn json(args: &[&str]) -> Value {
    crate::program::run(("leaks", (args, "--json"))).json()
}

fn groups(document: &Value) -> &Vec<Value> {
    document["leaks"]["groups"].as_array().unwrap()
}

fn of_class<'a>(document: &'a Value, class: &str) -> Vec<&'a Value> {
    let of = |group: &&Value| group["class"] == class;
    groups(document).iter().filter(of).collect()
}

/// The path of a group: classes and references.
fn path(group: &Value) -> String {
    let steps = group["path"].as_array().unwrap();
    let text = |step: &Value| {
        let reference = step["reference"]
            .as_str()
            .map(|r| format!(" {r} "))
            .unwrap_or_default();
        format!("{}{reference}", step["class"].as_str().unwrap())
    };
    steps.iter().map(text).collect()
}

#[test]
fn every_destroyed_activity_is_found_with_what_holds_it() {
    let document = json(&[&fixture("leaklab-before.hprof.zst")]);
    let details = of_class(&document, "lab.LeakLab$DetailActivity");
    let mut ways: Vec<(String, u64)> = details
        .iter()
        .map(|group| (path(group), group["count"].as_u64().unwrap()))
        .collect();
    ways.sort();
    let detail = "lab.LeakLab$DetailActivity";
    // From the system class whose statics reference them.
    let class = "sun.launcher.LauncherHelper appClass lab.LeakLab";
    assert_eq!(
        ways,
        [
            (format!("{class} INNER {detail}$Inner this$0 {detail}"), 1),
            (
                format!("{class} LAMBDA {detail}$$Lambda$1 arg$1 {detail}"),
                1
            ),
            (
                format!("{class} LEAKED java.util.ArrayList [0] {detail}"),
                5
            ),
        ],
        "seven that were destroyed; neither the eighth nor MainActivity"
    );
    for group in details {
        assert_eq!(group["certainty"], "confirmed");
        assert_eq!(group["what"], "destroyed Activity");
        assert_eq!(group["leaks"][0]["reason"], "mDestroyed is true");
        assert_eq!(group["leaks"][0]["nested"][0]["class"], "android.view.View");
        // With its bulk of 100,000 bytes and its view.
        let each = group["retained"]["bytes"].as_u64().unwrap() / group["count"].as_u64().unwrap();
        assert!((100_000..100_200).contains(&each), "{each}");
        assert_eq!(group["retained"], group["dominated"]);
        assert_eq!(group["signature"].as_str().unwrap().len(), 40);
    }
}

#[test]
fn waste_that_was_planted_is_found() {
    let dump = fixture("leaklab-before.hprof.zst");
    let document = json(&[&dump, "--only", "waste"]);
    assert!(document["leaks"].is_null());
    let waste = &document["waste"];
    assert!(waste.get("heap").is_none(), "the JVM has only one");
    let one_row = json(&[&dump, "--only", "waste", "-l", "1"])["waste"].clone();
    assert_eq!(one_row["wasted_bytes"], waste["wasted_bytes"]);
    assert_eq!(one_row["collections"], waste["collections"]);
    let strings = &waste["strings"]["groups"][0];
    assert_eq!(strings["value"], "the same twenty-nine characters");
    assert_eq!(
        strings["count"], 1001,
        "with the constant that they were made of"
    );
    assert_eq!(strings["held_by"], "lab.LeakLab.DUPES [x]");
    let bitmaps = &waste["bitmaps"];
    assert_eq!(
        (&bitmaps["count"], &bitmaps["wasted_bytes"]),
        (&6.into(), &(3 * 16_384).into())
    );
    let held = |list: &str| {
        let rows = waste[list].as_array().unwrap().clone();
        move |by: &str| {
            let found = rows.iter().find(|row| row["held_by"] == by);
            found
                .unwrap_or_else(|| panic!("nothing held by {by}"))
                .clone()
        }
    };
    let empty = held("oversized_collections")("lab.LeakLab.EMPTY_BIG");
    assert_eq!(
        (&empty["used"], &empty["capacity"]),
        (&0.into(), &20_000.into())
    );
    let sparse = held("sparse_arrays")("lab.LeakLab.SPARSE");
    assert_eq!(
        (&sparse["used"], &sparse["capacity"]),
        (&100.into(), &100_000.into())
    );
    let collide = held("hash_collisions")("lab.LeakLab.COLLIDE");
    assert_eq!(
        (&collide["size"], &collide["used_buckets"]),
        (&500.into(), &1.into())
    );
    let huge = held("large_arrays")("lab.LeakLab.HUGE");
    assert_eq!(huge["length"], 1_500_000);
    let listeners = held_group(&waste["arrays"], "lab.LeakLab$Listener.payload");
    assert_eq!(
        (&listeners["count"], &listeners["length"]),
        (&100.into(), &10_000.into())
    );
}

fn held_group<'a>(duplicates: &'a Value, by: &str) -> &'a Value {
    let groups = duplicates["groups"].as_array().unwrap();
    groups.iter().find(|group| group["held_by"] == by).unwrap()
}

#[test]
fn android_dumps_tell_the_same_in_number_and_bytes() {
    let document = json(&[&fixture("android-a.hprof.gz")]);
    let activities = of_class(&document, "com.example.app.MainActivity");
    assert_eq!(activities.len(), 1);
    let ids: Vec<&str> = activities[0]["leaks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|leak| leak["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["0x12c00160", "0x12c00188", "0x12c001b0"]);
    let fragment = of_class(&document, "com.example.app.LeakyFragment");
    assert_eq!(fragment[0]["leaks"][0]["id"], "0x12c001c0");
    assert_eq!(
        fragment[0]["certainty"], "likely",
        "the dump has no mCalled"
    );
    let waste = &document["waste"];
    let text = &waste["strings"]["groups"][0];
    assert_eq!(
        (&text["count"], &text["value"]),
        (&40.into(), &"duplicate string value".into())
    );
    assert_eq!(waste["bitmaps"]["groups"][0]["count"], 3);
    let largest = &waste["largest_bitmaps"][0];
    assert_eq!(
        (&largest["bytes"], &largest["native"]),
        (&10_108_800.into(), &true.into())
    );
}

#[test]
fn waste_is_of_the_app_heap_and_no_other_can_be_selected() {
    let dump = fixture("android-a.hprof.gz");
    assert_eq!(json(&[&dump])["waste"]["heap"], "app");
    let (text, _) = words(&[&dump]);
    assert_contains(&text, "Waste of the app heap: up to ");
    for heap in ["app", "zygote", "image"] {
        expect(2, &[&dump, "--heap", heap]).assert_stderr("reads Java heaps whole");
    }
    // All commands say the same of a heap that Java does not have.
    for command in [
        &["leaks", &dump][..],
        &["top", &dump],
        &["diff", &dump, &dump],
    ] {
        let mut program = crate::program::heaptap();
        Ended::from_command(program.args(command).args(["--heap", "nonsense"]))
            .assert_code(2)
            .assert_stderr("name app, zygote or image");
    }
}

#[test]
fn two_dumps_tell_what_grew_and_how_many_leaks_there_were() {
    let (a, b) = (fixture("android-a.hprof.gz"), fixture("android-b.hprof.gz"));
    let document = json(&[&a, &b]);
    assert_eq!(document["heaps"].as_array().unwrap().len(), 2);
    let activities = of_class(&document, "com.example.app.MainActivity");
    assert_eq!(activities[0]["count"], 8);
    assert_eq!(activities[0]["count_before"], 3);
    let paths = document["growth"]["paths"].as_array().unwrap();
    let row = paths
        .iter()
        .find(|row| row["class"] == "com.example.app.MainActivity")
        .unwrap();
    assert_eq!(row["counts"], serde_json::json!([3, 8]));
    assert_eq!(
        row["path"],
        serde_json::json!(["com.example.app.Holder.INSTANCES"])
    );
    let same = json(&[&a, &a]);
    assert_eq!(same["growth"]["paths"], serde_json::json!([]));
    assert_eq!(same["growth"]["classes"], serde_json::json!([]));
    let (text, code) = words(&[&a, &b]);
    assert_eq!(code, 0);
    assert_contains(&text, "3 before");
    assert_contains(&text, "3 → 8");
}

#[test]
fn marks_are_explained_where_they_occur() {
    let marks = [
        "?: unknown state",
        "~~~: possible cause",
        "[x]: any element",
    ];
    let dump = fixture("leaklab-after.hprof.zst");
    let (all, _) = words(&[&dump]);
    for mark in marks {
        assert_contains(&all, mark);
    }
    let (waste, _) = words(&[&dump, "--only", "waste"]);
    assert!(
        !waste.contains(marks[0]) && !waste.contains(marks[1]),
        "{waste}"
    );
    assert_contains(&waste, marks[2]);
}

#[test]
fn native_callsites_without_growth_are_counted_and_not_listed() {
    let (text, code) = words(&[&recording("c_cont.pftrace")]);
    assert_eq!(code, 0);
    assert_contains(&text, "17 callsites have too little data");
    let flat = |line: &&str| line.trim_start().starts_with("+0 B");
    assert_eq!(text.lines().find(flat), None, "{text}");
    assert_contains(&text, "and did not grow");
}

#[test]
fn fail_ends_with_nine_where_the_app_leaks_and_nowhere_else() {
    let leaky = fixture("android-a.hprof.gz");
    assert_eq!(words(&[&leaky]).1, 0);
    let output = expect(9, &[&leaky, "--fail", "-q"]);
    assert_eq!(
        output.stderr,
        "warning: `--fail`: found leaks of app objects, confirmed or likely (exit code 9)\n"
    );
    assert_eq!(words(&[&leaky, "--fail", "--only", "leaks", "--json"]).1, 9);
    for nothing in ["NoSuchClass", "leakyactivitY"] {
        expect(12, &[&leaky, "--fail", "--focus", nothing]).assert_stderr("nothing was checked");
    }
    let strings = words(&[&leaky, "--fail", "--focus", "^java\\.lang\\.string$"]);
    assert_eq!(strings.1, 0, "strings are there, and do not leak");
    assert_eq!(
        heaptap(&[&leaky, "--fail", "--heap", "nosuch"])
            .status
            .code(),
        Some(12)
    );
    assert_eq!(
        heaptap(&[&format!("{leaky}@7"), "--fail"]).status.code(),
        Some(12)
    );
    assert_eq!(words(&[&leaky, "--fail", "--only", "waste"]).1, 2);
    assert_eq!(words(&["no-such-file.hprof", "--fail"]).1, 8);
    assert_eq!(words(&[]).1, 2);
}

#[test]
fn known_leaks_name_their_owner_and_fail_only_where_asked() {
    for (dump, whose, reference) in [
        (
            "animrequestors",
            "Android 13",
            "android.animation.AnimationHandler.mAnimatorRequestors",
        ),
        (
            "dragchild",
            "Android 11",
            "android.view.ViewGroup.mCurrentDragChild",
        ),
        (
            "exitingtoview",
            "Android 10",
            "android.app.ActivityTransitionState.mExitingToView",
        ),
        (
            "imm_huawei",
            "HUAWEI's Android",
            "android.view.inputmethod.InputMethodManager.mLastSrvView",
        ),
        (
            "presorted",
            "Android 11",
            "android.view.ViewGroup.mPreSortedChildren",
        ),
        ("toast_tn", "Android 10", "android.widget.Toast$TN"),
        ("webview", "Android System WebView", "WV.R9.e"),
    ] {
        let dump = fixture(&format!("known_leaks/{dump}.hprof"));
        let (text, code) = words(&[&dump, "--only", "leaks", "--fail"]);
        assert_eq!(code, 0, "{text}");
        let title = format!("known leak of {whose}, not yours: {reference}");
        assert_contains(&text, &title);
        assert!(
            !text.contains("Clear ") && !text.contains("make it static"),
            "{text}"
        );
        expect(9, &[&dump, "--only", "leaks", "--fail-known", "-q"])
            .assert_stderr("found known leaks, which are not the app's");
        let document = json(&[&dump, "--only", "leaks"]);
        assert_eq!(document["leaks"]["groups_known"], 1);
        let library = &groups(&document)[0]["library"];
        assert_eq!(
            (&library["whose"], &library["reference"]),
            (&whose.into(), &reference.into())
        );
        assert_eq!(library["unknown"], serde_json::json!([]));
    }
    let toast = fixture("known_leaks/toast_tn.hprof");
    let document = json(&[&toast, "--only", "leaks"]);
    let workaround = &groups(&document)[0]["library"]["workaround"];
    assert_eq!(workaround, "show toasts with the application context");
    // Leaks of the app are not known, with either flag.
    let leaky = fixture("android-a.hprof.gz");
    assert_eq!(words(&[&leaky, "--fail-known", "-q"]).1, 9);
    assert_eq!(json(&[&leaky])["leaks"]["groups_known"], 0);
}

#[test]
fn a_dump_that_breaks_off_is_told_and_what_it_has_is_shown() {
    let packed = std::fs::read(fixture("android-a.hprof.gz")).unwrap();
    let mut whole = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(packed.as_slice());
    std::io::Read::read_to_end(&mut reader, &mut whole).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.hprof");
    std::fs::write(&path, &whole[..whole.len() - 500]).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(words(&[path]).1, 6);
    let (text, code) = words(&[path, "--fail"]);
    assert_eq!(code, 12, "{text}");
    assert_contains(&text, "parts of the dump are missing");
}

#[test]
fn lists_are_cut_where_asked() {
    let dump = fixture("leaklab-before.hprof.zst");
    let document = json(&[&dump, "-l", "1"]);
    assert_eq!(groups(&document).len(), 1);
    assert_eq!(document["leaks"]["groups_total"], 4);
    assert_eq!(
        document["waste"]["strings"]["groups"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let document = json(&[&dump, "--focus", "Fragment$"]);
    assert_eq!(groups(&document).len(), 1);
    assert_eq!(
        document["waste"]["strings"]["groups"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let (text, _) = words(&[&dump, "-l", "1"]);
    assert_contains(&text, "… and 3 more leaks");
}

fn recording(name: &str) -> String {
    path_of(&format!("conversions/{name}"))
}

#[test]
fn a_native_series_names_what_grows_and_its_churn() {
    let trace = recording("c_cont.pftrace");
    let document = json(&[&trace]);
    assert_eq!(document["heap_kind"], "native");
    let series = &document["series"][0];
    assert_eq!(series["pid"], 2050);
    assert_eq!(series["heaps"][0]["paired"], true);
    // Eleven dumps: the process had exited before the last, and the first is warm-up.
    assert_eq!(series["heaps"][0]["steps"], 8);
    assert_eq!(series["incomplete"], true);
    let sites = series["sites"].as_array().unwrap();
    let named: Vec<(&str, &str)> = sites
        .iter()
        .take(3)
        .map(|site| {
            let own = site["app_frame"]["function"].as_str().unwrap();
            (own, site["verdict"].as_str().unwrap())
        })
        .collect();
    let grows = ["leak_large", "rec_alloc", "leak_small"].map(|name| (name, "confirmed"));
    assert_eq!(named, grows);
    assert_eq!(sites[0]["freed_bytes"], 0);
    assert_eq!(sites[0]["in_every_iteration"], true);
    let rate = &sites[0]["growth_per_iteration"];
    assert!(rate["low"].as_f64() < rate["value"].as_f64());
    // It leaks at 20 depths of recursion, which are one line, and at 12 it frees everything.
    assert_eq!(sites[1]["unit"], "line");
    assert_eq!(sites[1]["callsites"], 20, "{}", sites[1]);
    // If data are missing, nothing is called noise.
    assert_eq!(series["within_sampling_error"], 0);
    assert!(
        sites[3..]
            .iter()
            .all(|site| site["verdict"] == "inconclusive")
    );
    assert_eq!(series["churn"][0]["app_frame"]["function"], "churn_big");
    let (text, code) = words(&[&trace, "--fail"]);
    assert_eq!(code, 9);
    let first = text.lines().find(|line| line.starts_with("1. ")).unwrap();
    assert_eq!(first, "1. leak_large");
    assert_contains(&text, "Find what keeps it");
}

#[test]
fn a_function_that_leaks_and_churns_stands_apart() {
    let trace = recording("rust_cont_symbolized.pftrace");
    let (text, _) = words(&[&trace]);
    let (leaks, churn) = text.split_once("Churn: ").unwrap();
    // Rust's libraries are skipped, as those of C++ are.
    assert_contains(&leaks, "1. rustalloc::build_tree::{{closure}}\n");
    assert_contains(&leaks, "2. rustalloc::main (3 callsites)");
    assert_contains(&leaks, "\n   called by rustalloc::main");
    assert_contains(&leaks, "none of it freed");
    // Several instances of a function allocate.
    assert_eq!(
        leaks
            .matches("alloc::boxed::Box<T,A>::try_new_uninit_in")
            .count(),
        1
    );
    let mut rows = churn.lines().filter(|l| l.contains("  rustalloc::main  "));
    let row = rows.next().unwrap();
    assert!(
        row.contains("leak 2 is of the same function, by other callers"),
        "{text}"
    );
    assert_eq!(rows.next(), None, "{text}");
}

#[test]
fn churn_names_its_span_and_says_why_more_was_freed_than_allocated() {
    let trace = recording("phone_tracedkill.pftrace");
    let document = json(&[&trace]);
    let rows = document["series"][0]["churn"].as_array().unwrap();
    let shares = rows.iter().map(|row| {
        let allocated = row["allocated"]["value"].as_f64().unwrap();
        let freed = row["freed_bytes"].as_f64().unwrap();
        assert_eq!(row["growth"]["value"].as_f64(), Some(allocated - freed));
        row["freed_share"].as_f64().unwrap()
    });
    let most = shares.fold(0.0, f64::max);
    assert_eq!(format!("{most:.4}"), "1.0228");
    let (text, _) = words(&[&trace]);
    let (_, churn) = text.split_once("Churn: ").unwrap();
    for said in [
        "from the first dump to the last",
        "still unreleased",
        " 102%",
        "above 100%, memory from before the first dump was freed too",
    ] {
        assert_contains(&churn, said);
    }
}

#[test]
fn dumps_of_a_series_may_be_named_one_by_one() {
    let trace = recording("c_cont.pftrace");
    let named: Vec<String> = [3, 6, 9].iter().map(|n| format!("{trace}@{n}")).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let document = json(&[&named[..], &["--rounds", "3"]].concat());
    let heap = &document["series"][0]["heaps"][0];
    assert_eq!(
        (&heap["steps"], &heap["iterations"]),
        (&2.into(), &6.0.into())
    );
    let (text, _) = words(&[&named[..], &["--rounds", "3"]].concat());
    let iterations = "Compared 3 dumps, @3 to @9, each 3 iterations apart (`--rounds 3`).";
    assert_contains(&text, iterations);
    for (command, inputs) in [("leaks", &named[..]), ("diff", &named[..2])] {
        for count in ["0", "0.5", "abc"] {
            let arguments = [&[command][..], inputs, &["--rounds", count]].concat();
            let reason = format!("\"{count}\" is not a whole number of at least 1");
            crate::program::expect(2, &arguments).assert_stderr(reason);
        }
    }
    let numbers: Vec<&Value> = heap["dumps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|dump| &dump["number"])
        .collect();
    assert_eq!(numbers, [3, 6, 9]);
    let sites = document["series"][0]["sites"].as_array().unwrap();
    assert_eq!(sites[0]["app_frame"]["function"], "leak_large");
    assert_eq!(sites[0]["verdict"], "confirmed");
    // All of it is below a large enough tolerance, so the check passes.
    let wide = [&named[..], &["--tolerance", "1g", "--fail"]].concat();
    assert_eq!(heaptap(&wide).status.code(), Some(0));
}

#[test]
fn what_says_nothing_of_held_memory_is_refused_with_the_reason() {
    for (name, code, kind, help) in [
        ("c_max.pftrace", 2, "nothing-unreleased", "--dump-at-max"),
        ("deep.pftrace", 12, "incomplete-series", "heaptap top"),
        (
            "c_rejected_second.pftrace",
            12,
            "incomplete-series",
            "heaptap top",
        ),
    ] {
        let output = expect(code, &[&recording(name), "--json"]);
        let document = output.json();
        assert_eq!(document["error"]["kind"], kind);
        let text = document["error"]["help"].as_str().unwrap();
        assert_contains(&text, help);
        let message = document["error"]["message"].as_str().unwrap();
        let is_rejected = message.contains("(first loss: another session was profiling it)");
        assert_eq!(is_rejected, name.contains("rejected"), "{message}");
    }
    let dump = fixture("leaklab-before.hprof.zst");
    expect(2, &[&dump, "--tolerance", "1k", "--json"]);
}

#[test]
fn a_heap_graph_tells_what_references_prove_and_how_sure_that_is() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("dump");
    let dumped = crate::program::heaptap()
        .args(["dump", "-n", "com.example.app", "--virtual=speed=20", "-o"])
        .arg(&out)
        .env("HEAPTAP_STATE_DIR", directory.path().join("state"))
        .env("HEAPTAP_CACHE_DIR", directory.path().join("cache"))
        .output()
        .unwrap();
    assert!(dumped.status.success(), "{dumped:?}");
    let out = out.to_str().unwrap();
    let document = json(&[out]);
    let mut found: Vec<(&str, &str)> = groups(&document)
        .iter()
        .map(|group| {
            (
                group["what"].as_str().unwrap(),
                group["certainty"].as_str().unwrap(),
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("destroyed Activity", "likely"),
            ("detached View", "possible"),
            ("removed Fragment", "possible"),
            ("stopped Service", "confirmed"),
        ]
    );
    let activity = of_class(&document, "com.example.app.ui.DetailActivity")[0];
    assert_eq!(
        path(activity),
        "com.example.app.ui.Navigator previous com.example.app.ui.DetailActivity"
    );
    assert!(activity["retained"]["native_bytes"].as_u64().unwrap() > 0);
    assert_contains(
        document["waste"]["not_analyzed"][0].as_str().unwrap(),
        "neither text nor numbers",
    );
    assert_eq!(words(&[out, "--fail"]).1, 9);
    // A possible leak does not fail the check.
    assert_eq!(
        words(&[out, "--fail", "--focus", "Fragment|DecorView"]).1,
        0
    );
}
