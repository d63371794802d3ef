//! Program to record, as typed.

use std::ffi::OsString;
use std::path::PathBuf;

/// Program to record, with the environment that decides what is found.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Preload library, if named.
    pub library: Option<PathBuf>,
    /// Directory of a Perfetto build, if named.
    pub perfetto_dir: Option<PathBuf>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// Home directory.
    pub home: Option<PathBuf>,
    /// `TMPDIR`.
    pub tmp: Option<PathBuf>,
    /// Record even if the program is unsuitable.
    pub force: bool,
}
