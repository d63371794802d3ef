//! `heaptap open`: gives a trace to Perfetto's UI in the browser, or shows a page of `report`'s.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;

use super::args::Args;
use super::run::{self, OpenError, ServeOptions, Shown, TraceToShow, UI_PORT, Ui};
use crate::console::Console;
use crate::console::signals::watch_signals;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::heap_graph::Follow;
use crate::heaps::input::DumpScope;
use crate::heaps::selector::JavaInput;
use crate::net::{Ended, ServerEvent};
use crate::pages::browser;
use crate::pages::{PagePlace, ReportInput, ReportRequest};
use crate::units::{ByteSize, HumanDuration};
use crate::untrusted::shell::quoted_path;
use crate::views::blocking;
pub(crate) use crate::views::browser::{file_url, show_page};
use crate::views::page;

/// Runs the command.
///
/// # Errors
/// Where the input can't be shown, the port can't be had, or nobody fetches the trace.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let ui = Ui::parse(&args.ui)?;
    let input = JavaInput::parse(&args.input);
    if input.which.is_some() {
        let message = format!("{input} is one dump, and a trace is shown whole");
        let help = format!("heaptap report {} --open", quoted_path(input.to_string()));
        return Err(Failure::new(ErrorClass::Usage, "usage", message).with_help(help));
    }
    let path = input.path.clone();
    let shown = blocking::stepwise(ctx, move |progress| {
        progress.begin("opening the input");
        run::choose(&path, args.report)
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
            let place = page::beside(&input.path, false);
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

/// Gives the trace away, once.
async fn show_trace(
    ctx: &Context,
    trace: TraceToShow,
    options: &ServeOptions,
    args: &Args,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if let Some(finding) = trace.finding() {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
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
    if !args.print_url {
        console.say(format_args!("serving {name} ({size}) to {}", args.ui));
        console.say(format_args!("if no browser opens: {}", served.url));
        if !options.page {
            console.detail(
                "a browser may ask whether the UI may reach this computer: it must, to fetch the \
                 trace; the UI keeps it in the browser",
            );
        }
        let input = quoted_path(&args.input);
        console.say(format_args!(
            "the UI needs the network; `heaptap open {input} --report` does not"
        ));
    }
    // Told before the wait, so that it is not taken for a hang.
    console.say(format_args!(
        "serving until it is fetched, at most {} (Ctrl-C ends it)",
        HumanDuration(args.timeout)
    ));
    if !args.print_url {
        let (console, url, once_url) = (console.clone(), served.url.clone(), served.once_url);
        // Some programs answer only when the window is closed.
        tokio::spawn(async move {
            if let Err(error) = browser::open(OsStr::new(&once_url)).await {
                no_browser(&console, &url, &error);
            }
        });
    }
    let teller = console.clone();
    let server = served.server.serve(args.timeout, move |told| match told {
        ServerEvent::Fetching => teller.detail("the trace is being fetched"),
        ServerEvent::Refused(status) => teller.detail(format_args!("refused a request: {status}")),
    });
    tokio::select! {
        ended = server => match ended {
            Ok(Ended::Fetched) => {
                console.say(format_args!("the browser has the trace ({size})"));
                Ok(Outcome::Done)
            }
            Ok(Ended::TimedOut) => Err(OpenError::NotFetched(args.timeout).into()),
            Err(source) => Err(OpenError::NoConnections { source }.into()),
        },
        _ = signals.recv() => {
            let message = "interrupted before the trace was fetched";
            Err(Failure::new(ErrorClass::Interrupted, "interrupted", message))
        }
    }
}

/// Nobody was started; who waits for the trace may still come.
fn no_browser(console: &Console, url: &str, error: &std::io::Error) {
    console.warn_with_help(
        format_args!("no browser could be started: {error}"),
        Some(&format!("open {url} in a browser yourself")),
    );
}

/// Makes a page as `heaptap report INPUT` does.
async fn make_page(ctx: &Context, input: &Path, page: PagePlace) -> Result<Outcome, Failure> {
    let (native, java) = (NativeArgs::default(), JavaArgs::default());
    let request = ReportRequest {
        inputs: vec![ReportInput {
            path: input.to_owned(),
            wanted: DumpScope::All,
            mappings: Vec::new(),
        }],
        base: None,
        per: None,
        look: native.options(&java),
        java: java.options(Follow::default()),
        java_only: false,
        full: false,
        contents: false,
    };
    let told = page::write(ctx, request, page, false).await?;
    for finding in &told.findings {
        let help = finding.help.as_deref();
        ctx.console.warn_with_help(&finding.message, help);
    }
    Ok(told.class.into())
}

/// Prints where a page is, for scripts.
fn print_page(ctx: &Context, page: &Path, print_url: bool) {
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let url = file_url(&page);
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "url": url, "report": page }));
    } else if print_url {
        ctx.console.data(&url);
    }
}
