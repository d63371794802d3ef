//! Targets without a running process.

use std::fmt::Display;

use heaptap_base::error::{ErrorClass, Failure};

use super::finding::{Finding, no_running_process};

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

    /// Returns the failure of a command that needs a running process.
    pub fn failure(&self, kind: &'static str) -> Failure {
        Failure::new(ErrorClass::NotEligible, kind, &self.what).with_help(&self.help)
    }
}
