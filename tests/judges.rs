//! Other people's tools judge what the demo leaves: Go's pprof must open it and see the leak.
//! Where Go is not installed the story is skipped and says so; `tests/run.sh` installs it.

use std::path::Path;
use std::process::{Command, Output};

/// The call that the demo's app leaks from.
const LEAK: &str = "example::telemetry::EventHistory::Append";

fn demo(folder: &Path) -> Output {
    let state = folder.join("state");
    Command::new(env!("CARGO_BIN_EXE_heaptap"))
        .args(["demo", "-o"])
        .arg(folder.join("out"))
        .env("HEAPTAP_STATE_DIR", &state)
        .env("HEAPTAP_CACHE_DIR", folder.join("cache"))
        .output()
        .expect("the binary runs")
}

fn profiles(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder.join("out"))
        .expect("the demo left a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".pb.gz"))
        .collect();
    found.sort();
    found
}

fn pprof(arguments: &[&str], profile: &Path) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(arguments)
        .arg(profile)
        .output()
        .expect("go runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}\n{errors}");
    // It looks for symbols of the library whose frames have no names, and only of that.
    let mut failed = errors
        .lines()
        .filter(|l| l.contains("symbolization failed"));
    assert!(failed.all(|line| line.contains("libengine.so")), "{errors}");
    text
}

/// The first function of a `-top` table.
fn first_row(table: &str) -> &str {
    let mut rows = table.lines().skip_while(|line| !line.contains("flat%"));
    rows.nth(1).expect("a table with a row")
}

#[test]
fn go_pprof_names_the_demos_leak_first() {
    if Command::new("go").arg("version").output().is_err() {
        println!("skipped: go is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = demo(folder.path());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let profiles = profiles(folder.path());
    assert_eq!(profiles.len(), 3, "two snapshots and the end: {profiles:?}");
    for profile in &profiles {
        // The default view is what is still held.
        let table = pprof(&["-top"], profile);
        assert!(table.contains("Type: space"), "{table}");
        assert!(first_row(&table).contains(LEAK), "{table}");
    }
    let last = profiles.last().expect("a profile");
    for view in ["objects", "space", "alloc_objects", "alloc_space"] {
        let table = pprof(&["-top", &format!("-sample_index={view}")], last);
        assert!(table.contains(&format!("Type: {view}")), "{table}");
        assert!(table.contains(LEAK), "{view}: {table}");
    }
    let table = pprof(&["-top", "-lines"], last);
    assert!(first_row(&table).contains("event_history.cpp:6"), "{table}");
    assert!(table.contains("telemetry.h:43 (inline)"), "{table}");
    // Between the snapshots it is the leak that grew.
    let base = format!("-diff_base={}", profiles[0].display());
    let table = pprof(&["-top", &base], &profiles[1]);
    assert!(first_row(&table).contains(LEAK), "{table}");
}
