//! `heaptap open`: serves a trace to the Perfetto UI in the browser, or shows a page of `report`.

use std::path::Path;

use serde_json::json;

use super::args::Args;
use super::run::{self, ServeOptions, Shown, TraceToShow, UI_PORT, Ui};
use crate::commands::shared::browser::show_site;
pub(crate) use crate::commands::shared::browser::{file_url, show_page};
use crate::commands::shared::{blocking, page};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::native::NativeArgs;
use crate::console::signals::watch_signals;
use crate::heaps::selector::JavaInput;
use crate::page::net::{Ended, ServerEvent};
use crate::page::report::{PagePlace, ReportRequest};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, HumanDuration};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::heap_graph::Follow;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input cannot be shown, the port cannot be opened, or the trace is not
/// fetched.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let ui = Ui::parse(&args.ui)?;
    let input = JavaInput::parse(&args.input);
    if input.which.is_some() {
        let message = format!("cannot open the single dump {input}: a trace is shown as a whole");
        let help = format!("heaptap report {} --open", quoted_path(input.to_string()));
        return Err(Failure::usage(message).with_help(help));
    }
    let path = input.path.clone();
    let shown = blocking::stepwise(ctx, move |progress| {
        progress.begin("opening the input");
        run::choose(&path)
    })
    .await?;
    match shown {
        Shown::Trace(trace) => {
            let page = args.page || args.port.is_some_and(|port| port != UI_PORT);
            let usual = if page { 0 } else { UI_PORT };
            let options = ServeOptions {
                ui,
                port: args.port.unwrap_or(usual),
                page,
            };
            show_trace(ctx, trace, &options, &args).await
        }
        Shown::Page(page) => {
            if !args.print_url {
                show_page(ctx, &page).await?;
            }
            print_page(ctx, &page, args.print_url);
            Ok(Outcome::Done)
        }
        Shown::NoPageYet => {
            let place = page::beside(&input.path, page::PageOf::Whole);
            let page = place.path().to_owned();
            let outcome = make_page(ctx, &input.path, place).await?;
            if !args.print_url {
                show_page(ctx, &page).await?;
            }
            print_page(ctx, &page, args.print_url);
            Ok(outcome)
        }
    }
}

/// Serves the trace once.
async fn show_trace(
    ctx: &Context,
    trace: TraceToShow,
    options: &ServeOptions,
    args: &Args,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    console.findings(&trace.finding());
    let name = trace.name.clone();
    let mut signals = watch_signals()?;
    let served = run::give(trace, options).await?;
    let size = ByteSize(served.bytes);
    if console.is_json() {
        console.json(&json!({
            "url": served.url,
            "trace_url": served.trace_url,
            "name": name,
            "bytes": served.bytes,
        }));
    } else if args.print_url {
        console.data(&served.url);
    }
    let input = quoted_path(&args.input);
    console.say(format_args!(
        "opening {}, a page on the network, in the browser. The page fetches {name} ({size}) from \
         this host.",
        args.ui
    ));
    console.say(format_args!(
        "without the network: heaptap report {input} --open"
    ));
    if !args.print_url {
        show_site(console, &served.once_url, &served.url);
        if !options.page {
            console.detail(
                "if the browser asks, allow the UI to reach this host, so that it can fetch the \
                 trace. The trace stays in the browser.",
            );
        }
    }
    // Printed before the wait, so that it does not look like a hang.
    console.say(format_args!(
        "serving until the trace is fetched, at most {} (press Ctrl-C to stop)",
        HumanDuration(args.timeout)
    ));
    let teller = console.clone();
    let server = served.server.serve(args.timeout, move |told| match told {
        ServerEvent::Fetching => teller.detail("the trace is being fetched"),
        ServerEvent::Refused(status) => teller.detail(format_args!("refused a request: {status}")),
    });
    tokio::select! {
        ended = server => match ended {
            Ok(Ended::Fetched) => {
                console.say(format_args!("the browser fetched the trace ({size})"));
                Ok(Outcome::Done)
            }
            Ok(Ended::TimedOut) => Err(run::not_fetched(args.timeout)),
            Err(error) => Err(error),
        },
        _ = signals.recv() => {
            let message = "interrupted before the trace was fetched";
            Err(Failure::new(ErrorClass::Interrupted, "interrupted", message))
        }
    }
}

/// Creates a page like `heaptap report INPUT`.
async fn make_page(ctx: &Context, input: &Path, page: PagePlace) -> Result<Outcome, Failure> {
    let (native, java) = (NativeArgs::default(), JavaArgs::default());
    let look = native.options(&java);
    let request = ReportRequest::of_all(input, look, java.options(Follow::default()));
    let told = page::write(ctx, request, page, false).await?;
    ctx.console.findings(&told.findings);
    Ok(told.class.into())
}

/// Prints the address of a page, for scripts.
fn print_page(ctx: &Context, page: &Path, print_url: bool) {
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let url = file_url(&page);
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "url": url, "report": page }));
    } else if print_url {
        ctx.console.data(&url);
    }
}
