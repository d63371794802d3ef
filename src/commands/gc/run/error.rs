//! Why there are no collections to tell of.

use std::io;

use crate::device::DeviceError;
use crate::eligibility::EligibilityError;
use crate::error::{Classified, ErrorClass};
use crate::import::{ImportError, Kind, help_unreadable};
use crate::results::timeline::TracesError;
use crate::trace::TraceError;
use crate::units::thousands;
use crate::untrusted::sanitize;

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
    /// A text without a line of a log.
    #[error("{name} is no log: {}", match lines {
        1 => "its one line is none that logcat prints".to_owned(),
        more => format!("none of its {} lines is one that logcat prints", thousands(*more)),
    })]
    NoLines {
        /// The file.
        name: String,
        /// How many lines it has.
        lines: u64,
    },
    /// A recording among several files.
    #[error("{name} is a recording: give it alone")]
    NotAlone {
        /// The recording.
        name: String,
    },
    /// A label that nobody set.
    #[error("{name} has no label {}", sanitize(label))]
    NoSuchLabel {
        /// The recording.
        name: String,
        /// The label.
        label: String,
        /// The one that was probably meant.
        near: Option<String>,
        /// Those that there are, in words.
        there: String,
    },
    /// The phone was lost, or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// What runs on the phone could not be found out.
    #[error(transparent)]
    Eligibility(#[from] EligibilityError),
    /// No such process runs.
    #[error("no process {targets} runs")]
    NotRunning {
        /// What was asked for.
        targets: String,
    },
    /// It collects no garbage.
    #[error("{name} ({pid}) has no Java heap")]
    NoArt {
        /// The process.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// It is frozen.
    #[error("{name} ({pid}) is frozen: it cannot collect before it runs again")]
    Frozen {
        /// The process.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// It could not be asked.
    #[error("{name} ({pid}) could not be asked to collect: {why}")]
    NotAsked {
        /// The process.
        name: String,
        /// Its number.
        pid: u32,
        /// Why not, each way that was tried.
        why: String,
    },
    /// It was asked, but no collection was logged.
    #[error(
        "{name} ({pid}) was asked to collect {way}, but logged no collection within {seconds} s"
    )]
    NothingLogged {
        /// The process.
        name: String,
        /// Its number.
        pid: u32,
        /// How it was asked.
        way: &'static str,
        /// How long its log was watched.
        seconds: u64,
    },
    /// The log cannot be read.
    #[error("the phone's log cannot be read: {why}")]
    NoLog {
        /// What logcat says.
        why: String,
    },
    /// A trace can't be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Classified for GcError {
    fn class(&self) -> ErrorClass {
        match self {
            GcError::Unreadable { .. } | GcError::NotALog { .. } | GcError::NoLines { .. } => {
                ErrorClass::BadInput
            }
            GcError::NotAlone { .. } | GcError::NoSuchLabel { .. } => ErrorClass::Usage,
            GcError::Device(error) => error.class(),
            GcError::Eligibility(error) => error.class(),
            GcError::NotRunning { .. } | GcError::NoArt { .. } | GcError::Frozen { .. } => {
                ErrorClass::NotEligible
            }
            GcError::NotAsked { .. } | GcError::NothingLogged { .. } | GcError::NoLog { .. } => {
                ErrorClass::Device
            }
            GcError::Import(error) => error.class(),
            GcError::Trace(error) => error.class(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            GcError::Unreadable { .. } => "log-unreadable",
            GcError::NotALog { .. } | GcError::NoLines { .. } => "not-a-log",
            GcError::NotAlone { .. } => "recording-not-alone",
            GcError::NoSuchLabel { .. } => "no-such-moment",
            GcError::Device(error) => error.kind(),
            GcError::Eligibility(error) => error.kind(),
            GcError::NotRunning { .. } => "gc-not-running",
            GcError::NoArt { .. } => "gc-no-java",
            GcError::Frozen { .. } => "gc-frozen",
            GcError::NotAsked { .. } => "gc-not-asked",
            GcError::NothingLogged { .. } => "gc-not-logged",
            GcError::NoLog { .. } => "no-log",
            GcError::Import(error) => error.kind(),
            GcError::Trace(error) => error.kind(),
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            GcError::Unreadable { name, source } => Some(help_unreadable(name, source)),
            GcError::NotALog {
                kind: Kind::Zip, ..
            } => Some(
                "of a ZIP the file is wanted, not a stream, and in it a bugreport's text \
                 (bugreport-….txt) or one log"
                    .to_owned(),
            ),
            GcError::NotALog { .. } | GcError::NoLines { .. } => Some(
                "give what `adb logcat` printed, in any format, plain or in gzip; or a \
                 recording's folder, or a trace"
                    .to_owned(),
            ),
            GcError::NotAlone { .. } => {
                Some("only logs are read one after another, as one".to_owned())
            }
            GcError::NoSuchLabel { near, there, .. } => Some(match (near, there.as_str()) {
                (_, "") => {
                    "labels are set by `heaptap snapshot --label NAME` while it records; without \
                            @ all of a recording is shown"
                        .to_owned()
                }
                (Some(near), _) => format!("did you mean {}?", sanitize(near)),
                (None, there) => format!("there are {}", sanitize(there)),
            }),
            GcError::Device(error) => error.help(),
            GcError::Eligibility(error) => error.help(),
            GcError::NotRunning { .. } => Some(
                "start it, or read what its log still says of it: `adb logcat -d | heaptap gc - \
                 --process NAME`; `heaptap apps` lists what runs"
                    .to_owned(),
            ),
            GcError::NoArt { .. } => Some(
                "only apps and the system's server collect garbage: a signal would end a native \
                 process"
                    .to_owned(),
            ),
            GcError::Frozen { .. } => Some("bring the app to the front, then ask again".to_owned()),
            GcError::NotAsked { .. } => {
                Some("does it still run? `heaptap check` says what it is".to_owned())
            }
            GcError::NothingLogged { .. } => Some(
                "a process that is busy answers late: `heaptap gc --follow` watches on".to_owned(),
            ),
            GcError::NoLog { .. } => Some(
                "does `adb logcat -d` print anything? A vendor may have switched it off".to_owned(),
            ),
            GcError::Import(error) => error.help(),
            GcError::Trace(error) => error.help(),
        }
    }
}

impl From<TracesError> for GcError {
    fn from(error: TracesError) -> GcError {
        match error {
            TracesError::Import(error) => GcError::Import(error),
            TracesError::Trace(error) => GcError::Trace(error),
        }
    }
}
