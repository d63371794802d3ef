//! Tables as written by SQLite's shell: all text in quotes, `[NULL]` for null.

use std::io::Read as _;
use std::path::Path;

/// A table: rows of cells by column name.
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

/// A row of a table.
#[derive(Clone, Copy)]
pub struct Row<'t> {
    table: &'t Table,
    cells: &'t [Option<String>],
}

impl Table {
    /// Reads a table, gzipped or not; `None` if the file does not exist.
    pub fn read(directory: &Path, name: &str) -> Option<Table> {
        let plain = directory.join(format!("{name}.csv"));
        let text = if plain.is_file() {
            std::fs::read_to_string(plain).expect("a table is UTF-8")
        } else {
            let file = std::fs::File::open(directory.join(format!("{name}.csv.gz"))).ok()?;
            let mut text = String::new();
            flate2::read::GzDecoder::new(file)
                .read_to_string(&mut text)
                .expect("a table inflates");
            text
        };
        let mut lines = text.lines();
        let columns = cells(lines.next()?);
        Some(Table {
            columns: columns
                .into_iter()
                .map(|name| name.expect("a name"))
                .collect(),
            rows: lines.map(cells).collect(),
        })
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { table: self, cells })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

impl<'t> Row<'t> {
    pub fn text(self, column: &str) -> Option<&'t str> {
        let at = self.table.columns.iter().position(|name| name == column);
        self.cells[at.unwrap_or_else(|| panic!("column {column}"))].as_deref()
    }

    pub fn number(self, column: &str) -> Option<i64> {
        Some(self.text(column)?.parse().expect("a number"))
    }

    /// Returns the row of another table that a column refers to.
    pub fn id(self, column: &str) -> Option<usize> {
        Some(self.number(column)? as usize)
    }
}

fn cells(line: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').expect("a closing quote");
                (&quoted[..end], &quoted[end + 1..])
            }
            None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
        };
        found.push((cell != "[NULL]").then(|| cell.to_owned()));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return found,
        }
    }
}
