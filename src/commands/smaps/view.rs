//! `heaptap smaps`: what a process has mapped, by the rows of meminfo, by library, by mapping;
//! and what changed between two of them, for `heaptap diff`.

use std::path::Path;

use super::args::{Args, ByArg};
use crate::console::table::{Table, show_fitting};
use crate::console::{Console, Style, save_file};
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::named::Named;
use crate::memory::smaps::{Field, Sums};
use crate::system::smaps::{self, Document, Mapped, Moment, Row};
use crate::units::{ByteSize, thousands};
use crate::untrusted::sanitize;
use crate::views::java::{Cell, csv_line};
use crate::views::mappings::{CUT, PAGE, load};

/// A row with this part of what the process costs stands out.
const MUCH: u64 = 10;

/// Runs the command.
///
/// # Errors
/// Where the process does not run, may not be read, or the input holds no mappings.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    save_file::check(args.save.as_deref(), args.force)?;
    let mapped = match Named::parse(&args.input)? {
        Named::File(input) => load(ctx, input, args.process.clone()).await?,
        Named::Process(target) => {
            let device = ctx.device().await?;
            smaps::of_phone(device, &target, ctx.globals.user).await?
        }
    };
    let console = &ctx.console;
    let whole = console.is_json() || args.csv;
    let limit = args.limit.unwrap_or(if whole { 0 } else { PAGE });
    // Kinds are few, and belong together.
    let limit = if args.by == ByArg::Kind && args.limit.is_none() {
        0
    } else {
        limit
    };
    let document = smaps::document(&mapped, args.by.by(), limit);
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
    if let Some(file) = &args.save {
        save(console, file, &mapped)?;
    }
    Ok(Outcome::Done)
}

fn save(console: &Console, file: &Path, mapped: &Mapped) -> Result<(), Failure> {
    let Some(text) = &mapped.text else {
        return Err(Failure::new(
            ErrorClass::Usage,
            "nothing-to-save",
            "a trace holds rows, not the text of the kernel",
        )
        .with_help("use --json or --csv for the rows"));
    };
    save_file::write(console, file, text)
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
        None => String::new(),
        Some(0) => "-".to_owned(),
        Some(bytes) => ByteSize(bytes).to_string(),
    }
}

fn cells(sums: &Sums, count: u64) -> Vec<String> {
    let shared = match (sums.get(Field::SharedClean), sums.get(Field::SharedDirty)) {
        (None, None) => None,
        _ => Some(
            sums.of(Field::SharedClean)
                .saturating_add(sums.of(Field::SharedDirty)),
        ),
    };
    vec![
        size(sums.get(Field::Pss)),
        size(sums.get(Field::PrivateDirty)),
        size(sums.get(Field::PrivateClean)),
        size(shared),
        size(sums.get(Field::Swap)),
        size(sums.get(Field::Rss)),
        size(sums.get(Field::Size)),
        thousands(count),
    ]
}

const HEADINGS: [&str; 9] = [
    "PSS",
    "private dirty",
    "private clean",
    "shared",
    "swap",
    "RSS",
    "size",
    "mappings",
    "",
];

/// Columns that go first where the terminal is too narrow for all, the least telling first.
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
    let who = match (moment.process.as_str(), moment.pid) {
        ("", 0) => "a process".to_owned(),
        ("", pid) => format!("process {pid}"),
        (process, pid) => format!("{} ({pid})", sanitize(process)),
    };
    let when = match &moment.label {
        Some(label) => format!(" at {}", sanitize(label)),
        None => String::new(),
    };
    console.data(format_args!(
        "{}{when}: {} mappings",
        console.styled(Style::Strong, who),
        thousands(count)
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
    let mut headings = HEADINGS;
    headings[HEADINGS.len() - 1] = heading;
    let mut table = Table::new(&headings);
    for row in &document.rows {
        table.row(cells(&row.sums, row.count), name_of(row));
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
    table.row(cells(&total, document.count), "TOTAL");
    table.style(Style::Strong);
    show_fitting(console, &mut table, &LEAST);
    for line in remarks(document, &total) {
        console.say(line);
    }
}

fn remarks(document: &Document, total: &Sums) -> Vec<String> {
    let mut lines = Vec::new();
    if document.form == "rollup" {
        lines.push("This is the kernel's sum (smaps_rollup): it has no kinds and no names.".into());
    }
    if let Some(remark) = &document.moment.remark {
        lines.push(format!("note: {remark}"));
    } else if total.get(Field::PrivateDirty).is_some() {
        let swapped = match total.get(Field::SwapPss) {
            Some(bytes) => format!(" and {} swapped out (its share)", ByteSize(bytes)),
            None => match total.get(Field::Swap) {
                Some(bytes) => format!(" and {} swapped out", ByteSize(bytes)),
                None => String::new(),
            },
        };
        lines.push(format!(
            "It costs {} of private dirty pages{swapped}: what nobody else uses and no file can \
             give back.",
            ByteSize(total.of(Field::PrivateDirty))
        ));
    }
    if document.cut {
        lines.push(format!("warning: the input {CUT}"));
    }
    if document.strange_lines > 0 {
        lines.push(format!(
            "{} lines are none of mappings, the first: {}",
            thousands(document.strange_lines),
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
    if !document.others_there.is_empty() {
        let there = document.others_there.iter().map(Moment::describe);
        let there: Vec<String> = there
            .take(8)
            .map(|text| sanitize(&text).into_owned())
            .collect();
        lines.push(format!(
            "other moments (PATH@N, PATH@LABEL): {}",
            there.join(", ")
        ));
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
        let maybe = |text: Option<&str>| text.map_or("", |text| text).to_owned();
        let words = [
            row.of.kind.to_owned(),
            maybe(row.of.part),
            maybe(row.of.name.as_deref()),
            maybe(row.of.permissions.as_deref()),
        ];
        let start = maybe(row.start.as_deref());
        let mut cells: Vec<Cell<'_>> = words.iter().map(|word| Cell::Text(word)).collect();
        cells.push(Cell::maybe(row.offset));
        cells.push(Cell::Text(&start));
        cells.push(Cell::Number(row.count.into()));
        cells.extend(Field::ALL.map(|field| Cell::maybe(row.sums.get(field))));
        text += &csv_line(&cells);
    }
    console.raw(text.as_bytes());
}
