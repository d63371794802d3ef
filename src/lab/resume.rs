//! Completes the recording that an interrupted run left.

use std::path::Path;

use heaptap_lab::results::{Run, RunState};

use super::events::LabEvent;
use super::once::died;
use super::recover::{self, Lasting};
use super::request::{LabRequest, Tools};
use super::state::{Begun, Performed, Progress};
use super::steps::error_of;
use super::{files, taken};
use crate::error::{ErrorClass, Failure};
use crate::provoke::Target;
use crate::results::manifest::Manifest;
use crate::session::{self, Owner};

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
    files::remove_unfinished(&request.folder);
    if let Some(begun) = &mut progress.begun
        && begun.performed.is_some()
        && went_on(tools, &request.folder.join(files::run_name(begun.run)))?
    {
        // Written first, because later nothing shows it.
        begun.performed = None;
        progress.write(&request.folder)?;
    }
    let collect = || recover::collect(tools.device, tools.store, &request.folder);
    lasting.request(collect).await?;
    let Some(Begun { run, performed }) = progress.begun.clone() else {
        return Ok(());
    };
    let output = request.folder.join(files::run_name(run));
    // It is empty if the recording did not begin.
    let _ = std::fs::remove_dir(&output);
    let manifest = Manifest::read(&output).ok();
    if manifest.is_none()
        && let Ok(Some(Owner::Session(id))) = session::owner_of(&output)
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
    let (labels, seconds) = match performed {
        Some(Performed { labels, seconds }) => (Some(labels), seconds),
        None => (None, 0.0),
    };
    let counts = labels.is_some();
    let mut figures = Vec::new();
    if manifest.is_some() {
        figures = taken::read(request, progress, run, labels, tools.tell).await;
    }
    let build = progress.next_build();
    let counts = counts && figures.iter().all(|figure| figure.measured.is_ok());
    let run = match counts {
        true => Run {
            build,
            output: Some(files::run_name(run)),
            seconds,
            ..Run::new(run, RunState::Done)
        },
        false => {
            figures.clear();
            let message = "heaptap ended during the run";
            let failure = Failure::new(ErrorClass::Interrupted, "interrupted", message);
            Run {
                state: RunState::Void,
                build,
                output: manifest.map(|_| files::run_name(run)),
                ..taken::failed_run(run, error_of(&failure))
            }
        }
    };
    taken::take(progress, run, figures, tools.tell);
    Ok(())
}

/// Returns whether the recording of a run was not ended with its steps, or not everything was taken
/// at its end: heaptap was killed before it began to fetch.
fn went_on(tools: &Tools<'_>, output: &Path) -> Result<bool, Failure> {
    let sessions = recover::sessions_of(tools.store, output)?;
    Ok((sessions.iter()).any(|state| !state.ended && state.pulled.is_none()))
}
