//! Errors of reading meminfo.

use std::io;
use std::path::PathBuf;

use crate::heaps::moments::MomentNotFound;
use heaptap_adb::DeviceError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::eligibility::AbsentTarget;
use heaptap_capture::error::CaptureError;
use heaptap_input::{ImportError, Kind, help_unreadable};

/// Error of reading meminfo.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeminfoError {
    /// The device is disconnected, or does not answer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device could not list its processes.
    #[error(transparent)]
    Eligibility(#[from] CaptureError),
    /// No running process matches.
    #[error(transparent)]
    NotFound(AbsentTarget),
    /// The process ended during the request.
    #[error("{target} ended during the request: {said}")]
    Gone {
        target: String,
        /// Output of the device.
        said: String,
    },
    /// The app did not answer.
    #[error("{target} did not return meminfo: {said}")]
    Unanswered {
        target: String,
        /// Output of the device.
        said: String,
        /// True if only the system was queried, without the app.
        local: bool,
    },
    /// The output is not meminfo.
    #[error("cannot parse the output of `dumpsys meminfo`: {said}")]
    Strange {
        /// First line of the output.
        said: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A file cannot be decompressed.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A file contains something else.
    #[error("{name} is not output of `dumpsys meminfo`: {why}")]
    NotMeminfo {
        name: String,
        /// Description of its content.
        why: String,
    },
    /// A file contains what the device printed instead of meminfo.
    #[error(
        "{name} has no meminfo, because the device did not answer: {}",
        sanitize(said)
    )]
    NoAnswer { name: String, said: String },
    /// A file contains another text.
    #[error("{name} is not output of `dumpsys meminfo`: it is {kind}")]
    OtherText { name: String, kind: Kind },
    /// A file contains XML of an allocator, which only `--reconcile` reads.
    #[error("{name} is XML of malloc_info, not output of `dumpsys meminfo`")]
    MallocInfo { name: String },
    /// None of the processes is in it.
    #[error("{name} does not contain {process}")]
    NoSuchProcess {
        /// The input.
        name: String,
        /// The requested processes.
        process: String,
        /// The processes of the input, as a list.
        there: String,
    },
    /// A directory does not have the selected text.
    #[error("{name} does not have meminfo of @{}: {}", missing.which, missing.why)]
    NoSuchMoment {
        name: String,
        /// Selector, and available ones.
        missing: Box<MomentNotFound>,
    },
    /// A directory without meminfo.
    #[error("{name} contains no meminfo, because it was not recorded")]
    NotKept { name: String },
    /// Two texts have no process in common.
    #[error("{before} and {after} have no process in common")]
    NothingInCommon {
        /// Processes of the first.
        before: String,
        /// Processes of the second.
        after: String,
    },
}

impl MeminfoError {
    /// Converts an error of opening or decompressing a text.
    pub(super) fn of_text(error: ImportError) -> MeminfoError {
        match error {
            ImportError::Unreadable { name, source } => MeminfoError::Unreadable {
                path: PathBuf::from(name),
                source,
            },
            ImportError::Damaged { name, what } => MeminfoError::Unreadable {
                path: PathBuf::from(name),
                source: io::Error::other(what),
            },
            error => MeminfoError::Import(error),
        }
    }
}

/// Returns the next step after what the device said instead of meminfo.
fn answer_help(said: &str) -> &'static str {
    if said.contains("DUMP TIMEOUT") {
        "dumpsys timed out; give it more time: `adb shell dumpsys -t 60 meminfo PROCESS > FILE`"
    } else if said.contains("Can't find service") {
        "wait until the device has started (`adb shell getprop sys.boot_completed` prints 1), then \
         ask again"
    } else if said.starts_with("Permission Denial") {
        "ask through adb: `adb shell dumpsys meminfo PROCESS > FILE`; an app on the device may not"
    } else if said.starts_with("error: ") || said.starts_with("adb: ") {
        "adb wrote this; `heaptap doctor` checks the connection"
    } else {
        "the app did not answer: it might hang, be frozen or have died; ask again, or without the \
         app: `heaptap meminfo -n NAME --local`"
    }
}

impl Classified for MeminfoError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MeminfoError::Device(error) => error.facts(),
            MeminfoError::Eligibility(error) => error.facts(),
            MeminfoError::Import(error) => error.facts(),
            MeminfoError::NotFound(absent) => {
                ErrorFacts::new(ErrorClass::NotEligible, "target-not-found")
                    .with_help(&*absent.help)
            }
            MeminfoError::Gone { .. } => ErrorFacts::new(ErrorClass::Device, "target-gone")
                .with_help("try again; run `heaptap apps` to see what is running"),
            MeminfoError::Unanswered { local, .. } => {
                ErrorFacts::new(ErrorClass::Device, "meminfo-unanswered").with_help(match local {
                    true => {
                        "The system did not answer; it might be busy or hanging. Run `heaptap \
                         meminfo -n NAME --every 1s` to read resident memory from /proc instead."
                    }
                    false => {
                        "The app did not answer; it might hang, be frozen in the \
                         background, or be stopped by a debugger. Use `--local` to query only the \
                         system, without the app."
                    }
                })
            }
            MeminfoError::Strange { .. } => {
                ErrorFacts::new(ErrorClass::Device, "unexpected-answer")
                    .with_help("check the output of `adb shell dumpsys meminfo`")
            }
            MeminfoError::Unreadable { path, source } => {
                ErrorFacts::new(ErrorClass::BadInput, "input-unreadable")
                    .with_help(help_unreadable(path, source))
            }
            MeminfoError::NotMeminfo { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-meminfo").with_help(
                    "save one with `heaptap meminfo -n NAME --save FILE`, or `adb shell dumpsys \
                     meminfo PROCESS > FILE`",
                )
            }
            MeminfoError::NoAnswer { said, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-meminfo").with_help(answer_help(said))
            }
            MeminfoError::OtherText { kind, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-meminfo").with_help(kind.help())
            }
            MeminfoError::MallocInfo { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-meminfo")
                    .with_help("add `--reconcile` to show its figures")
            }
            MeminfoError::NoSuchProcess { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-process")
                    .with_help(format!("available: {there}"))
            }
            MeminfoError::NotKept { .. } => ErrorFacts::new(ErrorClass::Empty, "no-such-meminfo")
                .with_help("record with --with meminfo, and set labels"),
            MeminfoError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-capture").with_help(missing.help())
            }
            MeminfoError::NothingInCommon { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-in-common").with_help(
                    "compare two outputs of the same process, or two of the whole device",
                )
            }
        }
    }
}
