//! Writes the results of scenarios: for machines, for CI systems, and for people.

use std::path::{Path, PathBuf};

use super::path_lock::{self, PathLock};
use heaptap_lab::results::{self, Device, Run, ScenarioResult};
use serde::{Deserialize, Serialize};

use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure, mend_write};
use heaptap_capture::session::Store;
use heaptap_results::file_names::file_name;
use heaptap_results::output::OutputDirectory;
use heaptap_results::whole_file;

/// Names of the files.
pub const RESULT: &str = "result.json";
pub const JUNIT: &str = "junit.xml";
pub const SUMMARY: &str = "summary.md";
pub const METRICS: &str = "metrics.txt";
pub const INDEX: &str = "index.html";
pub const PROGRESS: &str = "progress.json";

/// Writes a file that the user named. It survives a power loss, and a link stays one.
///
/// # Errors
/// Returns an error if its directory cannot be written.
pub(super) fn write_typed(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    whole_file::write_typed(path, bytes).map_err(|error| unwritable(path, &error))
}

/// Writes bytes under their final name when they are complete.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    whole_file::write_named(path, bytes).map_err(|error| unwritable(path, &error))
}

pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    let help = format!(
        "{}, then run the command again with `--resume`",
        mend_write(error)
    );
    Failure::new(ErrorClass::HostWrite, "host-write", message).with_help(help)
}

/// Writes a value as JSON. It survives a power loss, as the journals of recordings do: `--resume`
/// reads it.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::new(ErrorClass::Bug, "bug", error.to_string()))?;
    whole_file::write_synced(path, &text).map_err(|error| unwritable(path, &error))
}

/// Writes all files of the result of one scenario on one device.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub fn write(directory: &Path, only: &ScenarioResult) -> Result<(), Failure> {
    write_json(&directory.join(RESULT), only)?;
    write_others(directory, std::slice::from_ref(only))
}

/// Writes all files of the results whose runs are in directories below. `result.json` is a list,
/// also of one result.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub fn write_together(directory: &Path, all: &[ScenarioResult]) -> Result<(), Failure> {
    write_json(&directory.join(RESULT), &all)?;
    write_others(directory, all)
}

/// Writes the files that other systems and people read.
fn write_others(directory: &Path, all: &[ScenarioResult]) -> Result<(), Failure> {
    let text = |name: &str, text: String| write_whole(&directory.join(name), text.as_bytes());
    let page = |result: &ScenarioResult, run: &Run| {
        let name = page_name(&result.scenario, &result.device, run.number);
        if directory.join(&name).is_file() {
            return Some(name);
        }
        let below = format!(
            "{}/{name}",
            part_name(&result.scenario, &result.device.name())
        );
        directory.join(&below).is_file().then_some(below)
    };
    // Paths of attachments are relative to the directory in which a CI system runs heaptap.
    let here = std::env::current_dir().unwrap_or_default();
    let attachment = |result: &ScenarioResult, run: &Run| {
        let path = directory.join(page(result, run)?);
        let path = path.strip_prefix(&here).map(Path::to_owned).unwrap_or(path);
        path.into_os_string().into_string().ok()
    };
    text(JUNIT, results::junit::junit(all, &attachment))?;
    text(SUMMARY, results::markdown::summary(all))?;
    text(METRICS, results::gitlab::metrics(all))?;
    let night = results::night::index(all, &page);
    for (name, svg) in night.images {
        text(&name, svg)?;
    }
    text(INDEX, night.html)?;
    text(results::night::CSS_NAME, night.css.to_owned())
}

/// Returns the name of the directory of a scenario on a device, if there are several.
pub fn part_name(scenario: &str, serial: &str) -> String {
    file_name(&format!("{scenario}-{serial}"))
}

/// Returns the name of the directory of a run's recording.
pub(super) fn run_name(run: usize) -> String {
    format!("run-{run}")
}

/// Returns whether a directory has the name of a run's.
pub(super) fn is_run(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_prefix("run-");
    number.is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Returns the name of a run's page. CI systems copy attachments into one directory, so it is
/// unique among the runs of all scenarios and devices.
pub(super) fn page_name(scenario: &str, device: &Device, run: usize) -> String {
    format!("{}-run-{run}.html", part_name(scenario, &device.name()))
}

/// Reads the only result in a directory.
///
/// # Errors
/// Returns an error if there is not exactly one, or if it is damaged.
pub fn read(directory: &Path) -> Result<ScenarioResult, Failure> {
    let (mut results, _) = read_all(directory)?;
    match results.pop() {
        Some(only) if results.is_empty() => Ok(only),
        Some(last) => {
            let part = directory.join(part_name(&last.scenario, &last.device.name()));
            let why = unusable(&directory.join(RESULT), "it has several results");
            Err(why.with_help(format!(
                "name the directory of one, such as {}",
                part.display()
            )))
        }
        None => Err(unusable(&directory.join(RESULT), "it has no result")),
    }
}

/// Reads the results in a directory, and whether each has a directory of its own.
///
/// # Errors
/// Returns an error if there are none, or if they are damaged.
pub fn read_all(directory: &Path) -> Result<(Vec<ScenarioResult>, bool), Failure> {
    let path = directory.join(RESULT);
    let text = std::fs::read(&path).map_err(|error| unusable(&path, &error.to_string()))?;
    let read = || {
        let value: serde_json::Value = serde_json::from_slice(&text)?;
        let has_parts = value.is_array();
        let results = match has_parts {
            true => serde_json::from_value(value)?,
            false => vec![serde_json::from_value(value)?],
        };
        Ok((results, has_parts))
    };
    read().map_err(|error: serde_json::Error| unusable(&path, &error.to_string()))
}

fn unusable(path: &Path, why: &str) -> Failure {
    let message = format!("cannot read {}: {why}", path.display());
    Failure::new(ErrorClass::BadInput, "input-unreadable", message)
        .with_help("name the output directory of `heaptap run`")
}

/// The device and the scenario whose runs a directory has.
#[derive(Debug, Deserialize)]
pub struct Begun {
    pub scenario_sha256: String,
    pub device: Device,
}

/// Returns whose runs a directory has; `None` if it does not have runs of its own.
///
/// # Errors
/// Returns an error if its progress cannot be read.
pub fn begun_in(directory: &Path) -> Result<Option<Begun>, Failure> {
    let damaged = |why: String| cannot_resume(directory, &format!("{PROGRESS} is damaged: {why}"));
    match std::fs::read(directory.join(PROGRESS)) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| damaged(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// Returns the names of the devices whose runs a directory or those below it have. A device that
/// stands in for another one does not count there. Damaged files are reported by their devices.
pub fn devices_of(directory: &Path) -> Vec<String> {
    let directories = std::iter::once(directory.to_owned()).chain(entries_of(directory));
    let begun = directories.filter_map(|directory| begun_in(&directory).ok().flatten());
    let own = begun.filter(|begun| begun.device.instead_of.is_none());
    let mut names: Vec<String> = own.map(|begun| begun.device.serial).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the directory with the runs of one of several results: one below `directory`, or `directory`
/// itself if the device began there alone.
pub fn directory_of(directory: &Path, result: &ScenarioResult) -> PathBuf {
    let part = directory.join(part_name(&result.scenario, &result.device.name()));
    let began = || begun_in(directory).ok().flatten();
    match part.is_dir() || began().is_none_or(|begun| begun.device != result.device) {
        true => part,
        false => directory.to_owned(),
    }
}

/// Returns the failure of `--resume` in a directory.
pub(super) fn cannot_resume(directory: &Path, why: &str) -> Failure {
    let message = format!("cannot resume {}: {why}", directory.display());
    Failure::new(ErrorClass::BadInput, "cannot-resume", message)
        .with_help("leave out `--resume` and name a new directory to begin again")
}

fn entries_of(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    directory::is_unfinished(name) && path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// Returns whether a process that was killed at its very beginning left this.
fn is_nothing(path: &Path) -> bool {
    is_unfinished(path) || path.is_dir() && entries_of(path).all(|inner| is_unfinished(&inner))
}

/// Removes files of a directory that a killed process did not finish.
pub fn remove_unfinished(directory: &Path) {
    for path in entries_of(directory).filter(|path| is_unfinished(path)) {
        // It only takes space.
        let _ = std::fs::remove_file(path);
    }
}

/// Creates the output directory, which must be new or empty unless its runs are resumed. Runs that
/// were ended before they began are resumed, too: a job is repeated with the same command.
///
/// The directory is this process's until the returned lock is dropped.
///
/// # Errors
/// Returns an error if it cannot be created, has other content, or is another process's.
pub(crate) fn claim(store: &Store, directory: &Path, resume: bool) -> Result<PathLock, Failure> {
    OutputDirectory::check(directory)?;
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", directory.display());
        Failure::new(ErrorClass::HostWrite, "host-write", message)
            .with_help("name a directory that can be written with `-o`")
    };
    directory::create(directory).map_err(unwritable)?;
    let taken = path_lock::take(store, directory);
    let Some(lock) = taken.map_err(|error| self::unwritable(store.directory(), &error))? else {
        let message = format!("another heaptap process writes to {}", directory.display());
        return Err(Failure::new(ErrorClass::Usage, "output-taken", message)
            .with_help("wait until its runs have ended, or name another directory with `-o`"));
    };
    let entries = std::fs::read_dir(directory).map_err(unwritable)?.flatten();
    let entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    if resume {
        // What could not begin has only a result.
        let has_runs =
            |directory: &Path| directory.join(PROGRESS).is_file() || read_all(directory).is_ok();
        let is_ours = has_runs(directory)
            || entries.iter().any(|entry| has_runs(entry))
            || entries.iter().all(|entry| is_nothing(entry));
        return match is_ours {
            true => Ok(lock),
            false => Err(cannot_resume(directory, "it has no runs")),
        };
    }
    if !entries.is_empty() {
        let message = format!("{} is not empty", directory.display());
        return Err(Failure::new(ErrorClass::Usage, "output-not-empty", message)
            .with_help("name a new directory, or go on with its runs with `--resume`"));
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_process_s_until_its_runs_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(&dir.path().join("sessions")).unwrap();
        let directory = dir.path().join("night");
        let first = claim(&store, &directory, false).unwrap();
        for resume in [false, true] {
            let second = claim(&store, &directory, resume).unwrap_err();
            assert_eq!(second.kind, "output-taken");
        }
        drop(first);
        claim(&store, &directory, false).unwrap();
    }

    #[test]
    fn long_names_of_two_devices_differ_and_pages_keep_their_ending() {
        let scenario = "s".repeat(64);
        let device = |serial: &str| Device {
            serial: serial.to_owned(),
            ..Device::default()
        };
        let [one, other] = ["10.20.30.40:5555", "10.20.30.40:5556"].map(device);
        assert_ne!(
            part_name(&scenario, &one.serial),
            part_name(&scenario, &other.serial)
        );
        let pages = [(&one, 1), (&one, 2), (&other, 1)];
        let pages = pages.map(|(device, run)| page_name(&scenario, device, run));
        assert!(pages[0] != pages[1] && pages[0] != pages[2], "{pages:?}");
        assert!(pages[1].ends_with("-run-2.html"), "{pages:?}");
        assert_eq!(page_name("a", &device("b"), 3), "a-b-run-3.html");
    }
}
