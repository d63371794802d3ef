//! Completes the recording that an interrupted run left.

use std::path::Path;

use heaptap_lab::results::{Run, RunState};

use super::events::LabEvent;
use super::failures::error_of;
use super::recover::{self, Lasting};
use super::request::{LabRequest, Tools};
use super::single_run::died;
use super::state::{Begun, Progress};
use super::{conditions, files, run_record};
use crate::recording::sessions;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::provoke::Target;
use heaptap_capture::session::{self, Owner};
use heaptap_results::manifest::Manifest;

/// Completes the run that was going on when heaptap was killed. It counts if its steps were done,
/// and its recording was already ended and is complete; otherwise it is void.
///
/// # Errors
/// Returns the errors of [`recover::collect`].
pub(super) async fn complete(
    tools: &Tools<'_>,
    lasting: &Lasting<'_>,
    request: &LabRequest,
    target: &Target,
    progress: &mut Progress,
) -> Result<(), Failure> {
    files::remove_unfinished(&request.directory);
    if let Some(begun) = &mut progress.begun
        && begun.performed.is_some()
        && went_on(tools, &request.directory.join(files::run_name(begun.run)))?
    {
        // Written first, because later nothing shows it.
        begun.performed = None;
        progress.write(&request.directory)?;
    }
    let collect = || recover::collect(tools.device, tools.store, &request.directory);
    match lasting.request(collect).await {
        Err(failure) if sessions::leaves_nothing(&failure) => (tools.tell)(LabEvent::Warning {
            text: format!("the recording of a killed run is lost: {failure}"),
        }),
        collected => collected?,
    }
    let Some(Begun { run, performed }) = progress.begun.clone() else {
        return Ok(());
    };
    let output = request.directory.join(files::run_name(run));
    // It is empty if the recording did not begin.
    let _ = std::fs::remove_dir(&output);
    let manifest = Manifest::read(&output).ok();
    if manifest.is_none()
        && let Ok(Some(Owner::Session(id))) = session::owner_of(&output)
        && tools.store.open(&id).is_err()
    {
        (tools.tell)(LabEvent::Warning {
            text: format!(
                "the recording of run {run} was started by another host: fetch it there, or with \
                 `heaptap stop {id} -o DIR`"
            ),
        });
    }
    let is_whole = |manifest: &Manifest| {
        manifest.outcome.complete && died(target, &request.scenario, manifest).is_none()
    };
    let performed = performed.filter(|_| manifest.as_ref().is_some_and(is_whole));
    let mut figures = Vec::new();
    if manifest.is_some() {
        let labels = performed.as_ref().map(|performed| performed.labels.clone());
        figures = run_record::read(request, progress, run, labels, tools.tell).await;
    }
    let message = "heaptap ended during the run";
    let mut why = Failure::new(ErrorClass::Interrupted, "interrupted", message);
    let output = manifest.map(|_| files::run_name(run));
    let mut run = Run {
        build: progress.next_build(),
        output,
        ..Run::new(run, RunState::Void)
    };
    if let Some(performed) = performed
        && figures.iter().all(|figure| figure.measured.is_some())
    {
        let before = performed.before.unwrap_or_default();
        let of = &request.scenario.target;
        let met = || conditions::after_kill(tools.device, target, before.clone(), of);
        let (met, spoiled) = lasting.request(met).await?;
        (run.seconds, run.triggers) = (performed.seconds, performed.triggers);
        run.conditions = Some(met);
        match spoiled {
            None => run.state = RunState::Done,
            Some(failure) => why = failure,
        }
    }
    if run.state == RunState::Void {
        figures.clear();
        run.error = Some(error_of(&why));
    }
    run_record::take(progress, run, figures, tools.tell);
    Ok(())
}

/// Returns whether the recording of a run was not ended with its steps, or not everything was taken
/// at its end: heaptap was killed before it began to fetch.
fn went_on(tools: &Tools<'_>, output: &Path) -> Result<bool, Failure> {
    let sessions = recover::sessions_of(tools.store, output)?;
    Ok((sessions.iter()).any(|state| !state.ended && state.pulled.is_none()))
}
