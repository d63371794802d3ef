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

#[test]
fn a_folder_that_a_session_has_is_not_fetched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".heaptap-session"), "k3f9q2ma\n").unwrap();
    let output = heaptap(&["top", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("does not contain a trace yet"), "{told}");
    assert!(told.contains("heaptap stop k3f9q2ma"), "{told}");
}
