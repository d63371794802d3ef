//! Compares conversion with Android's `hprof-conv`: byte for byte if that succeeds, and never
//! "whole" if it fails.

use super::dump::{ANDROID, Shape, dump};
use super::given;
use crate::judge;
use android_hprof::RewriteError;
use android_hprof::convert::{ConvertOptions, Converted, convert};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs `hprof-conv` on a dump; `None` if it fails or hangs.
pub(super) fn judged(judge: &PathBuf, bytes: &[u8], app_only: bool) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a folder");
    let (from, to) = (directory.path().join("in"), directory.path().join("out"));
    std::fs::write(&from, bytes).expect("room");
    // Some damage makes it loop forever.
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "20"]).arg(judge);
    if app_only {
        command.arg("-z");
    }
    let status = command
        .args([&from, &to])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("timeout of coreutils");
    status
        .success()
        .then(|| std::fs::read(to).expect("a result"))
}

fn ours(bytes: &[u8], app_only: bool, compat: bool) -> Result<(Converted, Vec<u8>), RewriteError> {
    let mut out = Vec::new();
    let options = ConvertOptions { app_only, compat };
    let done = convert(bytes, options, &mut out)?;
    assert_eq!(done.file.bytes, out.len() as u64);
    Ok((done, out))
}

/// Dumps of many shapes, and those of HEAPTAP_HPROF.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = (0..40)
        .map(|seed| {
            let shape = Shape {
                objects: 30 + 40 * seed as usize,
                nodata: seed % 3 != 0,
                ..ANDROID
            };
            (format!("seed {seed}"), dump(seed, shape).bytes)
        })
        .collect();
    let android = |(_, bytes): &(String, Vec<u8>)| bytes.starts_with(b"JAVA PROFILE 1.0.3");
    all.extend(given().into_iter().filter(android));
    all
}

#[test]
#[ignore = "needs hprof-conv: tests/run.sh runs it"]
fn judged_by_hprof_conv_bytes_are_the_same() {
    let judge = judge::hprof_conv();
    for (name, bytes) in dumps() {
        for app_only in [false, true] {
            let theirs = judged(&judge, &bytes, app_only).expect("hprof-conv converts it");
            let (done, bug_for_bug) = ours(&bytes, app_only, true).expect("Android's dialect");
            assert!(done.file.is_whole(), "{name}");
            assert!(bug_for_bug == theirs, "{name}, app only: {app_only}");
            // Without its bug, the only differences are arrays without data.
            let (done, right) = ours(&bytes, app_only, false).expect("Android's dialect");
            assert_eq!(right == theirs, done.without_data == 0, "{name}");
            assert_eq!(right.len(), theirs.len(), "{name}");
        }
    }
}

#[test]
#[ignore = "needs hprof-conv: tests/run.sh runs it"]
fn judged_by_hprof_conv_damage_is_told_wherever_it_fails() {
    let judge = judge::hprof_conv();
    let mut rng = fastrand::Rng::with_seed(11);
    let shape = Shape {
        objects: 60,
        ..ANDROID
    };
    let whole = dump(5, shape).bytes;
    for case in 0..250 {
        let mut bytes = whole.clone();
        match case % 2 {
            0 => bytes.truncate(rng.usize(31..whole.len())),
            _ => {
                let at = rng.usize(31..whole.len());
                bytes[at] ^= 1 << rng.u8(..8);
            }
        }
        let app_only = case % 3 == 0;
        let theirs = judged(&judge, &bytes, app_only);
        let (done, out) = ours(&bytes, app_only, true).expect("the header is whole");
        match theirs {
            // It accepts a file that ends between two records.
            Some(theirs) if done.file.damage.is_empty() => {
                assert!(theirs == out, "case {case}");
            }
            // It does not check whether an object ends within its record.
            Some(_) => {}
            None => assert!(!done.file.is_whole(), "case {case}"),
        }
        // The recovered part is complete, except for the missing end.
        let (_, mut again) = ours(&bytes, app_only, false).expect("a header");
        again[17] = b'3';
        let (second, _) = ours(&again, false, false).expect("a header");
        assert!(second.file.damage.is_empty(), "case {case}: {second:?}");
    }
}

#[test]
fn what_a_heap_leaves_out_is_counted() {
    for seed in 0..10 {
        let made = dump(seed, ANDROID);
        let (done, _) = ours(&made.bytes, true, false).expect("Android's dialect");
        assert_eq!(done.left_out, made.foreign, "seed {seed}");
        assert_eq!(
            done.without_data,
            made.counts.get(&0xc3).copied().unwrap_or(0)
        );
    }
}

#[test]
fn ids_of_8_bytes_are_converted_too() {
    let shape = Shape { id: 8, ..ANDROID };
    let made = dump(1, shape);
    let (done, out) = ours(&made.bytes, false, false).expect("Android's dialect");
    assert!(done.file.is_whole());
    let info = android_hprof::info::info(&out).expect("a header");
    assert!(info.is_whole() && !info.android && info.id_bytes == 8);
    let unknown: u64 = [0xff, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x90]
        .iter()
        .filter_map(|tag| made.counts.get(tag))
        .sum();
    assert_eq!(info.sub(0xff).count, unknown);
    assert_eq!(info.sub(0xfe).count, 0);
    let arrays = [0x23, 0xc3].iter().filter_map(|tag| made.counts.get(tag));
    assert_eq!(info.sub(0x23).count, arrays.sum::<u64>());
}
