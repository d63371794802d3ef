//! The table of classes, packages, superclasses, heaps or loaders.

use crate::answer::{Page, Size, Table};
use crate::explorer::Explorer;
use heaptap_analyze::histogram::{HistogramKey, Row};
use serde::Serialize;
use std::cmp::Ordering;

/// Request for a part of the table.
#[derive(Debug, Clone)]
pub struct ClassQuery {
    /// What a row is.
    pub by: HistogramKey,
    pub sort: ClassSort,
    /// Smallest first, or for names Z first.
    pub reverse: bool,
    /// Text that names contain, in any case; empty for all.
    pub filter: String,
    pub page: Page,
}

/// Order of the rows; by name among equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassSort {
    Name,
    Count,
    Shallow,
    Native,
    Retained,
}

/// Group of reachable objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassRow {
    pub name: String,
    pub count: u64,
    pub shallow_bytes: u64,
    pub native_bytes: u64,
    /// Size of what would be freed with all of them.
    pub retained: Size,
}

impl From<&Row> for ClassRow {
    fn from(row: &Row) -> ClassRow {
        ClassRow {
            name: row.name.clone(),
            count: row.sums.count,
            shallow_bytes: row.sums.shallow_bytes,
            native_bytes: row.sums.native_bytes,
            retained: row.sums.retained.into(),
        }
    }
}

impl Explorer {
    /// Returns a part of the table. The numbers are those of `heaptap top`.
    pub fn classes(&self, query: &ClassQuery) -> Table<ClassRow> {
        let wanted = query.filter.to_lowercase();
        let rows = self.table(query.by).rows.iter();
        let mut rows: Vec<&Row> = rows
            .filter(|row| wanted.is_empty() || row.name.to_lowercase().contains(&wanted))
            .collect();
        let order = |a: &&Row, b: &&Row| compare(a, b, query.sort);
        match query.reverse {
            true => rows.sort_unstable_by(|a, b| order(b, a)),
            false => rows.sort_unstable_by(order),
        }
        Table {
            total: rows.len() as u64,
            rows: query
                .page
                .of(&rows)
                .iter()
                .map(|row| ClassRow::from(*row))
                .collect(),
        }
    }
}

fn compare(a: &Row, b: &Row, sort: ClassSort) -> Ordering {
    let figure = |row: &Row| match sort {
        ClassSort::Name => 0,
        ClassSort::Count => row.sums.count,
        ClassSort::Shallow => row.sums.shallow_bytes,
        ClassSort::Native => row.sums.native_bytes,
        ClassSort::Retained => row.sums.retained.total_bytes(),
    };
    figure(b).cmp(&figure(a)).then_with(|| a.name.cmp(&b.name))
}
