//! Pages, rows and sizes in answers.

use heaptap_model::heap_graph::Retained;
use serde::Serialize;

/// Part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Number of rows before it.
    pub offset: usize,
    /// Maximum number of its rows.
    pub limit: usize,
}

/// Maximum number of rows of a page.
pub const MAX_ROWS: usize = 500;

impl Page {
    /// All rows, for what is not a request from outside.
    pub const ALL: Page = Page {
        offset: 0,
        limit: usize::MAX,
    };

    /// Creates a part with at most [`MAX_ROWS`] rows.
    pub fn new(offset: usize, limit: usize) -> Page {
        Page {
            offset,
            limit: limit.min(MAX_ROWS),
        }
    }

    /// Returns the position after the last row.
    pub(crate) fn end(self) -> usize {
        self.offset.saturating_add(self.limit)
    }

    /// Returns the page with the same rows in a list of that length, counted from its end.
    pub(crate) fn reversed(self, rows: usize) -> Page {
        let end = rows.saturating_sub(self.offset);
        let offset = end.saturating_sub(self.limit);
        Page::new(offset, end - offset)
    }

    /// Returns the rows of the page among all rows.
    pub fn of<T>(self, rows: &[T]) -> &[T] {
        let start = self.offset.min(rows.len());
        &rows[start..self.end().min(rows.len())]
    }
}

/// Page of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table<T> {
    /// Number of rows on all pages.
    pub total: u64,
    pub rows: Vec<T>,
}

/// Bytes of Java objects, and native bytes that they own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Size {
    /// Number of objects.
    pub count: u64,
    pub java_bytes: u64,
    pub native_bytes: u64,
}

impl Size {
    /// Returns the bytes together.
    pub fn total_bytes(self) -> u64 {
        self.java_bytes.saturating_add(self.native_bytes)
    }
}

impl From<Retained> for Size {
    fn from(retained: Retained) -> Size {
        Size {
            count: retained.count,
            java_bytes: retained.bytes,
            native_bytes: retained.native_bytes,
        }
    }
}
