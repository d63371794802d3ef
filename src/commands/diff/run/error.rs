//! Errors of comparisons.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::results::overwrite::OverwriteError;

/// Reason why a comparison fails.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The figures of a heap are not its unreleased memory.
    #[error("cannot compare {name}: {why}")]
    NotHeld {
        /// Name of the dump.
        name: String,
        /// Reason why the figures do not show growth.
        why: &'static str,
    },
    /// The inputs do not share a heap.
    #[error("{before} and {after} do not share a heap of the same process")]
    NothingInCommon {
        /// First input.
        before: String,
        /// Second input.
        after: String,
        /// Heaps of both inputs, as text.
        there: String,
    },
    /// One profile cannot hold several heaps.
    #[error("`-o` with a pprof writes one heap, but {heaps} are selected")]
    SeveralHeaps {
        /// Number of selected heaps.
        heaps: usize,
    },
    /// The output would overwrite a file.
    #[error(transparent)]
    Output(#[from] OverwriteError),
    /// The profile cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Growth per time is requested, but the recording time is unknown.
    #[error("the recording time of {name} is unknown")]
    NoTimes {
        /// Name of the dump.
        name: String,
    },
}

impl Classified for DiffError {
    fn facts(&self) -> ErrorFacts {
        match self {
            DiffError::NotHeld { .. } => ErrorFacts::new(ErrorClass::Usage, "unreleased-unknown")
                .with_help(
                    "view it with `heaptap top`, or compare a heap that records frees, such as \
                     libc.malloc, recorded without `--dump-at-max`",
                ),
            DiffError::NothingInCommon { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-in-common").with_help(format!(
                    "select one dump of each with `-n` or `-p`, and `--heap`: {there}"
                ))
            }
            DiffError::NoTimes { .. } => ErrorFacts::new(ErrorClass::Usage, "no-times")
                .with_help("leave out `--per-second`, or divide by iterations with `--rounds`"),
            DiffError::SeveralHeaps { .. } => ErrorFacts::new(ErrorClass::Usage, "several-heaps")
                .with_help("narrow the comparison with `-n` or `-p`, and `--heap`"),
            DiffError::Output(error) => error.facts(),
            DiffError::Unwritable { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("name a file in a writable directory with free space")
            }
        }
    }
}
