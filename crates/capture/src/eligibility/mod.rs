//! Which processes may be profiled, why not, and what would help.
//!
//! Three steps, so that everything but the shell calls is pure:
//! 1. **facts**: [`facts`] asks the phone in two or three shell calls and gives
//!    [`DeviceFacts`]; packages and processes are read in [`assess`] for the targets alone;
//! 2. **decision**: the rules of heapprofd and of the platform over those facts;
//! 3. **words**: each [`Finding`] says what, why and the fix.
//!
//! [`assess`] is the first step of a recording: it also resolves names with `*` and packages
//! to the names and pids that the config gets. Nothing here records, prints or changes the
//! phone.
//!
//! Facts about the rules: `docs/eligibility.md`.

mod assess;
mod assessment;
mod decide;
mod error;
mod facts;
mod finding;
mod gather;
mod installed;
mod manifest_xml;
mod matching;
pub mod names;
mod packages;
mod post_mortem;
mod processes;
mod properties;
mod report;
mod sections;
#[cfg(test)]
mod tests;

pub use assess::{Resolved, assess, resolve_each, resolve_pids};
pub use assessment::{AssessOptions, Assessment, ProcessReport, Startup, TargetKind, TargetReport};
pub use decide::{Answer, decide_device};
pub use error::EligibilityError;
pub use facts::{AndroidUser, BuildType, DeviceFacts, Root, Selinux, TracingSession};
pub use finding::{Finding, FindingId, MANIFEST_SNIPPET, Scope, Severity};
pub use installed::{InstalledApp, ListOptions, RunningProcess, list_apps};
pub use packages::{AppType, AppTypeSource, Package, PackageRow, read_large_heap};
pub use post_mortem::{
    EmptyTarget, Evidence, KnownProcess, KnownTarget, LogLine, PreflightFacts, Recorded,
    empty_targets, explain, parse_log, read_log,
};
pub use processes::{Pid, Process, ProcessKind};

use heaptap_adb::{Device, DeviceError};

/// Asks a phone for everything that decides what may be profiled on it: three shell calls
/// at once. What it does not answer stays unknown.
///
/// # Errors
/// Where the phone is lost, or its shell is silent.
pub async fn facts(device: &Device) -> Result<DeviceFacts, DeviceError> {
    gather::device_facts(device).await
}

/// What is to be said of a phone as a whole, whatever the target.
pub fn about_device(facts: &DeviceFacts) -> Vec<Finding> {
    decide::decide_device(facts)
}
