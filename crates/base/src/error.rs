//! Common facts of all errors of heaptap: class (the exit code), stable kind, message and help.
//! A stage whose errors are told apart by callers has its own typed error, which implements
//! [`Classified`]; the command line turns it into a [`Failure`] at the edge. Other stages return a
//! [`Failure`].

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Classes of outcomes that scripts distinguish, one exit code each.
///
/// `docs/reference/errors.md` lists them; the numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// A bug in heaptap.
    Bug,
    /// Wrong usage.
    Usage,
    /// No device, several without a choice, unauthorized or offline, or no adb server.
    NoDevice,
    /// The target cannot be profiled or does not exist.
    NotEligible,
    /// The device or its perfetto refused or failed.
    Device,
    /// A result exists, and something is missing from it.
    Incomplete,
    /// The recording has no samples.
    Empty,
    /// An input file cannot be used: it is missing, unreadable or too damaged.
    BadInput,
    /// A budget is exceeded or a leak was found.
    Budget,
    /// The recording is on the device but was not fetched.
    NotFetched,
    /// A file on the host cannot be written.
    HostWrite,
    /// The data is incomplete, or the change is within the sampling error.
    Inconclusive,
    /// The user interrupted the command before anything was recorded.
    Interrupted,
}

impl ErrorClass {
    /// All classes by precedence: the first one that applies decides the exit code.
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

    /// Returns the process exit code of the class.
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

    /// Returns the class with this process exit code; `None` for 0 and codes of other programs.
    pub fn of_exit_code(code: u8) -> Option<ErrorClass> {
        let mut all = Self::BY_PRECEDENCE.into_iter();
        all.find(|class| class.exit_code() == code)
    }

    /// Returns the class if there is a result: of a damaged input, the rest was used.
    pub fn with_result(self) -> ErrorClass {
        match self {
            ErrorClass::BadInput => ErrorClass::Incomplete,
            other => other,
        }
    }

    /// Returns the class that decides the exit code if several apply.
    pub fn first_of(classes: impl IntoIterator<Item = ErrorClass>) -> Option<ErrorClass> {
        let held: Vec<ErrorClass> = classes.into_iter().collect();
        Self::BY_PRECEDENCE.into_iter().find(|c| held.contains(c))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFacts {
    /// Class of the error, which decides the exit code.
    pub class: ErrorClass,
    /// A stable word for scripts, such as `device-unauthorized`.
    pub kind: &'static str,
    /// Lines below the message, such as the line of a text that it is about.
    pub excerpt: Vec<String>,
    /// The next step, as one or more sentences or a command.
    pub help: Option<String>,
    /// Further lines of help, such as commands to copy. No line contains a line break.
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

/// Implemented by typed errors. A variant that wraps another error returns the facts of that error,
/// so that its excerpt and its hints pass through.
pub trait Classified: Error + Send + Sync + 'static {
    /// Returns the class, the kind and the help. Help on a missing file reads its directory.
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
#[derive(Debug, Clone)]
pub struct Failure {
    /// Class of the error, which decides the exit code.
    pub class: ErrorClass,
    /// A stable word for scripts.
    pub kind: &'static str,
    /// Problem, object and cause in one line.
    pub message: String,
    /// Lines below the message, such as the line of a text that it is about.
    pub excerpt: Vec<String>,
    /// The next step, in one line.
    pub help: Option<String>,
    /// Further lines of help.
    pub hints: Vec<String>,
}

/// Removes ` (os error 2)`, which `std::io::Error` appends to its message, and begins that message
/// in lower case, as it comes after a label.
fn without_os_code(message: String) -> String {
    const CODE: &str = " (os error ";
    let mut left = message.as_str();
    let mut out = String::new();
    while let Some((before, rest)) = left.split_once(CODE) {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        match digits.strip_prefix(')') {
            Some(after) => {
                let (lead, text) = before.split_at(before.rfind(": ").map_or(0, |at| at + 2));
                let mut text = text.chars();
                out.push_str(lead);
                out.extend(text.next().into_iter().flat_map(char::to_lowercase));
                out.push_str(text.as_str());
                // `tempfile` appends the random path of its file, which nothing else shows.
                let path = after.strip_prefix(" at path \"");
                left = match path.and_then(|path| path.split_once('"')) {
                    Some((_, after)) => after,
                    None => after,
                };
            }
            None => return message,
        }
    }
    out + left
}

impl Failure {
    /// Creates a failure without a typed error.
    pub fn new(class: ErrorClass, kind: &'static str, message: impl Into<String>) -> Self {
        Failure {
            class,
            kind,
            message: without_os_code(message.into()),
            excerpt: Vec::new(),
            help: None,
            hints: Vec::new(),
        }
    }

    /// Creates the failure of a wrong use of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::new(ErrorClass::Usage, "usage", message)
    }

    /// Returns the same failure with lines below its message.
    pub fn with_excerpt(mut self, lines: Vec<String>) -> Self {
        self.excerpt = lines;
        self
    }

    /// Returns the same failure with the next step.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the same failure with further lines of help.
    pub fn with_hints(mut self, hints: Vec<String>) -> Self {
        self.hints = hints;
        self
    }

    /// Returns the facts of a typed error that wraps the failure.
    pub fn facts(&self) -> ErrorFacts {
        ErrorFacts {
            class: self.class,
            kind: self.kind,
            excerpt: self.excerpt.clone(),
            help: self.help.clone(),
            hints: self.hints.clone(),
        }
    }

    /// Returns the same failure with a cause and the causes of it at the end of its message, except
    /// for those that the message already includes.
    pub fn caused_by(mut self, cause: &(dyn Error + 'static)) -> Self {
        let mut causes = Some(cause);
        while let Some(cause) = causes {
            let text = without_os_code(cause.to_string());
            // thiserror's `#[error(transparent)]` and `{source}` already include the cause.
            if !self.message.contains(&text) {
                self.message.push_str(": ");
                self.message.push_str(&text);
            }
            causes = cause.source();
        }
        self
    }
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Self {
        let facts = error.facts();
        let failure = Failure {
            class: facts.class,
            kind: facts.kind,
            message: without_os_code(error.to_string()),
            excerpt: facts.excerpt,
            help: facts.help,
            hints: facts.hints,
        };
        match error.source() {
            Some(cause) => failure.caused_by(cause),
            None => failure,
        }
    }
}

impl Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns what makes a failed write possible, as the beginning of a help.
pub fn mend_write(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free space there"
        }
        // It appeared while the output was computed.
        io::ErrorKind::AlreadyExists => "add `--force` to overwrite it",
        _ => "make the directory writable",
    }
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on possibly hostile input that nothing else depends on, and returns a panic as an
/// error. A thread that it starts has to catch its own panics.
///
/// # Errors
/// Returns the text of the panic.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(before);
    result.map_err(|panic| panic_text(&*panic).to_owned())
}

/// Returns whether a panic of this thread would be [caught](catch_panic), so that nothing else has
/// to report it.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

/// Returns `work` for another thread, whose panics are [contained](is_contained) if those of this
/// thread are. The caller has to resume them here.
pub fn for_thread<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let is_contained = is_contained();
    move || {
        CONTAINED.set(is_contained);
        work()
    }
}

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
        let of_thread = || std::thread::spawn(for_thread(is_contained)).join().unwrap();
        assert_eq!((of_thread(), catch_panic(of_thread)), (false, Ok(true)));
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
        let back = |code: &u8| ErrorClass::of_exit_code(*code).map(ErrorClass::exit_code);
        assert!(codes.iter().all(|code| back(code) == Some(*code)));
        assert_eq!(ErrorClass::of_exit_code(0), None);
    }

    #[test]
    fn messages_leave_out_codes_and_temporary_files() {
        let message = r#"cannot write x: Gone (os error 2) at path "/tmp/.a1": see y (os error 3)"#;
        let left = without_os_code(message.to_owned());
        assert_eq!(left, "cannot write x: gone: see y");
    }

    #[test]
    fn a_failure_names_each_cause_once() {
        let failure = Failure::new(ErrorClass::HostWrite, "host-write", "cannot write x");
        let failure = failure.caused_by(&io::Error::other("full (os error 28)"));
        assert_eq!(failure.message, "cannot write x: full");
        let failure = failure.caused_by(&io::Error::other("full (os error 28)"));
        assert_eq!(failure.message, "cannot write x: full");
    }

    #[test]
    fn damage_is_missing_data_where_there_is_a_result() {
        let class = ErrorClass::BadInput;
        assert_eq!((class.exit_code(), class.with_result().exit_code()), (8, 6));
        assert_eq!(ErrorClass::Usage.with_result(), ErrorClass::Usage);
    }

    #[test]
    fn the_graver_of_two_classes_decides() {
        let both = [ErrorClass::Empty, ErrorClass::NotFetched];
        assert_eq!(ErrorClass::first_of(both), Some(ErrorClass::NotFetched));
        assert_eq!(ErrorClass::first_of([]), None);
    }
}
