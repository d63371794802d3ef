//! Why a conversion gave up.

use std::io;
use std::path::PathBuf;

use super::selection::Choices;
use crate::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        match self {
            ConvertError::Import(error) => error.class(),
            ConvertError::Trace(error) => error.class(),
            ConvertError::Hprof { source, .. } => source.class(),
            ConvertError::Maps(error) => error.class(),
            ConvertError::NoneSelected(_) => ErrorClass::Empty,
            ConvertError::Interrupted => ErrorClass::Interrupted,
            ConvertError::Write { .. } => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ConvertError::Import(error) => error.kind(),
            ConvertError::Trace(error) => error.kind(),
            ConvertError::Hprof { source, .. } => source.kind(),
            ConvertError::Maps(error) => error.kind(),
            ConvertError::NoneSelected(_) => "none-selected",
            ConvertError::Interrupted => "interrupted",
            ConvertError::Write { .. } => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            ConvertError::Import(error) => error.help(),
            ConvertError::Trace(error) => error.help(),
            ConvertError::Hprof { source, .. } => source.help(),
            ConvertError::Maps(error) => error.help(),
            ConvertError::NoneSelected(choices) => Some(choices.describe()),
            ConvertError::Interrupted => None,
            ConvertError::Write { .. } => {
                Some("make room there, or name another folder with -o".to_owned())
            }
        }
    }
}
