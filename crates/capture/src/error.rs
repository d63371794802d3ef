//! The error of recording: that of the device, or one [`Failure`], which its kind tells apart.

use heaptap_adb::DeviceError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, Failure};

/// Kinds that callers tell apart.
pub mod kind {
    pub const INTERRUPTED: &str = "interrupted";
    pub const NO_SESSION: &str = "no-session";
    pub const NO_SUCH_SESSION: &str = "no-such-session";
    pub const NONE_SERVES: &str = "no-session-serves";
    pub const NOT_FETCHED: &str = "not-fetched";
    pub const NOT_RECORDING: &str = "not-recording";
    pub const OUTPUT_CLAIMED: &str = "output-claimed";
    pub const OUTPUT_NOT_EMPTY: &str = "output-not-empty";
    pub const REFUSED: &str = "action-refused";
    pub const REJECTED: &str = "session-rejected";
    pub const SESSION_BUSY: &str = "session-busy";
    pub const SNAPSHOT_LATE: &str = "snapshot-late";
    pub const TRACE_GONE: &str = "trace-gone";
}

/// Error of recording.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The adb server or the device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl CaptureError {
    pub fn new(class: ErrorClass, kind: &'static str, message: impl Into<String>) -> Self {
        Failure::new(class, kind, message).into()
    }

    /// Sets the help; errors of the device have their own.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            CaptureError::Failed(failure) => failure.with_help(help).into(),
            device @ CaptureError::Device(_) => device,
        }
    }

    /// Returns the error of a command that the user interrupts before anything is recorded.
    pub fn interrupted() -> Self {
        let message = "interrupted before anything was recorded";
        CaptureError::new(ErrorClass::Interrupted, kind::INTERRUPTED, message)
    }

    /// Returns whether the error is of one of these kinds.
    pub fn is(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind())
    }

    /// Returns whether the connection to the device failed: it can come back.
    pub fn is_connection(&self) -> bool {
        matches!(self, CaptureError::Device(error) if error.is_connection())
    }
}

impl Classified for CaptureError {
    fn facts(&self) -> ErrorFacts {
        match self {
            CaptureError::Device(error) => error.facts(),
            CaptureError::Failed(failure) => failure.facts(),
        }
    }
}
