//! May these processes be profiled? Asks the phone, decides, and hands back what was found.

use serde::Serialize;

use crate::config::Targets;
use crate::device::Device;
use crate::eligibility::{
    self, AssessOptions, DeviceFacts, EligibilityError, Finding, Scope, Startup, TargetReport,
};

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// Names, pids, packages.
    pub targets: Targets,
    /// The user or profile; without it every user's processes match.
    pub user: Option<u32>,
    /// Which kind of profile decides whether a target is eligible.
    pub scope: Scope,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// Whether every process of every target may be profiled (in the chosen way).
    pub eligible: bool,
    /// The phone.
    pub device: DeviceFacts,
    /// Findings about the phone.
    pub findings: Vec<Finding>,
    /// A report per target.
    pub targets: Vec<TargetReport>,
}

/// Checks; changes nothing on the phone.
///
/// # Errors
/// Where the phone is lost or silent.
pub async fn check(
    device: &Device,
    options: &CheckOptions,
) -> Result<CheckReport, EligibilityError> {
    let facts = eligibility::facts(device).await?;
    let how = AssessOptions {
        user: options.user,
        startup: Startup::Allowed,
    };
    let assessment = eligibility::assess(device, &facts, &options.targets, &how).await?;
    Ok(CheckReport {
        eligible: assessment.all_eligible(options.scope),
        device: facts,
        findings: assessment.device,
        targets: assessment.targets,
    })
}
