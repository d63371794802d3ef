//! Runs a scenario until its budgets are decided, and judges them.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use heaptap_lab::results::{BudgetResult, Run, RunState, SCHEMA_VERSION, ScenarioResult};
use heaptap_lab::scenario::{self, Keep, Scenario};
use heaptap_lab::verdict::{Judgement, Verdict};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::events::{LabEvent, LabEvents};
use super::judging::Judging;
use super::once::{self, Bench};
use super::recover::Lasting;
pub use super::request::{LabRequest, Tools};
use super::state::Progress;
use super::steps::{StepFailure, in_step_of};
use super::{builds, conditions, files, install, phone, resume, taken};
use crate::eligibility;
use crate::error::{ErrorClass, Failure};
use crate::provoke::{self, Target};
use crate::recording::capture_kind::CaptureKind;
use crate::recording::options::RecordOptions;

/// Runs that were void and are repeated, at most.
const VOID_RUNS: usize = 3;

/// Runs a scenario on one device. Results of each run are in the directory before the next begins.
///
/// # Errors
/// Returns an error if no run could begin: a bad target, a full disk of the host.
pub async fn run(tools: &Tools<'_>, request: &LabRequest) -> Result<ScenarioResult, Failure> {
    tools.cancel.check()?;
    let began = Instant::now();
    let scenario = &request.scenario;
    let lasting = Lasting::new(tools.device, tools.cancel, scenario.timeout);
    let facts = lasting.request(|| async { Ok(eligibility::facts(tools.device).await?) });
    let facts = facts.await?;
    let mut progress = match request.resume {
        true => Progress::read(&request.folder, &request.sha256)?,
        false => Progress::new(request.sha256.clone(), now(), scenario.budgets.len()),
    };
    progress.two_builds = request.against.is_some();
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
    let row = phone::device_row(tools.name, &facts, request.instead_of.clone());
    if !progress.runs.is_empty() && progress.device != row {
        let why = format!(
            "its runs are of {}, or of another build",
            progress.device.serial
        );
        return Err(files::cannot_resume(&request.folder, &why));
    }
    progress.device = row;
    progress.device_class = phone::class_of(scenario, &facts).to_owned();
    // What an earlier run or action could not restore.
    let restore = || async { Ok(provoke::restore(tools.device, tools.journals).await?) };
    lasting.request(restore).await?;
    if request.resume {
        Box::pin(resume::complete(
            tools,
            &lasting,
            request,
            &target,
            &mut progress,
        ))
        .await?;
    }
    let judging = Judging {
        scenario,
        interval: interval_of(&request.record),
        baseline: &request.baseline,
    };
    let mut halt = None;
    // Of two builds, each run installs its own.
    if !progress.is_set_up && !progress.two_builds {
        if let Some(app) = &scenario.install {
            let (device, package) = (tools.device, &target.package);
            let install = || install::install(device, app, &request.base, package, tools.cancel);
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
    if !progress.two_builds {
        let version = || phone::app_version(tools.device, &target.package);
        let version = lasting.request(version).await?;
        if !progress.runs.is_empty() && progress.app_version != version {
            let why = "the app has another version than in its runs";
            return Err(files::cannot_resume(&request.folder, why));
        }
        progress.app_version = version;
    }
    progress.write(&request.folder)?;
    if let Some(error) = halt {
        let number = progress.next_run();
        progress.runs.push(taken::failed_run(number, error));
        return finish(request, &judging, progress, began, None, tools.tell);
    }
    let mut stopped = None;
    while let Some(number) = next(&judging, &progress) {
        if tools.cancel.check().is_err() {
            stopped = Some(ErrorClass::Interrupted);
            break;
        }
        (tools.tell)(LabEvent::Run {
            run: number,
            at_most: progress.runs_of(scenario.repeats.max),
            build: progress.next_build(),
        });
        progress.begin(number);
        progress.write(&request.folder)?;
        let put = Box::pin(builds::begin(&bench, request, &mut progress)).await;
        let on_performed = |performed| {
            let mut progress = progress.clone();
            progress.begin(number).performed = Some(performed);
            // Without it, `--resume` repeats the run.
            let _ = progress.write(&request.folder);
        };
        let mut options = request.record.clone();
        options.output = Some(request.folder.join(files::run_name(number)));
        vary(&mut options, number);
        let (over, conditions) = match put {
            Ok(()) => {
                let run = once::run_once(&bench, scenario, &options, number, &on_performed);
                Box::pin(conditions::watched(&bench, scenario, Box::pin(run))).await
            }
            Err(over) => (*over, None),
        };
        if over.interrupted {
            stopped = Some(ErrorClass::Interrupted);
        }
        let figures = match &over.finished {
            Some(_) => {
                let labels = (over.state == RunState::Done).then_some(over.labels);
                taken::read(request, &progress, number, labels, tools.tell).await
            }
            None => Vec::new(),
        };
        let run = Run {
            number,
            state: over.state,
            build: progress.next_build(),
            output: over.finished.as_ref().map(|_| files::run_name(number)),
            seconds: over.seconds,
            error: over.error,
            conditions,
            triggers: over.triggers,
        };
        taken::take(&mut progress, run, figures, tools.tell);
        progress.write(&request.folder)?;
        // Only now is the session forgotten.
        drop(over.finished);
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
        if !progress.repeats().1 {
            count(&judging, &progress, number, tools.tell);
        }
    }
    conditions::restore(&bench, scenario).await;
    builds::end(&bench, request, &mut progress).await;
    finish(request, &judging, progress, began, stopped, tools.tell)
}

/// Returns the number of the next run; `None` if the budgets are decided or cannot be.
fn next(judging: &Judging<'_>, progress: &Progress) -> Option<usize> {
    let scenario = judging.scenario;
    let runs = &progress.runs;
    // A step that fails, fails again: what can be retried has `retry`.
    if runs.iter().any(|run| run.state == RunState::Failed) {
        return None;
    }
    let (done, is_partial) = progress.repeats();
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
    let is_decided = !is_partial
        && done >= scenario.repeats.min
        && !judging.all(progress, false).iter().any(is_open);
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
            run.output = None;
            dropped.push(files::run_name(run.number));
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
        old_app_version: progress.old_app_version,
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
        if let Err(error) = std::fs::remove_dir_all(&folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
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
