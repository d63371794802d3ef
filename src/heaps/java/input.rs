//! `PATH`, `PATH@LABEL`, `PATH@N`, `PATH@last`, `PATH@end`: which file and which of its dumps is meant.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// A dump as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaInput {
    /// A recording's folder, a trace or an HPROF.
    pub path: PathBuf,
    /// Which of its dumps; `None` where nothing was said.
    pub which: Option<Which>,
}

/// One dump of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
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

impl Which {
    /// What was typed: `last`, `end`, digits, or a label.
    pub fn parse(typed: &str) -> Which {
        match (typed, typed.parse()) {
            ("last", _) => Which::Last,
            ("end", _) => Which::End,
            (_, Ok(number)) if typed.bytes().all(|b| b.is_ascii_digit()) => Which::Number(number),
            _ => Which::Label(typed.to_owned()),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Last => f.write_str("last"),
            Which::End => f.write_str("end"),
            Which::Number(number) => write!(f, "{number}"),
            Which::Label(label) => f.write_str(label),
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
            which: Some(Which::parse(which)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_path_wins_over_a_label() {
        let there = ["rec", "rec@x", "a@b/rec"];
        let parse = |typed: &str| {
            let input = JavaInput::parse_with(OsStr::new(typed), |path| {
                there.iter().any(|t| Path::new(t) == path)
            });
            (input.path.display().to_string(), input.which)
        };
        let label = |l: &str| Some(Which::Label(l.to_owned()));
        for (typed, path, which) in [
            ("rec", "rec", None),
            ("rec@x", "rec@x", None),
            ("rec@x@y", "rec@x", label("y")),
            ("rec@y", "rec", label("y")),
            ("rec@3", "rec", Some(Which::Number(3))),
            ("rec@+3", "rec", label("+3")),
            ("rec@99999999999", "rec", label("99999999999")),
            ("rec@last", "rec", Some(Which::Last)),
            ("rec@end", "rec", Some(Which::End)),
            ("a@b/rec", "a@b/rec", None),
            ("a@b/none", "a@b/none", None),
            ("@x", "@x", None),
            ("rec@", "rec@", None),
        ] {
            assert_eq!(parse(typed), (path.to_owned(), which), "{typed}");
        }
    }
}
