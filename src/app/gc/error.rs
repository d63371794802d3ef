//! Why there are no collections to tell of.

use std::io;

use crate::error::{Classified, ErrorClass};
use crate::import::{ImportError, Kind};

/// Why there are no collections to tell of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GcError {
    /// A file can't be read.
    #[error("cannot read {name}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file is something else.
    #[error("{name} is neither a log nor a recording: it is {kind}")]
    NotALog {
        /// The file.
        name: String,
        /// What it is.
        kind: Kind,
    },
    /// A recording among several files.
    #[error("{name} is a recording: give it alone")]
    NotAlone {
        /// The recording.
        name: String,
    },
    /// A trace can't be opened.
    #[error(transparent)]
    Trace(#[from] ImportError),
}

impl Classified for GcError {
    fn class(&self) -> ErrorClass {
        match self {
            GcError::Unreadable { .. } | GcError::NotALog { .. } => ErrorClass::BadInput,
            GcError::NotAlone { .. } => ErrorClass::Usage,
            GcError::Trace(error) => error.class(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            GcError::Unreadable { .. } => "log-unreadable",
            GcError::NotALog { .. } => "not-a-log",
            GcError::NotAlone { .. } => "recording-not-alone",
            GcError::Trace(error) => error.kind(),
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            GcError::Unreadable { .. } => {
                Some("is the path right, and may you read it?".to_owned())
            }
            GcError::NotALog {
                kind: Kind::Zip, ..
            } => Some("unpack it, and give the text of a bugreport: bugreport-….txt".to_owned()),
            GcError::NotALog { .. } => Some(
                "give what `adb logcat` printed, in any format, plain or in gzip; or a \
                 recording's folder, or a trace"
                    .to_owned(),
            ),
            GcError::NotAlone { .. } => {
                Some("only logs are read one after another, as one".to_owned())
            }
            GcError::Trace(error) => error.help(),
        }
    }
}
