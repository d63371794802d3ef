//! What every error of heaptap says: its class (the exit code), a stable kind, what happened
//! and what to do next. Each stage has its own typed error and implements [`Classified`];
//! the command line turns it into a [`Failure`] at the edge.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The classes of outcome that scripts tell apart, one exit code each.
///
/// `docs/errors.md` lists them; the numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// A bug in heaptap.
    Bug,
    /// Wrong usage.
    Usage,
    /// No device, several and none named, unauthorized or offline, no adb server.
    NoDevice,
    /// The target may not be profiled, or does not exist.
    NotEligible,
    /// The device or its perfetto refused or failed.
    Device,
    /// Recorded, but incomplete.
    Incomplete,
    /// Recorded, but no samples.
    Empty,
    /// An input file can't be read or is damaged.
    BadInput,
    /// Budget exceeded or leak found.
    Budget,
    /// The recording is safe on the device but was not fetched.
    NotFetched,
    /// This host can't write.
    HostWrite,
    /// Incomplete data, or within the sampling noise.
    Inconclusive,
    /// Interrupted by the user before anything was recorded.
    Interrupted,
}

impl ErrorClass {
    /// Every class, in the order in which the first that holds decides the exit code.
    pub const BY_PRECEDENCE: [ErrorClass; 13] = [
        ErrorClass::Bug,
        ErrorClass::Usage,
        ErrorClass::NoDevice,
        ErrorClass::Device,
        ErrorClass::NotFetched,
        ErrorClass::HostWrite,
        ErrorClass::BadInput,
        ErrorClass::Inconclusive,
        ErrorClass::Budget,
        ErrorClass::NotEligible,
        ErrorClass::Incomplete,
        ErrorClass::Empty,
        ErrorClass::Interrupted,
    ];

    /// The process exit code of this class.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorClass::Bug => 1,
            ErrorClass::Usage => 2,
            ErrorClass::NoDevice => 3,
            ErrorClass::NotEligible => 4,
            ErrorClass::Device => 5,
            ErrorClass::Incomplete => 6,
            ErrorClass::Empty => 7,
            ErrorClass::BadInput => 8,
            ErrorClass::Budget => 9,
            ErrorClass::NotFetched => 10,
            ErrorClass::HostWrite => 11,
            ErrorClass::Inconclusive => 12,
            ErrorClass::Interrupted => 130,
        }
    }

    /// Of several classes that hold at once, the one that decides the exit code.
    pub fn first_of(classes: impl IntoIterator<Item = ErrorClass>) -> Option<ErrorClass> {
        let held: Vec<ErrorClass> = classes.into_iter().collect();
        Self::BY_PRECEDENCE.into_iter().find(|c| held.contains(c))
    }
}

/// The class and kind of an error, and the lines around its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFacts {
    /// The class, which decides the exit code.
    pub class: ErrorClass,
    /// A stable word for scripts, such as `device-unauthorized`.
    pub kind: &'static str,
    /// Lines below the message, such as the place in a text that it is about.
    pub excerpt: Vec<String>,
    /// What to do next, as one or more sentences or a command.
    pub help: Option<String>,
    /// Further lines of help, such as commands to copy. None holds a line end.
    pub hints: Vec<String>,
}

impl ErrorFacts {
    /// Returns facts without help.
    pub fn new(class: ErrorClass, kind: &'static str) -> Self {
        ErrorFacts {
            class,
            kind,
            excerpt: Vec::new(),
            help: None,
            hints: Vec::new(),
        }
    }

    /// Returns the same facts with the next step.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the same facts with further lines of help.
    pub fn with_hints(mut self, hints: Vec<String>) -> Self {
        self.hints = hints;
        self
    }
}

/// Implemented by the typed error of every stage. A variant that wraps another error returns the
/// facts of that error, so that its excerpt and its hints pass through.
pub trait Classified: std::error::Error + Send + Sync + 'static {
    /// Returns the class, the kind and what to do next. Help on a missing file looks at its folder.
    fn facts(&self) -> ErrorFacts;

    /// Returns the class alone.
    fn class(&self) -> ErrorClass {
        self.facts().class
    }

    /// Returns the kind alone.
    fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// Returns the help alone.
    fn help(&self) -> Option<String> {
        self.facts().help
    }
}

/// An error as the command line shows it.
#[derive(Debug)]
pub struct Failure {
    /// Which exit code it ends in.
    pub class: ErrorClass,
    /// A stable word for scripts.
    pub kind: &'static str,
    /// What happened, to what, and why: one line.
    pub message: String,
    /// Lines below the message, such as the place in a text that it is about.
    pub excerpt: Vec<String>,
    /// What to do next: one line.
    pub help: Option<String>,
    /// Further lines of help.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without a typed error behind it (usage errors of the command line).
    pub fn new(class: ErrorClass, kind: &'static str, message: impl Into<String>) -> Self {
        Failure {
            class,
            kind,
            message: message.into(),
            excerpt: Vec::new(),
            help: None,
            hints: Vec::new(),
        }
    }

    /// The same failure, with these lines below its message.
    pub fn with_excerpt(mut self, lines: Vec<String>) -> Self {
        self.excerpt = lines;
        self
    }

    /// The same failure, with words on what to do next.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let text = cause.to_string();
            // thiserror's `#[error(transparent)]` and `{source}` already show the cause.
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        let facts = error.facts();
        Failure {
            class: facts.class,
            kind: facts.kind,
            message,
            excerpt: facts.excerpt,
            help: facts.help,
            hints: facts.hints,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on something that may be hostile and that others do not depend on: a panic in it
/// is its own failure, told in words. A thread that it starts has to contain its own.
///
/// # Errors
/// What the panic said.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(before);
    result.map_err(|panic| panic_text(&*panic).to_owned())
}

/// Whether a panic of this thread would be [caught](catch_panic), and is nobody else's matter.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// What a panic said.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contained_panic_is_told_and_ends_with_its_work() {
        assert!(!is_contained());
        assert_eq!(catch_panic(is_contained), Ok(true));
        let inner = catch_panic(|| {
            let inner = catch_panic(|| panic!("of {}", "one"));
            assert!(is_contained(), "the outer work goes on");
            inner
        });
        assert_eq!(inner, Ok(Err::<(), _>("of one".to_owned())));
        assert!(!is_contained());
    }

    #[test]
    fn precedence_names_every_class_once() {
        let mut codes: Vec<u8> = ErrorClass::BY_PRECEDENCE
            .iter()
            .map(|c| c.exit_code())
            .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorClass::BY_PRECEDENCE.len());
    }

    #[test]
    fn the_graver_of_two_classes_decides() {
        let both = [ErrorClass::Empty, ErrorClass::NotFetched];
        assert_eq!(ErrorClass::first_of(both), Some(ErrorClass::NotFetched));
        assert_eq!(ErrorClass::first_of([]), None);
    }
}
