//! The table of a process and its Dalvik Details: rows of kB under two header lines and a line of
//! dashes. Columns are identified by their headers, never by the Android version, because vendors
//! add and remove columns.

use super::line::{self, Lines, Word};
use super::number;

/// Quantity in a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// `Pss Total`.
    Pss,
    PssClean,
    SharedDirty,
    PrivateDirty,
    SharedClean,
    PrivateClean,
    /// `Swap Dirty`, `Swapped Dirty`: swapped memory, if the kernel does not report the share.
    Swap,
    /// `SwapPss Dirty`: the process's share of swapped memory.
    SwapPss,
    /// `Rss Total`.
    Rss,
    HeapSize,
    HeapAlloc,
    HeapFree,
    /// Another column, with its header.
    Other(String),
}

impl Column {
    /// Returns the column for a header, whose lines are joined by a space.
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

    /// Returns the name for scripts: `pss`, `private_dirty`; for other columns the header.
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

    /// Returns the column for a [`Column::key`].
    pub fn of_key(key: &str) -> Column {
        match Column::named(&key.replace('_', " ")) {
            Column::Other(_) => Column::Other(key.to_owned()),
            known => known,
        }
    }

    /// Returns whether the figure comes from the allocator; only heaps have these.
    pub fn is_heap(&self) -> bool {
        matches!(
            self,
            Column::HeapSize | Column::HeapAlloc | Column::HeapFree
        )
    }
}

/// A column with its width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    pub column: Column,
    /// Width in characters.
    pub width: usize,
}

/// Columns of a table and their layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headings {
    /// Width of the row names.
    pub label_width: usize,
    pub columns: Vec<Heading>,
}

/// A row. Sizes are bytes; a cell is `None` if the device left it blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name printed by the device, such as `Native Heap`.
    pub label: String,
    /// One cell for each column.
    pub cells: Vec<Option<i64>>,
}

/// A table, or the Dalvik Details under the same columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub headings: Headings,
    /// Rows, including TOTAL.
    pub rows: Lines<Row>,
}

/// Maximum number of columns: Android has 12, and vendors add a few. Every row has a cell for each.
const MAX_COLUMNS: usize = 24;
/// Maximum length of a line of headers or pairs; the lines of a device have about 120 characters.
pub(super) const WIDEST: usize = 1024;

/// Returns whether this is the line of dashes below headers.
pub(super) fn is_dashes(line: &str) -> bool {
    if line.len() > WIDEST {
        return false;
    }
    let mut groups = 0;
    let dashes = line.split_ascii_whitespace().all(|word| {
        groups += 1;
        word.len() >= 3 && word.bytes().all(|byte| byte == b'-')
    });
    dashes && (3..=MAX_COLUMNS).contains(&groups)
}

impl Headings {
    /// Parses the header lines, of which the last one is dashes.
    pub(super) fn read(lines: &[&str]) -> Option<Headings> {
        let (dashes, above) = lines.split_last()?;
        let ends: Vec<usize> = line::words(dashes).iter().map(|word| word.end).collect();
        let (first, second) = (*ends.first()?, *ends.get(1)?);
        let label_width = first.checked_sub(second.checked_sub(first)?)?;
        let above: Vec<Vec<Word<'_>>> = above.iter().map(|line| line::words(line)).collect();
        let mut before = label_width;
        let mut columns = Vec::with_capacity(ends.len());
        for end in ends {
            let header: Vec<&str> = above
                .iter()
                .filter_map(|words| words.iter().find(|word| word.end == end))
                .map(|word| word.text)
                .collect();
            columns.push(Heading {
                column: Column::named(&header.join(" ")),
                width: end.checked_sub(before + 1)?,
            });
            before = end;
        }
        Some(Headings {
            label_width,
            columns,
        })
    }

    pub fn position(&self, column: &Column) -> Option<usize> {
        self.columns
            .iter()
            .position(|found| found.column == *column)
    }

    /// Parses a row.
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
        })
    }

    /// Returns the columns in which the numbers end. Returns `None` if they end elsewhere; then
    /// their order decides.
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
}

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(headings: Headings) -> Table {
        Table {
            headings,
            rows: Lines::default(),
        }
    }

    /// Parses the next line.
    pub(super) fn line(&mut self, text: &str) {
        match self.headings.row(text) {
            Some(row) => self.rows.push(row),
            None => self.rows.text(text),
        }
    }

    /// Returns the row with this name.
    pub fn row(&self, label: &str) -> Option<&Row> {
        self.rows.values().find(|row| row.label == label)
    }

    /// Returns a cell of a row.
    pub fn value(&self, row: &Row, column: &Column) -> Option<i64> {
        *row.cells.get(self.headings.position(column)?)?
    }

    /// Returns a cell; `None` if the row or column does not exist or the cell is blank.
    pub fn cell(&self, label: &str, column: &Column) -> Option<i64> {
        self.value(self.row(label)?, column)
    }

    /// Returns the rows without TOTAL.
    pub fn parts(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().filter(|row| row.label != "TOTAL")
    }

    /// Returns the device's own total.
    pub fn total(&self) -> Option<&Row> {
        self.rows.values().find(|row| row.label == "TOTAL")
    }

    /// Returns the total of a column: the device's total, otherwise the sum of the rows.
    pub fn total_of(&self, column: &Column) -> Option<i64> {
        let given = self.total().and_then(|row| self.value(row, column));
        given.or_else(|| self.sum_of(column))
    }

    /// Returns the sum of a column over the rows.
    pub fn sum_of(&self, column: &Column) -> Option<i64> {
        let at = self.headings.position(column)?;
        let cells = self.parts().filter_map(|row| *row.cells.get(at)?);
        Some(cells.fold(0, i64::saturating_add))
    }
}
