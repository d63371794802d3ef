//! Options of a recording of a program, and the recording itself until it is converted.

use std::path::PathBuf;
use std::time::Duration;

use crate::names::options::NameOptions;
use heaptap_capture::config::CaptureSpec;
use heaptap_capture::host::{self, Processes, ProgramEnd, SessionEnd};
use heaptap_export::pprof::PprofOptions;
use heaptap_results::manifest;

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Data to record.
    pub spec: CaptureSpec,
    /// The program, and where its tools are.
    pub request: host::Request,
    /// Directory for the results; `None` for a default name.
    pub output: Option<PathBuf>,
    /// Profile options.
    pub pprof: PprofOptions,
    /// Sources of symbols.
    pub names: NameOptions,
}

/// A recording up to the end of its program and its trace.
pub(super) struct Run {
    pub(super) pid: u32,
    pub(super) end: ProgramEnd,
    pub(super) session: SessionEnd,
    pub(super) time_over: bool,
    pub(super) lasted: Duration,
    /// End of the time in which signals are meant for the program.
    pub(super) calm: tokio::time::Instant,
    /// Processes of the program, running and ended.
    pub(super) processes: Processes,
    pub(super) steps: Vec<manifest::Step>,
}
