//! Tables, views, functions and macros of a database, as listed for users.

/// Kind of a catalog entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Table,
    /// A view of heaptap or of Perfetto's library.
    View,
    /// A function that returns a table or a value.
    Function,
    /// A macro, called as `name!(…)`.
    Macro,
    /// A table or view that a statement created.
    Temporary,
}

/// Column as listed for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    pub name: String,
    /// Declared type; empty for columns of views.
    pub kind: String,
    /// Meaning; empty if it is not documented.
    pub about: &'static str,
    /// Not part of `SELECT *`: the column is an argument.
    pub hidden: bool,
    /// Rows can be found by this column without a scan.
    pub is_key: bool,
}

impl ColumnInfo {
    /// Describes an argument of a macro.
    pub(super) fn argument(name: &&str) -> ColumnInfo {
        ColumnInfo {
            name: (*name).to_owned(),
            kind: String::new(),
            about: "",
            hidden: true,
            is_key: false,
        }
    }
}

/// Table, view, function or macro as listed for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    pub name: String,
    pub sort: Sort,
    /// Module of Perfetto's library that defines it.
    pub module: Option<&'static str>,
    /// Contents, in one sentence.
    pub about: &'static str,
    /// Columns of a table, or arguments of a macro.
    pub columns: Vec<ColumnInfo>,
}
