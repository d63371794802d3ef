//! heaptap is killed at any moment of a recording: `collect` loses nothing, and leaves nothing
//! behind.

use std::time::Duration;

use crate::lab::Lab;

/// The seed decides when heaptap is killed; each moment is a run of its own.
const SEED: u64 = 20_261_120;
const KILLS: usize = 100;
/// A whole run takes about this long; moments are spread over it.
const RUN: Duration = Duration::from_millis(600);

#[test]
fn killed_at_a_hundred_moments_it_loses_nothing() {
    let mut random = fastrand::Rng::with_seed(SEED);
    let moments: Vec<Duration> = (0..KILLS).map(|_| RUN.mul_f64(random.f64())).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let far = std::sync::Mutex::new([0; 4]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(moment) = moments.get(at) else {
                        return;
                    };
                    let reached = kill_at(*moment);
                    far.lock().unwrap()[reached as usize] += 1;
                }
            });
        }
    });
    let far = far.into_inner().unwrap();
    println!("before, recording, fetched, done: {far:?}");
    // The moments must not all fall into one stage.
    assert!(far[Stage::Recording as usize] > 10, "{far:?}");
}

#[derive(Clone, Copy)]
enum Stage {
    Before,
    Recording,
    Fetched,
    Done,
}

/// Starts a recording, kills heaptap after `moment`, and collects.
fn kill_at(moment: Duration) -> Stage {
    let lab = Lab::new("android=14,build=userdebug,speed=20");
    let running = lab.start_recording(&["-d", "8s", "-c", "2s"]);
    // The one place where a test waits by the clock: when is what is tested.
    std::thread::sleep(moment);
    running.signal("KILL");
    let killed = running.end();
    let recorded = lab.phone.truth();
    let status = lab.expect(0, &["status", "--json"]).json();
    let sessions = status["sessions"].as_array().unwrap().clone();
    if sessions.is_empty() {
        let stage = if lab.work().join("out/manifest.json").exists() {
            lab.assert_truth("out");
            Stage::Done
        } else {
            assert!(recorded.is_empty(), "{moment:?}: {killed}");
            Stage::Before
        };
        lab.assert_tidy("out");
        return stage;
    }
    let fetched = lab.work().join("out/raw-trace").exists();
    let collected = lab.run(&["collect", "--json"]);
    if lab.phone.truth().is_empty() {
        // The journal was written, the phone was never told.
        assert_eq!(collected.code(), Some(5), "{moment:?}: {collected}");
        lab.assert_tidy("out");
        return Stage::Before;
    }
    let last = lab.phone.truth().pop().unwrap();
    if last.dumps.is_empty() {
        assert_eq!(collected.code(), Some(7), "{moment:?}: {collected}");
    } else {
        assert_eq!(
            collected.code(),
            Some(0),
            "{moment:?}: {collected}\nkilled: {killed}"
        );
        lab.assert_truth("out");
    }
    lab.assert_tidy("out");
    if fetched {
        Stage::Fetched
    } else {
        Stage::Recording
    }
}
