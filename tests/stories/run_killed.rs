//! `run` is killed at any time: the next `run --resume` goes on, nothing is lost or done twice, and
//! nothing remains on the phone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::lab::{APP, Lab, files};
use crate::program::{Arguments, Ended};

/// The seed determines when heaptap is killed; each time is a separate night.
const SEED: u64 = 20_261_123;
/// Number of kills, and the variable for another number.
const KILLS: usize = 8;
const KILLS_VARIABLE: &str = "HEAPTAP_KILLS";
/// Maximum number of seconds after an event, by the clock of the phone, which runs four times as
/// fast.
const JITTER: f64 = 1.0;
/// Nights at the same time: the phones need processors, too.
const THREADS: usize = 2;
/// Number of runs that the scenario needs.
const RUNS: usize = 3;
const ROTATIONS: usize = 2;

fn lab() -> Lab {
    let lab = Lab::new("android=14,build=userdebug,speed=4,java=300");
    let text = format!(
        "version: 1\nname: story\ntarget: {{name: {APP}}}\nmeasure: [native, java, meminfo]\n\
         repeats: {RUNS}\nsetup:\n- shell: [sh, -c, 'echo x > \"$0\"', /data/local/tmp/story]\nsteps:\n- start\n\
         - snapshot: before\n- rotate: {ROTATIONS}\n- snapshot: after\nbudgets:\n\
         - {{name: all, native: {{}}, limit: 1GiB}}\n\
         - {{name: feeds, java: {{class: \"*.FeedActivity\", measure: instances}}, at: after, limit: 9}}\n\
         - {{name: total, meminfo: {{row: TOTAL}}, at: after, limit: 9GiB}}\n"
    );
    fs::write(lab.work().join("s.yaml"), text).expect("a scenario");
    lab
}

const RUN: &str = "run s.yaml -o out --json-lines";

/// Time at which a process is killed.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// After this many of its events.
    event: usize,
    /// In seconds of the phone.
    after: f64,
}

impl Moment {
    fn random(random: &mut fastrand::Rng, events: usize) -> Moment {
        Moment {
            event: random.usize(..=events),
            after: JITTER * random.f64(),
        }
    }

    /// Kills `run` at this time, or lets it end earlier. Returns the last event before.
    fn kill(self, lab: &Lab, args: impl Arguments) -> (String, Ended) {
        let mut running = lab.start(args);
        let mut last = "nothing".to_owned();
        for _ in 0..self.event {
            match running.next_line() {
                Some(line) => last = name(&line),
                None => return ("the end".to_owned(), running.end()),
            }
        }
        lab.wait_on_phone(self.after);
        running.signal("KILL");
        (last, running.end())
    }
}

/// The event of a line.
fn name(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match word("event").as_str() {
        "step" => word("what"),
        event => event.to_owned(),
    }
}

#[test]
fn killed_at_any_moment_a_run_is_resumed() {
    let kills = std::env::var(KILLS_VARIABLE).map_or(KILLS, |kills| kills.parse().unwrap());
    let calm = lab();
    let ended = calm.expect(0, RUN);
    let events = ended.stdout.lines().count();
    let shape = Shape::from_lab(&calm);
    assert_eq!(shape.states, vec!["done"; RUNS], "{ended}");
    let mut random = fastrand::Rng::with_seed(SEED);
    let moments: Vec<(Moment, Option<Moment>)> = (0..kills)
        .map(|_| {
            let first = Moment::random(&mut random, events);
            // Sometimes the resuming process is killed as well.
            let second = (random.u8(..4) == 0).then(|| Moment::random(&mut random, events));
            (first, second)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let killed = Mutex::new(BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((first, second)) = moments.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let after = kill_at(*first, *second, &shape);
                    *killed.lock().unwrap().entry(after).or_default() += 1;
                }
            });
        }
    });
    println!("killed after {:#?}", killed.into_inner().unwrap());
}

/// Kills a night, and resumes it.
fn kill_at(first: Moment, second: Option<Moment>, calm: &Shape) -> String {
    let lab = lab();
    let (after, killed) = first.kill(&lab, RUN);
    let mut before = done_before(&lab);
    let mut what = format!("{first:?} {second:?} {after}\nkilled: {killed}");
    let resume = (RUN, "--resume");
    if !lab.work().join("out").exists() {
        // It had not begun.
        assert_eq!(lab.phone.truth().len(), 0, "{what}");
    }
    if let Some(second) = second {
        let (after, killed) = second.kill(&lab, &resume);
        what = format!("{what}\nthen {after}: {killed}");
        let since = done_before(&lab);
        assert!(since.starts_with(&before), "{what}");
        before = since;
    }
    let resumed = lab.run(&resume);
    what = format!("{what}\nresumed: {resumed}");
    assert_eq!(resumed.code(), Some(0), "{what}");
    let shape = Shape::from_lab(&lab);
    let kills = 1 + usize::from(second.is_some());
    assert!(done_before(&lab).starts_with(&before), "{what}");
    let count = |state: &str| shape.states.iter().filter(|one| *one == state).count();
    assert_eq!(count("done"), RUNS, "{what}");
    assert_eq!(count("done") + count("void"), shape.states.len(), "{what}");
    assert!(count("void") <= kills, "{what}");
    assert_eq!(shape.verdicts, calm.verdicts, "{what}");
    assert_eq!(shape.run_files, calm.run_files, "{what}");
    assert_eq!(shape.files, calm.files, "{what}");
    assert_nothing_is_lost(&lab, &what);
    assert_nothing_is_left(&lab, &what);
    after
}

/// Number, state and directory of the runs so far.
fn done_before(lab: &Lab) -> Vec<[Value; 3]> {
    let Ok(text) = fs::read(lab.work().join("out/progress.json")) else {
        return Vec::new();
    };
    let progress: Value = serde_json::from_slice(&text).expect("progress is written as a whole");
    let runs = progress["runs"].as_array().expect("runs").iter();
    let keys = ["number", "state", "output"];
    runs.map(|run| keys.map(|key| run[key].clone())).collect()
}

/// What does not depend on the moment of a kill.
#[derive(Debug)]
struct Shape {
    states: Vec<String>,
    verdicts: Vec<String>,
    /// Names of the files of all runs that count, with directories.
    run_files: BTreeSet<String>,
    /// Names of the other files, without those of runs.
    files: BTreeSet<String>,
}

impl Shape {
    fn from_lab(lab: &Lab) -> Shape {
        let out = lab.work().join("out");
        let text = fs::read(out.join("result.json")).expect("a result");
        let result: Value = serde_json::from_slice(&text).expect("JSON");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let runs = result["runs"].as_array().expect("runs");
        let budgets = result["budgets"].as_array().expect("budgets");
        let done = runs.iter().filter(|run| run["state"] == "done");
        let mut sets: Vec<BTreeSet<String>> = done
            .map(|run| tree(&out.join(word(&run["output"]))))
            .collect();
        let run_files = sets.pop().unwrap_or_default();
        assert!(
            sets.iter().all(|set| *set == run_files),
            "{sets:#?} {run_files:#?}"
        );
        let verdict = |budget: &Value| {
            let figures = budget["figures"].as_array().map_or(0, Vec::len);
            format!("{} {figures}", word(&budget["judgement"]["verdict"]))
        };
        Shape {
            states: runs.iter().map(|run| word(&run["state"])).collect(),
            verdicts: budgets.iter().map(verdict).collect(),
            run_files,
            files: (files(&out).into_iter())
                .filter(|name| !name.contains("run-"))
                .collect(),
        }
    }
}

/// Paths of all files below `directory`, without numbers of processes.
fn tree(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut directories = vec![(directory.to_owned(), String::new())];
    while let Some((directory, prefix)) = directories.pop() {
        for name in files(&directory) {
            let path = format!("{prefix}/{name}");
            match directory.join(&name).is_dir() {
                true => directories.push((directory.join(&name), path)),
                false => {
                    let digits = |c: char| c.is_ascii_digit();
                    found.insert(path.split(digits).collect::<Vec<_>>().join(""));
                }
            }
        }
    }
    found
}

/// Each recording that the phone has finished is in the directory of one run, whole.
fn assert_nothing_is_lost(lab: &Lab, what: &str) {
    let out = lab.work().join("out");
    let mut recorded = BTreeMap::new();
    for name in files(&out) {
        if name.starts_with("run-") && out.join(&name).is_dir() {
            let directory = format!("out/{name}");
            let manifest = lab.manifest(&directory);
            let path = manifest["session"]["remote_path"].as_str().expect("a path");
            assert_eq!(recorded.insert(path.to_owned(), directory), None, "{what}");
        }
    }
    let truths = lab.phone.truth();
    for truth in truths.iter().filter(|truth| !truth.dumps.is_empty()) {
        let directory = recorded.get(&truth.path);
        let directory = directory.unwrap_or_else(|| panic!("{} is lost: {what}", truth.path));
        lab.assert_truth(directory);
    }
}

fn assert_nothing_is_left(lab: &Lab, what: &str) {
    assert_eq!(lab.traces(), Vec::<String>::new(), "{what}");
    assert_eq!(lab.phone.list("/data/local/tmp"), ["story"], "{what}");
    let state = lab.dir.path().join("state");
    assert_eq!(files(&state.join("sessions")), [""; 0], "{what}");
    let notes = files(&state.join("provoke"));
    assert!(!notes.iter().any(|name| name.ends_with(".json")), "{what}");
    let system = lab.shell("settings list system");
    assert!(
        system.contains("accelerometer_rotation=1\n"),
        "{system} {what}"
    );
    assert!(!system.contains("user_rotation"), "{system} {what}");
    let global = lab.shell("settings list global");
    assert!(
        global.contains("stay_on_while_plugged_in=0\n"),
        "{global} {what}"
    );
    let unfinished = tree(&lab.work().join("out"));
    let hidden = unfinished.iter().find(|path| path.contains("/."));
    assert_eq!(hidden, None, "{what}");
}
