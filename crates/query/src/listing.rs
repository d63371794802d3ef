//! Tables, views, functions and macros of a database, as listed for users.

use super::table::{Access, Schema};

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

impl TableInfo {
    /// Describes a table, or a function that returns one.
    pub(super) fn new(schema: &Schema, sort: Sort) -> TableInfo {
        let columns = schema.columns.iter().map(|column| ColumnInfo {
            name: column.name.to_owned(),
            kind: column.kind.sql().to_owned(),
            about: column.about,
            hidden: column.hidden,
            is_key: !matches!(column.access, Access::Scan | Access::Argument),
        });
        TableInfo {
            name: schema.name.to_owned(),
            sort,
            module: schema.module,
            about: schema.about,
            columns: columns.collect(),
        }
    }

    /// Describes a macro, or a function of values.
    pub(super) fn call(
        name: &str,
        about: &'static str,
        arguments: &[impl AsRef<str>],
        sort: Sort,
        module: Option<&'static str>,
    ) -> TableInfo {
        let arguments = arguments.iter().map(|name| ColumnInfo {
            name: name.as_ref().to_owned(),
            kind: String::new(),
            about: "",
            hidden: true,
            is_key: false,
        });
        TableInfo {
            name: name.to_owned(),
            sort,
            module,
            about,
            columns: arguments.collect(),
        }
    }
}
