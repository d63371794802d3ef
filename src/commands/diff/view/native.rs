//! `heaptap diff` of native heaps: shows a report as tables or CSV, and reports the check of a
//! growth limit.

use super::super::run::{Budget, ChangeRow, DiffReport, DiffRow, HeapDiff, Verdict};
use crate::commands::shared::java::{Cell, csv_line, signed};
use crate::commands::shared::native::{
    attached_note, callers, heading, located_cells, parts, place, stack_cell, value, what_of,
};
use crate::commands::shared::sites::shrank_elsewhere;
use crate::console::columns::Columns;
use crate::console::flags::pattern::no_match;
use crate::console::table::{Table, show_hidden};
use crate::console::{Console, Style};
use crate::heaps::input::facts::{DumpFacts, Growth};
use heaptap_base::error::ErrorClass;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_model::profile::DumpKind;

/// Minimum number of columns to show both self and cumulative growth.
const ROOM_FOR_BOTH: usize = 100;

/// Shows a report as tables.
pub(super) fn show(console: &Console, report: &DiffReport) {
    for (at, heap) in report.heaps.iter().enumerate() {
        if at > 0 {
            console.data("");
        }
        for (dump, side) in [(&heap.before, "first"), (&heap.after, "second")] {
            match dump {
                Some(dump) => heading(console, dump),
                None => {
                    let note = format!("the {side} input does not have this heap");
                    console.in_style(Style::Dim, note);
                }
            }
        }
        for line in totals(console, report, heap) {
            console.data(line);
        }
        show_rows(console, report, heap);
    }
    let is_pair = |heap: &HeapDiff| heap.before.is_some() && heap.after.is_some();
    let runs = if !report.heaps.iter().any(is_sampled) {
        None
    } else if report.heaps.iter().any(|heap| heap.same_run) {
        Some(
            "two dumps of one run: allocations in both have the same sampling error, which cancels out",
        )
    } else if report.heaps.iter().any(|heap| heap.backwards) {
        Some(
            "the first dump is the later one. Put the earlier dump first, so that the sampling \
             error of allocations in both cancels out.",
        )
    } else if report.heaps.iter().any(is_pair) {
        Some("two runs: the errors cover sampling only, not variation between runs")
    } else {
        None
    };
    let dumps = report
        .heaps
        .iter()
        .flat_map(|heap| heap.before.iter().chain(&heap.after));
    let notes = runs.into_iter().chain(attached_note(dumps));
    for (at, note) in notes.enumerate() {
        if at == 0 {
            console.data("");
        }
        console.in_style(Style::Dim, note);
    }
}

/// Returns whether a dump counts samples instead of all allocations.
fn is_sampled(heap: &HeapDiff) -> bool {
    let mut dumps = heap.before.iter().chain(&heap.after);
    dumps.any(DumpFacts::is_sampled)
}

/// Returns the unit ` per second` or ` per iteration` if growth is divided.
fn per(report: &DiffReport) -> &'static str {
    match report.per {
        None => "",
        Some("iteration") => " per iteration",
        Some(_) => " per second",
    }
}

/// Returns lines such as `20.1 MiB → 25.3 MiB unreleased: +5.2 MiB ± 0.3`.
fn totals(console: &Console, report: &DiffReport, heap: &HeapDiff) -> Vec<String> {
    let is_java = |dump: &DumpFacts| dump.kind == DumpKind::JavaHeap;
    let word = match report.view {
        "space" if heap.before.iter().chain(&heap.after).all(is_java) => "of Java objects",
        "space" => "unreleased",
        _ => "allocated",
    };
    let sides = |change: &ChangeRow| {
        let size = |bytes: i64| match bytes {
            0 => "0 B".to_owned(),
            bytes => value(bytes, "bytes"),
        };
        format!(
            "{} → {}",
            size(change.before.bytes),
            size(change.after.bytes)
        )
    };
    let total = &heap.total;
    let mut text = format!(
        "{} {word}: {}",
        sides(total),
        console.styled(Style::Strong, told(report, total)),
    );
    if is_sampled(heap) && has_changed(total) && total.growth.low.is_some() && !total.confirmed {
        text += ", within sampling error";
    }
    let mut lines = vec![text];
    let shown = &heap.shown;
    if (shown.before, shown.after) != (total.before, total.after) {
        lines.push(format!("shown: {}: {}", sides(shown), told(report, shown)));
    }
    lines
}

/// Returns whether anything was allocated or freed, as sampled.
fn has_changed(change: &ChangeRow) -> bool {
    change.growth.value != 0.0 || change.growth.rate.samples > 0
}

fn told(report: &DiffReport, change: &ChangeRow) -> String {
    if !has_changed(change) {
        return "no change".to_owned();
    }
    let growth = match change.growth.low {
        Some(_) => {
            let shown = change.growth.rate.shown();
            format!("{:+}", shown.with_value(change.growth.value))
        }
        None => signed(change.growth.value as i64),
    };
    format!("{growth}{}", per(report))
}

/// Returns growth and its error for two columns. `is_whole` growth is next to its columns, so it
/// must be their difference, and is not rounded to its error.
fn cells(growth: &Growth, is_whole: bool) -> (String, String) {
    match growth.low {
        Some(_) if growth.value != 0.0 => {
            let shown = growth.rate.shown();
            parts(
                &match is_whole {
                    true => shown.with_value(growth.value),
                    false => shown,
                },
                true,
            )
        }
        _ => (signed(growth.value as i64), String::new()),
    }
}

/// Returns whether "no growth" is outside the confidence interval.
fn leaves_out_zero(growth: &Growth) -> bool {
    growth.low.is_some_and(|low| low > 0.0) || growth.high.is_some_and(|high| high < 0.0)
}

fn show_rows(console: &Console, report: &DiffReport, heap: &HeapDiff) {
    let has_limits = heap.total.growth.low.is_some();
    let change = |row: &DiffRow| match report.sort {
        "cumulative" => row.cumulative,
        _ => row.own,
    };
    let (certain, noise): (Vec<&DiffRow>, Vec<&DiffRow>) = heap
        .rows
        .iter()
        .partition(|row| change(row).confirmed || !has_limits);
    console.data("");
    if certain.is_empty() {
        let filter = &report.filter;
        console.data(match heap.rows_within_sampling_error {
            0 if !heap.matches && !filter.is_empty() => {
                no_match(!filter.ignore.is_empty(), filter.selects(), "either dump")
            }
            0 => "nothing changed".to_owned(),
            _ => "no change beyond sampling error".to_owned(),
        });
    } else {
        table(console, report, &certain, change).show(console);
        show_hidden(console, heap.rows_left_out, "");
    }
    if !has_limits {
        let note = "the sampling interval is unknown, so growth cannot be distinguished from \
                    sampling error";
        console.in_style(Style::Dim, note);
    }
    if !noise.is_empty() {
        let all = heap.rows_within_sampling_error;
        let mut note = format!("Within sampling error: {}", thousands(all as u64));
        if all > noise.len() {
            note += &format!(", the {} largest (`--noise` shows all)", noise.len());
        }
        console.section(Style::Strong, note);
        table(console, report, &noise, change).show(console);
        // A row's interval considers that row alone; significance is tested for all rows together.
        if noise.iter().any(|row| leaves_out_zero(&change(row).growth)) {
            let tested = counted((heap.rows_confirmed + all) as u64, "row", "rows");
            let note = format!("With {tested}, an interval may exclude 0 by chance.");
            console.in_style(Style::Dim, note);
        }
    }
    // Cumulative growth of callers and callees overlaps, so its sum is not the total.
    let shown: f64 = heap.rows.iter().map(|row| row.own.growth.value).sum();
    let total = &heap.shown.growth;
    let others = shrank_elsewhere(shown, total.value, total.high.unwrap_or(total.value));
    if let Some(size) = others.filter(|_| report.sort != "cumulative") {
        let each = per(report);
        let note = format!("rows that are not shown shrank by {size}{each} in total");
        console.in_style(Style::Dim, note);
    }
}

fn table(
    console: &Console,
    report: &DiffReport,
    rows: &[&DiffRow],
    change: impl Fn(&DiffRow) -> ChangeRow,
) -> Table {
    let width = console.stdout_width();
    let by_callsite = report.by == "callsite";
    let is_cumulative = report.sort == "cumulative";
    let has_error = rows.iter().any(|row| row.own.growth.low.is_some());
    let grown = format!("growth{}", per(report));
    let has_room = width.is_none_or(|width| width >= ROOM_FOR_BOTH);
    let shows_both = !by_callsite && has_room;
    let (other, heading): (fn(&DiffRow) -> ChangeRow, _) = match is_cumulative {
        true => (|row| row.own, "self"),
        false => (|row| row.cumulative, "cumulative"),
    };
    let cells = |change: ChangeRow| cells(&change.growth, report.per.is_none());
    let columns = Columns::new()
        .with(&grown, |row: &DiffRow| cells(change(row)).0)
        .with_if(has_error, "95%", |row| cells(change(row)).1)
        .with("before", |row| value(change(row).before.bytes, "bytes"))
        .with("after", |row| value(change(row).after.bytes, "bytes"))
        .with_if(shows_both, heading, |row| cells(other(row)).0);
    let mut table = columns.table(what_of(report.by)).of_code();
    for row in rows {
        let main = change(row);
        table.row(columns.values(row), row.at.name.clone());
        let status = match main.status {
            "new" | "gone" => main.status,
            _ => "",
        };
        let callers = row.stack.as_deref().map(callers).unwrap_or_default();
        let at = &row.at;
        let place = place(at.library.as_deref(), at.file.as_deref(), at.line);
        let parts = [status, &callers, &place];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        table.remark(parts.collect::<Vec<_>>().join("  "));
    }
    table
}

/// Returns the growth over all heaps, for [`judge`].
pub(super) fn growth(report: &DiffReport) -> String {
    format!("{:+}{}", report.growth().shown(), per(report))
}

/// Reports the check of a growth limit. Returns the class of the exit code.
pub(super) fn judge(console: &Console, growth: &str, verdict: &Verdict) -> Option<ErrorClass> {
    let limit = ByteSize(verdict.limit_bytes);
    match (verdict.outcome, verdict.why) {
        (Budget::Kept, _) => {
            console.say(format_args!("grew by no more than {limit}: {growth}"));
            None
        }
        (Budget::Exceeded, _) => {
            console.warn(format_args!("grew by more than {limit}: {growth}"));
            Some(ErrorClass::Budget)
        }
        (Budget::Open, Some(why)) => {
            console.warn(format_args!("cannot check for growth over {limit}: {why}"));
            Some(ErrorClass::Inconclusive)
        }
        (Budget::Open, None) => {
            console.warn_with_help(
                format_args!(
                    "cannot decide from these dumps whether growth exceeds {limit}: {growth}"
                ),
                Some(
                    "record with a smaller `heaptap record --interval`, or repeat the action more often between \
                     the dumps and divide with `--rounds`",
                ),
            );
            Some(ErrorClass::Inconclusive)
        }
    }
}

/// CSV columns of a change.
const COLUMNS: [&str; 9] = [
    "status",
    "confirmed",
    "before_bytes",
    "before_samples",
    "after_bytes",
    "after_samples",
    "growth",
    "growth_low",
    "growth_high",
];

/// Prints the rows of all heaps as CSV, one heap after another.
pub(super) fn print_csv(console: &Console, report: &DiffReport) {
    let mut text = "process,heap,name,library,file,line".to_owned();
    for prefix in ["self", "cumulative"] {
        for column in COLUMNS {
            text += &format!(",{prefix}_{column}");
        }
    }
    text += ",stack\n";
    for heap in &report.heaps {
        let dump = heap.after.as_ref().or(heap.before.as_ref());
        for row in &heap.rows {
            let mut cells = vec![
                Cell::Text(dump.map_or("", |dump| &dump.process)),
                Cell::Text(dump.map_or("", |dump| &dump.heap)),
            ];
            cells.extend(located_cells(&row.at));
            cells.extend(figures(&row.own));
            cells.extend(figures(&row.cumulative));
            let stack = stack_cell(row.stack.as_deref());
            cells.push(Cell::Text(&stack));
            text += &csv_line(&cells);
        }
    }
    console.text(&text);
}

fn figures(change: &ChangeRow) -> [Cell<'static>; COLUMNS.len()] {
    let real = |value: Option<f64>| value.map_or(Cell::Nothing, Cell::Real);
    [
        Cell::Text(change.status),
        Cell::Text(if change.confirmed { "true" } else { "false" }),
        Cell::Number(change.before.bytes.into()),
        Cell::Number(change.before.samples.into()),
        Cell::Number(change.after.bytes.into()),
        Cell::Number(change.after.samples.into()),
        Cell::Real(change.growth.value),
        real(change.growth.low),
        real(change.growth.high),
    ]
}
