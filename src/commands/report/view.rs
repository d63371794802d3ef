//! `heaptap report`: a page to look at, to keep, to attach to a bug.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{Classified as _, ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::iterations::iteration_count;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::heap_graph::Follow;
use crate::heaps::look::Wanted;
use crate::pages::PAGE;
use crate::pages::{PagePlace, ReportInput, ReportRequest};
use crate::report::data::header::Per;
use crate::views::browser::show_page;
use crate::views::page::{beside, is_stdout, show, write};

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
        let shown = show_page(ctx, goal.path()).await;
        let class = told.class.into_iter();
        return match shown {
            Err(error) if told.class.is_none() => Err(error.into()),
            Err(error) => Ok(Outcome::of(class.chain([error.class()]))),
            Ok(()) => Ok(Outcome::of(class)),
        };
    }
    Ok(told.class.into())
}
