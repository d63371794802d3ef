//! `heaptap gc`: shows the collections in saved logs, in a recording, or of processes on the
//! device.

mod show;

use std::ffi::OsString;

use tokio::sync::Notify;

use super::args::{Args, ByArg};
use super::run::{self, GcReport, Input, Stretch, Target};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::source;
use crate::console::signals::watch_signals;
use crate::heaps::selector::{ALL, DumpSelector, JavaInput};
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility::DeviceFacts;
use heaptap_input::STDIN;
use heaptap_results::findings::{self, Finding};

/// Runs the command.
///
/// # Errors
/// Returns an error if an input cannot be read or has the wrong kind, the device is lost, or no
/// such process is running.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if !args.inputs.is_empty() {
        args.moment.check(&args.inputs)?;
        if args.now || args.follow || args.since.is_some() {
            return Err(usage(
                "`--now`, `--follow` and `--since` apply to processes on the device",
                "name a process with `-n` or `-p` instead of an input",
            ));
        }
        let inputs = inputs(&args)?;
        let read = tokio::task::spawn_blocking(move || run::read(&inputs)).await;
        let report = read.map_err(|error| {
            Failure::new(ErrorClass::Bug, "bug", format!("reading failed: {error}"))
        })??;
        return finish(ctx, &args, report, false);
    }
    args.moment.refuse_without_input()?;
    let targets = args.target.required()?.targets();
    let device = ctx.device().await?;
    let (facts, found) = run::find(device, &targets, ctx.globals.user).await?;
    if args.now {
        return now(ctx, device, &facts, &found).await;
    }
    if args.follow {
        return follow(ctx, &args, device, &found).await;
    }
    let report = run::read_ring(device, &facts, &found, args.since).await?;
    finish(ctx, &args, report, found.iter().any(|t| t.has_art))
}

/// The inputs with the periods that are meant.
fn inputs(args: &Args) -> Result<Vec<Input>, Failure> {
    let period = match args.moment.moments.as_slice() {
        [] => None,
        [period] => Some(DumpSelector::parse(period)),
        _ => {
            return Err(usage(
                "gc shows one period, and several are named",
                "name one: --at FROM..TO",
            ));
        }
    };
    let input = |typed: &OsString| {
        if typed == STDIN {
            return match period {
                None => Ok(Input::Stdin),
                Some(_) => Err(usage(
                    "standard input does not have the labels that `--at` names",
                    "name a recording's directory, or leave out `--at`",
                )),
            };
        }
        let mut input = source::input("gc", typed)?;
        input.which = input.which.or_else(|| period.clone());
        file(input)
    };
    args.inputs.iter().map(input).collect()
}

/// Returns the input for a whole file, or for the time between two labels of a recording.
fn file(input: JavaInput) -> Result<Input, Failure> {
    let Some(which) = input.which.as_ref() else {
        return Ok(Input::Path(input.path));
    };
    let which = which.to_string();
    if which == ALL {
        return Ok(Input::Path(input.path));
    }
    match Stretch::parse(&which) {
        Some(stretch) => Ok(Input::Stretch(input.path, stretch)),
        None => Err(usage(
            &format!("`gc` shows the time between two labels, but @{which} is one label"),
            &format!(
                "use `{path}@{which}..` for the time after it, `{path}@..{which}` for the time \
                 before, `{path}@{which}..OTHER` for the time between two labels, or `{path}` for \
                 all",
                path = input.path.display()
            ),
        )),
    }
}

fn usage(what: &str, help: &str) -> Failure {
    Failure::usage(what).with_help(help)
}

async fn follow(
    ctx: &Context,
    args: &Args,
    device: &Device,
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
    console.set_status(&status, "following the log; press Ctrl-C for the summary");
    let report = run::follow(device, targets, args.since, stop, |told| {
        running.show(console, &told, targets);
        console.set_status(&status, running.state());
        // The reader of stdout closed it, as in `| head`.
        if console.stdout_is_closed() {
            unheard.notify_one();
        }
    })
    .await;
    status.finish_and_clear();
    finish(ctx, args, report?, false)
}

async fn now(
    ctx: &Context,
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let mut all = Vec::new();
    let mut failures: Vec<Failure> = Vec::new();
    for target in targets {
        match run::collect_now(device, facts, target).await {
            Ok(collected) => {
                if !console.is_json() {
                    show::collected(console, &collected);
                }
                all.push(collected);
            }
            Err(error) => {
                // The others are on the same device.
                let is_lost = error.is_connection();
                failures.push(error.into());
                if is_lost {
                    break;
                }
            }
        }
    }
    let mut warnings: Vec<Finding> = failures.iter().map(Finding::from_failure).collect();
    let class = ErrorClass::first_of(warnings.iter().filter_map(|one| one.class));
    // Without a collection, the gravest failure is the error.
    let gravest = warnings.iter().position(|one| one.class == class);
    let error = gravest.filter(|_| all.is_empty()).map(|at| {
        warnings.remove(at);
        failures.swap_remove(at)
    });
    if console.is_json() && error.is_none() {
        console.json(&serde_json::json!({ "collected": all, "warnings": warnings }));
    }
    console.findings(&warnings);
    match error {
        Some(error) => Err(error),
        None => Ok(Outcome::from_classes(class)),
    }
}

/// Prints the report. `can_now`: collections can be forced, and were not followed.
fn finish(
    ctx: &Context,
    args: &Args,
    mut report: GcReport,
    can_now: bool,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if !args.inputs.is_empty() {
        report.choose(&args.target.filter());
    }
    let report = &report;
    if console.is_json_lines() {
        console.json(&serde_json::json!({ "event": "report", "report": report }));
    } else if console.is_json() {
        console.json(report);
    } else if args.csv {
        show::csv(console, report);
    } else {
        show::show(console, report, args.by == Some(ByArg::Collection));
        let is_quiet = report.processes.is_empty() && report.findings.is_empty();
        if is_quiet && can_now {
            console.say("`--now` forces a collection, and `--follow` shows the next ones");
        }
    }
    console.findings(&report.findings);
    let class = match report.processes.is_empty() {
        true => findings::class_of_empty(&report.findings),
        false => findings::class(&report.findings),
    };
    Ok(Outcome::from_classes(class))
}
