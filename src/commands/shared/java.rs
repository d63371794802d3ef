//! Shared parts of the views of Java heaps: heading, sizes in columns, warnings, CSV.

use crate::console::{Console, Style};
use crate::heaps::java::facts::{Figures, HeapFacts};
use heaptap_base::units::{ByteSize, SignedSize, counted, thousands};
use heaptap_export::csv;
use heaptap_model::heap_graph::Retained;
use heaptap_results::lists::process_name;

/// Note below retained sizes in a heap with native memory, which they include in all commands.
pub(crate) const WITH_NATIVE: &str = "retained sizes include native memory";
/// Heading of the native part of a retained size.
pub(crate) const NATIVE_PART: &str = "native part";
/// Meaning of the mark in a reference from an array or a collection.
pub(crate) const ANY_ELEMENT: &str = "[*]: any element";

/// Prints the heading: the heap and the analysis options.
pub(crate) fn heading(console: &Console, heap: &HeapFacts) {
    let mut about = Vec::new();
    about.push(match &heap.version {
        Some(version) => version.replace("JAVA PROFILE", "HPROF"),
        None => "heap graph".to_owned(),
    });
    if heap.process.is_some() || heap.pid.is_some() {
        let process = heap.process.as_deref().unwrap_or_default();
        about.push(process_name(heap.pid.unwrap_or(0), process));
    }
    match &heap.label {
        Some(label) => about.push(format!("dump {} ({label})", heap.number)),
        None if heap.dumps > 1 => about.push(format!("dump {} of {}", heap.number, heap.dumps)),
        None => {}
    }
    if let Some(reason) = &heap.reason {
        about.push(reason.clone());
    }
    about.push(format!("sizes: {}", heap.sizes));
    console.data(format_args!(
        "{}  {}",
        console.styled(Style::Strong, &heap.path),
        console.styled(Style::Dim, about.join(" · "))
    ));
}

/// Returns the state of unreachable objects of a heap: garbage, unless their referrers can be
/// missing.
pub(crate) fn state_of_unreachable(heap: &HeapFacts) -> &'static str {
    match heap.lacks_objects {
        true => "unreachable in what was dumped",
        false => "unreachable, not yet collected",
    }
}

/// Prints the sizes of reachable and unreachable objects.
pub(crate) fn totals(
    console: &Console,
    heap: &HeapFacts,
    reachable: Option<&Figures>,
    unreachable: Option<&Figures>,
) {
    let mut parts = Vec::new();
    if let Some(reachable) = reachable {
        parts.push(format!(
            "{} in {}",
            console.styled(Style::Strong, ByteSize(reachable.shallow_bytes)),
            counted(reachable.count, "object", "objects")
        ));
        if reachable.native_bytes > 0 {
            parts.push(format!("{} native", ByteSize(reachable.native_bytes)));
        }
    }
    if let Some(garbage) = unreachable.filter(|garbage| garbage.count > 0) {
        parts.push(format!(
            "{}: {} in {}",
            state_of_unreachable(heap),
            ByteSize(garbage.shallow_bytes.saturating_add(garbage.native_bytes)),
            counted(garbage.count, "object", "objects")
        ));
    }
    if !parts.is_empty() {
        console.data(parts.join(" · "));
    }
}

/// Prints the warnings about a heap.
pub(crate) fn warn(console: &Console, heap: &HeapFacts) {
    for warning in &heap.warnings {
        // A warning about a file begins with its name.
        let after_name = warning.message.strip_prefix(&heap.path);
        match after_name.is_some_and(|rest| rest.starts_with(':')) {
            true => console.finding(warning, &warning.message),
            false => console.finding(warning, format_args!("{}: {}", heap.path, warning.message)),
        }
    }
}

/// Formats a size for a column; `-` for zero.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        bytes => ByteSize(bytes).to_string(),
    }
}

/// Formats a difference of sizes with its sign; `-` for zero.
pub(crate) fn signed(bytes: i64) -> String {
    match bytes {
        0 => "-".to_owned(),
        bytes => format!("{:+}", SignedSize(bytes)),
    }
}

/// Formats a number with its sign; `-` for zero.
pub(crate) fn signed_count(count: i64) -> String {
    match count {
        0 => "-".to_owned(),
        count if count > 0 => format!("+{}", thousands(count)),
        count => thousands(count),
    }
}

/// Formats a line of CSV.
pub(crate) fn csv_line(cells: &[Cell<'_>]) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        match cell {
            Cell::Number(number) => line += &number.to_string(),
            Cell::Real(number) => line += &number.to_string(),
            Cell::Nothing => {}
            Cell::Text(text) => line += &csv::cell(text),
        }
    }
    line.push('\n');
    line
}

/// A cell of CSV.
pub(crate) enum Cell<'a> {
    /// Unchanged.
    Number(i128),
    /// Unchanged, including decimals.
    Real(f64),
    /// Quoted if necessary.
    Text(&'a str),
    /// Unknown.
    Nothing,
}

impl<'a> Cell<'a> {
    /// Returns the cell of an optional number.
    pub(crate) fn maybe(number: Option<impl Into<i128>>) -> Cell<'a> {
        number.map_or(Cell::Nothing, |number| Cell::Number(number.into()))
    }

    /// Returns the cell of an optional text.
    pub(crate) fn text(text: Option<&'a str>) -> Cell<'a> {
        text.map_or(Cell::Nothing, Cell::Text)
    }
}

pub(crate) fn kept(kept: Retained) -> String {
    retained(kept.bytes, kept.native_bytes)
}

/// Formats a retained size of Java and native bytes.
pub(crate) fn retained(bytes: u64, native_bytes: u64) -> String {
    let total = ByteSize(bytes.saturating_add(native_bytes));
    match native_bytes {
        0 => total.to_string(),
        native => format!("{total} ({} native)", ByteSize(native)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_csv_is_quoted_and_no_formula() {
        let line = |text| csv_line(&[Cell::Text(text), Cell::Number(-5), Cell::Nothing]);
        assert_eq!(line("a.B"), "a.B,-5,\n");
        assert_eq!(line("a,\"b\""), "\"a,\"\"b\"\"\",-5,\n");
        assert_eq!(line("=cmd()"), "'=cmd(),-5,\n");
        assert_eq!(line("-1"), "'-1,-5,\n");
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(signed(0), "-");
        assert_eq!(signed(2048), "+2.0 KiB");
        assert_eq!(signed(-2048), "-2.0 KiB");
        assert_eq!(signed_count(12_000), "+12,000");
        assert_eq!(signed_count(-3), "-3");
    }
}
