//! Eligibility: the processes that can be profiled, the reasons if not, and the fixes.
//!
//! Three steps, so that everything but the shell calls is pure:
//! 1. **facts**: [`facts`] queries the device in two or three shell calls and returns
//!    [`DeviceFacts`]; [`assess`] reads packages and processes for the targets only;
//! 2. **decision**: the rules of heapprofd and of the platform over those facts;
//! 3. **texts**: each [`Finding`] has a problem, a reason and a fix.
//!
//! [`assess`] is the first step of a recording: it also resolves names with `*` and packages
//! to the names and PIDs for the config. Nothing here records, prints or changes the
//! device.
//!
//! The rules are documented in `docs/guide/troubleshooting.md`.

/// Shows a type as the word that documents have for it.
macro_rules! display_as_serialized {
    ($($of:ty),+) => {
        $(impl std::fmt::Display for $of {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        })+
    };
}

mod absent;
mod assess;
mod assessment;
mod decide;
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
pub(crate) mod sections;
#[cfg(test)]
mod tests;

pub use absent::AbsentTarget;
pub use assess::{Resolved, absent_target, assess, missing_package, resolve_each, resolve_pids};
pub use assessment::{AssessOptions, Assessment, ProcessReport, Startup, TargetKind, TargetReport};
pub use decide::{Answer, decide_device, no_choice_of_heaps};
pub(crate) use facts::free_bytes;
pub use facts::{AndroidUser, BuildType, DeviceFacts, Root, Selinux, TracingSession};
pub use finding::{Finding, FindingId, MANIFEST_SNIPPET, Scope, Severity, no_running_process};
pub use gather::device_facts as facts;
pub use installed::{InstalledApp, ListOptions, RunningProcess, list_apps};
pub use packages::{AppType, AppTypeSource, Package, PackageRow, read_large_heap};
pub use post_mortem::{
    EmptyTarget, Evidence, KnownProcess, KnownTarget, LogLine, PreflightFacts, Recorded,
    empty_targets, explain, parse_log, read_log,
};
pub use processes::{CACHED_ADJ, Pid, Process, ProcessKind};
