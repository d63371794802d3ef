//! The check of a cell: the command that heaptap names goes on, nothing is lost, nothing remains.

use std::collections::BTreeSet;

use super::cell::{Over, Seen};
use super::faults::Fault;
use super::report::{command, goes_on, says, with_id};
use crate::lab::{Lab, files};

/// Finds what a person sees, runs the command that goes on, and checks that nothing is lost.
pub fn judge(lab: &Lab, fault: Fault, over: &Over) -> Result<Seen, String> {
    let mut seen = Seen {
        says: says(over, fault),
        exit: over
            .code
            .map_or("killed".to_owned(), |code| code.to_string()),
        kept: String::new(),
        next: String::new(),
    };
    if over.code == Some(1) || over.code.is_none() && over.signal != Some(9) {
        return Err("it crashed".to_owned());
    }
    let has_dumps = lab
        .phone
        .truth()
        .iter()
        .any(|truth| !truth.dumps.is_empty());
    let is_fetched = lab.work().join("out/raw-trace").exists();
    let has_results = lab.work().join("out/manifest.json").exists();
    let is_left = lab.is_left();
    if fault == Fault::NoOutput {
        let _ = std::fs::remove_file(lab.work().join("out"));
    }
    let on_phone = !lab.traces().is_empty();
    seen.kept = match (has_results, is_left, on_phone, is_fetched) {
        (true, false, ..) => "results",
        (true, true, ..) => "results, journal",
        (false, true, true, true) => "trace on the device and on the host",
        (false, true, true, false) => "trace on the device",
        (false, true, false, true) => "trace on the host",
        (false, true, false, false) => "journal",
        (false, false, true, _) => "trace on the device, no journal",
        (false, false, false, true) => "trace on the host, no journal",
        (false, false, false, false) => "nothing was recorded",
    }
    .to_owned();
    let command = command(over);
    if let Some(command) = &command {
        seen.next = with_id(command);
    }
    let mut directory = "out";
    if is_left {
        let mut commands = goes_on(over);
        if over.signal.is_some() {
            commands = vec!["heaptap stop".to_owned()];
            seen.next.clone_from(&commands[0]);
        }
        if commands.is_empty() {
            let status = lab.run("status --json");
            return Err(format!(
                "a session is left, and no command goes on: {command:?}\n{status}"
            ));
        }
        for (n, command) in commands.iter().enumerate() {
            // The first one can collect all.
            if n > 0 && !lab.is_left() {
                break;
            }
            let goal = ["elsewhere", "elsewhere-2", "elsewhere-3"][n.min(2)];
            let words = command.replace("-o DIR", &format!("-o {goal}"));
            let words: Vec<&str> = words.split_whitespace().skip(1).collect();
            if n == 0 && words.contains(&goal) {
                directory = goal;
            }
            let was_on_phone = was_recorded(lab, command, has_dumps || on_phone);
            let ended = lab.run(&words);
            let good = match was_on_phone {
                true => matches!(ended.code(), Some(0 | 6 | 7)),
                // Nothing had reached the phone.
                false => matches!(ended.code(), Some(0 | 5 | 6 | 7 | 8)),
            };
            if !good {
                return Err(format!("`{command}` does not go on: {ended}"));
            }
        }
    }
    let has_results = lab.work().join(directory).join("manifest.json").exists();
    tidy(lab, directory)?;
    if has_results {
        whole(lab, directory)?;
    } else if over.code == Some(0) {
        return Err("success without results".to_owned());
    } else {
        // The same command works again.
        let again = lab.run("record -n com.example.app -o out -d 2s --no-report");
        if again.code() != Some(0) {
            let there = files(&lab.work().join("out"));
            return Err(format!(
                "the same command does not work: {again}\nthere: {there:?}"
            ));
        }
        tidy(lab, "out")?;
        if seen.next.is_empty() {
            seen.next = "the same command".to_owned();
        }
    }
    Ok(seen)
}

/// Whether the phone recorded the session of a command; `any` if the command names none.
fn was_recorded(lab: &Lab, command: &str, any: bool) -> bool {
    match command.split(' ').nth(2).filter(|id| !id.starts_with('-')) {
        Some(id) => {
            let truth = lab.phone.truth();
            let recorded = truth.iter().any(|truth| truth.path.contains(id));
            recorded || lab.traces().iter().any(|path| path.contains(id))
        }
        None => any,
    }
}

/// Checks that the directory has each dump that the phone wrote, and no other.
fn whole(lab: &Lab, directory: &str) -> Result<(), String> {
    let manifest = lab.manifest(directory);
    let truth = lab.truth_of(directory);
    let dumps = manifest["dumps"].as_array().cloned().unwrap_or_default();
    let is_said = manifest["outcome"]["exit_code"].as_u64() != Some(0);
    if dumps.len() < truth.dumps.len() && !is_said {
        return Err(format!("a dump is missing without a word: {manifest:#}"));
    }
    if truth.finished && !truth.dumps.is_empty() && !is_said {
        lab.assert_has(directory, &truth);
    }
    let trace = lab.work().join(directory).join("raw-trace");
    let size = std::fs::metadata(&trace).map_or(0, |metadata| metadata.len());
    if Some(size) != manifest["trace"]["size"].as_u64() {
        return Err(format!("raw-trace has {size} bytes: {}", manifest["trace"]));
    }
    Ok(())
}

/// Checks that nothing remains on the phone and in the journal, and no unfinished file on the host.
fn tidy(lab: &Lab, directory: &str) -> Result<(), String> {
    let mut left: BTreeSet<String> = lab.traces().into_iter().collect();
    left.extend(lab.phone.list("/data/local/tmp"));
    left.extend(files(&lab.dir.path().join("state/sessions")));
    let hidden = |file: &String| file.starts_with('.');
    left.extend(
        files(&lab.work().join(directory))
            .into_iter()
            .filter(hidden),
    );
    left.extend(files(&lab.work().join("out")).into_iter().filter(hidden));
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("left over: {left:?}")),
    }
}
