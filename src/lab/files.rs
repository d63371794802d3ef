//! Writes the results of scenarios: for machines, for CI systems, and for people.

use std::path::Path;

use heaptap_lab::results::{self, Device, Run, ScenarioResult};
use serde::Serialize;

use crate::error::{ErrorClass, Failure};
use crate::results::output::file_name;
use crate::results::whole_file::WholeFile;

/// Names of the files.
pub const RESULT: &str = "result.json";
pub const JUNIT: &str = "junit.xml";
pub const SUMMARY: &str = "summary.md";
pub const METRICS: &str = "metrics.txt";
pub const INDEX: &str = "index.html";
pub const PROGRESS: &str = "progress.json";

/// Writes a text under its final name when it is complete.
///
/// # Errors
/// Returns an error if its directory cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text.as_bytes())
}

/// Writes bytes under their final name when they are complete.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    use std::io::Write as _;
    let write = || {
        let mut file = WholeFile::named(path)?;
        file.write_all(bytes)?;
        file.finish()
    };
    write().map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(ErrorClass::HostWrite, "host-write", message)
            .with_help("free space on the host, then run the command again with `--resume`")
    })
}

/// Writes a value as JSON.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::new(ErrorClass::Bug, "bug", error.to_string()))?;
    write_whole(path, &text)
}

/// Writes all files of the results of a directory.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub fn write(folder: &Path, all: &[ScenarioResult]) -> Result<(), Failure> {
    match all {
        [only] => write_json(&folder.join(RESULT), only)?,
        all => write_json(&folder.join(RESULT), &all)?,
    }
    let text = |name: &str, text: String| write_whole(&folder.join(name), text.as_bytes());
    let page = |result: &ScenarioResult, run: &Run| {
        let name = page_name(&result.scenario, &result.device, run.number);
        if folder.join(&name).is_file() {
            return Some(name);
        }
        let below = format!(
            "{}/{name}",
            part_name(&result.scenario, &result.device.name())
        );
        folder.join(&below).is_file().then_some(below)
    };
    // Paths of attachments are relative to the directory in which a CI system runs heaptap.
    let here = std::env::current_dir().unwrap_or_default();
    let attachment = |result: &ScenarioResult, run: &Run| {
        let path = folder.join(page(result, run)?);
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

/// Returns the name of a run's page. CI systems copy attachments into one directory, so it is
/// unique among the runs of all scenarios and devices.
pub(super) fn page_name(scenario: &str, device: &Device, run: usize) -> String {
    file_name(&format!("{scenario}-{}-run-{run}.html", device.name()))
}

/// Reads the result in a directory.
///
/// # Errors
/// Returns an error if there is none of one scenario, or if it is damaged.
pub fn read(folder: &Path) -> Result<ScenarioResult, Failure> {
    let path = folder.join(RESULT);
    let unusable = |why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "input-unreadable", message)
            .with_help("name the output directory of `heaptap run`")
    };
    let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))
}

/// Returns the failure of `--resume` in a directory.
pub(super) fn cannot_resume(folder: &Path, why: &str) -> Failure {
    let message = format!("cannot resume {}: {why}", folder.display());
    Failure::new(ErrorClass::BadInput, "cannot-resume", message)
        .with_help("leave out `--resume` and name a new directory to begin again")
}

/// Creates the output directory, which must be new or empty unless its runs are resumed.
///
/// # Errors
/// Returns an error if it cannot be created, or has other content.
pub fn claim(folder: &Path, resume: bool) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", folder.display());
        Failure::new(ErrorClass::HostWrite, "host-write", message)
            .with_help("name a directory that can be written with `-o`")
    };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let mut entries = std::fs::read_dir(folder).map_err(unwritable)?;
    let progress = |folder: &Path| folder.join(PROGRESS).is_file();
    if resume {
        let is_ours = progress(folder) || entries.flatten().any(|entry| progress(&entry.path()));
        return match is_ours {
            true => Ok(()),
            false => Err(cannot_resume(folder, "it has no runs")),
        };
    }
    if entries.next().is_some() {
        let message = format!("{} is not empty", folder.display());
        return Err(Failure::new(ErrorClass::Usage, "output-not-empty", message)
            .with_help("name a new directory, or go on with its runs with `--resume`"));
    }
    Ok(())
}
