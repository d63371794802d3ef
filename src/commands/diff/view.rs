//! `heaptap diff`: what changed between two dumps: of native heaps by callsite, function, library
//! and so on, of Java heaps by class, place and leak.

mod java;
mod kinds;
mod mappings;
mod meminfo;
mod native;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ValueEnum, ValueHint};

use super::run::{Compared, DiffError, DiffRequest, Per, ProfileFile, diff};
use crate::analyze::native::diff::Growing;
use crate::analyze::native::groups::By;
use crate::console::gate;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::iterations::iterations;
use crate::flags::java::{FilterArgs, JavaArgs};
use crate::flags::names::mapping;
use crate::flags::native::NativeArgs;
use crate::flags::stack::StackArgs;
use crate::heap_graph::Follow;
use crate::heaps::java::facts::Warning;
use crate::heaps::look::rows::Order;
use crate::heaps::look::{self, Look, LookError, LookOptions, NativeFile, Wanted};
use crate::memory::smaps as mapped;
use crate::naming::names::MappingOption;
use crate::pages::{PagePlace, ReportInput, ReportRequest};
use crate::report::data::header;
use crate::system::meminfo::{MeminfoError, looks_like_meminfo};
use crate::units::ByteSize;
use crate::untrusted::shell::quoted_path;
use crate::untrusted::shown;
use crate::views::native as native_view;
use crate::views::page as report;
use crate::views::{blocking, summary};

/// Flags of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap diff rec@before rec@after               what grew between two dumps of a recording\n  \
    heaptap diff old new --by library               between two recordings, joined by name\n  \
    heaptap diff rec@1 rec@last --per 20            by iteration, of 20 in between\n  \
    heaptap diff old new --fail-over 2MiB           in CI: ends with 9 where it surely grew by more\n  \
    heaptap diff old new -o grown.html              a page: flame graph of what grew\n  \
    heaptap diff old new --pprof grown.pb.gz        for go tool pprof\n  \
    heaptap diff before.hprof after.hprof           two Java heaps\n  \
    heaptap diff rec@before rec@after --by path     where in the dominator tree it grew\n  \
    heaptap diff before.smaps after.smaps           memory mappings: files, or recordings with --smaps\n  \
    heaptap diff before.txt after.txt               two texts of dumpsys meminfo, row by row\n  \
    heaptap diff old.hprof rec@last --mapping-before old/mapping.txt --mapping-after mapping.txt\n\n\
    docs/native-tables.md says how dumps are paired, what is certain, and what JSON means.")]
pub struct Args {
    /// The first dump: a recording's folder, a trace, a pprof, an HPROF or smaps, PATH@LABEL,
    /// PATH@N, PATH@last
    #[arg(value_name = "A")]
    pub before: OsString,
    /// The second, of the same or another kind of file, run or build
    #[arg(value_name = "B")]
    pub after: OsString,
    /// What a row stands for [default: function; of Java all three that it has]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<ByArg>,
    /// At most so many rows of each table; 0 is all [default: what fits a page; all in JSON and
    /// CSV, 1000 of callsites]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Which stacks or objects count.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What is shown of stacks.
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Growth of what is held, or of all that was allocated [default: space]
    #[arg(long, value_name = "VIEW", value_enum)]
    pub view: Option<ViewArg>,
    /// What rows are ordered by [default: self]
    #[arg(long, value_name = "FIGURE", value_enum)]
    pub sort: Option<SortArg>,
    /// Divide growth by N iterations; N,M where the two sides had a different number
    #[arg(long, value_name = "N[,M]", value_parser = iterations, conflicts_with = "per_second")]
    pub per: Option<[f64; 2]>,
    /// Divide growth by the seconds between two dumps of a run; of two runs each side by its own
    #[arg(long)]
    pub per_second: bool,
    /// All rows too that sampling explains, not the first few
    #[arg(long)]
    pub noise: bool,
    /// Exit with code 9 if growth (of what matches) exceeds SIZE, 12 if inconclusive
    ///
    /// With --per or --per-second the limit is for an iteration or a second. It is inconclusive if
    /// the sampling error leaves it open, or if a filter, process, heap or dump that is named
    /// matches nothing.
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub fail_over: Option<ByteSize>,
    /// Write the difference as gzipped pprof, as go tool pprof -diff_base makes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pprof: Option<PathBuf>,
    /// Write a page that shows the difference, as report --base does
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite files that are there
    #[arg(long)]
    pub force: bool,
    /// Comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Mapping file for the first dump alone; may be repeated
    #[arg(long, value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mapping_before: Vec<OsString>,
    /// Mapping file for the second dump alone; may be repeated
    #[arg(long, value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mapping_after: Vec<OsString>,
    /// Which heap is meant.
    #[command(flatten)]
    pub native: NativeArgs,
    /// How the heaps are looked at.
    #[command(flatten)]
    pub java: JavaArgs,
    /// Compare memory mappings, of recordings that hold them; files of smaps are known for it
    #[arg(long, help_heading = "Which heap")]
    pub smaps: bool,
    /// Classes that did not change too
    #[arg(long, help_heading = "Java heaps")]
    pub unchanged: bool,
    /// Levels of the dominator tree [default: 8]
    #[arg(long, help_heading = "Java heaps", value_name = "N")]
    pub depth: Option<usize>,
    /// Nodes of the dominator tree that changed by at least this [default: 0.1 % of the heap]
    #[arg(long, help_heading = "Java heaps", value_name = "SIZE", value_parser = ByteSize::parse)]
    pub min: Option<ByteSize>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Native: stacks
    Callsite,
    /// Native: functions
    Function,
    /// Native: libraries
    Library,
    /// Native: source files
    File,
    /// Native: lines of source files
    Line,
    /// Classes; native: classes or scopes of functions
    Class,
    /// Native: packages of these
    Package,
    /// Java: places in the dominator tree, merged by class
    #[value(alias = "dominator")]
    Path,
    /// Mappings: rows of meminfo
    Kind,
    /// Mappings: each, those that differ in their address alone as one
    Mapping,
    /// Java: objects that should be gone, by what holds them
    #[value(alias = "suspect")]
    Leak,
}

impl ByArg {
    fn of_native(self) -> Option<By> {
        Some(match self {
            ByArg::Callsite => By::Callsite,
            ByArg::Function => By::Function,
            ByArg::Library => By::Library,
            ByArg::File => By::File,
            ByArg::Line => By::Line,
            ByArg::Class => By::Class,
            ByArg::Package => By::Package,
            ByArg::Path | ByArg::Leak | ByArg::Kind | ByArg::Mapping => return None,
        })
    }

    fn is_of_java(self) -> bool {
        matches!(self, ByArg::Class | ByArg::Path | ByArg::Leak)
    }
}

/// Whose growth it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewArg {
    /// Bytes held
    Space,
    /// Bytes allocated since profiling began
    #[value(name = "alloc_space")]
    AllocSpace,
}

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortArg {
    /// Growth of stacks that end there
    #[value(name = "self")]
    Own,
    /// Growth of stacks that pass there
    #[value(alias = "cum")]
    Cumulative,
    /// Names
    Name,
}

/// Rows on a page, and of those that sampling explains.
const PAGE: usize = 20;
const PAGE_OF_NOISE: usize = 5;

/// Runs the command.
///
/// # Errors
/// Where one of the inputs holds no heap, or can't be read, or the two do not compare.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let judges = args.fail_over.is_some();
    let outcome = of_any_kind(ctx, args).await;
    outcome.map_err(|failure| gate::failure(judges, failure))
}

async fn of_any_kind(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let page = match &args.output {
        Some(goal) => Some((goal.clone(), args.force, page(&args, goal)?)),
        None => None,
    };
    let of_mappings = matches!(args.by, Some(ByArg::Kind | ByArg::Mapping));
    let of_mappings = args.smaps || of_mappings;
    kinds::check(&args.before, &args.after, of_mappings)?;
    if of_mappings || mappings::are_texts([&args.before, &args.after]) {
        return compare_mappings(ctx, args).await;
    }
    let outcome = compare(ctx, args).await?;
    if let Some((goal, force, request)) = page {
        let told = report::write(ctx, request, PagePlace::Typed(goal.clone()), force).await?;
        let wrote = summary::near(&goal);
        ctx.console.say(format_args!(
            "wrote {} ({}): open it in any browser",
            wrote.display(),
            ByteSize(told.bytes)
        ));
    }
    Ok(outcome)
}

/// Memory mappings of both.
async fn compare_mappings(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let by = match args.by {
        None | Some(ByArg::Kind) => mapped::By::Kind,
        Some(ByArg::Library) => mapped::By::Library,
        Some(ByArg::Mapping) => mapped::By::Mapping,
        Some(_) => {
            let message = "mappings are compared --by kind, library or mapping";
            return Err(Failure::new(ErrorClass::Usage, "option-conflict", message)
                .with_help("leave out --by, or choose one of these"));
        }
    };
    of_heaps_alone(&args, "memory mappings")?;
    if args.before == args.after {
        same_moment(ctx, &args.after);
    }
    let asked = mappings::DiffAsked {
        inputs: [args.before, args.after],
        by,
        limit: args.limit,
        process: args.java.process.clone(),
        csv: args.csv,
    };
    mappings::diff(ctx, asked).await
}

/// Refuses flags that only heaps know: none of them is silently without effect.
fn of_heaps_alone(args: &Args, these: &str) -> Result<(), Failure> {
    let flags = [
        (args.output.is_some(), "--output"),
        (args.pprof.is_some(), "--pprof"),
        (args.per.is_some(), "--per"),
        (args.fail_over.is_some(), "--fail-over"),
    ];
    match flags.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, flag)) => {
            let message = format!("{flag} is about heaps, and these are {these}");
            Err(Failure::new(ErrorClass::Usage, "option-conflict", message)
                .with_help("leave it out"))
        }
    }
}

/// The page of a difference.
fn page(args: &Args, goal: &Path) -> Result<ReportRequest, Failure> {
    if goal == Path::new("-") {
        let message = "a page on standard output does not go with the table there";
        return Err(Failure::new(ErrorClass::Usage, "usage", message)
            .with_help("name a file, or use `heaptap report --base A B -o -`"));
    }
    let side = |typed: &OsString, maps: &[OsString]| {
        let (input, wanted) = args.native.input(typed, Wanted::Last);
        ReportInput {
            path: input.path,
            wanted,
            mappings: maps.iter().map(|given| mapping(given)).collect(),
        }
    };
    Ok(ReportRequest {
        inputs: vec![side(&args.after, &args.mapping_after)],
        base: Some(side(&args.before, &args.mapping_before)),
        per: match args.per {
            Some([before, after]) if before == after => Some(header::Per::iterations(before)),
            _ => None,
        },
        look: args.native.options(&args.java),
        java: args.java.options(Follow::default()),
        java_only: args.native.is_java,
        full: false,
        contents: false,
    })
}

async fn compare(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if let Some(outcome) = of_meminfo(ctx, &args).await? {
        return Ok(outcome);
    }
    let (java_flag, native_flag) = (java_flag(&args), native_flag(&args));
    if let (Some(java), Some(native)) = (java_flag, native_flag) {
        return Err(Failure::new(
            ErrorClass::Usage,
            "option-conflict",
            format!("{java} is about Java heaps, {native} about native ones"),
        )
        .with_help("leave out one of the two"));
    }
    if java_flag.is_some() {
        return java::run(ctx, args).await;
    }
    let side = |typed: &OsString, maps: &[OsString]| {
        let (input, wanted) = args.native.input(typed, Wanted::Last);
        let mut options = args.native.options(&args.java);
        let maps: Vec<MappingOption> = maps.iter().map(|given| mapping(given)).collect();
        options.names.mappings.splice(0..0, maps);
        (input.path, wanted, options)
    };
    let sides = [
        side(&args.before, &args.mapping_before),
        side(&args.after, &args.mapping_after),
    ];
    let opened = blocking::stepwise(ctx, move |steps| -> Result<_, LookError> {
        let open = |(path, wanted, options): &(PathBuf, Wanted, LookOptions)| {
            look::open(path, wanted, options, steps)
        };
        Ok((open(&sides[0])?, open(&sides[1])?))
    });
    let opened = opened.await;
    let opened = opened.map_err(|failure| kinds::explain(failure, [&args.before, &args.after]));
    match opened? {
        (Look::Native(before), Look::Native(after)) => native(ctx, &args, *before, *after).await,
        (Look::Java, Look::Java) => match native_flag {
            None => java::run(ctx, args).await,
            Some(flag) => Err(Failure::new(
                ErrorClass::Usage,
                "option-conflict",
                format!("these are Java heaps, and {flag} is about native ones"),
            )
            .with_help("leave it out")),
        },
        (Look::Native(file), Look::Java) | (Look::Java, Look::Native(file)) => {
            // The one with both kinds has what the other one has.
            if file.java_dumps > 0 && native_flag.is_none() {
                return java::run(ctx, args).await;
            }
            Err(Failure::new(
                ErrorClass::Usage,
                "nothing-in-common",
                "one of the two is a native heap, the other a Java heap",
            )
            .with_help("compare two of a kind"))
        }
    }
}

/// Compares two texts or documents of meminfo, where both are.
async fn of_meminfo(ctx: &Context, args: &Args) -> Result<Option<Outcome>, Failure> {
    let paths = [PathBuf::from(&args.before), PathBuf::from(&args.after)];
    let changes = blocking::stepwise(ctx, move |_| -> Result<_, MeminfoError> {
        match paths.iter().all(|path| looks_like_meminfo(path)) {
            true => meminfo::compare(paths).map(Some),
            false => Ok(None),
        }
    });
    let Some(changes) = changes.await? else {
        return Ok(None);
    };
    of_heaps_alone(args, "texts of meminfo")?;
    meminfo::show(&ctx.console, &changes, args.csv, args.limit);
    if args.before == args.after {
        same_moment(ctx, &args.after);
    }
    Ok(Some(Outcome::Done))
}

/// Says that what was compared is one and the same.
fn same_moment(ctx: &Context, typed: &OsString) {
    let warning = Warning::same_moment();
    let name = typed.to_string_lossy();
    ctx.console.warn_with_help(
        format_args!("{}: {}", shown(&name), warning.message),
        warning.help.as_deref(),
    );
}

/// A flag that only Java heaps know.
fn java_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| by.of_native().is_none());
    let flags = [
        (args.native.is_java, "--java"),
        (by, "that --by"),
        (args.unchanged, "--unchanged"),
        (args.depth.is_some(), "--depth"),
        (args.min.is_some(), "--min"),
        (args.java.exclude.is_some(), "--exclude"),
        (args.java.sizes.is_some(), "--sizes"),
        (
            matches!(args.native.java_heap(), Ok(Some(_))),
            "that --heap",
        ),
    ];
    flags
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
}

/// A flag that only native heaps know.
fn native_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| !by.is_of_java());
    let flags = [
        (by, "that --by"),
        (args.view.is_some(), "--view"),
        (args.sort.is_some(), "--sort"),
        (args.per.is_some(), "--per"),
        (args.per_second, "--per-second"),
        (args.noise, "--noise"),
        (args.pprof.is_some(), "--pprof"),
        (args.native.java_heap().is_err(), "that --heap"),
    ];
    let given = flags
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag));
    given.or(args.stacks.given())
}

fn request(args: &Args, whole: bool) -> DiffRequest {
    let by = args.by.and_then(ByArg::of_native).unwrap_or(By::Function);
    let limit = match (args.limit, whole) {
        (Some(0), _) => usize::MAX,
        (Some(limit), _) => limit,
        (None, true) if by == By::Callsite => native_view::MOST_CALLSITES,
        (None, true) => usize::MAX,
        (None, false) => PAGE,
    };
    DiffRequest {
        by,
        order: match args.sort {
            None | Some(SortArg::Own) => Order::Own,
            Some(SortArg::Cumulative) => Order::Cumulative,
            Some(SortArg::Name) => Order::Name,
        },
        growing: match args.view {
            None | Some(ViewArg::Space) => Growing::Held,
            Some(ViewArg::AllocSpace) => Growing::Allocated,
        },
        per: match (args.per, args.per_second) {
            (Some(iterations), _) => Per::Iterations(iterations),
            (None, true) => Per::Seconds,
            (None, false) => Per::Whole,
        },
        filter: args.stacks.filter(&args.filter),
        limit,
        noise_limit: match (whole, args.noise) {
            (true, _) => limit,
            (false, true) => args.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX),
            (false, false) => limit.min(PAGE_OF_NOISE),
        },
        frames: if whole { 0 } else { native_view::CALLERS + 1 },
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
    let (goal, force) = (args.pprof.clone(), args.force);
    let work = blocking::stepwise(ctx, move |steps| -> Result<Compared, DiffError> {
        let file = match &goal {
            Some(goal) => Some(ProfileFile::create(goal, force)?),
            None => None,
        };
        steps.begin("comparing");
        let compared = diff(&before, &after, &request)?;
        if let Some(file) = file {
            file.finish(&compared)?;
        }
        Ok(compared)
    });
    let Compared { report, .. } = work.await?;
    match (console.is_json(), args.csv) {
        (true, _) => console.json(&report),
        (_, true) => native::print_csv(console, &report),
        _ => native::show(console, &report),
    }
    let names = format!("{} {}", args.before.display(), args.after.display());
    native_view::warn(console, &names, &report.warnings);
    if both {
        console.say("both have Java heaps, too: --java compares them");
    }
    if let Some(path) = &args.pprof {
        let typed = quoted_path(path);
        console.say(format_args!(
            "wrote {}: go tool pprof -top {typed}",
            path.display()
        ));
    }
    let budget = args.fail_over.map(|limit| {
        if !report.matches() {
            gate::warn_nothing_judged(console, gate::Judged::Samples, is_filtered);
            return Some(ErrorClass::Inconclusive);
        }
        let came_out = report.budget(limit.0);
        native::judge(console, &report, limit, came_out)
    });
    let of_budget = match (budget, missing) {
        // Of data that are missing nobody knows what they would have come to.
        (Some(_), Some(_)) => Some(ErrorClass::Inconclusive),
        (came_out, _) => came_out.flatten(),
    };
    Ok(Outcome::of(missing.into_iter().chain(of_budget)))
}
