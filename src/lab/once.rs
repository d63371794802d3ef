//! One run: a recording that goes on while the steps are performed, and ends with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptap_lab::results::{RunError, RunState};
use heaptap_lab::scenario::{Scenario, Step};
use tokio::sync::mpsc;

use super::events::{LabEvent, LabEvents};
use super::steps::{Hands, RESTORE, Snapped, StepFailure, error_of, interrupted};
use crate::device::Device;
use crate::error::{ErrorClass, Failure};
use crate::provoke::{Cancel, Journals, Target};
use crate::recording::events::{EventHandler, RecordEvent};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::{Finished, Recorded};
use crate::recording::record;
use crate::session::{self, Control, SessionEvent, Store};

/// What runs share.
pub(super) struct Bench<'a> {
    pub device: &'a Device,
    pub store: &'a Store,
    pub journals: &'a Journals,
    pub target: &'a Target,
    pub cancel: &'a Cancel,
    pub tell: &'a LabEvents,
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub state: RunState,
    pub error: Option<RunError>,
    /// The recording, if it was fetched.
    pub finished: Option<Box<Finished>>,
    /// Labels of its snapshots.
    pub labels: Vec<String>,
    pub seconds: f64,
    /// The user interrupted it.
    pub interrupted: bool,
}

/// Performs steps that are not recorded.
///
/// # Errors
/// Returns the step that failed.
pub(super) async fn set_up(
    bench: &Bench<'_>,
    steps: &[Step],
    run: usize,
) -> Result<(), StepFailure> {
    let (ask, _controls) = mpsc::unbounded_channel();
    let (_, mut snapped) = mpsc::unbounded_channel();
    let mut hands = hands(bench, bench.cancel, &ask, &mut snapped, run);
    hands.perform(steps).await
}

fn hands<'a>(
    bench: &Bench<'a>,
    cancel: &'a Cancel,
    ask: &'a mpsc::UnboundedSender<Control>,
    snapped: &'a mut mpsc::UnboundedReceiver<Snapped>,
    run: usize,
) -> Hands<'a> {
    Hands {
        device: bench.device,
        journals: bench.journals,
        target: bench.target,
        cancel,
        ask,
        snapped,
        tell: bench.tell,
        run,
        labels: Vec::new(),
    }
}

/// Returns the error of an app that exited by itself: its memory began again.
fn died(bench: &Bench<'_>, scenario: &Scenario, finished: &Finished) -> Option<RunError> {
    if scenario.ends_app() {
        return None;
    }
    let mut dumps = finished.manifest.dumps.native.iter();
    let gone =
        dumps.find(|dump| dump.flags.disconnected && dump.process == bench.target.process)?;
    let message = format!("{} (PID {}) exited during the run", gone.process, gone.pid);
    let failure = Failure::new(ErrorClass::Device, "app-died", message)
        .with_help("see the log of the device; a step that ends the app is `force-stop`");
    Some(error_of(&failure))
}

/// Runs the scenario once. If it starts the app, the app is stopped first, so that runs begin alike.
pub(super) async fn run_once(
    bench: &Bench<'_>,
    scenario: &Scenario,
    options: &RecordOptions,
    run: usize,
) -> Over {
    let began = Instant::now();
    let mut over = attempt(bench, scenario, options, run).await;
    over.seconds = began.elapsed().as_secs_f64();
    over
}

async fn attempt(
    bench: &Bench<'_>,
    scenario: &Scenario,
    options: &RecordOptions,
    run: usize,
) -> Over {
    if scenario.starts_app() {
        let (package, user) = (&bench.target.package, bench.target.user);
        if let Err(error) = session::force_stop(bench.device, package, user).await {
            return Over::failed(error_of(&error.into()), None, Vec::new());
        }
    }
    let (ask, mut controls) = mpsc::unbounded_channel();
    let (told, mut snapped) = mpsc::unbounded_channel();
    let (armed, mut is_armed) = mpsc::unbounded_channel();
    let on_event: EventHandler = {
        let tell = Arc::clone(bench.tell);
        Arc::new(move |event| {
            match &event {
                // The receivers live as long as the run.
                RecordEvent::Session(SessionEvent::Started { .. }) => drop(armed.send(())),
                RecordEvent::Session(SessionEvent::SnapshotTaken {
                    label,
                    no_dump: None,
                    ..
                }) => drop(told.send(Snapped::Taken {
                    label: label.clone(),
                })),
                RecordEvent::Session(SessionEvent::SnapshotTaken {
                    label,
                    no_dump: Some(why),
                    ..
                }) => drop(told.send(Snapped::Failed {
                    label: label.clone(),
                    why: why.clone(),
                    cause: None,
                })),
                RecordEvent::Session(SessionEvent::SnapshotFailed {
                    label,
                    why,
                    kind,
                    class,
                }) => drop(told.send(Snapped::Failed {
                    label: label.clone(),
                    why: why.clone(),
                    cause: is_outside(*class, kind).then_some((*class, *kind)),
                })),
                _ => {}
            }
            tell(LabEvent::Recording(event));
        })
    };
    let mut recording = std::pin::pin!(record::record(
        bench.device,
        bench.store,
        options,
        &mut controls,
        &on_event
    ));
    let (canceller, cancel) = Cancel::new();
    let mut hands = hands(bench, &cancel, &ask, &mut snapped, run);
    let has_begun = AtomicBool::new(false);
    let performed = {
        let mut steps = std::pin::pin!(async {
            if is_armed.recv().await.is_none() {
                return std::future::pending().await;
            }
            has_begun.store(true, Ordering::Relaxed);
            hands.perform(&scenario.steps).await
        });
        let ended = tokio::select! {
            recorded = &mut recording => Err(recorded),
            steps = &mut steps => Ok(steps.map_err(|failed| (failed.failure.class, failed.error()))),
            () = tokio::time::sleep(scenario.timeout) => Ok(Err(run_timeout(scenario.timeout))),
            () = bench.cancel.wait() => Ok(Err(of_class(&interrupted()))),
        };
        // A step that goes on restores the device first.
        if !matches!(
            &ended,
            Ok(Ok(())) | Ok(Err((_, RunError { step: Some(_), .. })))
        ) {
            canceller.cancel();
            let _ = tokio::time::timeout(RESTORE, steps).await;
        }
        ended
    };
    let labels = std::mem::take(&mut hands.labels);
    let step_failure = match performed {
        // The recording ended before the steps did.
        Err(Err(failure)) => return Over::of_failure(&failure, labels),
        Err(Ok(recorded)) => return Over::early(recorded, labels),
        Ok(performed) => performed.err(),
    };
    // A failed run keeps its recording, too: it shows what was there. The fetch has its own limits.
    // One that has ended by itself is being fetched already.
    let _ = ask.send(match has_begun.load(Ordering::Relaxed) {
        true => Control::End,
        false => Control::Stop,
    });
    let recorded = recording.await;
    let interrupted = matches!(step_failure, Some((ErrorClass::Interrupted, _)));
    match (recorded, step_failure) {
        (Ok(Recorded::Finished(finished)), Some((_, error))) => Over {
            interrupted,
            ..Over::failed(error, Some(finished), labels)
        },
        (Ok(Recorded::Finished(finished)), None) => match died(bench, scenario, &finished) {
            // heapprofd also disconnects from a process whose data it loses.
            Some(error) if finished.class.is_none() => Over::failed(error, Some(finished), labels),
            _ => Over::of_finished(finished, labels),
        },
        (Err(failure), Some((_, error))) => Over {
            interrupted,
            ..Over::failed(
                RunError {
                    help: Some(format!(
                        "the recording was not fetched: {}",
                        failure.message
                    )),
                    ..error
                },
                None,
                labels,
            )
        },
        (Ok(Recorded::Detached { .. }), Some((_, error))) => Over {
            interrupted,
            ..Over::failed(error, None, labels)
        },
        (Err(failure), None) => Over::of_failure(&failure, labels),
        (Ok(Recorded::Detached { .. }), None) => {
            let error = ended_early("it was detached");
            Over::void(error, None, labels)
        }
    }
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

/// Kinds of errors of class `Device` whose cause is the device or its connection.
const INFRASTRUCTURE: [&str; 6] = [
    "connection-lost",
    "device-silent",
    "device-garbled",
    "device-rebooted",
    "device-restarted",
    "trace-gone",
];

/// Returns whether the cause of an error is neither the app nor the scenario, so that another run
/// can succeed.
pub(super) fn is_infrastructure(error: &RunError) -> bool {
    ErrorClass::of_exit_code(error.code).is_some_and(|class| is_outside(class, &error.kind))
}

fn is_outside(class: ErrorClass, kind: &str) -> bool {
    let outside = [
        ErrorClass::NoDevice,
        ErrorClass::NotFetched,
        ErrorClass::Interrupted,
    ];
    outside.contains(&class) || INFRASTRUCTURE.contains(&kind)
}

impl Over {
    fn failed(error: RunError, finished: Option<Box<Finished>>, labels: Vec<String>) -> Over {
        let state = match is_infrastructure(&error) {
            true => RunState::Void,
            false => RunState::Failed,
        };
        Over {
            state,
            error: Some(error),
            finished,
            labels,
            seconds: 0.0,
            interrupted: false,
        }
    }

    fn void(error: RunError, finished: Option<Box<Finished>>, labels: Vec<String>) -> Over {
        Over {
            state: RunState::Void,
            ..Over::failed(error, finished, labels)
        }
    }

    fn of_failure(failure: &Failure, labels: Vec<String>) -> Over {
        Over {
            interrupted: failure.class == ErrorClass::Interrupted,
            ..Over::failed(error_of(failure), None, labels)
        }
    }

    /// A recording that ended before its steps.
    fn early(recorded: Recorded, labels: Vec<String>) -> Over {
        let Recorded::Finished(finished) = recorded else {
            return Over::failed(ended_early("it was detached"), None, labels);
        };
        let reboot = finished.manifest.outcome.ended_by.as_deref() == Some("lost");
        let error = ended_early(match reboot {
            true => "the device restarted, or its tracing service died",
            false => "the recording ended by itself",
        });
        match reboot {
            true => Over::void(error, Some(finished), labels),
            false => Over::failed(error, Some(finished), labels),
        }
    }

    /// A recording with missing data is void: its figures are too low.
    fn of_finished(finished: Box<Finished>, labels: Vec<String>) -> Over {
        if finished.class.is_some() {
            let warning = finished.manifest.warnings.first();
            let why = warning.map(|warning| format!(": {}", warning.message));
            let message = format!("the recording is incomplete{}", why.unwrap_or_default());
            let mut failure = Failure::new(ErrorClass::Incomplete, "recording-incomplete", message);
            failure.help = warning.and_then(|warning| warning.help.clone());
            return Over::void(error_of(&failure), Some(finished), labels);
        }
        Over {
            state: RunState::Done,
            error: None,
            finished: Some(finished),
            labels,
            seconds: 0.0,
            interrupted: false,
        }
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
