//! Why no heap file came.

use std::time::Duration;

use crate::error::{Classified, ErrorClass, ErrorFacts};

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

const OUT_OF_ROOM: &str = "it may have run out of memory or storage over the dump: adb logcat -s \
     ActivityManager ActivityThread";

impl Classified for HeapFileError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable").with_help(
                "use a debug build of the app (android:debuggable) or a userdebug phone; \
                 `heaptap dump` without --hprof needs a profileable app only",
            ),
            HeapFileError::Refused { .. } => {
                ErrorFacts::new(ErrorClass::Device, "dumpheap-refused")
                    .with_help("see whether the process still runs: heaptap apps")
            }
            HeapFileError::Silent { .. } => ErrorFacts::new(ErrorClass::Device, "dumpheap-silent")
                .with_help(
                    "its main thread is stuck, or it is frozen in the background: bring it to the \
                     front, or wait longer with --deadline; `heaptap dump` without --hprof needs \
                     no main thread",
                ),
            HeapFileError::Died { .. } => {
                ErrorFacts::new(ErrorClass::Device, "dumpheap-died").with_help(OUT_OF_ROOM)
            }
            HeapFileError::Nothing { .. } => {
                ErrorFacts::new(ErrorClass::Device, "dumpheap-empty").with_help(OUT_OF_ROOM)
            }
        }
    }
}
