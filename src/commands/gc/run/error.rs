//! Errors of `gc`.

use std::io;

use crate::device::DeviceError;
use crate::eligibility::{AbsentTarget, EligibilityError};
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::import::{ImportError, Kind, help_unreadable};
use crate::results::timeline::TracesError;
use crate::trace::TraceError;
use crate::units::thousands;
use crate::untrusted::sanitize;

/// Reason why there are no collections to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GcError {
    /// A file cannot be read.
    #[error("cannot read {name}")]
    Unreadable {
        name: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file has another kind.
    #[error("{name} is neither a log nor a recording: it is {kind}")]
    NotALog { name: String, kind: Kind },
    /// A text does not contain a log line.
    #[error("{name} is not a log: {}", match lines {
        _ if matches!(kind, Kind::Known(_)) => format!("it is {kind}"),
        1 => "its only line is not in a logcat format".to_owned(),
        more => format!("none of its {} lines is in a logcat format", thousands(*more)),
    })]
    NoLines {
        name: String,
        kind: Kind,
        /// Number of lines.
        lines: u64,
    },
    /// A recording is combined with other inputs.
    #[error("cannot combine recording {name} with other inputs")]
    NotAlone { name: String },
    /// A time between labels of a log.
    #[error("{name} is a log, and only recordings have labels")]
    LogHasNoLabels { name: String },
    /// The recording does not have the label.
    #[error("{name} does not have a label {}", sanitize(label))]
    NoSuchLabel {
        name: String,
        label: String,
        /// Similar label, if there is one.
        near: Option<String>,
        /// Existing labels, as text.
        there: String,
    },
    /// The device is lost or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The processes on the device cannot be determined.
    #[error(transparent)]
    Eligibility(#[from] EligibilityError),
    /// No such process is running.
    #[error(transparent)]
    NotRunning(AbsentTarget),
    /// The process does not have a Java runtime.
    #[error("{name} ({pid}) does not have a Java heap")]
    NoArt {
        /// Name of the process.
        name: String,
        pid: u32,
    },
    /// The process is frozen.
    #[error("{name} ({pid}) is frozen and cannot collect garbage until it runs again")]
    Frozen {
        /// Name of the process.
        name: String,
        pid: u32,
    },
    /// The request for a collection failed.
    #[error("cannot request a GC of {name} ({pid}): {why}")]
    NotAsked {
        /// Name of the process.
        name: String,
        pid: u32,
        /// Reason, for each method that was tried.
        why: String,
    },
    /// The request was sent, but no collection was logged.
    #[error(
        "{name} ({pid}) did not log a collection within {seconds} s after a GC was requested {way}"
    )]
    NothingLogged {
        /// Name of the process.
        name: String,
        pid: u32,
        /// Method of the request.
        way: &'static str,
        /// Seconds for which the log was watched.
        seconds: u64,
    },
    /// The log cannot be read.
    #[error("cannot read the device log: {why}")]
    NoLog {
        /// Message of logcat.
        why: String,
    },
    /// A trace cannot be opened.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A trace cannot be read.
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
                "use a ZIP that contains a bug report (bugreport-….txt), or one log and no other \
                 text",
            ),
            GcError::NotALog { kind, .. } | GcError::NoLines { kind, .. }
                if matches!(kind, Kind::Known(_)) =>
            {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-log").with_help(kind.help())
            }
            GcError::NotALog { .. } | GcError::NoLines { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-log").with_help(
                    "use the output of `adb logcat` in any format (plain, gzip, zstd or xz), a \
                     recording directory or a trace",
                )
            }
            GcError::NotAlone { .. } => ErrorFacts::new(ErrorClass::Usage, "recording-not-alone")
                .with_help("pass the recording alone; only logs can be combined"),
            GcError::LogHasNoLabels { .. } => ErrorFacts::new(ErrorClass::Usage, "no-such-capture")
                .with_help(
                    "leave out the labels to read the whole log, or pass the recording directory",
                ),
            GcError::NoSuchLabel { near, there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-capture").with_help(
                    match (near, there.as_str()) {
                        (_, "") => "show the whole recording without `@`, or set labels with \
                                    `heaptap snapshot --label NAME` while it records"
                            .to_owned(),
                        (Some(near), _) => format!("did you mean {}?", sanitize(near)),
                        (None, there) => format!("choose from: {}", sanitize(there)),
                    },
                )
            }
            GcError::Device(error) => error.facts(),
            GcError::Eligibility(error) => error.facts(),
            GcError::NotRunning(absent) => {
                let help = &absent.help;
                ErrorFacts::new(ErrorClass::NotEligible, "gc-not-running").with_help(
                    match absent.can_start {
                        true => format!(
                            "{help}, or read an earlier log with `adb logcat -d | heaptap gc - -n \
                             NAME`"
                        ),
                        false => help.clone(),
                    },
                )
            }
            GcError::NoArt { .. } => ErrorFacts::new(ErrorClass::NotEligible, "gc-no-java")
                .with_help(
                    "choose an app or system_server. Only they have a garbage collector, and the \
                     signal would end a native process.",
                ),
            GcError::Frozen { .. } => ErrorFacts::new(ErrorClass::NotEligible, "gc-frozen")
                .with_help("bring the app to the foreground, then try again"),
            GcError::NotAsked { .. } => ErrorFacts::new(ErrorClass::Device, "gc-not-requested")
                .with_help("check with `heaptap check` whether the process is still running"),
            GcError::NothingLogged { .. } => ErrorFacts::new(ErrorClass::Device, "gc-not-logged")
                .with_help(
                    "watch the log with `heaptap gc --follow`; a busy process responds late",
                ),
            GcError::NoLog { .. } => ErrorFacts::new(ErrorClass::Device, "no-log")
                .with_help("check that `adb logcat -d` prints lines; some vendors disable the log"),
            GcError::Import(error) => error.facts(),
            GcError::Trace(error) => error.facts(),
        }
    }
}

impl GcError {
    /// Returns a function that makes the error of a log that the system cannot read.
    pub(super) fn unreadable(name: &str) -> impl Fn(io::Error) -> GcError + Copy {
        move |source| GcError::Unreadable {
            name: name.to_owned(),
            source,
        }
    }

    /// Converts the error of a log that cannot be opened or unpacked.
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
