//! Checks converted and stripped dumps with VisualVM's reader: it must open them and count the same
//! objects by class as `heaptap`.

use super::dump::{ANDROID, JAVA_SE, Shape, dump};
use super::given;
use crate::judge;
use android_hprof::convert::{ConvertOptions, convert};
use android_hprof::info::info;
use android_hprof::strip::{StripOptions, strip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Numbers of classes, instances and roots, and a checksum over references, for each file.
pub(super) fn judged(jar: &Path, files: &[PathBuf]) -> Vec<String> {
    let output = Command::new("java")
        .arg("-cp")
        .arg(jar)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/hprof_tools/ReadHeap.java"))
        .args(files)
        .output()
        .expect("java runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs VisualVM's library and a JDK: tests/run.sh runs it"]
fn judged_by_visualvm_what_is_written_is_read() {
    let jar = judge::visualvm();
    let directory = tempfile::tempdir().expect("a folder");
    let mut dumps: Vec<(String, Vec<u8>)> = (0..6)
        .map(|seed| {
            let shape = match seed % 2 {
                0 => ANDROID,
                _ => Shape {
                    id: 4 + 4 * (seed as usize / 2 % 2),
                    ..JAVA_SE
                },
            };
            // It treats a segment of length 0 as damage, and constants as statics.
            let shape = Shape {
                odd: false,
                ..shape
            };
            (format!("seed {seed}"), dump(seed, shape).bytes)
        })
        .collect();
    let whole = |(_, bytes): &(String, Vec<u8>)| info(bytes).is_ok_and(|info| info.is_whole());
    dumps.extend(given().into_iter().filter(whole));
    let mut files = Vec::new();
    let mut write = |bytes: &[u8]| {
        let path = directory.path().join(format!("{}.hprof", files.len()));
        std::fs::write(&path, bytes).expect("room");
        files.push(path);
    };
    let mut expected = Vec::new();
    for (_, bytes) in &dumps {
        let mut java_se = Vec::new();
        if bytes.starts_with(b"JAVA PROFILE 1.0.3") {
            convert(bytes, ConvertOptions::default(), &mut java_se).expect("Android's");
        } else {
            java_se.clone_from(bytes);
        }
        let mut shared = Vec::new();
        strip(&java_se, StripOptions::default(), &mut shared).expect("a dump");
        let info = info(&java_se).expect("a dump");
        expected.push(info.objects());
        write(&java_se);
        write(&shared);
    }
    let lines = judged(&jar, &files);
    assert_eq!(lines.len(), files.len());
    for (at, (name, _)) in dumps.iter().enumerate() {
        let (plain, shared) = (&lines[2 * at], &lines[2 * at + 1]);
        assert_eq!(plain, shared, "{name}: stripped reads as before");
        let instances = format!(" instances {}", expected[at]);
        assert!(
            plain.contains(&instances),
            "{name}: {plain}, not{instances}"
        );
    }
}
