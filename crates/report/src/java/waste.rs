//! Waste on the page: duplicates, empty or sparse collections, large objects.

use super::super::html::{Foreign, Html};
use heaptap_analyze::waste::{Duplicates, LARGE_ARRAY_BYTES, Waste};
use heaptap_model::units::{ByteSize, thousands};

/// Writes the section, without kinds of waste that were not found. `contents` is whether contents
/// of the heap are shown.
pub(super) fn write(html: &mut Html, waste: &Waste, contents: bool, number: usize) {
    html.add(format_args!(
        "<h3 id=\"waste{number}\">Waste</h3>\n<p class=\"note\">Up to {} could be saved.</p>\n",
        ByteSize(waste.total_bytes())
    ));
    duplicates(html, "Equal strings", &waste.strings, contents);
    duplicates(html, "Equal arrays", &waste.arrays, contents);
    let rows = waste.bitmaps.groups.iter().map(|group| {
        vec![
            format!("{} × {}", group.width, group.height),
            thousands(group.count),
            ByteSize(group.wasted_bytes).to_string(),
            held_by(group.held_by.as_deref()),
        ]
    });
    table(
        html,
        "Bitmaps with equal pixels",
        &["pixels", "#bitmaps", "#wasted", "holder of one"],
        rows.collect(),
    );
    let rows = waste.collections.iter().filter(|c| c.wasted_bytes > 0);
    let rows = rows.map(|kind| {
        vec![
            Foreign(&kind.class).to_string(),
            thousands(kind.count),
            thousands(kind.empty),
            thousands(kind.sparse),
            ByteSize(kind.wasted_bytes).to_string(),
        ]
    });
    table(
        html,
        "Collections with unused capacity",
        &["class", "#collections", "#empty", "#sparse", "#wasted"],
        rows.collect(),
    );
    let rows = waste.sparse.iter().map(|collection| {
        vec![
            Foreign(&collection.class).to_string(),
            thousands(collection.size),
            thousands(collection.capacity),
            ByteSize(collection.wasted_bytes).to_string(),
            held_by(collection.held_by.as_deref()),
        ]
    });
    table(
        html,
        "Collections that waste the most",
        &["class", "#elements", "#capacity", "#wasted", "holder"],
        rows.collect(),
    );
    let rows = waste.boxed.iter().map(|boxed| {
        vec![
            Foreign(&boxed.class).to_string(),
            thousands(boxed.count),
            ByteSize(boxed.bytes).to_string(),
        ]
    });
    table(
        html,
        "Boxed numbers",
        &["class", "#objects", "#bytes"],
        rows.collect(),
    );
    let rows = waste.large.iter().map(|array| {
        vec![
            Foreign(&array.class).to_string(),
            array.length.map(thousands).unwrap_or_default(),
            ByteSize(array.bytes).to_string(),
            held_by(array.held_by.as_deref()),
        ]
    });
    let caption = format!("Arrays of at least {}", ByteSize(LARGE_ARRAY_BYTES));
    table(
        html,
        &caption,
        &["class", "#elements", "#bytes", "holder"],
        rows.collect(),
    );
    for untold in &waste.untold {
        html.add(format_args!("<p class=\"note\">{}</p>\n", Foreign(untold)));
    }
}

fn duplicates(html: &mut Html, what: &str, found: &Duplicates, contents: bool) {
    let rows = found.groups.iter().map(|group| {
        let content = match contents {
            true => Foreign(&group.value).to_string(),
            false => format!("<code>{}</code>", group.hash),
        };
        vec![
            content,
            thousands(group.length),
            Foreign(&group.class).to_string(),
            thousands(group.count),
            ByteSize(group.wasted_bytes).to_string(),
            held_by(group.held_by.as_deref()),
        ]
    });
    let caption = format!("{what}: {} wasted", ByteSize(found.wasted_bytes));
    let content = match contents {
        true => "content",
        false => "content hash",
    };
    table(
        html,
        &caption,
        &[
            content,
            "#length",
            "class",
            "#times",
            "#wasted",
            "holder of one",
        ],
        rows.collect(),
    );
}

fn held_by(holder: Option<&str>) -> String {
    holder.map_or_else(String::new, |holder| Foreign(holder).to_string())
}

/// Writes a table if it has rows.
fn table(html: &mut Html, caption: &str, headings: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        html.table(caption, headings, rows);
    }
}
