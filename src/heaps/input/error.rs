//! Why there is nothing to look at.

use crate::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        match self {
            LookError::Import(error) => error.class(),
            LookError::Trace(error) => error.class(),
            LookError::Maps(error) => error.class(),
            LookError::Manifest(error) => error.class(),
            LookError::NoHeap { .. } => ErrorClass::Empty,
            LookError::Broken { .. } => ErrorClass::BadInput,
            LookError::NoSuchProcess { .. } => ErrorClass::NotEligible,
            LookError::Interrupted => ErrorClass::Interrupted,
            LookError::JavaOnly { .. }
            | LookError::NoSuchDump { .. }
            | LookError::NoSuchHeap { .. } => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            LookError::Import(error) => error.kind(),
            LookError::Trace(error) => error.kind(),
            LookError::Maps(error) => error.kind(),
            LookError::Manifest(error) => error.kind(),
            LookError::NoHeap { .. } => "no-heap",
            LookError::Broken { why, .. } => why.kind,
            LookError::JavaOnly { .. } => "java-only",
            LookError::NoSuchDump { .. } => "no-such-dump",
            LookError::NoSuchProcess { .. } => "no-such-process",
            LookError::NoSuchHeap { .. } => "no-such-heap",
            LookError::Interrupted => "interrupted",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            LookError::Import(error) => return error.help(),
            LookError::Trace(error) => return error.help(),
            LookError::Maps(error) => return error.help(),
            LookError::Manifest(error) => return error.help(),
            LookError::NoHeap { why: Some(why), .. } => why.clone(),
            LookError::Broken { why, .. } => return why.help.clone(),
            LookError::NoHeap { why: None, .. } => {
                "record one with `heaptap record -n NAME`, or dump a Java heap with `heaptap \
                 dump -n NAME`"
                    .to_owned()
            }
            LookError::JavaOnly { .. } => {
                "record one with `heaptap record -n NAME`; `heaptap top` shows the Java heap"
                    .to_owned()
            }
            LookError::NoSuchDump {
                near: Some(near),
                there,
                ..
            } => format!("{near} it has {there}"),
            LookError::NoSuchDump { there, .. }
            | LookError::NoSuchProcess { there, .. }
            | LookError::NoSuchHeap { there, .. } => format!("it has {there}"),
            LookError::Interrupted => return None,
        })
    }
}
