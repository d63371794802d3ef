//! Errors with their places.

use super::{errors, parse, with, with_step};

/// Asserts that a file has this error only.
#[track_caller]
fn only(text: &str, wanted: &str) {
    assert_eq!(errors(text), format!("login.yaml:{wanted}"), "{text}");
}

#[test]
fn files_that_are_not_a_scenario() {
    only("", "1:1: the file is empty");
    only("# nothing\n\n", "3:1: the file is empty");
    only("- a\n", "1:1: must be a map: a scenario, not a list");
    only(
        "text\n",
        "1:1: must be a map: a scenario, not the text `text`",
    );
    only("a: 1\n---\nb: 2\n", "2:1: a file must have one document");
    only("a: [1\n", "2:1: a: not valid YAML: TBD");
}

#[test]
fn keys_that_are_unknown_or_missing() {
    only(
        &with_step("budgts: []\n"),
        "5:1: budgts: unknown key (did you mean `budgets`?)",
    );
    only(
        &with("steps:\n- wait-for: {activty: .Main}\n"),
        "5:14: steps[0].wait-for.activty: unknown key (did you mean `activity`?)",
    );
    only(
        &with("steps:\n- start\n- wait-fro: {quiet: 1s}\n"),
        "6:3: steps[1].wait-fro: unknown key (did you mean `wait-for`?)",
    );
    only(
        &with("steps:\n- rotat\n"),
        "5:3: steps[0]: `rotat` is not an action (did you mean `rotate`?)",
    );
    only(
        &with("steps:\n- {rotate: 1, timout: 1s}\n"),
        "5:15: steps[0].timout: unknown key (did you mean `timeout`?)",
    );
    only(
        "version: 1\nname: a\nsteps: [start]\n",
        "1:1: `target` is missing (The app)",
    );
    only(
        &with_step("install: {data: keep}\n"),
        "5:10: install: `apk` is missing (APK file, or the files of a split app; relative to the \
         scenario)",
    );
    only(
        &with_step("budgets:\n- {name: a, leaks: {x: 1}, limit: 1}\nmeasure: [java]\n"),
        "6:21: budgets[0].leaks.x: unknown key (the map must be empty)",
    );
}
