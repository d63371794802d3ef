//! Why there is nothing to compare.

use crate::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        match self {
            NativeLeaksError::Look(error) => error.class(),
            NativeLeaksError::Incomplete { .. } => ErrorClass::Inconclusive,
            NativeLeaksError::JavaAmong { .. }
            | NativeLeaksError::NothingHeld { .. }
            | NativeLeaksError::TooFewDumps { .. }
            | NativeLeaksError::WarmupTooLong { .. }
            | NativeLeaksError::NoInterval { .. } => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            NativeLeaksError::Look(error) => error.kind(),
            NativeLeaksError::JavaAmong { .. } => "java-among-native",
            NativeLeaksError::NothingHeld { .. } => "nothing-held",
            NativeLeaksError::TooFewDumps { .. } => "too-few-dumps",
            NativeLeaksError::WarmupTooLong { .. } => "warmup-too-long",
            NativeLeaksError::Incomplete { .. } => "incomplete-series",
            NativeLeaksError::NoInterval { .. } => "no-interval",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            NativeLeaksError::Look(error) => return error.help(),
            NativeLeaksError::JavaAmong { .. } => {
                "compare heaps of one kind; --java looks at the Java heaps of all inputs".to_owned()
            }
            NativeLeaksError::NothingHeld { help, .. } => (*help).to_owned(),
            NativeLeaksError::TooFewDumps { has_java: true, .. } => {
                "the input holds Java heaps, too, and one is enough: --java looks for leaks there"
                    .to_owned()
            }
            NativeLeaksError::TooFewDumps { .. } => {
                "record with `heaptap record -n NAME`, and after each round of what you repeat call \
                 `heaptap snapshot --label round-N`"
                    .to_owned()
            }
            NativeLeaksError::WarmupTooLong { of, .. } => {
                format!("--warmup {} at most", of.saturating_sub(2))
            }
            NativeLeaksError::Incomplete { .. } => {
                "`heaptap top INPUT@N` says what dump N lacks, and why"
                    .to_owned()
            }
            NativeLeaksError::NoInterval { .. } => {
                "say it with --interval SIZE: bytes for each sample, 1 where every allocation was \
                 recorded"
                    .to_owned()
            }
        })
    }
}
