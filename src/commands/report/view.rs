//! `heaptap report`: writes a page to view, to archive or to attach to a bug report.

use std::ffi::OsString;
use std::path::PathBuf;

use super::args::Args;
use crate::commands::shared::browser::show_page;
use crate::commands::shared::page::{PageOf, beside, is_stdout, show, write};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::heaps::input::DumpScope;
use crate::page::report::{PAGE, PagePlace, ReportInput, ReportRequest};
use heaptap_base::error::{Classified as _, Failure};
use heaptap_model::heap_graph::Follow;
use heaptap_report::data::header::Per;

/// Runs the command.
///
/// # Errors
/// Returns an error if an input does not contain a heap or the page cannot be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    args.native
        .moment
        .check(args.inputs.iter().chain(&args.base))?;
    args.native.heap.refuse_java_parts("report")?;
    let console = &ctx.console;
    let input = |typed: &OsString| {
        let (input, wanted) = args.native.input(typed, DumpScope::All);
        ReportInput {
            path: input.path,
            wanted,
            mappings: Vec::new(),
        }
    };
    let request = ReportRequest {
        inputs: args.inputs.iter().map(input).collect(),
        base: args.base.as_ref().map(input),
        per: args.rounds.map(|rounds| Per::iterations(rounds as f64)),
        look: args.native.options(&args.java),
        java: args.java.options(Follow::default()),
        java_only: args.native.heap.is_java_only(),
        native_only: args.native.heap.is_native_only(),
        limit: args.limit,
        contents: args.contents,
    };
    let is_whole = matches!(&request.inputs[..], [only] if only.wanted == DumpScope::All)
        && args.native.heap.heaps.is_empty()
        && request.look.processes.is_empty();
    let what = match (&request.base, is_whole) {
        (Some(_), _) => PageOf::Difference,
        (None, true) => PageOf::Whole,
        (None, false) => PageOf::Part,
    };
    let goal = match (args.output, request.inputs.first()) {
        (Some(output), _) => PagePlace::Typed(output),
        (None, Some(first)) => beside(&first.path, what),
        (None, None) => PagePlace::Named(PathBuf::from(PAGE)),
    };
    let to_stdout = is_stdout(&goal);
    if to_stdout && (console.is_json() || args.open) {
        let other = if args.open { "--open" } else { "--json" };
        let message = format!("cannot write the page to standard output with `{other}`");
        return Err(Failure::usage(message).with_help("name a file with `-o`"));
    }
    let told = write(ctx, request, goal.clone(), args.force).await?;
    console.findings(&told.findings);
    show(ctx, goal.path(), &told);
    if args.open {
        // The page is complete even if the browser cannot show it.
        let shown = show_page(ctx, goal.path()).await;
        let class = told.class.into_iter();
        return match shown {
            Err(error) if told.class.is_none() => Err(error.into()),
            Err(error) => Ok(Outcome::from_classes(class.chain([error.class()]))),
            Ok(()) => Ok(Outcome::from_classes(class)),
        };
    }
    Ok(told.class.into())
}
