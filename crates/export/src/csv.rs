//! CSV for spreadsheets and scripts: a row for each callsite of each dump, a column for each
//! measure. Values are the callsite's own (self). Commas, doubled quotes, LF.
//!
//! A spreadsheet interprets a cell that begins with `=`, `+`, `-` or `@` as a formula, and names
//! come from devices, so such a cell is prefixed with `'`. Where numbers have decimal commas, a
//! spreadsheet splits lines at `;`, so the parts of a stack are cells too. Excel cuts cells at 32,767 characters,
//! so a longer stack loses the frames next to the root, which `…` indicates.

use super::chosen::{Chosen, headings, unit_name};
use super::text::{folded_name, named};
use heaptap_base::untrusted::sanitize;
use heaptap_model::stacks::{NodeId, StackTable};
use std::borrow::Cow;
use std::io::{self, Write};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Columns before those of the measures.
const KEYS: [&str; 12] = [
    "dump", "label", "time_ns", "time", "pid", "process", "heap", "function", "library", "file",
    "line", "stack",
];

/// Maximum length of a stack in UTF-8 bytes, which are at least as many as the UTF-16 units that
/// Excel counts.
const MAX_STACK_LENGTH: usize = 32_000;

/// Writes the selection.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(out: &mut impl Write, chosen: &Chosen<'_>) -> io::Result<()> {
    let measures = chosen.measures();
    let names = headings(&measures);
    write!(out, "{}", KEYS.join(","))?;
    for (name, measure) in names.iter().zip(&measures) {
        let unit = unit_name(&measure.unit);
        let heading = match name == &measure.name && measure.view.is_none() {
            true => format!("{name} ({unit})"),
            false => name.clone(),
        };
        write!(out, ",{}", cell(&heading))?;
    }
    out.write_all(b"\n")?;
    let table = chosen.table;
    let mut stack = String::new();
    for dump in &chosen.dumps {
        let facts = &dump.dump.facts;
        let mut begin = format!("{},", facts.number);
        begin += &cell(facts.label.as_deref().unwrap_or(""));
        begin += &format!(",{},", known(facts.time_ns));
        let wall = facts.wall_time_ns.map(i128::from);
        let wall = wall.and_then(|ns| OffsetDateTime::from_unix_timestamp_nanos(ns).ok());
        begin += &wall
            .and_then(|t| t.format(&Rfc3339).ok())
            .unwrap_or_default();
        begin += &format!(",{},", known((facts.pid != 0).then_some(facts.pid)));
        begin += &format!("{},{},", cell(&facts.process), cell(&facts.heap));
        let columns: Vec<Option<usize>> = measures.iter().map(|m| dump.column_of(m)).collect();
        for row in dump.rows() {
            let leaf = dump.dump.values.nodes[row];
            put_place(out, &begin, table, leaf)?;
            spell(&mut stack, table, leaf);
            write!(out, ",{}", cell(&stack))?;
            for column in &columns {
                match column {
                    Some(at) => write!(out, ",{}", dump.dump.values.columns[*at][row])?,
                    None => out.write_all(b",")?,
                }
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn known(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// Writes the cells with the location of a callsite.
fn put_place(
    out: &mut impl Write,
    begin: &str,
    table: &StackTable,
    leaf: NodeId,
) -> io::Result<()> {
    out.write_all(begin.as_bytes())?;
    // Memory without a stack has no location.
    let Some(frame) = table.frame_of(leaf) else {
        return out.write_all(b",,,");
    };
    let frame = &table.frames()[frame.0 as usize];
    let function = &table.functions()[frame.function.0 as usize];
    let library = &table.libraries()[function.library.0 as usize];
    write!(
        out,
        "{},{},{},{}",
        cell(named(table.text_of(function.name))),
        cell(table.text_of(library.path)),
        cell(table.text_of(frame.file)),
        known((frame.line != 0).then_some(u64::from(frame.line)))
    )
}

/// Appends the folded stack of a callsite, up to the limit of a cell.
fn spell(stack: &mut String, table: &StackTable, leaf: NodeId) {
    stack.clear();
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    let mut length = 0;
    for node in table.stack(leaf) {
        let name = folded_name(table.name_of(node));
        length += name.len() + 1;
        if length > MAX_STACK_LENGTH {
            names.push("…".into());
            break;
        }
        names.push(name);
    }
    for (at, name) in names.iter().rev().enumerate() {
        if at > 0 {
            stack.push(';');
        }
        stack.push_str(name);
    }
}

/// Formats a text as a cell: quoted if necessary, not a formula, without control characters.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = match text.split(';').any(is_formula) {
        false => sanitize(text),
        true => {
            let guard = |part| if is_formula(part) { "'" } else { "" };
            let parts = text.split(';').map(|part| format!("{}{part}", guard(part)));
            let guarded = parts.collect::<Vec<_>>().join(";");
            sanitize(&guarded).into_owned().into()
        }
    };
    match text.contains([',', '"']) || text.starts_with(' ') || text.ends_with(' ') {
        false => text,
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
    }
}

/// Returns whether a spreadsheet can read a text as a formula. It skips blanks, and quotes that end
/// at once.
fn is_formula(text: &str) -> bool {
    let begin = text.trim_start_matches(|c: char| c.is_whitespace() || c == '"');
    begin.starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) || text.starts_with(['\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, expected) in [
            (
                "=HYPERLINK(\"http://x\",1)",
                "\"'=HYPERLINK(\"\"http://x\"\",1)\"",
            ),
            ("+1", "'+1"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\u{fffd}=1"),
            (" =1", "' =1"),
            ("a;=1", "a;'=1"),
            ("a; -1;b;@c", "a;' -1;b;'@c"),
            ("a;\"=1", "\"a;'\"\"=1\""),
            ("a;b=1", "a;b=1"),
            ("a,b", "\"a,b\""),
            ("a\nb", "a\u{fffd}b"),
            ("plain name", "plain name"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
