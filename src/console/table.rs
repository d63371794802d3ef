//! Tables of values with a name in the last column: values are right-aligned, and the name is
//! shortened to the remaining width by dropping scopes and packages, never within its own words.
//! Without a terminal on stdout, names are complete.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::wrap::wrapped;
use crate::console::{Console, Style, visible};
use heaptap_analyze::native::scope;
use heaptap_base::units::thousands;

/// A table under construction.
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Row>,
    is_of_code: bool,
    keeps_remarks: bool,
}

struct Row {
    figures: Vec<String>,
    /// Text before the name: branches of a tree.
    lead: String,
    name: String,
    /// Text after the name, if it fits.
    remark: String,
    style: Option<Style>,
}

/// Minimum width of names; value columns are hidden to reach it.
const NARROWEST_NAME: usize = 16;

impl Table {
    /// Creates a table with these headings, the last one for the name.
    pub(crate) fn new(headings: &[&str]) -> Table {
        Table {
            headings: headings
                .iter()
                .map(|heading| visible(heading).into_owned())
                .collect(),
            rows: Vec::new(),
            is_of_code: false,
            keeps_remarks: false,
        }
    }

    /// Marks the names as functions: long ones are shortened by parameters, template arguments and
    /// scopes before anything is truncated.
    pub(crate) fn of_code(self) -> Table {
        Table {
            is_of_code: true,
            ..self
        }
    }

    /// Keeps remarks, because the user requested them: a remark that does not fit after its name
    /// goes below it.
    pub(crate) fn keeping_remarks(self) -> Table {
        Table {
            keeps_remarks: true,
            ..self
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, figures: Vec<String>, name: impl Into<String>) {
        let seen = |text: String| match visible(&text) {
            Cow::Owned(seen) => seen,
            Cow::Borrowed(_) => text,
        };
        self.rows.push(Row {
            figures: figures.into_iter().map(seen).collect(),
            lead: String::new(),
            name: bounded(seen(name.into())),
            remark: String::new(),
            style: None,
        });
    }

    /// Sets the branches before the last row's name.
    pub(crate) fn lead(&mut self, lead: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.lead = lead.into();
        }
    }

    /// Sets the remark after the last row's name.
    pub(crate) fn remark(&mut self, remark: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.remark = bounded(visible(&remark.into()).into_owned());
        }
    }

    /// Sets the style of the last row's name.
    pub(crate) fn style(&mut self, style: Style) {
        if let Some(row) = self.rows.last_mut() {
            row.style = Some(style);
        }
    }

    /// Returns the widths of its value columns.
    fn widths(&self) -> Vec<usize> {
        let figures = self.headings.len() - 1;
        let mut widths: Vec<usize> = self.headings[..figures]
            .iter()
            .map(|h| text_width(h))
            .collect();
        for row in &self.rows {
            for (width, figure) in widths.iter_mut().zip(&row.figures) {
                *width = (*width).max(text_width(figure));
            }
        }
        widths
    }

    /// Hides columns of `least`, in order, until the rest and a name fit; returns their headings.
    fn fit(&mut self, width: usize, least: &[&str]) -> Vec<String> {
        let mut left_out = Vec::new();
        for heading in least {
            let taken: usize = self.widths().iter().map(|width| width + 2).sum();
            if taken + NARROWEST_NAME <= width {
                break;
            }
            let figures = &self.headings[..self.headings.len() - 1];
            let Some(at) = figures.iter().position(|found| found == heading) else {
                continue;
            };
            left_out.push(self.headings.remove(at));
            for row in &mut self.rows {
                if at < row.figures.len() {
                    row.figures.remove(at);
                }
            }
        }
        left_out
    }

    /// Prints it, as wide as the terminal.
    pub(crate) fn show(&self, console: &Console) {
        for line in self.lines(console, console.stdout_width()) {
            console.laid_out(line);
        }
    }

    /// Returns the lines, at most `width` columns wide; without a width, as wide as the names.
    /// Never splits words: names that do not fit after their values go on lines below.
    pub(crate) fn lines(&self, console: &Console, width: Option<usize>) -> Vec<String> {
        let figures = self.headings.len() - 1;
        let widths = self.widths();
        let taken: usize = widths.iter().map(|width| width + 2).sum();
        let width = width.unwrap_or(usize::MAX);
        let room = width.saturating_sub(taken);
        let mut heading = String::new();
        for (cell, &width) in self.headings.iter().zip(&widths) {
            let _ = write!(heading, "{}{cell}  ", blanks(width, cell));
        }
        heading += &fitting(&self.headings[figures], room).unwrap_or_default();
        let mut lines = vec![console.styled(Style::Dim, heading.trim_end()).to_string()];
        for row in &self.rows {
            let mut line = String::new();
            for (cell, &width) in row.figures.iter().zip(&widths) {
                let _ = write!(line, "{}{cell}  ", blanks(width, cell));
            }
            let lead = cut_end(&row.lead, room / 2);
            let left = room - text_width(&lead).min(room);
            let styled = |name: &str| match row.style {
                Some(style) => console.styled(style, name).to_string(),
                None => name.to_owned(),
            };
            let _ = write!(line, "{}", console.styled(Style::Dim, &lead));
            let mut left = match self.fitted(&row.name, left) {
                Some(name) => {
                    line += &styled(&name);
                    left - text_width(&name)
                }
                None => {
                    lines.push(line.trim_end().to_owned());
                    let room = width.saturating_sub(BELOW);
                    let name = self.fitted(&row.name, room);
                    let mut parts = wrapped(name.as_deref().unwrap_or(&row.name), room);
                    line = parts.pop().unwrap_or_default();
                    let blanks = " ".repeat(BELOW);
                    lines.extend(parts.iter().map(|part| format!("{blanks}{}", styled(part))));
                    let left = room.saturating_sub(text_width(&line));
                    line = format!("{blanks}{}", styled(&line));
                    left
                }
            };
            left = left.saturating_sub(2);
            let beside = fitting(&row.remark, left);
            if let Some(remark) = &beside {
                let _ = write!(line, "  {}", console.styled(Style::Dim, remark));
            }
            line.truncate(line.trim_end_matches(' ').len());
            lines.push(line);
            if beside.is_none() && self.keeps_remarks {
                let room = width.saturating_sub(BELOW);
                let below = fitting(&row.remark, room);
                let below = wrapped(below.as_deref().unwrap_or(&row.remark), room);
                let blanks = " ".repeat(BELOW);
                let below = below.into_iter();
                lines.extend(
                    below.map(|part| format!("{blanks}{}", console.styled(Style::Dim, part))),
                );
            }
        }
        lines
    }

    /// Returns the longest form of a name that fits.
    fn fitted<'n>(&self, name: &'n str, room: usize) -> Option<Cow<'n, str>> {
        match self.is_of_code {
            true => shorten(name, room),
            false => shorten_scope(name, room),
        }
    }
}

/// Indentation of a name below its values.
const BELOW: usize = 4;

/// Prints a table, hiding columns of `least` in order if the terminal is too narrow, and lists the
/// hidden ones. Wrapped values would be unreadable.
pub(crate) fn show_fitting(console: &Console, table: &mut Table, least: &[&str]) {
    show_fitting_at(console, table, least, 0, ", or use `--csv` or `--json`");
}

/// As `show_fitting`, indented; `elsewhere` lists further outputs with all columns.
pub(crate) fn show_fitting_at(
    console: &Console,
    table: &mut Table,
    least: &[&str],
    indent: usize,
    elsewhere: &str,
) {
    let width = console
        .stdout_width()
        .map(|width| width.saturating_sub(indent));
    let left_out = match width {
        Some(width) => table.fit(width, least),
        None => Vec::new(),
    };
    let blank = " ".repeat(indent);
    for line in table.lines(console, width) {
        console.laid_out(format_args!("{blank}{line}"));
    }
    if !left_out.is_empty() {
        let said = format!(
            "{blank}hidden columns: {}; widen the terminal or pipe the output{elsewhere}",
            left_out.join(", ")
        );
        console.in_style(Style::Dim, said);
    }
}

/// Prints rows of words in columns, as [`columns`] lays them out.
pub(crate) fn show_columns(console: &Console, rows: &[Vec<String>], right: &[usize]) {
    for line in columns(rows, right) {
        console.laid_out(line);
    }
}

/// Rows of words in columns, each as wide as its widest, those of `right` to the right; the first
/// row are their headings.
pub(crate) fn columns(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let cells = |row: &Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|c| text_width(c))
            .max()
    };
    let widths: Vec<usize> = (0..count).map(|at| wide(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let line: String = cells
            .map(|(at, (cell, &width))| match right.contains(&at) {
                true => format!("{}{cell}  ", blanks(width, cell)),
                false => format!("{cell}{}  ", blanks(width, cell)),
            })
            .collect();
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn text_width(text: &str) -> usize {
    console::measure_text_width(text)
}

fn blanks(width: usize, text: &str) -> String {
    " ".repeat(width.saturating_sub(text_width(text)))
}

/// Returns the longest form of a function's name that fits: parameters, template arguments and
/// scopes are dropped, its own name is complete.
pub(crate) fn shorten(name: &str, room: usize) -> Option<Cow<'_, str>> {
    let mut forms = scope::shortened(name);
    forms
        .find(|form| text_width(form) <= room)
        .or_else(|| shorten_scope(name, room))
}

/// Shortens a Java name by dropping packages until it fits: `….util.HashMap$Node`. Paths and
/// sentences are unchanged.
pub(crate) fn shorten_scope(name: &str, room: usize) -> Option<Cow<'_, str>> {
    if text_width(name) <= room {
        return Some(Cow::Borrowed(name));
    }
    let (lead, rest) = ["static ", "class "]
        .iter()
        .find_map(|lead| Some((*lead, name.strip_prefix(lead)?)))
        .unwrap_or(("", name));
    // Suffixes such as ` [aot]` and ` (3 classes)` are not part of the name.
    let end = rest.find([' ', '(', '[', '"', '/']).unwrap_or(rest.len());
    if rest[end..].starts_with(['"', '/']) {
        return None;
    }
    // A location in a library has no packages: `libart.so+0x1480`.
    let dots = rest[..end].match_indices('.');
    if dots.clone().count() < 2 || rest[..end].contains('+') {
        return None;
    }
    dots.map(|(at, _)| format!("{lead}…{}", &rest[at..]))
        .find(|form| text_width(form) <= room)
        .map(Cow::Owned)
}

/// Returns as many items of a remark as fit; items are separated by commas, arrows or wide gaps.
pub(crate) fn fitting(text: &str, room: usize) -> Option<String> {
    if text_width(text) <= room {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    let mut end = 0;
    for (at, _) in text.match_indices(' ') {
        if text_width(&text[..at]) + 2 > room {
            break;
        }
        let (before, behind) = (&text[..at], &text[at + 1..]);
        if before.ends_with([',', ';'])
            || behind.starts_with([' ', '←', '·'])
            || behind.starts_with("<-")
        {
            end = at;
        }
    }
    let is_mark =
        |c: char| !c.is_alphanumeric() && !matches!(c, ')' | ']' | '}' | '>' | '"' | '\'');
    let kept = text[..end].trim_end_matches(is_mark);
    (kept.contains(char::is_alphanumeric)).then(|| format!("{kept} …"))
}

/// Width from which a name is cut in a table. Names come from traces and mapping files, and one of a
/// megabyte hides all others. JSON and CSV have it whole.
const MAX_LENGTH: usize = 4096;

fn bounded(text: String) -> String {
    match text.len() > MAX_LENGTH {
        true => cut_end(&text, MAX_LENGTH),
        false => text,
    }
}

/// Truncates a text to `room`, anywhere: for drawings, and for cells of fixed width.
pub(crate) fn cut_end(text: &str, room: usize) -> String {
    if text_width(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let mut to = 0;
    for (at, c) in text.char_indices() {
        let width = text_width(c.encode_utf8(&mut [0; 4]));
        if width > left {
            break;
        }
        left -= width;
        to = at + c.len_utf8();
    }
    format!("{}…", &text[..to])
}

/// Prints below a table how many rows its limit hides; `what` ends their name. Nothing if none.
pub(crate) fn show_hidden(console: &Console, hidden: usize, what: &str) {
    if hidden > 0 {
        console.in_style(Style::Dim, hidden_rows(hidden, what));
    }
}

fn hidden_rows(hidden: usize, what: &str) -> String {
    let hidden = thousands(hidden as u64);
    format!("… and {hidden} more{what} (`-l 0` shows all)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Console {
        Console::from_raw_args(&["heaptap".into(), "--color=never".into()])
    }

    fn text(table: &Table, width: Option<usize>) -> String {
        table.lines(&plain(), width).join("\n")
    }

    #[test]
    fn narrow_terminals_do_without_the_least_telling_columns() {
        let mut table = Table::new(&["PSS", "private clean", "RSS", "kind"]);
        table.row(vec!["1".into(), "2".into(), "3".into()], "Stack");
        assert!(table.fit(80, &["private clean", "RSS"]).is_empty());
        assert_eq!(table.fit(30, &["private clean", "RSS"]), ["private clean"]);
        assert_eq!(text(&table, Some(30)), "PSS  RSS  kind\n  1    3  Stack");
    }

    #[test]
    fn figures_stand_to_the_right_and_names_lose_packages_but_no_letters() {
        let mut table = Table::new(&["count", "size", "class"]);
        table.row(
            vec!["1".into(), "12.0 KiB".into()],
            "java.util.concurrent.Listener",
        );
        table.remark("held by a very long path of references that matters at its end");
        table.row(vec!["12,345".into(), "8 B".into()], "A");
        table.lead("└ ");
        table.row(
            vec!["1".into(), "8 B".into()],
            "a.b.AVeryLongNameOfAClassOfJava",
        );
        assert_eq!(
            text(&table, None),
            " count      size  class\n     \
             1  12.0 KiB  java.util.concurrent.Listener  \
             held by a very long path of references that matters at its end\n\
             12,345       8 B  └ A\n     \
             1       8 B  a.b.AVeryLongNameOfAClassOfJava"
        );
        assert_eq!(
            text(&table, Some(40)),
            " count      size  class\n     \
             1  12.0 KiB  ….concurrent.Listener\n\
             12,345       8 B  └ A\n     \
             1       8 B\n    a.b.AVeryLongNameOfAClassOfJava"
        );
        assert_eq!(
            text(&table, Some(60)).lines().nth(1),
            Some("     1  12.0 KiB  java.util.concurrent.Listener")
        );
    }

    #[test]
    fn sentences_and_paths_that_have_no_room_stand_below_their_figures() {
        let mut table = Table::new(&["count", "reason, collector"]);
        table.row(vec!["1".into()], "NativeAlloc, concurrent mark compact");
        table.row(vec!["2".into()], "/data/user/0/com.example.app/a.db");
        assert_eq!(
            text(&table, Some(24)),
            "count  reason, collector\n    1\n    NativeAlloc,\n    concurrent mark\n    \
             compact\n    2\n    /data/user/0/com.example.app/a.db"
        );
    }

    #[test]
    fn a_name_of_a_megabyte_is_cut_without_a_terminal_too() {
        let mut table = Table::new(&["size", "function"]);
        table.row(vec!["1".into()], "é".repeat(1 << 20));
        table.remark("x".repeat(1 << 20));
        let shown = text(&table, None);
        assert!(
            shown.len() < 4 * MAX_LENGTH && shown.contains("éé…"),
            "{}",
            shown.len()
        );
    }

    #[test]
    fn remarks_that_matter_stand_below_where_there_is_no_room_beside() {
        let mut table = Table::new(&["size", "object, and what holds it"]).keeping_remarks();
        for remark in ["← a.B.c ← d.E.f", "← a.VeryLongName.c ← d.E.f", ""] {
            table.row(vec!["1".into()], "byte[]");
            table.remark(remark);
        }
        assert_eq!(
            text(&table, Some(26)),
            "size  object …\n   1  byte[]  ← a.B.c …\n   1  byte[]\n    \
             ← a.VeryLongName.c …\n   1  byte[]"
        );
    }

    #[test]
    fn names_of_code_keep_the_function_whole() {
        let mut table = Table::new(&["size", "function"]).of_code();
        table.row(
            vec!["1".into()],
            "a::Cache<std::map<int, long>>::insert(int, long)",
        );
        table.row(vec!["1".into()], "sqlite3MemMallocOfAVeryLongName");
        let lines = |width| table.lines(&plain(), Some(width));
        assert_eq!(lines(40)[1], "   1  a::Cache<…>::insert(int, long)");
        assert_eq!(lines(20)[1], "   1  …insert");
        assert_eq!(
            lines(20)[2..],
            ["   1", "    sqlite3MemMallocOfAVeryLongName"]
        );
    }

    #[test]
    fn line_ends_of_names_make_no_rows() {
        let mut table = Table::new(&["size", "class"]);
        table.row(vec!["1".into()], "a\nerror: b");
        table.remark("c\r\nd");
        assert_eq!(
            table.lines(&plain(), None)[1..],
            ["   1  a\\u{a}error: b  c\\u{d}\\u{a}d"]
        );
        // Of a pprof: the names of its values.
        let mut table = Table::new(&["o\nx", "class"]);
        table.row(vec!["1".into()], "a");
        assert_eq!(
            table.lines(&plain(), None),
            ["o\\u{a}x  class", "      1  a"]
        );
        let rows = [
            vec!["NAME".to_owned(), "B".to_owned()],
            vec!["x\ny".into(), "z".into()],
        ];
        assert_eq!(columns(&rows, &[]), ["NAME     B", "x\\u{a}y  z"]);
    }

    #[test]
    fn numbers_of_hidden_rows_have_separators() {
        let text = hidden_rows(12_345, " with smaller changes");
        assert_eq!(
            text,
            "… and 12,345 more with smaller changes (`-l 0` shows all)"
        );
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut_end("数据数据", 5), "数据…");
        assert_eq!(cut_end("abc", 3), "abc");
        assert_eq!(fitting("数据, 数据", 7).as_deref(), Some("数据 …"));
    }
}
