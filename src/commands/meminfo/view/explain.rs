//! Meanings of the rows of a process: all its rows in one line each, largest first; or one in
//! detail, with its figures.

use crate::commands::shared::meminfo::{heading, size};
use crate::console::{Console, Style};
use crate::heaps::meminfo::{Document, ProcessFacts, RowFacts};
use android_memory::meminfo::{Column, explain};
use heaptap_base::suggest::nearest;
use heaptap_base::units::SignedSize;

/// Suffixes of row names that can be omitted.
const ENDS: [&str; 2] = [" mmap", " mtrack"];
/// Rows with their names before Android 5.
const RENAMED: [(&str, &str); 2] = [("Native", "Native Heap"), ("Dalvik", "Dalvik Heap")];

/// Returns a row's name without its suffix.
fn short(row: &'static str) -> Option<&'static str> {
    ENDS.iter().find_map(|end| row.strip_suffix(end))
}

/// Finds a row by its name, or by its name without suffix (`.so`). Ignores case.
pub(super) fn row_called(text: &str) -> Option<&'static str> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(text);
    let found = explain::labels().find(|row| is_it(row) || short(row).is_some_and(is_it))?;
    let today = RENAMED.iter().find(|(before, _)| *before == found);
    Some(today.map_or(found, |(_, today)| *today))
}

/// Returns the row with a name similar to an unknown word.
pub(super) fn row_like(text: &str) -> Option<&'static str> {
    let typed = text.to_ascii_lowercase();
    let lower: Vec<String> = explain::labels()
        .chain(explain::labels().filter_map(short))
        // `zygote` is a process, `.Zygote` a row.
        .filter(|name| name.starts_with('.') == typed.starts_with('.'))
        .map(str::to_ascii_lowercase)
        .collect();
    row_called(nearest(&typed, lower.iter().map(String::as_str))?)
}

/// Shows the nonempty rows, largest first, in one line each; then the counts of objects that
/// indicate leaks.
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
        let text = format!("What the rows of {} mean, by PSS", process.called());
        console.section(Style::Dim, text);
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
        let hint = "`--explain=ROW` shows what a row contains and what to do about it";
        console.in_style(Style::Dim, hint);
    }
}

/// Returns the size by which rows are ordered.
fn weight(row: &RowFacts) -> i64 {
    let value = |column| row.value(&column);
    value(Column::Pss)
        .or(value(Column::PrivateDirty))
        .unwrap_or(0)
}

fn say(console: &Console, figure: &str, label: &str, meaning: Option<explain::Meaning>) {
    let what = meaning.map_or("a row added by the device manufacturer", |meaning| {
        meaning.what
    });
    let label = console.styled(Style::Strong, label);
    console.hanging(
        format_args!("  {figure:>10}  "),
        format_args!("{label}: {what}"),
    );
}

/// Shows rows in detail: their contents, their figures in each process, and advice.
pub(super) fn rows(console: &Console, document: Option<&Document>, wanted: &[&str]) {
    for label in wanted {
        let Some(meaning) = explain::row(label).or_else(|| explain::object(label)) else {
            continue;
        };
        console.in_style(Style::Strong, *label);
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
                true => "0 B: the device lists no such row".to_owned(),
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

/// Returns all columns of a row as text.
fn figures(process: &ProcessFacts, label: &str) -> String {
    if let Some(count) = process.objects.iter().find(|count| count.name == label) {
        return count.count.to_string();
    }
    let before = RENAMED.iter().find(|(_, today)| *today == label);
    let is_it = |name: &str| name == label || before.is_some_and(|(before, _)| name == *before);
    let rows = process.rows.iter().chain(&process.details);
    let Some(row) = rows.chain(&process.summary).find(|row| is_it(&row.label)) else {
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
        for (typed, row) in [
            ("graphics", "Graphics"),
            ("native heap", "Native Heap"),
            ("Native", "Native Heap"),
            ("dalvik", "Dalvik Heap"),
            ("egl", "EGL mtrack"),
            ("Activities", "Activities"),
            ("webviews", "WebViews"),
        ] {
            assert_eq!(row_called(typed), Some(row), "{typed}");
        }
        for process in ["system_server", "com.example.app", "Grafics", ""] {
            assert_eq!(row_called(process), None, "{process}");
        }
    }

    #[test]
    fn every_row_is_explained_by_the_name_it_has() {
        for name in explain::labels() {
            let row = row_called(name).unwrap();
            let meaning = explain::row(row).or_else(|| explain::object(row));
            assert!(meaning.is_some(), "{name}");
            let renamed = RENAMED.contains(&(name, row));
            assert!(row == name || renamed, "{name} is {row}");
        }
    }

    #[test]
    fn slips_of_a_rows_name_are_known_and_processes_are_none() {
        for (typed, row) in [
            ("Grafics", "Graphics"),
            ("grpahics", "Graphics"),
            ("nativ heap", "Native Heap"),
            ("Activites", "Activities"),
            (".NonMovin", ".NonMoving"),
        ] {
            assert_eq!(row_like(typed), Some(row), "{typed}");
        }
        for process in [
            "logd", "netd", "statsd", "vold", "lmkd", "zygote", "zygote64", "init", "su",
        ] {
            assert_eq!(row_like(process), None, "{process}");
        }
    }
}
