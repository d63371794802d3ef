//! Tests of the language: whole files, every kind of error, hostile files, and the JSON Schema.

mod errors;
mod hostile;
mod language;
mod schema;
mod triggers;

use self::language::EXAMPLE;

use super::{Actions, Problems, Scenario};

/// Actions with descriptions, as `provoke` has them.
const ALL: [(&str, &str); 9] = [
    ("rotate", "rotates the screen"),
    ("monkey", "sends random events"),
    ("tap", "touches a point"),
    ("trim", "asks the app to release memory"),
    ("text", "types words"),
    ("deep-link", "opens a link"),
    ("wait", "does nothing"),
    ("start", "starts the app"),
    ("home", "presses HOME"),
];

/// Accepts the texts that `provoke` accepts, roughly.
fn check(text: &str) -> Result<(), String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name.trim(), value.trim()),
        None => (text.trim(), ""),
    };
    let numbers = value.split([',', ' ']).filter(|part| !part.is_empty());
    let numbers: Option<Vec<u32>> = numbers.map(|part| part.parse().ok()).collect();
    let numbers = numbers.map(|numbers| numbers.len());
    let is_valid = match name {
        "rotate" => value.is_empty() || (numbers == Some(1) && value != "0"),
        "tap" => numbers == Some(2),
        "start" | "home" => value.is_empty(),
        _ => !value.is_empty(),
    };
    match is_valid {
        true => Ok(()),
        false => Err(format!("{text:?} is not an action: use {name} otherwise")),
    }
}

fn with_actions<T>(then: impl FnOnce(&Actions<'_>) -> T) -> T {
    then(&Actions {
        all: &ALL,
        check: &check,
    })
}

fn environment(name: &str) -> Option<String> {
    match name {
        "APK" => Some("build/app.apk".to_owned()),
        "RUNS" => Some("4".to_owned()),
        "YAML" => Some("{a: b}\n- \"c\": *d".to_owned()),
        "EVIL" => Some("x\u{1b}[31m\"; rm -rf /".to_owned()),
        _ => None,
    }
}

fn parse_all(text: &str) -> Result<Vec<Scenario>, Problems> {
    with_actions(|actions| Scenario::parse(text, "login.yaml", &environment, actions))
}

fn parse(text: &str) -> Result<Scenario, Problems> {
    parse_all(text).map(|mut cells| cells.remove(0))
}

fn parsed(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// Returns the errors of a file as printed.
fn errors(text: &str) -> String {
    match parse(text) {
        Ok(scenario) => panic!("accepted: {scenario:?}\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

/// A file with more keys at its end.
fn with(more: &str) -> String {
    format!("version: 1\nname: login\ntarget: {{name: com.example.app}}\n{more}")
}

/// A file with a step and more keys at its end; the step is in line 4.
fn with_step(more: &str) -> String {
    with(&format!("steps: [start]\n{more}"))
}
