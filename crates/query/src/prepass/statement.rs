//! Statements as they are prepared for SQLite, the macros that they call, and their refusal.

use std::collections::BTreeMap;

/// Statement refused or not understood before SQLite got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason, for the user.
    pub message: String,
    /// Next step for the user.
    pub help: Option<String>,
    /// Offset in the text.
    pub offset: usize,
}

impl Refusal {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            help: None,
            offset,
        }
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

/// Macro or SQL function: a piece of SQL with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    pub arguments: Vec<String>,
    /// Text, with `$name` in the place of an argument.
    pub body: String,
    /// A function is called as `name(…)` and expands to a `SELECT` in brackets; a macro is called
    /// as `name!(…)`.
    pub is_function: bool,
    /// The function returns a table, not one value.
    pub returns_table: bool,
    /// The macro does not have a text: its result is computed for each call.
    pub is_worked: bool,
}

/// Call of a macro that is computed before the statement runs. The statement reads the result from
/// a temporary table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkedCall {
    /// Name of the macro in lower case.
    pub name: String,
    /// Arguments, with calls in them expanded.
    pub arguments: Vec<String>,
    /// Name of the temporary table.
    pub table: String,
    /// `WITH` and the common tables before the call, which arguments can name; empty for none.
    pub with: String,
}

/// Macros and functions by their names in lower case.
pub type Macros = BTreeMap<String, Macro>;

/// Action of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Returns rows and changes nothing.
    Read,
    /// Creates a temporary table, view or index.
    Create {
        /// Set if an existing one is to be replaced.
        replacing: Option<Replacing>,
        /// It is a view: results of its macro calls are read whenever the view is.
        is_view: bool,
    },
    /// Drops a temporary table, view or index.
    Drop,
    /// Includes a module.
    Include(String),
    /// Defines a macro or function.
    Define(String, Macro),
}

/// Statements to run around a statement that replaces a table, view or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacing {
    /// Before it; empty for none.
    pub before: String,
    /// After it; empty for none.
    pub after: String,
}

/// Statement for SQLite.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub action: Action,
    /// SQL for SQLite; empty for [`Action::Include`] and [`Action::Define`].
    pub sql: String,
    /// Macro calls to compute first, in order.
    pub worked: Vec<WorkedCall>,
    /// Calls of functions, each expanded and as typed.
    pub(super) calls: Vec<(String, String)>,
    pub(super) origin: Vec<(usize, usize, bool)>,
}

impl Prepared {
    /// Creates a statement whose SQL is not typed; its errors point to the offset in the text.
    pub(super) fn written(action: Action, sql: String, offset: usize) -> Prepared {
        Prepared {
            action,
            sql,
            worked: Vec::new(),
            calls: Vec::new(),
            origin: vec![(0, offset, false)],
        }
    }

    /// Returns the name of a column with calls of functions as typed.
    pub fn column_name(&self, name: &str) -> String {
        let calls = self.calls.iter();
        calls.fold(name.to_owned(), |name, (sql, typed)| {
            name.replace(sql, typed)
        })
    }

    /// Maps an offset in [`Prepared::sql`] to the typed text.
    pub fn origin_of(&self, offset: usize) -> usize {
        let piece = self.origin.iter().rev().find(|piece| piece.0 <= offset);
        match piece {
            Some(&(start, from, true)) => from + (offset - start),
            Some(&(_, from, false)) => from,
            None => 0,
        }
    }
}
