//! The words of a recording that ended, without what differs from run to run.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cell::Over;
use super::faults::Fault;

const NO_EFFECT: &str = "no effect on the recording";

/// Returns a command with `ID` instead of a session, and without the address of the phone.
pub fn with_id(command: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    if let Some(at) = words.iter().position(|word| *word == "--adb-server") {
        words.drain(at..words.len().min(at + 2));
    }
    if let [_, "stop", id, ..] = words.as_mut_slice()
        && id.len() == 8
    {
        *id = "ID";
    }
    words.join(" ")
}

/// Returns the commands of the messages, without repetitions.
fn commands(over: &Over) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in over.stderr.split('`').skip(1).step_by(2) {
        if text.starts_with("heaptap ") && !found.iter().any(|other| other == text) {
            found.push(text.to_owned());
        }
    }
    found
}

/// Returns the commands that go on with what was recorded, that of the recording first.
pub fn goes_on(over: &Over) -> Vec<String> {
    let mut found = commands(over);
    found.retain(|command| command.starts_with("heaptap stop"));
    found.reverse();
    found
}

/// Returns the command of a person: one that goes on with the recording, otherwise the first one
/// of an error.
pub fn command(over: &Over) -> Option<String> {
    let first = || match over.code {
        Some(0 | 6 | 7) => None,
        _ => commands(over).into_iter().next(),
    };
    goes_on(over).into_iter().next().or_else(first)
}

/// Returns the kind and the message of the error, or the kinds of the warnings. What depends on the
/// moment is left out: names, the request in parentheses, and warnings about companion data.
pub fn says(over: &Over, fault: Fault) -> String {
    let values: Vec<Value> = over
        .lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if let Some(error) = values
        .iter()
        .rev()
        .find_map(|value| value["error"].as_object())
    {
        let text = |key: &str| error[key].as_str().unwrap_or_default();
        return format!("`{}`: {}", text("kind"), general(text("message")));
    }
    let Some(last) = values
        .iter()
        .rev()
        .find(|value| value["event"] == "finished")
    else {
        return match over.code {
            Some(_) => NO_EFFECT.to_owned(),
            None => String::new(),
        };
    };
    let mut kinds = BTreeSet::new();
    for warning in last["manifest"]["warnings"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let kind = warning["kind"].as_str().unwrap_or_default();
        if !kind.starts_with("companion-") && kind != "label-unbound" {
            kinds.insert(format!("`{kind}`"));
        }
    }
    for value in &values {
        let text = value["text"].as_str().unwrap_or_default();
        if text.starts_with("cannot remove") {
            kinds.insert("cannot remove the trace from the device".to_owned());
        }
    }
    if over.stderr.contains("the recording is complete, but ") {
        kinds.insert("cannot access the session journal".to_owned());
    }
    if kinds.is_empty() {
        return match fault.is_signal() {
            true => "ends the recording",
            false => NO_EFFECT,
        }
        .to_owned();
    }
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

/// Replaces names of this run in a message, and leaves out what is in parentheses.
fn general(message: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for c in message.chars() {
        match c {
            '(' => {
                depth += 1;
                text.truncate(text.trim_end().len());
            }
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    // The request, and output that is not text.
    let until = |text: &str, end: &str| text.split(end).next().unwrap_or_default().to_owned();
    let text = until(&text, " during ");
    let text = text
        .split(|c: char| c.is_control() || c == '\u{fffd}')
        .next();
    let text = text.unwrap_or_default().trim_end().trim_end_matches(':');
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let body = word.trim_end_matches([':', ',', ';', '.']);
        let end = &word[body.len()..];
        let name = match body {
            "virtual-1" => "SERIAL",
            "out" => "DIR",
            _ if body.contains("/state/sessions") => "STATE",
            _ if body.ends_with("/raw-trace") => "DIR/raw-trace",
            _ if body.starts_with("/data/misc/") => "FILE",
            _ if body.contains("/.tmp") => "DIR",
            _ if body.starts_with("127.0.0.1:") => "HOST:PORT",
            _ if words.last().is_some_and(|last| last == "session") && body.len() == 8 => "ID",
            _ if body.starts_with(|c: char| c.is_ascii_digit()) && body.len() > 3 => "N",
            body => body,
        };
        words.push(format!("{name}{end}"));
    }
    words.join(" ")
}

#[test]
fn commands_lose_the_names_of_their_run() {
    for (command, expected) in [
        ("heaptap stop u95hdu8z", "heaptap stop ID"),
        (
            "heaptap devices --adb-server 127.0.0.1:1",
            "heaptap devices",
        ),
        ("heaptap status", "heaptap status"),
    ] {
        assert_eq!(with_id(command), expected);
    }
}

#[test]
fn messages_lose_the_names_of_their_run() {
    for (message, expected) in [
        (
            "the connection to virtual-1 was lost (pull (x) y)",
            "the connection to SERIAL was lost",
        ),
        (
            "cannot write /tmp/.tmpX/work/out/raw-trace: file too large",
            "cannot write DIR/raw-trace: file too large",
        ),
        (
            "session u95hdu8z was not fetched from virtual-1: received 314899 bytes",
            "session ID was not fetched from SERIAL: received N bytes",
        ),
        (
            "cannot access the session journal in /a/.tmp/state/sessions/x.jsonl: no",
            "cannot access the session journal in STATE: no",
        ),
    ] {
        assert_eq!(general(message), expected);
    }
}
