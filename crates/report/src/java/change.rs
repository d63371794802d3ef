//! Changes of a heap since another dump: the largest ones, as in `diff`.

use super::super::html::{Foreign, Html};
use heaptap_analyze::diff::{difference, keep_largest};
use heaptap_base::units::{ByteSize, SignedSize, thousands};

/// Maximum rows of each table; the viewer has all.
const ROWS: usize = 20;

/// Sizes of an entry in one of two dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    pub count: u64,
    pub shallow: u64,
    /// Native bytes owned by the objects.
    pub native: u64,
    /// Retained Java and native bytes.
    pub retained: u64,
}

impl Sizes {
    /// Returns the bytes of the objects themselves.
    fn own(self) -> u64 {
        self.shallow.saturating_add(self.native)
    }
}

/// Entry in both dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub name: String,
    /// `new`, `gone`, `grown`, `shrunk` or `same`.
    pub status: &'static str,
    /// Sizes in the first dump.
    pub before: Sizes,
    /// Sizes in the second dump.
    pub after: Sizes,
}

/// Leaks of one cause in both dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLeak {
    /// Leaking class.
    pub class: String,
    /// Description such as `destroyed Activity`.
    pub what: &'static str,
    /// Suspected references.
    pub way: String,
    /// `new`, `gone`, `grown`, `shrunk`, `same` or `unknown`.
    pub status: &'static str,
    /// Number of objects, before and after.
    pub count: (u64, u64),
    /// Bytes that the objects retain, before and after.
    pub bytes: (u64, u64),
}

/// Changes of a heap since another dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Name of the other dump.
    pub before: String,
    /// Whether one is a heap graph and the other an HPROF, whose sizes differ in definition.
    pub of_two_kinds: bool,
    /// Sizes of all reachable objects.
    pub total: (Sizes, Sizes),
    /// Changed classes, largest growth first.
    pub classes: Vec<Changed>,
    /// Leaks, largest growth first.
    pub leaks: Vec<ChangedLeak>,
}

fn more_bytes(before: u64, after: u64) -> String {
    match difference(before, after) {
        0 => "-".to_owned(),
        bytes => format!("{:+}", SignedSize(bytes)),
    }
}

fn more_objects(before: u64, after: u64) -> String {
    match difference(before, after) {
        0 => "-".to_owned(),
        n if n > 0 => format!("+{}", thousands(n)),
        n => thousands(n),
    }
}

impl Change {
    /// Returns the total growth as text: `2.1 MiB → 3.0 MiB: +0.9 MiB in +160 objects`.
    pub(super) fn headline(&self) -> String {
        let (before, after) = self.total;
        format!(
            "{} → {}: {} in {} objects",
            ByteSize(before.own()),
            ByteSize(after.own()),
            more_bytes(before.own(), after.own()),
            more_objects(before.count, after.count),
        )
    }
}

/// Writes the section.
pub(super) fn write(html: &mut Html, change: &Change, number: usize) {
    html.add(format_args!(
        "<h3 id=\"grew{number}\">Growth</h3>\n\
         <p><b>{}</b> <span class=\"note\">since {}</span></p>\n",
        change.headline(),
        Foreign(&change.before)
    ));
    if change.of_two_kinds {
        html.add(format_args!(
            "<p class=\"note\">The dumps are of different kinds, which differ in their GC roots \
             and in the sizes of arrays and strings.</p>\n"
        ));
    }
    let has_native = change
        .classes
        .iter()
        .any(|row| row.before.native != row.after.native);
    let mut headings = vec!["class", "#objects", "#shallow"];
    if has_native {
        headings.push("#native");
    }
    headings.extend(["#retained", "#objects now"]);
    let mut largest: Vec<&Changed> = change.classes.iter().collect();
    keep_largest(&mut largest, ROWS, |row| {
        [difference(row.before.own(), row.after.own()), 0]
    });
    let rows = largest.into_iter().map(|row| {
        let name = Foreign(&row.name);
        let (before, after) = (&row.before, &row.after);
        let mut cells = vec![
            match row.status {
                status @ ("new" | "gone") => {
                    format!("{name} <span class=\"note\">{status}</span>")
                }
                _ => name.to_string(),
            },
            more_objects(before.count, after.count),
            more_bytes(before.shallow, after.shallow),
        ];
        if has_native {
            cells.push(more_bytes(before.native, after.native));
        }
        cells.push(more_bytes(before.retained, after.retained));
        cells.push(thousands(after.count));
        cells
    });
    let caption = left_out("Changed classes", change.classes.len().saturating_sub(ROWS));
    html.table(&caption, &headings, rows);
    leaks(html, change);
}

fn left_out(title: &str, rows: usize) -> String {
    match rows {
        0 => format!("{title}."),
        n => format!(
            "{title}; {} with smaller changes are left out.",
            thousands(n as u64)
        ),
    }
}

fn leaks(html: &mut Html, change: &Change) {
    if change.leaks.is_empty() {
        return;
    }
    let mut largest: Vec<&ChangedLeak> = change.leaks.iter().collect();
    keep_largest(&mut largest, ROWS, |leak| {
        [difference(leak.bytes.0, leak.bytes.1), 0]
    });
    let rows = largest.into_iter().map(|leak| {
        vec![
            leak.status.to_owned(),
            format!(
                "{} {} <span class=\"note\">{}</span>",
                leak.what,
                Foreign(&leak.class),
                Foreign(&leak.way)
            ),
            thousands(leak.count.0),
            thousands(leak.count.1),
            more_bytes(leak.bytes.0, leak.bytes.1),
        ]
    });
    html.table(
        &left_out("Leaked objects", change.leaks.len().saturating_sub(ROWS)),
        &["", "leak", "#before", "#after", "#retained"],
        rows.collect::<Vec<_>>(),
    );
}
