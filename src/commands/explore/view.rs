//! `heaptap explore`: serves the page of a Java heap, and shows it in the browser.

use super::args::Args;
use super::run::site;
use super::shown::ShownHeap;
use crate::commands::shared::browser::show_site;
use crate::commands::shared::recordings::input_missing;
use crate::commands::shared::{blocking, page};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use crate::heaps::input::DumpScope;
use crate::heaps::selector::JavaInput;
use crate::page::explore_api::ExploreOptions;
use crate::page::report::{PagePlace, ReportInput, ReportRequest};
use heaptap_base::error::Failure;
use heaptap_base::units::HumanDuration;
use heaptap_model::heap_graph::Follow;
use heaptap_results::findings::Finding;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The earlier heap cannot be read.
const NOT_COMPARED: &str = "not-compared";
/// Time in which most inputs that cannot be read fail: then no page is shown.
const SHOW_AFTER: Duration = Duration::from_millis(300);

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a Java heap, it cannot be read, or the port cannot
/// be opened.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.inputs.is_empty() {
        return Err(input_missing("explore", &args.java.target, true));
    }
    args.moment.check(&args.inputs)?;
    let typed = args.inputs.iter().map(|input| JavaInput::parse(input));
    let inputs = typed.map(|input| args.moment.one(input));
    let mut inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let input = inputs.pop().expect("an input is required");
    let console = &ctx.console;
    let mut signals = watch_signals()?;
    let typed = input.to_string();
    let options = ExploreOptions {
        input,
        earlier: inputs.pop(),
        java: args.java.options(Follow::default()),
        shows_contents: !args.redact && (args.output.is_none() || args.contents),
    };
    if let Some(output) = args.output {
        return write(ctx, options, output, args.force).await;
    }
    let shown = Arc::new(ShownHeap::new(options, args.idle));
    let site = site(&shown, args.port).await?;
    let mut reading = {
        let shown = Arc::clone(&shown);
        tokio::task::spawn_blocking(move || shown.read())
    };
    let (url, entry_url) = (site.url(), site.entry_url());
    let mut serving = Box::pin(site.serve(args.idle));
    let mut is_read = false;
    let mut is_shown = false;
    let show = tokio::time::sleep(SHOW_AFTER);
    tokio::pin!(show);
    loop {
        tokio::select! {
            read = &mut reading, if !is_read => {
                is_read = true;
                let read = blocking::ended(Some(read))?;
                console.findings(&read.warnings);
                if let Some(reason) = &read.not_compared {
                    console.findings([&Finding::new(NOT_COMPARED, None, reason)]);
                }
                if read.is_complete {
                    console.detail("all indices are built");
                }
            }
            () = &mut show, if !is_shown => {
                is_shown = true;
                if console.is_json() {
                    console.json(&json!({ "url": url }));
                } else if args.print_url {
                    console.data(&url);
                }
                if !args.print_url {
                    show_site(console, &entry_url, &url);
                }
                console.say(format_args!(
                    "exploring {typed}; ends {} after the page is closed, or with Ctrl-C",
                    HumanDuration(args.idle)
                ));
            }
            served = &mut serving => {
                served?;
                return Ok(Outcome::Done);
            }
            _ = signals.recv() => return Ok(Outcome::Done),
        }
    }
}

/// Writes the page of `report` with the Java heaps.
async fn write(
    ctx: &Context,
    options: ExploreOptions,
    output: PathBuf,
    force: bool,
) -> Result<Outcome, Failure> {
    let input = |input: JavaInput| ReportInput {
        path: input.path,
        wanted: match input.which {
            Some(which) => DumpScope::These(vec![which]),
            None => DumpScope::Default,
        },
        mappings: Vec::new(),
    };
    let request = ReportRequest {
        inputs: vec![input(options.input)],
        base: options.earlier.map(input),
        java: options.java,
        java_only: true,
        contents: options.shows_contents,
        ..ReportRequest::default()
    };
    let goal = PagePlace::Typed(output);
    let told = page::write(ctx, request, goal.clone(), force).await?;
    ctx.console.findings(&told.findings);
    page::show(ctx, goal.path(), &told);
    Ok(told.class.into())
}
