//! The phone's packages with what may be profiled.

use serde::Serialize;

use crate::device::Device;
use crate::eligibility::{self, DeviceFacts, EligibilityError, Finding, InstalledApp, ListOptions};

/// What is installed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppsReport {
    /// The phone.
    pub device: DeviceFacts,
    /// Findings about the phone.
    pub findings: Vec<Finding>,
    /// Packages by name.
    pub apps: Vec<InstalledApp>,
}

/// Lists packages.
///
/// # Errors
/// Where the phone is lost or silent, or its package manager does not answer.
pub async fn list(device: &Device, options: &ListOptions) -> Result<AppsReport, EligibilityError> {
    let facts = eligibility::facts(device).await?;
    let apps = eligibility::list_apps(device, &facts, options).await?;
    Ok(AppsReport {
        findings: eligibility::about_device(&facts),
        device: facts,
        apps,
    })
}
