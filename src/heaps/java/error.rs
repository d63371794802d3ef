//! Why there is no Java heap to look at.

use crate::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        match self {
            JavaError::Import(error) => error.class(),
            JavaError::Trace(error) => error.class(),
            JavaError::Hprof { source, .. } => source.class(),
            JavaError::Maps(error) => error.class(),
            JavaError::Manifest(error) => error.class(),
            JavaError::NoHeap { .. } => ErrorClass::Empty,
            JavaError::NoSuchProcess { .. } => ErrorClass::NotEligible,
            JavaError::Native { .. }
            | JavaError::NoSuchDump { .. }
            | JavaError::NoSuchMoment { .. }
            | JavaError::SeveralProcesses { .. } => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            JavaError::Import(error) => error.kind(),
            JavaError::Trace(error) => error.kind(),
            JavaError::Hprof { source, .. } => source.kind(),
            JavaError::Maps(error) => error.kind(),
            JavaError::Manifest(error) => error.kind(),
            JavaError::Native { .. } => "native-heap",
            JavaError::NoHeap { .. } => "no-java-heap",
            JavaError::NoSuchDump { .. } => "no-such-dump",
            JavaError::NoSuchMoment { .. } => "no-such-moment",
            JavaError::NoSuchProcess { .. } => "no-such-process",
            JavaError::SeveralProcesses { .. } => "several-processes",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            JavaError::Import(error) => return error.help(),
            JavaError::Trace(error) => return error.help(),
            JavaError::Hprof { source, .. } => return source.help(),
            JavaError::Maps(error) => return error.help(),
            JavaError::Manifest(error) => return error.help(),
            JavaError::Native { name } => format!(
                "`heaptap top {}` shows the native ones; a Java heap is dumped with \
                 `heaptap dump -n NAME`",
                quoted_path(name)
            ),
            JavaError::NoHeap { .. } => {
                "dump one with `heaptap dump -n NAME`, or as HPROF with `heaptap dump --hprof`"
                    .to_owned()
            }
            JavaError::NoSuchMoment { missing, .. } => missing.help(),
            JavaError::NoSuchDump {
                near: Some(near),
                there,
                ..
            } => format!("{near} it has {there}"),
            JavaError::NoSuchDump { there, .. } => format!("it has {there}"),
            JavaError::NoSuchProcess { there, .. } => format!("it has {there}"),
            JavaError::SeveralProcesses { there, .. } => {
                format!("name one with --process: it has {there}")
            }
        })
    }
}
