//! Errors of comparing dumps.

use crate::heaps::input::InputError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::units::counted;
use heaptap_results::findings::Finding;

fn what_is_complete(complete: usize, of: usize, left: usize, why: &str) -> String {
    let have = match complete {
        1 => "has",
        _ => "have",
    };
    let warmup = match left < complete {
        true => format!(", and --warmup leaves {left}"),
        false => String::new(),
    };
    let dumps = counted(of as u64, "dump", "dumps");
    format!("{complete} of {dumps} {have} complete data{warmup} (first loss: {why})")
}

fn why_few(missing: Option<&Finding>) -> String {
    missing.map_or_else(String::new, |missing| format!("; {}", missing.message))
}

/// Error of comparing dumps.
#[derive(Debug, thiserror::Error)]
pub enum NativeLeaksError {
    /// An input cannot be opened, or does not have a selected dump.
    #[error(transparent)]
    Look(#[from] InputError),
    /// Native heaps first, then only Java heaps.
    #[error("{name} contains only Java heaps, but the inputs before it contain native heaps")]
    JavaAmong { name: String },
    /// Unreleased bytes are unknown.
    #[error("{what}; nothing to compare")]
    NothingHeld {
        /// The dumps, and the reason.
        what: String,
        /// Alternative recording.
        help: &'static str,
    },
    /// At most one dump of each process and heap.
    #[error(
        "growth analysis needs at least two dumps of one process, better six; available: {there}{}",
        why_few(missing.as_deref())
    )]
    TooFewDumps {
        /// Readable list of the available dumps.
        there: String,
        /// True if dumps were named, so that the inputs can have more.
        named: bool,
        /// True if the inputs contain Java heaps, for which one dump is enough.
        has_java: bool,
        /// Finding about a missing part of the inputs, which can contain more dumps.
        missing: Option<Box<Finding>>,
    },
    /// The warm-up leaves fewer than two dumps.
    #[error("--warmup excludes {left_out} of {of} dumps; growth analysis needs at least two")]
    WarmupTooLong {
        /// Dumps left out.
        left_out: usize,
        /// Dumps that could be compared without it.
        of: usize,
    },
    /// Too few dumps have complete data.
    #[error(
        "{}; growth analysis needs at least two",
        what_is_complete(*.complete, *.of, *.left, why)
    )]
    Incomplete {
        /// Number of dumps with complete data.
        complete: usize,
        /// Number of all dumps.
        of: usize,
        /// Number of complete dumps after the warm-up.
        left: usize,
        /// What the first incomplete dump lacks.
        why: &'static str,
    },
    /// The sampling interval is needed for the sampling error.
    #[error("{name} does not contain its sampling interval")]
    NoInterval { name: String },
}

impl Classified for NativeLeaksError {
    fn facts(&self) -> ErrorFacts {
        match self {
            NativeLeaksError::Look(error) => error.facts(),
            NativeLeaksError::JavaAmong { .. } => ErrorFacts::new(
                ErrorClass::Usage,
                "java-among-native",
            )
            .with_help(
                "compare heaps of one kind, or use `--heap java` to analyze the Java heaps of all \
                     inputs",
            ),
            NativeLeaksError::NothingHeld { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-unreleased").with_help(*help)
            }
            NativeLeaksError::TooFewDumps {
                named,
                has_java,
                missing,
                ..
            } => {
                let facts = match missing {
                    Some(_) => ErrorFacts::new(ErrorClass::Inconclusive, "incomplete-series"),
                    None => ErrorFacts::new(ErrorClass::Usage, "too-few-dumps"),
                };
                let remedy = missing.as_ref().and_then(|missing| missing.help.as_deref());
                facts.with_help(match (has_java, remedy) {
                    (true, _) => {
                        "use `--heap java` to search the Java heaps of the input for leaks; one dump is \
                         enough"
                    }
                    (false, Some(remedy)) => remedy,
                    (false, None) if *named => "name two dumps at least, such as FILE@1 FILE@last",
                    (false, None) => {
                        "record again with `heaptap record -n NAME`, and run `heaptap snapshot \
                         --label round-N` after each iteration"
                    }
                })
            }
            NativeLeaksError::WarmupTooLong { of, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "warmup-too-long").with_help(match of {
                    0..=2 => "leave out `--warmup`".to_owned(),
                    _ => format!("use `--warmup {}` or less", of - 2),
                })
            }
            NativeLeaksError::Incomplete { complete, .. } => {
                ErrorFacts::new(ErrorClass::Inconclusive, "incomplete-series").with_help(
                    match complete {
                        0 | 1 => "record again with two dumps or more: `record -c 10s`, or \
                                  `heaptap snapshot` after each iteration; `heaptap top` on a \
                                  dump shows what it lacks"
                            .to_owned(),
                        2 => "leave out `--warmup`".to_owned(),
                        _ => format!("use `--warmup {}` or less", complete - 2),
                    },
                )
            }
            NativeLeaksError::NoInterval { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-interval").with_help(
                    "specify it with `--interval SIZE`: bytes per sample, or 1 if every allocation \
                     was recorded",
                )
            }
        }
    }
}
