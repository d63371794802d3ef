//! Text output of `meminfo`: for each process the main figures, its categories with bars, the
//! table, objects and the rest.

use super::phone::Lists;
use crate::commands::shared::meminfo::{heading, size};
use crate::console::table::{Table, show_fitting};
use crate::console::{Console, Style};
use crate::heaps::meminfo::{Count, Document, ProcessFacts, RowFacts, TextFacts};
use android_memory::meminfo::Column;
use heaptap_base::units::{ByteSize, HumanDuration};
use heaptap_model::timeline::{HeapCells, Parts};

/// Minimum share of the private dirty memory, in percent, for a row to be marked.
const MUCH: i64 = 10;
/// Maximum columns of a bar.
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
        console.data("Unknown lines:");
        for line in &document.unknown {
            console.data(format_args!("  {line}"));
        }
    }
}

/// Returns whether PSS exceeds RSS, of which it is otherwise a part.
fn is_raised_by_swap(parts: &Parts) -> bool {
    let pss = parts.total_pss.max(0).unsigned_abs();
    parts.total_rss.is_some_and(|rss| pss > rss) && parts.swap.is_some_and(|swap| swap > 0)
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
    if process.parts.as_ref().is_some_and(is_raised_by_swap) {
        let note = "PSS is above RSS because only PSS includes swapped memory";
        console.in_style(Style::Dim, note);
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
            "{}: the device's TOTAL of {} is {}, {} {} than the sum of its rows",
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

/// Shows App Summary with bars.
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
    console.section(
        Style::Dim,
        match given {
            true => "App Summary: private pages; System is shared memory and swap",
            false => {
                "By the rules of App Summary, from the table: private pages; System is shared \
                 memory and swap"
            }
        },
    );
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
        // Values beyond the range of a bar are cut.
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

/// Shows the used part of each heap, which tells needed memory from reserved memory.
fn show_heaps(console: &Console, process: &ProcessFacts) {
    let rows = process.rows.iter().filter(|row| row.label != "TOTAL");
    let heaps: Vec<_> = rows.filter_map(|row| Some((row, heap(row)?))).collect();
    if heaps.is_empty() {
        return;
    }
    let text = "Used part of each heap (Heap Alloc of Heap Size)";
    console.section(Style::Dim, text);
    for (row, heap) in heaps {
        let percent = u128::from(heap.alloc) * 100 / u128::from(heap.size.max(1));
        console.data(format_args!(
            "  {:<13}  {:>10} of {}, {percent}%",
            row.label,
            ByteSize(heap.alloc),
            ByteSize(heap.size)
        ));
    }
}

/// Shows the table, with large rows marked.
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
            remarks.push(format!("{percent}% of private dirty"));
        }
        if !remarks.is_empty() || is_total {
            table.style(Style::Strong);
        }
        table.remark(remarks.join(", "));
    }
    console.section(Style::Dim, title);
    show_fitting(console, &mut table, &LEAST);
}

/// Columns to hide on a narrow terminal, the least informative first.
const LEAST: [&str; 7] = [
    "clean PSS",
    "shared clean",
    "shared dirty",
    "private clean",
    "RSS",
    "swapped",
    "swap PSS",
];

/// Returns the heap columns of a row.
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
        // App Summary was added in Android 6, together with the garbage collection before the
        // answer.
        let caution = match process.summary.is_empty() {
            true => "unreachable objects count, too, so many Activities do not prove a leak",
            false => {
                "garbage was collected first, but objects awaiting finalization still count; run \
                 it twice and use the second result"
            }
        };
        let caution = format!("  {}", console.styled(Style::Dim, caution));
        console.data(&caution);
    }
    show_counts(console, "SQL (KiB)", &process.sql);
    if process.native_allocations.is_empty() {
        return;
    }
    console.section(Style::Dim, "Native memory of Java objects");
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
    console.section(Style::Dim, title);
    let a_line = console.stdout_width().map_or(3, |width| width / COUNT);
    for few in counts.chunks(a_line.clamp(1, 3)) {
        let cells: Vec<String> = few.iter().map(|count| object(console, count)).collect();
        console.laid_out(format_args!("  {}", cells.join(" ").trim_end()));
    }
}

/// Columns of a count and its name.
const COUNT: usize = 26;

/// Formats a count; counts that indicate leaks stand out.
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
            table.remark("connection pool");
        }
    }
    table.show(console);
}

fn show_texts(console: &Console, texts: &[TextFacts]) {
    let mut above = None;
    for text in texts {
        if above != Some(&text.section) {
            above = Some(&text.section);
            let title = text.section.as_deref().unwrap_or("Unknown lines");
            console.section(Style::Dim, title);
        }
        console.data(format_args!("  {}", text.line.trim()));
    }
}

/// Shows the side effects and the cost of the request.
pub(super) fn footer(console: &Console, document: &Document, local: bool) {
    let Some(collected) = document.collected_garbage else {
        return;
    };
    console.data("");
    if document.phone.is_none() {
        let said = match collected {
            true => {
                "The app collected its garbage before it answered, which its log shows as an \
                 Explicit collection; PSS is from before. `--local` asks only the system."
            }
            false if local => {
                "No app was called, so no garbage was collected, and heap sizes and object counts \
                 are unknown. Omit `--local` to get them."
            }
            false => "No app was called, so no garbage was collected.",
        };
        console.in_style(Style::Dim, said);
    }
    if let Some(cost) = document.cost {
        let took = std::time::Duration::from_nanos(cost.device_ns);
        let took = match took.is_zero() {
            // The clock has a resolution of 10 ms.
            true => "less than 10 ms".to_owned(),
            false => HumanDuration(took).to_string(),
        };
        let size = ByteSize(cost.bytes);
        let said = format!("The request took {took} on the device and transferred {size}.");
        console.in_style(Style::Dim, &said);
    }
}
