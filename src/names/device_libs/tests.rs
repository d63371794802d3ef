//! Tests of the time limit, under paused time: a slow device, and a hanging one.

use super::*;
use heaptap_adb::scripted::{Scripted, Step, features, record, say, service};

const ID: [u8; 20] = [7; 20];

fn request(path: &str, id: u8) -> LibraryRequest {
    LibraryRequest {
        path: path.to_owned(),
        build_id: BuildId(vec![id; 20]),
        start_offset: 0,
        nameless: 1,
        without_lines: 0,
    }
}

/// A stat of a regular file of `size` bytes.
fn stat(size: u64) -> Vec<Step> {
    let mut answer = b"STA2".to_vec();
    answer.resize(72, 0);
    answer[24..28].copy_from_slice(&0o100_644u32.to_le_bytes());
    answer[40..48].copy_from_slice(&size.to_le_bytes());
    let mut steps = service("sync:");
    steps.extend([Step::Hear(8 + PATH.len(), None), say(answer)]);
    steps
}

/// The beginning of a pull, up to `size` bytes, and then silence.
fn pull(size: usize) -> Vec<Step> {
    let mut steps = service("sync:");
    steps.push(Step::Hear(8 + PATH.len(), None));
    for block in vec![0; size].chunks(64 << 10) {
        steps.push(say(record(b"DATA", block.len() as u32, block)));
    }
    steps.push(Step::Hang);
    steps
}

const PATH: &str = "/system/lib64/liba.so";

fn source(scripted: &Scripted, how: PullLibs) -> DeviceLibs {
    DeviceLibs::new(scripted.phone(), how)
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_up_and_not_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path()).unwrap();
    let scripted = Scripted::new([features("shell_v2,stat_v2"), stat(1 << 20), pull(300 << 10)]);
    let began = Instant::now();
    let requests = vec![request(PATH, ID[0]), request("/system/lib64/libb.so", 8)];
    let fetched = source(&scripted, PullLibs::Cheap)
        .fetch_all(&cache, requests, &|_| {})
        .await;
    assert_eq!(began.elapsed(), MAX_TIME);
    for fetched in &fetched {
        let Outcome::Not(RejectReason::OverBudget(text)) = &fetched.outcome else {
            panic!("{fetched:?}");
        };
        assert!(text.contains("longer than 5 s"), "{text}");
    }
    assert_eq!(scripted.complaints(), Vec::<String>::new());

    // The first one is noted as too slow; the second one was not the cause.
    let silent = Scripted::new([]);
    let again = source(&silent, PullLibs::Cheap);
    let round = Round::new(&again, &cache);
    let known = round.known(&request(PATH, ID[0]));
    assert!(
        matches!(known, Some(Outcome::Not(RejectReason::OverBudget(_)))),
        "{known:?}"
    );
    assert_eq!(round.known(&request("/system/lib64/libb.so", 8)), None);
    let asked = source(&silent, PullLibs::Always);
    assert_eq!(
        Round::new(&asked, &cache).known(&request(PATH, ID[0])),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_falls_silent_is_left_also_by_who_has_all_the_time() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path()).unwrap();
    let scripted = Scripted::new([features("shell_v2,stat_v2"), stat(1 << 20), pull(0)]);
    let began = Instant::now();
    let requests = vec![request(PATH, ID[0]), request("/system/lib64/libb.so", 8)];
    let fetched = source(&scripted, PullLibs::Always)
        .fetch_all(&cache, requests, &|_| {})
        .await;
    assert_eq!(began.elapsed(), STALL);
    let gone = |f: &Fetched| matches!(f.outcome, Outcome::Not(RejectReason::Device(_)));
    assert!(
        fetched.len() == 2 && fetched.iter().all(gone),
        "{fetched:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_would_take_too_long_at_the_speed_so_far_is_not_begun() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::in_directory(directory.path()).unwrap();
    let scripted = Scripted::new([features("shell_v2,stat_v2"), stat(60 << 20)]);
    let source = source(&scripted, PullLibs::Cheap);
    let mut round = Round::new(&source, &cache);
    round.speed = Some(f64::from(1 << 20));
    let outcome = round.ask(&request(PATH, ID[0])).await;
    let Outcome::Not(RejectReason::OverBudget(text)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(text.contains("60.0 MiB at 1.0 MiB/s"), "{text}");
    assert_eq!(scripted.complaints(), Vec::<String>::new());
}
