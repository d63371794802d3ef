//! Why there is nothing to look at.

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::import::ImportError;
use crate::naming::r8_mappings::MapsError;
use crate::results::findings::Finding;
use crate::results::manifest::ManifestError;
use crate::trace::TraceError;

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The input holds nothing that is read, or can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A mapping file that was given can't be used.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The recording's manifest can't be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace without heaps.
    #[error("{name} holds no heap profile")]
    NoHeap {
        /// The input.
        name: String,
        /// Why that may be, with the remedy.
        why: Option<String>,
    },
    /// A trace that is cut or damaged before its first heap.
    #[error("no heap profile can be read of {name}: {}", why.message)]
    Broken {
        /// The input.
        name: String,
        /// What is wrong.
        why: Box<Finding>,
    },
    /// Java heaps alone, where a native one is wanted.
    #[error("{name} holds no native heap profile, only Java heaps")]
    JavaOnly {
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
    /// No dump is of the process that was named.
    #[error("{name} has no heap profile of {process}")]
    NoSuchProcess {
        /// The input.
        name: String,
        /// What was named.
        process: String,
        /// What there is, in words.
        there: String,
    },
    /// No dump is of the heap that was named.
    #[error("{name} has no heap {heap}")]
    NoSuchHeap {
        /// The input.
        name: String,
        /// What was named.
        heap: String,
        /// What there is, in words.
        there: String,
    },
    /// Whoever asked did not want to wait.
    #[error("interrupted while names were looked up")]
    Interrupted,
}

impl Classified for LookError {
    fn facts(&self) -> ErrorFacts {
        match self {
            LookError::Import(error) => error.facts(),
            LookError::Trace(error) => error.facts(),
            LookError::Maps(error) => error.facts(),
            LookError::Manifest(error) => error.facts(),
            LookError::NoHeap { why, .. } => ErrorFacts::new(ErrorClass::Empty, "no-heap")
                .with_help(why.as_deref().unwrap_or(
                    "record one with `heaptap record -n NAME`, or dump a Java heap with `heaptap \
                     dump -n NAME`",
                )),
            LookError::Broken { why, .. } => ErrorFacts {
                help: why.help.clone(),
                ..ErrorFacts::new(ErrorClass::BadInput, why.kind)
            },
            LookError::JavaOnly { .. } => ErrorFacts::new(ErrorClass::Usage, "java-only")
                .with_help(
                    "record one with `heaptap record -n NAME`; `heaptap top` shows the Java heap",
                ),
            LookError::NoSuchDump { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-dump").with_help(match near {
                    Some(near) => format!("{near} it has {there}"),
                    None => format!("it has {there}"),
                })
            }
            LookError::NoSuchProcess { there, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "no-such-process")
                    .with_help(format!("it has {there}"))
            }
            LookError::NoSuchHeap { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-heap")
                    .with_help(format!("it has {there}"))
            }
            LookError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}
