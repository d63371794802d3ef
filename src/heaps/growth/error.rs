//! Why there is nothing to compare.

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::input::LookError;

fn all_but(left: usize) -> String {
    match left {
        0 => "all dumps".to_owned(),
        left => format!("all dumps but {left}"),
    }
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum NativeLeaksError {
    /// An input can't be opened, or has no dump that was named.
    #[error(transparent)]
    Look(#[from] LookError),
    /// Native heaps first, then Java heaps alone.
    #[error("{name} holds Java heaps alone, the inputs before it native ones")]
    JavaAmong {
        /// The input.
        name: String,
    },
    /// Nothing is known of what is held.
    #[error("{what}: there is nothing to compare")]
    NothingHeld {
        /// Which dumps, and why.
        what: String,
        /// What to record instead.
        help: &'static str,
    },
    /// One dump of each process and heap at most.
    #[error("growth takes two dumps of one process at least, better six: there is {there}")]
    TooFewDumps {
        /// What there is, in words.
        there: String,
        /// Whether the inputs hold Java heaps, of which one is enough.
        has_java: bool,
    },
    /// The warm-up leaves fewer than two dumps.
    #[error("--warmup leaves out {left_out} of {of} dumps: growth takes two at least")]
    WarmupTooLong {
        /// Dumps left out.
        left_out: usize,
        /// Dumps that could be compared without it.
        of: usize,
    },
    /// Too few dumps are left without those whose data are incomplete.
    #[error("data are missing from {}: growth can't be told", all_but(*.left))]
    Incomplete {
        /// Dumps whose data are complete.
        left: usize,
    },
    /// The sampling error follows from the interval.
    #[error("{name} does not say its sampling interval")]
    NoInterval {
        /// The dump.
        name: String,
    },
}

impl Classified for NativeLeaksError {
    fn facts(&self) -> ErrorFacts {
        match self {
            NativeLeaksError::Look(error) => error.facts(),
            NativeLeaksError::JavaAmong { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "java-among-native").with_help(
                    "compare heaps of one kind; --java looks at the Java heaps of all inputs",
                )
            }
            NativeLeaksError::NothingHeld { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-held").with_help(*help)
            }
            NativeLeaksError::TooFewDumps { has_java, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "too-few-dumps").with_help(match has_java {
                    true => {
                        "the input holds Java heaps, too, and one is enough: --java looks for \
                         leaks there"
                    }
                    false => {
                        "record with `heaptap record -n NAME`, and after each round of what you \
                         repeat call `heaptap snapshot --label round-N`"
                    }
                })
            }
            NativeLeaksError::WarmupTooLong { of, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "warmup-too-long")
                    .with_help(format!("--warmup {} at most", of.saturating_sub(2)))
            }
            NativeLeaksError::Incomplete { .. } => {
                ErrorFacts::new(ErrorClass::Inconclusive, "incomplete-series")
                    .with_help("`heaptap top INPUT@N` says what dump N lacks, and why")
            }
            NativeLeaksError::NoInterval { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-interval").with_help(
                    "say it with --interval SIZE: bytes for each sample, 1 where every allocation \
                     was recorded",
                )
            }
        }
    }
}
