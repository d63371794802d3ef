//! Provoking an app on a phone without the needed services: a refused action leaves no change and
//! no note.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::phone::{Ended, Phone, SOON};
use crate::{PATIENCE, TARGET, exit, kind};

/// The phone's settings by name; empty if it does not have the service.
fn settings(phone: &Phone) -> BTreeMap<String, String> {
    let files = fs::read_dir(phone.file("/data/fake/settings"))
        .into_iter()
        .flatten();
    files
        .map(|file| {
            let file = file.expect("readable");
            let value = fs::read_to_string(file.path()).expect("text");
            (file.file_name().to_string_lossy().into_owned(), value)
        })
        .collect()
}

fn provoke(phone: &Phone, actions: &[&str]) -> Ended {
    let mut args = vec!["provoke", "-n", TARGET];
    args.extend(actions);
    args.push("--json");
    phone.heaptap(&args).end(PATIENCE)
}

/// No setting waits to be restored.
fn assert_nothing_noted(phone: &Phone) {
    let restore = phone.heaptap(&["provoke", "--restore", "--json"]);
    let restore = restore.end(SOON);
    assert_eq!(restore.code(), Some(exit::DONE), "{restore:?}");
    let notes = phone.home().join("state/heaptap/provoke");
    assert_eq!(with_ending(&notes, "json"), 0, "{}", notes.display());
}

fn with_ending(directory: &Path, ending: &str) -> usize {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .filter(|file| file.path().extension().is_some_and(|e| e == ending))
        .count()
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn settings_that_cannot_be_read_are_not_changed() {
    let phone = Phone::boot("unset");
    for actions in [&["rotate:2"][..], &["rotate:2", "--dry-run"], &["home"]] {
        let refused = provoke(&phone, actions);
        assert_eq!(refused.code(), Some(exit::DEVICE_FAILED), "{refused:?}");
        assert_eq!(kind(&refused), "action-refused", "{refused:?}");
        assert!(
            refused.words().contains("Can't find service: settings"),
            "the phone's words: {refused:?}"
        );
        assert_nothing_noted(&phone);
    }
    // Actions without changes do not need any service.
    let waited = provoke(&phone, &["wait:1s", "--dry-run"]);
    assert_eq!(waited.code(), Some(exit::DONE), "{waited:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_refusal_in_the_middle_leaves_everything_as_it_was() {
    let phone = Phone::boot("halfway");
    let directory = phone.file("/data/fake/settings");
    fs::create_dir(&directory).expect("new");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("ours");
    for (name, value) in [
        ("system.accelerometer_rotation", "1\n"),
        ("global.stay_on_while_plugged_in", "3\n"),
    ] {
        let file = directory.join(name);
        fs::write(&file, value).expect("writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("ours");
    }
    let before = settings(&phone);
    let dry = provoke(&phone, &["wait:1s", "trim:running-low", "--dry-run"]);
    assert_eq!(dry.code(), Some(exit::DONE), "{dry:?}");
    assert_eq!(settings(&phone), before, "looked at only: {dry:?}");
    // svc, which keeps the screen on, is missing; it is the first change.
    let refused = provoke(&phone, &["wait:1s", "trim:running-low"]);
    assert_eq!(refused.code(), Some(exit::DEVICE_FAILED), "{refused:?}");
    assert!(refused.words().contains("svc power stayon"), "{refused:?}");
    assert_eq!(settings(&phone), before, "{refused:?}");
    assert_nothing_noted(&phone);
}
