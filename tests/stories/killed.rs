//! heaptap is killed at any time of a recording: `stop` loses nothing, and nothing remains.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::{Lab, Running};
use crate::program::Ended;

/// The seed determines when heaptap is killed; each time is a separate run.
const SEED: u64 = 20_261_120;
const KILLS: usize = 100;
/// Maximum number of seconds after an event, by the clock of the phone, which runs at [`SPEED`].
const JITTER: f64 = 1.2;
const SPEED: u32 = 20;
/// Events of a recording. The process is killed near one of them, so that each stage is covered on
/// any host.
const EVENTS: [&str; 8] = [
    "nothing",
    "checked",
    "started",
    "progress",
    "progress",
    "ended",
    "pulled",
    "converting",
];

/// Time at which a process is killed.
#[derive(Debug, Clone, Copy)]
struct Moment {
    event: &'static str,
    /// In seconds of the phone.
    after: f64,
}

impl Moment {
    fn random(random: &mut fastrand::Rng) -> Moment {
        Moment {
            event: EVENTS[random.usize(..EVENTS.len())],
            after: JITTER * random.f64(),
        }
    }

    /// Kills `running` at this time, or lets it end earlier.
    fn kill(self, lab: &Lab, mut running: Running) -> Ended {
        if self.event == "nothing" || running.comes(self.event) {
            lab.wait_on_phone(self.after);
            running.signal("KILL");
        }
        running.end()
    }
}

#[test]
fn killed_at_a_hundred_moments_it_loses_nothing() {
    let mut random = fastrand::Rng::with_seed(SEED);
    let moments: Vec<(Moment, Option<Moment>)> = (0..KILLS)
        .map(|_| {
            let first = Moment::random(&mut random);
            // Sometimes the collecting process is killed as well.
            let second = (random.u8(..4) == 0).then(|| Moment::random(&mut random));
            (first, second)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let stages = Mutex::new(BTreeMap::<Stage, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((first, second)) = moments.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let stage = kill_at(*first, *second);
                    *stages.lock().unwrap().entry(stage).or_default() += 1;
                }
            });
        }
    });
    let stages = stages.into_inner().unwrap();
    println!("{stages:?}");
    for stage in [Stage::Untold, Stage::OnThePhone, Stage::Fetched] {
        assert!(
            stages.contains_key(&stage),
            "never killed there: {stages:?}"
        );
    }
}

/// Progress of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The phone had not received anything.
    Untold,
    /// The trace was only on the phone.
    OnThePhone,
    /// The trace was on the host, the rest was not.
    Fetched,
    /// Everything was done.
    Done,
}

/// Starts a recording, kills heaptap, and collects.
fn kill_at(first: Moment, second: Option<Moment>) -> Stage {
    let lab = Lab::new(&format!("android=14,build=userdebug,speed={SPEED}"));
    let killed = first.kill(&lab, lab.start_recording("-d 8s -c 2s"));
    if !lab.is_left() {
        lab.assert_tidy("out");
        if lab.work().join("out/manifest.json").exists() {
            lab.assert_truth("out");
            return Stage::Done;
        }
        assert!(lab.phone.truth().is_empty(), "{first:?}: {killed}");
        return Stage::Untold;
    }
    let fetched = lab.work().join("out/raw-trace").exists();
    if let Some(second) = second {
        second.kill(&lab, lab.start("stop --json-lines"));
    }
    if lab.is_left() {
        let collected = lab.run("stop --json");
        let expected = match lab.phone.truth().last() {
            // The journal was written, but the phone had not received anything.
            None => 5,
            Some(truth) if truth.dumps.is_empty() => 7,
            Some(_) => 0,
        };
        assert_eq!(
            collected.code(),
            Some(expected),
            "{first:?} {second:?}: {collected}\nkilled: {killed}"
        );
    }
    lab.assert_tidy("out");
    match lab.phone.truth().last() {
        None => return Stage::Untold,
        Some(truth) if truth.dumps.is_empty() => {}
        Some(_) => lab.assert_truth("out"),
    }
    if fetched {
        Stage::Fetched
    } else {
        Stage::OnThePhone
    }
}
