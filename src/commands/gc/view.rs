//! `heaptap gc`: shows the collections of saved logs, of a recording, of processes on the phone.

mod show;

use std::ffi::OsString;
use std::time::Duration;

use tokio::sync::Notify;

use super::run::{self, GcReport, Input, Stretch, Target, Which};
use crate::console::signals::watch_signals;
use crate::device::Device;
use crate::eligibility::DeviceFacts;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::named::Named;
use crate::heaps::java::JavaInput;

/// Flags of `gc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap gc com.example.app             what the phone's log still holds of it\n  \
    heaptap gc com.example.app --now       have it collect: what is live, what was freed\n  \
    heaptap gc logcat.txt                  each process of a saved log\n  \
    adb logcat -d | heaptap gc -           of a log that comes by itself\n  \
    heaptap gc bugreport.zip --process com.example.app --list\n  \
    heaptap gc com.example.app --follow    each from now on; Ctrl-C sums up\n  \
    heaptap gc rec                         of a recording made with `record --with gc`\n  \
    heaptap gc rec@before..after           of it, between two labels; `before..` and `..after`, too\n\n\
    docs/gc.md says what is read, and when something counts as wrong.")]
pub struct Args {
    /// Processes on the phone by name or number; or saved logs of any format of logcat, plain or
    /// in gzip, `-` for stdin; or bugreports, in their ZIP or as text; or a recording's folder,
    /// FOLDER@LABEL..LABEL
    #[arg(value_name = "TARGET|FILE", required = true)]
    pub inputs: Vec<OsString>,
    /// Only processes of this number, or with this in the name; may be repeated
    #[arg(long = "process", value_name = "NAME|PID")]
    pub processes: Vec<String>,
    /// Each collection in a row of its own
    #[arg(long)]
    pub list: bool,
    /// Each collection as comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines", "list"])]
    pub csv: bool,
    /// Only what was logged in the last TIME, such as 10m; with --follow, begin so much earlier
    #[arg(long, value_name = "TIME", value_parser = crate::flags::period::period, help_heading = "On the phone")]
    pub since: Option<Duration>,
    /// Show what is logged from now on, across a lost cable, until Ctrl-C; then sum up
    #[arg(short, long, conflicts_with = "csv", help_heading = "On the phone")]
    pub follow: bool,
    /// With --follow: end after this time
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = crate::flags::period::period,
        requires = "follow",
        help_heading = "On the phone"
    )]
    pub duration: Option<Duration>,
    /// Have the process collect: by a signal, or by `dumpsys meminfo`
    ///
    /// A signal takes root, or a debuggable app; any app collects when meminfo counts its objects.
    #[arg(long, conflicts_with_all = ["since", "list", "csv", "follow"], help_heading = "On the phone")]
    pub now: bool,
}

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
    let wanted: Vec<Which> = args
        .processes
        .iter()
        .map(|text| Which::parse(text))
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
