//! Errors of recording a program of this host.

use std::io;
use std::path::PathBuf;

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

/// Failure before the program ran, or of the tracing service.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The system is not Linux.
    #[error(
        "cannot record a program of this host: heapprofd's preload library needs Linux with glibc, and this is {system}"
    )]
    NotLinux { system: &'static str },
    /// A part of the Perfetto build is missing.
    #[error("cannot find {what}; searched {}", places.join(", "))]
    ToolsMissing {
        what: &'static str,
        places: Vec<String>,
    },
    /// The program does not exist.
    #[error("cannot find the program {program}")]
    ProgramMissing { program: String },
    /// The library cannot be loaded into the program, or would not record it.
    #[error("cannot profile {program}: {why}")]
    Unsuitable {
        program: String,
        why: String,
        help: String,
    },
    /// The preload library is not one, or not for this system.
    #[error("cannot use the preload library {}: {why}", library.display())]
    LibraryUnusable {
        library: PathBuf,
        why: String,
        help: String,
    },
    /// There is no directory for the sockets.
    #[error("cannot create a private directory for the sockets: {source}")]
    PrivateDirectory {
        #[source]
        source: io::Error,
    },
    /// The directory of ring buffers is missing.
    #[error("cannot profile here: TMPDIR is {}, which is not a writable directory, and heapprofd keeps its ring buffer there", path.display())]
    RingBuffer { path: PathBuf },
    /// traced or perfetto did not start.
    #[error("{tool} did not start: {why}")]
    TracingFailed { tool: &'static str, why: String },
    /// The program exists, but the system did not start it.
    #[error("cannot start {program}: {source}")]
    NotStarted {
        program: String,
        #[source]
        source: io::Error,
    },
    /// Signals cannot be observed.
    #[error("cannot watch for signals: {source}")]
    Signals {
        #[source]
        source: io::Error,
    },
}

/// Archive of Perfetto's releases for this processor.
const RELEASE: &str = if cfg!(target_arch = "aarch64") {
    "linux-arm64.zip"
} else {
    "linux-amd64.zip"
};

/// Returns the way to get the missing parts.
fn tools_help() -> String {
    format!(
        "{RELEASE} of Perfetto's releases (github.com/google/perfetto/releases) has tracebox and \
         libheapprofd_glibc_preload.so: unpack it, then name its directory with --perfetto-dir \
         DIR. Older releases do not have the library. `traced` and `perfetto` of a distribution \
         work too, with --preload-library LIB."
    )
}

impl Classified for HostError {
    fn facts(&self) -> ErrorFacts {
        match self {
            HostError::NotLinux { .. } => ErrorFacts::new(ErrorClass::Usage, "host-unsupported")
                .with_help(
                    "record an app on a device (`heaptap record -n NAME`), or run heaptap on Linux",
                ),
            HostError::ToolsMissing { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "host-tools-missing").with_help(tools_help())
            }
            HostError::ProgramMissing { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "host-program-missing").with_help(
                    "check the name after `--`; a program of the current directory needs ./",
                )
            }
            HostError::Unsuitable { help, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "host-program-unsuitable")
                    .with_help(help.clone())
            }
            HostError::LibraryUnusable { help, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "host-library-unusable")
                    .with_help(help.clone())
            }
            HostError::PrivateDirectory { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "host-private-directory")
                    .with_help("set TMPDIR to a writable directory with a path below 80 bytes")
            }
            HostError::RingBuffer { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "host-ring-buffer")
                    .with_help("create the directory, or unset TMPDIR")
            }
            HostError::TracingFailed { .. } => {
                ErrorFacts::new(ErrorClass::Device, "host-tracing-failed").with_help(
                    "run it by hand to see more; --perfetto-dir DIR selects another Perfetto build",
                )
            }
            HostError::NotStarted { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "host-program-not-started")
                    .with_help("check that the program runs without heaptap")
            }
            HostError::Signals { .. } => ErrorFacts::new(ErrorClass::Bug, "no-signals"),
        }
    }
}
