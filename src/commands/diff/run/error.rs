//! Why there is nothing to compare.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass};

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
    fn class(&self) -> ErrorClass {
        match self {
            DiffError::Unwritable { .. } => ErrorClass::HostWrite,
            _ => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            DiffError::NotHeld { .. } => "held-bytes-unknown",
            DiffError::NothingInCommon { .. } => "nothing-in-common",
            DiffError::NoTimes { .. } => "no-times",
            DiffError::SeveralHeaps { .. } => "several-heaps",
            DiffError::OutputTaken { .. } => "output-taken",
            DiffError::Unwritable { .. } => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            DiffError::NotHeld { .. } => {
                "`heaptap top` shows it; compare heaps such as libc.malloc, recorded without \
                 --dump-at-max"
                    .to_owned()
            }
            DiffError::NothingInCommon { there, .. } => {
                format!("name one dump of each with --process and --heap: {there}")
            }
            DiffError::SeveralHeaps { .. } => {
                "narrow the comparison with --process and --heap".to_owned()
            }
            DiffError::OutputTaken { .. } => {
                "name another file, or --force to overwrite it".to_owned()
            }
            DiffError::Unwritable { .. } => "make room there, or name another file".to_owned(),
            DiffError::NoTimes { .. } => {
                "leave out --per-second, or divide by iterations with --per".to_owned()
            }
        })
    }
}
