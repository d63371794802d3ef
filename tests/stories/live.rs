//! Live view of an app's memory: as lines, as JSON, as CSV, across a disconnect and a restart of
//! the app.

use heaptap_model::timeline::{Entry, Observation, Source};
use serde_json::Value;

use crate::lab::{APP, Lab, Running};
use crate::program::{Arguments, Ended};

const PHONE: &str = "android=14,build=user,speed=10";

/// The live view of `APP`'s main process and the other processes of its package, as JSON lines.
fn watch(lab: &Lab, more: impl Arguments) -> Running {
    let args = ("meminfo -n com.example.app --every 1s --json-lines", more);
    lab.start(&args)
}

fn until(running: &mut Running, kind: &str) -> Value {
    running.until_line(kind, |line| line["kind"] == kind)
}

/// The observations, and the summary.
fn told(ended: &Ended) -> (Vec<Entry>, Value) {
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    let last = lines.pop().unwrap_or_else(|| panic!("nothing: {ended}"));
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["event"], "ended", "{ended}");
    let entry = |line: &&str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    (lines.iter().map(entry).collect(), last)
}

#[test]
fn in_a_pipe_a_line_has_all_that_is_known_in_eighty_columns() {
    let lab = Lab::new(PHONE);
    let mut running = lab.start("meminfo -n com.example.app --every 1s");
    // Lines between two answers of meminfo repeat its figures, with their age.
    running.until_some("a line with older parts", |line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let age: u32 = cells.get(4)?.parse().ok()?;
        let numbers = |cell: &&str| cell.parse::<f64>().is_ok();
        (cells.len() == 13 && age > 0 && cells.iter().skip(2).all(numbers)).then_some(())
    });
    let ended = running.interrupted(0);
    let wide = |line: &str| line.chars().count() > 80;
    assert!(!ended.stdout.lines().any(wide), "{ended}");
    ended.assert_stdout("VmRSS  swap age");
    ended.assert_stdout(&format!("  {APP}\n"));
    ended.assert_stdout("highest");
    assert!(!ended.stdout.contains('\x1b'), "{ended}");
    ended.assert_stderr(" samples ");
}

#[test]
fn its_time_is_over_where_the_phone_is_gone_for_good() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "-d 8s");
    until(&mut running, "resident");
    lab.phone.unplug(0);
    let ended = running.ends(0);
    let (_, last) = told(&ended);
    assert!(last["away"].is_string(), "{last}");
}

#[test]
fn as_json_each_line_is_an_entry_and_one_command_brings_all() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "");
    // Several rounds are over by the second answer.
    until(&mut running, "parts");
    until(&mut running, "parts");
    until(&mut running, "parts");
    running.signal("INT");
    let (seen, last) = told(&running.end());
    let parts: Vec<&Entry> = seen
        .iter()
        .filter(|entry| matches!(&entry.seen, Observation::Parts(_)))
        .collect();
    assert!(parts.len() >= 2);
    for entry in &parts {
        let Observation::Parts(of) = &entry.seen else {
            continue;
        };
        // The app is not queried, and does not collect garbage for heaptap.
        assert_eq!(
            (of.source, of.java_heap.is_none()),
            (Source::MeminfoLocal, true)
        );
        assert!(entry.cost.is_some_and(|cost| cost.bytes > 1000));
    }
    assert!(
        !seen
            .iter()
            .any(|entry| matches!(entry.seen, Observation::HeaptapAction(_)))
    );
    let cost = &last["cost"];
    assert_eq!(cost["round_trips"], 1, "{cost}");
    // A busy host manages fewer rounds than seconds; their number does not matter here.
    assert!(cost["polls"].as_u64() >= Some(2), "{cost}");
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
    let mut running = lab.start("meminfo -n com.example.app --every 1s --csv");
    for source in [",status,", ",meminfo-local,"] {
        running.until_some(source, |line| line.contains(source).then_some(()));
    }
    running.signal("INT");
    let ended = running.end();
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
            "status" => assert!(has("vm_rss") && !has("pss") && !has("total_rss"), "{line}"),
            "meminfo-local" => {
                assert!(has("pss") && has("native") && !has("vm_rss"), "{line}");
                assert!(has("total_rss"), "{line}");
            }
            "" => assert_eq!(cells[at("event")], "runs", "{line}"),
            other => panic!("{other}: {line}"),
        }
        sources.insert(cells[at("source")]);
    }
    assert_eq!(sources.len(), 3, "{ended}");
}

#[test]
fn ended_by_ctrl_c_it_tells_what_each_figure_did() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "");
    until(&mut running, "parts");
    let ended = running.interrupted(0);
    let (_, last) = told(&ended);
    assert_eq!(last["processes"][0]["gone"], false, "{last}");
    let figures = last["processes"][0]["figures"].as_array().unwrap();
    assert!(figures.len() >= 9, "{last}");
}

#[test]
fn an_app_that_is_started_again_is_a_process_of_its_own() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "");
    until(&mut running, "resident");
    lab.on_phone_ok("am", &["force-stop", APP]);
    until(&mut running, "gone");
    lab.on_phone_ok("am", &["start", "-n", &format!("{APP}/.ui.FeedActivity")]);
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
    let gone = processes.iter().find(|of| of["gone"] == true).unwrap();
    assert_eq!(of["replaces"], gone["pid"], "{last}");
}

#[test]
fn over_a_pulled_cable_it_goes_on_and_the_gap_is_told() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "");
    until(&mut running, "resident");
    lab.phone.unplug(0);
    lab.phone.plug_in(0);
    let gap = until(&mut running, "gap");
    assert!(gap["until_ns"].as_u64() > gap["boot_ns"].as_u64(), "{gap}");
    until(&mut running, "resident");
    let ended = running.interrupted(0);
    let (seen, last) = told(&ended);
    assert!(last["away"].is_null(), "{last}");
    assert_eq!(last["cost"]["round_trips"], 2, "{last}");
    // It is the same process.
    let restarted = |entry: &Entry| matches!(&entry.seen, Observation::Process(of) if of.restarted);
    assert!(!seen.iter().any(restarted), "{seen:#?}");
}

#[test]
fn what_the_app_collects_for_us_is_marked() {
    let lab = Lab::new(PHONE);
    let mut running = watch(&lab, "--no-local");
    let ours = until(&mut running, "heaptap-action");
    assert_eq!(ours["what"], "meminfo");
    let parts = until(&mut running, "parts");
    assert_eq!(parts["source"], "meminfo");
    assert!(
        parts["java_heap"].is_object() || parts["java_heap"].is_number(),
        "{parts}"
    );
    running.interrupted(0);
}

#[test]
fn what_does_not_run_is_not_waited_for() {
    let lab = Lab::new(PHONE);
    let ended = lab.run("meminfo -n com.example.nothing --every 1s");
    assert_ne!(ended.code(), Some(0), "{ended}");
    ended.assert_stderr("com.example.nothing");
    assert!(ended.stdout.is_empty(), "{ended}");
}
