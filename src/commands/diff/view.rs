//! `heaptap diff`: changes between two dumps, for native heaps by callsite, function, library and
//! so on, for Java heaps by class, path and leak.

mod java;
mod kinds;
mod mappings;
mod meminfo;
mod native;

use std::ffi::OsString;
use std::path::PathBuf;

use self::kinds::Kind;
use super::args::{Args, ByArg, DiffOutput, ViewArg};
use super::run::{Compared, DiffRequest, HeapDiff, Per, ProfileFile, diff};
use crate::commands::shared::paths::near;
use crate::commands::shared::{blocking, native as native_view, page};
use crate::console::exit::Outcome;
use crate::console::fail_checks;
use crate::console::flags::conflicts::{
    BY_VALUE, conflict, first_given, refuse_both, refuse_native_by,
};
use crate::console::flags::context::Context;
use crate::console::flags::names::mapping;
use crate::console::flags::typed::of_same_name;
use crate::heaps::input::facts::DumpFacts;
use crate::heaps::input::{self, DumpScope, InputError, LookOptions, NativeFile, OpenedInput};
use crate::heaps::java::has_java;
use crate::heaps::selector::JavaInput;
use crate::names::options::MappingOption;
use crate::page::report::{PagePlace, ReportInput, ReportRequest};
use android_memory::smaps as mapped;
use heaptap_analyze::native::diff::Growing;
use heaptap_analyze::native::groups::RowKey;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel;
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::heap_graph::Follow;
use heaptap_report::data::header;
use heaptap_results::findings;

/// Rows on a page, and rows within sampling error.
const PAGE: usize = 20;
const PAGE_OF_NOISE: usize = 5;

/// Runs the command.
///
/// # Errors
/// Returns an error if an input does not contain a heap or cannot be read, or the inputs are not
/// comparable.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let judges = args.fail_over.is_some();
    let outcome = of_any_kind(ctx, args).await;
    outcome.map_err(|failure| fail_checks::failure(judges, failure))
}

async fn of_any_kind(ctx: &Context, mut args: Args) -> Result<Outcome, Failure> {
    [args.before, args.after] = sides(args.before, args.second.take())?;
    args.native.moment.check([&args.before, &args.after])?;
    if matches!(args.output, Some(DiffOutput::Page(_))) {
        args.native.heap.refuse_java_parts("diff -o PAGE")?;
    }
    let page = match &args.output {
        Some(DiffOutput::Page(goal)) => Some((goal.clone(), args.force, page(&args))),
        Some(DiffOutput::Profile(_)) | None => None,
    };
    let of_mappings = matches!(args.by, Some(ByArg::Kind | ByArg::Mapping));
    let of_mappings = args.smaps || of_mappings;
    let inputs = [
        args.native.one_dump(&args.before)?,
        args.native.one_dump(&args.after)?,
    ];
    let both = kinds::check(&args.before, &args.after, of_mappings)?;
    if of_mappings || both == Kind::Mappings {
        return compare_mappings(ctx, args, inputs).await;
    }
    if both == Kind::Meminfo {
        return of_meminfo(ctx, &args).await;
    }
    let outcome = compare(ctx, args).await?;
    if let Some((goal, force, request)) = page {
        let told = page::write(ctx, request, PagePlace::Typed(goal.clone()), force).await?;
        let wrote = near(&goal);
        ctx.console.say(format_args!(
            "wrote {} ({}); open it in any browser",
            wrote.display(),
            ByteSize(told.bytes)
        ));
    }
    Ok(outcome)
}

/// Returns both sides: of a single input, its first and its last dump.
fn sides(before: OsString, after: Option<OsString>) -> Result<[OsString; 2], Failure> {
    if let Some(after) = after {
        return Ok([before, after]);
    }
    let input = JavaInput::parse(&before);
    if input.which.is_some() {
        let whole = quoted_path(&input.path);
        let message = format!("missing B, the dump to compare {input} with");
        return Err(Failure::usage(message).with_help(format!(
            "name one, such as {whole}@last, or compare the first with the last: heaptap diff {whole}"
        )));
    }
    let side = |moment: &str| {
        let mut side = before.clone();
        side.push(moment);
        side
    };
    Ok([side("@1"), side("@last")])
}

/// Compares the memory mappings of both inputs.
async fn compare_mappings(
    ctx: &Context,
    args: Args,
    inputs: [JavaInput; 2],
) -> Result<Outcome, Failure> {
    let by = args.by.map_or(Some(mapped::By::Kind), of_same_name);
    let by = by.ok_or_else(|| {
        let message = "memory mappings support `--by` only with kind, library or mapping";
        conflict(message, "choose one of these, or leave out `--by`")
    })?;
    let allowed = [
        "by", "smaps", "at", "name", "pid", "package", "limit", "csv",
    ];
    ctx.typed.only("memory mappings", &allowed)?;
    if args.before == args.after {
        same_moment(ctx, &args.after);
    }
    let asked = mappings::DiffAsked {
        inputs,
        by,
        limit: args.rows.limit,
        processes: args.java.target.filter(),
        csv: args.csv,
    };
    mappings::diff(ctx, asked).await
}

/// Returns the request for the page of a difference.
fn page(args: &Args) -> ReportRequest {
    let side = |typed: &OsString, maps: &[OsString]| {
        let (input, wanted) = args.native.input(typed, DumpScope::Default);
        ReportInput {
            path: input.path,
            wanted,
            mappings: maps.iter().map(|given| mapping(given)).collect(),
        }
    };
    ReportRequest {
        inputs: vec![side(&args.after, &args.mapping_after)],
        base: Some(side(&args.before, &args.mapping_before)),
        per: match args.rounds {
            Some([before, after]) if before == after => {
                Some(header::Per::iterations(before as f64))
            }
            _ => None,
        },
        look: args.native.options(&args.java),
        java: args.java.options(Follow::default()),
        java_only: args.native.heap.is_java_only(),
        native_only: args.native.heap.is_native_only(),
        limit: None,
        contents: false,
    }
}

async fn compare(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let (java_flag, native_flag) = (java_flag(&args), native_flag(&args));
    refuse_both(java_flag, native_flag)?;
    if java_flag.is_some() {
        return java::run(ctx, args, Default::default()).await;
    }
    let side = |typed: &OsString, maps: &[OsString]| {
        let (input, wanted) = args.native.input(typed, DumpScope::Default);
        let mut options = args.native.options(&args.java);
        let needs_tree = !by(&args).is_of_frames() || args.profile().is_some();
        options.list_from = (!needs_tree).then_some(0);
        let maps: Vec<MappingOption> = maps.iter().map(|given| mapping(given)).collect();
        options.names.mappings.splice(0..0, maps);
        (input.path, wanted, options)
    };
    let sides = [
        side(&args.before, &args.mapping_before),
        side(&args.after, &args.mapping_after),
    ];
    let opened = blocking::stepwise(ctx, move |progress| -> Result<_, InputError> {
        let open = |(path, wanted, options): &(PathBuf, DumpScope, LookOptions)| {
            input::open(path, wanted, options, progress)
        };
        // A missing file is reported at once, and only one side can be standard input.
        if !sides.iter().all(|(path, ..)| path.exists()) {
            return Ok((open(&sides[0])?, open(&sides[1])?));
        }
        // Two dumps of one recording are read at once, too.
        let (before, after) = parallel::both(|| open(&sides[0]), || open(&sides[1]));
        Ok((before?, after?))
    });
    let opened = opened.await;
    let opened = opened.map_err(|failure| kinds::explain(failure, [&args.before, &args.after]));
    match opened? {
        (OpenedInput::Native(before, first), OpenedInput::Native(after, second)) => {
            drop((first, second));
            native(ctx, &args, *before, *after).await
        }
        (OpenedInput::Java(before), OpenedInput::Java(after)) => {
            args.native.heap.java_kinds()?;
            refuse_native_by(native_flag, "these are Java heaps", |by: &ByArg| {
                by.is_of_java()
            })?;
            java::run(ctx, args, [before, after]).await
        }
        (OpenedInput::Native(file, before), OpenedInput::Java(after))
        | (OpenedInput::Java(before), OpenedInput::Native(file, after)) => {
            // The input with both kinds has the kind of the other input.
            if file.java_dumps > 0 && native_flag.is_none() {
                return java::run(ctx, args, [before, after]).await;
            }
            let mut inputs = [&args.before, &args.after].into_iter();
            let has_java = inputs.any(|typed| has_java(&JavaInput::parse(typed).path));
            let help = match has_java && native_flag.is_none() {
                true => "add `--heap java` to compare the Java heaps",
                false => "compare two heaps of the same kind",
            };
            Err(Failure::new(
                ErrorClass::Usage,
                "nothing-in-common",
                "cannot compare a native heap with a Java heap",
            )
            .with_help(help))
        }
    }
}

/// Compares two meminfo texts or documents.
async fn of_meminfo(ctx: &Context, args: &Args) -> Result<Outcome, Failure> {
    ctx.typed.only("meminfo output", &["limit", "csv"])?;
    let paths = [PathBuf::from(&args.before), PathBuf::from(&args.after)];
    let changes = blocking::stepwise(ctx, move |_| meminfo::compare(paths)).await?;
    meminfo::show(&ctx.console, &changes, args.csv, args.rows.limit);
    if args.before == args.after {
        same_moment(ctx, &args.after);
    }
    Ok(Outcome::Done)
}

/// Warns that both inputs are the same snapshot.
fn same_moment(ctx: &Context, typed: &OsString) {
    let warning = findings::same_moment();
    let name = typed.to_string_lossy();
    ctx.console.warn_with_help(
        format_args!("{}: {}", sanitize(&name), warning.message),
        warning.help.as_deref(),
    );
}

/// Returns the first given flag that applies only to Java heaps.
fn java_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| by.of_native().is_none());
    let flags = [
        (args.native.heap.of_java().is_some(), "this --heap value"),
        (by, BY_VALUE),
        (args.unchanged, "--unchanged"),
        (args.depth.is_some(), "--depth"),
        (args.min.is_some(), "--min"),
        (args.java.ignore_refs.is_some(), "--ignore-refs"),
        (args.java.sizes.is_some(), "--sizes"),
    ];
    first_given(flags)
}

/// Returns the first given flag that applies only to native heaps.
fn native_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| !by.is_of_java());
    let flags = [
        (by, BY_VALUE),
        (args.view.is_some(), "--view"),
        (args.sort.is_some(), "--sort"),
        (args.rounds.is_some(), "--rounds"),
        (args.per_second, "--per-second"),
        (args.noise, "--noise"),
        (args.profile().is_some(), "-o with a pprof"),
        (args.native.heap.of_native().is_some(), "this --heap value"),
    ];
    first_given(flags).or(args.stacks.given())
}

/// Returns the key of the rows of native heaps.
fn by(args: &Args) -> RowKey {
    args.by
        .and_then(ByArg::of_native)
        .unwrap_or(RowKey::Function)
}

fn request(args: &Args, whole: bool) -> DiffRequest {
    let by = by(args);
    let limit = match (args.rows.limit, whole) {
        (Some(limit), _) => limit,
        (None, true) if by == RowKey::Callsite => native_view::MAX_CALLSITES,
        (None, true) => usize::MAX,
        (None, false) => PAGE,
    };
    DiffRequest {
        by,
        order: args.sort.and_then(of_same_name).unwrap_or_default(),
        growing: match args.view {
            None | Some(ViewArg::Space) => Growing::Held,
            Some(ViewArg::AllocSpace) => Growing::Allocated,
        },
        per: match (args.rounds, args.per_second) {
            (Some(iterations), _) => Per::Iterations(iterations.map(|count| count as f64)),
            (None, true) => Per::Seconds,
            (None, false) => Per::Whole,
        },
        filter: args.stacks.filter(&args.filter),
        limit,
        noise_limit: match (whole, args.noise) {
            (true, _) => limit,
            (false, true) => args.rows.limit.unwrap_or(usize::MAX),
            (false, false) => limit.min(PAGE_OF_NOISE),
        },
        frames: if whole { 0 } else { native_view::FRAMES },
    }
}

async fn native(
    ctx: &Context,
    args: &Args,
    before: NativeFile,
    after: NativeFile,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let whole = console.is_json() || args.csv;
    let request = request(args, whole);
    let is_filtered = !request.filter.takes_all();
    let missing = ErrorClass::first_of([before.class(), after.class()].into_iter().flatten());
    let both = before.java_dumps > 0 && after.java_dumps > 0;
    let (goal, force) = (args.profile().cloned(), args.force);
    let paths = [before.path.clone(), after.path.clone()];
    if let Some([first, second]) = args.rounds
        && first != second
        && paths[0].canonicalize().ok() == paths[1].canonicalize().ok()
    {
        return Err(conflict(
            "`--rounds N,M` needs two recordings, but both dumps are from the same one",
            "give the iterations between the two dumps: `--rounds N`",
        ));
    }
    let work = blocking::stepwise(ctx, move |progress| -> Result<Compared, Failure> {
        let file = match &goal {
            Some(goal) => Some(ProfileFile::create(
                goal,
                [&before.path, &after.path],
                force,
            )?),
            None => None,
        };
        progress.begin("comparing");
        let compared = diff(&before, &after, &request)?;
        if let Some(file) = file {
            file.finish(&compared)?;
        }
        Ok(compared)
    });
    let Compared { mut report, .. } = work.await?;
    if let Some(limit) = args.fail_over {
        report.judge(limit.0, missing.is_some(), is_filtered);
    }
    match (console.is_json(), args.csv) {
        (true, _) => console.json(&report),
        (_, true) => native::print_csv(console, &report),
        _ => native::show(console, &report),
    }
    // As in the headings, where the default dump has its label.
    let shown = |typed: &OsString, side: fn(&HeapDiff) -> Option<&DumpFacts>| {
        let dump = report.heaps.iter().find_map(side);
        dump.map_or(typed.display().to_string(), |dump| dump.name.clone())
    };
    let before = shown(&args.before, |heap| heap.before.as_ref());
    let after = shown(&args.after, |heap| heap.after.as_ref());
    let names = format!("{before}, {after}");
    native_view::warn(console, &names, &paths, &report.warnings);
    if both {
        console.say("both inputs also have Java heaps; add `--heap java` to compare them");
    }
    if let Some(path) = args.profile() {
        let typed = quoted_path(path);
        console.say(format_args!(
            "wrote {}; view it with `go tool pprof -top {typed}`",
            path.display()
        ));
    }
    let judged = match (&report.verdict, report.matches()) {
        (None, _) => None,
        (Some(_), false) => {
            fail_checks::warn_nothing_judged(console, fail_checks::Judged::Samples, is_filtered);
            Some(ErrorClass::Inconclusive)
        }
        (Some(verdict), true) => native::judge(console, &native::growth(&report), verdict),
    };
    Ok(Outcome::from_classes(missing.into_iter().chain(judged)))
}
