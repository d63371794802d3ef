//! Comparison of the explored heap with an earlier one: that of `diff`, by parts.

use crate::analyze::filter::Filter;
use crate::explore::{Page, Table};
use crate::heaps::java::diff::{DEPTH, DiffReport, NamedChange, Wanted};
use std::cmp::Reverse;

/// Order of the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSort {
    Name,
    Count,
    Shallow,
    Native,
    Retained,
}

/// Request for a part of the classes.
pub(super) struct ChangeQuery {
    pub(super) sort: ChangeSort,
    /// Smallest growth first.
    pub(super) is_reverse: bool,
    /// Text that names contain, in any case.
    pub(super) filter: String,
    pub(super) page: Page,
}

/// Returns what a comparison has: everything that changed.
pub(super) fn wanted(texts: bool) -> Wanted {
    Wanted {
        filter: Filter::default(),
        limit: 0,
        unchanged: false,
        least: None,
        depth: DEPTH,
        texts,
    }
}

/// Returns a part of the classes that changed.
pub(super) fn classes<'r>(report: &'r DiffReport, query: &ChangeQuery) -> Table<&'r NamedChange> {
    let wanted = query.filter.to_lowercase();
    let rows = report.classes.iter();
    let mut rows: Vec<&NamedChange> = rows
        .filter(|row| row.name.to_lowercase().contains(&wanted))
        .collect();
    let figure = |row: &NamedChange| match query.sort {
        ChangeSort::Name => 0,
        ChangeSort::Count => row.change.growth.count,
        ChangeSort::Shallow => row.change.growth.shallow_bytes,
        ChangeSort::Native => row.change.growth.native_bytes,
        ChangeSort::Retained => row.change.retained_growth(),
    };
    rows.sort_by_key(|row| (Reverse(figure(row)), &row.name));
    if query.is_reverse {
        rows.reverse();
    }
    Table {
        total: rows.len() as u64,
        rows: query.page.of(&rows).to_vec(),
    }
}
