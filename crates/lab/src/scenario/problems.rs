//! Errors in a scenario's file, with their places. All errors of a file are reported at once.

use std::fmt;

use heaptap_base::suggest::nearest;
use heaptap_base::untrusted::sanitize;

/// Maximum number of errors to print.
const MAX_PRINTED: usize = 20;
/// Maximum number of characters of a text from the file in an error.
const MAX_SHOWN_CHARS: usize = 60;

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

/// Returns the beginning of a text without control characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let short: String = chars.by_ref().take(most).collect();
    let cut = if chars.next().is_some() { "…" } else { "" };
    format!("{}{cut}", sanitize(&short))
}

/// Returns the name nearest to a misspelled one.
pub(super) fn nearest_name<'a>(
    word: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // A longer word is not a name, and its distances take long.
    let is_short = word.len() <= MAX_SHOWN_CHARS;
    is_short.then(|| nearest(word, names)).flatten()
}

/// Returns `did you mean …?` for the name nearest to a misspelled one, otherwise the names.
pub(super) fn suggestion<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest_name(word, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("use one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}
