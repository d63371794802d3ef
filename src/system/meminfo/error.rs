//! Why there is no meminfo to show.

use std::io;
use std::path::PathBuf;

use crate::device::DeviceError;
use crate::eligibility::EligibilityError;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::moments::MomentNotFound;
use crate::import::{ImportError, help_unreadable};

/// Why there is no meminfo to show.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeminfoError {
    /// The phone was lost, or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The phone could not say what runs.
    #[error(transparent)]
    Eligibility(#[from] EligibilityError),
    /// Nothing of this name runs.
    #[error("no process of {target} runs")]
    NotFound {
        /// What was asked for.
        target: String,
    },
    /// It went away while it was asked.
    #[error("{target} ended while it was asked: {said}")]
    Gone {
        /// The process.
        target: String,
        /// What the phone said.
        said: String,
    },
    /// The app did not answer.
    #[error("{target} gave no meminfo: {said}")]
    Unanswered {
        /// The process.
        target: String,
        /// What the phone said.
        said: String,
        /// The system alone was asked, without the app.
        local: bool,
    },
    /// What the phone printed is no meminfo.
    #[error("dumpsys meminfo said nothing that could be understood: {said}")]
    Strange {
        /// Its first line.
        said: String,
    },
    /// A file can't be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file can't be unpacked.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A file holds something else.
    #[error("{name} is no output of dumpsys meminfo: {why}")]
    NotMeminfo {
        /// The file.
        name: String,
        /// What it is.
        why: String,
    },
    /// A folder has no such text.
    #[error("{name} has no meminfo of @{}: {}", missing.which, missing.why)]
    NoSuchMoment {
        /// The folder.
        name: String,
        /// What was named, and what there is.
        missing: Box<MomentNotFound>,
    },
    /// A folder has none.
    #[error("{name} holds no meminfo: none was recorded")]
    NotKept {
        /// The folder.
        name: String,
    },
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
    /// Of a text that cannot be opened or unpacked.
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

impl Classified for MeminfoError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MeminfoError::Device(error) => error.facts(),
            MeminfoError::Eligibility(error) => error.facts(),
            MeminfoError::Import(error) => error.facts(),
            MeminfoError::NotFound { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "target-not-found").with_help(
                    "start the app first; `heaptap apps` shows which run. A package's name stands \
                     for all its processes, com.example.app:remote for one",
                )
            }
            MeminfoError::Gone { .. } => ErrorFacts::new(ErrorClass::Device, "target-gone")
                .with_help("ask again; `heaptap apps` shows what runs now"),
            MeminfoError::Unanswered { local, .. } => {
                ErrorFacts::new(ErrorClass::Device, "meminfo-unanswered").with_help(match local {
                    true => {
                        "the system itself did not answer: it may be busy or hang. `heaptap \
                         meminfo TARGET --every 1s` reads resident memory from /proc without it"
                    }
                    false => {
                        "an app has 5 s to answer: it may hang, be frozen in the background or \
                         stand in a debugger. --local asks the system alone, without the app"
                    }
                })
            }
            MeminfoError::Strange { .. } => ErrorFacts::new(ErrorClass::Device, "odd-answer")
                .with_help("see what `adb shell dumpsys meminfo` prints"),
            MeminfoError::Unreadable { path, source } => {
                ErrorFacts::new(ErrorClass::BadInput, "input-unreadable")
                    .with_help(help_unreadable(path, source))
            }
            MeminfoError::NotMeminfo { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-meminfo").with_help(
                    "save one with `heaptap meminfo TARGET --save FILE`, or `adb shell dumpsys \
                     meminfo TARGET > FILE`",
                )
            }
            MeminfoError::NotKept { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "no-such-meminfo")
                    .with_help("record with --with meminfo, and set labels")
            }
            MeminfoError::NoSuchMoment { missing, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-moment").with_help(missing.help())
            }
            MeminfoError::NothingInCommon { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "nothing-in-common")
                    .with_help("compare two texts of the same process, or two of the whole phone")
            }
        }
    }
}
