//! Recordings of an input: its own, or those of the runs of a scenario.

use std::path::{Path, PathBuf};

use heaptap_archive::Recording;
use heaptap_lab::results::{Build, Run, RunState, ScenarioResult};
use sha2::{Digest as _, Sha256};

use super::error::ArchiveError;
use crate::heaps::input::InputError;
use crate::lab::files;
use heaptap_base::error::ErrorClass;
use heaptap_base::units::hex;
use heaptap_results::file_names::is_below;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::{self, Manifest};

/// Device class of a recording without a scenario.
const DEFAULT_CLASS: &str = heaptap_lab::scenario::DEFAULT_CLASS;

/// A recording that is not read yet.
pub(super) struct Source {
    pub directory: PathBuf,
    /// Everything but the dumps and names.
    pub recording: Recording,
}

/// Recordings of an input.
pub(super) struct Found {
    pub sources: Vec<Source>,
    /// Runs without a recording.
    pub findings: Vec<Finding>,
    /// Errors of runs whose recording cannot be read.
    pub errors: Vec<ArchiveError>,
}

/// Finds the recordings of an input.
///
/// # Errors
/// Returns an error if it has none.
pub(super) fn of(input: &Path, build: Option<&str>) -> Result<Found, ArchiveError> {
    let not = |why| ArchiveError::NotARecording {
        path: input.to_owned(),
        why,
    };
    if input.join(manifest::FILE_NAME).is_file() {
        let recording =
            of_manifest(input, build)?.ok_or_else(|| not("it has no trace or HPROF"))?;
        let directory = input.to_owned();
        return Ok(Found {
            sources: vec![Source {
                directory,
                recording,
            }],
            findings: Vec::new(),
            errors: Vec::new(),
        });
    }
    if !input.join(files::RESULT).is_file() {
        let neither = "it is not the directory of a recording or of a scenario";
        let unfetched = heaptap_input::not_fetched(input, &input.display().to_string());
        return Err(unfetched.map_or_else(|| not(neither), |error| InputError::from(error).into()));
    }
    let mut found = Found {
        sources: Vec::new(),
        findings: Vec::new(),
        errors: Vec::new(),
    };
    let (results, has_parts) = files::read_all(input).map_err(ArchiveError::Results)?;
    for result in &results {
        let directory = match has_parts {
            true => files::directory_of(input, result),
            false => input.to_owned(),
        };
        for run in result.runs.iter().filter(|run| run.state == RunState::Done) {
            match of_run(&directory, result, run, build) {
                Ok(Some(source)) => found.sources.push(source),
                Ok(None) => found.findings.push(not_kept(result, run)),
                Err(error) => found.errors.push(error),
            }
        }
    }
    match (found.sources.is_empty(), found.errors.len()) {
        (true, 0) if found.findings.is_empty() => Err(not("none of its runs is complete")),
        (true, 1) => Err(found.errors.remove(0)),
        _ => Ok(found),
    }
}

fn not_kept(result: &ScenarioResult, run: &Run) -> Finding {
    let message = format!("run {} of {} has no recording", run.number, result.scenario);
    Finding::new("run-not-kept", None, message).with_help("set `keep: always` in the scenario")
}

/// Returns the recording of a run, if it was kept.
fn of_run(
    directory: &Path,
    result: &ScenarioResult,
    run: &Run,
    build: Option<&str>,
) -> Result<Option<Source>, ArchiveError> {
    // Results can come from anywhere: paths out of their directory are not followed.
    let Some(output) = run.output.as_deref().filter(|output| is_below(output)) else {
        return Ok(None);
    };
    let directory = directory.join(output);
    if !directory.join(manifest::FILE_NAME).is_file() {
        return Ok(None);
    }
    // `--build` is the build under test.
    let build = match run.build {
        Some(Build::Old) => result.old_app_version.as_deref().map(version_code),
        Some(Build::New) | None => build.or(result.app_version.as_deref().map(version_code)),
    };
    let Some(mut recording) = of_manifest(&directory, build)? else {
        return Ok(None);
    };
    recording.device_class.clone_from(&result.device_class);
    recording.phone = Some(result.device.serial.clone());
    recording.scenario = Some(result.scenario.clone());
    recording.run = u32::try_from(run.number).ok();
    recording.verdict = Some(verdict(result.exit_code).to_owned());
    Ok(Some(Source {
        directory,
        recording,
    }))
}

/// Returns the verdict on a scenario, by its exit code.
fn verdict(code: u8) -> &'static str {
    match code {
        0 => "within",
        code if code == ErrorClass::Budget.exit_code() => "over",
        code if code == ErrorClass::Inconclusive.exit_code() => "undecided",
        _ => "failed",
    }
}

/// Returns the version code of `1.2 (42)`, otherwise the whole text.
fn version_code(version: &str) -> &str {
    let inside = version.rsplit_once('(').map(|(_, rest)| rest);
    let code = inside.and_then(|rest| rest.strip_suffix(')'));
    code.filter(|code| !code.is_empty()).unwrap_or(version)
}

/// Reads the facts of a recording directory. `None` if it has nothing that identifies it.
fn of_manifest(directory: &Path, build: Option<&str>) -> Result<Option<Recording>, ArchiveError> {
    let manifest = Manifest::read(directory)?;
    let Some(sha256) = identity(&manifest) else {
        return Ok(None);
    };
    let started = manifest.steps.iter().find(|step| step.step == "started");
    let started = started.or(manifest.steps.first()).map(|step| step.at);
    let targets = manifest.targets.iter().map(|target| target.name.as_str());
    let native = manifest
        .dumps
        .native
        .iter()
        .map(|dump| dump.process.as_str());
    let java = manifest.dumps.java.iter().map(|dump| dump.process.as_str());
    let mut names = targets.chain(native).chain(java);
    let app = names.find(|name| !name.is_empty()).unwrap_or_default();
    let device = manifest.device.as_ref();
    Ok(Some(Recording {
        sha256,
        // Other processes of an app are `PACKAGE:NAME`.
        app: app.split(':').next().unwrap_or(app).to_owned(),
        day: started.map(|at| at.date().to_string()).unwrap_or_default(),
        build: build.unwrap_or_default().to_owned(),
        started_ms: started.map(|at| (at.unix_timestamp_nanos() / 1_000_000) as i64),
        phone: device.map(|device| device.serial.clone()),
        model: device.and_then(|device| device.model.clone()),
        sdk: device.and_then(|device| device.sdk),
        device_class: DEFAULT_CLASS.to_owned(),
        scenario: None,
        run: None,
        verdict: None,
        complete: manifest.outcome.complete,
        heaptap: manifest::version().to_owned(),
        dumps: Vec::new(),
        names: Default::default(),
    }))
}

/// Returns the hash of the original data: that of the trace, otherwise that of the HPROFs' hashes.
fn identity(manifest: &Manifest) -> Option<String> {
    let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(trace) = &manifest.trace {
        return Some(trace.sha256.to_ascii_lowercase()).filter(|hash| is_hash(hash));
    }
    let java = manifest.dumps.java.iter();
    let mut hashes: Vec<&str> = java
        .filter_map(|dump| Some(dump.original.as_ref()?.sha256.as_str()))
        .collect();
    hashes.sort_unstable();
    match hashes[..] {
        [] => None,
        _ => Some(hex(&Sha256::digest(hashes.join("\n")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_code_is_in_parentheses() {
        assert_eq!(version_code("1.2 (42)"), "42");
        assert_eq!(version_code("1.2 (beta) (7)"), "7");
        assert_eq!(version_code("42"), "42");
        assert_eq!(version_code("1.2 ()"), "1.2 ()");
    }
}
