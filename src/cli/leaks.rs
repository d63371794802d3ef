//! `heaptap leaks`: objects of a Java heap that should be gone with what holds them, what grew
//! between dumps, and what is wasted.

mod show;

use std::ffi::OsString;
use std::path::PathBuf;

use regex::Regex;

use super::java_args::JavaArgs;
use super::{Context, Outcome, blocking, java_view};
use crate::analyze::filter::Filter;
use crate::app::java::{JavaInput, JavaOptions};
use crate::app::leaks::{LeaksReport, LeaksRequest, leaks};
use crate::app::names::NameOptions;
use crate::error::{ErrorClass, Failure};
use crate::heap_graph::Follow;

/// Flags of `leaks`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap leaks dump.hprof                 leaked activities, fragments, views … and waste\n  \
    heaptap leaks rec                        all dumps of a recording: what grew, what leaks at last\n  \
    heaptap leaks before.hprof after.hprof   the same for single dumps, the oldest first\n  \
    heaptap leaks dump.hprof --only leaks --fail   in CI: ends with 9 where the app leaks\n\n\
    docs/leaks.md says what each rule needs and how sizes are defined.")]
pub struct Args {
    /// A recording's folder, a trace or an HPROF; several of one process for growth, oldest first
    ///
    /// PATH@LABEL, PATH@N or PATH@last name one dump; without it a recording stands for all its
    /// labelled dumps, else for all.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// Look for one of the two alone
    #[arg(long, value_name = "WHAT", value_enum)]
    pub only: Option<OnlyArg>,
    /// End with 9 where an object of the app leaks, for certain or likely
    ///
    /// What Android leaks itself does not count, nor what only may be a leak.
    #[arg(long)]
    pub fail: bool,
    /// Only leaks, growth and waste of classes that match; may be repeated
    #[arg(long = "class", value_name = "REGEX")]
    pub classes: Vec<Regex>,
    /// At most so many entries of each list; 0 is all [default: what fits a page; 100 in JSON]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Growth by fewer objects from dump to dump is not told: how often you repeated the scenario
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub loops: u64,
    /// How the heap is looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnlyArg {
    /// Objects that should be gone, and growth
    Leaks,
    /// Memory that holds what is already there, or nothing
    Waste,
}

/// Entries of each list in JSON.
const MOST_IN_JSON: usize = 100;

/// Runs the command.
///
/// # Errors
/// Where an input holds no Java heap, or can't be read.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if args.fail && args.only == Some(OnlyArg::Waste) {
        return Err(Failure::new(
            ErrorClass::Usage,
            "option-conflict",
            "--fail is about leaks, which --only waste does not look for",
        )
        .with_help("leave out one of the two"));
    }
    // What is shown in a terminal is cut list by list.
    let limit = args.limit.unwrap_or(MOST_IN_JSON);
    let request = LeaksRequest {
        inputs: args
            .inputs
            .iter()
            .map(|typed| JavaInput::parse(typed))
            .collect(),
        options: args.java.options(Follow::default()),
        leaks: args.only != Some(OnlyArg::Waste),
        waste: args.only != Some(OnlyArg::Leaks),
        limit,
        classes: Filter {
            focus: args.classes.clone(),
            ..Filter::default()
        },
        loops: args.loops,
    };
    let report = blocking::stepwise(ctx, move |steps| leaks(&request, steps)).await?;
    let LeaksReport { document, .. } = &report;
    if console.is_json() {
        console.json(document);
    } else {
        show::show(console, document, args.limit);
    }
    for heap in &document.heaps {
        java_view::warn(console, heap);
    }
    Ok(Outcome::of_budget(args.fail, report.found(), report.class))
}

/// Shows the leak of a dump that keeps most, as the end of the demo.
///
/// # Errors
/// As [`run`].
pub(super) async fn show_gravest(
    ctx: &Context,
    path: PathBuf,
    names: NameOptions,
) -> Result<(), Failure> {
    let request = LeaksRequest {
        inputs: vec![JavaInput { path, which: None }],
        options: JavaOptions {
            names,
            ..JavaOptions::default()
        },
        leaks: true,
        waste: false,
        limit: 1,
        classes: Filter::default(),
        loops: 1,
    };
    let report = blocking::stepwise(ctx, move |steps| leaks(&request, steps)).await?;
    show::show(&ctx.console, &report.document, Some(1));
    Ok(())
}
