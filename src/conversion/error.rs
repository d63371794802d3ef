//! Why a conversion gave up.

use std::io;
use std::path::PathBuf;

use super::selection::Choices;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::hprof::HprofError;
use crate::import::ImportError;
use crate::naming::r8_mappings::MapsError;
use crate::trace::TraceError;

/// Why a conversion gave up.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The input holds no trace, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The HPROF can't be read.
    #[error("cannot read {name}")]
    Hprof {
        /// The file.
        name: String,
        /// What is wrong with it.
        source: HprofError,
    },
    /// A mapping file that was given can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// No dump is one that was asked for; nothing was written.
    #[error("none of the {} dumps of the trace is one that was asked for", .0.dumps)]
    NoneSelected(Choices),
    /// Whoever asked did not want to wait.
    #[error("interrupted while names were looked up")]
    Interrupted,
    /// A profile can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for ConvertError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ConvertError::Import(error) => error.facts(),
            ConvertError::Trace(error) => error.facts(),
            ConvertError::Hprof { source, .. } => source.facts(),
            ConvertError::Maps(error) => error.facts(),
            ConvertError::NoneSelected(choices) => {
                ErrorFacts::new(ErrorClass::Empty, "none-selected").with_help(choices.describe())
            }
            ConvertError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
            ConvertError::Write { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("make room there, or name another folder with -o")
            }
        }
    }
}
