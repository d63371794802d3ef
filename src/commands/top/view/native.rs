//! `heaptap top` of native heaps: shows a report as tables, a tree or CSV.

use super::super::run::{HeapReport, TopReport, TopRow, TreeReport};
use super::branches::{self, Line};
use crate::commands::shared::java::{Cell, csv_line};
use crate::commands::shared::native::{
    attached_note, beside, caller_names, callers, estimated, heading, located_cells, percent,
    place, stack_cell, unwinder_notes, value, view_heading, what_of,
};
use crate::console::columns::Columns;
use crate::console::flags::context::Context;
use crate::console::flags::pattern::no_match;
use crate::console::table::Table;
use crate::console::{Console, Style};
use crate::heaps::input::facts::{DumpFacts, Figures};
use heaptap_base::units::{ByteSize, thousands};
use heaptap_base::untrusted::{self, shell::quoted_path};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{TRACKED_HEAP, View};
use std::borrow::Cow;
use std::ffi::OsStr;

/// Minimum number of columns to show one more view, and all views.
const ROOM_FOR_ALLOCATED: usize = 110;
const ROOM_FOR_ALL: usize = 136;

/// Shows a report as text.
pub(super) fn show(ctx: &Context, report: &TopReport, input: &OsStr) {
    let console = &ctx.console;
    for (at, heap) in report.heaps.iter().enumerate() {
        if at > 0 {
            console.data("");
        }
        heading(console, &heap.dump);
        console.data(totals(console, report, heap));
        if let Some(before) = heap.before_leaving {
            let note = format!(
                "the process had exited or disconnected by this dump; the last dump before is \
                 {}@{before}",
                heap.dump.path
            );
            console.in_style(Style::Help, untrusted::sanitize(&note));
        } else if is_all_but_freed(heap) {
            let note = "nearly all memory was freed again; `--view alloc_space` shows all \
                        allocations";
            console.in_style(Style::Help, note);
        }
        console.data("");
        match (&heap.rows, &heap.tree) {
            (Some(_), _) => rows(console, report, heap),
            (None, Some(tree)) => drawn(console, report.by, heap, tree),
            (None, None) => {}
        }
    }
    footer(ctx, report, input);
}

/// Returns a line such as `41.2 MiB ± 0.8 unreleased of 120 MiB allocated · 10,123 of 31,000
/// sampled allocations unreleased`.
fn totals(console: &Console, report: &TopReport, heap: &HeapReport) -> String {
    let total = heap.total_of_view();
    let figure = |view| heap.total.of(view);
    let main = match (&heap.total_limits, heap.unit.as_str()) {
        (Some(limits), _) => limits.estimate.shown().to_string(),
        (None, unit) => value(total, unit),
    };
    let sampled = heap.dump.kind_of_counts();
    let is_java = heap.dump.kind == DumpKind::JavaHeap;
    let is_difference = heap.dump.kind == DumpKind::Difference;
    let word = match heap.view.as_str() {
        "space" if is_difference => "change in unreleased bytes".to_owned(),
        "alloc_space" if is_difference => "change in allocated bytes".to_owned(),
        "objects" if is_difference => "change in unreleased allocations".to_owned(),
        "alloc_objects" if is_difference => "change in allocations".to_owned(),
        "space" if is_java && has_native(heap) => {
            "of Java objects with the native memory that they own".to_owned()
        }
        "space" if is_java => "of Java objects".to_owned(),
        "objects" if is_java => "Java objects".to_owned(),
        "space" if heap.dump.kind == DumpKind::AtMaximum => "at the maximum".to_owned(),
        "space" => "unreleased".to_owned(),
        "alloc_space" => "allocated".to_owned(),
        "objects" => format!("{sampled}allocations unreleased"),
        "alloc_objects" => format!("{sampled}allocations"),
        other => other.to_owned(),
    };
    let mut text = format!("{} {word}", console.styled(Style::Strong, main));
    if heap.view == "space"
        && let Some(allocated) = figure(View::AllocSpace)
        && heap.dump.kind != DumpKind::AtMaximum
        && !is_difference
    {
        let held = (total, heap.total_limits);
        text += &format!(" of {} allocated", beside(allocated, None, held));
    }
    match (figure(View::Objects), figure(View::AllocObjects)) {
        _ if is_difference => {}
        (Some(held), Some(all))
            if heap.unit == "bytes" && heap.dump.kind != DumpKind::AtMaximum =>
        {
            text += &format!(
                " · {} of {} {sampled}allocations unreleased",
                thousands(held),
                thousands(all)
            );
        }
        (None, Some(all)) if heap.unit == "bytes" => {
            text += &format!(" · {} {sampled}allocations", thousands(all));
        }
        _ => {}
    }
    let shown = column(&heap.shown, &heap.view);
    if shown != total {
        let share = (heap.whole != 0).then(|| shown as f64 / heap.whole as f64);
        text += &format!(
            " · shown: {} ({}%)",
            value(shown, &heap.unit),
            percent(share)
        );
    } else if !report.filter.is_empty() {
        text += " · all shown";
    }
    text
}

/// Returns a figure by the name of its view.
fn column(figures: &Figures, view: &str) -> i64 {
    figures.named(view).unwrap_or(0)
}

fn unit_of(view: &str) -> &'static str {
    match view.ends_with("space") {
        true => "bytes",
        false => "count",
    }
}

/// Returns the other views of a row, as many as fit.
fn others(heap: &HeapReport, width: Option<usize>) -> Vec<&str> {
    let room = match width {
        None => usize::MAX,
        Some(width) if width >= ROOM_FOR_ALL => usize::MAX,
        Some(width) if width >= ROOM_FOR_ALLOCATED => 1,
        Some(_) => 0,
    };
    let all = View::ALL.iter().map(|view| view.name());
    all.filter(|view| *view != heap.view && heap.total.names.iter().any(|name| name == view))
        .take(room)
        .collect()
}

fn rows(console: &Console, report: &TopReport, heap: &HeapReport) {
    let rows = heap.rows.as_deref().unwrap_or_default();
    if rows.is_empty() {
        let filter = &report.filter;
        let whole = value(heap.total_of_view(), &heap.unit);
        console.data(match filter.is_empty() {
            true if heap.total.of(View::AllocObjects) > Some(0) => {
                "nothing is unreleased; `--view alloc_space` shows all allocations".to_owned()
            }
            true => "nothing was sampled".to_owned(),
            false => no_match(!filter.ignore.is_empty(), filter.selects(), whole),
        });
        return;
    }
    let width = console.stdout_width();
    let others = others(heap, width);
    // Exact figures do not have an error.
    let has_error = heap.dump.is_sampled() && rows.iter().any(|row| row.self_limits.is_some());
    // These rows have no descendants, so cumulative values equal self values.
    let has_cumulative = !matches!(report.by, "callsite" | "thread");
    let unit = heap.unit.as_str();
    let part = |row: &TopRow| (column(&row.own, &heap.view), row.self_limits);
    let own = |row: &TopRow| match (unit, part(row)) {
        ("bytes", (own, limits)) => estimated(own, limits.as_ref()),
        (_, (own, _)) => (value(own, unit), String::new()),
    };
    let cumulative = |row: &TopRow| match (unit, column(&row.cumulative, &heap.view)) {
        ("bytes", bytes) => beside(bytes, row.cumulative_limits.as_ref(), part(row)),
        (_, other) => value(other, unit),
    };
    let mut columns = Columns::new()
        .with("self", |row: &TopRow| own(row).0)
        .with_if(has_error, "95%", |row| own(row).1)
        .with("%", |row| percent(row.self_share))
        .with_if(has_cumulative, "cumulative", cumulative)
        .with_if(has_cumulative, "%", |row| percent(row.cumulative_share));
    for view in others {
        columns = columns.with(view_heading(&heap.dump, view), move |row| {
            let other = column(&row.own, view);
            match (unit, unit_of(view)) {
                // Allocated memory, next to its unreleased part.
                ("bytes", "bytes") if other >= part(row).0 => beside(other, None, part(row)),
                (_, unit) => value(other, unit),
            }
        });
    }
    let mut table = columns.table(what_of(report.by)).of_code();
    for row in rows {
        table.row(columns.values(row), row.at.name.clone());
        let at = &row.at;
        let place = place(at.library.as_deref(), at.file.as_deref(), at.line);
        let callers = row.stack.as_deref().map(callers).unwrap_or_default();
        table.remark(match callers.is_empty() {
            true => place,
            false => format!("{callers}  {place}"),
        });
    }
    table.show(console);
    let mut left = Vec::new();
    if heap.rows_with_value > rows.len() {
        let more = thousands((heap.rows_with_value - rows.len()) as u64);
        left.push(format!("{more} more (`-l 0` shows all)"));
    }
    let zero = heap.rows_total.unwrap_or(0) - heap.rows_with_value;
    if zero > 0 {
        let others = thousands(zero as u64);
        left.push(match (report.sort, heap.view.as_str()) {
            ("self", _) if has_cumulative => {
                format!("{others} without a self value (`--sort cumulative`)")
            }
            (_, "space" | "objects") => format!("{others} fully released"),
            _ => format!("{others} without a value"),
        });
    }
    if !left.is_empty() {
        console.in_style(Style::Dim, format!("… and {}", left.join(", ")));
    }
}

fn drawn(console: &Console, by: &str, heap: &HeapReport, tree: &TreeReport) {
    if tree.nodes.is_empty() {
        console.data("no node matches the filters and `--min`");
        return;
    }
    let total = heap.whole;
    let share = |value: i64| percent((total != 0).then(|| value as f64 / total as f64));
    let shape: Vec<(Option<usize>, bool)> = tree
        .nodes
        .iter()
        .map(|node| (node.above, node.left_out.is_some()))
        .collect();
    let mut table = Table::new(&["cumulative", "%", "self", what_of(by)]).of_code();
    for (line, lead) in branches::lines(&shape, tree.left_out.is_some()) {
        let rest = match line {
            Line::Node(at) => {
                let node = &tree.nodes[at];
                let cells = vec![
                    value(column(&node.cumulative, &heap.view), &heap.unit),
                    percent(node.cumulative_share),
                    value(column(&node.own, &heap.view), &heap.unit),
                ];
                table.row(cells, node.name.clone());
                table.lead(lead);
                let folded = match node.folded_calls {
                    0 => String::new(),
                    calls => format!("↻ {} recursive calls  ", thousands(calls)),
                };
                let library = node.library.as_deref().unwrap_or_default();
                table.remark(format!("{folded}{library}"));
                continue;
            }
            Line::Rest(None) => tree.left_out.as_ref(),
            Line::Rest(Some(at)) => tree.nodes[at].left_out.as_ref(),
        };
        let Some(rest) = rest else {
            continue;
        };
        let sum = column(&rest.cumulative, &heap.view);
        let cells = vec![value(sum, &heap.unit), share(sum), "-".to_owned()];
        table.row(cells, format!("({} more)", thousands(rest.nodes as u64)));
        table.lead(lead);
        table.style(Style::Dim);
    }
    table.show(console);
    let least = match heap.unit.as_str() {
        "bytes" => ByteSize(tree.least).to_string(),
        _ => thousands(tree.least),
    };
    let which = match tree.inverted {
        true => "callers, from the allocating function up",
        false => "calls, from the root down",
    };
    let note = format!(
        "{which}; nodes of at least {least} (`--min`), {} levels (`--depth`)",
        tree.depth
    );
    console.in_style(Style::Dim, note);
}

/// Returns the functions that are shown of a heap.
fn functions(heap: &HeapReport) -> impl Iterator<Item = Cow<'_, str>> {
    let rows = heap.rows.iter().flatten();
    let rows = rows.flat_map(|row| {
        let stack = row.stack.as_deref().unwrap_or_default();
        let callers = caller_names(stack).map(Cow::Owned);
        std::iter::once(Cow::Borrowed(row.at.name.as_str())).chain(callers)
    });
    let nodes = heap.tree.iter().flat_map(|tree| &tree.nodes);
    rows.chain(nodes.map(|node| Cow::Borrowed(node.name.as_str())))
}

/// Returns whether sizes of a Java heap include native memory.
fn has_native(heap: &HeapReport) -> bool {
    let mut figures = heap.total.names.iter().zip(&heap.total.values);
    figures.any(|(name, value)| name == "native_space" && *value > 0)
}

/// Options that another table or tree does not take over.
const LAYOUT: [&str; 8] = [
    "by", "tree", "invert", "depth", "min", "sort", "limit", "csv",
];

/// Shows notes about hidden frames and errors, and the next commands.
fn footer(ctx: &Context, report: &TopReport, input: &OsStr) {
    let console = &ctx.console;
    let mut notes = Vec::new();
    if report.heaps.iter().any(|heap| heap.hides_frames) {
        notes.push(
            "frames of allocators and of the Java runtime are hidden (`--all-frames`)".to_owned(),
        );
    }
    let is_sampled = |heap: &HeapReport| {
        let limits = heap.total_limits.as_ref();
        limits.is_some_and(|limits| !limits.estimate.exact)
    };
    if report
        .heaps
        .iter()
        .any(|heap| heap.rows.is_some() && is_sampled(heap))
    {
        notes.push("95%: confidence interval, sampling error only".to_owned());
    }
    notes.extend(unwinder_notes(report.heaps.iter().flat_map(functions)));
    let attached = attached_note(report.heaps.iter().map(|heap| &heap.dump));
    notes.extend(attached.map(str::to_owned));
    console.data("");
    for note in notes {
        console.in_style(Style::Dim, note);
    }
    let is_tree = report.heaps.iter().all(|heap| heap.tree.is_some());
    let mut heaps = report.heaps.iter();
    let is_tracked = heaps.all(|heap| heap.dump.heap == TRACKED_HEAP) && !report.heaps.is_empty();
    let next = match (is_tree, report.by) {
        _ if is_tracked && report.by == "class" => ["--tree", "--by thread"],
        _ if is_tracked && report.by == "thread" => ["--tree", "--by class"],
        _ if is_tracked => ["--by class", "--by thread"],
        (true, "library") => ["--tree", "--by callsite"],
        (true, _) => ["--by callsite", "--by library"],
        (false, "library") => ["--tree", "--by function"],
        (false, _) => ["--tree", "--by library"],
    };
    let shows_nothing = report
        .heaps
        .iter()
        .all(|heap| match (&heap.rows, &heap.tree) {
            (Some(rows), _) => rows.is_empty(),
            (None, Some(tree)) => tree.nodes.is_empty(),
            (None, None) => true,
        });
    // The dump before the process exited has more to show.
    let before = match report.heaps.as_slice() {
        [only] => only
            .before_leaving
            .map(|number| format!("{}@{number}", only.dump.path)),
        _ => None,
    };
    // Standard input is read only once.
    if input == "-" || shows_nothing && before.is_none() {
        return;
    }
    // The other dump takes the place of a moment.
    let moment = before.as_ref().map(|_| "at");
    let left_out: Vec<&str> = LAYOUT.into_iter().chain(moment).collect();
    let again = ctx.typed.again(&left_out);
    let command = |input: &OsStr, flags: &str| {
        let input = quoted_path(input);
        format!("heaptap top {input}{again} {flags}")
            .trim_end()
            .to_owned()
    };
    let next: Vec<String> = match before {
        Some(before) => vec![command(
            before.as_ref(),
            if is_tree { "--tree" } else { "" },
        )],
        None => next.iter().map(|flags| command(input, flags)).collect(),
    };
    console.say(format_args!(
        "next: {}",
        console.on_stderr(Style::Help, next.join(" · "))
    ));
}

/// Returns whether less than 1% of the allocated memory is unreleased. Then allocations might be of
/// interest.
fn is_all_but_freed(heap: &HeapReport) -> bool {
    let left = heap
        .total
        .of(View::Space)
        .zip(heap.total.of(View::AllocSpace));
    heap.view == "space"
        && heap.dump.kind != DumpKind::Difference
        && left.is_some_and(|(held, all)| held.saturating_mul(100) < all)
}

/// Prints the rows of all heaps as CSV, one heap after another.
pub(super) fn print_csv(console: &Console, report: &TopReport) {
    let mut text = csv_heading("name,library,file,line") + ",self_low,self_high,stack\n";
    for heap in &report.heaps {
        for row in heap.rows.iter().flatten() {
            let mut cells = cells_of(&heap.dump);
            cells.extend(located_cells(&row.at));
            cells.extend(figures(&row.own));
            cells.extend(figures(&row.cumulative));
            cells.push(Cell::maybe(row.self_limits.map(|limits| limits.low)));
            cells.push(Cell::maybe(row.self_limits.map(|limits| limits.high)));
            let stack = stack_cell(row.stack.as_deref());
            cells.push(Cell::Text(&stack));
            text += &csv_line(&cells);
        }
    }
    console.text(&text);
}

/// Prints the nodes of all heaps as CSV, one heap after another.
pub(super) fn print_tree_csv(console: &Console, report: &TopReport) {
    let mut text = csv_heading("id,above,depth,name,library") + "\n";
    for heap in &report.heaps {
        for node in heap.tree.iter().flat_map(|tree| &tree.nodes) {
            let mut cells = cells_of(&heap.dump);
            cells.extend([
                Cell::Number(node.id as i128),
                Cell::maybe(node.above.map(|above| above as u64)),
                Cell::Number(node.depth as i128),
                Cell::Text(&node.name),
                Cell::text(node.library.as_deref()),
            ]);
            cells.extend(figures(&node.own));
            cells.extend(figures(&node.cumulative));
            text += &csv_line(&cells);
        }
    }
    console.text(&text);
}

/// Returns the names of the columns of a dump, those of `names`, and the views.
fn csv_heading(names: &str) -> String {
    let mut text = format!("dump,process,pid,heap,{names}");
    for prefix in ["self", "cumulative"] {
        for view in View::ALL {
            text += &format!(",{prefix}_{}", view.name());
        }
    }
    text
}

fn cells_of(dump: &DumpFacts) -> Vec<Cell<'_>> {
    vec![
        Cell::Number(dump.number.into()),
        Cell::Text(&dump.process),
        Cell::Number(dump.pid.into()),
        Cell::Text(&dump.heap),
    ]
}

/// Returns the four views as cells; empty if a heap does not have one.
fn figures(figures: &Figures) -> impl Iterator<Item = Cell<'_>> {
    View::ALL.iter().map(|view| Cell::maybe(figures.of(*view)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_consists_of_options_of_top() {
        let tree = crate::cli::tree();
        let top = tree.find_subcommand("top").expect("a command");
        let mut options: Vec<&str> = top
            .get_arguments()
            .filter_map(|arg| arg.get_long())
            .collect();
        options.retain(|option| LAYOUT.contains(option));
        assert_eq!(options.len(), LAYOUT.len(), "{options:?}");
    }
}
