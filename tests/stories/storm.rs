//! Nights on many phones while everything fails: faults are drawn from a seed at each step of each
//! phone. Whatever strikes, what a phone recorded is fetched and whole, each failure has its cause,
//! no verdict is wrong, and nothing remains on a phone.
//!
//! `HEAPTAP_STORM=PHONES,RUNS,SEED cargo test --release --test stories storm:: -- --ignored
//! --nocapture` runs a night of any size and prints its figures.
#![expect(clippy::print_stdout, reason = "figures of a night")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use virtual_phone::RecordingTruth;

use crate::lab::{APP, Lab, Running, files};
use crate::program::Ended;

/// A night of one scenario.
struct Night {
    phones: usize,
    runs: usize,
    seed: u64,
    /// Percent of the usual chances of faults.
    percent: u32,
    limit: Duration,
}

/// Highest figures of a process.
#[derive(Debug, Default)]
struct Peak {
    memory_kb: u64,
    files: usize,
}

impl Peak {
    /// Reads the figures of a process; they stay where the system has no /proc.
    fn look(&mut self, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let memory = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        self.memory_kb = self.memory_kb.max(memory.unwrap_or(0));
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.files = self.files.max(files);
    }
}

impl Night {
    /// Runs the night and checks it; prints what it took.
    fn pass(&self) {
        let Night {
            phones,
            seed,
            percent,
            ..
        } = self;
        let lab = Lab::new(&format!("devices={phones},speed=8,faults={seed}@{percent}"));
        let text = format!(
            "version: 1\nname: storm\ntarget: {{name: {APP}}}\ndevices: {{alike: {{sdk: \">=29\"}}}}\nrepeats: {}\nsteps:\n- start\n- \
             rotate: 1\n- snapshot: up\nbudgets:\n- {{name: tiny, native: {{}}, at: up, limit: \
             1KiB}}\n- {{name: huge, native: {{}}, at: up, limit: 1GiB}}\n",
            self.runs
        );
        fs::write(lab.work().join("storm.yaml"), text).expect("a scenario");
        let began = Instant::now();
        let running = lab.start("run storm.yaml --all-devices -o out --json");
        let (ended, run, server) = self.watch(running);
        let took = began.elapsed().as_secs_f64();
        lab.phone.end_draws();
        let report = self.check(&lab, &ended);
        println!(
            "{phones} phones, seed {seed}: {took:.0} s; run {run:?}, phones {server:?}; {report}"
        );
    }

    /// Waits for the end. Returns the figures of heaptap and of this process, which has the phones.
    fn watch(&self, running: Running) -> (Ended, Peak, Peak) {
        let pid = running.id();
        let (mut run, mut server) = (Peak::default(), Peak::default());
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| running.end_within(self.limit));
            while !ending.is_finished() {
                run.look(pid);
                server.look(std::process::id());
                std::thread::sleep(Duration::from_millis(50));
            }
            let ended = ending.join().expect("heaptap ends in time");
            (ended, run, server)
        })
    }

    /// Checks everything, and then fails with all that is wrong. Returns counts for people.
    fn check(&self, lab: &Lab, ended: &Ended) -> String {
        let document = ended.json();
        let results = document["results"].as_array().expect("results");
        let mut found = Found {
            recordings: recordings(&lab.work().join("out")),
            ..Found::default()
        };
        for (phone, serial) in lab.phone.serials().iter().enumerate() {
            let is_own = |result: &&Value| {
                let device = &result["device"];
                device["serial"] == serial.as_str() && device["instead_of"].is_null()
            };
            let replaced = own_result(lab, serial);
            let result = results.iter().find(is_own).or(replaced.as_ref());
            let before = found.wrong.len();
            match result {
                Some(result) => self.check_result(lab, result, phone, &mut found),
                None => found.wrong.push("no result".to_owned()),
            }
            let is_replaced = |result: &Value| result["device"]["instead_of"] == serial.as_str();
            if results.iter().any(is_replaced) {
                found.count("replaced", 1);
            }
            let drawn = lab.phone.drawn_faults(phone);
            found.count("faults", drawn.len());
            let drawn: Vec<String> = drawn.iter().map(ToString::to_string).collect();
            for wrong in &mut found.wrong[before..] {
                *wrong = format!(
                    "{serial}: {wrong}\n  drawn: {drawn:?}\n  {}",
                    runs_of(result)
                );
            }
        }
        let status = lab.status();
        if status["sessions"] != serde_json::json!([]) {
            found.wrong.push(format!("sessions are left: {status:#}"));
        }
        let notes = files(&lab.dir.path().join("state/provoke"));
        if notes.iter().any(|file| file.ends_with(".json")) {
            found.wrong.push(format!("settings are left: {notes:?}"));
        }
        let wrong = found.wrong.join("\n");
        let counts = format!("exit {:?}, {:?}", ended.code(), found.counts);
        assert!(
            wrong.is_empty(),
            "seed {}, {counts}:\n{wrong}\n{}",
            self.seed,
            ended.stderr
        );
        counts
    }

    fn check_result(&self, lab: &Lab, result: &Value, phone: usize, found: &mut Found) {
        let serial = lab.phone.serials().swap_remove(phone);
        let mut done = 0;
        for run in result["runs"].as_array().expect("runs") {
            let state = run["state"].as_str().expect("a state");
            let error = &run["error"];
            if state == "done" {
                done += 1;
                found.count(state, 1);
                let output = run["output"].as_str().unwrap_or("none");
                let directory = format!("out/storm-{serial}/{output}");
                let truth = truth_of(lab, phone, &directory);
                if !truth.finished || !error.is_null() {
                    found.wrong.push(format!("a broken run counts: {run}"));
                }
                lab.assert_has(&directory, &truth);
            } else {
                let kind = error["kind"].as_str().unwrap_or_default();
                found.count(&format!("{state} {kind}"), 1);
                println!("{serial} {run}");
                let message = error["message"].as_str().unwrap_or_default();
                if kind.is_empty() || message.is_empty() || error["code"].as_u64() < Some(1) {
                    found.wrong.push(format!("no cause: {run}"));
                }
            }
        }
        self.check_verdicts(result, done, found);
        for truth in lab
            .phone
            .truth_of(phone)
            .iter()
            .filter(|truth| truth.finished)
        {
            match found
                .recordings
                .remove(&(serial.clone(), truth.path.clone()))
            {
                true => found.count("fetched", 1),
                false => found.wrong.push(format!("{} is not fetched", truth.path)),
            }
        }
        for place in ["/data/misc/perfetto-traces", "/data/local/tmp"] {
            let left = lab.phone.list_of(phone, place);
            if !left.is_empty() {
                found.wrong.push(format!("left in {place}: {left:?}"));
            }
        }
    }

    fn check_verdicts(&self, result: &Value, done: usize, found: &mut Found) {
        let verdict = |name: &str| {
            let budgets = result["budgets"].as_array().expect("budgets");
            let budget = budgets.iter().find(|budget| budget["name"] == name);
            let verdict = &budget.expect("its row")["judgement"]["verdict"];
            verdict.as_str().unwrap_or("none").to_owned()
        };
        let found_ones = (verdict("tiny"), verdict("huge"), &result["exit_code"]);
        // A fault that delays a step makes the figures of an app that grows differ.
        let is_right = match (found_ones.0.as_str(), found_ones.1.as_str()) {
            ("over", "within" | "undecided") => done >= 3 && found_ones.2 == 9,
            ("undecided" | "none", "within" | "undecided" | "none") => found_ones.2 != 0,
            _ => false,
        };
        found.count(&format!("tiny {}, huge {}", found_ones.0, found_ones.1), 1);
        if !is_right {
            found.wrong.push(format!("{done} runs give {found_ones:?}"));
        }
    }
}

/// What a check found.
#[derive(Default)]
struct Found {
    /// Recordings by the serial of their device and the path of their trace on it.
    recordings: BTreeSet<(String, String)>,
    counts: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Found {
    fn count(&mut self, what: &str, more: usize) {
        *self.counts.entry(what.to_owned()).or_default() += more;
    }
}

/// Returns the runs of a result in a line each.
fn runs_of(result: Option<&Value>) -> String {
    let runs = result.and_then(|result| result["runs"].as_array());
    let lines = runs.into_iter().flatten().map(ToString::to_string);
    lines.collect::<Vec<_>>().join("\n  ")
}

/// Returns the result of a device that another one stands in for, from its own directory.
fn own_result(lab: &Lab, serial: &str) -> Option<Value> {
    let path = lab.work().join(format!("out/storm-{serial}/result.json"));
    let text = fs::read_to_string(path).ok()?;
    Some(text.parse().expect("a result is JSON"))
}

/// What the phone recorded for the trace in a directory.
fn truth_of(lab: &Lab, phone: usize, directory: &str) -> RecordingTruth {
    let manifest = lab.manifest(directory);
    let path = manifest["session"]["remote_path"].as_str().expect("a path");
    let truths = lab.phone.truth_of(phone);
    let truth = truths.into_iter().rfind(|truth| truth.path == path);
    truth.expect("the phone recorded it")
}

/// The recordings below a directory; each occurs once.
fn recordings(directory: &Path) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for device in files(directory) {
        for run in files(&directory.join(&device)) {
            let manifest = directory.join(&device).join(run).join("manifest.json");
            let Ok(text) = fs::read(manifest) else {
                continue;
            };
            let manifest: Value = serde_json::from_slice(&text).expect("a manifest is JSON");
            let path = manifest["session"]["remote_path"].as_str().expect("a path");
            let serial = manifest["device"]["serial"].as_str().expect("a serial");
            let is_new = found.insert((serial.to_owned(), path.to_owned()));
            assert!(is_new, "{path} is there twice");
        }
    }
    found
}

#[test]
fn a_night_of_faults_loses_nothing_and_reports_each_failure() {
    for seed in [2, 3] {
        Night {
            phones: 6,
            runs: 3,
            seed,
            percent: 100,
            limit: Duration::from_secs(300),
        }
        .pass();
    }
}

#[test]
#[ignore = "takes long: set HEAPTAP_STORM=PHONES,RUNS,SEED[,PERCENT]"]
fn a_night_of_any_size() {
    let size = std::env::var("HEAPTAP_STORM").unwrap_or_else(|_| "200,5,1".to_owned());
    let mut numbers = size.split(',').map(|n| n.parse::<u64>().expect("a number"));
    let mut next = || numbers.next();
    Night {
        phones: next().expect("phones") as usize,
        runs: next().expect("runs") as usize,
        seed: next().expect("a seed"),
        percent: next().map_or(100, |percent| percent as u32),
        limit: Duration::from_secs(7_200),
    }
    .pass();
}
