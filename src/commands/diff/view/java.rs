//! `heaptap diff` of Java heaps: the request, and tables and CSV of the result.

use std::ffi::OsString;

use serde::Serialize;

use super::super::run::{Budget, Verdict};
use super::native::judge;
use super::{Args, ByArg};
use crate::commands::shared::java::{Cell, csv_line, signed, signed_count};
use crate::commands::shared::{blocking, java as java_view};
use crate::console::columns::Columns;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::names::mapping;
use crate::console::flags::pattern::no_match;
use crate::console::table::{Table, show_hidden};
use crate::console::{Console, Style, fail_checks};
use crate::heaps::java::OpenedJava;
use crate::heaps::java::diff::{
    ChangeRow, DEPTH, DiffReport, DiffRequest, LeakChange, NamedChange, PathChangeRow, Wanted, diff,
};
use crate::heaps::java::facts::Figures;
use crate::names::options::MappingOption;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, thousands};
use heaptap_model::heap_graph::Follow;
use heaptap_results::findings::{
    NOT_IN_INPUT, SAME_MOMENT, SEVERAL_IN_ONE, SEVERAL_RECORDINGS, TRACE_CUT,
};

/// Rows on a page.
const PAGE: usize = 20;

/// A report with the result of `--fail-over`.
#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    report: &'a DiffReport,
    verdict: Option<&'a Verdict>,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if an input does not contain a Java heap or cannot be read.
pub(super) async fn run(
    ctx: &Context,
    args: Args,
    opened: [OpenedJava; 2],
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let side = |input: &OsString, maps: &[OsString]| -> Result<_, Failure> {
        let mut options = args.java.options(Follow::default());
        let maps: Vec<MappingOption> = maps.iter().map(|given| mapping(given)).collect();
        options.names.mappings.splice(0..0, maps);
        Ok((args.native.one_dump(input)?, options))
    };
    let whole = console.is_json() || args.csv;
    let request = DiffRequest {
        before: side(&args.before, &args.mapping_before)?,
        after: side(&args.after, &args.mapping_after)?,
        wanted: Wanted {
            filter: args.filter.filter(args.native.heap.java_kinds()?),
            limit: args
                .rows
                .limit
                .unwrap_or(if whole { usize::MAX } else { PAGE }),
            packages: args.by == Some(ByArg::Package),
            unchanged: args.unchanged,
            least: args.min.map(|ByteSize(bytes)| bytes),
            depth: args.depth.unwrap_or(DEPTH).max(1),
            texts: true,
        },
    };
    let filter = &request.wanted.filter;
    let is_filtered = !filter.takes_all();
    let nothing = no_match(!filter.ignore.is_empty(), filter.selects(), "either dump");
    let (report, class) =
        blocking::stepwise(ctx, move |progress| diff(&request, opened, progress)).await?;
    let verdict = args
        .fail_over
        .map(|limit| verdict(&report, limit.0, class.is_some()));
    if console.is_json() {
        console.json(&Judged {
            report: &report,
            verdict: verdict.as_ref(),
        });
    } else if args.csv {
        print_csv(console, &report, args.by.unwrap_or(ByArg::Class));
    } else {
        show(console, &report, &args, &nothing);
    }
    java_view::warn(console, &report.before);
    java_view::warn(console, &report.after);
    let judged = match &verdict {
        None => None,
        Some(_) if !report.matches => {
            fail_checks::warn_nothing_judged(console, fail_checks::Judged::Objects, is_filtered);
            Some(ErrorClass::Inconclusive)
        }
        Some(verdict) => {
            let growth = retained_growth(&report);
            let retained = match is_filtered {
                true => format!("{growth} in what the matching objects retain"),
                false => growth,
            };
            judge(console, &retained, verdict)
        }
    };
    Ok(Outcome::from_classes(class.into_iter().chain(judged)))
}

/// Judges the growth of what the matching objects retain.
fn verdict(report: &DiffReport, limit_bytes: u64, is_incomplete: bool) -> Verdict {
    let (before, after) = (&report.before, &report.after);
    let warnings = || before.warnings.iter().chain(&after.warnings);
    let warns = |kind: &str| warnings().any(|warning| warning.kind == kind);
    let is_over = report.excess() > limit_bytes;
    let why = if !report.matches {
        Some("nothing matches the filters")
    } else if warns(SAME_MOMENT) {
        Some("both sides are the same dump")
    } else if warns(SEVERAL_RECORDINGS) {
        Some(SEVERAL_IN_ONE)
    } else if warns(NOT_IN_INPUT) {
        Some("a selected process is in neither input")
    } else if before.source != after.source || before.sizes != after.sizes {
        Some("the dumps have different sizes for the same objects")
    } else if is_incomplete || !is_over && warns(TRACE_CUT) {
        // A growth that is seen is at least that large.
        Some("data is missing from one side")
    } else {
        None
    };
    let outcome = match why {
        Some(_) => Budget::Open,
        None if is_over => Budget::Exceeded,
        None => Budget::Kept,
    };
    Verdict {
        limit_bytes,
        outcome,
        why,
    }
}

fn retained_growth(report: &DiffReport) -> String {
    match report.total.growth.retained_total_bytes() {
        0 => "no change".to_owned(),
        bytes => signed(bytes),
    }
}

/// Shows a report as text; `nothing` is the message if the filter leaves nothing.
fn show(console: &Console, report: &DiffReport, args: &Args, nothing: &str) {
    let (by, limit) = (args.by, args.rows.limit);
    java_view::heading(console, &report.before);
    java_view::heading(console, &report.after);
    summary(console, report);
    if !report.is_alike() {
        let note = "the dumps are of different kinds, with different sizes and roots: only the \
                    numbers of objects by class or package are comparable";
        console.in_style(Style::Warn, note);
    }
    let wants = |what| by.map_or(what == ByArg::Class || report.is_alike(), |by| by == what);
    if wants(ByArg::Class) {
        groups(
            console,
            report,
            &report.classes,
            ("class", report.classes_changed),
            nothing,
        );
    }
    if let (Some(packages), Some(all)) = (&report.packages, report.packages_changed) {
        groups(console, report, packages, ("package", all), nothing);
    }
    if wants(ByArg::Path) && !report.paths.is_empty() {
        console.section(Style::Strong, "Dominator tree");
        // Without a limit, `--min` alone decides.
        let shown = report.paths.len().min(limit.unwrap_or(usize::MAX));
        paths(console, &report.paths[..shown]);
        show_hidden(console, report.paths.len() - shown, "");
        let least = format!(
            "nodes that changed by at least {} (`--min`)",
            ByteSize(report.paths_least_bytes)
        );
        console.in_style(Style::Dim, least);
    }
    if wants(ByArg::Leak) && (!report.leaks.is_empty() || by.is_some()) {
        console.section(Style::Strong, "Leaked objects");
        leaks(console, &report.leaks);
        show_hidden(console, report.leaks_total - report.leaks.len(), "");
    }
    let sides = [&report.total.before, &report.total.after];
    let has_native = report.is_alike() && sides.iter().any(|side| side.native_bytes > 0);
    let has_retained = (wants(ByArg::Class) && !report.classes.is_empty())
        || report
            .packages
            .as_ref()
            .is_some_and(|packages| !packages.is_empty())
        || (wants(ByArg::Path) && !report.paths.is_empty())
        || (wants(ByArg::Leak) && !report.leaks.is_empty());
    if has_native && has_retained {
        console.footnotes(&[java_view::WITH_NATIVE]);
    }
}

fn summary(console: &Console, report: &DiffReport) {
    let total = &report.total;
    if !report.is_alike() {
        return console.data(format_args!(
            "{} → {} objects: {}",
            thousands(total.before.count),
            thousands(total.after.count),
            console.styled(Style::Strong, signed_count(total.growth.count))
        ));
    }
    let growth = match (total.growth.own_bytes(), total.growth.count) {
        (0, 0) => "no change in size and number".to_owned(),
        (bytes, count) => format!("{} in {} objects", signed(bytes), signed_count(count)),
    };
    let figures = |bytes: u64, native: u64| match native {
        0 => ByteSize(bytes).to_string(),
        native => format!("{} + {} native", ByteSize(bytes), ByteSize(native)),
    };
    console.data(format_args!(
        "{} → {}: {}",
        figures(total.before.shallow_bytes, total.before.native_bytes),
        figures(total.after.shallow_bytes, total.after.native_bytes),
        console.styled(Style::Strong, growth)
    ));
    let retained = [&total.before, &total.after].map(Figures::retained_total);
    let own = [&total.before, &total.after]
        .map(|side| side.shallow_bytes.saturating_add(side.native_bytes));
    if retained != own {
        let [before, after] = retained.map(ByteSize);
        let growth = retained_growth(report);
        console.data(format_args!(
            "retained: {before} → {after}: {}",
            console.styled(Style::Strong, growth)
        ));
    }
}

/// Prints classes or packages, the largest changes among `all`.
fn groups(
    console: &Console,
    report: &DiffReport,
    rows: &[NamedChange],
    (what, all): (&str, usize),
    nothing: &str,
) {
    console.data("");
    if !report.matches {
        return console.data(nothing);
    }
    if rows.is_empty() {
        return console.data(format_args!("no {what} changed"));
    }
    let any = |of: fn(&ChangeRow) -> i64| rows.iter().any(|row| of(&row.change) != 0);
    let is_alike = report.is_alike();
    let native = is_alike && any(|change| change.growth.native_bytes);
    let columns = Columns::new()
        .with("count", |it: &ChangeRow| signed_count(it.growth.count))
        .with_if(is_alike, "shallow", |it| signed(it.growth.shallow_bytes))
        .with_if(native, "native", |it| signed(it.growth.native_bytes))
        .with_if(is_alike, "retained", |it| {
            signed(it.growth.retained_total_bytes())
        })
        .with("now", |it| thousands(it.after.count));
    let mut table = columns.table(what);
    for row in rows {
        table.row(columns.values(&row.change), row.name.clone());
        if matches!(row.change.status, "new" | "gone") {
            table.remark(row.change.status);
        }
    }
    table.show(console);
    show_hidden(console, all - rows.len(), " with smaller changes");
}

fn paths(console: &Console, rows: &[PathChangeRow]) {
    let mut table = Table::new(&["retained", "count", "class"]);
    for row in rows {
        let growth = &row.change;
        let cells = vec![
            signed(growth.growth.retained_total_bytes()),
            signed_count(growth.growth.count),
        ];
        table.row(cells, row.name.clone());
        table.lead("  ".repeat(row.depth));
        if matches!(growth.status, "new" | "gone") {
            table.remark(growth.status);
        }
    }
    table.show(console);
}

fn leaks(console: &Console, rows: &[LeakChange]) {
    if rows.is_empty() {
        return console.data("none in either dump");
    }
    let mut table = Table::new(&["", "before", "after", "retained", "leak"]).keeping_remarks();
    for leak in rows {
        let bytes = i128::from(leak.after_bytes) - i128::from(leak.before_bytes);
        let bytes = bytes.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        table.row(
            vec![
                leak.status.to_owned(),
                thousands(leak.before_count),
                thousands(leak.after_count),
                signed(bytes),
            ],
            format!("{} {}", leak.what, leak.class),
        );
        if !leak.path.is_empty() {
            table.remark(format!("via {}", leak.path));
        }
    }
    table.show(console);
}

const FIGURES: &str = "status,count_before,count_after,shallow_bytes_before,shallow_bytes_after,\
                       native_bytes_before,native_bytes_after,retained_bytes_before,\
                       retained_bytes_after,retained_native_bytes_before,\
                       retained_native_bytes_after";

fn figures(change: &ChangeRow) -> Vec<Cell<'_>> {
    let (before, after) = (&change.before, &change.after);
    vec![
        Cell::Text(change.status),
        Cell::Number(before.count.into()),
        Cell::Number(after.count.into()),
        Cell::Number(before.shallow_bytes.into()),
        Cell::Number(after.shallow_bytes.into()),
        Cell::Number(before.native_bytes.into()),
        Cell::Number(after.native_bytes.into()),
        Cell::maybe(before.retained_bytes),
        Cell::maybe(after.retained_bytes),
        Cell::maybe(before.retained_native_bytes),
        Cell::maybe(after.retained_native_bytes),
    ]
}

fn print_csv(console: &Console, report: &DiffReport, by: ByArg) {
    let mut text = String::new();
    match by {
        ByArg::Class | ByArg::Package => {
            text += &format!("name,{FIGURES}\n");
            for row in report.packages.as_ref().unwrap_or(&report.classes) {
                let mut cells = vec![Cell::Text(&row.name)];
                cells.extend(figures(&row.change));
                text += &csv_line(&cells);
            }
        }
        ByArg::Path => {
            text += &format!("id,above,depth,name,{FIGURES}\n");
            for row in &report.paths {
                let mut cells = vec![
                    Cell::Number(row.id as i128),
                    Cell::maybe(row.above.map(|above| above as u64)),
                    Cell::Number(row.depth as i128),
                    Cell::Text(&row.name),
                ];
                cells.extend(figures(&row.change));
                text += &csv_line(&cells);
            }
        }
        _ => {
            text += "signature,class,what,path,status,count_before,count_after,bytes_before,\
                     bytes_after\n";
            for leak in &report.leaks {
                text += &csv_line(&[
                    Cell::Text(&leak.signature),
                    Cell::Text(&leak.class),
                    Cell::Text(leak.what),
                    Cell::Text(&leak.path),
                    Cell::Text(leak.status),
                    Cell::Number(leak.before_count.into()),
                    Cell::Number(leak.after_count.into()),
                    Cell::Number(leak.before_bytes.into()),
                    Cell::Number(leak.after_bytes.into()),
                ]);
            }
        }
    }
    console.text(&text);
}
