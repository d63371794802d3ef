//! `heaptap leaks`: growth of a native heap over a series of dumps, with verdicts; leaked objects
//! of a Java heap with their paths, growth between dumps, and waste.

mod native;
mod show;
mod waste;

use std::ffi::OsString;
use std::path::Path;

use super::args::{Args, OnlyArg};
use crate::commands::shared::java_summary::java_place;
use crate::commands::shared::recordings::input_missing;
use crate::commands::shared::{blocking, java as java_view};
use crate::console::exit::Outcome;
use crate::console::fail_checks;
use crate::console::flags::conflicts::{conflict, first_given, refuse_both, refuse_native};
use crate::console::flags::context::Context;
use crate::heaps::growth::{self, GrowthLooked, NativeLeaksRequest, SeriesRow, TOLERANCE_BYTES};
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::{DIRECTORY, OpenedJava, has_java};
use crate::heaps::leaks::{HiddenLeaks, LeaksReport, LeaksRequest, leaks};
use crate::heaps::selector::JavaInput;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::counted;
use heaptap_model::heap_graph::Follow;

/// Default entries of each list in JSON.
const MAX_IN_JSON: usize = 100;

/// Default entries of each list on a page.
const PAGE: usize = 10;

/// Runs the command.
///
/// # Errors
/// Returns an error if an input does not contain a usable heap or cannot be read.
pub async fn run(ctx: &Context, mut args: Args) -> Result<Outcome, Failure> {
    args.fail |= args.fail_known;
    let judges = args.fail;
    let outcome = either(ctx, args).await;
    outcome.map_err(|failure| fail_checks::failure(judges, failure))
}

async fn either(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if args.inputs.is_empty() {
        let java = args.native.heap.is_java_only();
        return Err(input_missing("leaks", &args.java.target, java));
    }
    args.native.moment.check(&args.inputs)?;
    args.native.heap.refuse_java_parts("leaks")?;
    let java_flag = first_given([
        (args.native.heap.of_java().is_some(), "this --heap value"),
        (args.only.is_some(), "--only"),
        (args.java.ignore_refs.is_some(), "--ignore-refs"),
        (args.java.sizes.is_some(), "--sizes"),
    ]);
    let names_native = args.native.heap.has_native().then_some("this --heap value");
    let native_flag = args.growth.given().or(args.stacks.given()).or(names_native);
    refuse_both(java_flag, native_flag)?;
    let opened = match java_flag {
        Some(_) => OpenedJava::Unread,
        None => match native_leaks(ctx, &args).await? {
            Ok(outcome) => return Ok(outcome),
            Err(opened) => opened,
        },
    };
    refuse_native(native_flag, "the input has only Java heaps")?;
    java_leaks(ctx, args, opened).await
}

/// Shows the growth of native heaps. If there are only Java heaps, returns the opened first input.
async fn native_leaks(ctx: &Context, args: &Args) -> Result<Result<Outcome, OpenedJava>, Failure> {
    let console = &ctx.console;
    let limit = match console.is_json() {
        true => args.rows.limit.unwrap_or(MAX_IN_JSON),
        false => args.rows.limit.unwrap_or(PAGE),
    };
    let inputs = args.inputs.iter();
    let inputs = inputs.map(|typed| args.native.input(typed, default_dumps(args)));
    let inputs: Vec<_> = inputs.collect();
    let has_moment = inputs.iter().any(|(input, _)| input.which.is_some());
    let request = NativeLeaksRequest {
        inputs,
        named: !args.native.moment.moments.is_empty() || has_moment,
        options: LookOptions {
            list_from: Some(0),
            ..args.native.options(&args.java)
        },
        filter: args.stacks.filter(&args.filter),
        tolerance: args.growth.tolerance.map_or(TOLERANCE_BYTES, |size| size.0),
        loops: args.rounds,
        warmup: args.growth.warmup,
        interval: args.growth.interval.map_or(0, |size| size.0),
        limit,
    };
    let found = blocking::stepwise(ctx, move |progress| growth::leaks(&request, progress)).await;
    let found = found.map_err(|failure| match failure.kind {
        "too-few-dumps" | "incomplete-series" => with_java_beside(failure, &args.inputs),
        _ => failure,
    })?;
    let found = match found {
        GrowthLooked::Native(found) => found,
        GrowthLooked::Java(opened) => return Ok(Err(opened)),
    };
    if console.is_json() {
        console.json(&found.document);
    } else {
        native::show(console, &found.document, args.rows.limit);
    }
    console.findings(&found.document.warnings);
    if found.java_dumps > 0 {
        console.say("the input also has Java heaps; add `--heap java` to look for leaks there");
    }
    // The verdict above covers only native heaps.
    for java in args.inputs.iter().filter_map(java_beside) {
        console.say(format_args!(
            "the recording also has Java heaps; look for leaks there with `heaptap leaks {java}`"
        ));
    }
    if args.fail && !found.matches {
        let is_filtered = !found.document.filter.is_empty();
        fail_checks::warn_nothing_judged(console, fail_checks::Judged::Samples, is_filtered);
    }
    // Missing data could change the verdict.
    let lacks = found.class.is_some()
        || fail_checks::is_open(found.document.warnings.iter().map(|f| f.kind));
    let inconclusive = found.inconclusive || !found.matches || lacks;
    let verdict = match (args.fail, found.found, inconclusive) {
        (true, true, _) => Some(ErrorClass::Budget),
        (true, false, true) => Some(ErrorClass::Inconclusive),
        _ => None,
    };
    let outcome = Outcome::from_classes(found.class.into_iter().chain(verdict));
    if let (true, Outcome::Ended(class)) = (args.fail && found.matches, outcome) {
        let series = &found.document.series;
        let leaks = series.iter().map(|series| series.leaks).sum::<u64>();
        let confirmed = counted(leaks, "confirmed leak", "confirmed leaks");
        let reason = if series.iter().any(|series| series.suspects > 0) {
            "some callsites grew, but their trends are uncertain"
        } else if lacks || series.iter().any(SeriesRow::is_open) {
            fail_checks::open_reason(found.document.warnings.iter().map(|f| f.kind))
        } else {
            "no callsite has enough samples"
        };
        fail_checks::warn_leaks(console, class, &confirmed, reason);
    }
    Ok(Ok(outcome))
}

/// Adds the Java heaps of the recording to the help, because one dump is enough to find leaks
/// there.
fn with_java_beside(failure: Failure, inputs: &[OsString]) -> Failure {
    let beside = inputs.iter().filter_map(java_beside);
    let commands: Vec<String> = beside
        .map(|java| format!("`heaptap leaks {java}`"))
        .collect();
    if commands.is_empty() {
        return failure;
    }
    let help = format!(
        "look for leaks in the Java heaps of the recording, where one dump is enough, with {}",
        commands.join(", ")
    );
    let mut failure = failure;
    let native = failure.help.replace(help);
    let hint = native.map(|native| format!("for native heaps: {native}"));
    failure.hints.splice(0..0, hint);
    failure
}

/// Returns the directory of a recording's Java heaps, quoted as a command argument.
fn java_beside(input: &OsString) -> Option<String> {
    let recording = Path::new(input);
    has_java(recording).then(|| java_place(&recording.join(DIRECTORY)))
}

/// Returns the default dumps: all dumps of a single input, or the last dump of each of several.
fn default_dumps(args: &Args) -> DumpScope {
    match args.inputs.len() {
        1 => DumpScope::All,
        _ => DumpScope::Default,
    }
}

async fn java_leaks(ctx: &Context, args: Args, opened: OpenedJava) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if args.fail && args.only == Some(OnlyArg::Waste) {
        let message = "`--fail` does not support `--only waste`, which does not look for leaks";
        return Err(conflict(message, "leave out one of the two"));
    }
    let mut inputs = Vec::new();
    for typed in &args.inputs {
        let (input, wanted) = args.native.input(typed, DumpScope::All);
        match wanted {
            DumpScope::These(all) => inputs.extend(all.into_iter().map(|which| JavaInput {
                path: input.path.clone(),
                which: Some(which),
            })),
            DumpScope::All | DumpScope::Default => inputs.push(input),
        }
    }
    // The terminal output truncates each list on its own.
    let limit = args.rows.limit.unwrap_or(MAX_IN_JSON);
    let request = LeaksRequest {
        inputs,
        options: args.java.options(Follow::default()),
        leaks: args.only != Some(OnlyArg::Waste),
        waste: args.only != Some(OnlyArg::Leaks),
        limit,
        classes: args.filter.filter(args.native.heap.java_kinds()?),
        loops: args.rounds,
    };
    let is_filtered = !request.classes.takes_all();
    let report = blocking::stepwise(ctx, move |progress| leaks(&request, opened, progress)).await?;
    let LeaksReport { document, .. } = &report;
    if console.is_json() {
        console.json(document);
    } else {
        show::show(console, document, args.rows.limit);
    }
    for heap in &document.heaps {
        java_view::warn(console, heap);
    }
    let covers_none = match report.hidden {
        Some(HiddenLeaks::NotCovered) => Some(fail_checks::Judged::LeakRules),
        Some(HiddenLeaks::JavaSe) => Some(fail_checks::Judged::JavaSe),
        Some(HiddenLeaks::Minified) | None => None,
    };
    let is_judged = report.matches && covers_none.is_none();
    if args.fail && !is_judged {
        let (judged, is_filtered) = match covers_none.filter(|_| report.matches) {
            Some(judged) => (judged, false),
            None => (fail_checks::Judged::Objects, is_filtered),
        };
        fail_checks::warn_nothing_judged(console, judged, is_filtered);
    }
    let warnings = document.heaps.iter().flat_map(|heap| &heap.warnings);
    let kinds = warnings.map(|warning| warning.kind);
    let lacks = fail_checks::is_open(kinds.clone()) || report.hidden == Some(HiddenLeaks::Minified);
    let found = report.found(args.fail_known);
    let outcome = Outcome::of_budget(args.fail.then_some(is_judged), found, report.class);
    let outcome = outcome.left_open(args.fail && lacks);
    if let (true, Outcome::Ended(class)) = (args.fail && is_judged, outcome) {
        let leaks = match report.found(false) {
            true => "leaks of app objects, confirmed or likely",
            false => "known leaks, which are not the app's",
        };
        fail_checks::warn_leaks(console, class, leaks, fail_checks::open_reason(kinds));
    }
    Ok(outcome)
}
