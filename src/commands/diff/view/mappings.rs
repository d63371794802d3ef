//! Changes between the memory mappings of two snapshots.

use crate::commands::shared::java::{Cell, csv_line, signed};
use crate::commands::shared::mappings::{CUT, PAGE, load};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::table::Table;
use crate::console::{Console, Style};
use crate::heaps::selector::{JavaInput, ProcessFilter};
use crate::heaps::smaps::{self, ChangeRow, ChangesDocument};
use android_memory::smaps::{By, Field};
use heaptap_base::error::Failure;
use heaptap_base::units::{counted, thousands};
use heaptap_base::untrusted::sanitize;

/// Options of a comparison of mappings.
pub(crate) struct DiffAsked {
    /// First and second input.
    pub(crate) inputs: [JavaInput; 2],
    /// Key of the rows.
    pub(crate) by: By,
    /// Maximum number of rows.
    pub(crate) limit: Option<usize>,
    /// Processes of recordings.
    pub(crate) processes: ProcessFilter,
    /// Comma-separated values.
    pub(crate) csv: bool,
}

/// Compares the mappings of two inputs.
pub(crate) async fn diff(ctx: &Context, asked: DiffAsked) -> Result<Outcome, Failure> {
    let [before, after] = asked.inputs;
    let names = [&before, &after].map(ToString::to_string);
    let before = load(ctx, before, asked.processes.clone()).await?;
    let after = load(ctx, after, asked.processes).await?;
    let console = &ctx.console;
    let whole = console.is_json() || asked.csv;
    let limit = asked.limit.unwrap_or(if whole { usize::MAX } else { PAGE });
    for (name, side) in names.iter().zip([&before, &after]) {
        if side.smaps.cut {
            console.warn(format_args!("{} {CUT}", sanitize(name)));
        }
    }
    let document = smaps::changes(&before, &after, asked.by, limit);
    if console.is_json() {
        console.json(&document);
    } else if asked.csv {
        diff_csv(console, &document);
    } else {
        show_diff(console, &document);
    }
    Ok(Outcome::Done)
}

pub(super) fn delta_cells(delta: &std::collections::BTreeMap<&'static str, i64>) -> Vec<String> {
    let of = |field: Field| {
        let bytes = delta.get(field.name());
        bytes.map_or_else(String::new, |bytes| signed(*bytes))
    };
    vec![
        of(Field::PrivateDirty),
        of(Field::Swap),
        of(Field::Pss),
        of(Field::Rss),
        of(Field::Size),
    ]
}

pub(super) fn change_name(row: &ChangeRow) -> String {
    match (&row.of.name, &row.of.permissions, row.of.part) {
        (Some(name), Some(permissions), _) => format!("{permissions} {}", sanitize(name)),
        (Some(name), None, _) => sanitize(name).into_owned(),
        (None, _, Some(part)) => format!("{} {part}", row.of.kind),
        (None, _, None) => row.of.kind.to_owned(),
    }
}

pub(super) fn show_diff(console: &Console, document: &ChangesDocument) {
    let headings = [
        "private dirty",
        "swap",
        "PSS",
        "RSS",
        "size",
        "mappings",
        "changed",
    ];
    let mut table = Table::new(&headings);
    for row in &document.rows {
        let mut cells = delta_cells(&row.delta);
        cells.push(match (row.count_before, row.count_after) {
            (before, after) if before == after => thousands(after),
            (before, after) => format!("{} → {}", thousands(before), thousands(after)),
        });
        table.row(cells, change_name(row));
        if row.of.is_part {
            table.lead("  ");
            table.style(Style::Dim);
        }
        match row.status {
            "changed" => {}
            status => table.remark(status),
        }
    }
    let mut cells = delta_cells(&document.total);
    cells.push(String::new());
    table.row(cells, "TOTAL");
    table.style(Style::Strong);
    table.show(console);
    if document.left_out > 0 {
        console.say(format_args!(
            "{} with smaller changes; `-l 0` shows all",
            counted(document.left_out as u64, "more row", "more rows")
        ));
    }
    console.say(format_args!(
        "{} unchanged",
        counted(document.unchanged as u64, "row", "rows")
    ));
}

pub(super) fn diff_csv(console: &Console, document: &ChangesDocument) {
    let mut text = "kind,part,name,permissions,status,mappings_before,mappings_after".to_owned();
    for field in Field::ALL {
        text += &format!(",{0}_before,{0}_after,{0}_delta", field.name());
    }
    text.push('\n');
    for row in &document.rows {
        let mut cells = vec![
            Cell::Text(row.of.kind),
            Cell::text(row.of.part),
            Cell::text(row.of.name.as_deref()),
            Cell::text(row.of.permissions.as_deref()),
            Cell::Text(row.status),
            Cell::Number(row.count_before.into()),
            Cell::Number(row.count_after.into()),
        ];
        for field in Field::ALL {
            cells.push(Cell::maybe(row.before.get(field.name()).copied()));
            cells.push(Cell::maybe(row.after.get(field.name()).copied()));
            cells.push(Cell::maybe(row.delta.get(field.name()).copied()));
        }
        text += &csv_line(&cells);
    }
    console.text(&text);
}
