//! Errors in a scenario's file, with their places. All errors of a file are reported at once.

use std::fmt;

use heaptap_model::untrusted::sanitize;

use super::yaml::Node;

/// Maximum number of errors to print.
const MAX_PRINTED: usize = 20;
/// Maximum number of errors to keep.
const MAX_KEPT: usize = 1_000;
/// Maximum number of characters of a text from the file in an error.
const MAX_SHOWN_CHARS: usize = 60;
/// Maximum number of characters of a message.
const MAX_MESSAGE_CHARS: usize = 500;

/// An error in a scenario's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Place by keys and indices: `steps[2].wait-for`; empty for the whole file.
    pub path: String,
    /// Cause: lowercase start, no trailing period.
    pub message: String,
    /// Next step, if one is known.
    pub help: Option<String>,
}

/// All errors of a scenario's file, in the order of the file. Prints as
/// `FILE:LINE:COLUMN: PATH: MESSAGE (HELP)`, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file as typed.
    pub origin: String,
    pub list: Vec<Problem>,
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.list.iter().take(MAX_PRINTED).enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{problem}", self.origin)?;
        }
        match self.list.len().saturating_sub(MAX_PRINTED) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more", self.origin),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The errors found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    list: Vec<Problem>,
}

impl Report {
    pub(super) fn add(&mut self, node: &Node, path: &dyn fmt::Display, message: impl Into<String>) {
        self.push(node, path, message.into(), None);
    }

    pub(super) fn add_with_help(
        &mut self,
        node: &Node,
        path: &dyn fmt::Display,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(node, path, message.into(), Some(help.into()));
    }

    fn push(
        &mut self,
        node: &Node,
        path: &dyn fmt::Display,
        message: String,
        help: Option<String>,
    ) {
        if !self.is_full() {
            self.list.push(Problem {
                line: node.line,
                column: node.column,
                path: path.to_string(),
                message: short(&message, MAX_MESSAGE_CHARS),
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

/// Place of a node: `steps[2].wait-for`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, key) => f.write_str(&shown(key)),
            Path::Key(parent, key) => write!(f, "{parent}.{}", shown(key)),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Returns a text of the file for an error: short, and without control characters.
pub(super) fn shown(text: &str) -> String {
    short(text, MAX_SHOWN_CHARS)
}

fn short(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let short: String = chars.by_ref().take(most).collect();
    let cut = if chars.next().is_some() { "…" } else { "" };
    format!("{}{cut}", sanitize(&short))
}

/// Returns `did you mean …?` for the name nearest to a misspelled one, otherwise the names.
pub(super) fn suggestion<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let short = word.len() <= MAX_SHOWN_CHARS;
    let near = short.then(|| heaptap_model::near::nearest(word, names.clone()));
    match near.flatten() {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("use one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}
