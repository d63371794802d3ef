//! What became of a heap since another dump: the tables of `diff`, classes linked to who holds
//! their objects now.

use super::super::html::{Foreign, Html};
use heaptap_model::units::{ByteSize, SignedSize, thousands};

/// Rows that are shown of each table; the viewer has all classes.
const ROWS: usize = 60;

/// Figures of something in one of two dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Objects.
    pub count: u64,
    /// Their own bytes.
    pub shallow: u64,
    /// Native bytes that they own.
    pub native: u64,
    /// Java and native bytes that they retain.
    pub retained: u64,
}

/// Something in both dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// What it is called.
    pub name: String,
    /// `new`, `gone`, `grown`, `shrunk` or `same`.
    pub status: &'static str,
    /// Levels below the top, of a node of the dominator tree.
    pub depth: usize,
    /// In the first dump.
    pub before: Sizes,
    /// In the second.
    pub after: Sizes,
}

impl Changed {
    /// Whether its objects take more memory than before.
    pub fn has_grown(&self) -> bool {
        let own = |sizes: Sizes| sizes.shallow.saturating_add(sizes.native);
        own(self.after) > own(self.before)
    }
}

/// Leaks of one cause in both dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLeak {
    /// The leaking class.
    pub class: String,
    /// What leaks, such as `destroyed Activity`.
    pub what: &'static str,
    /// The suspected references.
    pub way: String,
    /// `new`, `gone`, `grown`, `shrunk` or `same`.
    pub status: &'static str,
    /// Objects, before and after.
    pub count: (u64, u64),
    /// Bytes that they keep, before and after.
    pub bytes: (u64, u64),
}

/// What became of a heap since another dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What the other dump is called.
    pub before: String,
    /// Whether the two are a heap graph and an HPROF, whose sizes are counted differently.
    pub of_two_kinds: bool,
    /// All reachable objects.
    pub total: (Sizes, Sizes),
    /// Classes that changed, what grew most first.
    pub classes: Vec<Changed>,
    /// The dominator tree where it changed, each node after the one above it.
    pub tree: Vec<Changed>,
    /// Leaks, what grew most first.
    pub leaks: Vec<ChangedLeak>,
}

/// After less before.
fn more(before: u64, after: u64) -> i64 {
    let more = i128::from(after) - i128::from(before);
    more.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn more_bytes(before: u64, after: u64) -> String {
    match more(before, after) {
        0 => "-".to_owned(),
        bytes => format!("{:+}", SignedSize(bytes)),
    }
}

fn more_objects(before: u64, after: u64) -> String {
    match more(before, after) {
        0 => "-".to_owned(),
        n if n > 0 => format!("+{}", thousands(n)),
        n => thousands(n),
    }
}

impl Change {
    /// The growth of the whole in a sentence: `2.1 MiB → 3.0 MiB: +0.9 MiB in +160 objects`.
    pub(super) fn headline(&self) -> String {
        let (before, after) = self.total;
        let own = |sizes: Sizes| sizes.shallow.saturating_add(sizes.native);
        format!(
            "{} → {}: {} in {} objects",
            ByteSize(own(before)),
            ByteSize(own(after)),
            more_bytes(own(before), own(after)),
            more_objects(before.count, after.count),
        )
    }
}

/// The section. `held` are the classes of which is shown who holds their objects, in order.
pub(super) fn write(html: &mut Html, change: &Change, held: &[&str], number: usize) {
    html.add(format_args!(
        "<h3 id=\"grew{number}\">What grew</h3>\n<p><b>{}</b> <span class=\"note\">since {}</span></p>\n",
        change.headline(),
        Foreign(&change.before)
    ));
    if change.of_two_kinds {
        html.add(format_args!(
            "<p class=\"note\">The two dumps are of different kinds, which size arrays and strings \
             differently and know different roots.</p>\n"
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
    let left_out = change.classes.len().saturating_sub(ROWS);
    let (head, tail) = match left_out {
        0 => (&change.classes[..], &[][..]),
        _ => {
            let end = change.classes.len() - ROWS / 2;
            (&change.classes[..ROWS / 2], &change.classes[end..])
        }
    };
    let rows = head.iter().chain(tail).map(|row| {
        let name = Foreign(&row.name);
        // To who holds them, where that is shown; else to the table of classes.
        let name = match held.iter().position(|class| *class == row.name) {
            Some(at) => format!("<a href=\"#held{number}-{at}\">{name}</a>"),
            None => format!("<a href=\"#classes{number}\">{name}</a>"),
        };
        let (before, after) = (&row.before, &row.after);
        let mut cells = vec![
            match row.status {
                status @ ("new" | "gone") => {
                    format!("{name} <span class=\"note\">{status}</span>")
                }
                _ => name,
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
    let caption = match left_out {
        0 => "Classes that changed, and by how much.".to_owned(),
        n => format!(
            "Classes that changed, and by how much; {} between that changed less are left out.",
            thousands(n as u64)
        ),
    };
    html.table(&caption, &headings, rows);
    tree(html, change);
    leaks(html, change);
}

fn tree(html: &mut Html, change: &Change) {
    if change.tree.is_empty() {
        return;
    }
    let rows = change.tree.iter().take(ROWS).map(|row| {
        vec![
            format!(
                "{}{}",
                "&#8195;".repeat(row.depth.min(20)),
                Foreign(&row.name)
            ),
            more_objects(row.before.count, row.after.count),
            more_bytes(row.before.retained, row.after.retained),
        ]
    });
    html.table(
        "Where it hangs: the dominator tree where it changed.",
        &["class", "#objects", "#retained"],
        rows.collect::<Vec<_>>(),
    );
}

fn leaks(html: &mut Html, change: &Change) {
    if change.leaks.is_empty() {
        return;
    }
    let rows = change.leaks.iter().take(ROWS).map(|leak| {
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
        "Objects that should be gone.",
        &["", "leak", "#before", "#after", "#keeps"],
        rows.collect::<Vec<_>>(),
    );
}
