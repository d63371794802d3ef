//! Errors of a dump without heap files.

use std::time::Duration;

use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};

/// Error of a dump without heap files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapFileError {
    /// The activity manager refused.
    #[error("am dumpheap on {serial} refused {process}: {words}")]
    Refused {
        serial: String,
        process: String,
        /// Output of `am dumpheap`.
        words: String,
        /// True if a debuggable app is required.
        not_debuggable: bool,
    },
    /// The app did not start writing in time.
    #[error("{process} wrote nothing for {} s", after.as_secs())]
    Silent {
        process: String,
        /// Time waited.
        after: Duration,
    },
    /// The app ended.
    #[error("{process} ended during its heap dump")]
    Died { process: String },
    /// The app reported success, but the file does not exist.
    #[error("{process} did not write a heap file on {serial}")]
    Nothing { serial: String, process: String },
}

const OUT_OF_ROOM: &str = "it might have run out of memory or storage during the dump; check `adb \
    logcat -s ActivityManager ActivityThread`";

impl Classified for HeapFileError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HeapFileError::Refused {
                not_debuggable: true,
                ..
            } => ErrorFacts::new(ErrorClass::NotEligible, "not-debuggable").with_help(
                "use a debug build of the app (android:debuggable) or a userdebug device; `heaptap \
                 dump` without `--hprof` only needs a profileable app",
            ),
            HeapFileError::Refused { .. } => {
                ErrorFacts::new(ErrorClass::Device, "dumpheap-refused")
                    .with_help("check whether the process is running with `heaptap apps`")
            }
            HeapFileError::Silent { .. } => ErrorFacts::new(ErrorClass::Device, "dumpheap-silent")
                .with_help(
                    "its main thread is blocked or the app is frozen in the background; bring it \
                     to the front, wait longer with `--timeout`, or use `heaptap dump` without \
                     `--hprof`",
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
