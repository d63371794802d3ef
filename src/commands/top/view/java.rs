//! `heaptap top` of Java heaps: the request, and tables, trees and CSV of the result.

use clap::ValueEnum as _;

use super::super::run::count::count;
use super::super::run::java::{
    Counted, Grouping, Order, TopReport, TopRequest, TopRow, TreeReport, matching, top, tree,
};
use super::super::run::threads::{LocalRow, ThreadRow};
use super::branches::{self, Line};
use super::{Args, ByArg, ReachableArg, SortArg};
use crate::commands::shared::java::{Cell, csv_line, size};
use crate::commands::shared::{blocking, java as java_view, native};
use crate::console::columns::Columns;
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::conflict;
use crate::console::flags::context::Context;
use crate::console::flags::pattern::no_match;
use crate::console::table::{Table, show_hidden};
use crate::console::{Console, Style};
use crate::heaps::java::facts::Figures;
use crate::heaps::java::{self, OpenedJava};
use heaptap_analyze::filter::Filter;
use heaptap_analyze::paths::short;
use heaptap_analyze::tree::NodeKey;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_model::heap_graph::Follow;

/// Rows on a page.
const PAGE: usize = 25;
/// Number of objects above the classes, if both are shown.
const FEW_OBJECTS: usize = 10;
/// Number of threads, which have several lines each.
const FEW_THREADS: usize = 10;
/// Number of frames and of locals of a thread.
const FEW_FRAMES: usize = 3;
/// Default number of objects or threads in JSON and CSV. A heap has millions.
const MAX_OBJECTS: usize = 1000;
/// Levels of the tree.
const DEPTH: usize = 6;

enum Shown {
    Tables(Vec<TopReport>, Option<ErrorClass>),
    Tree(Box<TreeReport>, Option<ErrorClass>),
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a Java heap or cannot be read.
pub(super) async fn run(ctx: &Context, args: Args, opened: OpenedJava) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let input = args.native.one_dump(&args.input)?;
    let options = args.java.options(Follow::default());
    let filter = filter(&args)?;
    let of_tables = filter.clone();
    let requests = requests(&args, &filter, console.is_json());
    let (as_tree, depth, min) = (args.tree, args.depth, args.min);
    let without_roots = match args.reachable {
        _ if args.no_retained => Some("--no-retained"),
        Some(ReachableArg::No) => Some("--reachable no"),
        Some(ReachableArg::Any) => Some("--reachable any"),
        Some(ReachableArg::Yes) | None => None,
    };
    if let Some(flag) = without_roots
        && let Some(by @ (ByArg::Object | ByArg::Root | ByArg::Thread)) = args.by
    {
        let by = by
            .to_possible_value()
            .map_or_else(String::new, |v| v.get_name().to_owned());
        return Err(conflict(
            format!("`{flag}` does not support `--by {by}`, which needs GC roots"),
            "leave out one of the two",
        ));
    }
    if args.by == Some(ByArg::Thread) && !filter.takes_all() {
        let message = "`--by thread` of a Java heap does not support filters";
        return Err(conflict(
            message,
            "leave out the filter, or use `--by object`",
        ));
    }
    let key = match args.by {
        Some(ByArg::Package) if args.tree && !filter.takes_all() => {
            let message = "`--tree --by package` shows whole packages, and filters select classes";
            return Err(conflict(
                message,
                "use `--by class`, or leave out the filters",
            ));
        }
        Some(ByArg::Package) => NodeKey::Package,
        None | Some(ByArg::Class) => NodeKey::Class,
        Some(_) if args.tree => {
            let message = "the dominator tree of a Java heap is merged by class or by package";
            return Err(conflict(
                message,
                "use `--by class`, `--by package`, or leave out `--tree`",
            ));
        }
        Some(_) => NodeKey::Class,
    };
    if (args.tree || args.by == Some(ByArg::Object)) && sorts_otherwise(&args) {
        let message = "objects and trees are sorted by retained size; `--sort` applies to groups";
        return Err(conflict(message, "leave out `--sort`, or use `--by class`"));
    }
    let without_retained = args.no_retained;
    let shown = blocking::stepwise(ctx, move |progress| -> Result<Shown, Failure> {
        if without_retained {
            let request = requests.into_iter().next_back().unwrap_or_default();
            let (report, class) = count(&input, opened, options, &request, progress)?;
            return Ok(Shown::Tables(vec![report], class));
        }
        let heap = java::open(&input, opened, options, progress)?;
        heap.dominators();
        if as_tree {
            let one_percent = heap.dominators().total().total_bytes() / 100;
            let least = min.map_or(one_percent, |ByteSize(bytes)| bytes);
            let depth = depth.unwrap_or(DEPTH).max(1);
            return Ok(Shown::Tree(
                Box::new(tree(&heap, &filter, key, depth, least)),
                heap.class(),
            ));
        }
        progress.begin("adding up");
        let table = |at: usize| Some(top(&heap, &requests[at]));
        let mut reports = parallel::filter_map(requests.len(), 2, table);
        if let (Some(report), Some(request)) = (reports.last_mut(), requests.last()) {
            report.matching = matching(&heap, request);
        }
        let is_without_threads =
            |report: &TopReport| report.by == Grouping::Thread && report.rows_total == 0;
        if reports.iter().any(is_without_threads) {
            let message = format!("{} does not contain threads", heap.name());
            return Err(
                Failure::new(ErrorClass::Usage, "no-threads", message).with_help(
                    "use an HPROF (`heaptap dump --hprof`); heap graphs do not have threads",
                ),
            );
        }
        Ok(Shown::Tables(reports, heap.class()))
    });
    match shown.await? {
        Shown::Tables(reports, class) => {
            show_tables(console, &args, &reports, &of_tables);
            Ok(Outcome::from(class))
        }
        Shown::Tree(report, class) => {
            show_tree(console, &args, &report);
            Ok(Outcome::from(class))
        }
    }
}

/// Returns whether the order is not that of the retained size.
fn sorts_otherwise(args: &Args) -> bool {
    let order = args.sort.and_then(SortArg::of_java);
    order.is_some_and(|order| order != Order::Retained)
}

fn filter(args: &Args) -> Result<Filter, Failure> {
    Ok(args.filter.filter(args.native.heap.java_kinds()?))
}

/// Returns the requested tables.
fn requests(args: &Args, filter: &Filter, is_json: bool) -> Vec<TopRequest> {
    let whole = is_json || args.csv;
    let request = |by: Grouping, page: usize| {
        let default = match (whole, by) {
            (false, _) => page,
            (true, Grouping::Object | Grouping::Thread) => MAX_OBJECTS,
            (true, _) => usize::MAX,
        };
        let counted = match args.reachable {
            Some(ReachableArg::No) => Counted::Unreachable,
            Some(ReachableArg::Any) => Counted::All,
            Some(ReachableArg::Yes) | None => Counted::Reachable,
        };
        let order = match (args.sort.and_then(SortArg::of_java), counted) {
            (Some(sort), _) => sort,
            // Garbage retains nothing.
            (None, Counted::Unreachable) => Order::Shallow,
            (None, _) if args.no_retained => Order::Shallow,
            (None, _) => Order::Retained,
        };
        TopRequest {
            by,
            order,
            limit: args.rows.limit.unwrap_or(default),
            counted,
            filter: Filter {
                by_represented: match by {
                    Grouping::Package | Grouping::Loader => true,
                    // Its rows are `class X`.
                    Grouping::Object => args.by.is_some(),
                    _ => false,
                },
                ..filter.clone()
            },
            allocation_sites: args.alloc_site,
            every_object: args.every_object,
        }
    };
    let by = args.by.and_then(ByArg::of_java);
    match by {
        Some(by @ Grouping::Thread) => vec![request(by, FEW_THREADS)],
        Some(by) => vec![request(by, PAGE)],
        None if args.csv
            || args.reachable.is_some()
            || args.alloc_site
            || sorts_otherwise(args) && !is_json =>
        {
            vec![request(Grouping::Class, PAGE)]
        }
        None => vec![
            request(Grouping::Object, FEW_OBJECTS),
            request(Grouping::Class, PAGE),
        ],
    }
}

fn show_tables(console: &Console, args: &Args, reports: &[TopReport], filter: &Filter) {
    let Some(first) = reports.last() else {
        return;
    };
    if args.csv {
        return print_csv(console, first);
    }
    if console.is_json() {
        let largest = reports.iter().rev().nth(1).map(|report| &report.rows);
        let mut document = serde_json::json!(first);
        if let (Some(largest), Some(fields)) = (largest, document.as_object_mut()) {
            fields.insert("largest_objects".to_owned(), serde_json::json!(largest));
        }
        console.json(&document);
    } else {
        java_view::heading(console, &first.heap);
        java_view::totals(
            console,
            &first.heap,
            first.reachable.as_ref(),
            first.unreachable.as_ref(),
        );
        if let Some(all) = &first.all {
            console.data(format_args!(
                "{} in {} objects, reachable or not",
                console.styled(Style::Strong, ByteSize(all.shallow_bytes)),
                thousands(all.count)
            ));
        }
        if let Some(matching) = first.matching.filter(|matching| matching.count > 0) {
            console.data(format_args!(
                "matching: {} in {}; without them, {} would be free",
                size(own_bytes(&matching)),
                match args.by {
                    // Classes hold static fields.
                    Some(ByArg::Package | ByArg::Loader | ByArg::Object) =>
                        counted(matching.count, "object or class", "objects and classes"),
                    _ => counted(matching.count, "object", "objects"),
                },
                console.styled(Style::Strong, size(matching.retained_total()))
            ));
        }
        let is_empty = |report: &TopReport| report.rows.is_empty();
        if reports.iter().all(is_empty) && !filter.takes_all() {
            console.data("");
            let whole = first.reachable.as_ref().or(first.all.as_ref());
            let whole = whole.map_or(0, |figures| figures.count);
            let whole = counted(whole, "object", "objects");
            console.data(no_match(!filter.ignore.is_empty(), filter.selects(), whole));
        }
        let few_objects = args.rows.limit.unwrap_or(FEW_OBJECTS);
        for report in reports.iter().filter(|report| !is_empty(report)) {
            console.data("");
            table(report).show(console);
            let hidden = report.rows_total.saturating_sub(report.rows.len());
            match (reports.len(), report.by) {
                // The total includes objects that share the row of another.
                (1, Grouping::Object) => {}
                (1, _) => show_hidden(console, hidden, ""),
                (_, Grouping::Object) if report.rows.len() < few_objects => {}
                (_, Grouping::Object) => {
                    console.in_style(Style::Dim, "… (`--by object` shows more)");
                }
                _ => show_hidden(console, hidden, " classes"),
            }
        }
        if reports.iter().any(has_native) {
            console.footnotes(&[java_view::WITH_NATIVE]);
        }
    }
    java_view::warn(console, &first.heap);
}

/// Returns whether a table has retained sizes with native memory.
fn has_native(report: &TopReport) -> bool {
    let native = |row: &TopRow| row.figures.retained_native_bytes > Some(0);
    report.rows.iter().any(native)
}

/// Returns the heading of the name column.
fn heading_of(by: Grouping) -> &'static str {
    match by {
        Grouping::Class => "class",
        Grouping::Package => "package",
        Grouping::Superclass => "class with subclasses",
        Grouping::Heap => "heap",
        Grouping::Loader => "loader",
        Grouping::Root => "root",
        Grouping::Object => "object and path",
        Grouping::Thread => "thread, its stack and largest locals",
    }
}

fn table(report: &TopReport) -> Table {
    let has = |of: fn(&Figures) -> u64| report.rows.iter().any(|row| of(&row.figures) > 0);
    let is_group = report.by != Grouping::Object;
    let native = is_group && has(|figures| figures.native_bytes);
    let retained = has(|figures| figures.retained_count.unwrap_or(0));
    let retained_native = retained && has_native(report);
    let whole = report.reachable.as_ref().map_or(0, own_bytes);
    let columns = Columns::new()
        .with_if(is_group, "count", |it: &Figures| thousands(it.count))
        .with_if(is_group, "shallow", |it| size(it.shallow_bytes))
        .with_if(native, "native", |it| size(it.native_bytes))
        .with_if(retained, "retained", |it| size(it.retained_total()))
        .with_if(retained_native, java_view::NATIVE_PART, native_part)
        .with_if(retained, "%", |it| percent(it.retained_total(), whole));
    let mut table = columns.table(heading_of(report.by));
    if !is_group {
        table = table.keeping_remarks();
    }
    for row in &report.rows {
        table.row(columns.values(&row.figures), row.name.clone());
        if let Some(object) = &row.object {
            table.style(Style::Strong);
            let held_by = held_by(object.root.as_deref(), object.last_static, &object.held_by);
            table.remark(match &object.members {
                Some(members) => format!(
                    "of {} × {}  {held_by}",
                    thousands(members.count),
                    short(&members.class)
                ),
                None => held_by,
            });
        }
        if let Some(thread) = &row.thread {
            table.style(Style::Strong);
            add_thread(&mut table, &columns, thread);
        }
        if let Some(site) = &row.allocated_at {
            let top = site.frames.first().map_or("(no frames)", String::as_str);
            table.remark(format!("at {top}, thread {}", site.thread));
        }
    }
    table
}

/// Adds the innermost frames of a thread and its largest locals, below its row.
fn add_thread(table: &mut Table, columns: &Columns<'_, Figures>, thread: &ThreadRow) {
    let mut add = |local: Option<&LocalRow>, name: String, remark: String| {
        let values = columns.headings().map(|heading| match (local, heading) {
            (Some(local), "retained") => size(local.figures.retained_total()),
            (Some(local), java_view::NATIVE_PART) => native_part(&local.figures),
            _ => String::new(),
        });
        table.row(values.collect(), name);
        table.lead("  ");
        match local {
            Some(_) => table.remark(remark),
            None => table.style(Style::Dim),
        }
    };
    for frame in thread.stack.iter().take(FEW_FRAMES) {
        add(None, format!("at {frame}"), String::new());
    }
    let more = thread.stack.len().saturating_sub(FEW_FRAMES) as u64;
    if more > 0 {
        let more = counted(more, "more frame", "more frames");
        add(None, format!("… {more}"), String::new());
    }
    for local in thread.locals.iter().take(FEW_FRAMES) {
        let frame = local.frame.and_then(|at| thread.stack.get(at as usize));
        let holder = frame.map_or_else(|| local.root.to_owned(), |frame| format!("in {frame}"));
        add(Some(local), local.name.clone(), holder);
    }
}

/// Returns the path of an object, up to the last static field or its root.
fn held_by(root: Option<&str>, last_static: Option<usize>, links: &[String]) -> String {
    let root = root.unwrap_or("unknown");
    if links.is_empty() {
        return format!("is a root: {root}");
    }
    let from = last_static.unwrap_or(0);
    let shown = links[from..].iter().rev().map(String::as_str);
    let root = last_static.is_none().then_some(root);
    let shown: Vec<&str> = shown.chain(root).collect();
    format!("← {}", shown.join(" ← "))
}

fn native_part(figures: &Figures) -> String {
    size(figures.retained_native_bytes.unwrap_or(0))
}

fn own_bytes(figures: &Figures) -> u64 {
    figures.shallow_bytes.saturating_add(figures.native_bytes)
}

fn percent(part: u64, whole: u64) -> String {
    native::percent((whole > 0).then(|| part as f64 / whole as f64))
}

fn figure_cells(figures: &Figures) -> [Cell<'static>; 6] {
    [
        Cell::Number(figures.count.into()),
        Cell::Number(figures.shallow_bytes.into()),
        Cell::Number(figures.native_bytes.into()),
        Cell::maybe(figures.retained_count),
        Cell::maybe(figures.retained_bytes),
        Cell::maybe(figures.retained_native_bytes),
    ]
}

fn print_csv(console: &Console, report: &TopReport) {
    let mut text = "name,count,shallow_bytes,native_bytes,retained_count,retained_bytes,\
                    retained_native_bytes,id,heap,root,held_by,thread,allocated_at\n"
        .to_owned();
    for row in &report.rows {
        let object = row.object.as_ref();
        let held_by = object.map(|object| object.held_by.join(" → "));
        let frames = row.allocated_at.as_ref().map(|site| site.frames.join("; "));
        let thread = row.thread.as_ref().and_then(|thread| thread.id.as_deref());
        let mut cells = vec![Cell::Text(&row.name)];
        cells.extend(figure_cells(&row.figures));
        cells.extend([
            Cell::text(object.map(|object| object.id.as_str()).or(thread)),
            Cell::text(object.map(|object| object.heap)),
            Cell::text(object.and_then(|object| object.root.as_deref())),
            Cell::text(held_by.as_deref()),
            Cell::text(row.allocated_at.as_ref().map(|site| site.thread.as_str())),
            Cell::text(frames.as_deref()),
        ]);
        text += &csv_line(&cells);
    }
    console.text(&text);
    java_view::warn(console, &report.heap);
}

fn show_tree(console: &Console, args: &Args, report: &TreeReport) {
    if console.is_json() {
        console.json(report);
    } else if args.csv {
        let mut text = "id,above,depth,name,count,shallow_bytes,native_bytes,retained_count,\
                        retained_bytes,retained_native_bytes\n"
            .to_owned();
        for node in &report.nodes {
            let mut cells = vec![
                Cell::Number(node.id as i128),
                Cell::maybe(node.above.map(|above| above as u64)),
                Cell::Number(node.depth as i128),
                Cell::Text(&node.name),
            ];
            cells.extend(figure_cells(&node.figures));
            text += &csv_line(&cells);
        }
        console.text(&text);
    } else {
        java_view::heading(console, &report.heap);
        java_view::totals(
            console,
            &report.heap,
            Some(&report.reachable),
            Some(&report.unreachable),
        );
        console.data("");
        if report.nodes.is_empty() {
            console.data("no node matches the filters and `--min`");
        } else {
            drawn(report).show(console);
        }
        let least = format!(
            "nodes that retain at least {} (`--min`), {} levels (`--depth`)",
            ByteSize(report.least_bytes),
            args.depth.unwrap_or(DEPTH).max(1)
        );
        console.in_style(Style::Dim, least);
        if tree_has_native(report) {
            console.in_style(Style::Dim, java_view::WITH_NATIVE);
        }
    }
    java_view::warn(console, &report.heap);
}

fn tree_has_native(report: &TreeReport) -> bool {
    let mut figures = report.nodes.iter().map(|node| &node.figures);
    figures.any(|figures| figures.retained_native_bytes > Some(0))
}

fn drawn(report: &TreeReport) -> Table {
    let key = match report.by {
        NodeKey::Package => "package",
        NodeKey::Class => "class",
    };
    let whole = own_bytes(&report.reachable);
    let columns = Columns::new()
        .with("retained", |it: &Figures| size(it.retained_total()))
        .with_if(tree_has_native(report), java_view::NATIVE_PART, native_part)
        .with("%", |it| percent(it.retained_total(), whole))
        .with("count", |it| thousands(it.count));
    let mut table = columns.table(key);
    let shape: Vec<_> = report
        .nodes
        .iter()
        .map(|node| (node.above, false))
        .collect();
    for (line, lead) in branches::lines(&shape, false) {
        let Line::Node(at) = line else {
            continue;
        };
        let node = &report.nodes[at];
        table.row(columns.values(&node.figures), node.name.clone());
        table.lead(lead);
    }
    table
}
