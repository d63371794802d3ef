//! Two builds that alternate on one device: installs the build of each run. Every run begins with an
//! installation, also if the build stays the same, so that all begin alike.

use std::path::Path;

use heaptap_lab::results::Build;

use super::events::LabEvent;
use super::request::LabRequest;
use super::single_run::{self, Over, RunContext};
use super::state::Progress;
use super::{install, phone};
use heaptap_base::error::Failure;
use heaptap_capture::provoke::Cancel;

/// Installs the build of the next run and performs the setup. Does nothing without an old build.
///
/// # Errors
/// Returns the run that could not begin.
pub(super) async fn begin(
    bench: &RunContext<'_>,
    request: &LabRequest,
    progress: &mut Progress,
) -> Result<(), Box<Over>> {
    let Some(build) = progress.next_build() else {
        return Ok(());
    };
    let not_begun = |failure: Failure| Box::new(Over::of_failure(&failure));
    put(bench, request, progress, build, bench.cancel)
        .await
        .map_err(not_begun)?;
    let app = phone::app(bench.device, &bench.target.package).await;
    let version = app.map_err(not_begun)?.version;
    match build {
        Build::Old => progress.old_app_version = version,
        Build::New => progress.app_version = version,
    }
    single_run::set_up(bench, &request.scenario.setup, &request.record)
        .await
        .map_err(|failed| Box::new(Over::of_step(&failed)))
}

/// Leaves the new build on the device. The results are complete without it.
pub(super) async fn end(bench: &RunContext<'_>, request: &LabRequest, progress: &mut Progress) {
    if !progress.two_builds || progress.installed == Some(Build::New) {
        return;
    }
    // It is part of restoring the device, which an interruption does not prevent.
    let (_canceller, never) = Cancel::new();
    if let Err(error) = put(bench, request, progress, Build::New, &never).await {
        let text = format!("the new build is not on the device: {}", error.message);
        (bench.tell)(LabEvent::Warning { text });
    }
}

async fn put(
    bench: &RunContext<'_>,
    request: &LabRequest,
    progress: &mut Progress,
    build: Build,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let (app, base) = match build {
        Build::Old => (request.against.as_ref(), Path::new("")),
        Build::New => (request.scenario.install.as_ref(), request.base.as_path()),
    };
    progress.installed = None;
    if let Some(app) = app {
        install::install(bench.device, app, base, &bench.target.package, cancel).await?;
    }
    progress.installed = Some(build);
    progress.write(&request.directory)
}
