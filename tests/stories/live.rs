//! Somebody watches the memory of an app as it moves: in lines, as JSON, as CSV, over a pulled
//! cable and a restart of the app.

use heaptap::memory::timeline::{Entry, Seen, Source};
use serde_json::Value;

use crate::beside::on_phone;
use crate::lab::{APP, Ended, Lab, Running};

const PHONE: &str = "android=14,build=user,speed=10";

/// The live view of `APP`'s main process and the others of its package, as lines of JSON.
fn watch(lab: &Lab, more: &[&str]) -> Running {
    let mut args = vec!["meminfo", APP, "--every", "1s", "--json-lines"];
    args.extend(more);
    lab.start(&args)
}

fn until(running: &mut Running, kind: &str) -> Value {
    running.until_line(kind, |line| line["kind"] == kind)
}

/// What was seen, and the summary.
fn told(ended: &Ended) -> (Vec<Entry>, Value) {
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    let last = lines.pop().unwrap_or_else(|| panic!("nothing: {ended}"));
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["event"], "ended", "{ended}");
    let entry = |line: &&str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    (lines.iter().map(entry).collect(), last)
}

#[test]
fn in_a_pipe_it_is_plain_lines_and_ends_in_time() {
    let lab = Lab::new(PHONE);
    let ended = lab.expect(0, &["meminfo", APP, "--every", "1s", "--for", "12s"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].contains("RSS") && lines[0].contains("Private Other"));
    let samples = |line: &&&str| line.contains("MiB") && line.contains(APP);
    assert!(lines.iter().filter(samples).count() >= 2, "{ended}");
    assert!(ended.stdout.contains("highest"), "{ended}");
    assert!(!ended.stdout.contains('\x1b'), "{ended}");
    assert!(ended.stderr.contains("watched for"), "{ended}");
}

#[test]
fn as_json_each_line_is_an_entry_and_one_command_brings_all() {
    let lab = Lab::new(PHONE);
    let (seen, last) = told(&watch(&lab, &["--for", "40s"]).end());
    let parts: Vec<&Entry> = seen
        .iter()
        .filter(|entry| matches!(&entry.seen, Seen::Parts(_)))
        .collect();
    assert!(parts.len() >= 2);
    for entry in &parts {
        let Seen::Parts(of) = &entry.seen else {
            continue;
        };
        // The app is not asked, and collects nothing for us.
        assert_eq!(
            (of.source, of.java_heap.is_none()),
            (Source::MeminfoLocal, true)
        );
        assert!(entry.cost.is_some_and(|cost| cost.bytes > 1000));
    }
    assert!(!seen.iter().any(|entry| matches!(entry.seen, Seen::Ours(_))));
    let cost = &last["cost"];
    assert_eq!(cost["round_trips"], 1, "{cost}");
    // A busy host plays fewer rounds than a second has: how many is not what is asked.
    assert!(cost["rounds"].as_u64() >= Some(2), "{cost}");
    let rss = last["processes"][0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|figure| figure["figure"] == "rss")
        .unwrap();
    assert!(rss["samples"].as_u64() >= Some(2), "{rss}");
    assert!(rss["min"].as_i64() <= rss["last"].as_i64());
}

#[test]
fn as_csv_each_row_has_all_columns() {
    let lab = Lab::new(PHONE);
    let args = ["meminfo", APP, "--every", "1s", "--for", "11s", "--csv"];
    let ended = lab.expect(0, &args);
    let mut lines = ended.stdout.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| head.iter().position(|of| *of == name).unwrap();
    let mut sources = std::collections::BTreeSet::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), head.len(), "{line}");
        assert!(cells[at("process")].starts_with(APP), "{line}");
        let has = |name: &str| cells[at(name)].parse::<u64>().is_ok();
        match cells[at("source")] {
            "status" => assert!(has("rss") && !has("pss"), "{line}"),
            "meminfo-local" => assert!(has("pss") && has("native") && !has("rss"), "{line}"),
            other => panic!("{other}: {line}"),
        }
        sources.insert(cells[at("source")]);
    }
    assert_eq!(sources.len(), 2, "{ended}");
}

#[test]
fn ended_by_ctrl_c_it_tells_what_each_figure_did() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, &[]);
    until(&mut running, "parts");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code(), Some(0), "{ended}");
    let (_, last) = told(&ended);
    assert_eq!(last["processes"][0]["gone"], false, "{last}");
    let figures = last["processes"][0]["figures"].as_array().unwrap();
    assert!(figures.len() >= 9, "{last}");
}

#[test]
fn an_app_that_is_started_again_is_a_process_of_its_own() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, &[]);
    until(&mut running, "resident");
    on_phone(&lab, "am", &["force-stop", APP]);
    until(&mut running, "gone");
    on_phone(
        &lab,
        "am",
        &["start", "-n", &format!("{APP}/.ui.FeedActivity")],
    );
    let again = running.until_line("a restart", |line| line["restarted"] == true);
    let pid = &again["pid"];
    running.until_line("a sample of it", |line| {
        line["kind"] == "resident" && line["pid"] == *pid
    });
    running.signal("INT");
    let (_, last) = told(&running.end());
    let processes = last["processes"].as_array().unwrap();
    assert!(processes.iter().any(|of| of["gone"] == true));
    let of = processes.iter().find(|of| of["pid"] == *pid).unwrap();
    assert_eq!(
        (&of["restarted"], &of["gone"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn over_a_pulled_cable_it_goes_on_and_the_gap_is_told() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, &[]);
    until(&mut running, "resident");
    lab.phone.unplug(0);
    lab.phone.plug_in(0);
    let gap = until(&mut running, "gap");
    assert!(gap["until_ns"].as_u64() > gap["boot_ns"].as_u64(), "{gap}");
    until(&mut running, "resident");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code(), Some(0), "{ended}");
    let (seen, last) = told(&ended);
    assert!(last["away"].is_null(), "{last}");
    assert_eq!(last["cost"]["round_trips"], 2, "{last}");
    // It is the same process.
    let restarted = |entry: &Entry| matches!(&entry.seen, Seen::Process(of) if of.restarted);
    assert!(!seen.iter().any(restarted), "{seen:#?}");
}

#[test]
fn what_the_app_collects_for_us_is_marked() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, &["--allow-gc"]);
    let ours = until(&mut running, "ours");
    assert_eq!(ours["what"], "meminfo");
    let parts = until(&mut running, "parts");
    assert_eq!(parts["source"], "meminfo");
    assert!(
        parts["java_heap"].is_object() || parts["java_heap"].is_number(),
        "{parts}"
    );
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
}

#[test]
fn what_does_not_run_is_not_waited_for() {
    let lab = Lab::new(PHONE);
    let ended = lab.run(&["meminfo", "com.example.nothing", "--every", "1s"]);
    assert_ne!(ended.code(), Some(0), "{ended}");
    assert!(ended.stderr.contains("com.example.nothing"), "{ended}");
    assert!(ended.stdout.is_empty(), "{ended}");
}
