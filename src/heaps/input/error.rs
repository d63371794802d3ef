//! Errors of opening an input.

use std::collections::BTreeSet;

use crate::heaps::available;
use crate::heaps::selector::or_rows;
use crate::names::r8_mappings::MapsError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::suggest::nearest;
use heaptap_input::ImportError;
use heaptap_model::profile::meant_heap;
use heaptap_results::findings::Finding;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::ManifestError;
use perfetto_heap::TraceError;

/// Error of opening an input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input has an unsupported format, or cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An R8 mapping from the command line is unusable.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The recording's manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace without heaps.
    #[error("{name} contains no heap profile")]
    NoHeap {
        name: String,
        /// Possible reason, with the remedy.
        why: Option<String>,
    },
    /// A trace that is truncated or damaged before its first heap.
    #[error("cannot read a heap profile from {name}: {}", why.message)]
    Broken { name: String, why: Box<Finding> },
    /// Only Java heaps, but a native one is required.
    #[error("{name} contains no native heap profile, only Java heaps")]
    JavaOnly { name: String },
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
    /// The selected process has no dump.
    #[error("{name} does not have a heap profile of {process}")]
    NoSuchProcess {
        name: String,
        process: String,
        /// Readable list of the available processes.
        there: String,
    },
    /// The selected heap has no dump.
    #[error("{name} does not have a heap {heap}")]
    NoSuchHeap {
        name: String,
        heap: String,
        /// Available heap with a similar name.
        near: Option<String>,
        /// Readable list of the available heaps.
        there: String,
    },
    /// The user interrupted symbolization.
    #[error("interrupted while looking up symbols")]
    Interrupted,
}

impl InputError {
    /// Returns the error of an input without a heap, with the reason.
    pub(crate) fn nothing_in(name: String, why: Finding) -> InputError {
        match why.class {
            Some(ErrorClass::BadInput) => InputError::Broken {
                name,
                why: Box::new(why),
            },
            _ => InputError::no_heap(name, Some(why)),
        }
    }

    /// Returns the error of a whole trace without a heap, with the probable reason.
    pub(crate) fn no_heap(name: String, why: Option<Finding>) -> InputError {
        let why = why.map(|finding| match finding.help {
            Some(help) => format!("{}; {help}", finding.message),
            None => finding.message,
        });
        InputError::NoHeap { name, why }
    }

    /// Returns the error for heaps of which none is in the input.
    pub(crate) fn no_such_heap(
        name: String,
        wanted: &[String],
        there: BTreeSet<String>,
    ) -> InputError {
        let near_of = |wanted: &String| {
            let meant = meant_heap(wanted).filter(|heap| there.contains(*heap));
            meant.or_else(|| nearest(wanted, there.iter().map(String::as_str)))
        };
        InputError::NoSuchHeap {
            name,
            heap: wanted.join(", "),
            near: wanted.iter().find_map(near_of).map(str::to_owned),
            there: join_list(there.into_iter()),
        }
    }
}

impl Classified for InputError {
    fn facts(&self) -> ErrorFacts {
        match self {
            InputError::Import(error) => error.facts(),
            InputError::Trace(error) => error.facts(),
            InputError::Maps(error) => error.facts(),
            InputError::Manifest(error) => error.facts(),
            InputError::NoHeap { why, .. } => ErrorFacts::new(ErrorClass::Empty, "no-heap")
                .with_help(why.as_deref().unwrap_or(
                    "record one with `heaptap record -n NAME`, or dump a Java heap with `heaptap \
                     dump -n NAME`",
                )),
            InputError::Broken { why, .. } => why.as_error(),
            InputError::JavaOnly { .. } => ErrorFacts::new(ErrorClass::Empty, "java-only")
                .with_help(
                    "record one with `heaptap record -n NAME`, or show the Java heap with `heaptap \
                     top`",
                ),
            InputError::NoSuchDump { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-dump")
                    .with_help(available(near.as_deref(), there))
            }
            InputError::NoSuchProcess { process, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-process")
                    .with_help(format!("available: {there}{}", or_rows(process)))
            }
            InputError::NoSuchHeap { near, there, .. } => {
                let near = near.as_ref().map(|near| format!("did you mean {near}?"));
                ErrorFacts::new(ErrorClass::Usage, "no-such-heap")
                    .with_help(available(near.as_deref(), there))
            }
            InputError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}
