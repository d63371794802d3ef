//! Checks the eligibility of processes for profiling: queries the device and decides.

use serde::Serialize;

use crate::capture::error::CaptureError;
use crate::config::Targets;
use crate::device::Device;
use crate::eligibility::{self, AssessOptions, DeviceFacts, Finding, Scope, Startup, TargetReport};

/// Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOptions {
    /// Names, pids, packages.
    pub targets: Targets,
    /// User or profile; `None` matches the processes of all users.
    pub user: Option<u32>,
    /// Kind of profile that decides the eligibility of a target.
    pub scope: Scope,
    /// Whether a native heap other than that of malloc is named.
    pub names_heap: bool,
}

/// Result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// Whether every process of every target is eligible (for `scope`).
    pub eligible: bool,
    pub device: DeviceFacts,
    /// Findings about the device.
    pub findings: Vec<Finding>,
    /// A report per target.
    pub targets: Vec<TargetReport>,
}

/// Checks without changing anything on the device.
///
/// # Errors
/// Returns an error if the device is lost or does not respond.
pub async fn check(device: &Device, options: &CheckOptions) -> Result<CheckReport, CaptureError> {
    let facts = eligibility::facts(device).await?;
    let how = AssessOptions {
        user: options.user,
        startup: Startup::Allowed,
    };
    let mut assessment = eligibility::assess(device, &facts, &options.targets, &how).await?;
    if options.names_heap
        && let Some(finding) = eligibility::no_choice_of_heaps(&facts)
    {
        assessment.refuse_native(finding);
    }
    Ok(CheckReport {
        eligible: assessment.all_eligible(options.scope),
        device: facts,
        findings: assessment.device,
        targets: assessment.targets,
    })
}
