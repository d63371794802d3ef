//! The errors that the check and the conversion of a file find.

use std::fmt;

use super::problems::{Problem, Problems, short};
use super::yaml::Node;

/// Maximum number of errors to keep.
const MAX_KEPT: usize = 1_000;
/// Maximum number of characters of a message.
const MAX_MESSAGE_CHARS: usize = 500;

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    list: Vec<Problem>,
}

impl Report {
    pub(super) fn add(&mut self, node: &Node, path: &dyn fmt::Display, message: impl Into<String>) {
        self.push(node, path, message, None);
    }

    pub(super) fn add_with_help(
        &mut self,
        node: &Node,
        path: &dyn fmt::Display,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(node, path, message, Some(help.into()));
    }

    pub(super) fn push(
        &mut self,
        node: &Node,
        path: &dyn fmt::Display,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        if !self.is_full() {
            self.list.push(Problem {
                line: node.line,
                column: node.column,
                path: path.to_string(),
                message: short(&message.into(), MAX_MESSAGE_CHARS),
                help,
            });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether further errors are dropped.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether an error is in a top-level key.
    pub(super) fn concerns(&self, key: &str) -> bool {
        self.list.iter().any(|problem| {
            let rest = problem.path.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Returns the errors in the order of the file.
    pub(super) fn finish(mut self, origin: &str) -> Problems {
        self.list
            .sort_by_key(|problem| (problem.line, problem.column));
        Problems {
            origin: origin.to_owned(),
            list: self.list,
        }
    }
}
