//! One run: a recording that goes on while the steps are performed, and ends with them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heaptap_lab::results::{RunError, RunState, TriggerRecord};
use heaptap_lab::scenario::{self, Scenario, Step};
use heaptap_model::conditions::Conditions;
use tokio::sync::mpsc;

use super::events::{LabEvent, LabEvents};
use super::failures::{error_of, interrupted, is_infrastructure};
use super::state::Performed;
use super::steps::{Answers, RESTORE, StepExecutor, StepFailure, Taken};
use crate::recording::attempt;
use crate::recording::events::{EventHandler, RecordEvent};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::{Finished, Recorded};
use crate::recording::record;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility::{self, DeviceFacts};
use heaptap_capture::provoke::{Cancel, Journals, Target};
use heaptap_capture::session::{self, Control, SessionEvent, Store};
use heaptap_results::findings::TRACE_CUT;
use heaptap_results::manifest::{Manifest, Warning};

/// Kinds of warnings that heapprofd received more than it could process.
const OVERLOAD: [&str; 3] = ["buffer-overran", "hit-guardrail", "client-timeout"];

/// What runs share.
pub(super) struct RunContext<'a> {
    pub device: &'a Device,
    pub facts: &'a DeviceFacts,
    pub store: &'a Store,
    pub journals: &'a Journals,
    pub target: &'a Target,
    pub cancel: &'a Cancel,
    pub tell: &'a LabEvents,
}

/// Called when the steps of a run are done, before its recording is ended.
pub(super) type OnPerformed<'a> = &'a (dyn Fn(Performed) + Sync);

/// A run that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub state: RunState,
    pub error: Option<RunError>,
    /// The recording, if it was fetched.
    pub finished: Option<Box<Finished>>,
    /// Labels of its snapshots and dumps.
    pub labels: Vec<String>,
    /// Triggers that acted.
    pub triggers: Vec<TriggerRecord>,
    pub seconds: f64,
    /// The user interrupted it.
    pub interrupted: bool,
}

/// Performs steps that are not recorded.
///
/// # Errors
/// Returns the step that failed.
pub(super) async fn set_up(
    bench: &RunContext<'_>,
    steps: &[Step],
    options: &RecordOptions,
) -> Result<(), StepFailure> {
    let (ask, _controls) = mpsc::unbounded_channel();
    let answers = Answers::default();
    let hands = hands(bench, bench.cancel, &ask, &answers, (0, options));
    hands.perform(steps).await
}

fn hands<'a>(
    bench: &RunContext<'a>,
    cancel: &'a Cancel,
    ask: &'a mpsc::UnboundedSender<Control>,
    answers: &'a Answers,
    (run, record): (usize, &'a RecordOptions),
) -> StepExecutor<'a> {
    StepExecutor {
        device: bench.device,
        api: bench.facts.api(),
        store: bench.store,
        journals: bench.journals,
        target: bench.target,
        cancel,
        ask,
        answers,
        record,
        tell: bench.tell,
        run,
        began: Instant::now(),
        capture: tokio::sync::Mutex::default(),
        taken: Mutex::default(),
    }
}

/// Returns the error of an app that exited by itself: its memory began again.
pub(super) fn died(target: &Target, scenario: &Scenario, manifest: &Manifest) -> Option<RunError> {
    if scenario.ends_app() {
        return None;
    }
    let mut dumps = manifest.dumps.native.iter();
    let gone = dumps.find(|dump| dump.flags.disconnected && dump.process == target.process)?;
    let message = format!("{} (PID {}) exited during the run", gone.process, gone.pid);
    let failure = Failure::new(ErrorClass::Device, "app-died", message)
        .with_help("see the log of the device; a step that ends the app is `force-stop`");
    Some(error_of(&failure))
}

/// Runs the scenario once. If it starts the app, the app is stopped first, so that runs begin alike.
/// `before` are the conditions of the device.
pub(super) async fn run_once(
    bench: &RunContext<'_>,
    scenario: &Scenario,
    options: &RecordOptions,
    run: usize,
    before: Conditions,
    on_performed: OnPerformed<'_>,
) -> Over {
    let began = Instant::now();
    let mut taken = Taken::default();
    let on_performed = |performed: Performed| {
        on_performed(Performed {
            before: Some(before.clone()),
            ..performed
        });
    };
    let attempt = attempt(bench, scenario, options, run, &mut taken, &on_performed);
    let mut over = Box::pin(attempt).await;
    (over.labels, over.triggers) = (taken.labels, taken.triggers);
    over.seconds = began.elapsed().as_secs_f64();
    over
}

/// Refuses an app that another command of this host records: a run installs it, or stops it first.
pub(super) async fn not_recorded(bench: &RunContext<'_>) -> Result<(), Failure> {
    let package = &bench.target.package;
    match attempt::recording_of_app(bench.device, bench.store, package).await? {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Refuses an app that also runs for another Android user than the one of the command: until it is
/// started, it is recorded by its name, which is the same for all users.
async fn only_user(bench: &RunContext<'_>, scenario: &Scenario) -> Result<(), Failure> {
    let Some(user) = bench.target.user else {
        return Ok(());
    };
    let mut targets = Targets::default();
    match &scenario.target {
        scenario::Target::Name(name) => targets.names.push(name.clone()),
        scenario::Target::Package(package) => targets.packages.push(package.clone()),
    }
    let of = |user| eligibility::resolve_pids(bench.device, bench.facts, &targets, user);
    let before = of(Some(user)).await?;
    let all = of(None).await?;
    let strangers = all.iter().filter(|process| !before.contains(process));
    let strangers: Vec<_> = strangers.collect();
    if strangers.is_empty() {
        return Ok(());
    }
    // A process of this user can have started meanwhile.
    let own = of(Some(user)).await?;
    let Some((pid, name)) = strangers.into_iter().find(|process| !own.contains(process)) else {
        return Ok(());
    };
    let message = format!("{name} also runs for another user than {user} (PID {pid})");
    let help = format!(
        "stop it there before the run: `adb shell am force-stop --user ID {}`",
        bench.target.package
    );
    Err(Failure::new(ErrorClass::NotEligible, "other-user", message).with_help(help))
}

async fn attempt(
    bench: &RunContext<'_>,
    scenario: &Scenario,
    options: &RecordOptions,
    run: usize,
    taken: &mut Taken,
    on_performed: OnPerformed<'_>,
) -> Over {
    let began = Instant::now();
    if scenario.starts_app() {
        if let Err(failure) = not_recorded(bench).await {
            return Over::of_failure(&failure);
        }
        let (package, user) = (&bench.target.package, bench.target.user);
        if let Err(error) = session::force_stop(bench.device, package, user).await {
            return Over::failed(error_of(&error.into()), None);
        }
        if let Err(failure) = only_user(bench, scenario).await {
            return Over::of_failure(&failure);
        }
    }
    let (ask, mut controls) = mpsc::unbounded_channel();
    let answers = Arc::new(Answers::default());
    let (armed, mut is_armed) = mpsc::unbounded_channel();
    let on_event: EventHandler = {
        let (tell, answers) = (Arc::clone(bench.tell), Arc::clone(&answers));
        Arc::new(move |event| {
            if let RecordEvent::Session(SessionEvent::Started { .. }) = &event {
                // The receiver lives as long as the run.
                let _ = armed.send(());
            }
            answers.event(&event);
            tell(LabEvent::Recording(event));
        })
    };
    // On the heap, like the other large futures of a run: a worker's stack is small.
    let mut recording = Box::pin(record::record(
        bench.device,
        bench.store,
        options,
        &mut controls,
        &on_event,
    ));
    let (canceller, cancel) = Cancel::new();
    let hands = hands(bench, &cancel, &ask, &answers, (run, options));
    let has_begun = AtomicBool::new(false);
    let performed = {
        let mut steps = Box::pin(async {
            if is_armed.recv().await.is_none() {
                return std::future::pending().await;
            }
            has_begun.store(true, Ordering::Relaxed);
            hands.perform_with_triggers(scenario).await
        });
        let ended = tokio::select! {
            recorded = &mut recording => Err(recorded),
            steps = &mut steps => Ok(steps.map_err(|failed| (failed.failure.class, failed.error()))),
            () = tokio::time::sleep(scenario.timeout) => Ok(Err(run_timeout(scenario.timeout))),
            () = bench.cancel.wait() => Ok(Err(of_class(&interrupted()))),
        };
        // A step that goes on restores the device first. Without a recording, none has begun.
        let is_over = matches!(
            &ended,
            Ok(Ok(())) | Ok(Err((_, RunError { step: Some(_), .. })))
        );
        if has_begun.load(Ordering::Relaxed) && !is_over {
            canceller.cancel();
            let _ = tokio::time::timeout(RESTORE, steps).await;
        }
        ended
    };
    hands.note(|of| *taken = std::mem::take(of));
    let step_failure = match performed {
        // The recording ended before the steps did.
        Err(Err(failure)) => return Over::of_failure(&failure),
        Err(Ok(recorded)) => return Over::early(recorded),
        Ok(performed) => performed.err(),
    };
    if step_failure.is_none() {
        on_performed(Performed {
            labels: taken.labels.clone(),
            seconds: began.elapsed().as_secs_f64(),
            triggers: taken.triggers.clone(),
            before: None,
        });
    }
    // A failed run keeps its recording, too: it shows what was there. The fetch has its own limits.
    // One that has ended by itself is being fetched already.
    let _ = ask.send(match has_begun.load(Ordering::Relaxed) {
        true => Control::End,
        false => Control::Stop,
    });
    let recorded = recording.await;
    over_of(bench, scenario, recorded, step_failure)
}

/// Returns the run of a recording that ended after its steps.
fn over_of(
    bench: &RunContext<'_>,
    scenario: &Scenario,
    recorded: Result<Recorded, Failure>,
    step_failure: Option<(ErrorClass, RunError)>,
) -> Over {
    let interrupted = matches!(step_failure, Some((ErrorClass::Interrupted, _)));
    match (recorded, step_failure) {
        // A step can fail because the recording ended, such as a snapshot.
        (Ok(Recorded::Finished(finished)), Some(_)) if !interrupted && is_cut(&finished) => {
            Over::early(Recorded::Finished(finished))
        }
        // So does a snapshot whose data are lost.
        (Ok(Recorded::Finished(finished)), Some(_))
            if !interrupted && finished.manifest.has_overrun() =>
        {
            Over::incomplete(finished)
        }
        (Ok(Recorded::Finished(finished)), Some((_, error))) => Over {
            interrupted,
            ..Over::failed(error, Some(finished))
        },
        (Ok(Recorded::Finished(finished)), None) => {
            match died(bench.target, scenario, &finished.manifest) {
                // heapprofd also disconnects from a process whose data it loses.
                Some(error) if finished.class.is_none() => Over::failed(error, Some(finished)),
                _ => Over::of_finished(finished, scenario.measure.native),
            }
        }
        (Err(failure), Some((_, error))) => {
            let help = format!("the recording was not fetched: {}", failure.message);
            let error = RunError {
                help: Some(help),
                ..error
            };
            // A device that is away fails the step, too.
            let over = match is_infrastructure(&error_of(&failure)) {
                true => Over::void(error, None),
                false => Over::failed(error, None),
            };
            Over {
                interrupted,
                ..over
            }
        }
        (Ok(Recorded::Detached { .. }), Some((_, error))) => Over {
            interrupted,
            ..Over::failed(error, None)
        },
        (Err(failure), None) => Over::of_failure(&failure),
        (Ok(Recorded::Detached { .. }), None) => {
            let error = ended_early("it was detached");
            Over::void(error, None)
        }
    }
}

/// Returns whether the device ended the recording.
fn is_cut(finished: &Finished) -> bool {
    let ended_by = finished.manifest.outcome.ended_by.as_deref();
    matches!(ended_by, Some("lost" | "size-limit"))
}

fn of_class(failure: &Failure) -> (ErrorClass, RunError) {
    (failure.class, error_of(failure))
}

fn run_timeout(limit: Duration) -> (ErrorClass, RunError) {
    let message = format!("the run did not end within {:.0} s", limit.as_secs_f64());
    let failure = Failure::new(ErrorClass::Device, "run-timeout", message)
        .with_help("give the scenario a longer `timeout`");
    of_class(&failure)
}

impl Over {
    fn failed(error: RunError, finished: Option<Box<Finished>>) -> Over {
        let state = match is_infrastructure(&error) {
            true => RunState::Void,
            false => RunState::Failed,
        };
        Over::new(state, Some(error), finished)
    }

    fn new(state: RunState, error: Option<RunError>, finished: Option<Box<Finished>>) -> Over {
        Over {
            state,
            error,
            finished,
            labels: Vec::new(),
            triggers: Vec::new(),
            seconds: 0.0,
            interrupted: false,
        }
    }

    fn void(error: RunError, finished: Option<Box<Finished>>) -> Over {
        Over::new(RunState::Void, Some(error), finished)
    }

    pub(super) fn of_failure(failure: &Failure) -> Over {
        Over {
            interrupted: failure.class == ErrorClass::Interrupted,
            ..Over::failed(error_of(failure), None)
        }
    }

    /// A run whose setup failed.
    pub(super) fn of_step(failed: &StepFailure) -> Over {
        Over {
            error: Some(failed.error()),
            ..Over::of_failure(&failed.failure)
        }
    }

    /// A recording that ended before its steps.
    fn early(recorded: Recorded) -> Over {
        let Recorded::Finished(finished) = recorded else {
            return Over::failed(ended_early("it was detached"), None);
        };
        let (why, is_spoiled) = match finished.manifest.outcome.ended_by.as_deref() {
            Some("lost") => ("the device restarted, or its tracing service died", true),
            Some("size-limit") => ("its file reached the maximum size (`max-file`)", true),
            _ => ("the recording ended by itself", false),
        };
        let error = ended_early(why);
        match is_spoiled {
            true => Over::void(error, Some(finished)),
            false => Over::failed(error, Some(finished)),
        }
    }

    fn incomplete(finished: Box<Finished>) -> Over {
        let warnings = &finished.manifest.warnings;
        // What a cut trace lacks is no cause.
        let cut = warnings.iter().find(|warning| warning.kind == TRACE_CUT);
        let warning = cut.or(warnings.first());
        let why = warning.map(|warning| format!(": {}", warning.message));
        let message = format!("the recording is incomplete{}", why.unwrap_or_default());
        let mut failure = Failure::new(ErrorClass::Incomplete, "recording-incomplete", message);
        let is_overload = |warning: &Warning| OVERLOAD.contains(&warning.kind.as_str());
        failure.help = match warning.is_some_and(is_overload) {
            // The warning names options of `record`.
            true => Some(
                "set a longer `interval` or a larger `shmem-size` in `record` of the scenario"
                    .to_owned(),
            ),
            false => warning.and_then(|warning| warning.help.clone()),
        };
        Over::void(error_of(&failure), Some(finished))
    }

    /// A recording with missing data is void: its figures are too low. Without samples, only the
    /// figures of the native heap are.
    fn of_finished(finished: Box<Finished>, measures_native: bool) -> Over {
        let is_missing = match finished.class {
            Some(ErrorClass::Empty) => measures_native,
            class => class.is_some(),
        };
        if is_missing {
            return Over::incomplete(finished);
        }
        Over::new(RunState::Done, None, Some(finished))
    }
}

fn ended_early(why: &str) -> RunError {
    let message = format!("the recording ended before the steps: {why}");
    error_of(&Failure::new(
        ErrorClass::Device,
        "recording-ended",
        message,
    ))
}
