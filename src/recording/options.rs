//! Options of a recording: data to record, destination, and format of the results.

use std::path::PathBuf;

use super::capture_kind::CaptureKind;
use super::companion_options::CompanionOptions;
use crate::names::options::NameOptions;
use heaptap_capture::config::Snapshots;
use heaptap_export::pprof::PprofOptions;

#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Data to record, with targets as given by the user.
    pub kind: CaptureKind,
    /// Companion data to record.
    pub companions: CompanionOptions,
    /// Directory for the results; `None` for a default name.
    pub output: Option<PathBuf>,
    /// First word of the default name; `None` for the first target.
    pub stem: Option<String>,
    /// Record even if no target is eligible.
    pub force: bool,
    /// Force-stop the app, and start it once the recording is armed.
    pub launch: bool,
    /// Continuous dumps for labels if heapprofd cannot be signalled.
    pub snapshots: Snapshots,
    /// Return once it runs.
    pub detach: bool,
    /// Record again with a longer interval if the buffer overran.
    pub retry_overrun: bool,
    /// Make SELinux permissive during the recording.
    pub disable_selinux: bool,
    /// Android user or work profile.
    pub user: Option<u32>,
    /// Profile options.
    pub pprof: PprofOptions,
    /// Sources of symbols.
    pub names: NameOptions,
    /// The recording gets no page, also if `stop` finishes it.
    pub no_report: bool,
}

impl RecordOptions {
    /// Returns options that record as simply as possible, into a directory with a default name.
    pub fn new(kind: CaptureKind, names: NameOptions) -> RecordOptions {
        RecordOptions {
            kind,
            companions: CompanionOptions::default(),
            output: None,
            stem: None,
            force: false,
            launch: false,
            snapshots: Snapshots::Off,
            detach: false,
            retry_overrun: false,
            disable_selinux: false,
            user: None,
            pprof: PprofOptions::default(),
            names,
            no_report: false,
        }
    }
}
