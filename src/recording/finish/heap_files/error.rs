//! Why no heap file came.

use std::time::Duration;

use crate::error::{Classified, ErrorClass};

/// Why no heap file came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapFileError {
    /// The activity manager refused.
    #[error("am dumpheap on {serial} refused {process}: {words}")]
    Refused {
        /// The device.
        serial: String,
        /// The process.
        process: String,
        /// What it said.
        words: String,
        /// It wants a debuggable app.
        not_debuggable: bool,
    },
    /// The app did not begin in time.
    #[error("{process} wrote nothing for {} s", after.as_secs())]
    Silent {
        /// The process.
        process: String,
        /// How long was waited.
        after: Duration,
    },
    /// The app is gone.
    #[error("{process} ended over its heap dump")]
    Died {
        /// The process.
        process: String,
    },
    /// It said it had, and there is nothing.
    #[error("{process} left no heap file on {serial}")]
    Nothing {
        /// The device.
        serial: String,
        /// The process.
        process: String,
    },
}

impl Classified for HeapFileError {
    fn class(&self) -> ErrorClass {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => ErrorClass::NotEligible,
            _ => ErrorClass::Device,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => "not-debuggable",
            HeapFileError::Refused { .. } => "dumpheap-refused",
            HeapFileError::Silent { .. } => "dumpheap-silent",
            HeapFileError::Died { .. } => "dumpheap-died",
            HeapFileError::Nothing { .. } => "dumpheap-empty",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => "use a debug build of the app (android:debuggable) or a userdebug phone; \
                  `heaptap dump` without --hprof needs a profileable app only"
                .to_owned(),
            HeapFileError::Refused { .. } => {
                "see whether the process still runs: heaptap apps".to_owned()
            }
            HeapFileError::Silent { .. } => {
                "its main thread is stuck, or it is frozen in the background: bring it to the \
                 front, or wait longer with --deadline; `heaptap dump` without --hprof needs no \
                 main thread"
                    .to_owned()
            }
            HeapFileError::Died { .. } | HeapFileError::Nothing { .. } => {
                "it may have run out of memory or storage over the dump: adb logcat -s \
                 ActivityManager ActivityThread"
                    .to_owned()
            }
        })
    }
}
