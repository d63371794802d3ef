//! Why a recording is refused before it starts.

use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

/// Why eligibility could not be found out, or is not given.
#[derive(Debug, thiserror::Error)]
pub enum EligibilityError {
    /// The phone was lost, or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The package manager lists nothing.
    #[error("the phone lists no packages for user {user}")]
    NoPackages {
        /// The user.
        user: u32,
    },
    /// No target may be profiled.
    #[error("cannot profile {targets}: {why}")]
    NotEligible {
        /// The targets.
        targets: String,
        /// The first reason.
        why: String,
        /// What would help.
        fix: Option<String>,
        /// Whether the targets do not even exist.
        missing: bool,
    },
    /// `am dumpheap` refuses the targets.
    #[error("am dumpheap refuses {targets}: {}", if *native { "it has no Java runtime" } else { "it is not debuggable" })]
    NotDebuggable {
        /// The targets.
        targets: String,
        /// They are native programs.
        native: bool,
        /// Perfetto may dump their Java heap all the same.
        graph: bool,
    },
    /// The targets may be profiled, but none of them runs.
    #[error("{targets} does not run, and a heap dump is of what runs now")]
    NotRunning {
        /// The targets.
        targets: String,
    },
}

impl Classified for EligibilityError {
    fn facts(&self) -> ErrorFacts {
        match self {
            EligibilityError::Device(error) => error.facts(),
            EligibilityError::NoPackages { .. } => {
                ErrorFacts::new(ErrorClass::Device, "no-packages").with_help(
                    "see whether the phone has that user: adb shell pm list users; a phone that \
                     is still booting needs a moment",
                )
            }
            EligibilityError::NotEligible { missing, fix, .. } => match missing {
                true => ErrorFacts::new(ErrorClass::NotEligible, "target-not-found"),
                false => ErrorFacts::new(ErrorClass::NotEligible, "not-eligible"),
            }
            .with_help(match fix {
                Some(fix) => format!("{fix}; --force records anyway"),
                None => "--force records anyway".to_owned(),
            }),
            EligibilityError::NotRunning { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-running").with_help(
                    "start the app first; `heaptap apps` shows which run, --wait-for-oom waits \
                     for one that runs out of memory",
                )
            }
            EligibilityError::NotDebuggable { native: true, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable")
            }
            EligibilityError::NotDebuggable { graph, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable").with_help(format!(
                    "use a debug build of the app (android:debuggable) or a userdebug phone{}",
                    match graph {
                        true =>
                            "; `heaptap dump` without --hprof may dump it as it is: profileable is \
                             enough for that",
                        false => "",
                    }
                ))
            }
        }
    }
}
