//! docs/reference/formats.md names every key at the top of what commands print for scripts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab::{APP, Lab, recording};

const PAGE: &str = include_str!("../../docs/reference/formats.md");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/");

/// The keys in the row of a command or an event: words in backticks, outside of parentheses.
fn documented(row: &str) -> BTreeSet<&'static str> {
    let section = PAGE
        .split("\n### Devices and recordings\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the section is there");
    let rows = section.lines().filter_map(|line| {
        let (first, second) = line.strip_prefix('|')?.split_once('|')?;
        first.split(", ").any(|part| part == row).then_some(second)
    });
    let mut keys = BTreeSet::new();
    for cell in rows {
        let mut depth = 0;
        for (at, text) in cell.split('`').enumerate() {
            if at.is_multiple_of(2) {
                depth += text.matches('(').count();
                depth -= text.matches(')').count();
            } else if depth == 0 {
                keys.insert(text.trim_end_matches('?').trim_end_matches("[]"));
            }
        }
    }
    keys
}

/// The keys of a document that the row lacks.
fn missing(row: &str, document: &Value) -> Vec<String> {
    let keys = documented(row);
    let document = document.as_object().expect("an object");
    let undocumented = |key: &&String| *key != "event" && !keys.contains(key.as_str());
    let missing = document.keys().filter(undocumented);
    missing.map(|key| format!("{row}: {key}")).collect()
}

#[test]
fn every_key_of_a_document_is_on_the_page() {
    let lab = Lab::new("android=14,build=userdebug,speed=10,sites=20,java=500");
    let commands = [
        ("`doctor`", "doctor"),
        ("`devices`", "devices"),
        ("`apps`", "apps"),
        ("`check`", "check -n APP"),
        ("`provoke`", "provoke -n APP rotate:1"),
        ("`provoke --dry-run`", "provoke -n APP rotate:1 --dry-run"),
        ("`provoke --list`", "provoke --list"),
        ("`provoke --restore`", "provoke --restore"),
        ("`run --dry-run`", "run s.yaml --dry-run"),
        ("`record --print-config`", "record -n APP --print-config"),
        ("`record --detach`", "record -n APP --detach -o out"),
        ("`status`", "status"),
        ("`snapshot`", "snapshot --label here"),
        ("`stop`", "stop"),
        ("`dump`", "dump -n APP -o java"),
        ("`meminfo`", "meminfo -n APP"),
        ("`meminfo`", "meminfo --system"),
        ("`meminfo --every`", "meminfo -n APP --every 1s -d 1s"),
        ("`meminfo --reconcile`", "meminfo -n APP --reconcile"),
        ("`smaps`", "smaps -n APP"),
        ("`gc --now`", "gc --now -n APP"),
        ("`gc`", "gc FIXTURES/gclog/gc_forms.log"),
        (
            "`diff` of meminfo",
            "diff FIXTURES/meminfo/synthetic_api34_a.txt FIXTURES/meminfo/synthetic_api34_d.txt",
        ),
        ("`convert` to pprofs", "convert out -o pprofs"),
        (
            "`convert --format`",
            "convert out --format folded -o folded",
        ),
        ("`report`", "report out -o page.html"),
        ("`open`", "open page.html --print-url"),
        ("`symbolize DIR`", "symbolize out"),
        ("`symbolize TRACE`", "symbolize out/raw-trace -o symbols"),
        ("`query`", "query out -o tables.db"),
        (
            "`hprof info`",
            "hprof info FIXTURES/hprof/android-a.hprof.gz",
        ),
        (
            "`hprof conv`",
            "hprof conv FIXTURES/hprof/android-a.hprof.gz conv.hprof",
        ),
        (
            "`hprof strip`",
            "hprof strip FIXTURES/hprof/android-a.hprof.gz strip.hprof",
        ),
    ];
    let scenario = heaptap_lab::scenario::first_scenario(APP);
    std::fs::write(lab.work().join("s.yaml"), scenario).expect("a scenario");
    let mut wrong = Vec::new();
    for (row, command) in commands {
        let words: Vec<String> = command
            .split(' ')
            .map(|word| match word {
                "APP" => APP.to_owned(),
                word => word.replace("FIXTURES/", FIXTURES),
            })
            .collect();
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        args.push("--json");
        let document = lab.run(&args).json();
        wrong.extend(missing(row, &document));
    }
    assert!(wrong.is_empty(), "add to formats.md: {wrong:#?}");
}

#[test]
fn every_kind_of_java_leak_is_on_the_page() {
    let source = include_str!("../../crates/analyze/src/leaks/kinds.rs");
    let names = source.split("pub fn name(self)").nth(1);
    let names = names.and_then(|rest| rest.split("\n    }\n").next());
    let row = PAGE.lines().find(|line| line.starts_with("|`….kind`|"));
    let row = row.expect("the row is there");
    for name in names.expect("names").split('"').skip(1).step_by(2) {
        assert!(
            row.contains(&format!("`{name}`")),
            "add {name} to formats.md"
        );
    }
}

#[test]
fn every_key_of_an_event_is_on_the_page() {
    let lab = Lab::new("android=14,build=userdebug,speed=10");
    let flags = "-d 2s --with meminfo,gc --json-lines";
    let ended = lab.expect(0, &recording("out", flags));
    let lines = ended.stdout.lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for event in events {
        let name = event["event"].as_str().expect("a name");
        assert!(
            PAGE.contains(&format!("`{name}`")),
            "add the event {name} to formats.md"
        );
        // The last event is the document of the command.
        let row = match name {
            "finished" => "`record`".to_owned(),
            name => format!("`{name}`"),
        };
        wrong.extend(missing(&row, &event));
        seen += 1;
    }
    assert!(seen > 5, "{ended}");
    assert!(wrong.is_empty(), "add to formats.md: {wrong:#?}");
}
