//! Reasons to refuse a recording before it starts.

use std::fmt::Display;

use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

use super::finding::{Finding, no_running_process};

/// Failure to determine eligibility, or lack of it.
#[derive(Debug, thiserror::Error)]
pub enum EligibilityError {
    /// The device was lost or did not answer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The package manager does not list any packages.
    #[error("the device does not list any packages for user {user}")]
    NoPackages { user: u32 },
    /// No target can be profiled.
    #[error("cannot profile {targets}: {why}")]
    NotEligible {
        targets: String,
        /// The first reason.
        why: String,
        /// The next step.
        fix: Option<String>,
        /// None of the targets exists.
        missing: bool,
        /// A Java heap was requested of native programs.
        native: bool,
    },
    /// `am dumpheap` refuses the targets.
    #[error("am dumpheap refuses {targets}: {}", if *native { "no Java runtime" } else { "not debuggable" })]
    NotDebuggable {
        targets: String,
        /// They are native programs.
        native: bool,
        /// Perfetto can dump their Java heap nevertheless.
        graph: bool,
    },
    /// The targets can be profiled, but none of them is running.
    #[error("cannot dump the heap: {0}")]
    NotRunning(AbsentTarget),
}

/// No target has a running process. Each command has its own kind of error for this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct AbsentTarget {
    what: String,
    /// Question for similar names, or what to do first.
    pub help: String,
    /// The target could run, and no other name is similar.
    pub can_start: bool,
}

impl AbsentTarget {
    pub(super) fn not_running(targets: impl Display, similar: Option<&str>) -> AbsentTarget {
        let help = similar.unwrap_or("start the app first (`heaptap apps` lists running apps)");
        AbsentTarget {
            what: no_running_process(targets),
            help: help.to_owned(),
            can_start: similar.is_none(),
        }
    }

    /// For a target that cannot run, as the check reports it.
    pub(super) fn of_finding(finding: &Finding) -> AbsentTarget {
        AbsentTarget {
            what: finding.what.clone(),
            help: finding.fix.clone().unwrap_or_else(|| finding.why.clone()),
            can_start: false,
        }
    }
}

impl Classified for EligibilityError {
    fn facts(&self) -> ErrorFacts {
        match self {
            EligibilityError::Device(error) => error.facts(),
            EligibilityError::NoPackages { .. } => {
                ErrorFacts::new(ErrorClass::Device, "no-packages").with_help(
                    "check the user with `adb shell pm list users`, or wait until the device has \
                     finished booting",
                )
            }
            // `--no-check` does not find it either.
            EligibilityError::NotEligible {
                missing: true, fix, ..
            } => ErrorFacts {
                help: fix.clone(),
                ..ErrorFacts::new(ErrorClass::NotEligible, "target-not-found")
            },
            EligibilityError::NotEligible { native: true, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-eligible")
                    .with_help("record the native heap with `heaptap record`")
            }
            EligibilityError::NotEligible { fix, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-eligible").with_help(match fix {
                    Some(question) if question.ends_with('?') => {
                        format!("{question} Use `--no-check` to record anyway.")
                    }
                    Some(fix) => format!("{fix}; use `--no-check` to record anyway"),
                    None => "use `--no-check` to record anyway".to_owned(),
                })
            }
            EligibilityError::NotRunning(absent) => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-running")
                    .with_help(absent.help.clone())
            }
            EligibilityError::NotDebuggable { native: true, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable")
            }
            EligibilityError::NotDebuggable { graph, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable").with_help(format!(
                    "use a debug build of the app (android:debuggable) or a userdebug device{}",
                    match graph {
                        true =>
                            ", or run `heaptap dump` without `--hprof`, for which profileable is \
                             enough",
                        false => "",
                    }
                ))
            }
        }
    }
}
