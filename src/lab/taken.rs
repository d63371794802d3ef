//! Adds a run to what is done so far: its figures, and its page.

use heaptap_lab::results::{Run, RunError, RunState};

use super::events::{LabEvent, LabEvents};
use super::figures::{self, RunFigure};
use super::request::LabRequest;
use super::state::{Figure, Progress};
use super::{files, page};
use crate::error::ErrorClass;

/// Writes the page of a run that has a recording, and reads its figures if it has `labels`, those
/// of its snapshots. Other devices go on meanwhile.
pub(super) async fn read(
    request: &LabRequest,
    progress: &Progress,
    number: usize,
    labels: Option<Vec<String>>,
    tell: &LabEvents,
) -> Vec<RunFigure> {
    let (scenario, tell) = (request.scenario.clone(), LabEvents::clone(tell));
    let output = request.folder.join(files::run_name(number));
    let page = files::page_name(&scenario.name, &progress.device, number);
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

/// Adds a run and its figures; no run is going on then.
pub(super) fn take(progress: &mut Progress, run: Run, figures: Vec<RunFigure>, tell: &LabEvents) {
    for (of, RunFigure { measured, parts }) in progress.figures.iter_mut().zip(figures) {
        let (measured, missing) = match measured {
            Ok(measured) => (Some(measured), None),
            Err(why) => (None, Some(why)),
        };
        of.push(Figure {
            run: run.number,
            measured,
            missing,
            parts,
        });
    }
    tell(LabEvent::RunEnded {
        run: run.number,
        build: run.build,
        state: run.state,
        seconds: run.seconds,
        error: run.error.clone(),
    });
    progress.runs.push(run);
    progress.begun = None;
}

/// Returns a run without a recording.
pub(super) fn failed_run(number: usize, error: RunError) -> Run {
    let is_interrupted = error.code == ErrorClass::Interrupted.exit_code();
    let state = match is_interrupted {
        true => RunState::Void,
        false => RunState::Failed,
    };
    Run {
        error: Some(error),
        ..Run::new(number, state)
    }
}
