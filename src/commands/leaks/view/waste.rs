//! Shows what a Java heap wastes.

use crate::console::table::fitting;
use crate::console::{Console, Style};
use heaptap_analyze::waste::{Duplicates, LargeObject, MAX_SHOWN, SparseGroup, Waste};
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted;

/// Waste below which nothing is worth a change, in bytes.
const LITTLE_WASTE: u64 = 1 << 10;

/// Returns whether there is more to show than a little waste.
pub(super) fn is_notable(waste: &Waste) -> bool {
    let has_lists = !waste.crowded.is_empty()
        || !waste.loaders.is_empty()
        || waste.large_arrays_count > 0
        || waste.bitmaps.bytes > 0
        || waste.boxed.iter().any(|row| row.wasted_bytes.is_none());
    has_lists || waste.wasted_bytes >= LITTLE_WASTE || !waste.untold.is_empty()
}

/// Shows waste; `limit` is the number of rows below each kind.
pub(super) fn show(console: &Console, waste: &Waste, limit: usize) {
    console.data("");
    let of_heap = waste.heap.map(|heap| format!(" of the {heap} heap"));
    let of_heap = of_heap.unwrap_or_default();
    let headline = match waste.wasted_bytes {
        0 if waste.untold.is_empty() && waste.heap.is_none() => "No waste found".to_owned(),
        0 if waste.untold.is_empty() => format!("No waste found in objects{of_heap}"),
        0 => format!("No waste found in what could be analyzed{of_heap}"),
        bytes => format!("Waste{of_heap}: up to {} could be saved", ByteSize(bytes)),
    };
    console.in_style(Style::Strong, headline);
    equal(console, "equal strings", &waste.strings, "strings", limit);
    equal(console, "equal arrays", &waste.arrays, "arrays", limit);
    equal(console, "equal bitmaps", &waste.bitmaps, "bitmaps", limit);
    let room = sum(waste.collections.iter().map(|kind| kind.wasted_bytes));
    if room > 0 {
        let count: u64 = waste.collections.iter().map(|kind| kind.count).sum();
        let empty: u64 = waste
            .collections
            .iter()
            .map(|kind| kind.empty_with_slots)
            .sum();
        let sparse: u64 = waste.collections.iter().map(|kind| kind.sparse).sum();
        title(
            console,
            room,
            "oversized collections",
            &format!(
                "of {}, {} empty with allocated slots, {} less than a quarter",
                counted(count, "collection", "collections"),
                counted(empty, "is", "are"),
                counted(sparse, "uses", "use")
            ),
        );
        rooms(console, &waste.sparse, limit);
    }
    if waste.sparse_array_bytes > 0 {
        title(console, waste.sparse_array_bytes, "mostly null arrays", "");
        rooms(console, &waste.sparse_arrays, limit);
    }
    let boxed = sum(waste.boxed.iter().filter_map(|row| row.wasted_bytes));
    if waste.boxed.iter().any(|row| row.wasted_bytes != Some(0)) {
        let told = waste.boxed.iter().all(|row| row.distinct.is_some());
        let all = sum(waste.boxed.iter().map(|row| row.bytes));
        match told {
            true => title(console, boxed, "boxed numbers", "duplicates of a value"),
            false => title(
                console,
                all,
                "boxed numbers",
                "in total; the dump does not contain their values",
            ),
        }
        let rows = waste.boxed.iter().filter(|row| row.wasted_bytes != Some(0));
        for row in rows.take(limit) {
            let values = match row.distinct {
                Some(distinct) => format!(" of {}", counted(distinct, "value", "values")),
                None => String::new(),
            };
            let text = format!("{} × {}{values}", thousands(row.count), row.class);
            item(console, row.wasted_bytes.unwrap_or(row.bytes), &text, None);
        }
    }
    if !waste.crowded.is_empty() {
        console.section(Style::Strong, "Hash tables whose keys share buckets");
        for row in waste.crowded.iter().take(limit) {
            let text = format!(
                "{} with {} keys in {} of {} buckets: check hashCode()",
                untrusted::sanitize(&row.class),
                thousands(row.size),
                thousands(row.used_buckets),
                thousands(row.buckets)
            );
            line(
                console,
                &format!("{}%", row.collisions_percent),
                &text,
                row.held_by.as_deref(),
            );
        }
    }
    if !waste.loaders.is_empty() {
        let what = "Class loaders with classes that another loader has loaded, too";
        console.section(Style::Strong, what);
        for row in waste.loaders.iter().take(limit) {
            let text = format!(
                "{} {}: of its {}, such as {}",
                untrusted::sanitize(&row.class),
                row.id,
                counted(row.classes, "class", "classes"),
                untrusted::sanitize(&row.example)
            );
            line(
                console,
                &thousands(row.repeated),
                &text,
                row.held_by.as_deref(),
            );
        }
    }
    largest(
        console,
        "Largest arrays",
        &format!(
            "{} of 256 KiB or more, {} in total",
            thousands(waste.large_arrays_count),
            ByteSize(waste.large_arrays_bytes)
        ),
        &waste.large_arrays,
        limit,
    );
    // Heap graphs before Android 13 do not have their sizes.
    if waste.bitmaps.bytes > 0 {
        largest(
            console,
            "Largest bitmaps",
            &format!(
                "of {}, {} in total",
                thousands(waste.bitmaps.count),
                ByteSize(waste.bitmaps.bytes)
            ),
            &waste.largest_bitmaps,
            limit,
        );
    }
    for untold in &waste.untold {
        console.section(Style::Dim, format!("Not analyzed: {untold}"));
    }
}

/// Adds up sizes from the file, at the limit if they are too large.
fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn title(console: &Console, bytes: u64, what: &str, remark: &str) {
    let lead = format!("{:>10}  ", ByteSize(bytes).to_string());
    console.hanging(lead, headed(console, what, remark));
}

/// Returns a title with an optional remark.
fn headed(console: &Console, what: &str, remark: &str) -> String {
    let what = console.styled(Style::Strong, what);
    match remark {
        "" => what.to_string(),
        remark => format!("{what}  {}", console.styled(Style::Dim, remark)),
    }
}

fn item(console: &Console, bytes: u64, text: &str, held_by: Option<&str>) {
    line(console, &ByteSize(bytes).to_string(), text, held_by);
}

fn line(console: &Console, figure: &str, text: &str, held_by: Option<&str>) {
    let lead = format!("{figure:>22}  ");
    let room = console.stdout_width().unwrap_or(usize::MAX);
    let left = room.saturating_sub(lead.len() + console::measure_text_width(text) + 2);
    let held = held_by.map_or(String::new(), |by| format!("← {}", untrusted::sanitize(by)));
    match fitting(&held, left) {
        Some(held) => console.hanging(
            lead,
            format_args!("{text}  {}", console.styled(Style::Dim, held)),
        ),
        None => console.hanging(lead, text),
    }
}

fn equal(console: &Console, title_: &str, all: &Duplicates, what: &str, limit: usize) {
    if all.wasted_bytes == 0 {
        return;
    }
    let different = match all.distinct {
        Some(distinct) => format!(", {} different", thousands(distinct)),
        None => String::new(),
    };
    let remark = format!(
        "{} {what}{different}, {}",
        thousands(all.count),
        ByteSize(all.bytes)
    );
    title(console, all.wasted_bytes, title_, &remark);
    for group in all.groups.iter().take(limit) {
        let value = match what {
            "strings" => {
                let letters: Vec<char> = group.value.escape_debug().collect();
                // Paths and addresses differ at their ends, which a long text does not have here.
                let text: String = match letters.len() {
                    0..=60 => letters.iter().collect(),
                    _ if group.length > MAX_SHOWN as u64 => {
                        letters[..60].iter().chain(&['…']).collect()
                    }
                    all => {
                        let (begin, end) = (&letters[..40], &letters[all - 20..]);
                        begin.iter().chain(&['…']).chain(end).collect()
                    }
                };
                format!("\"{text}\"")
            }
            "bitmaps" => format!("({} pixels)", group.value),
            _ => {
                let class = group.class.trim_end_matches("[]");
                format!(
                    "{class}[{}] {}",
                    group.length,
                    untrusted::sanitize(&group.value)
                )
            }
        };
        let text = format!("{} × {value}", thousands(group.count));
        item(console, group.wasted_bytes, &text, group.held_by.as_deref());
    }
}

fn rooms(console: &Console, rows: &[SparseGroup], limit: usize) {
    for row in rows.iter().take(limit) {
        let copies = match row.count {
            1 => String::new(),
            count => format!("{} × ", thousands(count)),
        };
        let text = format!(
            "{copies}{}  {} of {} slots used",
            untrusted::sanitize(&row.class),
            thousands(row.used),
            thousands(row.capacity)
        );
        item(console, row.wasted_bytes, &text, row.held_by.as_deref());
    }
}

fn largest(console: &Console, what: &str, remark: &str, rows: &[LargeObject], limit: usize) {
    if rows.is_empty() {
        return;
    }
    console.data("");
    console.data(headed(console, what, remark));
    for row in rows.iter().take(limit) {
        let native = if row.native { "native, " } else { "" };
        let value = match row.value.as_str() {
            "" => String::new(),
            value => format!(" {native}{}", untrusted::sanitize(value)),
        };
        let class = untrusted::sanitize(&row.class);
        let text = match (class.strip_suffix("[]"), row.length) {
            (Some(element), Some(length)) => format!("{element}[{length}]{value}"),
            _ => format!("{class}{value}"),
        };
        item(console, row.bytes, &text, row.held_by.as_deref());
    }
}
