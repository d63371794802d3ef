//! `heaptap report`: a page to look at, to keep, to attach to a bug.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::commands::diff::view::iteration_count;
use crate::commands::open::view as open;
use crate::error::{Classified as _, ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::heap_graph::Follow;
use crate::heaps::look::Wanted;
pub(crate) use crate::pages::PAGE;
use crate::pages::{
    self, PagePlace, ReportError, ReportFile, ReportInput, ReportRequest, Target, Told,
};
use crate::recording::finish::Finished;
use crate::report::data::header::Per;
use crate::results::manifest::{Manifest, Page};
use crate::results::output::{Staging, Unpublished};
use crate::session::part_prefix;
use crate::units::ByteSize;
use crate::views::{blocking, summary};

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap report rec                             writes report.html into the recording\n  \
    heaptap report rec@after --base rec@before     what grew between two of its dumps\n  \
    heaptap report new.pb.gz --base old.pb.gz -o diff.html\n  \
    heaptap report dump.hprof                      writes dump.hprof.html\n  \
    heaptap report rec -o - | less                 the page on standard output")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; PATH@LABEL, PATH@N or PATH@last for
    /// one dump
    ///
    /// Of several, all dumps stand on one timeline, callsites joined by name. A recording without
    /// Java heaps shows those of a recording in its folder that is called java.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// Show the difference to this input or dump
    #[arg(long, value_name = "INPUT")]
    pub base: Option<OsString>,
    /// Divide differences by N iterations
    #[arg(long, value_name = "N", value_parser = iteration_count, requires = "base")]
    pub per: Option<f64>,
    /// The page, - for stdout [default: report.html in a recording's folder, else a file called
    /// after INPUT in the current folder]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite a file that is no report of heaptap
    #[arg(long)]
    pub force: bool,
    /// Every callsite; else, of more than a million, the smallest are summed up in their callers
    #[arg(long)]
    pub full: bool,
    /// Show texts and other contents of Java heaps on the page
    ///
    /// Without this flag the page has lengths and hashes of strings and arrays that occur several
    /// times, and no keys of maps.
    #[arg(long)]
    pub contents: bool,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Which native heap.
    #[command(flatten)]
    pub native: NativeArgs,
    /// How Java heaps are looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}

/// Runs the command.
///
/// # Errors
/// Where an input holds no heap, or the page can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let input = |typed: &OsString| {
        let (input, wanted) = args.native.input(typed, Wanted::All);
        ReportInput {
            path: input.path,
            wanted,
            mappings: Vec::new(),
        }
    };
    let request = ReportRequest {
        inputs: args.inputs.iter().map(input).collect(),
        base: args.base.as_ref().map(input),
        per: args.per.map(Per::iterations),
        look: args.native.options(&args.java),
        java: args.java.options(Follow::default()),
        java_only: args.native.is_java,
        full: args.full,
        contents: args.contents,
    };
    let goal = match (args.output, request.inputs.first()) {
        (Some(output), _) => PagePlace::Typed(output),
        (None, Some(first)) => beside(&first.path, request.base.is_some()),
        (None, None) => PagePlace::Named(PathBuf::from(PAGE)),
    };
    let to_stdout = is_stdout(&goal);
    if to_stdout && (console.is_json() || args.open) {
        let other = if args.open { "--open" } else { "--json" };
        let message = format!("{other} does not go with a page on standard output");
        return Err(
            Failure::new(ErrorClass::Usage, "usage", message).with_help("name a file with -o")
        );
    }
    let told = write(ctx, request, goal.clone(), args.force).await?;
    for finding in &told.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    show(ctx, goal.path(), &told);
    if args.open {
        // The page is whole, whether anybody shows it or not.
        let shown = open::show_page(ctx, goal.path()).await;
        let class = told.class.into_iter();
        return match shown {
            Err(error) if told.class.is_none() => Err(error.into()),
            Err(error) => Ok(Outcome::of(class.chain([error.class()]))),
            Ok(()) => Ok(Outcome::of(class)),
        };
    }
    Ok(told.class.into())
}

/// Whether the page goes to standard output.
pub(crate) fn is_stdout(goal: &PagePlace) -> bool {
    *goal == PagePlace::Typed(PathBuf::from("-"))
}

/// Says where the page is.
pub(crate) fn show(ctx: &Context, goal: &Path, told: &Told) {
    let console = &ctx.console;
    if let Some(page) = &told.page {
        console.raw(page);
        return;
    }
    if console.is_json() {
        console.json(&json!({ "output": goal, "bytes": told.bytes }));
    }
    console.say(format_args!(
        "wrote {} ({}): open it in any browser",
        summary::near(goal).display(),
        ByteSize(told.bytes)
    ));
}

/// Whether a recording leaves a page.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct LeaveArgs {
    /// Leave no report.html in the folder
    #[arg(long)]
    pub no_report: bool,
}

/// Writes the page of a recording of native heaps into its folder: the last thing that is done
/// with it, and nothing of the recording depends on it. Where the page is if it was written.
pub(crate) async fn leave(
    ctx: &Context,
    args: LeaveArgs,
    finished: &mut Finished,
) -> Option<PathBuf> {
    let dumps = &finished.manifest.dumps.native;
    if args.no_report || dumps.iter().all(|dump| dump.file.is_none()) {
        return None;
    }
    let folder = finished.output.as_path();
    let input = ReportInput {
        path: folder.to_owned(),
        wanted: Wanted::All,
        mappings: Vec::new(),
    };
    let java = JavaArgs::default();
    let request = ReportRequest {
        inputs: vec![input],
        base: None,
        per: None,
        look: NativeArgs::default().options(&java),
        java: java.options(Follow::default()),
        java_only: false,
        full: false,
        contents: false,
    };
    let page = folder.join(PAGE);
    let written = async {
        if page.exists() && !pages::is_page(&page) {
            return Err(ReportError::Taken(page.clone()).into());
        }
        // With the session's name, `collect` finds it if this process is killed over it.
        let staging = Staging::new(folder, &part_prefix(&finished.session));
        let staging = staging.map_err(|source| ReportError::Write {
            path: page.clone(),
            source,
        })?;
        let place = PagePlace::Named(staging.path().join(PAGE));
        let told = write(ctx, request, place, false).await?;
        let manifest = Manifest {
            page: Some(Page {
                file: PAGE.to_owned(),
                sha256: told.sha256,
            }),
            ..finished.manifest.clone()
        };
        manifest.write(staging.path())?;
        staging.publish(true).map_err(Unpublished::of_command)?;
        Ok::<_, Failure>(manifest)
    };
    match written.await {
        Ok(manifest) => {
            finished.manifest = manifest;
            Some(page)
        }
        Err(failure) => {
            ctx.console.warn_with_help(
                format!("{PAGE} was not written: {}", failure.message),
                Some("the recording is complete without; heaptap report FOLDER writes it again"),
            );
            None
        }
    }
}

/// Writes the page to its place, or gives it back where that is standard output.
///
/// # Errors
/// As [`pages::write`].
pub(crate) async fn write(
    ctx: &Context,
    request: ReportRequest,
    goal: PagePlace,
    force: bool,
) -> Result<Told, Failure> {
    blocking::stepwise(ctx, move |steps| -> Result<Told, ReportError> {
        let target = match is_stdout(&goal) {
            true => Target::Memory,
            false => {
                let inputs = request.base.iter().chain(&request.inputs);
                let inputs: Vec<&Path> = inputs.map(|input| input.path.as_path()).collect();
                Target::File(ReportFile::create(&goal, &inputs, force)?)
            }
        };
        pages::write(&request, steps, target)
    })
    .await
}

/// The page's place where none was named.
pub(crate) fn beside(input: &Path, is_diff: bool) -> PagePlace {
    let name = if is_diff { "diff.html" } else { PAGE };
    if input.is_dir() {
        return PagePlace::Named(input.join(name));
    }
    PagePlace::Named(match input.file_name() {
        Some(file) if input != Path::new("-") => {
            let mut file = file.to_owned();
            file.push(if is_diff { ".diff.html" } else { ".html" });
            PathBuf::from(file)
        }
        _ => PathBuf::from(name),
    })
}
