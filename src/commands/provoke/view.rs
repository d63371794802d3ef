//! `heaptap provoke`: what may be typed, and what becomes of it. How what happens is shown is
//! `show`'s.

mod show;

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use self::show::{Next, Show, put_back_words};
use super::args::Args;
use super::run as actions;
use crate::console::signals::watch_signals;
use crate::console::{Console, Style};
use crate::device::Selector;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::provoke::{Cancel, Event, Plan, Report, Settle, Step, Target, catalog, dry_run};
use crate::session::Store;
use crate::untrusted::shell::quoted;

/// Runs the command.
///
/// # Errors
/// Where the phone cannot be reached or refuses, or is not as it was.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.list {
        list(&ctx.console);
        return Ok(Outcome::Done);
    }
    if args.restore {
        return restore(ctx).await;
    }
    let target = Target::parse(args.target.as_deref().unwrap_or(""), ctx.globals.user)?;
    let plan = Plan {
        target,
        actions: args.actions,
        rounds: args.rounds,
        settle: args.settle.map(|limit| Settle { limit }),
        seed: args.seed,
    };
    if args.dry_run {
        return show_commands(ctx, &plan).await;
    }
    let journals = actions::journals(&Store::of_user()?)?;
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
            ctx.console.say("ending: what was changed is being put back …");
            tokio::select! {
                report = &mut work => report?,
                _ = signals.recv() => return Err(left(device.serial())),
            }
        }
    };
    let steps = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
    let next = Next {
        target: &plan.target,
        timeline,
        serial: ctx.globals.serial.as_deref(),
        // A phone that is gone with this command answers no other.
        gone: ctx.globals.virtual_phone.is_some(),
    };
    show::report(&ctx.console, &report, &steps, &next);
    Ok(outcome(&report))
}

/// Who asks twice gets the end at once; the note stays.
fn left(serial: &str) -> Failure {
    Failure::new(
        ErrorClass::Interrupted,
        "interrupted",
        format!("interrupted before {serial} was put back"),
    )
    .with_help(format!(
        "run `heaptap provoke --restore -s {}`",
        quoted(serial)
    ))
}

/// Who ended it knows that it is not whole; that the app died weighs more than what came of it.
fn outcome(report: &Report) -> Outcome {
    if report.interrupted {
        Outcome::Ended(ErrorClass::Interrupted)
    } else if !report.deaths.is_empty() {
        Outcome::Ended(ErrorClass::Incomplete)
    } else if report.in_vain > 0 || report.unsettled > 0 {
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
        console.data(console.styled(Style::Strong, entry.form));
        console.data(format_args!("    {}", entry.does));
        console.data(format_args!("    brings out: {}", entry.finds));
        let android = format!("    Android: {}", entry.android);
        console.data(console.styled(Style::Dim, android));
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
                Some(round) if plan.rounds > 1 => format!("round {round}: "),
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
    let journals = actions::journals(&Store::of_user()?)?;
    let console = &ctx.console;
    let selector = ctx.selector();
    let done = match (&selector, journals.all().is_empty()) {
        // No phone need be there for that.
        (Selector::Only, true) => Vec::new(),
        _ => actions::restore(ctx.server().await?, &selector, &journals).await?,
    };
    if console.is_json() {
        console.json(&json!({ "put_back": done }));
    } else if done.is_empty() {
        console.data("nothing needs to be put back");
    }
    for each in &done {
        console.data(format_args!("{}: {}", each.serial, put_back_words(each)));
    }
    Ok(Outcome::Done)
}
