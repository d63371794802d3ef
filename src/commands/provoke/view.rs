//! `heaptap provoke`: options and outcome of the command. `show` formats the events.

mod show;

use std::sync::{Arc, Mutex};

use serde_json::json;

use self::show::{Next, Show, put_back_words};
use super::args::Args;
use super::run as actions;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::target::TargetArgs;
use crate::console::signals::watch_signals;
use crate::console::{Console, Style};
use crate::heaps::smaps::fetch;
use heaptap_adb::Selector;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::provoke::{
    Cancel, Event, Journals, Plan, Report, Settle, Step, Target, catalog, dry_run,
};
use heaptap_capture::session::Store;

/// Runs the command.
///
/// # Errors
/// Returns an error if the device cannot be reached, refuses an action, or cannot be restored.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.list {
        list(&ctx.console);
        return Ok(Outcome::Done);
    }
    if args.restore {
        return restore(ctx).await;
    }
    let target = Target::parse(&app(ctx, &args.target).await?, ctx.globals.user)?;
    let plan = Plan {
        target,
        actions: args.actions,
        rounds: args.rounds,
        settle: args.settle.map(|limit| Settle {
            limit,
            ..Settle::default()
        }),
        seed: args.seed,
    };
    if args.dry_run {
        return show_commands(ctx, &plan).await;
    }
    let journals = Journals::beside(&Store::of_user()?)?;
    let device = ctx.device().await?;
    let mut signals = watch_signals()?;
    let (canceller, cancel) = Cancel::new();
    let steps: Arc<Mutex<Vec<Step>>> = Arc::default();
    let show = Show::new(&ctx.console, &plan, Arc::clone(&steps));
    let tell = |event: &Event| show.event(event);
    let timeline = args.timeline.as_deref();
    let mut work = std::pin::pin!(actions::run(
        device, &journals, &plan, timeline, &cancel, &tell
    ));
    let report = tokio::select! {
        report = &mut work => report?,
        _ = signals.recv() => {
            canceller.cancel();
            ctx.console.say("stopping: restoring what was changed …");
            tokio::select! {
                report = &mut work => report?,
                _ = signals.recv() => return Err(left(device.serial())),
            }
        }
    };
    let steps = std::mem::take(&mut *lock(&steps));
    let next = Next {
        target: &plan.target,
        timeline,
        device: ctx.globals.device_words(),
        // A virtual phone that ends with this command cannot answer another one.
        gone: ctx.globals.virtual_phone.is_some(),
    };
    show::report(&ctx.console, &report, &steps, &next);
    Ok(outcome(&report))
}

/// The name of the app or process that is provoked.
async fn app(ctx: &Context, target: &TargetArgs) -> Result<String, Failure> {
    let targets = target.required()?.targets();
    let mut names = targets.names.iter().chain(&targets.packages);
    match (names.next(), names.next(), targets.pids.as_slice()) {
        (Some(name), None, []) => Ok(name.clone()),
        (None, None, [_]) => {
            let device = ctx.device().await?;
            let found = fetch::only_process(device, &targets, ctx.globals.user).await?;
            Ok(found.1)
        }
        _ => Err(
            Failure::usage("provoke takes one process, and several are named")
                .with_help("name one with -n, -p or --package"),
        ),
    }
}

/// Returns the failure after a second interrupt, which ends heaptap at once; the note remains.
fn left(serial: &str) -> Failure {
    Failure::new(
        ErrorClass::Interrupted,
        "interrupted",
        format!("interrupted before {serial} was restored"),
    )
    .with_help(format!(
        "run `heaptap provoke --restore -s {}`",
        quoted(serial)
    ))
}

/// Returns the outcome. An interrupt takes precedence, then a death of the app, then missing
/// effects.
fn outcome(report: &Report) -> Outcome {
    if report.interrupted {
        Outcome::Ended(ErrorClass::Interrupted)
    } else if !report.deaths.is_empty() {
        Outcome::Ended(ErrorClass::Incomplete)
    } else if report.without_effect > 0 || report.unsettled > 0 {
        Outcome::Ended(ErrorClass::Inconclusive)
    } else {
        Outcome::Done
    }
}

fn list(console: &Console) {
    if console.is_json() {
        console.json(&json!({ "actions": catalog::ALL }));
        return;
    }
    for entry in catalog::ALL {
        console.in_style(Style::Strong, entry.form);
        console.data(format_args!("    {}", entry.does));
        console.data(format_args!("    finds: {}", entry.finds));
        console.in_style(Style::Dim, format!("    Android: {}", entry.android));
    }
}

async fn show_commands(ctx: &Context, plan: &Plan) -> Result<Outcome, Failure> {
    let all = dry_run(ctx.device().await?, plan).await?;
    let console = &ctx.console;
    if console.is_json() {
        console.json(&json!({ "commands": all }));
        return Ok(Outcome::Done);
    }
    let mut before = None;
    for planned in &all {
        let heading = (planned.round, &planned.what);
        if before != Some(heading) {
            let round = match planned.round {
                Some(round) if plan.rounds > 1 => format!("iteration {round}: "),
                _ => String::new(),
            };
            let heading = format!("# {round}{}", planned.what);
            console.laid_out(console.styled(Style::Dim, heading));
        }
        before = Some(heading);
        if let Some(note) = &planned.note {
            console.laid_out(console.styled(Style::Dim, format!("# {note}")));
        }
        // Pasted into a shell: a line that is broken in two is another command.
        console.laid_out(&planned.command);
    }
    Ok(Outcome::Done)
}

async fn restore(ctx: &Context) -> Result<Outcome, Failure> {
    let journals = Journals::beside(&Store::of_user()?)?;
    let console = &ctx.console;
    let selector = ctx.selector();
    let done = match (&selector, journals.all().is_empty()) {
        // This does not require a device.
        (Selector::Only, true) => Vec::new(),
        _ => actions::restore(ctx.server().await?, &selector, &journals).await?,
    };
    if console.is_json() {
        console.json(&json!({ "restored": done }));
    } else if done.is_empty() {
        console.data("nothing to restore");
    }
    for each in &done {
        console.data(format_args!("{}: {}", each.serial, put_back_words(each)));
    }
    Ok(Outcome::Done)
}
