//! What the rows of a process mean: all that it has in a line each, the largest first; one in
//! depth, with its figures.

use super::view::{heading, size};
use crate::app::meminfo::{Document, ProcessFacts, RowFacts};
use crate::cli::table::cut_end;
use crate::cli::{Console, Style};
use crate::memory::meminfo::{Column, explain};
use crate::units::SignedSize;

/// The row that is meant: by its name, or by it without what stands behind (`.so`).
pub(super) fn row_called(text: &str) -> Option<&'static str> {
    explain::ROWS.into_iter().find(|row| {
        let short = [" mmap", " mtrack"];
        let mut short = short.iter().filter_map(|end| row.strip_suffix(end));
        *row == text || short.any(|short| short == text)
    })
}

/// The rows of the table that are not empty, the largest first, a line each; then counts of
/// objects, of which leaks are told.
pub(super) fn all(console: &Console, document: &Document) {
    for process in &document.processes {
        let mut rows: Vec<(i64, &RowFacts)> = process
            .rows
            .iter()
            .filter(|row| row.label != "TOTAL")
            .map(|row| (weight(row), row))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        rows.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        console.data("");
        let title = format!("What the rows of {} mean, by PSS", process.called());
        console.data(console.styled(Style::Dim, &title));
        for (bytes, row) in rows {
            let figure = SignedSize(bytes).to_string();
            say(console, &figure, &row.label, explain::row(&row.label));
        }
        for count in process.objects.iter().filter(|count| count.count > 0) {
            if matches!(count.name.as_str(), "Activities" | "Views" | "WebViews") {
                let figure = count.count.to_string();
                say(console, &figure, &count.name, explain::object(&count.name));
            }
        }
        let hint = "--explain ROW tells of what one is made and what to do about it";
        console.data(console.styled(Style::Dim, hint));
    }
}

/// By what a row is large.
fn weight(row: &RowFacts) -> i64 {
    let value = |column| row.value(&column);
    value(Column::Pss)
        .or(value(Column::PrivateDirty))
        .unwrap_or(0)
}

fn say(console: &Console, figure: &str, label: &str, meaning: Option<explain::Meaning>) {
    let what = meaning.map_or("a row of this phone's maker", |meaning| meaning.what);
    let begin = format!("  {figure:>10}  ");
    let taken = begin.len() + label.len() + 2;
    let what = match console.stdout_width() {
        Some(width) => cut_end(what, width.saturating_sub(taken).max(8)),
        None => what.to_owned(),
    };
    let label = console.styled(Style::Strong, label);
    console.data(format_args!("{begin}{label}: {what}"));
}

/// Some rows in depth: what they count, their figures in each process, what to do about them.
pub(super) fn rows(console: &Console, document: Option<&Document>, wanted: &[&str]) {
    for label in wanted {
        let Some(meaning) = explain::row(label) else {
            continue;
        };
        console.data(console.styled(Style::Strong, *label));
        say_part(console, "", meaning.what);
        if let Some(made_of) = explain::made_of(label) {
            say_part(console, "counts: ", made_of);
        }
        if let Some(part) = explain::part(label) {
            say_part(console, "part of: ", part);
        }
        for process in document.into_iter().flat_map(|of| &of.processes) {
            let figures = figures(process, label);
            let of = process.called();
            let figures = match figures.is_empty() {
                true => "it has no such row".to_owned(),
                false => figures,
            };
            say_part(console, &format!("{of}: "), &figures);
        }
        say_part(console, "to do: ", meaning.advice);
    }
}

fn say_part(console: &Console, head: &str, text: &str) {
    let head = console.styled(Style::Help, head);
    let line = format!("  {head}{text}");
    console.data(&line);
}

/// All columns of a row, in words.
fn figures(process: &ProcessFacts, label: &str) -> String {
    let rows = process.rows.iter().chain(&process.details);
    let Some(row) = rows.chain(&process.summary).find(|row| row.label == label) else {
        return String::new();
    };
    let columns = process.columns.iter().map(String::as_str);
    let mut said: Vec<String> = Vec::new();
    let summary = ["pss", "rss", "swap"];
    let columns: Vec<&str> = columns.chain(summary).collect();
    let mut told: Vec<&str> = Vec::new();
    for column in columns {
        if told.contains(&column) {
            continue;
        }
        told.push(column);
        if let Some(bytes) = row.values.get(column).filter(|bytes| **bytes != 0) {
            said.push(format!("{} {}", heading(column), size(*bytes)));
        }
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_by_their_names() {
        assert_eq!(row_called("Graphics"), Some("Graphics"));
        assert_eq!(row_called(".so"), Some(".so mmap"));
        assert_eq!(row_called("EGL"), Some("EGL mtrack"));
        assert_eq!(row_called("Native Heap"), Some("Native Heap"));
        for process in ["system", "com.example.app", "stack", ""] {
            assert_eq!(row_called(process), None, "{process}");
        }
    }
}
