//! Provoking leaks: the screen rotates, the app is left and restarted; afterwards the phone is
//! restored, whatever the cause of the end.

use std::fs;

use heaptap_model::timeline::Observation;
use serde_json::Value;
use virtual_phone::Fault;

use crate::lab::{APP, Lab, Running, files};
use crate::program::{Arguments, Ended, assert_contains, assert_lacks};

/// Time runs faster on the phone.
const FAST: &str = "speed=20";

fn provoke(lab: &Lab, code: i32, more: impl Arguments) -> Ended {
    let args = ("provoke -n com.example.app --json", more);
    lab.expect(code, &args)
}

fn begin(lab: &Lab, more: impl Arguments) -> Running {
    let args = ("provoke -n com.example.app --json-lines", more);
    lab.start(&args)
}

/// Returns every effect of a document, in order.
fn effects(document: &Value) -> Vec<String> {
    let steps = document["steps"].as_array().expect("steps");
    let all = steps
        .iter()
        .flat_map(|s| s["effects"].as_array().expect("effects"));
    all.map(|e| e["effect"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Returns the commands that changed something on the phone so far, in order.
fn changes(lab: &Lab) -> Vec<String> {
    const CHANGING: [&str; 8] = [
        "am ",
        "wm ",
        "input ",
        "svc ",
        "settings put",
        "settings delete",
        "monkey ",
        "sh -c 'echo heaptap-monkey",
    ];
    let requests = lab.phone.requests();
    let commands = requests.iter().filter_map(|r| r.split_once(':'));
    let commands = commands.map(|(service, rest)| match service.starts_with("shell") {
        true => rest.strip_prefix("v2,raw:").unwrap_or(rest).to_owned(),
        false => String::new(),
    });
    commands
        .filter(|c| CHANGING.iter().any(|start| c.starts_with(start)))
        .collect()
}

/// Rotation and stay-awake as initially set on the virtual phone.
fn assert_as_it_was(lab: &Lab) {
    let system = lab.shell("settings list system");
    assert_contains(&system, "accelerometer_rotation=1\n");
    assert_lacks(&system, "user_rotation");
    let global = lab.shell("settings list global");
    assert_contains(&global, "stay_on_while_plugged_in=0\n");
    let left = files(&lab.dir.path().join("state/provoke"));
    let notes: Vec<&String> = left.iter().filter(|f| f.ends_with(".json")).collect();
    assert_eq!(notes, Vec::<&String>::new());
}

#[test]
fn the_screen_turns_on_every_android_and_the_leak_is_in_the_heap() {
    for android in 10..=16 {
        let lab = Lab::new(&format!("android={android},build=userdebug,{FAST}"));
        let document = provoke(&lab, 0, "rotate:5").json();
        assert_eq!(
            effects(&document),
            ["recreated"; 5],
            "{android}: {document:#}"
        );
        assert_eq!(document["report"]["without_effect"], 0);
        let steps = document["steps"].as_array().expect("steps");
        let ends = steps.iter().map(|s| s["end_ns"].as_u64().expect("a time"));
        let ends: Vec<u64> = ends.collect();
        assert!(ends.is_sorted(), "{ends:?}");
        let turns = changes(&lab);
        let word = if android < 12 {
            "wm set-user-rotation lock"
        } else {
            "wm user-rotation lock"
        };
        let count = turns.iter().filter(|c| c.starts_with(word)).count();
        assert_eq!(count, 5, "{android}: {turns:?}");
        assert_as_it_was(&lab);
        let dump = ["dump", "-n", APP, "--hprof", "-o", "out", "--json"];
        lab.expect(0, &dump);
        let truth = lab.phone.java_truth();
        let planted = &truth.last().expect("a dump").planted;
        let leaked = planted.iter().find(|p| p.what == "recreated-activities");
        // Five rotations, and the one that restores the screen.
        assert_eq!(leaked.expect("they leak").count, 6, "{android}");
        let report = &document["report"];
        assert_eq!(report["recreations"], 6, "{android}: {report:#}");
        assert_eq!(report["recreated_by_restoring"], true, "{android}");
    }
}

#[test]
fn leaks_names_the_activities_that_turning_left() {
    let lab = Lab::new(&format!("build=userdebug,{FAST}"));
    provoke(&lab, 0, "rotate:5");
    lab.expect(0, "dump -n com.example.app --hprof -o out --json");
    let leaks = lab.run("leaks out --json");
    let text = &leaks.stdout;
    assert!(text.contains("com.example.app.ui.FeedActivity"), "{leaks}");
    assert!(text.contains("Telemetry"), "{leaks}");
}

#[test]
fn all_that_is_sent_is_what_a_dry_run_prints() {
    for android in [10, 11, 12, 16] {
        let lab = Lab::new(&format!("android={android},{FAST}"));
        let actions = [
            "rotate:2",
            "home-and-back:2",
            "switch-apps:1",
            "restart-activity:2",
            "trim:all",
            "monkey:20,seed=3",
            "deep-link:https://www.example.com/item?a=1&b='2'",
            "tap:10,20",
            "swipe:1,2,3,4,50",
            "key:BACK",
            "text:it's $(reboot)",
            "start",
            "force-stop",
            "start",
            "--rounds",
            "2",
        ];
        let mut dry = actions.to_vec();
        dry.push("--dry-run");
        let planned = provoke(&lab, 0, &dry).json();
        assert_eq!(changes(&lab), Vec::<String>::new(), "nothing is sent");
        let planned = planned["commands"].as_array().expect("commands");
        let planned = planned
            .iter()
            .map(|c| c["command"].as_str().unwrap_or_default());
        let planned: Vec<&str> = planned.collect();
        provoke(&lab, 0, &actions);
        let sent = changes(&lab);
        assert_eq!(sent, planned, "Android {android}");
        assert_as_it_was(&lab);
    }
}

#[test]
fn ctrl_c_puts_the_phone_back() {
    for signal in ["INT", "TERM", "HUP"] {
        let lab = Lab::new(FAST);
        let mut running = begin(&lab, "rotate:5000");
        running.until_that("step", |s| s["repetition"] == 3);
        assert!(lab.shell("settings list system").contains("user_rotation="));
        running.signal(signal);
        let ended = running.ends(130);
        let back = ended.last_with("settings");
        assert_eq!(back["event"], "restored", "{ended}");
        assert_as_it_was(&lab);
    }
}

#[test]
fn ctrl_c_ends_monkey_on_the_phone_too() {
    let lab = Lab::new("");
    let running = begin(&lab, "monkey:1000000");
    lab.until("monkey", |lab| {
        lab.shell("pgrep -f monkey").lines().count() > 0
    });
    let noted = |lab: &Lab| {
        let notes = lab.dir.path().join("state/provoke/virtual-1.json");
        fs::read_to_string(notes)
            .is_ok_and(|t| t.contains("\"monkey\": ") && !t.contains("\"monkey\": null"))
    };
    lab.until("its pid in the notes", noted);
    running.interrupted(130);
    assert_eq!(lab.shell("pgrep -f android.commands.monkey"), "");
    let left = lab.shell("ps -A -o ARGS");
    assert_lacks(&left, "monkey -p");
    assert_as_it_was(&lab);
}

#[test]
fn a_killed_run_is_put_back_by_the_next_or_by_restore() {
    for restore in [true, false] {
        let lab = Lab::new(FAST);
        let mut running = begin(&lab, "rotate:5000");
        running.until_that("step", |s| s["repetition"] == 2);
        running.signal("KILL");
        running.end();
        assert!(lab.shell("settings list system").contains("user_rotation="));
        if restore {
            let back = lab.expect(0, "provoke --restore --json").json();
            assert_eq!(back["restored"][0]["serial"], "virtual-1", "{back:#}");
        } else {
            lab.expect(0, "provoke -n com.example.app home-and-back:1 --json-lines")
                .assert_stdout("\"restored-first\"");
        }
        assert_as_it_was(&lab);
        let again = lab.expect(0, "provoke --restore --json").json();
        assert_eq!(again["restored"].as_array().map(Vec::len), Some(0));
    }
}

#[test]
fn a_lost_cable_is_waited_for_and_the_plan_goes_on() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "rotate:5000");
    let mut last = 0;
    for _ in 0..2 {
        let step = running.until_that("step", |s| s["repetition"].as_u64() >= Some(last + 2));
        last = step["repetition"].as_u64().expect("a number");
        lab.phone.unplug(0);
        assert_eq!(running.until("connection-lost")["continues"], true);
        lab.phone.plug_in(0);
        running.until("reconnected");
    }
    // The interrupted step is repeated, away from the current orientation.
    let again = running.until_that("step", |s| s["retried"] == true);
    assert!(again["repetition"].as_u64() > Some(last), "{again}");
    let next = running.until("step");
    for step in [&again, &next] {
        assert_eq!(step["effects"][0]["effect"], "recreated", "{step}");
    }
    assert_eq!(
        next["repetition"].as_u64(),
        again["repetition"].as_u64().map(|n| n + 1)
    );
    let ended = running.interrupted(130);
    let report = &ended.last_with("report")["report"];
    assert_eq!(report["disconnections"], 2, "{ended}");
    assert_eq!(report["without_effect"], 0, "{ended}");
    assert_as_it_was(&lab);
}

/// Number of the shell, from 1, that received a command with this beginning.
fn shell_with(lab: &Lab, begin: &str) -> usize {
    let requests = lab.phone.requests();
    let mut shells = requests.iter().filter(|r| r.starts_with("shell"));
    let found = shells.position(|r| r.split_once(':').is_some_and(|(_, c)| c.starts_with(begin)));
    1 + found.unwrap_or_else(|| panic!("no {begin}: {requests:#?}"))
}

#[test]
fn a_process_that_ended_as_it_was_told_did_not_die_because_the_cable_was_lost_meanwhile() {
    for (action, command) in [
        ("force-stop", "am force-stop"),
        ("crash", "sh -c 'p=$(pidof"),
    ] {
        let slow = "speed=4";
        let whole = Lab::new(slow);
        provoke(&whole, 0, &["wait:1", action, "wait:1"]);
        // The check that would have confirmed the effect is cut off.
        let look = shell_with(&whole, command) + 1;
        let lab = Lab::new(&format!("fault=shell-cut#{look},{slow}"));
        let document = provoke(&lab, 0, &["wait:1", action, "wait:1"]).json();
        assert_eq!(document["report"]["disconnections"], 1, "{document:#}");
        assert_eq!(
            document["report"]["deaths"],
            serde_json::json!([]),
            "{document:#}"
        );
        assert_eq!(document["steps"][1]["retried"], true, "{document:#}");
        assert_eq!(effects(&document), ["ended"], "{document:#}");
    }
}

#[test]
fn a_monkey_that_lost_its_cable_is_ended_and_sent_again() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "monkey:2400,seed=3,throttle=50ms rotate:2");
    lab.until("its pid in the notes", |lab| {
        let notes = lab.dir.path().join("state/provoke/virtual-1.json");
        fs::read_to_string(notes)
            .is_ok_and(|t| t.contains("\"monkey\": ") && !t.contains("\"monkey\": null"))
    });
    lab.phone.unplug(0);
    running.until("connection-lost");
    lab.phone.plug_in(0);
    running.until("reconnected");
    let step = running.until_that("step", |s| s["retried"] == true);
    assert_eq!(step["effects"][0]["injected"], 2400, "{step}");
    running.ends(0);
    let sent = changes(&lab);
    let monkeys = sent.iter().filter(|c| c.contains("heaptap-monkey"));
    assert_eq!(monkeys.count(), 2, "{sent:?}");
    assert_as_it_was(&lab);
}

#[test]
fn a_phone_that_is_there_and_answers_nothing_is_given_up_with_what_is_to_be_typed() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "rotate:5000");
    running.until_that("step", |s| s["repetition"] == 2);
    // From now on, every connection is lost as soon as it transfers data.
    let cut = Fault::parse("shell-cut").expect("a fault");
    lab.phone.faults().add(cut);
    let ended = running.ends(5);
    let error = &ended.error();
    assert_eq!(error["kind"], "not-restored", "{ended}");
    let (message, help) = (error["message"].to_string(), error["help"].to_string());
    assert!(
        message.contains("3 times in a row; not restored: user_rotation (was "),
        "{ended}"
    );
    for command in [
        "heaptap provoke --restore -s virtual-1",
        "adb -s virtual-1 shell settings put system accelerometer_rotation ",
    ] {
        assert!(help.contains(command), "{ended}");
    }
    // Each command is on its own line, for copying.
    let typed = |line: &&str| {
        let command = "adb -s virtual-1 shell settings put system accelerometer_rotation ";
        let value = line.trim_start().strip_prefix(command);
        value.is_some_and(|value| value.parse::<u8>().is_ok())
    };
    assert_eq!(ended.stderr.lines().filter(typed).count(), 1, "{ended}");
    ended.refute_stderr("\\u{a}");
    lab.phone.faults().remove(cut.kind);
    lab.expect(0, "provoke --restore --json");
    assert_as_it_was(&lab);
}

#[test]
fn a_phone_that_was_restarted_meanwhile_is_put_back_and_left() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "rotate:5000");
    running.until_that("step", |s| s["repetition"] == 2);
    lab.phone.unplug(0);
    running.until("connection-lost");
    lab.phone.reboot(0);
    lab.phone.plug_in(0);
    let ended = running.ends(5);
    ended.assert_stdout("device-restarted");
    assert_as_it_was(&lab);
}

#[test]
fn who_does_not_wait_for_a_lost_phone_is_told_how_to_go_on() {
    let lab = Lab::new(FAST);
    let mut running = begin(&lab, "rotate:5000");
    running.until_that("step", |s| s["repetition"] == 2);
    lab.phone.unplug(0);
    running.until("connection-lost");
    let ended = running.interrupted(5);
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert_contains(&all, "heaptap provoke --restore -s virtual-1");
    lab.phone.plug_in(0);
    lab.expect(0, "provoke --restore --json");
    assert_as_it_was(&lab);
}

#[test]
fn what_provokes_nothing_is_said() {
    let lab = Lab::new(FAST);
    for (app, why) in [
        ("com.example.browser", "configChanges"),
        ("com.example.chat", "orientation is fixed"),
    ] {
        let ended = lab.expect(12, &format!("provoke -n {app} rotate:2 --json"));
        let document = ended.json();
        assert_eq!(effects(&document), ["not-recreated"; 2], "{ended}");
        ended.assert_stdout(why);
    }
    // In the foreground, a second request at the same level is refused.
    let refused = provoke(&lab, 12, "trim:running-low trim:running-moderate");
    assert_eq!(effects(&refused.json()), ["trimmed", "trim-refused"]);
    refused.assert_stdout("levels must rise");
    let link = provoke(&lab, 5, "deep-link:ftp://example.com/x");
    link.assert_stderr("unable to resolve");
    assert_as_it_was(&lab);
}

#[test]
fn an_app_that_dies_is_told_with_its_reason() {
    let lab = Lab::new(FAST);
    let ended = lab.expect(6, "provoke -n com.example.closed rotate:4 --json");
    let document = ended.json();
    let deaths = document["report"]["deaths"].as_array().expect("deaths");
    assert_eq!(deaths.len(), 1, "{ended}");
    assert_eq!(deaths[0]["reason"], "APP CRASH(EXCEPTION)", "{ended}");
    let log = deaths[0]["log"][0].as_str().expect("a line");
    assert!(log.contains("NullPointerException"), "{ended}");
    assert_as_it_was(&lab);
}

#[test]
fn a_dark_screen_is_switched_on_and_a_locked_one_is_told_of() {
    let lab = Lab::new(&format!("screen=locked,{FAST}"));
    let document = provoke(&lab, 0, "home-and-back:1").json();
    assert_eq!(effects(&document), ["in-background", "launched"]);
    assert_eq!(document["report"]["restored"]["screen_off"], true);
    assert!(lab.shell("dumpsys power").contains("mWakefulness=Asleep"));
    let lab = Lab::new(&format!("screen=pin,{FAST}"));
    let ended = provoke(&lab, 5, "home-and-back:1");
    ended.assert_stderr("is locked");
    ended.assert_stderr("PIN");
    assert!(lab.shell("dumpsys power").contains("mWakefulness=Asleep"));
    assert_as_it_was(&lab);
}

#[test]
fn starts_and_returns_are_told_apart() {
    let lab = Lab::new(&format!("android=11,{FAST}"));
    let actions = "force-stop start home start restart-activity:1";
    let document = provoke(&lab, 0, actions).json();
    let steps = document["steps"].as_array().expect("steps");
    let states: Vec<(&str, bool)> = steps
        .iter()
        .flat_map(|s| s["effects"].as_array().expect("effects"))
        .filter(|e| e["effect"] == "launched")
        .map(|e| {
            (
                e["state"].as_str().unwrap_or("?"),
                e["only_to_foreground"] == true,
            )
        })
        .collect();
    assert_eq!(states, [("COLD", false), ("HOT", true), ("WARM", false)]);
    assert!(steps[0]["pid"].is_null() && steps[1]["pid"].is_u64());
    assert_eq!(
        document["report"]["deaths"].as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn an_app_at_rest_is_told_from_one_that_is_not() {
    let lab = Lab::new(&format!("app=idle,{FAST}"));
    let args = "rotate:1 --rounds 2 --settle --timeline .";
    let ended = provoke(&lab, 0, args);
    assert_eq!(ended.json()["report"]["unsettled"], 0, "{ended}");
    let lines = fs::read_to_string(lab.work().join("memory.jsonl")).expect("a timeline");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for line in lines.lines() {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(
            (&entry["kind"], &entry["what"]),
            (&"heaptap-action".into(), &"provoke rotate:1".into())
        );
        assert!(entry["until_ns"].as_u64() > entry["boot_ns"].as_u64());
    }
}

#[test]
fn growth_from_round_to_round_is_told_with_how_sure_that_is() {
    // Each rotation leaks an activity with its views.
    let lab = Lab::new(&format!("app=idle,{FAST}"));
    let args = "rotate:2 home-and-back:1 --rounds 8 --settle";
    let ended = provoke(&lab, 0, args);
    let trend = &ended.json()["report"]["trend"];
    assert_eq!(
        (&trend["per"], &trend["iterations"]),
        (&"iteration".into(), &8.into())
    );
    let bound = |name: &str| trend[name].as_i64().expect("bytes");
    assert!(bound("low") <= bound("change") && bound("change") <= bound("high"));
    assert_eq!(trend["verdict"] == "grows", bound("low") > 0, "{trend}");
    // A few rounds are not conclusive, whatever their values.
    let few = provoke(&lab, 0, "rotate:1 --rounds 3").json();
    let trend = &few["report"]["trend"];
    assert_eq!(trend["verdict"], "too-few", "{trend}");
    assert!(trend["change"].is_null(), "{trend}");
    // A single action is compared by repetition; one repetition has no comparison.
    let turns = provoke(&lab, 0, "rotate:6").json();
    assert_eq!(turns["report"]["trend"]["per"], "rotate");
    assert!(provoke(&lab, 0, "rotate:1").json()["report"]["trend"].is_null());
    // As text.
    let words = lab.expect(0, "provoke -n com.example.app rotate:6");
    let heading = words.stdout.lines().next().unwrap_or_default();
    assert_contains(&heading, "RssAnon");
    assert_contains(&heading, "effect");
    words.assert_stdout("per rotate (95% confidence: ");
    words.refute_stderr("recreated the activity");
    let odd = lab.expect(0, "provoke -n com.example.app rotate:3");
    let once_more = "restoring the rotation recreated the activity once more, 4 times in total";
    odd.assert_stderr(once_more);
    words.assert_stderr("heaptap meminfo -n com.example.app --adb-server");
    words.assert_stderr("heaptap leaks com.example.app-provoked");
}

#[test]
fn what_a_turned_activity_leaves_is_in_the_native_heap_too() {
    // Each also leaks outside the Java heap: a picture, and its views' drawing resources.
    const EACH: u64 = (192 << 10) + 40 * 1_504;
    const TURNS: u64 = 12;
    let lab = Lab::new(&format!("android=14,build=userdebug,{FAST}"));
    let mut recording = lab.record("");
    recording.until_recorded();
    // The native heap is attached by then, so new allocations are counted.
    lab.expect(0, "snapshot --label before --json");
    let turns = format!("rotate:{TURNS}");
    provoke(&lab, 0, &[&turns]);
    recording.interrupted(0);
    let truths = lab.phone.truth();
    let dumps = &truths.last().expect("a recording").dumps;
    let held = |of: &virtual_phone::DumpTruth| -> u64 {
        let sites = of
            .sites
            .iter()
            .filter(|s| s.name.ends_with("of an activity"));
        sites.map(|s| s.allocated - s.freed).sum()
    };
    let mut heaps = dumps
        .iter()
        .filter(|d| d.heap == "libc.malloc" && d.process == APP);
    let (first, last) = (
        heaps.next().expect("a dump"),
        heaps.next_back().expect("another"),
    );
    // Restoring the screen rotates it once more if it is in landscape.
    let left = held(last) - held(first);
    assert!(
        (TURNS * EACH..=(TURNS + 1) * EACH).contains(&left),
        "{left}"
    );
    // heapprofd saw most of it, because the pictures are larger than its interval.
    lab.expect(0, "top out --by function --json")
        .assert_stdout("allocateHeapBitmap");
}

#[test]
fn steps_beside_a_recording_that_runs_are_all_in_its_timeline() {
    let lab = Lab::new(&format!("build=userdebug,{FAST}"));
    let mut recording = lab.record("--with meminfo,gc");
    recording.until_recorded();
    let args = "provoke -n com.example.app rotate:30 --timeline out --json";
    let provoked = lab.expect(0, args).json();
    recording.interrupted(0);
    let text = fs::read_to_string(lab.work().join("out/memory.jsonl")).expect("a timeline");
    let (timeline, strange) = heaptap_model::timeline::Timeline::parse(&text);
    assert_eq!(strange, 0, "{text}");
    let ours: Vec<u64> = timeline
        .entries
        .iter()
        .filter(|e| matches!(&e.seen, Observation::HeaptapAction(o) if o.what.starts_with("provoke rotate")))
        .map(|e| e.boot_ns)
        .collect();
    let steps = provoked["steps"].as_array().expect("steps");
    let steps: Vec<u64> = steps
        .iter()
        .filter_map(|s| s["begin_ns"].as_u64())
        .collect();
    assert_eq!(ours, steps);
    // The recording itself did not lose anything, either.
    let resident = timeline
        .entries
        .iter()
        .filter(|e| matches!(e.seen, Observation::Resident(_)));
    assert!(resident.count() > 0);
    let beside = &lab.manifest("out")["companion"]["timeline"];
    assert_eq!(beside["entries"], timeline.entries.len(), "{beside:#}");
    assert_eq!(beside["unknown_lines"], 0, "{beside:#}");
}

#[test]
fn leaving_is_the_request_to_trim_what_is_hidden() {
    let lab = Lab::new(FAST);
    let document = provoke(&lab, 0, "trim:hidden trim:all").json();
    let asked = effects(&document)
        .iter()
        .filter(|e| *e == "trimmed")
        .count();
    assert_eq!(asked, 7, "{document:#}");
}

#[test]
fn one_process_crashes_and_no_other() {
    let lab = Lab::new(FAST);
    let service = lab.shell("pidof com.example.app:service");
    let document = provoke(&lab, 0, "crash").json();
    assert_eq!(effects(&document), ["ended"]);
    assert_eq!(lab.shell("pidof com.example.app:service"), service);
}

#[test]
fn monkeys_of_one_seed_do_the_same() {
    let counts: Vec<Option<u64>> = (0..2)
        .map(|_| {
            let lab = Lab::new(&format!("build=userdebug,{FAST}"));
            let ended = provoke(&lab, 0, "monkey:300 --seed 7");
            assert!(
                ended.stdout.contains("\"injected\": 300")
                    || ended.stdout.contains("\"injected\":300"),
                "{ended}"
            );
            assert_as_it_was(&lab);
            lab.expect(0, "dump -n com.example.app --hprof -o out --json");
            let truth = lab.phone.java_truth();
            let planted = &truth.last().expect("a dump").planted;
            let leaked = planted.iter().find(|p| p.what == "recreated-activities");
            leaked.map(|p| p.count)
        })
        .collect();
    assert!(counts[0].is_some());
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn actions_are_listed_without_a_phone() {
    let lab = Lab::new("devices=0");
    let listed = lab.expect(0, "provoke --list --json").json();
    assert_eq!(listed["actions"].as_array().map(Vec::len), Some(18));
    let none = lab.expect(0, "provoke --restore --json").json();
    assert_eq!(none["restored"].as_array().map(Vec::len), Some(0));
    lab.expect(2, "provoke -n com.example.app dance:3")
        .assert_stderr("the actions are rotate");
    lab.expect(2, "provoke -n com.example.app rotat:3")
        .assert_stderr("did you mean rotate?")
        .assert_stderr("heaptap provoke --list");
}

/// The app dies when heapprofd attaches, and again at each start.
#[test]
fn what_is_done_to_an_app_that_does_not_run_has_no_effect() {
    let lab = Lab::new("speed=10,fault=target-dies");
    lab.expect(0, "record -n com.example.app --detach -o out");
    let ended = lab.run("provoke -n com.example.app rotate:2");
    assert!(matches!(ended.code(), Some(6 | 12)), "{ended}");
    lab.run("stop");
}
