//! How a run ends: the outcome of a command, its exit code, and what a panic becomes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

use super::console::{Console, Style};
use super::render;
use crate::bytes;
use crate::error::{ErrorClass, Failure, is_contained, panic_text};

/// How a command ended that did what it could and has already shown its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done, nothing missing.
    Done,
    /// Shown in full, but the exit code tells of something: incomplete, empty, not eligible.
    Ended(ErrorClass),
}

impl Outcome {
    /// The outcome of several results: the first class by precedence decides.
    pub fn of(classes: impl IntoIterator<Item = ErrorClass>) -> Self {
        ErrorClass::first_of(classes).map_or(Outcome::Done, Outcome::Ended)
    }

    /// The outcome of a check that found an `excess` or none, in data of which something may be
    /// missing: that leaves it open. `judged`: whether its filters match anything; `None` if no
    /// check was asked for.
    pub(super) fn of_budget(
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
        Outcome::of(missing.into_iter().chain(budget))
    }
}

impl From<Option<ErrorClass>> for Outcome {
    fn from(class: Option<ErrorClass>) -> Self {
        class.map_or(Outcome::Done, Outcome::Ended)
    }
}

/// Where the last panic happened and what it said.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps panics off the screen until [`catch_panics`] tells of them in our own words.
pub(super) fn note_panics() {
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
        let mut last = PANIC
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // The first one is the cause; those that follow come from it.
        last.get_or_insert(text);
    }));
}

/// Runs `body`; a panic in it, or in a task whose loss made it fail, is a bug of heaptap.
pub(super) fn catch_panics(
    body: impl FnOnce() -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let result = catch_unwind(AssertUnwindSafe(body));
    let noted = PANIC
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .take();
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
        crate::app::manifest::version()
    ))
}

/// Shows a failure, and turns the result into the exit code.
pub(super) fn finish(console: &Console, result: Result<Outcome, Failure>) -> ExitCode {
    let cut_short = bytes::cut_short();
    let class = match result {
        // Zeros in the middle of what was read already are no bug.
        Err(failure) if failure.class == ErrorClass::Bug && !cut_short.is_empty() => None,
        Ok(Outcome::Done) => None,
        Ok(Outcome::Ended(class)) => Some(class),
        Err(failure) => {
            render::failure(console, &failure);
            Some(failure.class)
        }
    };
    for path in &cut_short {
        // Behind the document that the command printed comes no other.
        console.complain(format_args!(
            "{}: {} became shorter while heaptap read it; the result covers only a part of it",
            console.on_stderr(Style::Error, "error"),
            path.display()
        ));
        let help = console.on_stderr(Style::Help, "help");
        console.complain(format_args!(
            "{help}: wait until the file is written, then run the command again"
        ));
    }
    let cut_short = cut_short.first().map(|_| ErrorClass::BadInput);
    let class = ErrorClass::first_of(class.into_iter().chain(cut_short));
    let unwritten = console.finish().map(|error| {
        let failure = Failure::new(
            ErrorClass::HostWrite,
            "stdout-unwritable",
            format!("could not write to standard output: {error}"),
        );
        render::failure(console, &failure);
        failure.class
    });
    match ErrorClass::first_of(class.into_iter().chain(unwritten)) {
        None => ExitCode::SUCCESS,
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
    fn of_several_classes_the_gravest_decides() {
        let classes = [ErrorClass::Empty, ErrorClass::HostWrite];
        assert_eq!(Outcome::of(classes), Outcome::Ended(ErrorClass::HostWrite));
        assert_eq!(Outcome::of([]), Outcome::Done);
    }
}
