//! Report pages: writing them to a file or a recording directory, and messages about them.

use crate::commands::shared::blocking;
use crate::commands::shared::paths::near;
use crate::console::flags::context::Context;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::native::NativeArgs;
use crate::console::flags::no_report::NoReportArgs;
use crate::page::report::{
    self, PAGE, PagePlace, ReportFile, ReportOutcome, ReportRequest, Target,
};
use crate::recording::outcome::Finished;
use heaptap_base::error::Failure;
use heaptap_base::unfinished::ExistingFile;
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::session::part_prefix;
use heaptap_model::heap_graph::Follow;
use heaptap_results::manifest::{Manifest, Page, Warning};
use heaptap_results::overwrite::OverwriteError;
use heaptap_results::publication::{Staging, Unpublished};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Returns whether the page goes to standard output.
pub(crate) fn is_stdout(goal: &PagePlace) -> bool {
    *goal == PagePlace::Typed(PathBuf::from("-"))
}

/// Prints the location of the page.
pub(crate) fn show(ctx: &Context, goal: &Path, outcome: &ReportOutcome) {
    let console = &ctx.console;
    if let Some(page) = &outcome.page {
        console.raw(page);
        return;
    }
    if console.is_json() {
        console.json(&json!({ "output": goal.to_string_lossy(), "bytes": outcome.bytes }));
    }
    console.say(format_args!(
        "wrote {} ({}); open it in any browser",
        near(goal).display(),
        ByteSize(outcome.bytes)
    ));
}

/// Ends a recording of native heaps: writes the page into its directory, then removes its journal.
/// The recording is complete without both. Returns the path of the page if it was written.
pub(crate) async fn leave(
    ctx: &Context,
    args: NoReportArgs,
    finished: &mut Finished,
) -> Option<PathBuf> {
    let page = leave_page(ctx, args, finished).await;
    end_session(ctx, finished);
    page
}

/// Removes the journal of a finished recording.
pub(crate) fn end_session(ctx: &Context, finished: &mut Finished) {
    if let Err(error) = finished.journal.forget() {
        let help = format!(
            "run `heaptap stop {}` to remove its session",
            finished.session
        );
        ctx.console.warn_with_help(
            format!("the recording is complete, but {error}"),
            Some(&help),
        );
    }
}

async fn leave_page(ctx: &Context, args: NoReportArgs, finished: &mut Finished) -> Option<PathBuf> {
    let dumps = &finished.manifest.dumps.native;
    if args.no_report || finished.no_report || dumps.iter().all(|dump| dump.file.is_none()) {
        return None;
    }
    let directory = finished.output.as_path();
    let java = JavaArgs::default();
    let look = NativeArgs::default().options(&java);
    let request = ReportRequest::of_all(directory, look, java.options(Follow::default()));
    let page = directory.join(PAGE);
    let written = async {
        if page.exists() && !report::is_page(&page) {
            return Err(OverwriteError::Exists(page.clone()).into());
        }
        // With the name of the session, `stop` finds it if this process is killed.
        let staging = Staging::new(directory, &part_prefix(&finished.session));
        let staging = staging.map_err(|source| report::unwritable(&page, &source))?;
        let place = PagePlace::Named(staging.path().join(PAGE));
        let outcome = write(ctx, request, place, false).await?;
        let manifest = Manifest {
            page: Some(Page {
                file: PAGE.to_owned(),
                sha256: outcome.sha256,
            }),
            ..finished.manifest.clone()
        };
        manifest.write(staging.path())?;
        staging
            .publish(ExistingFile::IsReplaced)
            .map_err(Unpublished::of_command)?;
        Ok::<_, Failure>(manifest)
    };
    match written.await {
        Ok(manifest) => {
            finished.manifest = manifest;
            Some(page)
        }
        Err(failure) => {
            let message = format!("there is no {PAGE}: {}", failure.message);
            let help = format!(
                "the recording is complete without it; to write it, run `heaptap report {}`",
                quoted_path(&finished.output)
            );
            // The summary shows it.
            let warning = Warning::new("page-unwritten", message).with_help(help);
            finished.manifest.warnings.push(warning);
            None
        }
    }
}

/// Writes the page to its place, or returns it if that is standard output.
///
/// # Errors
/// As [`report::write`].
pub(crate) async fn write(
    ctx: &Context,
    request: ReportRequest,
    goal: PagePlace,
    force: bool,
) -> Result<ReportOutcome, Failure> {
    blocking::stepwise(ctx, move |progress| -> Result<ReportOutcome, Failure> {
        let target = match is_stdout(&goal) {
            true => Target::Memory,
            false => {
                let inputs = request.base.iter().chain(&request.inputs);
                let inputs: Vec<&Path> = inputs.map(|input| input.path.as_path()).collect();
                Target::File(ReportFile::create(&goal, &inputs, force)?)
            }
        };
        report::write(&request, progress, target)
    })
    .await
}

/// What a page shows of its input. Each has a name of its own, so that none replaces another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PageOf {
    Whole,
    /// Some of the dumps, heaps or processes, or several inputs.
    Part,
    Difference,
}

/// Returns the default place of a page.
pub(crate) fn beside(input: &Path, what: PageOf) -> PagePlace {
    let (name, suffix) = match what {
        PageOf::Whole => (PAGE, ".html"),
        PageOf::Part => ("report-part.html", ".part.html"),
        PageOf::Difference => ("diff.html", ".diff.html"),
    };
    if input.is_dir() {
        return PagePlace::Named(input.join(name));
    }
    PagePlace::Named(match input.file_name() {
        Some(file) if input != Path::new("-") => {
            let mut file = file.to_owned();
            file.push(suffix);
            PathBuf::from(file)
        }
        _ => PathBuf::from(name),
    })
}
