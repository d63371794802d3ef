//! What `meminfo` prints for people: of each process the line that matters, its division with
//! bars, the table, objects and the rest.

use super::phone::Lists;
use crate::console::table::{Table, show_fitting};
use crate::console::{Console, Style};
use crate::memory::meminfo::Column;
use crate::system::meminfo::{Count, Document, ProcessFacts, RowFacts, TextFacts};
use crate::timeline::{HeapCells, Parts};
use crate::units::{ByteSize, HumanDuration};
use crate::views::meminfo::{heading, size};

/// A row with at least this part of the private dirty memory is marked.
const MUCH: i64 = 10;
/// Columns of a bar, where there is room.
const BAR: i64 = 30;
/// Columns before a bar.
const BEFORE_BAR: usize = 29;

pub(super) fn show(console: &Console, document: &Document, lists: &Lists, tables: bool) {
    for (at, process) in document.processes.iter().enumerate() {
        if at > 0 {
            console.data("");
        }
        show_process(console, process, tables);
    }
    if let Some(phone) = &document.phone {
        lists.show(console, phone);
    }
    if !document.unknown.is_empty() {
        console.data("");
        console.data("Not understood:");
        for line in &document.unknown {
            console.data(format_args!("  {line}"));
        }
    }
}

fn show_process(console: &Console, process: &ProcessFacts, tables: bool) {
    let name = console.styled(Style::Strong, process.called());
    let strong = |text: String| console.styled(Style::Strong, text).to_string();
    let mut figures = Vec::new();
    if let Some(parts) = &process.parts {
        figures.push(strong(format!("PSS {}", size(parts.total_pss))));
        figures.extend(
            parts
                .total_rss
                .map(|rss| format!("TOTAL RSS {}", ByteSize(rss))),
        );
        figures.extend(parts.swap.map(|swap| format!("swapped {}", ByteSize(swap))));
    }
    if let Some(dirty) = process.total(&Column::PrivateDirty) {
        figures.push(strong(format!("private dirty {}", size(dirty))));
    }
    match figures.is_empty() {
        true => console.data(name),
        false => console.data(format_args!("{name}  {}", figures.join(" · "))),
    }
    if let Some(parts) = &process.parts {
        show_parts(console, process, parts);
    }
    show_heaps(console, process);
    if !tables {
        return;
    }
    show_table(console, "By kind of memory", process, &process.rows);
    if !process.details.is_empty() {
        show_table(
            console,
            "Parts of the Dalvik and code rows",
            process,
            &process.details,
        );
    }
    for difference in &process.differences {
        let beyond = difference.device.saturating_sub(difference.rows);
        console.data(format_args!(
            "{}: the phone's TOTAL of {} is {}, {} {} than its rows add up to",
            console.styled(Style::Warn, "note"),
            heading(&difference.column),
            size(difference.device),
            ByteSize(beyond.unsigned_abs()),
            if beyond < 0 { "less" } else { "more" },
        ));
    }
    show_objects(console, process);
    show_databases(console, process);
    show_texts(console, &process.texts);
}

/// App Summary with bars.
fn show_parts(console: &Console, process: &ProcessFacts, parts: &Parts) {
    let rows = [
        ("Java Heap", parts.java),
        ("Native Heap", parts.native),
        ("Code", parts.code),
        ("Stack", parts.stack),
        ("Graphics", parts.graphics),
        ("Private Other", parts.private_other),
        ("System", parts.system),
    ];
    let largest = rows
        .iter()
        .map(|(_, bytes)| *bytes)
        .max()
        .unwrap_or(0)
        .max(1);
    let given = !process.summary.is_empty();
    console.data("");
    console.data(console.styled(
        Style::Dim,
        match given {
            true => "App Summary: private pages; System is what is shared, and swap",
            false => {
                "By App Summary's rules, from the table: private pages; System is what is \
                      shared, and swap"
            }
        },
    ));
    let resident = |name: &str| {
        let rss = process.summary.iter().find(|row| row.label == name);
        let rss = rss.and_then(|row| row.values.get("rss"));
        rss.map_or(String::new(), |rss| format!("  {} resident", size(*rss)))
    };
    let widest = rows.iter().map(|(name, _)| resident(name).len()).max();
    let room = console
        .stdout_width()
        .map(|width| width.saturating_sub(BEFORE_BAR + widest.unwrap_or(0)));
    let columns = room.map_or(BAR, |room| BAR.min(i64::try_from(room).unwrap_or(BAR)));
    for (name, bytes) in rows {
        // Of bytes beyond what a bar can count no more is drawn.
        let length = bytes
            .max(0)
            .saturating_mul(columns)
            .checked_div(largest)
            .unwrap_or(0);
        let bar: String = "█".repeat(usize::try_from(length.min(columns)).unwrap_or(0));
        let blank = " ".repeat(
            usize::try_from(columns)
                .unwrap_or(0)
                .saturating_sub(bar.chars().count()),
        );
        console.data(
            format!(
                "  {name:<13}  {:>10}  {}{blank}{}",
                size(bytes),
                console.styled(Style::Help, bar),
                console.styled(Style::Dim, resident(name))
            )
            .trim_end(),
        );
    }
}

/// What heaps have in use of what they got from the system: whether memory is needed, or kept.
fn show_heaps(console: &Console, process: &ProcessFacts) {
    let rows = process.rows.iter().filter(|row| row.label != "TOTAL");
    let heaps: Vec<_> = rows.filter_map(|row| Some((row, heap(row)?))).collect();
    if heaps.is_empty() {
        return;
    }
    console.data("");
    console.data(console.styled(Style::Dim, "In use of each heap (Heap Alloc of Heap Size)"));
    for (row, heap) in heaps {
        let percent = u128::from(heap.alloc) * 100 / u128::from(heap.size.max(1));
        console.data(format_args!(
            "  {:<13}  {:>10} of {}, {percent} %",
            row.label,
            ByteSize(heap.alloc),
            ByteSize(heap.size)
        ));
    }
}

/// The table, with the large rows marked.
fn show_table(console: &Console, title: &str, process: &ProcessFacts, rows: &[RowFacts]) {
    if rows.is_empty() {
        return;
    }
    let is_heap = |column: &&String| Column::of_key(column).is_heap();
    let columns: Vec<&String> = process
        .columns
        .iter()
        .filter(|column| !is_heap(column))
        .collect();
    let mut headings: Vec<&str> = columns.iter().map(|column| heading(column)).collect();
    headings.push("");
    let mut table = Table::new(&headings);
    let whole = process.total(&Column::PrivateDirty).unwrap_or(0);
    for row in rows {
        let figures = columns.iter().map(|column| match row.values.get(*column) {
            Some(0) => "0".to_owned(),
            Some(bytes) => size(*bytes),
            None => String::new(),
        });
        table.row(figures.collect(), row.label.as_str());
        let dirty = row.value(&Column::PrivateDirty).unwrap_or(0);
        let is_total = row.label == "TOTAL";
        let percent = dirty.saturating_mul(100).checked_div(whole).unwrap_or(0);
        let mut remarks = Vec::new();
        if !is_total && percent >= MUCH {
            remarks.push(format!("{percent} % of private dirty"));
        }
        if !remarks.is_empty() || is_total {
            table.style(Style::Strong);
        }
        table.remark(remarks.join(", "));
    }
    console.data("");
    console.data(console.styled(Style::Dim, title));
    show_fitting(console, &mut table, &LEAST);
}

/// Columns that go first where the terminal is too narrow for all, the least telling first.
const LEAST: [&str; 7] = [
    "clean PSS",
    "shared clean",
    "shared dirty",
    "private clean",
    "RSS",
    "swapped",
    "swap PSS",
];

/// What the heap's own figures say.
fn heap(row: &RowFacts) -> Option<HeapCells> {
    let cell = |column| u64::try_from(row.value(&column)?).ok();
    let heap = HeapCells {
        size: cell(Column::HeapSize)?,
        alloc: cell(Column::HeapAlloc)?,
        free: cell(Column::HeapFree)?,
    };
    (heap.size > 0).then_some(heap)
}

fn show_objects(console: &Console, process: &ProcessFacts) {
    show_counts(console, "Objects", &process.objects);
    if process
        .objects
        .iter()
        .any(|count| count.name == "Activities")
    {
        // App Summary came with Android 6, and with it that the app collects its garbage first.
        let caution = match process.summary.is_empty() {
            true => {
                "objects that nothing holds any more count, too: too many Activities prove nothing"
            }
            false => {
                "garbage was collected first, but what waits to be finalized still counts: ask \
                 twice and take the second"
            }
        };
        let caution = format!("  {}", console.styled(Style::Dim, caution));
        console.data(&caution);
    }
    show_counts(console, "SQL (KiB)", &process.sql);
    if process.native_allocations.is_empty() {
        return;
    }
    console.data("");
    console.data(console.styled(Style::Dim, "Native memory of Java objects"));
    let mut table = Table::new(&["count", "size", ""]);
    for row in &process.native_allocations {
        let count = row.values.get("count").map(i64::to_string);
        let bytes = row.values.get("bytes").map(|bytes| size(*bytes));
        table.row(
            vec![count.unwrap_or_default(), bytes.unwrap_or_default()],
            &row.label[..],
        );
    }
    table.show(console);
}

fn show_counts(console: &Console, title: &str, counts: &[Count]) {
    if counts.is_empty() {
        return;
    }
    console.data("");
    console.data(console.styled(Style::Dim, title));
    let a_line = console.stdout_width().map_or(3, |width| width / COUNT);
    for few in counts.chunks(a_line.clamp(1, 3)) {
        let cells: Vec<String> = few.iter().map(|count| object(console, count)).collect();
        console.laid_out(format_args!("  {}", cells.join(" ").trim_end()));
    }
}

/// Columns of a count and its name.
const COUNT: usize = 26;

/// Counts by which leaks are found stand out.
fn object(console: &Console, count: &Count) -> String {
    let text = format!("{:>18} {:<6}", count.name, count.count);
    match count.name.as_str() {
        "Views" | "ViewRootImpl" | "AppContexts" | "Activities" => {
            console.styled(Style::Strong, text).to_string()
        }
        _ => text,
    }
}

fn show_databases(console: &Console, process: &ProcessFacts) {
    if process.databases.is_empty() {
        return;
    }
    console.data("");
    let mut table = Table::new(&["size", "page", "cache", "database"]);
    for database in &process.databases {
        let bytes = |bytes: Option<i64>| bytes.map(size).unwrap_or_default();
        table.row(
            vec![
                bytes(database.bytes),
                bytes(database.page_bytes),
                database.cache.clone(),
            ],
            database.name.as_str(),
        );
        if database.pool {
            table.remark("pool of connections");
        }
    }
    table.show(console);
}

fn show_texts(console: &Console, texts: &[TextFacts]) {
    let mut above = None;
    for text in texts {
        if above != Some(&text.section) {
            above = Some(&text.section);
            console.data("");
            let title = text.section.as_deref().unwrap_or("Not understood");
            console.data(console.styled(Style::Dim, title));
        }
        console.data(format_args!("  {}", text.line.trim()));
    }
}

/// What asking did, and what it cost.
pub(super) fn footer(console: &Console, document: &Document) {
    let Some(collected) = document.collected_garbage else {
        return;
    };
    console.data("");
    if document.phone.is_none() {
        let said = match collected {
            true => {
                "The app was asked: it collected its garbage first, which its log shows as an \
                 Explicit collection. --local asks the system alone."
            }
            false => {
                "No app was called: no garbage was collected, and heaps' sizes and objects are not \
                 known. Without --local an app tells them."
            }
        };
        console.data(console.styled(Style::Dim, said));
    }
    if let Some(cost) = document.cost {
        let took = std::time::Duration::from_nanos(cost.device_ns);
        let took = match took.is_zero() {
            // Its clock has no finer steps.
            true => "less than 10 ms".to_owned(),
            false => HumanDuration(took).to_string(),
        };
        let size = ByteSize(cost.bytes);
        let said = format!("Asking took the phone {took}, and {size} came over the cable.");
        console.data(console.styled(Style::Dim, &said));
    }
}
