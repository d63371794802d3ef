//! Packages on the device, with their eligibility for profiling.

use serde::Serialize;

use crate::capture::error::CaptureError;
use crate::device::Device;
use crate::eligibility::{self, DeviceFacts, Finding, InstalledApp, ListOptions};

/// Result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppsReport {
    pub device: DeviceFacts,
    /// Findings about the device.
    pub findings: Vec<Finding>,
    /// Packages by name.
    pub apps: Vec<InstalledApp>,
}

/// Lists packages.
///
/// # Errors
/// Returns an error if the device is lost or does not respond, or its package manager does not.
pub async fn list(device: &Device, options: &ListOptions) -> Result<AppsReport, CaptureError> {
    let facts = eligibility::facts(device).await?;
    let apps = eligibility::list_apps(device, &facts, options).await?;
    Ok(AppsReport {
        findings: eligibility::decide_device(&facts),
        device: facts,
        apps,
    })
}
