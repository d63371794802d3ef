//! Results in directories.

use super::{before, heaptap};

#[test]
fn commands_that_convert_prints_for_an_hprof_name_no_file_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = heaptap(&["convert", &before(), "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told =
        String::from_utf8(output.stderr).unwrap() + std::str::from_utf8(&output.stdout).unwrap();
    assert!(told.contains("go tool pprof"), "{told}");
    assert!(!told.contains("heaptap leaks"), "{told}");
}
