//! Value columns of a table: a heading each, and what a row shows below it.

use super::table::Table;

type Cell<'c, R> = Box<dyn Fn(&R) -> String + 'c>;

/// Value columns for rows of the type `R`.
pub(crate) struct Columns<'c, R>(Vec<(&'c str, Cell<'c, R>)>);

impl<'c, R> Columns<'c, R> {
    pub(crate) fn new() -> Self {
        Columns(Vec::new())
    }

    /// Adds a column.
    pub(crate) fn with(mut self, heading: &'c str, cell: impl Fn(&R) -> String + 'c) -> Self {
        self.0.push((heading, Box::new(cell)));
        self
    }

    /// Adds a column if `is_shown`.
    pub(crate) fn with_if(
        self,
        is_shown: bool,
        heading: &'c str,
        cell: impl Fn(&R) -> String + 'c,
    ) -> Self {
        if is_shown {
            self.with(heading, cell)
        } else {
            self
        }
    }

    pub(crate) fn headings(&self) -> impl Iterator<Item = &'c str> {
        self.0.iter().map(|(heading, _)| *heading)
    }

    /// Creates a table with these columns and a last one for names.
    pub(crate) fn table(&self, names: &str) -> Table {
        let headings: Vec<&str> = self.headings().chain([names]).collect();
        Table::new(&headings)
    }

    /// Returns the values of a row.
    pub(crate) fn values(&self, row: &R) -> Vec<String> {
        self.0.iter().map(|(_, cell)| cell(row)).collect()
    }
}
