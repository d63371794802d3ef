//! What a recording is told: what to record, where to, and how the results are written.

use std::path::PathBuf;

use super::capture_kind::CaptureKind;
use super::companion_options::CompanionOptions;
use crate::config::Snapshots;
use crate::export::pprof::PprofOptions;
use crate::naming::names::NameOptions;

/// What is to be recorded, and how.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// What to record; targets as they were given.
    pub kind: CaptureKind,
    /// What to record beside it.
    pub companions: CompanionOptions,
    /// The folder for the results; a name of its own where `None`.
    pub output: Option<PathBuf>,
    /// First word of that name; the first target where `None`.
    pub stem: Option<String>,
    /// Record even where no target looks eligible.
    pub force: bool,
    /// Force-stop the app, and start it once the recording is armed.
    pub launch: bool,
    /// Continuous dumps for labels if heapprofd cannot be signalled.
    pub snapshots: Snapshots,
    /// Return once it runs.
    pub detach: bool,
    /// Record again with a longer interval where the buffer overran.
    pub retry_overrun: bool,
    /// Make SELinux permissive meanwhile.
    pub disable_selinux: bool,
    /// Android user or work profile.
    pub user: Option<u32>,
    /// How profiles are written.
    pub pprof: PprofOptions,
    /// Where names come from.
    pub names: NameOptions,
}
