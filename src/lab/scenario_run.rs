//! Runs a scenario until its budgets are decided, and judges them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::{BudgetResult, Run, RunError, RunState, SCHEMA_VERSION, ScenarioResult};
use heaptap_lab::scenario::{self, Keep, Scenario};
use heaptap_lab::verdict::{Judgement, Verdict};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::events::{LabEvent, LabEvents};
use super::figures::{self, RunFigure};
use super::judging::Judging;
use super::once::{self, Bench, Over};
use super::recover::{self, Lasting};
use super::state::{Figure, Progress};
use super::steps::{StepFailure, error_of, in_step_of};
use super::{files, install, page, phone};
use crate::device::Device;
use crate::eligibility;
use crate::error::{ErrorClass, Failure};
use crate::provoke::{Cancel, Journals, Target};
use crate::recording::capture_kind::CaptureKind;
use crate::recording::options::RecordOptions;
use crate::session::Store;

/// A scenario to run.
#[derive(Debug, Clone)]
pub struct LabRequest {
    pub scenario: Scenario,
    /// The scenario's file as typed.
    pub file: String,
    /// Its directory, for the files that it names.
    pub base: PathBuf,
    /// SHA-256 of the scenario with its variables replaced.
    pub sha256: String,
    /// Directory of the results.
    pub folder: PathBuf,
    /// Go on with what the directory has.
    pub resume: bool,
    /// Figures of an earlier build; empty if there are none.
    pub baseline: Baseline,
    /// Options of each recording; its output and interval are set for each run.
    pub record: RecordOptions,
    /// Android user or work profile.
    pub user: Option<u32>,
    /// Serial of the device of the same class that stayed away, if this one stands in for it.
    pub instead_of: Option<String>,
}

/// Runs that were void and are repeated, at most.
const VOID_RUNS: usize = 3;

/// What a scenario acts through.
pub struct Tools<'a> {
    pub device: &'a Device,
    pub store: &'a Store,
    pub journals: &'a Journals,
    pub cancel: &'a Cancel,
    pub tell: &'a LabEvents,
}

/// Runs a scenario on one device. Results of each run are in the directory before the next begins.
///
/// # Errors
/// Returns an error if no run could begin: a bad target, a full disk of the host.
pub async fn run(tools: &Tools<'_>, request: &LabRequest) -> Result<ScenarioResult, Failure> {
    let began = Instant::now();
    let scenario = &request.scenario;
    let lasting = Lasting::new(tools.device, tools.cancel, scenario.timeout);
    let facts = lasting.request(|| async { Ok(eligibility::facts(tools.device).await?) });
    let facts = facts.await?;
    let mut progress = match request.resume {
        true => Progress::read(&request.folder, &request.sha256)?,
        false => Progress::new(request.sha256.clone(), now(), scenario.budgets.len()),
    };
    let name = name_of(scenario);
    let target = match Target::parse(name, request.user) {
        // A daemon can be recorded, and not be acted on.
        Err(_) if !scenario.needs_app() => Target {
            package: name.to_owned(),
            process: name.to_owned(),
            user: request.user,
        },
        parsed => parsed?,
    };
    let bench = Bench {
        device: tools.device,
        api: facts.api(),
        store: tools.store,
        journals: tools.journals,
        target: &target,
        cancel: tools.cancel,
        tell: tools.tell,
    };
    let row = phone::device_row(&facts, request.instead_of.clone());
    if !progress.runs.is_empty() && progress.device != row {
        let why = format!(
            "its runs are of {}, or of another build",
            progress.device.serial
        );
        return Err(files::cannot_resume(&request.folder, &why));
    }
    progress.device = row;
    progress.device_class = phone::class_of(scenario, &facts).to_owned();
    if request.resume {
        let collect = || recover::collect(tools.device, tools.store, &request.folder);
        lasting.request(collect).await?;
    }
    if let Some(begun) = progress.begun.take() {
        progress.runs.push(unfinished(begun, &request.folder));
    }
    let judging = Judging {
        scenario,
        interval: interval_of(&request.record),
        baseline: &request.baseline,
    };
    let mut halt = None;
    if !progress.is_set_up {
        if let Some(app) = &scenario.install {
            let (device, package) = (tools.device, &target.package);
            let install = || install::install(device, app, &request.base, package);
            lasting.request(install).await?;
        }
        let failed = Mutex::new(None);
        let note = |failure: StepFailure| {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(failure.error());
            failure.failure
        };
        let set_up = || async {
            let ended = once::set_up(&bench, &scenario.setup, &request.record).await;
            ended.map_err(note)
        };
        if let Err(failure) = lasting.request(set_up).await {
            let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
            halt = Some(in_step_of(failed, &failure));
        }
        progress.is_set_up = halt.is_none();
    }
    let version = || phone::app_version(tools.device, &target.package);
    let version = lasting.request(version).await?;
    if !progress.runs.is_empty() && progress.app_version != version {
        let why = "the app has another version than in its runs";
        return Err(files::cannot_resume(&request.folder, why));
    }
    progress.app_version = version;
    progress.write(&request.folder)?;
    if let Some(error) = halt {
        let number = progress.next_run();
        progress.runs.push(failed_run(number, error));
        return finish(request, &judging, progress, began, None, tools.tell);
    }
    let mut stopped = None;
    while let Some(number) = next(&judging, &progress) {
        (tools.tell)(LabEvent::Run {
            run: number,
            at_most: scenario.repeats.max,
        });
        progress.begun = Some(number);
        progress.write(&request.folder)?;
        let output = request.folder.join(format!("run-{number}"));
        let mut options = request.record.clone();
        options.output = Some(output.clone());
        vary(&mut options, number);
        let over = once::run_once(&bench, scenario, &options, number).await;
        if over.interrupted {
            stopped = Some(ErrorClass::Interrupted);
        }
        let page = files::page_name(&scenario.name, &progress.device, number);
        let read = read(scenario, &over, &output, page, tools.tell).await;
        take(&mut progress, number, over, read, tools.tell);
        progress.begun = None;
        progress.write(&request.folder)?;
        if stopped.is_some() {
            break;
        }
        let last = progress.runs.last();
        if last.is_some_and(|run| run.state == RunState::Void || run.output.is_none()) {
            let back = lasting
                .collect(tools.store, &request.folder, tools.tell)
                .await;
            if let (Err(away), Some(run)) = (back, progress.runs.last_mut()) {
                // The others would fail in the same way.
                run.error = Some(in_step_of(run.error.take(), &away));
                progress.write(&request.folder)?;
                break;
            }
        }
        count(&judging, &progress, number, tools.tell);
    }
    finish(request, &judging, progress, began, stopped, tools.tell)
}

/// Reads the figures of a run that counts, and writes its page. Other devices go on meanwhile.
async fn read(
    scenario: &Scenario,
    over: &Over,
    output: &Path,
    page: String,
    tell: &LabEvents,
) -> Vec<RunFigure> {
    if over.finished.is_none() {
        return Vec::new();
    }
    let (scenario, output, tell) = (scenario.clone(), output.to_owned(), LabEvents::clone(tell));
    let labels = (over.state == RunState::Done).then(|| over.labels.clone());
    let work = tokio::task::spawn_blocking(move || {
        page::write(&output, &output.with_file_name(page), &tell);
        labels.map(|labels| figures::of_run(&output, &scenario, &labels))
    });
    match work.await {
        Ok(figures) => figures.unwrap_or_default(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Vec::new(),
        },
    }
}

/// Adds a run and its figures.
fn take(
    progress: &mut Progress,
    number: usize,
    over: Over,
    figures: Vec<RunFigure>,
    tell: &LabEvents,
) {
    for (of, RunFigure { measured, parts }) in progress.figures.iter_mut().zip(figures) {
        let (measured, missing) = match measured {
            Ok(measured) => (Some(measured), None),
            Err(why) => (None, Some(why)),
        };
        of.push(Figure {
            run: number,
            measured,
            missing,
            parts,
        });
    }
    let kept = over.finished.as_ref().map(|_| format!("run-{number}"));
    tell(LabEvent::RunEnded {
        run: number,
        state: over.state,
        seconds: over.seconds,
        error: over.error.clone(),
    });
    progress.runs.push(Run {
        number,
        state: over.state,
        output: kept,
        seconds: over.seconds,
        error: over.error,
        triggers: over.triggers,
    });
}

/// Returns the number of the next run; `None` if the budgets are decided or cannot be.
fn next(judging: &Judging<'_>, progress: &Progress) -> Option<usize> {
    let scenario = judging.scenario;
    let runs = &progress.runs;
    // A step that fails, fails again: what can be retried has `retry`.
    if runs.iter().any(|run| run.state == RunState::Failed) {
        return None;
    }
    let done = runs
        .iter()
        .filter(|run| run.state == RunState::Done)
        .count();
    let is_spoiled = |run: &&Run| {
        let code = run.error.as_ref().map(|error| error.code);
        run.state == RunState::Void && code != Some(ErrorClass::Interrupted.exit_code())
    };
    let voids = runs.iter().filter(is_spoiled).count();
    let is_over = done >= scenario.repeats.max || voids > VOID_RUNS;
    // A figure that is missing stays so.
    let is_open = |judged: &Result<Judgement, String>| {
        judged
            .as_ref()
            .is_ok_and(|judged| judged.verdict == Verdict::Undecided)
    };
    let is_decided =
        done >= scenario.repeats.min && !judging.all(progress, false).iter().any(is_open);
    (!is_over && !is_decided).then(|| progress.next_run())
}

fn count(judging: &Judging<'_>, progress: &Progress, run: usize, tell: &LabEvents) {
    let mut counts = [0; 3];
    for judged in judging.all(progress, false) {
        counts[match judged.map(|judged| judged.verdict) {
            Ok(Verdict::Within) => 0,
            Ok(Verdict::Over) => 1,
            Ok(Verdict::Undecided) | Err(_) => 2,
        }] += 1;
    }
    let [within, over, undecided] = counts;
    tell(LabEvent::Budgets {
        run,
        within,
        over,
        undecided,
    });
}

/// Judges all budgets, writes the results, and removes recordings that need not be kept.
fn finish(
    request: &LabRequest,
    judging: &Judging<'_>,
    mut progress: Progress,
    began: Instant,
    interrupted: Option<ErrorClass>,
    tell: &LabEvents,
) -> Result<ScenarioResult, Failure> {
    let scenario = &request.scenario;
    let budgets = judging.results(&progress);
    let class = class_of_result(&progress.runs, &budgets, interrupted);
    let mut dropped = Vec::new();
    if class.is_none() && scenario.keep == Keep::OnFailure {
        for run in &mut progress.runs {
            dropped.extend(run.output.take());
        }
        progress.write(&request.folder)?;
    }
    let result = ScenarioResult {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.name.clone(),
        file: request.file.clone(),
        device_class: progress.device_class,
        device: progress.device,
        app_version: progress.app_version,
        started: progress.started,
        seconds: began.elapsed().as_secs_f64(),
        runs: progress.runs,
        budgets,
        exit_code: class.map_or(0, ErrorClass::exit_code),
    };
    files::write(&request.folder, std::slice::from_ref(&result))?;
    // The results are complete without the recordings, and with those that cannot be removed.
    for output in dropped {
        let folder = request.folder.join(output);
        if let Err(error) = std::fs::remove_dir_all(&folder) {
            tell(LabEvent::Warning {
                text: format!("cannot remove {}: {error}", folder.display()),
            });
        }
    }
    Ok(result)
}

/// Returns the class of the exit code. One budget that is surely over decides.
pub(super) fn class_of_result(
    runs: &[Run],
    budgets: &[BudgetResult],
    interrupted: Option<ErrorClass>,
) -> Option<ErrorClass> {
    let is = |wanted: Verdict| {
        budgets.iter().any(|budget| {
            budget
                .judgement
                .as_ref()
                .is_some_and(|j| j.verdict == wanted)
        })
    };
    if is(Verdict::Over) {
        return Some(ErrorClass::Budget);
    }
    if interrupted.is_some() {
        return interrupted;
    }
    let failed = runs.iter().find(|run| run.state == RunState::Failed);
    let void = runs.last().filter(|run| run.state == RunState::Void);
    if let Some(error) = failed.or(void).and_then(|run| run.error.as_ref()) {
        return ErrorClass::of_exit_code(error.code);
    }
    let open = budgets.iter().any(|budget| budget.judgement.is_none());
    (open || is(Verdict::Undecided)).then_some(ErrorClass::Inconclusive)
}

/// Returns the sampling interval in bytes.
fn interval_of(options: &RecordOptions) -> u64 {
    match &options.kind {
        CaptureKind::Native(spec) => spec.interval_bytes,
        _ => 1,
    }
}

/// A process replays its gaps if all runs sample at the same interval, so that their spread is too
/// small: intervals differ by up to 3 %.
fn vary(options: &mut RecordOptions, run: usize) {
    const STEPS: [f64; 5] = [1.0, 1.03, 0.97, 1.015, 0.985];
    if let CaptureKind::Native(spec) = &mut options.kind
        && spec.interval_bytes > 64
    {
        let step = STEPS[(run - 1) % STEPS.len()];
        spec.interval_bytes = (spec.interval_bytes as f64 * step).round() as u64;
    }
}

/// Returns a run during which heaptap was killed, with its recording if it was fetched.
fn unfinished(number: usize, folder: &Path) -> Run {
    let message = "heaptap ended during the run";
    let failure = Failure::new(ErrorClass::Interrupted, "interrupted", message);
    let output = format!("run-{number}");
    let is_complete = folder.join(&output).join("manifest.json").is_file();
    Run {
        state: RunState::Void,
        output: is_complete.then_some(output),
        ..failed_run(number, error_of(&failure))
    }
}

pub(super) fn failed_run(number: usize, error: RunError) -> Run {
    Run {
        number,
        state: RunState::Failed,
        output: None,
        seconds: 0.0,
        error: Some(error),
        triggers: Vec::new(),
    }
}

/// Returns the name of the process or package that the scenario acts on.
pub fn name_of(scenario: &Scenario) -> &str {
    match &scenario.target {
        scenario::Target::Name(name) | scenario::Target::Package(name) => name,
    }
}

pub(super) fn now() -> String {
    let now = OffsetDateTime::now_utc();
    let now = now.replace_nanosecond(0).unwrap_or(now);
    now.format(&Rfc3339).unwrap_or_default()
}
