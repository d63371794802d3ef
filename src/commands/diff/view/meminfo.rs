//! Output of `diff` for two meminfos.

use crate::commands::shared::meminfo::{heading, size};
use crate::console::table::{Table, show_hidden};
use crate::console::{Console, Style};
use crate::heaps::meminfo::{self, Change, Changes, MeminfoError, ProcessChanges};
use crate::heaps::selector::{JavaInput, ProcessFilter};
use heaptap_base::units::HumanDuration;
use heaptap_export::csv::cell;
use std::path::PathBuf;

/// Shows the changes as a document, as CSV, or as tables of at most `limit` rows.
pub(crate) fn show(console: &Console, changes: &Changes, csv: bool, limit: Option<usize>) {
    if console.is_json() {
        console.json(changes);
    } else if csv {
        print_csv(console, changes);
    } else {
        tables(console, changes, limit);
    }
}

fn print_csv(console: &Console, changes: &Changes) {
    console.laid_out("process,section,row,column,before,after,growth,unit");
    let processes = changes.processes.iter();
    let processes = processes.map(|process| (process.process.as_str(), &process.rows));
    for (process, rows) in processes.chain([("", &changes.phone)]) {
        for row in rows {
            let number = |value: Option<i64>| value.map(|value| value.to_string());
            console.laid_out(format_args!(
                "{},{},{},{},{},{},{},{}",
                cell(process),
                row.section,
                cell(&row.row),
                cell(&row.column),
                number(row.before).unwrap_or_default(),
                number(row.after).unwrap_or_default(),
                row.growth,
                row.unit
            ));
        }
    }
}

fn tables(console: &Console, changes: &Changes, limit: Option<usize>) {
    let mut head = format!("{} → {}", changes.before, changes.after);
    if let Some(ms) = changes.between_ms {
        let between = std::time::Duration::from_millis(ms);
        head += &format!(", {} later", HumanDuration(between));
    }
    console.in_style(Style::Dim, head);
    for process in &changes.processes {
        console.data("");
        show_process(console, process, limit);
    }
    show_phone(console, &changes.phone, limit);
    for alone in &changes.alone {
        let side = match alone.side {
            "before" => "is gone",
            _ => "is new",
        };
        console.data("");
        console.data(format_args!("{} {side}", alone.process));
    }
}

/// Default number of rows of each device list.
const PHONE_ROWS: usize = 20;

/// Shows the lists of the whole device, largest change first.
fn show_phone(console: &Console, phone: &[Change], limit: Option<usize>) {
    if phone.is_empty() {
        return;
    }
    let mut unchanged = true;
    for (section, column, title) in [
        ("ram", "total", "RAM"),
        ("device_processes", "pss", "PSS by process"),
        ("device_oom", "pss", "PSS by OOM adjustment"),
        ("device_categories", "pss", "PSS by category"),
        ("device_processes", "rss", "RSS by process"),
        ("device_categories", "rss", "RSS by category"),
    ] {
        let of_list = |row: &&Change| row.section == section && row.column == column;
        let mut changed: Vec<&Change> = phone.iter().filter(of_list).collect();
        changed.retain(|row| row.growth != 0);
        changed.sort_by_key(|row| std::cmp::Reverse(row.growth.unsigned_abs()));
        unchanged &= !show_counts(console, title, &changed, limit.or(Some(PHONE_ROWS)));
    }
    if unchanged {
        console.data("nothing changed");
    }
}

/// Sections whose rows are sizes that one column can order.
const TABLES: [(&str, &str); 3] = [
    ("summary", "App Summary"),
    ("table", "By kind of memory"),
    ("details", "Parts of the Dalvik and code rows"),
];

fn show_process(console: &Console, process: &ProcessChanges, limit: Option<usize>) {
    let name = console.styled(Style::Strong, &process.process);
    let pid = |pid: Option<u32>| pid.map_or("?".to_owned(), |pid| pid.to_string());
    match process.restarted {
        true => console.data(format_args!(
            "{name}: restarted in between, PID {} is now {}",
            pid(process.pids[0]),
            pid(process.pids[1])
        )),
        false => console.data(format_args!("{name} ({})", pid(process.pids[1]))),
    }
    let mut unchanged = true;
    for (section, title) in TABLES {
        unchanged &= !show_sizes(console, title, &of(process, section), limit);
    }
    for (section, title) in [
        ("objects", "Objects"),
        ("sql", "SQL"),
        ("native_allocations", "Native memory of Java objects"),
        ("databases", "Databases"),
    ] {
        unchanged &= !show_counts(console, title, &of(process, section), limit);
    }
    if unchanged {
        console.data("nothing changed");
    }
}

fn of<'a>(process: &'a ProcessChanges, section: &str) -> Vec<&'a Change> {
    let rows = process.rows.iter();
    rows.filter(|row| row.section == section && row.growth != 0)
        .collect()
}

fn signed(row: &Change, value: i64) -> String {
    let sign = if value > 0 { "+" } else { "" };
    match row.unit {
        "bytes" => format!("{sign}{}", size(value)),
        _ => format!("{sign}{value}"),
    }
}

fn plain(row: &Change, value: Option<i64>) -> String {
    match (value, row.unit) {
        (None, _) => "–".to_owned(),
        (Some(value), "bytes") => size(value),
        (Some(value), _) => value.to_string(),
    }
}

/// Columns whose growth is informative. JSON and CSV have all columns.
const COLUMNS: [&str; 8] = [
    "pss",
    "private_dirty",
    "private_clean",
    "swap",
    "swap_pss",
    "rss",
    "heap_alloc",
    "shared_dirty",
];

/// Shows one line per row: the change of each column, and the private dirty memory, or else the
/// first column, before and after. Returns whether anything changed.
fn show_sizes(console: &Console, title: &str, changed: &[&Change], limit: Option<usize>) -> bool {
    if changed.is_empty() {
        return false;
    }
    let changes = |column: &&str| changed.iter().any(|row| row.column == **column);
    let columns: Vec<&str> = COLUMNS.into_iter().filter(changes).collect();
    let mut lines: Vec<(&str, Vec<&Change>)> = Vec::new();
    for row in changed {
        match lines.last_mut() {
            Some((label, rows)) if *label == row.row => rows.push(row),
            _ => lines.push((&row.row, vec![row])),
        }
    }
    let total = lines.len();
    let weight = |rows: &[&Change]| {
        let wanted = |name: &str| rows.iter().find(|row| row.column == name);
        let row = wanted("private_dirty").or(wanted("pss")).or(rows.first());
        row.map_or(0, |row| row.growth.unsigned_abs())
    };
    lines.sort_by_key(|(label, rows)| (*label == "TOTAL", std::cmp::Reverse(weight(rows))));
    let limit = limit.unwrap_or(usize::MAX);
    let mut headings: Vec<&str> = columns.iter().map(|column| heading(column)).collect();
    headings.push("");
    let mut table = Table::new(&headings);
    for (label, rows) in lines.iter().take(limit) {
        let figures = columns.iter().map(|column| {
            let row = rows.iter().find(|row| row.column == *column);
            row.map_or(String::new(), |row| signed(row, row.growth))
        });
        table.row(figures.collect(), *label);
        if label.starts_with("TOTAL") {
            table.style(Style::Strong);
        }
        let main = rows
            .iter()
            .find(|row| row.column == "private_dirty")
            .or(rows.first());
        if let Some(row) = main {
            table.remark(format!(
                "{}: {} → {}",
                heading(&row.column),
                plain(row, row.before),
                plain(row, row.after)
            ));
        }
    }
    finish(console, title, &table, total, limit);
    true
}

fn show_counts(console: &Console, title: &str, changed: &[&Change], limit: Option<usize>) -> bool {
    if changed.is_empty() {
        return false;
    }
    let limit = limit.unwrap_or(usize::MAX);
    let mut table = Table::new(&["growth", "before", "after", ""]);
    for row in changed.iter().take(limit) {
        let name = match row.column.as_str() {
            "count" | "size" | "total" | "pss" | "rss" => row.row.clone(),
            column => format!("{} ({column})", row.row),
        };
        table.row(
            vec![
                signed(row, row.growth),
                plain(row, row.before),
                plain(row, row.after),
            ],
            name,
        );
    }
    finish(console, title, &table, changed.len(), limit);
    true
}

fn finish(console: &Console, title: &str, table: &Table, total: usize, limit: usize) {
    console.section(Style::Dim, title);
    table.show(console);
    show_hidden(console, total.saturating_sub(limit), "");
}

/// Compares two saved meminfos.
pub(crate) fn compare(paths: [PathBuf; 2]) -> Result<meminfo::Changes, MeminfoError> {
    let [before, after] = paths;
    let read = |path: PathBuf| {
        let input = JavaInput::parse(path.as_os_str());
        meminfo::read(&input, &ProcessFilter::default())
    };
    meminfo::diff(&read(before)?, &read(after)?)
}
