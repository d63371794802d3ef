//! Runs a scenario until its budgets are decided, and judges them.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use heaptap_base::parallel::lock;
use heaptap_lab::results::{BudgetResult, Run, RunError, RunState, SCHEMA_VERSION, ScenarioResult};
use heaptap_lab::scenario::{self, Keep, Scenario};
use heaptap_lab::verdict::{Judgement, Verdict};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::events::{LabEvent, LabEvents};
use super::failures::{error_of, in_step_of, needs_user};
use super::judging::Judging;
use super::recover::{self, Lasting};
pub use super::request::{LabRequest, Tools};
use super::single_run::{self, RunContext};
use super::state::Progress;
use super::steps::StepFailure;
use super::{builds, conditions, files, install, phone, resume, run_record};
use crate::recording::capture_kind::CaptureKind;
use crate::recording::options::RecordOptions;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility::{self, DeviceFacts};
use heaptap_capture::provoke::{self, Target};

/// Runs that were void and are repeated, at most.
const VOID_RUNS: usize = 3;

/// A scenario that is over.
#[derive(Debug)]
pub struct Ended {
    pub result: ScenarioResult,
    /// The user interrupted it.
    pub interrupted: bool,
}

/// Runs a scenario on one device. Results of each run are in the directory before the next begins.
///
/// # Errors
/// Returns an error if the scenario could not begin or go on: a bad target, a full disk of the host.
/// [`so_far`] has the runs before it.
pub async fn run(tools: &Tools<'_>, request: &LabRequest) -> Result<Ended, Failure> {
    tools.cancel.check()?;
    let began = Instant::now();
    let scenario = &request.scenario;
    let lasting = Lasting::new(tools.device, tools.cancel, scenario.timeout);
    let facts = || async { Ok(eligibility::facts(tools.device).await?) };
    let facts = (tools.facts)
        .get_or_try_init(|| lasting.request(facts))
        .await?;
    let mut progress = begin(tools, request, facts)?;
    let target = target_of(request)?;
    // What an earlier run or action could not restore.
    let restore = || async { Ok(provoke::restore(tools.device, tools.journals).await?) };
    lasting.request(restore).await?;
    recover::fetch_abandoned(tools, &request.directory).await;
    if request.resume {
        let complete = resume::complete(tools, &lasting, request, &target, &mut progress);
        Box::pin(complete).await?;
    }
    let bench = RunContext {
        device: tools.device,
        facts,
        store: tools.store,
        journals: tools.journals,
        target: &target,
        cancel: tools.cancel,
        tell: tools.tell,
    };
    let runs = Runs {
        bench: &bench,
        lasting: &lasting,
        request,
        judging: judging_of(request),
    };
    let ended = Box::pin(runs.perform(&mut progress)).await;
    conditions::restore(&bench).await;
    builds::end(&bench, request, &mut progress).await;
    let interrupted = ended?;
    let result = finish(request, progress, began, interrupted, tools.tell)?;
    Ok(Ended {
        result,
        interrupted,
    })
}

/// Returns the result of the runs before an error, which is its last run; `None` if there are none.
/// A device that is away is no error if all runs are done.
pub fn so_far(request: &LabRequest, failure: &Failure) -> Option<ScenarioResult> {
    // The runs are of something else.
    if failure.kind == "cannot-resume" {
        return None;
    }
    let mut progress = Progress::read(&request.directory, &request.sha256).ok()?;
    if progress.runs.is_empty() {
        return None;
    }
    progress.two_builds = request.against.is_some();
    let is_done = progress.begun.is_none() && next(&judging_of(request), &progress).is_none();
    if !is_done || failure.class != ErrorClass::NoDevice {
        let begun = progress.begun.as_ref().map(|begun| begun.run);
        let number = begun.unwrap_or_else(|| progress.next_run());
        let failed = run_record::failed_run(number, error_of(failure));
        progress.runs.push(failed);
    }
    let result = result_of(request, progress, 0.0, false);
    // If it cannot be written, the results of all devices still have it.
    let _ = files::write(&request.directory, &result);
    Some(result)
}

/// Returns what is done so far, of the device at hand.
fn begin(
    tools: &Tools<'_>,
    request: &LabRequest,
    facts: &DeviceFacts,
) -> Result<Progress, Failure> {
    let scenario = &request.scenario;
    let mut progress = match request.resume {
        true => Progress::read(&request.directory, &request.sha256)?,
        false => Progress::new(request.sha256.clone(), now(), scenario.budgets.len()),
    };
    progress.two_builds = request.against.is_some();
    let row = phone::device_row(tools.name, facts, request.instead_of.clone());
    if !progress.runs.is_empty() && progress.device != row {
        let why = format!(
            "its runs are of {}, or of another build",
            progress.device.serial
        );
        return Err(files::cannot_resume(&request.directory, &why));
    }
    progress.device = row;
    progress.device_class = phone::class_of(scenario, facts).to_owned();
    Ok(progress)
}

/// Returns what the steps act on.
fn target_of(request: &LabRequest) -> Result<Target, Failure> {
    let name = name_of(&request.scenario);
    match Target::parse(name, request.user) {
        // A daemon can be recorded, and not be acted on.
        Err(_) if !request.scenario.needs_app() => Ok(Target {
            package: name.to_owned(),
            process: name.to_owned(),
            user: request.user,
        }),
        parsed => Ok(parsed?),
    }
}

fn judging_of(request: &LabRequest) -> Judging<'_> {
    Judging {
        scenario: &request.scenario,
        interval: interval_of(&request.record),
        baseline: &request.baseline,
        updates_baseline: request.updates_baseline,
    }
}

/// The runs of a scenario on one device.
struct Runs<'a> {
    bench: &'a RunContext<'a>,
    lasting: &'a Lasting<'a>,
    request: &'a LabRequest,
    judging: Judging<'a>,
}

impl Runs<'_> {
    /// Performs the setup, and runs until the budgets are decided. Returns whether the user
    /// interrupted it.
    async fn perform(&self, progress: &mut Progress) -> Result<bool, Failure> {
        if next(&self.judging, progress).is_none() {
            // All runs are done already; the last one can have been recovered just now.
            progress.write(&self.request.directory)?;
            return Ok(false);
        }
        self.check_app(progress).await?;
        // Installation and setup act on the app before the first run does.
        if !progress.is_set_up {
            self.lasting
                .request(|| single_run::not_recorded(self.bench))
                .await?;
        }
        if let Some(error) = self.set_up(progress).await? {
            let interrupted = error.code == ErrorClass::Interrupted.exit_code();
            let number = progress.next_run();
            progress.runs.push(run_record::failed_run(number, error));
            return Ok(interrupted);
        }
        while let Some(number) = next(&self.judging, progress) {
            if self.bench.cancel.check().is_err() || Box::pin(self.one(progress, number)).await? {
                return Ok(true);
            }
            if !self.collect(progress).await? {
                break;
            }
            if !progress.repeats().1 {
                count(&self.judging, progress, number, self.bench.tell);
            }
        }
        Ok(false)
    }

    /// Begins again with the installation and the setup if the app on the device is not the one of
    /// the runs any more: another job can have installed its own build of the same version.
    async fn check_app(&self, progress: &mut Progress) -> Result<(), Failure> {
        let Runs { bench, request, .. } = *self;
        let package = &bench.target.package;
        if !progress.is_set_up || progress.two_builds || progress.app_code_path.is_none() {
            return Ok(());
        }
        let app = || phone::app(bench.device, package);
        if self.lasting.request(app).await?.code_path == progress.app_code_path {
            return Ok(());
        }
        if request.scenario.install.is_none() {
            let why = "the app was installed again or removed since its runs";
            return Err(files::cannot_resume(&request.directory, why));
        }
        let text = format!("{package} was installed again or removed since; installing it");
        (bench.tell)(LabEvent::Warning { text });
        progress.is_set_up = false;
        Ok(())
    }

    /// Installs the app and performs the setup, if that is not done. Of two builds, each run
    /// installs its own. Returns the error of the setup.
    async fn set_up(&self, progress: &mut Progress) -> Result<Option<RunError>, Failure> {
        let Runs { bench, request, .. } = *self;
        let (device, package) = (bench.device, &bench.target.package);
        let mut halt = None;
        if !progress.is_set_up && !progress.two_builds {
            if let Some(app) = &request.scenario.install {
                let install =
                    || install::install(device, app, &request.base, package, bench.cancel);
                self.lasting.request(install).await?;
            }
            let failed = Mutex::new(None);
            let note = |failure: StepFailure| {
                let mut failed = lock(&failed);
                *failed = Some(failure.error());
                failure.failure
            };
            let set_up = || async {
                let ended =
                    single_run::set_up(bench, &request.scenario.setup, &request.record).await;
                ended.map_err(note)
            };
            if let Err(failure) = self.lasting.request(set_up).await {
                let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
                halt = Some(in_step_of(failed, &failure));
            }
            progress.is_set_up = halt.is_none();
        }
        if !progress.two_builds {
            let app = self.lasting.request(|| phone::app(device, package)).await?;
            if !progress.runs.is_empty() && progress.app_version != app.version {
                let why = "the app has another version than in its runs";
                return Err(files::cannot_resume(&request.directory, why));
            }
            progress.app_version = app.version;
            progress.app_code_path = app.code_path;
        }
        progress.write(&request.directory)?;
        Ok(halt)
    }

    /// Performs a run, and adds it to the progress. Returns whether the user interrupted it.
    async fn one(&self, progress: &mut Progress, number: usize) -> Result<bool, Failure> {
        let Runs { bench, request, .. } = *self;
        let scenario = &request.scenario;
        (bench.tell)(LabEvent::Run {
            run: number,
            at_most: progress.runs_of(scenario.repeats.max),
            build: progress.next_build(),
        });
        progress.begin(number);
        progress.write(&request.directory)?;
        let put = Box::pin(builds::begin(bench, request, progress)).await;
        let on_performed = |performed| {
            let mut progress = progress.clone();
            progress.begin(number).performed = Some(performed);
            // Without it, `--resume` repeats the run.
            let _ = progress.write(&request.directory);
        };
        let mut options = request.record.clone();
        options.output = Some(request.directory.join(files::run_name(number)));
        vary(&mut options, number);
        let (over, conditions) = match put {
            Ok(()) => {
                let run = |before| {
                    let on_performed = &on_performed;
                    single_run::run_once(bench, scenario, &options, number, before, on_performed)
                };
                Box::pin(conditions::watched(bench, scenario, run)).await
            }
            Err(over) => (*over, None),
        };
        let figures = match &over.finished {
            Some(_) => {
                let labels = (over.state == RunState::Done).then_some(over.labels);
                run_record::read(request, progress, number, labels, bench.tell).await
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
        run_record::take(progress, run, figures, bench.tell);
        progress.write(&request.directory)?;
        // Only now is the session forgotten.
        if let Some(mut finished) = over.finished {
            finished.journal.forget()?;
        }
        Ok(over.interrupted)
    }

    /// Fetches what the last run left on the device. Returns false if the device stays away.
    async fn collect(&self, progress: &mut Progress) -> Result<bool, Failure> {
        let (store, directory) = (self.bench.store, &self.request.directory);
        let Some(run) = progress.runs.last_mut() else {
            return Ok(true);
        };
        let is_void = run.state == RunState::Void || run.output.is_none();
        let left = || recover::sessions_of(store, &directory.join(files::run_name(run.number)));
        if !is_void && left()?.is_empty() {
            return Ok(true);
        }
        let back = self
            .lasting
            .collect(store, directory, self.bench.tell)
            .await;
        match back {
            Err(away) if is_void => {
                // The others would fail in the same way; those of `--resume` need not.
                run.state = RunState::Void;
                run.error = Some(in_step_of(run.error.take(), &away));
                progress.write(directory)?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }
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
    let code_of = |run: &Run| run.error.as_ref().map(|error| error.code);
    let is_spoiled = |run: &&Run| {
        let interrupted = ErrorClass::Interrupted.exit_code();
        run.state == RunState::Void && code_of(run) != Some(interrupted)
    };
    // What made those before `--resume` void can be mended.
    let own = runs.get(progress.earlier..).unwrap_or_default();
    let voids = own.iter().filter(is_spoiled).count();
    let last = own.last().filter(is_spoiled);
    let needs_user = last.is_some_and(|run| run.error.as_ref().is_some_and(needs_user));
    let is_over = done >= scenario.repeats.max || voids > VOID_RUNS || needs_user;
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

/// Judges all budgets.
fn result_of(
    request: &LabRequest,
    progress: Progress,
    seconds: f64,
    interrupted: bool,
) -> ScenarioResult {
    let budgets = judging_of(request).results(&progress);
    let class = class_of_result(&progress.runs, &budgets, interrupted);
    ScenarioResult {
        schema_version: SCHEMA_VERSION,
        scenario: request.scenario.name.clone(),
        file: request.file.clone(),
        device_class: progress.device_class,
        device: progress.device,
        app_version: progress.app_version,
        old_app_version: progress.old_app_version,
        started: progress.started,
        seconds,
        runs: progress.runs,
        budgets,
        exit_code: class.map_or(0, ErrorClass::exit_code),
    }
}

/// Judges all budgets, writes the results, and removes recordings that need not be kept.
fn finish(
    request: &LabRequest,
    mut progress: Progress,
    began: Instant,
    interrupted: bool,
    tell: &LabEvents,
) -> Result<ScenarioResult, Failure> {
    // Of earlier processes, the runs count.
    let earlier = progress.runs.iter().take(progress.earlier);
    let earlier: f64 = earlier.map(|run| run.seconds).sum();
    let seconds = began.elapsed().as_secs_f64() + earlier;
    let mut result = result_of(request, progress.clone(), seconds, interrupted);
    let mut dropped = Vec::new();
    if result.exit_code == 0 && request.scenario.keep == Keep::OnFailure {
        for run in &mut progress.runs {
            run.output = None;
            dropped.push(files::run_name(run.number));
        }
        progress.write(&request.directory)?;
        result.runs = progress.runs;
    }
    files::write(&request.directory, &result)?;
    // The results are complete without the recordings, and with those that cannot be removed.
    for output in dropped {
        let directory = request.directory.join(output);
        if let Err(error) = std::fs::remove_dir_all(&directory)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tell(LabEvent::Warning {
                text: format!("cannot remove {}: {error}", directory.display()),
            });
        }
    }
    Ok(result)
}

/// Returns the class of the exit code. One budget that is surely over decides.
pub(super) fn class_of_result(
    runs: &[Run],
    budgets: &[BudgetResult],
    interrupted: bool,
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
    if interrupted {
        return Some(ErrorClass::Interrupted);
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
