//! Errors of opening a Java heap.

use super::heap::JavaHeap;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::moments::MomentNotFound;
use crate::heaps::selector::or_rows;
use crate::hprof::HprofError;
use crate::import::ImportError;
use crate::naming::r8_mappings::MapsError;
use crate::results::findings::Finding;
use crate::results::manifest::ManifestError;
use crate::trace::TraceError;
use crate::untrusted::shell::quoted_path;

/// Error of opening a Java heap.
#[derive(Debug, thiserror::Error)]
pub enum JavaError {
    /// The input is neither a trace nor an HPROF, or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The HPROF cannot be read.
    #[error("cannot read {name}: {source}")]
    Hprof { name: String, source: HprofError },
    /// An R8 mapping from the command line is unusable.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The recording's manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace with only native heaps.
    #[error("{name} contains native heap profiles but no Java heap")]
    Native { name: String },
    /// A trace without heaps.
    #[error("{name} contains no Java heap")]
    NoHeap { name: String },
    /// A trace that is truncated or damaged before its first Java heap.
    #[error("cannot read a Java heap from {name}: {}", why.message)]
    Broken { name: String, why: Box<Finding> },
    /// A dump without objects.
    #[error("{name} contains no objects{}", why_empty(why.as_deref()))]
    NoObjects {
        name: String,
        /// Damage of the dump.
        why: Option<Box<Finding>>,
    },
    /// The selected dump does not exist.
    #[error("{name} does not have a dump `{which}`")]
    NoSuchDump {
        name: String,
        /// Selector.
        which: String,
        /// Suggestion.
        near: Option<String>,
        /// Readable list of the available dumps.
        there: String,
    },
    /// No Java heap was captured with the selected dump.
    #[error("{name} does not have a Java heap of @{}: {}", missing.which, missing.why)]
    NoSuchMoment {
        name: String,
        /// Selector, and available ones.
        missing: Box<MomentNotFound>,
    },
    /// The selected process has no dump.
    #[error("{name} does not have a Java heap of {process}")]
    NoSuchProcess {
        name: String,
        process: String,
        /// Readable list of the available processes.
        there: String,
    },
    /// Dumps of several processes, and none selected.
    #[error("{name} has Java heaps of several processes")]
    SeveralProcesses {
        name: String,
        /// Readable list of the available processes.
        there: String,
    },
}

fn why_empty(why: Option<&Finding>) -> String {
    why.map_or_else(String::new, |why| format!(": {}", why.message))
}

impl JavaError {
    /// Returns the error for a dump without objects.
    pub(crate) fn no_objects(heap: &JavaHeap) -> JavaError {
        let damage = |found: &&Finding| found.class == Some(ErrorClass::BadInput);
        let why = heap.findings.iter().find(damage).cloned().map(Box::new);
        let name = heap.name();
        JavaError::NoObjects { name, why }
    }
}

impl Classified for JavaError {
    fn facts(&self) -> ErrorFacts {
        match self {
            JavaError::Import(error) => error.facts(),
            JavaError::Trace(error) => error.facts(),
            JavaError::Hprof { source, .. } => source.facts(),
            JavaError::Maps(error) => error.facts(),
            JavaError::Manifest(error) => error.facts(),
            JavaError::Native { name } => ErrorFacts::new(ErrorClass::Empty, "native-heap")
                .with_help(format!(
                    "show the native heap profiles with `heaptap top {}`, or dump a Java heap with \
                     `heaptap dump -n NAME`",
                    quoted_path(name)
                )),
            JavaError::Broken { why, .. } | JavaError::NoObjects { why: Some(why), .. } => {
                ErrorFacts {
                    help: why.help.clone(),
                    ..ErrorFacts::new(why.class.unwrap_or(ErrorClass::BadInput), why.kind)
                }
            }
            JavaError::NoObjects { why: None, .. } => {
                ErrorFacts::new(ErrorClass::Empty, "java-heap-dump")
                    .with_help("dump the heap again")
            }
            JavaError::NoHeap { .. } => ErrorFacts::new(ErrorClass::Empty, "no-java-heap")
                .with_help(
                    "dump one with `heaptap dump -n NAME`, or as HPROF with `heaptap dump --hprof`",
                ),
            JavaError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-capture").with_help(missing.help())
            }
            JavaError::NoSuchDump { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-dump").with_help(match near {
                    Some(near) => format!("{near} Available: {there}"),
                    None => format!("available: {there}"),
                })
            }
            JavaError::NoSuchProcess { process, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-process")
                    .with_help(format!("available: {there}{}", or_rows(process)))
            }
            JavaError::SeveralProcesses { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "several-processes")
                    .with_help(format!("select one with `-n` or `-p`; available: {there}"))
            }
        }
    }
}
