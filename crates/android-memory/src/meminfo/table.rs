//! The table of a process and its Dalvik Details: rows of kB under two lines of headers and a
//! line of dashes. Columns are known by their headers, never by the Android version: vendors
//! add and leave out.

use super::line::{self, Lines, Word};
use super::number::{self, Digits};

/// What a column counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// `Pss Total`.
    Pss,
    /// `Pss Clean`.
    PssClean,
    /// `Shared Dirty`.
    SharedDirty,
    /// `Private Dirty`.
    PrivateDirty,
    /// `Shared Clean`.
    SharedClean,
    /// `Private Clean`.
    PrivateClean,
    /// `Swap Dirty`, `Swapped Dirty`: swapped out, where the kernel knows no share.
    Swap,
    /// `SwapPss Dirty`: the process's share of what is swapped out.
    SwapPss,
    /// `Rss Total`.
    Rss,
    /// `Heap Size`.
    HeapSize,
    /// `Heap Alloc`.
    HeapAlloc,
    /// `Heap Free`.
    HeapFree,
    /// Another one, by its header.
    Other(String),
}

impl Column {
    /// The column under a header, its lines joined by a space.
    pub fn named(header: &str) -> Column {
        match header.to_ascii_lowercase().as_str() {
            "pss" | "pss total" => Column::Pss,
            "pss clean" => Column::PssClean,
            "shared dirty" => Column::SharedDirty,
            "private dirty" => Column::PrivateDirty,
            "shared clean" => Column::SharedClean,
            "private clean" => Column::PrivateClean,
            "swap" | "swap dirty" | "swapped dirty" => Column::Swap,
            "swappss" | "swappss dirty" | "swap pss" => Column::SwapPss,
            "rss" | "rss total" => Column::Rss,
            "heap size" => Column::HeapSize,
            "heap alloc" => Column::HeapAlloc,
            "heap free" => Column::HeapFree,
            _ => Column::Other(header.to_owned()),
        }
    }

    /// Its name for scripts: `pss`, `private_dirty`; another one's header.
    pub fn key(&self) -> &str {
        match self {
            Column::Pss => "pss",
            Column::PssClean => "pss_clean",
            Column::SharedDirty => "shared_dirty",
            Column::PrivateDirty => "private_dirty",
            Column::SharedClean => "shared_clean",
            Column::PrivateClean => "private_clean",
            Column::Swap => "swap",
            Column::SwapPss => "swap_pss",
            Column::Rss => "rss",
            Column::HeapSize => "heap_size",
            Column::HeapAlloc => "heap_alloc",
            Column::HeapFree => "heap_free",
            Column::Other(name) => name,
        }
    }

    /// The column that [`Column::key`] names.
    pub fn of_key(key: &str) -> Column {
        const KNOWN: [Column; 12] = [
            Column::Pss,
            Column::PssClean,
            Column::SharedDirty,
            Column::PrivateDirty,
            Column::SharedClean,
            Column::PrivateClean,
            Column::Swap,
            Column::SwapPss,
            Column::Rss,
            Column::HeapSize,
            Column::HeapAlloc,
            Column::HeapFree,
        ];
        let known = KNOWN.into_iter().find(|column| column.key() == key);
        known.unwrap_or_else(|| Column::Other(key.to_owned()))
    }

    /// Whether it is one of the allocator's own figures, which only heaps have.
    pub fn is_heap(&self) -> bool {
        matches!(
            self,
            Column::HeapSize | Column::HeapAlloc | Column::HeapFree
        )
    }
}

/// A column with its header and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// What it counts.
    pub column: Column,
    /// The lines of its header, from above.
    pub words: Vec<String>,
    /// How wide it is.
    pub width: usize,
}

/// The columns of a table, and how it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headings {
    /// How wide the names of rows are.
    pub label_width: usize,
    /// The columns.
    pub columns: Vec<Heading>,
}

/// A row. Sizes in bytes; a cell is `None` where the phone left it blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As the phone names it, such as `Native Heap`.
    pub label: String,
    /// One for each column.
    pub cells: Vec<Option<i64>>,
    /// Whether blank cells at its end are printed as spaces.
    pub padded: bool,
    /// The digits that it is printed in.
    pub digits: Digits,
}

/// A table, or the Dalvik Details under the same columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its columns.
    pub headings: Headings,
    /// Its rows, the TOTAL among them.
    pub rows: Lines<Row>,
}

/// Columns of a table: Android has 12, vendors add a few. Every row has a cell for each.
const MOST_COLUMNS: usize = 24;
/// Columns of text that a line of headers or pairs may take: rows are printed as wide as these.
pub(super) const WIDEST: usize = 1024;

/// Whether this is the line of dashes below headers.
pub(super) fn is_dashes(line: &str) -> bool {
    if line.len() > WIDEST {
        return false;
    }
    let mut groups = 0;
    let dashes = line.split_ascii_whitespace().all(|word| {
        groups += 1;
        word.len() >= 3 && word.bytes().all(|byte| byte == b'-')
    });
    dashes && (3..=MOST_COLUMNS).contains(&groups)
}

impl Headings {
    /// Reads the header lines, the one of dashes last.
    pub(super) fn read(lines: &[&str]) -> Option<Headings> {
        let (dashes, above) = lines.split_last()?;
        let ends: Vec<usize> = line::words(dashes).iter().map(|word| word.end).collect();
        let (first, second) = (*ends.first()?, *ends.get(1)?);
        let label_width = first.checked_sub(second.checked_sub(first)?)?;
        let above: Vec<Vec<Word<'_>>> = above.iter().map(|line| line::words(line)).collect();
        let mut before = label_width;
        let mut columns = Vec::with_capacity(ends.len());
        for end in ends {
            let words: Vec<String> = above
                .iter()
                .map(|words| {
                    let found = words.iter().find(|word| word.end == end);
                    found.map_or(String::new(), |word| word.text.to_owned())
                })
                .collect();
            let header: Vec<&str> = words
                .iter()
                .map(String::as_str)
                .filter(|word| !word.is_empty())
                .collect();
            columns.push(Heading {
                column: Column::named(&header.join(" ")),
                words,
                width: end.checked_sub(before + 1)?,
            });
            before = end;
        }
        Some(Headings {
            label_width,
            columns,
        })
    }

    /// The header lines as they are printed.
    pub(super) fn print(&self) -> Vec<String> {
        let levels = self.columns.first().map_or(0, |column| column.words.len());
        let print = |word: &dyn Fn(&Heading) -> String| {
            let words: Vec<String> = self.columns.iter().map(word).collect();
            let cells = self.columns.iter().map(|column| column.width);
            let cells = cells.zip(words.iter().map(String::as_str));
            line::fields(std::iter::once((self.label_width, "")).chain(cells))
        };
        let mut lines: Vec<String> = (0..levels)
            .map(|level| print(&|column| column.words.get(level).cloned().unwrap_or_default()))
            .collect();
        lines.push(print(&|_| "------".to_owned()));
        lines
    }

    /// Where a column stands.
    pub fn position(&self, column: &Column) -> Option<usize> {
        self.columns
            .iter()
            .position(|found| found.column == *column)
    }

    /// Reads a row.
    pub(super) fn row(&self, text: &str) -> Option<Row> {
        let words = line::words(text);
        let mut numbers = Vec::new();
        let mut script = None;
        for word in words.iter().rev().take(self.columns.len()) {
            let Some((kb, digits)) = number::integer(word.text) else {
                break;
            };
            if *script.get_or_insert(digits) != digits {
                return None;
            }
            numbers.push((number::bytes(kb)?, *word));
        }
        numbers.reverse();
        let label = text[..numbers.first()?.1.from].trim();
        if label.is_empty() {
            return None;
        }
        let mut cells = vec![None; self.columns.len()];
        let places = self.places(label, &numbers);
        for (at, (value, _)) in numbers.iter().enumerate() {
            let place = places.as_ref().map_or(at, |places| places[at]);
            *cells.get_mut(place)? = Some(*value);
        }
        Some(Row {
            label: label.to_owned(),
            cells,
            padded: text.ends_with(' '),
            digits: script?,
        })
    }

    /// The columns in which numbers end; `None` where they stand elsewhere, and go by order.
    fn places(&self, label: &str, numbers: &[(i64, Word<'_>)]) -> Option<Vec<usize>> {
        let pushed = label.chars().count().saturating_sub(self.label_width);
        let mut ends = Vec::with_capacity(self.columns.len());
        let mut end = self.label_width;
        for column in &self.columns {
            end = end.saturating_add(column.width + 1);
            ends.push(end);
        }
        numbers
            .iter()
            .map(|(_, word)| ends.binary_search(&word.end.checked_sub(pushed)?).ok())
            .collect()
    }

    /// A row as it is printed.
    pub(super) fn print_row(&self, row: &Row) -> String {
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| cell.map_or(String::new(), |bytes| row.digits.write(bytes / 1024)))
            .collect();
        let shown = match row.padded {
            true => cells.len(),
            false => row
                .cells
                .iter()
                .rposition(Option::is_some)
                .map_or(0, |at| at + 1),
        };
        let widths = self.columns.iter().map(|column| column.width);
        let cells = widths.zip(cells.iter().map(String::as_str)).take(shown);
        line::fields(std::iter::once((self.label_width, row.label.as_str())).chain(cells))
    }
}

impl Table {
    /// A table without rows.
    pub(super) fn new(headings: Headings) -> Table {
        Table {
            headings,
            rows: Lines::default(),
        }
    }

    /// Reads one more line.
    pub(super) fn line(&mut self, text: &str) {
        match self.headings.row(text) {
            Some(row) => {
                let printed = self.headings.print_row(&row);
                self.rows.push(row, &printed, text);
            }
            None => self.rows.text(text),
        }
    }

    pub(super) fn write_rows(&self, out: &mut Vec<String>) {
        self.rows.write(out, |row| self.headings.print_row(row));
    }

    /// The row of this name.
    pub fn row(&self, label: &str) -> Option<&Row> {
        self.rows.values().find(|row| row.label == label)
    }

    /// A cell of a row.
    pub fn value(&self, row: &Row, column: &Column) -> Option<i64> {
        *row.cells.get(self.headings.position(column)?)?
    }

    /// A cell; `None` where there is no such row or column, or the cell is blank.
    pub fn cell(&self, label: &str, column: &Column) -> Option<i64> {
        self.value(self.row(label)?, column)
    }

    /// The rows without the TOTAL.
    pub fn parts(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().filter(|row| row.label != "TOTAL")
    }

    /// The device's own total.
    pub fn total(&self) -> Option<&Row> {
        self.rows.values().find(|row| row.label == "TOTAL")
    }

    /// The total of a column: the device's, or the sum where it gives none.
    pub fn total_of(&self, column: &Column) -> Option<i64> {
        let given = self.total().and_then(|row| self.value(row, column));
        given.or_else(|| self.sum_of(column))
    }

    /// The sum of a column over the rows.
    pub fn sum_of(&self, column: &Column) -> Option<i64> {
        let at = self.headings.position(column)?;
        let cells = self.parts().filter_map(|row| *row.cells.get(at)?);
        Some(cells.fold(0, i64::saturating_add))
    }
}
