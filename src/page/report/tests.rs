//! Pages of Java heaps, and the files of pages.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::java::{self, HeapPlace};
use super::*;
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::{JavaHeap, JavaOptions};
use crate::heaps::selector::DumpSelector;
use crate::page::explore_api::ExploredHeap;
use heaptap_model::heap_graph::{
    Class, ClassIndex, DumpFacts, Follow, GraphBuilder, HeapKind, NewObject, NoContents, ObjectId,
    RootKind,
};
use heaptap_report::data;
use heaptap_report::data::header::Per;

fn java_part() -> JavaPart {
    let mut builder = GraphBuilder::default();
    let mut object = |id, class, shallow_bytes, targets: &[u64]| {
        builder.object(NewObject {
            id: ObjectId(id),
            class: ClassIndex(class),
            shallow_bytes,
            heap: HeapKind::App,
        });
        for &target in targets {
            builder.reference(ObjectId(target));
        }
    };
    object(16, 0, 24, &[32]);
    object(32, 1, 5000, &[48, 64]);
    object(48, 2, 70_000, &[]);
    object(64, 2, 30_000, &[]);
    object(80, 2, 7, &[]);
    builder.root(ObjectId(16), RootKind::JniGlobal, None, None);
    let class = |name: &str| Class {
        name: name.to_owned(),
        ..Class::default()
    };
    let classes = vec![
        class("com.example.Cache"),
        class("evil</pre><script>alert(1)</script>\u{202e}"),
        class("byte[]"),
    ];
    let facts = DumpFacts {
        process: "com.example.<b>app".to_owned(),
        ..DumpFacts::default()
    };
    let graph = builder
        .finish(classes, Vec::new(), Box::new(NoContents), facts, false)
        .expect("it is small");
    let progress = ProgressReporter::default();
    let path = PathBuf::from("dump.hprof");
    let heap = JavaHeap::new(graph, path.clone(), 0, Follow::default(), progress);
    let place = HeapPlace {
        input: &path,
        wall_ms: Some(0.0),
        number: 0,
        among: 1,
        has_others: false,
    };
    java::part(&ExploredHeap::new(heap, false, None), &place)
}

fn report() -> Report {
    Report {
        header: Header {
            title: "com.example.<b>app".to_owned(),
            ..Header::default()
        },
        native: None,
        inputs: Vec::new(),
        java: vec![java_part()],
    }
}

#[test]
fn the_page_of_a_java_heap_shows_who_retains_what() {
    let mut page = Vec::new();
    report().write(&mut page).expect("memory takes all");
    let page = String::from_utf8(page).expect("it is text");
    let (head, _) = page.split_once("</main>").expect("it has a static part");
    let (_, body) = head.split_once("<body>").expect("it has a body");
    for expected in [
        "com.example.&lt;b&gt;app",
        "102.6 KiB",
        "evil&lt;/pre&gt;&lt;script&gt;",
        "No leaks found in what could be analyzed.",
        "<td class=\"n\">97.7 KiB</td>",
        "1970-01-01 00:00:00 UTC",
        "as the runtime reports them",
    ] {
        assert!(body.contains(expected), "{expected}: {body}");
    }
    for unwanted in [
        "<script", "\u{202e}", "http://", "https://", " onclick", "style=\"",
    ] {
        assert!(!body.contains(unwanted), "{unwanted}: {body}");
    }
    for tag in ["details", "table", "pre", "svg", "dl", "div"] {
        let opened =
            body.matches(&format!("<{tag}>")).count() + body.matches(&format!("<{tag} ")).count();
        assert_eq!(body.matches(&format!("</{tag}>")).count(), opened, "{tag}");
    }
}

#[test]
fn the_data_of_a_java_heap_are_the_answers_about_its_objects() {
    let mut page = Vec::new();
    report().write(&mut page).expect("memory takes all");
    let page = String::from_utf8(page).expect("it is text");
    let bytes = data::from_page(&page).expect("it has data");
    let read = data::Data::decode(&bytes).expect("it was just written");
    let entry = &read.header.java[0];
    assert_eq!((entry.objects, entry.shallow), (4, 105_024));
    let answers = &read.java[0];
    assert_eq!(
        answers["kept?"],
        serde_json::json!({ "objects": 4, "command": "heaptap explore dump.hprof" })
    );
    let rows = |key: &str, name: &str| -> Vec<serde_json::Value> {
        let rows = answers[key]["rows"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("there is `{key}`"));
        rows.iter().map(|row| row[name].clone()).collect()
    };
    assert_eq!(rows("objects?", "id"), ["0x10", "0x20", "0x30", "0x40"]);
    assert_eq!(rows("objects?top=", "name"), ["com.example.Cache"]);
    assert_eq!(
        rows("objects?dominated=0x20", "shallow_bytes"),
        [70_000, 30_000]
    );
    assert_eq!(rows("objects?class=byte[]", "id"), ["0x30", "0x40"]);
    assert_eq!(rows("classes?by=class", "name")[2], "byte[]");
    assert_eq!(answers["object?id=0x20"]["retained"]["java_bytes"], 105_000);
    assert_eq!(answers["path?id=0x40"]["length"], 3);
    assert_eq!(rows("referrers?id=0x40", "id"), ["0x20"]);
    let holders = &answers["holders?class=byte[]"]["rows"];
    assert_eq!(holders[0]["count"], 1, "{holders}");
    assert_eq!(holders[1]["root"], "JNI global", "{holders}");
}

#[test]
fn only_reports_are_replaced_and_inputs_never() {
    let directory = tempfile::tempdir().expect("a folder");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("dump"), "JAVA PROFILE").expect("it can be written");
    std::fs::write(path("notes.html"), "<p>mine").expect("it can be written");
    let typed = |name: &str| PagePlace::Typed(path(name));
    let create = |name: &str, force| ReportFile::create(&typed(name), &[&path("dump")], force);
    let refused = |made: Result<ReportFile, Failure>| made.err().map(|e| e.kind);
    assert_eq!(refused(create("notes.html", false)), Some("output-taken"));
    assert_eq!(refused(create("dump", true)), Some("output-is-input"));
    std::fs::write(path("raw-trace"), "trace").expect("it can be written");
    let of_directory = ReportFile::create(&typed("raw-trace"), &[directory.path()], true);
    assert_eq!(refused(of_directory), Some("output-is-input"));
    for (name, force) in [
        ("new.html", false),
        ("new.html", true),
        ("notes.html", true),
    ] {
        let file = create(name, force).expect("it may be written");
        let written = file.finish(report()).expect("it is written");
        // A page with a typed name can be of another recording.
        let again = create(name, false);
        assert_eq!(refused(again), Some("output-taken"), "{name}");
        let page = std::fs::read(path(name)).expect("it is there");
        assert_eq!(page.len() as u64, written.bytes);
        assert_eq!(
            heaptap_base::units::hex(&Sha256::digest(&page)),
            written.sha256
        );
    }
}

#[test]
fn a_directory_that_is_not_there_is_told_so() {
    let directory = tempfile::tempdir().expect("a folder");
    let goal = directory.path().join("nowhere").join("page.html");
    let Err(error) = ReportFile::create(&PagePlace::Typed(goal), &[], false) else {
        panic!("it cannot be written");
    };
    let help = error.help.expect("it says what to do");
    assert!(help.contains("does not exist"), "{help}");
}

#[test]
fn each_of_several_recordings_keeps_its_timeline_and_a_name_of_its_own() {
    use heaptap_model::timeline as seen;
    let opened = |name: &str, readings: &[u64]| {
        let mut known = seen::Timeline::default();
        for &boot_ns in readings {
            let resident = seen::Resident {
                source: seen::Source::Status,
                rss: 4096,
                anon: None,
                file: None,
                shmem: None,
                swap: None,
                peak: None,
                oom_score_adj: None,
            };
            known.entries.push(seen::Entry {
                boot_ns,
                pid: 7,
                cost: None,
                seen: seen::Observation::Resident(resident),
            });
        }
        Opened {
            name: name.to_owned(),
            native: None,
            java: Vec::new(),
            findings: Vec::new(),
            processes: Vec::new(),
            class: None,
            timeline: data::timeline::Timeline::new(&known, &|_| None),
            reconciled: Vec::new(),
        }
    };
    let mut all = [
        opened("rec", &[1_000_000]),
        opened("other", &[]),
        opened("rec", &[5_000_000, 9_000_000]),
    ];
    let recorded = companion::timelines(&mut all);
    let told: Vec<_> = recorded
        .iter()
        .map(|one| (one.name.as_str(), one.timeline.from_ms, one.from, one.to))
        .collect();
    assert_eq!(told, [("rec (1)", 1.0, 0, 0), ("rec (3)", 5.0, 0, 0)]);
    assert!(all.iter().all(|one| one.timeline.is_none()), "moved");
}

#[test]
fn the_command_for_all_callsites_writes_the_same_page() {
    let input = |path: &str, wanted| ReportInput {
        path: PathBuf::from(path),
        wanted,
        mappings: Vec::new(),
    };
    let mut request = ReportRequest {
        inputs: vec![input("rec", DumpScope::Default)],
        base: None,
        per: None,
        look: LookOptions::default(),
        java: JavaOptions::default(),
        java_only: false,
        native_only: false,
        limit: None,
        contents: false,
    };
    assert_eq!(full_command(&request), "heaptap report -l 0 rec@last");
    request.base = Some(input(
        "rec",
        DumpScope::These(vec![DumpSelector::Number(1)]),
    ));
    request.per = Some(Per::iterations(20.0));
    request.look.processes.names = vec!["com.example.*".to_owned()];
    request.look.heaps = vec!["libc.malloc".to_owned()];
    let quoted = quoted("com.example.*");
    assert_eq!(
        full_command(&request),
        format!(
            "heaptap report -l 0 rec@last --base rec@1 --rounds 20 -n {quoted} \
             --heap libc.malloc"
        )
    );
}
