//! Errors of opening a Java heap.

use super::heap::JavaHeap;
use crate::heaps::available;
use crate::heaps::moments::MomentNotFound;
use crate::heaps::selector::or_rows;
use crate::heaps::trace_findings::is_missing_part;
use crate::names::r8_mappings::MapsError;
use android_hprof::HprofError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_input::ImportError;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::ManifestError;
use perfetto_heap::TraceError;

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
    #[error("{name} contains no objects{}", why_empty(name, why.as_deref()))]
    NoObjects {
        name: String,
        /// Damage or loss of the dump.
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

/// Returns a finding as the end of a message that begins with the name of the input.
fn why_empty(name: &str, why: Option<&Finding>) -> String {
    let Some(message) = why.map(|why| why.message.as_str()) else {
        return String::new();
    };
    let after_name = message.strip_prefix(name);
    let message = after_name
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(message);
    format!(": {message}")
}

fn is_damage(found: &Finding) -> bool {
    found.class == Some(ErrorClass::BadInput)
}

impl JavaError {
    /// Returns the error for a dump without objects.
    pub(crate) fn no_objects(heap: &JavaHeap) -> JavaError {
        let all = || heap.findings.iter();
        let lost = |found: &&Finding| found.class.is_some() || is_missing_part(found);
        let why = all()
            .find(|found| is_damage(found))
            .or_else(|| all().find(lost));
        let why = why.cloned().map(Box::new);
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
            JavaError::Broken { why, .. } => why.as_error(),
            JavaError::NoObjects { why, .. } => {
                let help = why.as_ref().and_then(|why| why.help.clone());
                let help = help.unwrap_or_else(|| "dump the heap again".to_owned());
                match why {
                    Some(why) if is_damage(why) => ErrorFacts::new(ErrorClass::BadInput, why.kind),
                    _ => ErrorFacts::new(ErrorClass::Empty, "java-heap-dump"),
                }
                .with_help(help)
            }
            JavaError::NoHeap { .. } => ErrorFacts::new(ErrorClass::Empty, "no-java-heap")
                .with_help(
                    "dump one with `heaptap dump -n NAME`, or as HPROF with `heaptap dump --hprof`",
                ),
            JavaError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-capture").with_help(missing.help())
            }
            JavaError::NoSuchDump { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-dump")
                    .with_help(available(near.as_deref(), there))
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
