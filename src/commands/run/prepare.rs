//! `run`: reads a scenario, and prepares it for a device.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use heaptap_lab::baseline::Baseline;
use heaptap_lab::scenario::{
    self, Actions, Budget, Figure, Install, Problems, Record, Scenario, Target,
};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use super::args::Args;
use super::devices;
use crate::console::flags::context::Context;
use crate::lab::device_pool::Phone;
use crate::lab::scenario_run::LabRequest;
use crate::lab::{baseline_file, files, install, is_of_class};
use crate::names::options::NameOptions;
use crate::recording::capture_kind::CaptureKind;
use crate::recording::companion_options::CompanionOptions;
use crate::recording::options::RecordOptions;
use android_memory::meminfo::explain;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::is_slip;
use heaptap_base::units;
use heaptap_capture::config::{self, ConfigFile, Options, Targets};
use heaptap_capture::provoke::{Action, catalog};
use heaptap_capture::session::SessionId;
use heaptap_results::file_names::{default_name, file_name};

/// Shorter rows are too similar to judge.
const MIN_ROW_CHARS: usize = 6;
/// Maximum size of a scenario in bytes.
const MAX_BYTES: u64 = scenario::MAX_BYTES as u64;

/// Reads a scenario, or those of its matrix.
///
/// # Errors
/// Returns an error if the file cannot be read, or the list of its problems.
pub fn read(path: &Path) -> Result<Vec<Scenario>, Failure> {
    let name = path.display().to_string();
    let unreadable = |why: String| {
        Failure::new(
            ErrorClass::BadInput,
            "input-unreadable",
            format!("cannot read {name}: {why}"),
        )
        .with_help("`heaptap run --init PACKAGE` prints a first scenario")
    };
    let bytes = heaptap_base::bytes::Bytes::read(path, MAX_BYTES);
    let bytes = bytes.map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 1 MiB".to_owned()));
    }
    let plain = heaptap_base::text::plain(&bytes);
    let text = std::str::from_utf8(&plain).map_err(|_| unreadable("it is not text".to_owned()))?;
    let environment = |name: &str| std::env::var(name).ok();
    let parsed = with_actions(|actions| Scenario::parse(text, &name, &environment, actions));
    let scenarios = parsed.map_err(|problems| refused(&problems))?;
    let mut budgets = scenarios.iter().flat_map(|scenario| &scenario.budgets);
    match budgets.find_map(|budget| Some((budget, misspelled_row(budget)?))) {
        None => Ok(scenarios),
        Some((budget, (row, near))) => {
            let (line, budget) = (budget.line, &budget.name);
            let message = format!("{name}:{line}: budget {budget}: meminfo has no row {row}");
            let failure = Failure::new(ErrorClass::BadInput, "bad-scenario", message);
            Err(failure.with_help(format!("did you mean {near}?")))
        }
    }
}

/// Returns the row of meminfo that a budget misspells, and the one it means. Android versions and
/// vendors have rows of their own, so others are accepted.
fn misspelled_row(budget: &Budget) -> Option<(&str, &'static str)> {
    let Figure::Meminfo { row } = &budget.figure else {
        return None;
    };
    let is_known = explain::rows().any(|known| known.eq_ignore_ascii_case(row));
    if is_known || row.len() < MIN_ROW_CHARS {
        return None;
    }
    let lower = row.to_lowercase();
    let near = explain::rows().find(|known| is_slip(&lower, &known.to_lowercase()));
    near.map(|near| (row.as_str(), near))
}

/// Passes the actions of `provoke` to the language of scenarios, which does not know them.
pub fn with_actions<T>(work: impl FnOnce(&Actions<'_>) -> T) -> T {
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

/// Returns the default directory of the results.
pub fn default_directory(requests: &[LabRequest]) -> PathBuf {
    let stem = match requests {
        [only] => file_name(&only.scenario.name),
        _ => "scenarios".to_owned(),
    };
    PathBuf::from(default_name(
        &stem,
        OffsetDateTime::now_utc(),
        &SessionId::random(),
    ))
}

/// Returns part `at` of `of` of the scenarios: every `of`-th one, in the typed order.
pub fn shard(paths: &[PathBuf], part: Option<(usize, usize)>) -> Vec<&PathBuf> {
    let (at, of) = part.unwrap_or((1, 1));
    paths.iter().skip(at - 1).step_by(of).collect()
}

/// Refuses two scenarios of one name, whose results could not be told apart.
///
/// # Errors
/// Returns an error that names both files.
pub fn check_names(scenarios: &[(PathBuf, Scenario)]) -> Result<(), Failure> {
    for (at, (path, scenario)) in scenarios.iter().enumerate() {
        let earlier = scenarios[..at].iter();
        if let Some((other, _)) = earlier.clone().find(|(_, one)| one.name == scenario.name) {
            let message = format!(
                "{} and {} have the same name: {}",
                other.display(),
                path.display(),
                scenario.name
            );
            return Err(Failure::new(ErrorClass::BadInput, "bad-scenario", message)
                .with_help("change `name` in one of them"));
        }
    }
    Ok(())
}

/// Returns the scenario of the result in a directory.
///
/// # Errors
/// Returns an error if the directory has no result of exactly one of the scenarios.
pub fn of_result(
    mut scenarios: Vec<(PathBuf, Scenario)>,
    directory: &Path,
) -> Result<Scenario, Failure> {
    let name = files::read(directory)?.scenario;
    match scenarios.iter().position(|(_, one)| one.name == name) {
        Some(at) => Ok(scenarios.swap_remove(at).1),
        None => {
            let message = format!(
                "{} has the result of another scenario: {name}",
                directory.display()
            );
            Err(Failure::usage(message))
        }
    }
}

/// Returns the devices with their scenarios, each with its directory: `directory` itself for one
/// scenario on one device, and for the one whose runs it has already.
///
/// # Errors
/// Returns an error if no device is selected, or if what is resumed cannot be read.
pub async fn phones(
    ctx: &Context,
    args: &Args,
    directory: &Path,
    requests: &[LabRequest],
) -> Result<Vec<Phone>, Failure> {
    if let Some(class) = &args.device_class {
        check_class(class, requests)?;
    }
    let mut phones = Vec::new();
    let mut present = Vec::new();
    let begun = match args.resume && args.all_devices {
        true => files::devices_of(directory),
        false => Vec::new(),
    };
    for one in devices::choose(ctx, args.all_devices).await? {
        if let Some(obstacle) = &one.obstacle {
            // It is waited for, as if it were not listed.
            if begun.contains(&one.name) {
                continue;
            }
            // A device that cannot be asked can be of another class; a server has devices of all.
            if args.device_class.is_some() && !devices::is_server(&one) {
                ctx.console
                    .warn(format_args!("{}: {}", one.name, obstacle.message));
                continue;
            }
        }
        present.push(one.name.clone());
        let mut own = Vec::new();
        for request in requests {
            let is_wanted = match &args.device_class {
                // A device that cannot be asked is in the results as one that failed.
                Some(class) if one.obstacle.is_none() => {
                    is_of_class(&request.scenario, &one.device, class)
                        .await
                        .unwrap_or(true)
                }
                _ => true,
            };
            if is_wanted {
                own.push(request.clone());
            }
        }
        if !own.is_empty() {
            phones.push(Phone {
                requests: own,
                ..one
            });
        }
    }
    if phones.is_empty() {
        let class = args.device_class.as_deref().unwrap_or_default();
        let message = format!("no device is of the class {class}");
        return Err(
            Failure::new(ErrorClass::NoDevice, "no-device", message).with_help(
                "`devices` in the scenario defines classes; `heaptap devices` lists devices",
            ),
        );
    }
    if args.resume && args.all_devices {
        phones.extend(gone(ctx, directory, requests, &present).await?);
    }
    let is_one = phones.len() == 1 && requests.len() == 1;
    let begun = match args.resume {
        true => files::begun_in(directory)?,
        false => None,
    };
    for phone in &mut phones {
        // What is resumed can have begun with fewer devices or scenarios.
        let begun = begun.as_ref().filter(|it| it.device.serial == phone.name);
        let own = begun.map(|begun| {
            let mut all = phone.requests.iter();
            // Of a scenario that changed, the first one reports that.
            all.position(|request| request.sha256 == begun.scenario_sha256)
                .unwrap_or(0)
        });
        for (at, request) in phone.requests.iter_mut().enumerate() {
            let part = directory.join(files::part_name(&request.scenario.name, &phone.name));
            // It can have begun with more, too.
            let is_alone = is_one && !(args.resume && part.is_dir());
            request.directory = match is_alone || own == Some(at) {
                true => directory.to_owned(),
                false => part,
            };
            request.night = directory.to_owned();
            request.resume = args.resume && request.directory.join(files::PROGRESS).is_file();
            std::fs::create_dir_all(&request.directory).map_err(|error| {
                let message = format!("cannot write {}: {error}", request.directory.display());
                Failure::new(ErrorClass::HostWrite, "host-write", message)
            })?;
        }
    }
    Ok(phones)
}

/// Returns the devices that have begun in a directory and are not at hand: they are waited for, as
/// during the runs, and are in the results if they stay away.
async fn gone(
    ctx: &Context,
    directory: &Path,
    requests: &[LabRequest],
    present: &[String],
) -> Result<Vec<Phone>, Failure> {
    let mut gone = Vec::new();
    let at_hand = devices::at_hand(ctx).await?;
    let whole = files::begun_in(directory).ok().flatten();
    for name in files::devices_of(directory) {
        if present.contains(&name) {
            continue;
        }
        let has_begun = |request: &&LabRequest| {
            let part = files::part_name(&request.scenario.name, &name);
            let is_whole = whole.as_ref().is_some_and(|begun| {
                begun.device.serial == name && begun.scenario_sha256 == request.sha256
            });
            is_whole || directory.join(part).is_dir()
        };
        let requests: Vec<LabRequest> = requests.iter().filter(has_begun).cloned().collect();
        if let Some(one) = devices::absent(&at_hand, &name).filter(|_| !requests.is_empty()) {
            gone.push(Phone { requests, ..one });
        }
    }
    Ok(gone)
}

/// What all scenarios of a command share.
pub struct Shared<'a> {
    /// Baseline of the only scenario, if it is named.
    pub baseline: Option<&'a Path>,
    /// The baselines are written at the end.
    pub update: bool,
    /// APKs of the old build.
    pub against: &'a [String],
    pub names: NameOptions,
    pub user: Option<u32>,
    /// SHA-256 of the APKs so far: cells of a matrix install the same ones.
    pub hashes: HashMap<PathBuf, String>,
}

/// Refuses a device class that no scenario defines.
fn check_class(class: &str, requests: &[LabRequest]) -> Result<(), Failure> {
    let known = requests.iter().flat_map(|one| &one.scenario.devices);
    let known: Vec<&str> = known.map(|one| one.name.as_str()).collect();
    if class == scenario::DEFAULT_CLASS || known.contains(&class) {
        return Ok(());
    }
    let message = format!("no scenario has the device class {class}");
    let help = match known.is_empty() {
        true => "`devices` in a scenario defines classes".to_owned(),
        false => format!(
            "use one of {}, {}",
            known.join(", "),
            scenario::DEFAULT_CLASS
        ),
    };
    Err(Failure::new(ErrorClass::Usage, "bad-value", message).with_help(help))
}

/// Prepares a scenario for a device.
///
/// # Errors
/// Returns an error if an APK cannot be read, or an option of the recording is refused.
pub fn request(
    scenario: Scenario,
    path: &Path,
    shared: &mut Shared<'_>,
) -> Result<LabRequest, Failure> {
    let Shared { against, user, .. } = *shared;
    let baseline = match shared.baseline {
        // The first figures of a new file have nothing to compare with.
        Some(new) if shared.update && !new.exists() => Baseline::default(),
        named => {
            let path = baseline_path(&scenario, path, named);
            baseline_file::read(&path, named.is_some())?
        }
    };
    let base = path.parent().unwrap_or(Path::new("")).to_owned();
    let against = (!against.is_empty()).then(|| Install {
        apk: against.to_vec(),
        keep_data: scenario.install.as_ref().is_none_or(|new| new.keep_data),
    });
    let apps = scenario.install.iter().map(|app| (app, base.as_path()));
    let apps = apps.chain(against.iter().map(|app| (app, Path::new(""))));
    let mut hash = Sha256::new();
    hash.update(format!("{scenario:?}"));
    // Figures of another build of the same version do not mix.
    for (app, base) in apps {
        for apk in &app.apk {
            let path = base.join(apk);
            let known = match shared.hashes.entry(path) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let bytes = install::open(new.key())?;
                    new.insert(units::hex(&Sha256::digest(&bytes)))
                }
            };
            hash.update(known.as_bytes());
        }
    }
    if against.is_some() && scenario.install.is_none() {
        return Err(no_new_build(&scenario));
    }
    let record = record_options(&scenario, &base, shared.names.clone(), user)?;
    Ok(LabRequest {
        against,
        sha256: units::hex(&hash.finalize()),
        file: path.display().to_string(),
        base,
        // Chosen for each device.
        directory: PathBuf::new(),
        night: PathBuf::new(),
        resume: false,
        baseline,
        updates_baseline: shared.update,
        record,
        user,
        instead_of: None,
        scenario,
    })
}

/// Returns the failure of `--against` for a scenario that does not install an app.
fn no_new_build(scenario: &Scenario) -> Failure {
    let message = format!(
        "--against needs the new build: {} has no `install`",
        scenario.name
    );
    Failure::usage(message).with_help("add `install: {apk: FILE}` to the scenario")
}

/// Returns the path of the baseline: the named one, or next to the scenario. Each cell of a matrix
/// has its own: `login[locale=ar-EG].baseline`.
pub fn baseline_path(scenario: &Scenario, path: &Path, named: Option<&Path>) -> PathBuf {
    if let Some(named) = named {
        return named.to_owned();
    }
    let own = path.with_extension("baseline");
    let cell = scenario
        .name
        .split_once('[')
        .filter(|_| !scenario.cell.is_empty());
    match (cell, path.file_stem()) {
        (Some((_, cell)), Some(stem)) => {
            own.with_file_name(format!("{}[{cell}.baseline", stem.to_string_lossy()))
        }
        _ => own,
    }
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
        max_file,
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
    if max_file.is_some() {
        resolved.spec.template.max_file_size_bytes = *max_file;
    }
    Ok(RecordOptions {
        companions,
        force: *no_check,
        snapshots: resolved.snapshots,
        user,
        ..RecordOptions::new(CaptureKind::Native(Box::new(resolved.spec)), names)
    })
}
