//! `heaptap top`: memory as a table or a tree, for native heaps by callsite, function, library and
//! so on, for Java heaps by class, object and so on.

mod branches;
mod java;
mod native;

use super::args::{Args, ByArg, ReachableArg, SortArg};
use super::run::{Order, TopRequest, TreeRequest, top};
use crate::commands::shared::recordings::input_missing;
use crate::commands::shared::{blocking, native as native_view};
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::{
    BY_VALUE, conflict, first_given, refuse_both, refuse_native_by,
};
use crate::console::flags::context::Context;
use crate::heaps::input::{self, DumpScope, NativeFile, OpenedInput};
use crate::heaps::java::OpenedJava;
use heaptap_analyze::native::groups::RowKey;
use heaptap_base::error::Failure;
use heaptap_base::units::{ByteSize, counted};

/// Rows on a page.
const PAGE: usize = 25;
/// Levels of a tree from the root, and of an inverted one.
const DEPTH: usize = 60;
const INVERTED_DEPTH: usize = 8;
/// Maximum number of nodes of a tree, in a terminal and in documents.
const NODES: usize = 300;
const MAX_NODES: usize = 100_000;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a heap or cannot be read, or a flag does not
/// apply to its kind.
pub async fn run(ctx: &Context, mut args: Args) -> Result<Outcome, Failure> {
    let Some(typed) = args.typed.take() else {
        return Err(input_missing("top", &args.java.target, false));
    };
    args.input = typed;
    args.native.moment.check([&args.input])?;
    args.native.one_dump(&args.input)?;
    let java_flag = java_flag(&args);
    let native_flag = native_flag(&args);
    refuse_both(java_flag, native_flag)?;
    if java_flag.is_some() {
        return java::run(ctx, args, OpenedJava::Unread).await;
    }
    let (input, wanted) = args.native.input(&args.input, DumpScope::Default);
    let path = input.path.clone();
    let mut options = args.native.options(&args.java);
    options.list_from = by(&args).is_of_frames().then_some(0);
    let opened = blocking::stepwise(ctx, move |progress| {
        input::open(&path, &wanted, &options, progress)
    });
    match opened.await? {
        OpenedInput::Native(file, java) => {
            drop(java);
            native(ctx, &args, *file).await
        }
        OpenedInput::Java(opened) => {
            args.native.heap.java_kinds()?;
            let contains = format!("{} contains Java heaps", input.path.display());
            refuse_native_by(native_flag, contains, |by: &ByArg| by.of_java().is_some())?;
            java::run(ctx, args, opened).await
        }
    }
}

/// Returns the first given flag that applies only to Java heaps.
fn java_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| by.of_native().is_none());
    let sort = args.sort.is_some_and(|sort| sort.of_native().is_none());
    let flags = [
        (by, BY_VALUE),
        (sort, "this --sort value"),
        (args.reachable.is_some(), "--reachable"),
        (args.every_object, "--every-object"),
        (args.alloc_site, "--alloc-site"),
        (args.no_retained, "--no-retained"),
        (args.java.ignore_refs.is_some(), "--ignore-refs"),
        (args.java.sizes.is_some(), "--sizes"),
        (args.native.heap.of_java().is_some(), "this --heap value"),
    ];
    first_given(flags)
}

/// Returns the first given flag that applies only to native heaps.
fn native_flag(args: &Args) -> Option<&'static str> {
    let by = args.by.is_some_and(|by| by.of_java().is_none());
    let sort = args.sort.is_some_and(|sort| sort.of_java().is_none());
    let flags = [
        (by, BY_VALUE),
        (sort, "this --sort value"),
        (args.view.is_some(), "--view"),
        (args.invert, "--invert"),
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

async fn native(ctx: &Context, args: &Args, file: NativeFile) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let whole = console.is_json() || args.csv;
    let by = by(args);
    if by == RowKey::Thread && args.tree {
        let message = "`--tree` does not support `--by thread`";
        return Err(conflict(message, "leave out `--tree` or `--by thread`"));
    }
    let order = args.sort.and_then(SortArg::of_native);
    if args.tree && order.is_some_and(|order| order != Order::Cumulative) {
        let message = "trees are sorted by cumulative value; `--sort` applies to tables";
        return Err(conflict(message, "leave out `--sort` or `--tree`"));
    }
    let tree = args.tree.then(|| TreeRequest {
        inverted: args.invert,
        depth: args
            .depth
            .unwrap_or(if args.invert { INVERTED_DEPTH } else { DEPTH })
            .max(1),
        least: args.min.map(|ByteSize(bytes)| bytes),
        most: match (args.rows.limit, whole) {
            (Some(limit), _) => limit,
            (None, true) => MAX_NODES,
            (None, false) => NODES,
        },
    });
    let request = TopRequest {
        by,
        order: order.unwrap_or_default(),
        view: args.view.clone(),
        limit: args.rows.limit.unwrap_or(match (whole, by) {
            (false, _) => PAGE,
            (true, RowKey::Callsite) => native_view::MAX_CALLSITES,
            (true, _) => usize::MAX,
        }),
        owners_only: !whole,
        filter: args.stacks.filter(&args.filter),
        tree,
        frames: if whole { 0 } else { native_view::FRAMES },
    };
    let class = file.class();
    let java_dumps = file.java_dumps;
    let paths = [file.path.clone()];
    let report = blocking::stepwise(ctx, move |progress| {
        progress.begin("adding up");
        top(&file, &request)
    });
    let report = report.await?;
    match (console.is_json(), args.csv, args.tree) {
        (true, ..) => console.json(&report),
        (_, true, false) => native::print_csv(console, &report),
        (_, true, true) => native::print_tree_csv(console, &report),
        _ => native::show(ctx, &report, &args.input),
    }
    let input = args.input.to_string_lossy();
    native_view::warn(console, &input, &paths, &report.warnings);
    if java_dumps > 0 {
        console.say(format_args!(
            "{input} also has {}; add `--heap java` to show Java heaps",
            counted(java_dumps as u64, "Java heap", "Java heaps")
        ));
    }
    Ok(Outcome::from(class))
}
