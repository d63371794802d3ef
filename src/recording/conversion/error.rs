//! Errors of a conversion.

use std::io;
use std::path::PathBuf;

use super::selection::Choices;
use crate::names::r8_mappings::MapsError;
use android_hprof::HprofError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, mend_write};
use heaptap_input::ImportError;
use perfetto_heap::TraceError;

/// Error of a conversion.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The input contains no trace, or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The HPROF cannot be read.
    #[error("cannot read {name}")]
    Hprof { name: String, source: HprofError },
    /// A given R8 mapping is unusable.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// No dump matches the selection; nothing was written.
    #[error("none of the {} dumps in the trace matches the selection", .0.dumps)]
    NoneSelected(Choices),
    /// The user interrupted symbolization.
    #[error("interrupted while looking up symbols")]
    Interrupted,
    /// A profile cannot be written.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Classified for ConvertError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ConvertError::Import(error) => error.facts(),
            ConvertError::Trace(error) => error.facts(),
            ConvertError::Hprof { source, .. } => source.facts(),
            ConvertError::Maps(error) => error.facts(),
            ConvertError::NoneSelected(choices) => {
                ErrorFacts::new(ErrorClass::Usage, "none-selected").with_help(choices.describe())
            }
            ConvertError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
            ConvertError::Write { source, .. } => {
                let mend = mend_write(source);
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help(format!("{mend}, or choose another directory with `-o`"))
            }
        }
    }
}
