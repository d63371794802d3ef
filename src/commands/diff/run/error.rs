//! Why there is nothing to compare.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass, ErrorFacts};

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A heap whose figures are not what is held.
    #[error("{name} cannot be compared: {why}")]
    NotHeld {
        /// The dump.
        name: String,
        /// Why its figures do not tell what grew.
        why: &'static str,
    },
    /// No heap is on both sides.
    #[error("{before} and {after} have no heap of one process in common")]
    NothingInCommon {
        /// The first input.
        before: String,
        /// The second.
        after: String,
        /// What there is on both sides.
        there: String,
    },
    /// One profile holds one heap.
    #[error("{heaps} heaps are compared, and one profile holds one")]
    SeveralHeaps {
        /// How many.
        heaps: usize,
    },
    /// A file would be overwritten.
    #[error("{} is there already", path.display())]
    OutputTaken {
        /// The file.
        path: PathBuf,
    },
    /// The profile can't be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Growth by time is asked for, and there is no time.
    #[error("{name} does not tell how long it was recorded")]
    NoTimes {
        /// The dump.
        name: String,
    },
}

impl Classified for DiffError {
    fn facts(&self) -> ErrorFacts {
        match self {
            DiffError::NotHeld { .. } => ErrorFacts::new(ErrorClass::Usage, "held-bytes-unknown")
                .with_help(
                    "`heaptap top` shows it; compare heaps such as libc.malloc, recorded without \
                     --dump-at-max",
                ),
            DiffError::NothingInCommon { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-in-common").with_help(format!(
                    "name one dump of each with --process and --heap: {there}"
                ))
            }
            DiffError::NoTimes { .. } => ErrorFacts::new(ErrorClass::Usage, "no-times")
                .with_help("leave out --per-second, or divide by iterations with --per"),
            DiffError::SeveralHeaps { .. } => ErrorFacts::new(ErrorClass::Usage, "several-heaps")
                .with_help("narrow the comparison with --process and --heap"),
            DiffError::OutputTaken { .. } => ErrorFacts::new(ErrorClass::Usage, "output-taken")
                .with_help("name another file, or --force to overwrite it"),
            DiffError::Unwritable { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("make room there, or name another file")
            }
        }
    }
}
