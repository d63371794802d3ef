//! Why there is no Java heap to look at.

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::moments::MomentNotFound;
use crate::hprof::HprofError;
use crate::import::ImportError;
use crate::naming::r8_mappings::MapsError;
use crate::results::manifest::ManifestError;
use crate::trace::TraceError;
use crate::untrusted::shell::quoted_path;

/// Why there is no Java heap to look at.
#[derive(Debug, thiserror::Error)]
pub enum JavaError {
    /// The input holds neither trace nor HPROF, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The HPROF can't be read.
    #[error("cannot read {name}: {source}")]
    Hprof {
        /// The file.
        name: String,
        /// Why.
        source: HprofError,
    },
    /// A mapping file that was given can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The recording's manifest can't be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace of native heaps alone.
    #[error("{name} holds native heap profiles and no Java heap")]
    Native {
        /// The input.
        name: String,
    },
    /// A trace without heaps.
    #[error("{name} holds no Java heap")]
    NoHeap {
        /// The input.
        name: String,
    },
    /// No dump is the one that was named.
    #[error("{name} has no dump {which}")]
    NoSuchDump {
        /// The input.
        name: String,
        /// What was named.
        which: String,
        /// What was probably meant.
        near: Option<String>,
        /// What there is, in words.
        there: String,
    },
    /// Nothing was taken beside the dump that was named.
    #[error("{name} has no Java heap of @{}: {}", missing.which, missing.why)]
    NoSuchMoment {
        /// The input.
        name: String,
        /// What was named, and what there is.
        missing: Box<MomentNotFound>,
    },
    /// No dump is of the process that was named.
    #[error("{name} has no Java heap of {process}")]
    NoSuchProcess {
        /// The input.
        name: String,
        /// What was named.
        process: String,
        /// What there is, in words.
        there: String,
    },
    /// Dumps of several processes, and none named.
    #[error("{name} has Java heaps of several processes")]
    SeveralProcesses {
        /// The input.
        name: String,
        /// What there is, in words.
        there: String,
    },
}

impl Classified for JavaError {
    fn facts(&self) -> ErrorFacts {
        match self {
            JavaError::Import(error) => error.facts(),
            JavaError::Trace(error) => error.facts(),
            JavaError::Hprof { source, .. } => source.facts(),
            JavaError::Maps(error) => error.facts(),
            JavaError::Manifest(error) => error.facts(),
            JavaError::Native { name } => ErrorFacts::new(ErrorClass::Usage, "native-heap")
                .with_help(format!(
                    "`heaptap top {}` shows the native ones; a Java heap is dumped with \
                     `heaptap dump -n NAME`",
                    quoted_path(name)
                )),
            JavaError::NoHeap { .. } => ErrorFacts::new(ErrorClass::Empty, "no-java-heap")
                .with_help(
                    "dump one with `heaptap dump -n NAME`, or as HPROF with `heaptap dump --hprof`",
                ),
            JavaError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-moment").with_help(missing.help())
            }
            JavaError::NoSuchDump { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-dump").with_help(match near {
                    Some(near) => format!("{near} it has {there}"),
                    None => format!("it has {there}"),
                })
            }
            JavaError::NoSuchProcess { there, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "no-such-process")
                    .with_help(format!("it has {there}"))
            }
            JavaError::SeveralProcesses { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "several-processes")
                    .with_help(format!("name one with --process: it has {there}"))
            }
        }
    }
}
