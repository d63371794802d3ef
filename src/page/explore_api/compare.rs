//! Comparison of the explored heap with an earlier one: that of `diff`, by parts.

use crate::heaps::java::diff::{DEPTH, DiffReport, NamedChange, Wanted};
use heaptap_analyze::filter::Filter;
use heaptap_explore::{ClassSort, Page, Table};
use std::cmp::Reverse;

/// Request for a part of the classes.
pub(super) struct ChangeQuery {
    pub(super) sort: ClassSort,
    /// Smallest growth first, or for names Z first.
    pub(super) reverse: bool,
    /// Text that names contain, in any case.
    pub(super) filter: String,
    pub(super) page: Page,
}

/// Returns what a comparison has: everything that changed.
pub(super) fn wanted(texts: bool) -> Wanted {
    Wanted {
        filter: Filter::default(),
        limit: usize::MAX,
        packages: false,
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
        ClassSort::Name => 0,
        ClassSort::Count => row.change.growth.count,
        ClassSort::Shallow => row.change.growth.shallow_bytes,
        ClassSort::Native => row.change.growth.native_bytes,
        ClassSort::Retained => row.change.growth.retained_total_bytes(),
    };
    rows.sort_by_key(|row| (Reverse(figure(row)), &row.name));
    if query.reverse {
        rows.reverse();
    }
    Table {
        total: rows.len() as u64,
        rows: query.page.of(&rows).to_vec(),
    }
}
