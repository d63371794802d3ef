//! `PATH`, `PATH@LABEL`, `PATH@N`, `PATH@last`, `PATH@end`: which file, and which of its dumps or
//! processes, is meant.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::eligibility::names::{is_pattern, matches_native};

/// A dump as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaInput {
    /// A recording's folder, a trace or an HPROF.
    pub path: PathBuf,
    /// Which of its dumps; `None` where nothing was said.
    pub which: Option<DumpSelector>,
}

/// One dump of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpSelector {
    /// The last one.
    Last,
    /// That of the recording's end: the label of that name, where there is one.
    End,
    /// By its number: the N-th dump of each process and heap, from 1, as the manifest and names
    /// of files have it. A label of digits alone is looked for where no dump has that number.
    Number(u32),
    /// By the label of its snapshot.
    Label(String),
}

impl DumpSelector {
    /// What was typed: `last`, `end`, digits, or a label.
    pub fn parse(typed: &str) -> DumpSelector {
        match (typed, typed.parse()) {
            ("last", _) => DumpSelector::Last,
            ("end", _) => DumpSelector::End,
            (_, Ok(number)) if typed.bytes().all(|b| b.is_ascii_digit()) => {
                DumpSelector::Number(number)
            }
            _ => DumpSelector::Label(typed.to_owned()),
        }
    }
}

/// Why a label is not taken: `PATH@LABEL` would find another dump, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// It is blank.
    #[error("a label has at least one character that is not blank")]
    Blank,
    /// It is a number.
    #[error("a label is no number: PATH@N means the N-th dump")]
    Number,
    /// It is `last`.
    #[error("`last` is no label: PATH@last means the last dump")]
    Last,
    /// It holds a character that paths have.
    #[error("a label has no `{0}`: PATH@LABEL would not find it")]
    OfPaths(char),
    /// It holds what stands between two labels.
    #[error("a label has no `..`: PATH@A..B means what happened between the labels A and B")]
    Stretch,
}

/// Whether a snapshot may have this label.
///
/// # Errors
/// Where `PATH@LABEL` would not find it.
pub fn check_label(label: &str) -> Result<(), LabelError> {
    if label.trim().is_empty() {
        return Err(LabelError::Blank);
    }
    if let Some(of_paths) = label.chars().find(|c| matches!(c, '@' | '/' | '\\')) {
        return Err(LabelError::OfPaths(of_paths));
    }
    if label.contains("..") {
        return Err(LabelError::Stretch);
    }
    match DumpSelector::parse(label.trim()) {
        DumpSelector::Last => Err(LabelError::Last),
        DumpSelector::Number(_) => Err(LabelError::Number),
        DumpSelector::End | DumpSelector::Label(_) => Ok(()),
    }
}

impl fmt::Display for DumpSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpSelector::Last => f.write_str("last"),
            DumpSelector::End => f.write_str("end"),
            DumpSelector::Number(number) => write!(f, "{number}"),
            DumpSelector::Label(label) => f.write_str(label),
        }
    }
}

impl JavaInput {
    /// What was typed. An existing path wins over one with a label.
    pub fn parse(typed: &OsStr) -> JavaInput {
        JavaInput::parse_with(typed, Path::exists)
    }

    fn parse_with(typed: &OsStr, exists: impl Fn(&Path) -> bool) -> JavaInput {
        let whole = || JavaInput {
            path: PathBuf::from(typed),
            which: None,
        };
        if exists(Path::new(typed)) {
            return whole();
        }
        // A path that is no Unicode has no label that could be typed.
        let Some((path, which)) = typed.to_str().and_then(|typed| typed.rsplit_once('@')) else {
            return whole();
        };
        // The `@` of a folder further up.
        if path.is_empty() || which.is_empty() || which.contains(std::path::is_separator) {
            return whole();
        }
        JavaInput {
            path: PathBuf::from(path),
            which: Some(DumpSelector::parse(which)),
        }
    }
}

impl fmt::Display for JavaInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.which {
            None => Ok(()),
            Some(which) => write!(f, "@{which}"),
        }
    }
}

/// Whether a process is the one that was named: by its id, its name, or a pattern with `*`.
pub fn is_process(wanted: &str, pid: Option<u64>, process: &str) -> bool {
    if let Ok(wanted) = wanted.parse::<u64>() {
        return pid == Some(wanted);
    }
    !process.is_empty()
        && (process == wanted || is_pattern(wanted) && matches_native(wanted, process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_taken_where_it_can_be_named() {
        for (label, why) in [
            ("", LabelError::Blank),
            ("  ", LabelError::Blank),
            ("2", LabelError::Number),
            ("last", LabelError::Last),
            ("feed/list", LabelError::OfPaths('/')),
            ("a\\b", LabelError::OfPaths('\\')),
            ("a@b", LabelError::OfPaths('@')),
            ("a..b", LabelError::Stretch),
        ] {
            assert_eq!(check_label(label), Err(why), "{label:?}");
        }
        for label in ["after login", "end", "round-2", "2nd", "99999999999"] {
            assert_eq!(check_label(label), Ok(()), "{label:?}");
            let found = JavaInput::parse_with(OsStr::new(&format!("rec@{label}")), |_| false);
            assert_eq!(found.path, Path::new("rec"));
            assert_eq!(
                found.which.map(|which| which.to_string()).as_deref(),
                Some(label)
            );
        }
    }

    #[test]
    fn an_existing_path_wins_over_a_label() {
        let there = ["rec", "rec@x", "a@b/rec"];
        let parse = |typed: &str| {
            let input = JavaInput::parse_with(OsStr::new(typed), |path| {
                there.iter().any(|t| Path::new(t) == path)
            });
            (input.path.display().to_string(), input.which)
        };
        let label = |l: &str| Some(DumpSelector::Label(l.to_owned()));
        for (typed, path, which) in [
            ("rec", "rec", None),
            ("rec@x", "rec@x", None),
            ("rec@x@y", "rec@x", label("y")),
            ("rec@y", "rec", label("y")),
            ("rec@3", "rec", Some(DumpSelector::Number(3))),
            ("rec@+3", "rec", label("+3")),
            ("rec@99999999999", "rec", label("99999999999")),
            ("rec@last", "rec", Some(DumpSelector::Last)),
            ("rec@end", "rec", Some(DumpSelector::End)),
            ("a@b/rec", "a@b/rec", None),
            ("a@b/none", "a@b/none", None),
            ("@x", "@x", None),
            ("rec@", "rec@", None),
        ] {
            assert_eq!(parse(typed), (path.to_owned(), which), "{typed}");
        }
    }
}
