//! `heaptap gc`: shows the collections of saved logs, of a recording, of processes on the phone.

mod show;

use std::ffi::OsString;

use tokio::sync::Notify;

use super::args::Args;
use super::run::{self, GcReport, Input, ProcessFilter, Stretch, Target};
use crate::console::signals::watch_signals;
use crate::device::Device;
use crate::eligibility::DeviceFacts;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::named::Named;
use crate::heaps::selector::JavaInput;

/// What was asked for.
enum Asked {
    /// Logs, or a recording.
    Files(Vec<Input>),
    /// Processes on the phone.
    Targets(Vec<String>),
}

/// Runs the command.
///
/// # Errors
/// Where an input cannot be read or is something else, the phone is lost, or no such process
/// runs.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    match asked(&args.inputs)? {
        Asked::Files(inputs) => {
            if args.now || args.follow || args.since.is_some() {
                return Err(usage(
                    "--now, --follow and --since are about a process on the phone",
                    "name the process, not a file",
                ));
            }
            let read = tokio::task::spawn_blocking(move || run::read(&inputs)).await;
            let report = read.map_err(|error| {
                Failure::new(ErrorClass::Bug, "bug", format!("reading failed: {error}"))
            })??;
            finish(ctx, &args, report)
        }
        Asked::Targets(targets) => {
            let device = ctx.device().await?;
            let (facts, found) = run::find(device, &targets, ctx.globals.user).await?;
            if args.now {
                return now(ctx, device, &facts, &found).await;
            }
            if args.follow {
                return follow(ctx, &args, device, &facts, &found).await;
            }
            let report = run::read_ring(device, &facts, &found, args.since).await?;
            finish(ctx, &args, report)
        }
    }
}

/// All of a file, or what happened between two labels of a recording.
fn file(input: JavaInput) -> Result<Input, Failure> {
    let Some(which) = input.which.as_ref() else {
        return Ok(Input::Path(input.path));
    };
    let which = which.to_string();
    match Stretch::parse(&which) {
        Some(stretch) => Ok(Input::Stretch(input.path, stretch)),
        None => Err(usage(
            &format!("gc shows what happened between two moments, and @{which} is one"),
            &format!(
                "give {path}@{which}.. for all that came after it, {path}@..{which} for all \
                 before, {path}@{which}..OTHER for what lies between two labels, or {path} for all",
                path = input.path.display()
            ),
        )),
    }
}

/// Files or processes, not both.
fn asked(typed: &[OsString]) -> Result<Asked, Failure> {
    let (mut files, mut targets) = (Vec::new(), Vec::new());
    for text in typed {
        if text == "-" {
            files.push(Input::Stdin);
            continue;
        }
        match Named::parse(text)? {
            Named::File(input) => files.push(file(input)?),
            Named::Process(name) => targets.push(name),
        }
    }
    match (files.is_empty(), targets.is_empty()) {
        (_, true) => Ok(Asked::Files(files)),
        (true, false) => Ok(Asked::Targets(targets)),
        (false, false) => Err(usage(
            "files and processes of a phone cannot be shown together",
            "give the one or the other",
        )),
    }
}

fn usage(what: &str, help: &str) -> Failure {
    Failure::new(ErrorClass::Usage, "usage", what).with_help(help)
}

async fn follow(
    ctx: &Context,
    args: &Args,
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let mut signals = watch_signals()?;
    let unheard = Notify::new();
    let stop = async {
        let over = async {
            match args.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = signals.recv() => {}
            () = over => {}
            () = unheard.notified() => {}
        }
    };
    let status = console.status();
    let mut running = show::Running::default();
    console.set_status(&status, "following the log; Ctrl-C sums up");
    let report = run::follow(device, facts, targets, args.since, stop, |told| {
        running.show(console, &told, targets);
        console.set_status(&status, running.state());
        // Whoever read this has gone: `| head`.
        if console.stdout_is_closed() {
            unheard.notify_one();
        }
    })
    .await;
    status.finish_and_clear();
    finish(ctx, args, report?)
}

async fn now(
    ctx: &Context,
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
) -> Result<Outcome, Failure> {
    let mut all = Vec::new();
    for target in targets {
        let collected = run::collect_now(device, facts, target).await?;
        if !ctx.console.is_json() {
            show::collected(&ctx.console, &collected);
        }
        all.push(collected);
    }
    if ctx.console.is_json() {
        ctx.console.json(&serde_json::json!({ "collected": all }));
    }
    Ok(Outcome::Done)
}

fn finish(ctx: &Context, args: &Args, mut report: GcReport) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let wanted: Vec<ProcessFilter> = args
        .processes
        .iter()
        .map(|text| ProcessFilter::parse(text))
        .collect();
    report.choose(&wanted);
    let report = &report;
    if console.is_json_lines() {
        console.json(&serde_json::json!({ "event": "report", "report": report }));
    } else if console.is_json() {
        console.json(report);
    } else if args.csv {
        show::csv(console, report);
    } else {
        show::show(console, report, args.list);
    }
    for finding in &report.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    let missing = report.findings.iter().filter_map(|f| f.class);
    let empty = report.processes.is_empty().then_some(ErrorClass::Empty);
    Ok(Outcome::of(missing.chain(empty)))
}
