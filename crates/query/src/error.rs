//! What can go wrong with a query, in words and with the place in the text.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::Error;

use super::prepass::Refusal;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::units::{ByteSize, HumanDuration};
use heaptap_model::untrusted::sanitize;

/// A query that failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A statement is wrong or refused.
    #[error("{message}")]
    Statement {
        /// Why.
        message: String,
        /// Where, if it is known.
        place: Option<Place>,
        /// What to do about it.
        help: Option<String>,
    },
    /// It was interrupted.
    #[error("the statement was interrupted")]
    Interrupted,
    /// It ran for longer than it may.
    #[error("the statement ran for more than {}", HumanDuration(*time))]
    TooLong {
        /// What was allowed.
        time: Duration,
    },
    /// It wanted more memory than it may have.
    #[error("the statement wants more than {} of memory", ByteSize(*memory_bytes))]
    TooMuch {
        /// What was allowed.
        memory_bytes: u64,
    },
    /// The copy could not be written.
    #[error("cannot write the copy: {0}")]
    Copy(String),
    /// Our own tables could not be set up.
    #[error("the tables could not be set up: {0}")]
    Setup(String),
}

/// A place in the text of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line, as far as it is worth showing, made safe for a terminal.
    pub text: String,
    /// Where in [`Place::text`] the place is, in characters from 0.
    pub caret: usize,
}

/// Characters of a line that are shown on each side of a place.
const AROUND: usize = 60;

impl Place {
    /// The place of a byte of a text.
    pub fn of(sql: &str, offset: usize) -> Place {
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

impl QueryError {
    pub(super) fn setup(error: Error) -> QueryError {
        QueryError::Setup(error.to_string())
    }

    pub(super) fn refused(refusal: Refusal, sql: &str) -> QueryError {
        QueryError::Statement {
            place: Some(Place::of(sql, refusal.offset)),
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
            message: format!("there is no module {}", sanitize(module)),
            place: Some(Place::of(sql, offset)),
            help: Some(format!("there are {}", known.join(", "))),
        }
    }

    /// What SQLite said of a statement whose offsets `origin` takes back to the typed text.
    pub(super) fn of_sqlite(
        error: Error,
        origin: impl Fn(usize) -> usize,
        sql: &str,
    ) -> QueryError {
        let (message, offset) = match error {
            Error::SqlInputError { msg, offset, .. } => (msg, usize::try_from(offset).ok()),
            Error::SqliteFailure(_, Some(message)) => (message, None),
            Error::ModuleError(message) => (message, None),
            other => (other.to_string(), None),
        };
        let help = match () {
            () if message.contains("no such table") => {
                Some("`.tables` in the prompt lists what there is".to_owned())
            }
            () if message.contains("no such column") => {
                Some("`.schema TABLE` in the prompt lists its columns".to_owned())
            }
            () if message.contains("not authorized") => {
                Some("statements may read, and create temporary tables".to_owned())
            }
            () => None,
        };
        QueryError::Statement {
            message: sanitize(&message).into_owned(),
            place: offset.map(|offset| Place::of(sql, origin(offset))),
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
            QueryError::TooLong { .. } => ErrorFacts::new(ErrorClass::Usage, "query-time")
                .with_help("EXPLAIN QUERY PLAN shows what it loops over; --timeout allows more"),
            QueryError::TooMuch { .. } => ErrorFacts::new(ErrorClass::Usage, "query-memory")
                .with_help("ask for fewer rows or columns; --memory allows more"),
            QueryError::Copy(_) => ErrorFacts::new(ErrorClass::HostWrite, "query-copy"),
            QueryError::Setup(_) => ErrorFacts::new(ErrorClass::Bug, "query-setup"),
        }
    }
}
