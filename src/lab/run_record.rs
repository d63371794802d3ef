//! Adds a run to what is done so far: its figures, and its page.

use heaptap_lab::results::{Run, RunError, RunState};

use super::events::{LabEvent, LabEvents};
use super::figures;
use super::request::LabRequest;
use super::state::{Figure, Progress};
use super::{files, page};
use heaptap_base::error::{ErrorClass, catch_panic};

/// Writes the page of a run that has a recording, and reads its figures if it has `labels`, those
/// of its snapshots. Other devices go on meanwhile.
pub(super) async fn read(
    request: &LabRequest,
    progress: &Progress,
    number: usize,
    labels: Option<Vec<String>>,
    tell: &LabEvents,
) -> Vec<Figure> {
    let (scenario, tell) = (request.scenario.clone(), LabEvents::clone(tell));
    let output = request.directory.join(files::run_name(number));
    let page = files::page_name(&scenario.name, &progress.device, number);
    let work = tokio::task::spawn_blocking(move || {
        // A bug that one trace meets must not end the night, nor each `--resume` of it.
        let why = match catch_panic(|| page::write(&output, &output.with_file_name(page))) {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(format!(": {}", failure.message)),
            Err(bug) => Some(format!(", because of a bug in heaptap: {bug}")),
        };
        if let Some(why) = why {
            let text = format!("run {number} has no page{why}");
            tell(LabEvent::Warning { text });
        }
        let labels = labels?;
        let figures = catch_panic(|| figures::of_run(&output, &scenario, &labels));
        Some(figures.unwrap_or_else(|bug| {
            let why = format!("a bug in heaptap: {bug}");
            let missing = |_| Figure::missing(why.as_str());
            scenario.budgets.iter().map(missing).collect()
        }))
    });
    // The work catches its panics; only the end of the program cancels it.
    work.await.ok().flatten().unwrap_or_default()
}

/// Adds a run and its figures; no run is going on then.
pub(super) fn take(progress: &mut Progress, run: Run, figures: Vec<Figure>, tell: &LabEvents) {
    for (of, figure) in progress.figures.iter_mut().zip(figures) {
        of.push(Figure {
            run: run.number,
            ..figure
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
