//! `heaptap gc`: shows the collections of saved logs, of a recording, of processes on the phone.

mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Context, Outcome};
use crate::app::gc::{self, GcReport, Input, Which};
use crate::error::{ErrorClass, Failure};

/// Flags of `gc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap gc logcat.txt                  each process of a saved log\n  \
    adb logcat -d | heaptap gc -           of a log that comes by itself\n  \
    heaptap gc bugreport.txt --process com.example.app --list\n  \
    heaptap gc rec                         of a recording made with `record --with gc`\n\n\
    docs/gc.md says what is read, and when something counts as wrong.")]
pub struct Args {
    /// Saved logs of any format of logcat, plain or in gzip, `-` for stdin; or a recording's
    /// folder
    #[arg(value_name = "INPUT", required = true)]
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
}

/// Runs the command.
///
/// # Errors
/// Where an input cannot be read, or is something else.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let wanted: Vec<Which> = args
        .processes
        .iter()
        .map(|text| Which::parse(text))
        .collect();
    let inputs: Vec<Input> = args.inputs.iter().map(input).collect();
    let read = tokio::task::spawn_blocking(move || gc::read(&inputs)).await;
    let mut report = read.map_err(|error| {
        Failure::new(ErrorClass::Bug, "bug", format!("reading failed: {error}"))
    })??;
    report.only(&wanted);
    finish(ctx, &args, &report)
}

fn input(typed: &OsString) -> Input {
    match typed.to_str() {
        Some("-") => Input::Stdin,
        _ => Input::Path(PathBuf::from(Path::new(typed))),
    }
}

fn finish(ctx: &Context, args: &Args, report: &GcReport) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if console.is_json() {
        console.json(report);
    } else if args.csv {
        view::csv(console, report);
    } else {
        view::show(console, report, args.list);
    }
    for finding in &report.findings {
        console.warn_with_help(&finding.message, finding.help.as_deref());
    }
    let missing = report.findings.iter().filter_map(|f| f.class);
    let empty = report.processes.is_empty().then_some(ErrorClass::Empty);
    Ok(Outcome::of(missing.chain(empty)))
}
