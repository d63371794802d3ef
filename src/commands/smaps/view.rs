//! `heaptap smaps`: the mappings of a process, by the rows of meminfo, by library or by mapping.

use super::args::{Args, ByArg};
use crate::commands::shared::java::{Cell, csv_line};
use crate::commands::shared::mappings::{CUT, PAGE, load};
use crate::console::columns::Columns;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::source;
use crate::console::flags::typed::of_same_name;
use crate::console::table::{show_fitting, show_hidden};
use crate::console::{Console, Style, save_file};
use crate::heaps::smaps::{self, Document, Mapped, Moment, Origin, Row};
use android_memory::smaps::{Field, Sums};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted::sanitize;
use heaptap_results::lists::process_name;

/// Rows with at least 1/`MUCH` of the cost of the process are highlighted.
const MUCH: u64 = 10;

/// Runs the command.
///
/// # Errors
/// Returns an error if the process is not running or cannot be read, or the input does not contain
/// mappings.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if let Some(input) = &args.input {
        args.moment.check([input])?;
    }
    save_file::check(args.save.as_deref(), args.force)?;
    let mapped = match &args.input {
        Some(typed) => {
            let input = args.moment.one(source::input("smaps", typed)?)?;
            load(ctx, input, args.target.filter()).await?
        }
        None => {
            args.moment.refuse_without_input()?;
            let targets = args.target.required()?.targets();
            smaps::of_phone(ctx.device().await?, &targets, ctx.globals.user).await?
        }
    };
    // Checked before anything is printed: a failure prints its own document.
    if args.save.is_some() && mapped.text.is_none() {
        return Err(Failure::new(
            ErrorClass::Usage,
            "nothing-to-save",
            "cannot save the kernel text: a trace contains only its rows",
        )
        .with_help("use `--json` or `--csv` for the rows"));
    }
    let console = &ctx.console;
    let whole = console.is_json() || args.csv;
    // Kinds are few, and belong together.
    let most = match whole || args.by == ByArg::Kind {
        true => usize::MAX,
        false => PAGE,
    };
    let limit = args.rows.limit.unwrap_or(most);
    let by = of_same_name(args.by).unwrap_or_default();
    let document = smaps::document(&mapped, by, limit);
    if console.is_json() {
        console.json(&document);
    } else if args.csv {
        csv(console, &document);
        if document.cut {
            console.warn(format_args!("the input {CUT}"));
        }
    } else {
        show(console, &document, &mapped);
    }
    if let (Some(file), Some(text)) = (&args.save, &mapped.text) {
        save_file::write(console, file, text)?;
    }
    Ok(Outcome::Done)
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
        None => String::new(),
        Some(0) => "-".to_owned(),
        Some(bytes) => ByteSize(bytes).to_string(),
    }
}

/// Returns the columns of rows, which have their sums and their number of mappings.
fn columns<'s>() -> Columns<'static, (&'s Sums, u64)> {
    let shared = |sums: &Sums| {
        let both = [Field::SharedClean, Field::SharedDirty].map(|field| sums.get(field));
        both.into_iter().flatten().reduce(u64::saturating_add)
    };
    Columns::<(&Sums, u64)>::new()
        .with("PSS", |(sums, _)| size(sums.get(Field::Pss)))
        .with("private dirty", |(sums, _)| {
            size(sums.get(Field::PrivateDirty))
        })
        .with("private clean", |(sums, _)| {
            size(sums.get(Field::PrivateClean))
        })
        .with("shared", move |(sums, _)| size(shared(sums)))
        .with("swap", |(sums, _)| size(sums.get(Field::Swap)))
        .with("RSS", |(sums, _)| size(sums.get(Field::Rss)))
        .with("size", |(sums, _)| size(sums.get(Field::Size)))
        .with("mappings", |(_, count)| thousands(*count))
}

/// Columns to hide on a narrow terminal, the least informative first.
const LEAST: [&str; 5] = ["size", "mappings", "private clean", "shared", "RSS"];

fn name_of(row: &Row) -> String {
    match (&row.of.name, row.of.part, row.of.is_part) {
        (_, Some(part), true) => part.to_owned(),
        (Some(name), _, _) => {
            let permissions = row.of.permissions.as_deref().unwrap_or_default();
            match permissions {
                "" => sanitize(name).into_owned(),
                permissions => format!("{permissions} {}", sanitize(name)),
            }
        }
        (None, _, _) => row.of.kind.to_owned(),
    }
}

fn heading(console: &Console, moment: &Moment, count: u64) {
    let who = process_name(moment.pid, &sanitize(&moment.process));
    let when = match &moment.label {
        Some(label) => format!(" at {}", sanitize(label)),
        None => String::new(),
    };
    console.data(format_args!(
        "{}{when}: {}",
        console.styled(Style::Strong, who),
        counted(count, "mapping", "mappings")
    ));
}

fn show(console: &Console, document: &Document, mapped: &Mapped) {
    heading(console, &document.moment, document.count);
    let total = mapped.smaps.total();
    let cost = total.dirty_and_swapped();
    let heading = match document.by {
        "kind" => "kind",
        "library" => "file or area",
        _ => "mapping",
    };
    let columns = columns();
    let mut table = columns.table(heading);
    for row in &document.rows {
        table.row(columns.values(&(&row.sums, row.count)), name_of(row));
        if row.of.is_part {
            table.lead("  ");
            table.style(Style::Dim);
        } else if cost > 0 && row.sums.dirty_and_swapped() >= cost / MUCH {
            table.style(Style::Strong);
        }
        if row.of.name.is_some() {
            table.remark(row.of.kind);
        }
    }
    table.row(columns.values(&(&total, document.count)), "TOTAL");
    table.style(Style::Strong);
    show_fitting(console, &mut table, &LEAST);
    show_hidden(console, document.rows_total - document.rows.len(), " rows");
    for line in remarks(document, &total) {
        console.say(line);
    }
}

fn remarks(document: &Document, total: &Sums) -> Vec<String> {
    let mut lines = Vec::new();
    if document.form == "rollup" {
        lines.push("this is the kernel's sum (smaps_rollup), without kinds and names".into());
    }
    if let Some(remark) = &document.moment.remark {
        lines.push(format!("note: {remark}"));
    } else if let Some(dirty) = total.get(Field::PrivateDirty) {
        let swapped = total.get(Field::SwapPss).or(total.get(Field::Swap));
        let swapped = swapped.unwrap_or(0);
        let parts = [(dirty, "dirty"), (swapped, "swapped")].into_iter();
        let parts: Vec<String> = parts
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, what)| format!("{} {what}", ByteSize(bytes)))
            .collect();
        if !parts.is_empty() {
            lines.push(format!("only this process pays for {}", parts.join(" + ")));
        }
    }
    if document.cut {
        lines.push(format!("warning: the input {CUT}"));
    }
    if document.unknown_lines > 0 {
        lines.push(format!(
            "{} not part of mappings, the first: {}",
            counted(document.unknown_lines, "line is", "lines are"),
            document.strange.first().map_or("", String::as_str)
        ));
    }
    let others: Vec<String> = document
        .others
        .iter()
        .filter(|(name, bytes)| {
            **bytes > 0 && !matches!(name.as_str(), "Referenced" | "KernelPageSize")
        })
        .map(|(name, bytes)| format!("{} {}", sanitize(name), ByteSize(*bytes)))
        .collect();
    if !others.is_empty() {
        lines.push(format!("also: {}", others.join(", ")));
    }
    if !document.other_captures.is_empty() {
        let there = document.other_captures.iter().map(Moment::describe);
        let there: Vec<String> = there
            .take(8)
            .map(|text| sanitize(&text).into_owned())
            .collect();
        let what = match document.moment.origin {
            Origin::File => "other processes (FILE@N)",
            _ => "other snapshots (PATH@N, PATH@LABEL)",
        };
        lines.push(format!("{what}: {}", there.join(", ")));
    }
    lines
}

fn csv(console: &Console, document: &Document) {
    let mut text = "kind,part,name,permissions,offset,start,mappings".to_owned();
    for field in Field::ALL {
        text.push(',');
        text += field.name();
    }
    text.push('\n');
    for row in &document.rows {
        let mut cells = vec![
            Cell::Text(row.of.kind),
            Cell::text(row.of.part),
            Cell::text(row.of.name.as_deref()),
            Cell::text(row.of.permissions.as_deref()),
            Cell::maybe(row.offset),
            Cell::text(row.start.as_deref()),
            Cell::Number(row.count.into()),
        ];
        cells.extend(Field::ALL.map(|field| Cell::maybe(row.sums.get(field))));
        text += &csv_line(&cells);
    }
    console.text(&text);
}
