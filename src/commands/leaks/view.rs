//! `heaptap leaks`: what grows in a native heap over a series of dumps, with verdicts; objects of
//! a Java heap that should be gone with what holds them, what grew between dumps, and what is
//! wasted.

mod native;
mod show;

use std::ffi::OsString;
use std::path::Path;

use super::args::{Args, OnlyArg};
use crate::console::fail_checks;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::heap_graph::Follow;
use crate::heaps::growth;
use crate::heaps::growth::{GrowthLooked, NativeLeaksRequest, TOLERANCE_BYTES};
use crate::heaps::input::DumpScope;
use crate::heaps::java::{FOLDER, OpenedJava};
use crate::heaps::leaks::{LeaksReport, LeaksRequest, leaks};
use crate::heaps::selector::JavaInput;
use crate::results::manifest;
use crate::views::java_summary::java_place;
use crate::views::{blocking, java as java_view};

/// Entries of each list in JSON.
const MOST_IN_JSON: usize = 100;

/// Entries of each list on a page.
const PAGE: usize = 10;

/// Runs the command.
///
/// # Errors
/// Where an input holds no heap that could be looked at, or can't be read.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let judges = args.fail;
    let outcome = either(ctx, args).await;
    outcome.map_err(|failure| fail_checks::failure(judges, failure))
}

async fn either(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let java_flag = [
        (args.native.is_java, "--java"),
        (args.only.is_some(), "--only"),
        (args.java.exclude.is_some(), "--exclude"),
        (args.java.sizes.is_some(), "--sizes"),
    ];
    let java_flag = java_flag
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag));
    let native_flag = args.growth.given().or(args.stacks.given());
    if let (Some(java), Some(native)) = (java_flag, native_flag) {
        return Err(Failure::new(
            ErrorClass::Usage,
            "option-conflict",
            format!("{java} is about Java heaps, {native} about native ones"),
        )
        .with_help("leave out one of the two"));
    }
    let opened = match java_flag {
        Some(_) => OpenedJava::Unread,
        None => match native_leaks(ctx, &args).await? {
            Ok(outcome) => return Ok(outcome),
            Err(opened) => opened,
        },
    };
    if let Some(native) = native_flag {
        return Err(Failure::new(
            ErrorClass::Usage,
            "option-conflict",
            format!("{native} is about native heaps, and the input has Java heaps alone"),
        )
        .with_help("leave it out"));
    }
    java_leaks(ctx, args, opened).await
}

/// What grows in native heaps; where there are Java heaps alone, the first input.
async fn native_leaks(ctx: &Context, args: &Args) -> Result<Result<Outcome, OpenedJava>, Failure> {
    let console = &ctx.console;
    let limit = match console.is_json() {
        true => args.limit.unwrap_or(MOST_IN_JSON),
        false => args.limit.unwrap_or(PAGE),
    };
    let request = NativeLeaksRequest {
        inputs: args
            .inputs
            .iter()
            .map(|typed| args.native.input(typed, default_dumps(args)))
            .collect(),
        options: args.native.options(&args.java),
        filter: args.stacks.filter(&args.filter),
        tolerance: args.growth.tolerance.map_or(TOLERANCE_BYTES, |size| size.0),
        loops: args.loops,
        warmup: args.growth.warmup,
        interval: args.growth.interval.map_or(0, |size| size.0),
        limit,
    };
    let found = blocking::stepwise(ctx, move |progress| growth::leaks(&request, progress)).await;
    let found = found.map_err(|failure| match failure.kind {
        "too-few-dumps" => with_java_beside(failure, &args.inputs),
        _ => failure,
    })?;
    let found = match found {
        GrowthLooked::Native(found) => found,
        GrowthLooked::Java(opened) => return Ok(Err(opened)),
    };
    if console.is_json() {
        console.json(&found.document);
    } else {
        native::show(console, &found.document);
    }
    for finding in &found.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    if found.java_dumps > 0 {
        console.say("the input holds Java heaps, too: --java looks for leaks there");
    }
    // That nothing leaks is said of native heaps alone.
    for java in args.inputs.iter().filter_map(java_beside) {
        console.say(format_args!(
            "Java heaps were recorded beside: heaptap leaks {java} looks for leaks there"
        ));
    }
    if args.fail && !found.matches {
        let is_filtered = found.document.is_filtered;
        fail_checks::warn_nothing_judged(console, fail_checks::Judged::Samples, is_filtered);
    }
    // Of data that are missing nobody knows what they would have come to.
    let lacks =
        found.class.is_some() || fail_checks::is_open(found.findings.iter().map(|f| f.kind));
    let inconclusive = found.inconclusive || !found.matches || lacks;
    let verdict = match (args.fail, found.found, inconclusive) {
        (true, true, _) => Some(ErrorClass::Budget),
        (true, false, true) => Some(ErrorClass::Inconclusive),
        _ => None,
    };
    Ok(Ok(Outcome::of(found.class.into_iter().chain(verdict))))
}

/// A failure that names the Java heaps beside: one of them is enough to look for leaks.
fn with_java_beside(failure: Failure, inputs: &[OsString]) -> Failure {
    let beside = inputs.iter().filter_map(java_beside);
    let commands: Vec<String> = beside
        .map(|java| format!("`heaptap leaks {java}`"))
        .collect();
    if commands.is_empty() {
        return failure;
    }
    let help = format!(
        "Java heaps were recorded beside, and one is enough: {} looks for leaks there",
        commands.join(", ")
    );
    let mut failure = failure;
    let native = failure.help.replace(help);
    let hint = native.map(|native| format!("of native heaps: {native}"));
    failure.hints.splice(0..0, hint);
    failure
}

/// The folder of the Java heaps that a recording has beside its native ones, as a command takes it.
fn java_beside(input: &OsString) -> Option<String> {
    let folder = Path::new(input).join(FOLDER);
    let is_recording = folder.join(manifest::FILE_NAME).is_file();
    is_recording.then(|| java_place(&folder))
}

/// One input stands for all its dumps, each of several for its last.
fn default_dumps(args: &Args) -> DumpScope {
    match args.inputs.len() {
        1 => DumpScope::All,
        _ => DumpScope::Last,
    }
}

async fn java_leaks(ctx: &Context, args: Args, opened: OpenedJava) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if args.fail && args.only == Some(OnlyArg::Waste) {
        return Err(Failure::new(
            ErrorClass::Usage,
            "option-conflict",
            "--fail is about leaks, which --only waste does not look for",
        )
        .with_help("leave out one of the two"));
    }
    let mut inputs = Vec::new();
    for typed in &args.inputs {
        let (input, wanted) = args.native.input(typed, DumpScope::All);
        match wanted {
            DumpScope::These(all) => inputs.extend(all.into_iter().map(|which| JavaInput {
                path: input.path.clone(),
                which: Some(which),
            })),
            DumpScope::All | DumpScope::Last => inputs.push(input),
        }
    }
    // What is shown in a terminal is cut list by list.
    let limit = args.limit.unwrap_or(MOST_IN_JSON);
    let request = LeaksRequest {
        inputs,
        options: args.java.options(Follow::default()),
        leaks: args.only != Some(OnlyArg::Waste),
        waste: args.only != Some(OnlyArg::Leaks),
        limit,
        classes: args.filter.filter(args.native.java_heap()?),
        loops: args.loops,
    };
    let is_filtered = !request.classes.takes_all();
    let report = blocking::stepwise(ctx, move |progress| leaks(&request, opened, progress)).await?;
    let LeaksReport { document, .. } = &report;
    if console.is_json() {
        console.json(document);
    } else {
        show::show(console, document, args.limit);
    }
    for heap in &document.heaps {
        java_view::warn(console, heap);
    }
    if args.fail && !report.matches {
        fail_checks::warn_nothing_judged(console, fail_checks::Judged::Objects, is_filtered);
    }
    let warnings = document.heaps.iter().flat_map(|heap| &heap.warnings);
    let lacks = fail_checks::is_open(warnings.map(|warning| warning.kind));
    let outcome = Outcome::of_budget(
        args.fail.then_some(report.matches),
        report.found(),
        report.class,
    );
    Ok(outcome.left_open(args.fail && lacks))
}
