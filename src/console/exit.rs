//! End of a run: the outcome of a command, its exit code, and the handling of panics.

pub mod hints;
pub(crate) mod usage;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use crate::console::Console;
use crate::console::render;
use heaptap_base::bytes;
use heaptap_base::error::{ErrorClass, Failure, is_contained, panic_text};
use heaptap_base::parallel::lock;

/// Outcome of a command that succeeded and has already shown its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done and complete.
    Done,
    /// Shown completely, but the exit code is not 0: incomplete, empty, not eligible.
    Ended(ErrorClass),
    /// A program that heaptap ran on this host ended with this status, which is not 0.
    Program(u8),
}

impl Outcome {
    /// The outcome of several results: the first class by precedence decides.
    pub fn from_classes(classes: impl IntoIterator<Item = ErrorClass>) -> Self {
        ErrorClass::first_of(classes).map_or(Outcome::Done, Outcome::Ended)
    }

    /// Returns the outcome of a check with or without an `excess`. Missing data make it
    /// inconclusive. `judged`: whether its filters match anything; `None` if no check was
    /// requested.
    pub(crate) fn of_budget(
        judged: Option<bool>,
        excess: bool,
        missing: Option<ErrorClass>,
    ) -> Self {
        let budget = match (judged, excess, missing) {
            (None, ..) => None,
            (Some(false), ..) | (_, _, Some(_)) => Some(ErrorClass::Inconclusive),
            (Some(true), true, None) => Some(ErrorClass::Budget),
            (Some(true), false, None) => None,
        };
        Outcome::from_classes(missing.into_iter().chain(budget))
    }

    /// Returns the same outcome, but inconclusive instead of passed if `open`.
    pub(crate) fn left_open(self, open: bool) -> Self {
        match self {
            Outcome::Done if open => Outcome::Ended(ErrorClass::Inconclusive),
            other => other,
        }
    }
}

impl From<Option<ErrorClass>> for Outcome {
    fn from(class: Option<ErrorClass>) -> Self {
        class.map_or(Outcome::Done, Outcome::Ended)
    }
}

/// Location and message of the last panic.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Hides panics until [`catch_panics`] reports them in heaptap's format.
pub(crate) fn note_panics() {
    std::panic::set_hook(Box::new(|info| {
        if is_contained() {
            return;
        }
        let what = panic_text(info.payload());
        let place = info
            .location()
            .map(|l| format!(" at {}:{}", l.file(), l.line()))
            .unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::capture();
        let mut text = format!("{what}{place}");
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            text.push_str(&format!("\n{backtrace}"));
        }
        let mut last = lock(&PANIC);
        // The first one is the cause of the others.
        last.get_or_insert(text);
    }));
}

/// Runs `body`. A panic in it, or in a task that it depends on, is a bug of heaptap.
pub(crate) fn catch_panics(
    body: impl FnOnce() -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let result = catch_unwind(AssertUnwindSafe(body));
    let noted = lock(&PANIC).take();
    match (result, noted) {
        (Ok(result), None) => result,
        (Ok(Err(failure)), Some(what)) if failure.class != ErrorClass::Bug => {
            Err(bug(format!("{what} (then: {failure})")))
        }
        (_, Some(what)) => Err(bug(what)),
        (Err(_), None) => Err(bug("panic".to_owned())),
    }
}

fn bug(what: String) -> Failure {
    let mut lines = what.lines().map(str::to_owned);
    let what = lines.next().unwrap_or_default();
    let failure = Failure::new(ErrorClass::Bug, "bug", format!("a bug in heaptap: {what}"));
    failure.with_excerpt(lines.collect()).with_help(format!(
        "please report it with the command you ran, the lines above, and `heaptap --version` \
         ({}); RUST_BACKTRACE=1 adds where it came from. A recording on a phone is not lost: \
         `heaptap status` lists it",
        heaptap_results::manifest::version()
    ))
}

/// Failure for a file that became shorter while heaptap read it.
fn input_cut(path: &Path) -> Failure {
    Failure::new(
        ErrorClass::BadInput,
        "input-cut",
        format!("{} became shorter while heaptap read it", path.display()),
    )
    .with_help("wait until the file is written, then run the command again")
}

/// Returns the failure to show, the class of the result, and the truncated files that the failure
/// does not report.
fn settle(
    result: Result<Outcome, Failure>,
    cut_short: &[PathBuf],
) -> (Option<Failure>, Option<ErrorClass>, &[PathBuf]) {
    match (result, cut_short) {
        // A panic on zeros in a truncated file is not a bug.
        (Err(failure), [first, rest @ ..]) if failure.class == ErrorClass::Bug => {
            (Some(input_cut(first)), None, rest)
        }
        (Ok(Outcome::Done | Outcome::Program(_)), _) => (None, None, cut_short),
        (Ok(Outcome::Ended(class)), _) => (None, Some(class), cut_short),
        (Err(failure), _) => {
            let class = failure.class;
            (Some(failure), Some(class), cut_short)
        }
    }
}

/// Shows a failure, and turns the result into the exit code.
pub(crate) fn finish(console: &Console, result: Result<Outcome, Failure>) -> ExitCode {
    let cut_short = bytes::cut_short();
    let status = match result {
        Ok(Outcome::Program(status)) => status,
        _ => 0,
    };
    let (failure, class, untold) = settle(result, &cut_short);
    if let Some(failure) = &failure {
        render::failure(console, failure);
    }
    for path in untold {
        // The command has printed its document; there must not be another.
        let mut failure = input_cut(path);
        failure.message += "; the result covers only a part of it";
        render::in_words(console, &failure);
    }
    let cut_short = cut_short.first().map(|_| ErrorClass::BadInput);
    let class = ErrorClass::first_of(class.into_iter().chain(cut_short));
    let unwritten = console.finish().map(|error| {
        let failure = Failure::new(
            ErrorClass::HostWrite,
            "stdout-unwritable",
            format!("could not write to standard output: {error}"),
        )
        .with_help("write the output elsewhere; files that the command wrote are not affected");
        render::failure(console, &failure);
        failure.class
    });
    match ErrorClass::first_of(class.into_iter().chain(unwritten)) {
        None => ExitCode::from(status),
        Some(class) => ExitCode::from(class.exit_code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug_and_says_how_to_report_it() {
        let failure = catch_panics(|| panic!("out of cheese")).expect_err("a bug");
        assert_eq!(failure.class, ErrorClass::Bug);
        assert_eq!(failure.kind, "bug");
        assert!(failure.help.is_some_and(|h| h.contains("--version")));
        assert_eq!(catch_panics(|| Ok(Outcome::Done)).ok(), Some(Outcome::Done));
    }

    #[test]
    fn a_panic_over_a_file_that_was_cut_short_is_a_failure_of_that_file() {
        let cut = ["a.hprof", "b.hprof"].map(PathBuf::from);
        let (failure, _, untold) = settle(Err(bug("index".to_owned())), &cut);
        let failure = failure.expect("a document for programs");
        assert_eq!(
            (failure.class, failure.kind),
            (ErrorClass::BadInput, "input-cut")
        );
        assert_eq!(
            failure.message,
            "a.hprof became shorter while heaptap read it"
        );
        assert_eq!(untold, &cut[1..]);
        // A result already has a document, and a bug without truncated files stays a bug.
        let (failure, class, untold) = settle(Ok(Outcome::Done), &cut);
        assert!(failure.is_none() && class.is_none() && untold == cut);
        let (failure, ..) = settle(Err(bug("index".to_owned())), &[]);
        assert_eq!(failure.map(|failure| failure.kind), Some("bug"));
    }

    #[test]
    fn of_several_classes_the_gravest_decides() {
        let classes = [ErrorClass::Empty, ErrorClass::HostWrite];
        assert_eq!(
            Outcome::from_classes(classes),
            Outcome::Ended(ErrorClass::HostWrite)
        );
        assert_eq!(Outcome::from_classes([]), Outcome::Done);
    }
}
