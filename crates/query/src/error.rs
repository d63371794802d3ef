//! Errors of queries, with their position in the text.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Error, ErrorCode};

use super::listing::{Sort, TableInfo};
use super::prepass::{Refusal, help_for_function};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::suggest::nearest;
use heaptap_base::units::{ByteSize, HumanDuration};
use heaptap_base::untrusted::sanitize;

/// Failure of a query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A statement is invalid or refused.
    #[error("{message}")]
    Statement {
        /// Problem, as SQLite or heaptap words it.
        message: String,
        /// Position in the query, if known.
        place: Option<Place>,
        /// Next step for the user.
        help: Option<String>,
    },
    /// The statement was interrupted.
    #[error("the statement was interrupted")]
    Interrupted,
    /// The statement reached the time limit.
    #[error("the statement exceeded the time limit of {}", HumanDuration(*time))]
    TooLong {
        /// Time limit.
        time: Duration,
    },
    /// The statement, or setting up the tables, reached the memory limit.
    #[error("the query exceeded the memory limit of {}", ByteSize(*memory_bytes))]
    TooMuch {
        /// Memory limit.
        memory_bytes: u64,
    },
    /// The copy could not be written.
    #[error("cannot write the copy: {0}")]
    Copy(String),
    /// The tables of the catalog could not be set up.
    #[error("cannot set up the tables: {0}")]
    Setup(String),
}

/// Position in the text of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line, cut to the part around the position and sanitized for a terminal.
    pub text: String,
    /// Offset of the position in [`Place::text`], in characters from 0.
    pub caret: usize,
}

/// Characters of the line shown on each side of the position.
const AROUND: usize = 60;

impl Place {
    /// Returns the position of a byte offset in a text.
    pub fn new(sql: &str, offset: usize) -> Place {
        let mut offset = offset.min(sql.len());
        while !sql.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = sql[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = sql[offset..].find('\n').map_or(sql.len(), |at| offset + at);
        let column = sql[start..offset].chars().count();
        let from = column.saturating_sub(AROUND);
        let line: String = sql[start..end]
            .chars()
            .skip(from)
            .take(2 * AROUND)
            .collect();
        let before: String = line.chars().take(column - from).collect();
        Place {
            line: sql[..offset].matches('\n').count() + 1,
            column: column + 1,
            text: sanitize(line.trim_end()).replace('\t', " "),
            caret: sanitize(&before).chars().count(),
        }
    }

    fn describe(&self) -> Vec<String> {
        vec![
            format!("  {}", self.text),
            format!(
                "  {}^ line {}, column {}",
                " ".repeat(self.caret),
                self.line,
                self.column
            ),
        ]
    }
}

/// Beginnings of messages of SQLite.
const NO_TABLE: &str = "no such table: ";
const NO_COLUMN: &str = "no such column: ";

/// Returns the help for an unknown name, which can follow the name of a table or schema.
fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>, list: &str) -> String {
    let word = typed.rsplit('.').next().unwrap_or(typed);
    match nearest(word, names) {
        Some(name) => format!("did you mean `{name}`? {list}"),
        None => list.to_owned(),
    }
}

impl QueryError {
    pub(super) fn setup(error: Error, memory_bytes: u64) -> QueryError {
        match error.sqlite_error_code() {
            Some(ErrorCode::OutOfMemory) => QueryError::TooMuch { memory_bytes },
            _ => QueryError::Setup(error.to_string()),
        }
    }

    pub(super) fn refused(refusal: Refusal, sql: &str) -> QueryError {
        QueryError::Statement {
            place: Some(Place::new(sql, refusal.offset)),
            message: refusal.message,
            help: refusal.help,
        }
    }

    pub(super) fn no_module(
        module: &str,
        offset: usize,
        sql: &str,
        known: &BTreeSet<&'static str>,
    ) -> QueryError {
        let known: Vec<&str> = known.iter().copied().collect();
        QueryError::Statement {
            message: format!("no such module: {}", sanitize(module)),
            place: Some(Place::new(sql, offset)),
            help: Some(format!("available modules: {}", known.join(", "))),
        }
    }

    /// Converts an error of SQLite. `origin` maps offsets in the statement to the typed text. `known`
    /// has the names that a misspelled one can stand for.
    pub(super) fn of_sqlite(
        error: Error,
        origin: impl Fn(usize) -> usize,
        sql: &str,
        known: &[TableInfo],
    ) -> QueryError {
        let (message, offset) = match error {
            Error::SqlInputError { msg, offset, .. } => (msg, usize::try_from(offset).ok()),
            Error::SqliteFailure(_, Some(message)) => (message, None),
            Error::ModuleError(message) => (message, None),
            other => (other.to_string(), None),
        };
        let help = match () {
            () if message.starts_with(NO_TABLE) => {
                let is_table = |table: &&TableInfo| matches!(table.sort, Sort::Table | Sort::View);
                let tables = known.iter().filter(is_table);
                let names = tables.map(|table| table.name.as_str());
                let list = "`.tables` in place of the statement lists tables and views";
                Some(did_you_mean(&message[NO_TABLE.len()..], names, list))
            }
            () if message.starts_with(NO_COLUMN) => {
                // Others do not have the column.
                let sql = sql.to_ascii_lowercase();
                let is_named = |table: &&TableInfo| sql.contains(&table.name.to_ascii_lowercase());
                let named = known.iter().filter(is_named);
                let columns = named.flat_map(|table| &table.columns);
                let names = columns.map(|column| column.name.as_str());
                let list = "`.schema TABLE` in place of the statement lists its columns";
                Some(did_you_mean(&message[NO_COLUMN.len()..], names, list))
            }
            () if message.starts_with("no such function: ") => {
                let name = &message["no such function: ".len()..];
                Some(help_for_function(name).to_owned())
            }
            () if message.contains("not authorized") => {
                Some("use only statements that read or create temporary tables".to_owned())
            }
            () => None,
        };
        QueryError::Statement {
            message: sanitize(&message).into_owned(),
            place: offset.map(|offset| Place::new(sql, origin(offset))),
            help,
        }
    }
}

impl Classified for QueryError {
    fn facts(&self) -> ErrorFacts {
        match self {
            QueryError::Statement { place, help, .. } => ErrorFacts {
                excerpt: place.as_ref().map(Place::describe).unwrap_or_default(),
                help: help.clone(),
                ..ErrorFacts::new(ErrorClass::Usage, "sql")
            },
            QueryError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
            QueryError::TooLong { .. } => ErrorFacts::new(ErrorClass::Budget, "query-time")
                .with_help(
                    "find slow loops with `EXPLAIN QUERY PLAN` or raise the limit with `--timeout`",
                ),
            QueryError::TooMuch { .. } => ErrorFacts::new(ErrorClass::Budget, "query-memory")
                .with_help("select fewer rows or columns, or raise the limit with `--memory`"),
            QueryError::Copy(_) => ErrorFacts::new(ErrorClass::HostWrite, "query-copy"),
            QueryError::Setup(_) => ErrorFacts::new(ErrorClass::Bug, "query-setup"),
        }
    }
}
