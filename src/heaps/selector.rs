//! `PATH`, `PATH@LABEL`, `PATH@N`, `PATH@last`, `PATH@end`: selection of a file, and of its dumps.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use heaptap_base::suggest::nearest;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::eligibility::names::{is_pattern, matches_native};
use heaptap_model::profile::meant_heap;
use heaptap_results::findings::{self, Finding};
use heaptap_results::lists::join_processes;

/// Words for heaps, other than the names of native ones.
const HEAP_WORDS: [&str; 5] = ["native", "java", "app", "zygote", "image"];

/// Returns the heap that a misspelled name might mean. It might also be right: custom heaps have any
/// name.
pub fn nearest_heap(name: &str) -> Option<&'static str> {
    let word = nearest(name, HEAP_WORDS).filter(|word| *word != name);
    word.or_else(|| meant_heap(name))
}

/// A dump selection as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaInput {
    /// A recording directory, a trace or an HPROF.
    pub path: PathBuf,
    /// Selector of its dumps; `None` if not given.
    pub which: Option<DumpSelector>,
}

/// Selector of one of several dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpSelector {
    /// The last one.
    Last,
    /// The dump at the end of the recording, or with the label of that name.
    End,
    /// The N-th dump of each process and heap, from 1, as in the manifest and file names. If no
    /// dump has that number, labels are searched for the digits.
    Number(u32),
    /// The label of its snapshot.
    Label(String),
}

impl DumpSelector {
    /// Returns what selects a dump among those of its process; `None` if it is the only one.
    pub fn new(label: Option<&str>, number: u32, among: usize) -> Option<DumpSelector> {
        match label {
            Some(label) => Some(DumpSelector::Label(label.to_owned())),
            None => (among > 1).then_some(DumpSelector::Number(number)),
        }
    }

    /// Returns whether the last dump is meant, unless a label is named so.
    pub fn is_last(&self) -> bool {
        matches!(self, DumpSelector::Last | DumpSelector::End)
    }

    /// Parses `last`, `end`, digits, or a label.
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

/// The word for every dump of an input.
pub const ALL: &str = "all";

/// Reason for rejecting a label: `PATH@LABEL` would select another dump, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    #[error("a label must not be blank")]
    Blank,
    #[error("a label must not be a number: PATH@N selects the N-th dump")]
    Number,
    #[error("`last` is not a valid label: PATH@last selects the last dump")]
    Last,
    /// It is [`ALL`].
    #[error("`all` is not a valid label: PATH@all selects every dump")]
    All,
    /// It contains a path separator.
    #[error("a label must not contain `{0}`: PATH@LABEL would not find it")]
    OfPaths(char),
    /// It contains the separator of two labels.
    #[error("a label must not contain `..`: PATH@A..B selects the time between the labels A and B")]
    Stretch,
}

/// Checks the label of a snapshot.
///
/// # Errors
/// Returns an error if `PATH@LABEL` would not find it.
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
        DumpSelector::Label(label) if label == ALL => Err(LabelError::All),
        DumpSelector::End | DumpSelector::Label(_) => Ok(()),
    }
}

/// Returns the end of a help on a process that is not in an input: other tools limit rows by `-n`.
pub(super) fn or_rows(process: &str) -> String {
    match process.parse::<u32>() {
        Ok(number) => format!("; a PID needs `-p {number}`, a number of rows `-l {number}`"),
        Err(_) => String::new(),
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
    /// Parses the argument. An existing path has priority over one with a label.
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
        // A path that is not Unicode cannot have a label.
        let Some((path, which)) = typed.to_str().and_then(|typed| typed.rsplit_once('@')) else {
            return whole();
        };
        // The `@` is in a parent directory.
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

/// Processes of an input, by name, process id or package. An empty filter takes all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFilter {
    /// Whole process names, with `*`.
    pub names: Vec<String>,
    /// Process ids.
    pub pids: Vec<u64>,
    /// Packages, each for all of its processes.
    pub packages: Vec<String>,
}

impl ProcessFilter {
    /// Returns true if no process is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.packages.is_empty()
    }

    /// Returns true if the filter takes a process. An input might not have its id or name.
    pub fn takes(&self, pid: Option<u64>, process: &str) -> bool {
        let is_named = |name: &String| {
            !process.is_empty()
                && (process == name || is_pattern(name) && matches_native(name, process))
        };
        let is_of_package = |package: &String| {
            let rest = process.strip_prefix(package.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.is_empty()
            || self.names.iter().any(is_named)
            || pid.is_some_and(|pid| self.pids.contains(&pid))
            || self.packages.iter().any(is_of_package)
    }

    /// A filter for each name, id and package.
    pub fn each(&self) -> Vec<ProcessFilter> {
        let one = |names: &[String], pids: &[u64], packages: &[String]| ProcessFilter {
            names: names.to_vec(),
            pids: pids.to_vec(),
            packages: packages.to_vec(),
        };
        let names = self.names.chunks(1).map(|name| one(name, &[], &[]));
        let pids = self.pids.chunks(1).map(|pid| one(&[], pid, &[]));
        let packages = self.packages.chunks(1);
        let packages = packages.map(|package| one(&[], &[], package));
        names.chain(pids).chain(packages).collect()
    }

    /// Returns warnings about the parts that take no process of an input. `what` is missing of them,
    /// such as `a dump of`.
    pub fn missing<'p>(
        &self,
        what: &str,
        there: impl Iterator<Item = (Option<u64>, &'p str)> + Clone,
    ) -> Vec<Finding> {
        if self.is_empty() {
            return Vec::new();
        }
        let names = join_processes(there.clone());
        let parts = self.unmatched(there).into_iter();
        parts
            .map(|part| findings::not_in_input(what, &part, &names))
            .collect()
    }

    /// Returns the parts that take no process of `there`, in words.
    pub fn unmatched<'p>(
        &self,
        there: impl Iterator<Item = (Option<u64>, &'p str)> + Clone,
    ) -> Vec<String> {
        let takes_none = |part: &ProcessFilter| {
            let mut there = there.clone();
            !there.any(|(pid, process)| part.takes(pid, process))
        };
        let parts = self.each().into_iter().filter(takes_none);
        parts.map(|part| part.to_string()).collect()
    }

    /// Returns the options for the same selection, quoted for a shell.
    pub fn options(&self) -> Vec<String> {
        let pids: Vec<String> = self.pids.iter().map(u64::to_string).collect();
        [
            ("-n", &self.names),
            ("-p", &pids),
            ("--package", &self.packages),
        ]
        .into_iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(option, all)| format!("{option} {}", quoted(all.join(","))))
        .collect()
    }
}

impl fmt::Display for ProcessFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids = self.pids.iter().map(|pid| format!("process {pid}"));
        let all: Vec<String> = pids
            .chain(self.names.iter().chain(&self.packages).cloned())
            .collect();
        f.write_str(&all.join(", "))
    }
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
            ("all", LabelError::All),
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
