//! `run`: reads a scenario, and prepares it for a device.

use std::path::{Path, PathBuf};

use heaptap_lab::baseline::Baseline;
use heaptap_lab::scenario::{self, Actions, Problems, Record, Scenario, Target};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::config::{self, ConfigFile, Options, Targets};
use crate::device::Device;
use crate::error::{ErrorClass, Failure};
use crate::export::pprof::PprofOptions;
use crate::lab::scenario_run::LabRequest;
use crate::naming::names::NameOptions;
use crate::provoke::{Action, Plan, catalog, dry_run};
use crate::recording::capture_kind::CaptureKind;
use crate::recording::companion_options::CompanionOptions;
use crate::recording::options::RecordOptions;
use crate::results::output::{default_name, file_name};
use crate::session::SessionId;
use crate::untrusted::shell::quoted;

/// Maximum size of a scenario in bytes.
const LARGEST: u64 = 1 << 20;

/// Reads a scenario.
///
/// # Errors
/// Returns an error if the file cannot be read, or the list of its problems.
pub fn read(path: &Path) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let unreadable = |why: String| {
        Failure::new(
            ErrorClass::BadInput,
            "input-unreadable",
            format!("cannot read {name}: {why}"),
        )
        .with_help("`heaptap run --init PACKAGE` prints a first scenario")
    };
    let bytes = crate::bytes::Bytes::read(path, LARGEST);
    let bytes = bytes.map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable("it is larger than 1 MiB".to_owned()));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    let environment = |name: &str| std::env::var(name).ok();
    with_actions(|actions| Scenario::parse(text, &name, &environment, actions))
        .map_err(|problems| refused(&problems))
}

/// Passes the actions of `provoke` to the language of scenarios, which does not know them.
fn with_actions<T>(work: impl FnOnce(&Actions<'_>) -> T) -> T {
    let all: Vec<(&str, &str)> = (catalog::ALL.iter())
        .map(|entry| (entry.name, entry.does))
        .collect();
    let check = |action: &str| match action.parse::<Action>() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.why),
    };
    work(&Actions {
        all: &all,
        check: &check,
    })
}

/// Returns the JSON Schema of scenarios.
pub fn schema() -> serde_json::Value {
    with_actions(scenario::schema)
}

fn refused(problems: &Problems) -> Failure {
    let lines = problems.to_string();
    let mut lines = lines.lines().map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    Failure::new(ErrorClass::BadInput, "bad-scenario", first)
        .with_excerpt(lines.collect())
        .with_help("`heaptap run --schema` prints all keys; editors complete them with it")
}

/// Prepares a scenario for a device.
///
/// # Errors
/// Returns an error if an APK cannot be read, or an option of the recording is refused.
pub fn request(
    scenario: Scenario,
    path: &Path,
    output: Option<PathBuf>,
    baseline: Option<PathBuf>,
    resume: bool,
    names: NameOptions,
    user: Option<u32>,
) -> Result<LabRequest, Failure> {
    let folder = output.unwrap_or_else(|| {
        let stem = file_name(&scenario.name);
        PathBuf::from(default_name(
            &stem,
            OffsetDateTime::now_utc(),
            &SessionId::random(),
        ))
    });
    let baseline = read_baseline(&baseline_path(path, baseline.clone()), baseline.is_some())?;
    let base = path.parent().unwrap_or(Path::new("")).to_owned();
    if let Some(app) = &scenario.install {
        crate::lab::install::open(app, &base)?;
    }
    let record = record_options(&scenario, &base, names, user)?;
    Ok(LabRequest {
        sha256: crate::units::hex(&Sha256::digest(format!("{scenario:?}").as_bytes())),
        file: path.display().to_string(),
        base,
        folder,
        resume,
        baseline,
        record,
        user,
        scenario,
    })
}

/// Returns the path of the baseline: the named one, or next to the scenario.
pub fn baseline_path(scenario: &Path, named: Option<PathBuf>) -> PathBuf {
    named.unwrap_or_else(|| scenario.with_extension("baseline"))
}

/// Reads a baseline. Without a `named` one, a missing file is empty.
///
/// # Errors
/// Returns an error if it cannot be read, or is no baseline.
pub fn read_baseline(path: &Path, named: bool) -> Result<Baseline, Failure> {
    let unreadable = |why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "input-unreadable", message)
            .with_help("`heaptap run SCENARIO --update-baseline` writes it")
    };
    if !path.exists() && !named {
        return Ok(Baseline::default());
    }
    let bytes = crate::bytes::Bytes::read(path, LARGEST).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    Baseline::parse(text).map_err(|error| unreadable(error.to_string()))
}

fn record_options(
    scenario: &Scenario,
    base: &Path,
    names: NameOptions,
    user: Option<u32>,
) -> Result<RecordOptions, Failure> {
    let Record {
        config,
        interval,
        heaps,
        shmem_size,
        no_check,
    } = &scenario.record;
    // A preset has no path; a file is relative to the scenario.
    let file = config.as_deref().map(|config| {
        let beside = base.join(config);
        ConfigFile::load(match beside.is_file() {
            true => &beside,
            false => Path::new(config),
        })
    });
    let file = file.transpose()?;
    let companions = CompanionOptions {
        java: scenario.measure.java,
        meminfo: scenario.measure.meminfo,
        smaps: scenario.measure.smaps,
        gc: scenario.measure.gc,
        allocations: false,
    };
    let mut targets = Targets::default();
    match &scenario.target {
        Target::Name(name) => targets.names.push(name.clone()),
        Target::Package(package) => targets.packages.push(package.clone()),
    }
    let options = Options {
        targets,
        interval_bytes: *interval,
        heaps: heaps.clone(),
        shmem_bytes: *shmem_size,
        ..Options::default()
    };
    let mut resolved = config::resolve(file.as_ref(), &options)?;
    resolved.spec.companions = companions.in_trace();
    Ok(RecordOptions {
        kind: CaptureKind::Native(Box::new(resolved.spec)),
        companions,
        output: None,
        stem: None,
        force: *no_check,
        launch: false,
        snapshots: resolved.snapshots,
        detach: false,
        retry_overrun: false,
        disable_selinux: false,
        user,
        pprof: PprofOptions::default(),
        names,
    })
}

/// Returns what each step would do, as lines to print.
///
/// # Errors
/// Returns an error if the device cannot be reached, or lacks an action.
pub async fn commands(device: &Device, scenario: &Scenario) -> Result<Vec<String>, Failure> {
    use heaptap_lab::scenario::{Step, What};
    let target = crate::provoke::Target::parse(crate::lab::scenario_run::name_of(scenario), None)?;
    let mut lines = Vec::new();
    let mut pending: Vec<(&Step, usize)> = Vec::new();
    let all = scenario.setup.iter().chain(&scenario.steps);
    pending.extend(all.rev().map(|step| (step, 0)));
    while let Some((step, depth)) = pending.pop() {
        let indent = "  ".repeat(depth);
        match &step.what {
            What::Repeat { times, steps } => {
                lines.push(format!("{indent}# {}: {times} times", step.path));
                pending.extend(steps.iter().rev().map(|step| (step, depth + 1)));
            }
            What::Act(text) => {
                lines.push(format!("{indent}# {}: {text}", step.path));
                let plan = Plan::new(target.clone(), vec![crate::lab::action(text)?]);
                let planned = dry_run(device, &plan).await?;
                lines.extend(planned.iter().map(|one| format!("{indent}{}", one.command)));
            }
            What::Shell(words) => {
                lines.push(format!("{indent}# {}", step.path));
                let words: Vec<String> =
                    words.iter().map(|word| quoted(word).to_string()).collect();
                lines.push(format!("{indent}{}", words.join(" ")));
            }
            what => lines.push(format!(
                "{indent}# {}: {}",
                step.path,
                crate::lab::describe_step(what)
            )),
        }
    }
    Ok(lines)
}
