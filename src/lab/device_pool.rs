//! Scenarios on several devices side by side. Each device runs its scenarios one after another;
//! results are in a directory of each, and together in the directory above.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use heaptap_lab::results::{Device as DeviceRow, SCHEMA_VERSION, ScenarioResult};
use heaptap_lab::scenario::DEFAULT_CLASS;
use heaptap_lab::verdict;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

use super::device_lock::DeviceLock;
use super::events::{DeviceEvent, LabEvent, LabEvents};
use super::failures::{error_of, interrupted};
use super::phone;
use super::recover::Lasting;
use super::run_record;
use super::scenario_run::{self, Ended, LabRequest, Tools};
use super::state::Progress;
use super::{files, judging};
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility::DeviceFacts;
use heaptap_capture::provoke::{Cancel, Journals};
use heaptap_capture::session::Store;

/// A device with its scenarios, each with a directory of its own.
#[derive(Clone)]
pub struct Phone {
    pub device: Device,
    /// Name in the results: its serial number, with several servers after their address; or the
    /// address of a server that does not answer.
    pub name: String,
    pub requests: Vec<LabRequest>,
    /// Why nothing can run on it.
    pub obstacle: Option<Failure>,
}

/// What all devices share.
#[derive(Clone)]
pub struct Night {
    pub store: Store,
    pub journals: Journals,
    pub cancel: Cancel,
    /// Number of devices at the same time.
    pub jobs: usize,
    /// Time to wait for a device that another heaptap uses.
    pub patience: Duration,
    pub tell: Arc<dyn Fn(DeviceEvent) + Send + Sync>,
}

/// Outcome of a scenario on a device.
#[derive(Debug)]
pub struct Done {
    pub result: ScenarioResult,
    /// The user interrupted it.
    pub interrupted: bool,
    /// The error, if the scenario could not begin or go on.
    pub failure: Option<Failure>,
    /// The class of the device is known: it has answered.
    pub has_class: bool,
}

/// Runs all scenarios on all devices. A device that fails does not end the others. If one stays
/// away, another of its class stands in for it.
pub async fn run(night: &Night, phones: Vec<Phone>) -> Vec<Done> {
    let mut done = side_by_side(night, phones.clone()).await;
    let substitutes = stand_ins(night, &phones, &done);
    let places: Vec<&Vec<Place>> = substitutes.values().map(|(places, _)| places).collect();
    let stand_ins = substitutes
        .values()
        .map(|(_, phone)| phone.clone())
        .collect();
    for (places, ended) in places.into_iter().zip(side_by_side(night, stand_ins).await) {
        for (&(phone, at), ended) in places.iter().zip(ended) {
            // Of two that stayed away, the first is reported.
            if !is_away(&ended) {
                done[phone][at] = ended;
            }
        }
    }
    done.into_iter().flatten().collect()
}

/// Returns what is done on each device, in their order.
async fn side_by_side(night: &Night, phones: Vec<Phone>) -> Vec<Vec<Done>> {
    let gate = Arc::new(Semaphore::new(night.jobs.max(1)));
    let mut work = JoinSet::new();
    let mut ids = Vec::new();
    for phone in phones.iter().cloned() {
        let (night, gate) = (night.clone(), Arc::clone(&gate));
        let task = work.spawn(async move {
            // The semaphore is never closed.
            let _turn = gate.acquire().await;
            on_phone(&night, phone).await
        });
        ids.push(task.id());
    }
    let mut done = BTreeMap::new();
    while let Some(joined) = work.join_next_with_id().await {
        let (id, all) = match joined {
            Ok((id, all)) => (id, Some(all)),
            Err(error) => (error.id(), None),
        };
        if let Some(at) = ids.iter().position(|known| *known == id) {
            // A bug that one device meets does not end the others.
            done.insert(at, all.unwrap_or_else(|| all_with_bug(&phones[at])));
        }
    }
    done.into_values().collect()
}

/// Returns the results of a device whose task panicked, which has been reported.
fn all_with_bug(phone: &Phone) -> Vec<Done> {
    let failed = |request: &LabRequest| {
        let message = format!("a bug in heaptap ended the runs on {}", phone.name);
        let failure = Failure::new(ErrorClass::Bug, "bug", message)
            .with_help("run the same command with `-o DIR --resume`");
        ended_with(request, &phone.name, None, failure)
    };
    phone.requests.iter().map(failed).collect()
}

/// A device and one of its scenarios.
type Place = (usize, usize);

/// Returns whether the device stayed away.
fn is_away(done: &Done) -> bool {
    done.result.exit_code == ErrorClass::NoDevice.exit_code()
}

/// Returns the devices that stand in for others, with the places of the results that they replace.
/// A device stands in for one of its class if the scenario defines the class, which says that its
/// devices are alike.
fn stand_ins(
    night: &Night,
    phones: &[Phone],
    done: &[Vec<Done>],
) -> BTreeMap<usize, (Vec<Place>, Phone)> {
    let mut found: BTreeMap<usize, (Vec<Place>, Phone)> = BTreeMap::new();
    let ended = |place: Place| done.get(place.0).and_then(|done| done.get(place.1));
    if done.iter().flatten().any(|done| done.interrupted) {
        return found;
    }
    for (at, phone) in phones.iter().enumerate() {
        for (which, request) in phone.requests.iter().enumerate() {
            let Some(away) = ended((at, which)).filter(|done| is_away(done)) else {
                continue;
            };
            // The class of a device that never answered is unknown.
            if !away.has_class || away.result.device_class == DEFAULT_CLASS {
                continue;
            }
            let is_present = |other: &usize| {
                let mut all = done[*other].iter();
                let same = all.find(|done| done.result.scenario == request.scenario.name);
                same.is_some_and(|same| {
                    !is_away(same)
                        && same.has_class
                        && same.result.device_class == away.result.device_class
                })
            };
            let present = (0..done.len()).filter(is_present);
            let load = |other: &usize| found.get(other).map_or(0, |(places, _)| places.len());
            let Some(free) = present.min_by_key(load) else {
                continue;
            };
            let (name, away) = (&phones[free].name, &phone.name);
            (night.tell)(DeviceEvent {
                serial: name.clone(),
                event: LabEvent::Warning {
                    text: format!("stands in for {away}, which stays away"),
                },
            });
            let (places, stand_in) = found.entry(free).or_insert_with(|| {
                let phone = Phone {
                    requests: Vec::new(),
                    ..phones[free].clone()
                };
                (Vec::new(), phone)
            });
            places.push((at, which));
            stand_in.requests.push(in_place_of(request, away, name));
        }
    }
    found
}

/// Returns a request for another device, in a directory of its own.
fn in_place_of(request: &LabRequest, away: &str, name: &str) -> LabRequest {
    let row = DeviceRow {
        serial: name.to_owned(),
        instead_of: Some(away.to_owned()),
        ..DeviceRow::default()
    };
    let part = files::part_name(&request.scenario.name, &row.name());
    let directory = request.night.join(part);
    // If it cannot be created, the first write reports that.
    let _ = std::fs::create_dir_all(&directory);
    LabRequest {
        // A new night has an empty directory.
        resume: directory.join(files::PROGRESS).is_file(),
        directory,
        instead_of: row.instead_of,
        ..request.clone()
    }
}

async fn on_phone(night: &Night, phone: Phone) -> Vec<Done> {
    let serial = phone.name.clone();
    let tell: LabEvents = {
        let (tell, serial) = (Arc::clone(&night.tell), serial.clone());
        Arc::new(move |event| {
            tell(DeviceEvent {
                serial: serial.clone(),
                event,
            });
        })
    };
    let waits = || {
        tell(LabEvent::Warning {
            text: "another heaptap runs a scenario on the device; waiting for it".to_owned(),
        });
    };
    let limits = phone.requests.iter().map(|one| one.scenario.timeout);
    let longest = limits.max().unwrap_or_default();
    let lasting = Lasting::new(&phone.device, &night.cancel, longest);
    let acquire = || DeviceLock::acquire(&night.store, &phone.device, night.patience, waits);
    let lock = match phone.obstacle {
        Some(obstacle) => Err(obstacle),
        None => tokio::select! {
            lock = lasting.request(acquire) => lock,
            () = night.cancel.wait() => Err(interrupted()),
        },
    };
    let (lock, mut refused) = match lock {
        Ok(lock) => (Some(lock), None),
        Err(failure) => (None, Some(failure)),
    };
    let facts = OnceCell::new();
    let mut done = Vec::new();
    let mut directories = Vec::new();
    for request in phone.requests {
        directories.push(request.directory.clone());
        let scenario = request.scenario.name.clone();
        tell(LabEvent::Scenario {
            scenario: scenario.clone(),
        });
        let ended = match refused.take() {
            Some(failure) => Err(failure),
            None => {
                let tools = Tools {
                    device: &phone.device,
                    name: &phone.name,
                    facts: &facts,
                    store: &night.store,
                    journals: &night.journals,
                    cancel: &night.cancel,
                    tell: &tell,
                };
                tokio::select! {
                    ended = Box::pin(scenario_run::run(&tools, &request)) => ended,
                    () = lost(lock.as_ref()) => Err(taken_over(&serial)),
                }
            }
        };
        // What keeps one scenario from the device keeps the next ones, too.
        if let Err(failure) = &ended {
            let is_lasting = matches!(
                failure.class,
                ErrorClass::NoDevice | ErrorClass::Interrupted
            ) || failure.kind == "device-busy"
                || lock.is_none();
            refused = is_lasting.then(|| failure.clone());
        }
        if ended.as_ref().is_ok_and(|ended| ended.interrupted) {
            refused = Some(interrupted());
        }
        done.push(match ended {
            Ok(Ended {
                result,
                interrupted,
            }) => Done {
                result,
                interrupted,
                failure: None,
                has_class: true,
            },
            Err(failure) => ended_with(&request, &serial, facts.get(), failure),
        });
        let exit_code = done.last().map_or(0, |done| done.result.exit_code);
        tell(LabEvent::ScenarioEnded {
            scenario,
            exit_code,
        });
    }
    judge_cells(&mut done, &directories, &tell);
    done
}

async fn lost(lock: Option<&DeviceLock>) {
    match lock {
        Some(lock) => lock.lost().await,
        None => std::future::pending().await,
    }
}

fn taken_over(serial: &str) -> Failure {
    let message = format!("another heaptap took {serial} while this one was suspended");
    Failure::new(ErrorClass::Device, "device-busy", message)
        .with_help("run the same command with `--resume`")
}

/// Judges the budgets of all cells of a matrix as one family: chance alone then fails the family as
/// rarely as one budget. Writes the results that change.
fn judge_cells(done: &mut [Done], directories: &[PathBuf], tell: &LabEvents) {
    let budgets = |one: &Done| one.result.budgets.clone();
    let before: Vec<_> = done.iter().map(budgets).collect();
    for cells in done.chunk_by_mut(|a, b| a.result.file == b.result.file) {
        let budgets = cells.iter_mut().flat_map(|cell| &mut cell.result.budgets);
        verdict::holm(budgets.filter_map(|budget| budget.judgement.as_mut()));
    }
    for ((one, before), directory) in done.iter_mut().zip(before).zip(directories) {
        if one.result.budgets == before {
            continue;
        }
        let result = &mut one.result;
        let class = scenario_run::class_of_result(&result.runs, &result.budgets, one.interrupted);
        result.exit_code = class.map_or(0, ErrorClass::exit_code);
        if let Err(failure) = files::write(directory, result) {
            tell(LabEvent::Warning {
                text: failure.message,
            });
        }
    }
}

/// Returns the outcome of a scenario that could not begin or go on, so that the results name every
/// device.
fn ended_with(
    request: &LabRequest,
    name: &str,
    facts: Option<&DeviceFacts>,
    failure: Failure,
) -> Done {
    let so_far = scenario_run::so_far(request, &failure);
    let has_class = facts.is_some() || so_far.is_some();
    let result = so_far.unwrap_or_else(|| {
        let result = not_begun(request, name, facts, &failure);
        // Results that are there can be of another scenario.
        let is_free = !request.directory.join(files::RESULT).exists()
            || Progress::read(&request.directory, &request.sha256).is_ok();
        if is_free && failure.kind != "cannot-resume" {
            // CI systems read the files also if nothing ran. The error itself is reported anyway.
            let _ = files::write(&request.directory, &result);
        }
        result
    });
    Done {
        has_class,
        interrupted: failure.class == ErrorClass::Interrupted,
        result,
        failure: Some(failure),
    }
}

fn not_begun(
    request: &LabRequest,
    name: &str,
    facts: Option<&DeviceFacts>,
    failure: &Failure,
) -> ScenarioResult {
    let scenario = &request.scenario;
    let budgets = scenario.budgets.iter();
    let instead_of = request.instead_of.clone();
    let (device, class) = match facts {
        Some(facts) => (
            phone::device_row(name, facts, instead_of),
            phone::class_of(scenario, facts),
        ),
        None => {
            let row = DeviceRow {
                serial: name.to_owned(),
                instead_of,
                ..DeviceRow::default()
            };
            (row, DEFAULT_CLASS)
        }
    };
    ScenarioResult {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.name.clone(),
        file: request.file.clone(),
        device_class: class.to_owned(),
        device,
        app_version: None,
        old_app_version: None,
        started: scenario_run::now(),
        seconds: 0.0,
        runs: vec![run_record::failed_run(1, error_of(failure))],
        budgets: budgets
            .map(|budget| judging::unmeasured(budget, "no run was completed"))
            .collect(),
        exit_code: failure.class.exit_code(),
    }
}

/// Returns the class of the exit code of several results. One budget that is surely over decides.
pub fn class_of(all: &[ScenarioResult]) -> Option<ErrorClass> {
    let classes = all
        .iter()
        .map(|result| ErrorClass::of_exit_code(result.exit_code));
    let classes: Vec<ErrorClass> = classes.flatten().collect();
    match classes.contains(&ErrorClass::Budget) {
        true => Some(ErrorClass::Budget),
        false => ErrorClass::first_of(classes),
    }
}

#[cfg(test)]
mod tests {
    use heaptap_lab::results::BudgetResult;
    use heaptap_lab::verdict::{Judgement, Measured, Verdict};

    use super::*;

    /// A cell whose only budget is over, as chance explains once in 100 times.
    fn cell(file: &str) -> Done {
        let judgement = Judgement {
            verdict: Verdict::Over,
            mean: 2.0,
            lower: 1.0,
            upper: 3.0,
            limit: 1.0,
            runs: 3,
            earlier_runs: 0,
            confidence: 0.98,
            p_over: 0.01,
            why: None,
        };
        let budget = BudgetResult {
            name: "a".to_owned(),
            what: String::new(),
            unit: heaptap_lab::results::Unit::Bytes,
            line: 1,
            judgement: Some(judgement),
            missing: None,
            figures: vec![Measured {
                value: 2.0,
                samples: None,
            }],
            pairs: Vec::new(),
            change: None,
            parts: Vec::new(),
            excess: Vec::new(),
            history: Vec::new(),
        };
        let result = ScenarioResult {
            schema_version: SCHEMA_VERSION,
            scenario: "a".to_owned(),
            file: file.to_owned(),
            device_class: DEFAULT_CLASS.to_owned(),
            device: DeviceRow::default(),
            app_version: None,
            old_app_version: None,
            started: String::new(),
            seconds: 0.0,
            runs: Vec::new(),
            budgets: vec![budget],
            exit_code: ErrorClass::Budget.exit_code(),
        };
        Done {
            result,
            interrupted: false,
            failure: None,
            has_class: true,
        }
    }

    #[test]
    fn cells_of_a_matrix_are_one_family_and_scenarios_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let directories = vec![directory.path().to_owned(); 4];
        let quiet: LabEvents = Arc::new(|_| {});
        let codes = |files: [&str; 4]| {
            let mut done = files.map(cell);
            judge_cells(&mut done, &directories, &quiet);
            done.map(|one| one.result.exit_code)
        };
        assert_eq!(codes(["a", "b", "c", "d"]), [9; 4]);
        assert_eq!(codes(["a", "a", "a", "b"]), [12, 12, 12, 9]);
        let written = files::read(directory.path()).unwrap();
        assert_eq!(written.exit_code, 12);
    }
}
