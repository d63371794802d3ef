//! Why there are no collections to tell of.

use std::io;

use crate::device::DeviceError;
use crate::eligibility::EligibilityError;
use crate::error::{Classified, ErrorClass, ErrorFacts};
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
    fn facts(&self) -> ErrorFacts {
        match self {
            GcError::Unreadable { name, source } => {
                ErrorFacts::new(ErrorClass::BadInput, "log-unreadable")
                    .with_help(help_unreadable(name, source))
            }
            GcError::NotALog {
                kind: Kind::Zip, ..
            } => ErrorFacts::new(ErrorClass::BadInput, "not-a-log").with_help(
                "a ZIP is read if it has a bugreport's text (bugreport-….txt), or one log and no \
                 other text",
            ),
            GcError::NotALog { .. } | GcError::NoLines { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-log").with_help(
                    "give what `adb logcat` printed, in any format, plain or in gzip, zstd or xz; \
                     or a recording's folder, or a trace",
                )
            }
            GcError::NotAlone { .. } => ErrorFacts::new(ErrorClass::Usage, "recording-not-alone")
                .with_help("only logs are read one after another, as one"),
            GcError::NoSuchLabel { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-moment").with_help(
                    match (near, there.as_str()) {
                        (_, "") => "labels are set by `heaptap snapshot --label NAME` while it \
                                    records; without @ all of a recording is shown"
                            .to_owned(),
                        (Some(near), _) => format!("did you mean {}?", sanitize(near)),
                        (None, there) => format!("there are {}", sanitize(there)),
                    },
                )
            }
            GcError::Device(error) => error.facts(),
            GcError::Eligibility(error) => error.facts(),
            GcError::NotRunning { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "gc-not-running").with_help(
                    "start it, or read what its log still says of it: `adb logcat -d | heaptap gc \
                     - --process NAME`; `heaptap apps` lists what runs",
                )
            }
            GcError::NoArt { .. } => ErrorFacts::new(ErrorClass::NotEligible, "gc-no-java")
                .with_help(
                    "only apps and the system's server collect garbage: a signal would end a \
                     native process",
                ),
            GcError::Frozen { .. } => ErrorFacts::new(ErrorClass::NotEligible, "gc-frozen")
                .with_help("bring the app to the front, then ask again"),
            GcError::NotAsked { .. } => ErrorFacts::new(ErrorClass::Device, "gc-not-asked")
                .with_help("does it still run? `heaptap check` says what it is"),
            GcError::NothingLogged { .. } => ErrorFacts::new(ErrorClass::Device, "gc-not-logged")
                .with_help("a process that is busy answers late: `heaptap gc --follow` watches on"),
            GcError::NoLog { .. } => ErrorFacts::new(ErrorClass::Device, "no-log").with_help(
                "does `adb logcat -d` print anything? A vendor may have switched it off",
            ),
            GcError::Import(error) => error.facts(),
            GcError::Trace(error) => error.facts(),
        }
    }
}

impl GcError {
    /// Of a log that the system does not give.
    pub(super) fn unreadable(name: &str) -> impl Fn(io::Error) -> GcError + Copy {
        move |source| GcError::Unreadable {
            name: name.to_owned(),
            source,
        }
    }

    /// Of a log that cannot be opened or unpacked.
    pub(super) fn of_text(error: ImportError) -> GcError {
        match error {
            ImportError::Unreadable { name, source } => GcError::Unreadable { name, source },
            ImportError::Damaged { name, what } => GcError::Unreadable {
                name,
                source: io::Error::other(what),
            },
            error => GcError::Import(error),
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
