//! Each results directory belongs to one session: if several request it, one gets it. Each session
//! writes only to its own, and does not change files of others.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use virtual_phone::{PhoneSpec, VirtualPhone};

use crate::lab::{APP, LIMIT, Lab, files, recording};
use crate::program::{Ended, assert_contains};

const FAST: &str = "android=14,build=userdebug,speed=20";
/// Rounds with two processes that start at the same time: those of HEAPTAP_ROUNDS, which
/// `tests/run.sh all` sets. `session::directory` tests 200 of the claim alone.
fn rounds() -> usize {
    let rounds = std::env::var("HEAPTAP_ROUNDS").ok();
    rounds.map_or(6, |rounds| {
        rounds.parse().expect("HEAPTAP_ROUNDS is a number")
    })
}

/// Starts to record without a page and without the slow search for symbols.
fn quickly(more: &str) -> String {
    format!("record -n {APP} --no-report --no-symbolize --json {more}")
}

/// Returns the only session that `status` lists.
fn only_session(lab: &Lab) -> String {
    let status = lab.status();
    let id = status["sessions"][0]["session"].as_str();
    id.expect("a session").to_owned()
}

fn sha256(path: &Path) -> String {
    let sum = Sha256::digest(std::fs::read(path).unwrap());
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the name of the only profile of a recording of `APP`.
pub fn profile_name(lab: &Lab) -> String {
    lab.expect(0, &quickly("-d 2s -o first"));
    let manifest = lab.manifest("first");
    let name = manifest["dumps"][0]["file"].as_str().expect("a profile");
    name.to_owned()
}

/// Records into `out`, where a file of the user has the name of the profile. The trace is fetched
/// then, but the results cannot be stored.
pub fn blocked_by_a_file(lab: &Lab, name: &str) -> Ended {
    let mut running = lab.record("");
    running.until_recorded();
    std::fs::write(lab.work().join("out").join(name), "mine").unwrap();
    running.signal("INT");
    running.end()
}

#[test]
fn two_phones_at_one_moment_share_no_directory_by_name() {
    let lab = Lab::new(FAST);
    let other = VirtualPhone::start(PhoneSpec::parse(FAST).unwrap()).unwrap();
    for round in 0..rounds() {
        let out = format!("out-{round}");
        let before = lab.phone.truth().len() + other.truth().len();
        let args = quickly(&format!("-d 2s -o {out}"));
        let both = [lab.start(&args), lab.start_on(&other, "state", &args)];
        let [first, second] = both.map(|running| running.end());
        let (won, lost) = match (first.code(), second.code()) {
            (Some(0), Some(2)) => (first, second),
            (Some(2), Some(0)) => (second, first),
            _ => panic!("round {round}: {first}\n{second}"),
        };
        let manifest = lab.manifest(&out);
        let winner = manifest["session"]["id"].as_str().unwrap();
        assert_eq!(won.json()["session"], winner);
        let refusal = lost.error();
        // A process that starts late finds everything there.
        if refusal["kind"] != "output-not-empty" {
            assert_eq!(refusal["kind"], "output-claimed", "{lost}");
            assert!(refusal["message"].to_string().contains(winner), "{lost}");
        }
        let sum = sha256(&lab.work().join(&out).join("raw-trace"));
        assert_eq!(manifest["trace"]["sha256"], sum);
        let after = lab.phone.truth().len() + other.truth().len();
        assert_eq!(after, before + 1, "the loser recorded nothing");
        lab.assert_tidy(&out);
        assert!(other.list("/data/misc/perfetto-traces").is_empty());
    }
}

#[test]
fn two_phones_at_one_moment_share_no_directory_without_a_name() {
    let lab = Lab::new(FAST);
    let other = VirtualPhone::start(PhoneSpec::parse(FAST).unwrap()).unwrap();
    for round in 1..=rounds() {
        let args = quickly("-d 2s");
        let both = [lab.start(&args), lab.start_on(&other, "state", &args)];
        for ended in both.map(|running| running.end()) {
            assert_eq!(ended.code(), Some(0), "round {round}: {ended}");
        }
        let directories = files(&lab.work());
        assert_eq!(directories.len(), 2 * round, "{directories:?}");
        for directory in &directories {
            let manifest = lab.manifest(directory);
            let id = manifest["session"]["id"].as_str().unwrap();
            assert!(directory.ends_with(id), "{directory} has session {id}");
            let sum = sha256(&lab.work().join(directory).join("raw-trace"));
            assert_eq!(manifest["trace"]["sha256"], sum);
        }
    }
}

#[test]
fn two_conversions_at_one_moment_share_no_directory() {
    let lab = Lab::new(FAST);
    profile_name(&lab);
    for round in 0..rounds() {
        let out = format!("profiles-{round}");
        let format = ["pprof", "folded", "parquet"][round % 3];
        let args =
            format!("convert first/raw-trace -o {out} --format {format} --no-symbolize --json");
        let both = [lab.start(&args), lab.start(&args)];
        let [first, second] = both.map(|running| running.end());
        let mut codes = [first.code(), second.code()];
        codes.sort();
        assert_eq!(codes, [Some(0), Some(2)], "{first}\n{second}");
        let written = files(&lab.work().join(&out));
        assert!(!written.is_empty(), "{first}\n{second}");
        assert!(
            written.iter().all(|name| !name.starts_with('.')),
            "{written:?}"
        );
        if format == "pprof" {
            let mut whole = files(&lab.work().join("first"));
            whole.retain(|name| name != "raw-trace");
            assert_eq!(written, whole);
        }
    }
}

#[test]
fn a_second_detached_start_into_a_directory_names_the_session_that_has_it() {
    for start in [
        &["record", "--detach", "--no-check"][..],
        &["dump", "-c", "2s", "--detach"],
        &["dump", "--hprof", "--detach"],
    ] {
        let lab = Lab::new(FAST);
        let args = (start, "-n com.example.app -o out --json");
        let first = lab.expect(0, &args);
        let id = first.json()["session"].as_str().unwrap().to_owned();
        let second = lab.expect(2, &args);
        assert_eq!(second.error()["kind"], "output-claimed", "{second}");
        let message = second.error()["message"].to_string();
        assert!(message.contains(&id), "{second}");
        assert_eq!(only_session(&lab), id);
        lab.expect(0, "stop");
        assert_eq!(lab.manifest("out")["session"]["id"], id);
        lab.assert_tidy("out");
    }
}

#[test]
fn a_forgotten_session_gives_its_directory_up() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "--detach"));
    lab.expect(0, &["stop", "--forget", &only_session(&lab)]);
    // The forgotten session still occupies the process on the phone.
    lab.expect(7, &quickly("-d 2s -o out --no-check"));
    assert!(lab.manifest("out")["session"]["id"].is_string());
}

#[test]
fn a_directory_that_another_session_has_by_now_is_refused_before_anything_is_fetched() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "--detach"));
    let first = only_session(&lab);
    std::fs::remove_dir_all(lab.work().join("out")).unwrap();
    let second = lab.expect(0, &recording("out", "--detach --no-check --json"));
    let second = second.json()["session"].as_str().unwrap().to_owned();
    let refused = lab.fails(10, &["stop", &first]);
    assert_eq!(refused["kind"], "output-foreign", "{refused}");
    let message = refused["message"].to_string();
    assert!(message.contains(&second), "{refused}");
    let help = format!("heaptap stop {first} -o DIR");
    assert!(refused["help"].to_string().contains(&help), "{refused}");
    assert_eq!(lab.traces().len(), 2, "nothing is removed");
    assert_eq!(files(&lab.work().join("out")), [".heaptap-session"]);
    lab.expect(0, &["stop", &first, "-o", "elsewhere"]);
    lab.assert_truth("elsewhere");
    // The second was too late: the first occupied the process.
    lab.expect(7, &["stop", &second]);
    assert_eq!(lab.manifest("out")["session"]["id"], second);
    lab.assert_tidy("out");
    lab.assert_tidy("elsewhere");
}

#[test]
fn a_result_of_somebody_else_is_refused_before_anything_is_fetched() {
    for name in ["manifest.json", "raw-trace"] {
        let lab = Lab::new(FAST);
        lab.expect(0, &recording("out", "--detach"));
        let mine = lab.work().join("out").join(name);
        std::fs::write(&mine, "mine").unwrap();
        let before = files(&lab.work().join("out"));
        let refused = lab.fails(10, "stop");
        assert_eq!(refused["kind"], "output-foreign", "{name}: {refused}");
        assert_eq!(lab.traces().len(), 1, "{name}");
        assert_eq!(files(&lab.work().join("out")), before, "not fetched");
        lab.expect(0, "stop -o elsewhere");
        lab.assert_truth("elsewhere");
        assert_eq!(std::fs::read(&mine).unwrap(), b"mine", "{name}");
        lab.assert_tidy("elsewhere");
    }
}

#[test]
fn a_file_with_the_name_of_a_result_stays_and_stop_writes_elsewhere() {
    let lab = Lab::new(FAST);
    let name = profile_name(&lab);
    let refused = blocked_by_a_file(&lab, &name);
    refused.assert_code(10);
    assert_eq!(refused.error()["kind"], "output-foreign");
    assert!(refused.error()["help"].to_string().contains("heaptap stop"));
    assert_eq!(lab.traces().len(), 1, "the phone keeps it");
    let mine = lab.work().join("out").join(&name);
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
    assert!(!lab.work().join("out/manifest.json").exists());
    lab.expect(0, "stop -o elsewhere");
    lab.assert_truth("elsewhere");
    assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
    lab.assert_tidy("elsewhere");
}

#[test]
fn results_that_were_published_in_part_are_replaced_by_other_ones() {
    let lab = Lab::new(FAST);
    let removing = lab.phone.faults().close_gate(&["rm -f"]);
    let running = lab.start(&quickly("-d 2s -o out"));
    assert!(removing.is_reached_within(LIMIT), "it did not finish");
    running.signal("KILL");
    running.end();
    drop(removing);
    let out = lab.work().join("out");
    let name = lab.manifest("out")["dumps"][0]["file"].clone();
    let profile = out.join(name.as_str().expect("a profile"));
    // As if it had been killed after the profile got its name, and symbols had been found since.
    let ready = out.join(format!(".heaptap-{}-AbCdEf.ready", only_session(&lab)));
    std::fs::create_dir(&ready).unwrap();
    std::fs::rename(out.join("manifest.json"), ready.join("manifest.json")).unwrap();
    let symbolized = std::fs::read(&profile).unwrap();
    std::fs::write(&profile, "without symbols").unwrap();
    lab.expect(0, "stop");
    assert!(
        std::fs::read(&profile).unwrap() == symbolized,
        "the profile"
    );
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn files_beside_the_results_stay() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "--detach"));
    let out = lab.work().join("out");
    // Notes, unfinished files of another run, and files from a copied directory.
    for name in [
        "notes.txt",
        ".heaptap-part-AbCdEf",
        ".heaptap-k3v9xq2m-AbCdEf",
    ] {
        std::fs::write(out.join(name), "mine").unwrap();
    }
    lab.expect(0, "stop");
    lab.assert_truth("out");
    for name in [
        "notes.txt",
        ".heaptap-part-AbCdEf",
        ".heaptap-k3v9xq2m-AbCdEf",
    ] {
        assert_eq!(std::fs::read(out.join(name)).unwrap(), b"mine", "{name}");
    }
    assert!(!files(&out).contains(&".heaptap-session".to_owned()));
}

#[test]
fn a_fetched_trace_that_was_changed_is_set_aside_and_fetched_again() {
    let lab = Lab::new(FAST);
    let name = profile_name(&lab);
    assert_eq!(blocked_by_a_file(&lab, &name).code(), Some(10));
    let out = lab.work().join("out");
    std::fs::remove_file(out.join(&name)).unwrap();
    let mut tampered = std::fs::read(out.join("raw-trace")).unwrap();
    let middle = tampered.len() / 2;
    tampered[middle] ^= 0xff;
    std::fs::write(out.join("raw-trace"), &tampered).unwrap();
    lab.expect(0, "stop").assert_stderr("raw-trace.changed");
    lab.assert_truth("out");
    let sum = sha256(&out.join("raw-trace"));
    assert_eq!(lab.manifest("out")["trace"]["sha256"], sum);
    assert_eq!(
        std::fs::read(out.join("raw-trace.changed")).unwrap(),
        tampered
    );
    lab.assert_tidy("out");
}

#[test]
fn a_java_directory_of_somebody_else_stays() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("--with java");
    running.until_recorded();
    let java = lab.work().join("out/java");
    std::fs::create_dir(&java).unwrap();
    std::fs::write(java.join("raw-trace"), "mine").unwrap();
    running.interrupted(0);
    assert_eq!(files(&java), ["raw-trace"]);
    assert_eq!(std::fs::read(java.join("raw-trace")).unwrap(), b"mine");
    let missed = lab.manifest("out")["companion"]["missed"].to_string();
    assert_contains(&missed, "not empty");
}

#[test]
fn a_log_of_somebody_else_stays_where_nobody_observed() {
    let lab = Lab::new(FAST);
    lab.expect(0, &recording("out", "--with gc --detach"));
    let log = lab.work().join("out/logcat.txt");
    std::fs::write(&log, "mine\n").unwrap();
    lab.expect(0, "stop")
        .assert_stderr("logcat.txt is not from this session");
    assert_eq!(std::fs::read(&log).unwrap(), b"mine\n");
    assert_eq!(lab.manifest("out")["companion"]["log"], Value::Null);
    lab.assert_truth("out");
    lab.assert_tidy("out");

    lab.expect(0, &recording("more", "--with gc --detach"));
    let timeline = lab.work().join("more/memory.jsonl");
    std::fs::write(&timeline, "mine\nwithout an end").unwrap();
    lab.expect(0, "snapshot --label one");
    let stopped = lab.expect(0, "stop");
    assert_eq!(std::fs::read(&timeline).unwrap(), b"mine\nwithout an end");
    assert_eq!(
        lab.manifest("more")["companion"]["timeline"],
        Value::Null,
        "{stopped}"
    );
    lab.assert_truth("more");
}

#[test]
fn a_retry_gets_the_requested_directory() {
    let lab = Lab::new(&format!("{FAST},fault=overrun@500#1"));
    std::fs::create_dir(lab.work().join("out-incomplete")).unwrap();
    std::fs::write(lab.work().join("out-incomplete/notes.txt"), "mine").unwrap();
    lab.expect(0, &recording("out", "-d 3s --retry-overrun"));
    assert_eq!(files(&lab.work().join("out-incomplete")), ["notes.txt"]);
    let first = lab.manifest("out-incomplete-2");
    assert_eq!(first["outcome"]["exit_code"], 6, "{first:#}");
    lab.assert_truth("out");
}

#[test]
fn a_retry_without_a_directory_is_named_after_its_own_session() {
    let lab = Lab::new(&format!("{FAST},fault=overrun@500#1"));
    lab.expect(0, "record -n com.example.app -d 3s --retry-overrun");
    let names = files(&lab.work());
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        let id = lab.manifest(&name)["session"]["id"].to_string();
        assert!(name.ends_with(id.trim_matches('"')), "{name} {id}");
    }
}

#[test]
fn after_a_stop_request_there_is_no_retry() {
    let lab = Lab::new(&format!("{FAST},fault=overrun@500#1"));
    let mut running = lab.record("-d 600s -c 1s --retry-overrun");
    running.until_recorded();
    running.interrupted(6);
    assert_eq!(lab.manifest("out")["outcome"]["ended_by"], "interrupted");
    assert_eq!(files(&lab.work()), ["out"]);
}

#[test]
fn a_page_that_was_not_written_is_neither_listed_nor_offered() {
    let lab = Lab::new(FAST);
    let mut running = lab.record("");
    running.until_recorded();
    let page = lab.work().join("out/report.html");
    std::fs::write(&page, "mine").unwrap();
    let ended = running.interrupted(0);
    let wrote = |ended: &Ended| {
        let mut lines = ended.stderr.lines();
        let line = lines.find(|line| line.starts_with("wrote "));
        line.unwrap_or_else(|| panic!("{ended}")).to_owned()
    };
    assert!(!wrote(&ended).contains("report.html"), "{ended}");
    ended.refute_stderr("heaptap open");
    assert_eq!(ended.last_with("report")["report"], Value::Null);
    assert_eq!(std::fs::read(&page).unwrap(), b"mine");
    // Commands do not list files from before, either.
    for args in [
        &["symbolize", "out"][..],
        &["convert", "out", "-o", "profiles"],
    ] {
        let line = wrote(&lab.run(args));
        assert!(
            !line.contains("raw-trace") && !line.contains("report.html"),
            "{line}"
        );
        assert_contains(&line, "1 profile");
        assert_contains(&line, "manifest.json");
    }
    // Without a manifest only packets are written, and none if there are no new symbols.
    std::fs::create_dir(lab.work().join("plain")).unwrap();
    std::fs::copy(
        lab.work().join("out/raw-trace"),
        lab.work().join("plain/raw-trace"),
    )
    .unwrap();
    let none = lab.run("symbolize plain --no-discover");
    assert_eq!(files(&lab.work().join("plain")), ["raw-trace"], "{none}");
    none.assert_stderr("wrote nothing to plain");
    none.refute_stderr("wrote plain");
}
