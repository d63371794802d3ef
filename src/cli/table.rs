//! Tables of figures with a name at the end: figures to the right, the name cut to what the
//! terminal has left: of classes and processes the end is kept, of what begins with what matters
//! the beginning. Where stdout is no terminal, names stay whole.

use std::fmt::Write as _;

use super::console::{Console, Style};
use crate::analyze::native::scope;

/// A table under construction.
pub(super) struct Table {
    headings: Vec<String>,
    rows: Vec<Row>,
    is_of_code: bool,
    begins: bool,
}

struct Row {
    figures: Vec<String>,
    /// What stands before the name: branches of a tree.
    lead: String,
    name: String,
    /// Said behind the name, where there is room.
    remark: String,
    style: Option<Style>,
}

/// Names are not cut to less than this.
const NARROWEST_NAME: usize = 16;

impl Table {
    /// A table with these headings, the last of them the name's.
    pub(super) fn new(headings: &[&str]) -> Table {
        Table {
            headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
            rows: Vec::new(),
            is_of_code: false,
            begins: false,
        }
    }

    /// Its names are those of functions: of long ones parameters, template arguments and scopes
    /// go before anything is cut.
    pub(super) fn of_code(self) -> Table {
        Table {
            is_of_code: true,
            ..self
        }
    }

    /// Of its names the beginning matters: they are cut at their end.
    pub(super) fn of_beginnings(self) -> Table {
        Table {
            begins: true,
            ..self
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, figures: Vec<String>, name: impl Into<String>) {
        self.rows.push(Row {
            figures,
            lead: String::new(),
            name: name.into(),
            remark: String::new(),
            style: None,
        });
    }

    /// Puts branches before the last row's name.
    pub(super) fn lead(&mut self, lead: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.lead = lead.into();
        }
    }

    /// Says something behind the last row's name.
    pub(super) fn remark(&mut self, remark: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.remark = remark.into();
        }
    }

    /// Gives the last row's name a style.
    pub(super) fn style(&mut self, style: Style) {
        if let Some(row) = self.rows.last_mut() {
            row.style = Some(style);
        }
    }

    /// How wide its columns of figures are.
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

    /// Takes out columns of `least`, the first of them first, until the rest and a name have
    /// room; gives their headings.
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

    /// The lines, at most `width` columns wide; as wide as names are without.
    pub(super) fn render(&self, console: &Console, width: Option<usize>) -> String {
        let figures = self.headings.len() - 1;
        let widths = self.widths();
        let taken: usize = widths.iter().map(|width| width + 2).sum();
        let room = width.map_or(usize::MAX, |width| {
            width.saturating_sub(taken).max(NARROWEST_NAME)
        });
        let mut text = String::new();
        let mut heading = String::new();
        for (cell, &width) in self.headings.iter().zip(&widths) {
            let _ = write!(heading, "{}{cell}  ", blanks(width, cell));
        }
        heading += &self.headings[figures];
        let _ = write!(text, "{}", console.styled(Style::Dim, heading));
        for row in &self.rows {
            text.push('\n');
            for (cell, &width) in row.figures.iter().zip(&widths) {
                let _ = write!(text, "{}{cell}  ", blanks(width, cell));
            }
            let lead = cut_end(&row.lead, room.saturating_sub(NARROWEST_NAME / 2));
            let left = room.saturating_sub(text_width(&lead));
            let name = match (self.is_of_code, self.begins) {
                (true, _) => shorten(&row.name, left),
                (false, true) => cut_end(&row.name, left),
                (false, false) => cut_front(&row.name, left),
            };
            let _ = write!(text, "{}", console.styled(Style::Dim, &lead));
            match row.style {
                Some(style) => {
                    let _ = write!(text, "{}", console.styled(style, &name));
                }
                None => text += &name,
            }
            let left = left.saturating_sub(text_width(&name) + 2);
            if !row.remark.is_empty() && left >= NARROWEST_NAME {
                let remark = cut_end(&row.remark, left);
                let _ = write!(text, "  {}", console.styled(Style::Dim, remark));
            }
            text.truncate(text.trim_end_matches(' ').len());
        }
        text
    }
}

/// Prints a table without the columns of `least` that a narrow terminal has no room for, in their
/// order, and says which are left out. Figures that break over lines tell nobody anything.
pub(super) fn show_fitting(console: &Console, table: &mut Table, least: &[&str]) {
    show_fitting_at(console, table, least, 0, ", --csv and --json");
}

/// As `show_fitting`, so many columns from the left; `elsewhere` names what else has all of it.
pub(super) fn show_fitting_at(
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
    for line in table.render(console, width).lines() {
        console.data(format_args!("{blank}{line}"));
    }
    if !left_out.is_empty() {
        let said = format!(
            "{blank}no room for {}: a wider terminal, a pipe{elsewhere} have all",
            left_out.join(", ")
        );
        console.data(console.styled(Style::Dim, said));
    }
}

fn text_width(text: &str) -> usize {
    console::measure_text_width(text)
}

fn blanks(width: usize, text: &str) -> String {
    " ".repeat(width.saturating_sub(text_width(text)))
}

/// The longest form of a function's name that has room; of the shortest its end.
fn shorten(name: &str, room: usize) -> String {
    let mut shortest = name.to_owned();
    for form in scope::shortened(name) {
        if text_width(&form) <= room {
            return form.into_owned();
        }
        shortest = form.into_owned();
    }
    cut_front(&shortest, room)
}

/// The end of a text that is wider than `room`: of a class name what matters.
pub(super) fn cut_front(text: &str, room: usize) -> String {
    if text_width(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let mut from = text.len();
    for (at, c) in text.char_indices().rev() {
        let width = text_width(c.encode_utf8(&mut [0; 4]));
        if width > left {
            break;
        }
        left -= width;
        from = at;
    }
    format!("…{}", &text[from..])
}

/// The beginning of a text that is wider than `room`.
pub(super) fn cut_end(text: &str, room: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Console {
        Console::from_raw_args(&["heaptap".into(), "--color=never".into()])
    }

    #[test]
    fn narrow_terminals_do_without_the_least_telling_columns() {
        let mut table = Table::new(&["PSS", "private clean", "RSS", "kind"]);
        table.row(vec!["1".into(), "2".into(), "3".into()], "Stack");
        assert!(table.fit(80, &["private clean", "RSS"]).is_empty());
        assert_eq!(table.fit(30, &["private clean", "RSS"]), ["private clean"]);
        let text = table.render(&plain(), Some(30));
        assert_eq!(text, "PSS  RSS  kind\n  1    3  Stack");
    }

    #[test]
    fn figures_stand_to_the_right_and_names_are_cut_in_front() {
        let mut table = Table::new(&["count", "size", "class"]);
        table.row(
            vec!["1".into(), "12.0 KiB".into()],
            "java.util.concurrent.Listener",
        );
        table.remark("held by a very long path of references that matters at its end");
        table.row(vec!["12,345".into(), "8 B".into()], "A");
        table.lead("└ ");
        assert_eq!(
            table.render(&plain(), None),
            " count      size  class\n     \
             1  12.0 KiB  java.util.concurrent.Listener  \
             held by a very long path of references that matters at its end\n\
             12,345       8 B  └ A"
        );
        let narrow = table.render(&plain(), Some(40));
        for line in narrow.lines() {
            assert!(text_width(line) <= 40, "{line:?}");
        }
        assert!(narrow.contains("…l.concurrent.Listener"), "{narrow}");
    }

    #[test]
    fn names_that_begin_with_what_matters_keep_their_beginning() {
        let mut table = Table::new(&["count", "reason, collector"]).of_beginnings();
        table.row(vec!["1".into()], "NativeAlloc, concurrent mark compact");
        let narrow = table.render(&plain(), Some(24));
        assert!(narrow.ends_with("    1  NativeAlloc, con…"), "{narrow}");
        assert!(
            narrow.lines().all(|line| text_width(line) <= 24),
            "{narrow}"
        );
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut_front("数据数据", 5), "…数据");
        assert_eq!(cut_end("数据数据", 5), "数据…");
        assert_eq!(cut_front("abc", 3), "abc");
        assert_eq!(cut_front("abcd", 3), "…cd");
    }
}
