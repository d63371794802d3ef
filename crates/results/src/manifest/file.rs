//! The manifest file: its name, its parts, atomic writing, reading, and errors.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::companion::Companions;
use super::host::HostProgram;
use super::java::{Dumps, JavaAllocations};
use super::native::{DumpId, Label};
use super::recording::{Config, Device, Page, Profiles, Session, Step, Target, TraceFile};
use super::symbolization::Symbolization;
use crate::whole_file::{temporary_in, unless_link};
use heaptap_base::bytes::open_regular;
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, mend_write};
use heaptap_base::unfinished::replace;
use heaptap_base::untrusted::shell::quoted_path;

/// Name of the manifest in a recording directory.
pub const FILE_NAME: &str = "manifest.json";

/// Schema version. A new field keeps it; a changed meaning increments it.
pub const SCHEMA_VERSION: u32 = 4;

/// The complete `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The program that wrote the manifest.
    pub tool: Tool,
    /// Result of the recording.
    pub outcome: Outcome,
    /// Recording session; absent after `convert` of a trace alone.
    pub session: Option<Session>,
    /// Device; absent after `convert` of a trace alone.
    pub device: Option<Device>,
    /// The recorded program of this host; absent for devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostProgram>,
    /// Requested and matched targets.
    pub targets: Vec<Target>,
    /// The config sent to perfetto.
    pub config: Option<Config>,
    /// Events in chronological order.
    pub steps: Vec<Step>,
    /// The trace as the device wrote it.
    pub trace: Option<TraceFile>,
    /// Profile options; absent in manifests of earlier versions.
    #[serde(default)]
    pub profiles: Option<Profiles>,
    /// Every dump found, in order of time; `<n>` in file names is its number.
    pub dumps: Dumps,
    /// Source of Java allocations, if any were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java_allocations: Option<JavaAllocations>,
    /// All requested labels, including unbound ones.
    pub labels: Vec<Label>,
    /// Companion data; absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<Companions>,
    /// Number of symbolized frames, and libraries without symbols.
    pub symbolization: Option<Symbolization>,
    /// The report page in the directory, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Page>,
    pub warnings: Vec<Warning>,
}

/// The program that wrote the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `heaptap`.
    pub name: String,
    /// Its version, with the commit if known.
    pub version: String,
}

/// Result of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Exit code of the command that wrote the manifest.
    pub exit_code: u8,
    /// True if the data are complete.
    pub complete: bool,
    /// Reason for the end of the recording: `duration`, `done`, `interrupted`, `stopped`,
    /// `target-exited`, `size-limit`, `lost`; absent if unknown.
    pub ended_by: Option<String>,
}

impl Outcome {
    /// Returns the result of a command that ends with an error class, or without one.
    pub fn new(class: Option<ErrorClass>, ended_by: Option<&str>) -> Outcome {
        Outcome {
            exit_code: class.map_or(0, ErrorClass::exit_code),
            complete: class.is_none(),
            ended_by: ended_by.map(str::to_owned),
        }
    }

    /// Returns whether the recording ran as long as requested: neither a user nor the device ended it,
    /// so another try can be better.
    pub fn ended_as_planned(&self) -> bool {
        matches!(self.ended_by.as_deref(), Some("done" | "duration"))
    }
}

/// A warning for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable identifier.
    pub kind: String,
    pub message: String,
    pub help: Option<String>,
    /// Affected process.
    pub pid: Option<u64>,
    /// Affected dumps.
    pub dumps: Vec<DumpId>,
}

impl Warning {
    /// Creates a warning without a remedy, not about a specific process or dump.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Warning {
        Warning {
            kind: kind.into(),
            message: message.into(),
            help: None,
            pid: None,
            dumps: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Warning {
        let help = Some(help.into());
        Warning { help, ..self }
    }

    #[must_use]
    pub fn with_pid(self, pid: impl Into<Option<u64>>) -> Warning {
        let pid = pid.into();
        Warning { pid, ..self }
    }
}

/// Returns the version of heaptap, with the commit if `HEAPTAP_COMMIT` was set during the build.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        match option_env!("HEAPTAP_COMMIT") {
            Some(commit) if !commit.is_empty() => format!("{version} ({commit})"),
            _ => version.to_owned(),
        }
    });
    &VERSION
}

impl Default for Manifest {
    /// Returns an empty manifest of this version of heaptap.
    fn default() -> Self {
        Manifest {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "heaptap".to_owned(),
                version: version().to_owned(),
            },
            outcome: Outcome {
                exit_code: 0,
                complete: true,
                ended_by: None,
            },
            session: None,
            device: None,
            host: None,
            targets: Vec::new(),
            config: None,
            steps: Vec::new(),
            trace: None,
            profiles: None,
            dumps: Dumps::default(),
            java_allocations: None,
            labels: Vec::new(),
            companion: None,
            symbolization: None,
            page: None,
            warnings: Vec::new(),
        }
    }
}

impl Manifest {
    /// Returns whether a process allocated faster than heapprofd read, so that data are missing.
    pub fn has_overrun(&self) -> bool {
        let mut dumps = self.dumps.native.iter();
        dumps.any(|dump| dump.flags.buffer_overran)
    }

    /// Returns the names of the labels that are bound to a dump.
    pub fn labels_of(&self, dump: &DumpId) -> Vec<String> {
        let bound = self.labels.iter().filter(|label| label.is_of(dump));
        bound.map(|label| label.name.clone()).collect()
    }

    /// Writes the manifest into `directory` atomically: a temporary file in the same directory is
    /// synced and renamed. Call this last, so that the manifest implies that the other files exist.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, ManifestError> {
        let goal = directory.join(FILE_NAME);
        let written = || -> io::Result<()> {
            let mut file = temporary_in(directory)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            replace(file.into_temp_path(), &goal)?;
            Ok(())
        };
        match written() {
            Ok(()) => Ok(goal),
            Err(source) => Err(ManifestError::Write { path: goal, source }),
        }
    }

    /// Reads the manifest of `directory`.
    ///
    /// # Errors
    /// Returns an error if the manifest is missing, unreadable, malformed, or of another schema.
    pub fn read(directory: &Path) -> Result<Manifest, ManifestError> {
        let path = directory.join(FILE_NAME);
        let mut text = Vec::new();
        let read = open_regular(&path).and_then(|mut file| file.read_to_end(&mut text));
        read.map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        let invalid = |source| ManifestError::Parse {
            path: path.clone(),
            source,
        };
        let Version { schema_version } = serde_json::from_slice(&text).map_err(invalid)?;
        if schema_version != SCHEMA_VERSION {
            return Err(ManifestError::OtherSchema {
                path,
                found: schema_version,
            });
        }
        serde_json::from_slice(&text).map_err(invalid)
    }

    /// Adds the page `file` to the manifest of `directory`, if it is a recording directory.
    ///
    /// # Errors
    /// Returns an error if its manifest cannot be read or written.
    pub fn note_page(directory: &Path, file: &str, sha256: &str) -> Result<(), ManifestError> {
        let path = directory.join(FILE_NAME);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        unless_link(&path).map_err(|source| ManifestError::Read { path, source })?;
        let mut manifest = match Manifest::read(directory) {
            // Other programs have a file of this name, too.
            Err(ManifestError::Parse { .. }) => return Ok(()),
            read => read?,
        };
        manifest.page = Some(Page {
            file: file.to_owned(),
            sha256: sha256.to_owned(),
        });
        manifest.write(directory).map(drop)
    }
}

/// The schema version of a manifest, which is checked before the fields.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

/// Error of writing or reading a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not a manifest.
    #[error("{} is not a heaptap manifest", path.display())]
    Parse {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The schema is of a later version, or of an earlier one, whose fields have other names.
    #[error(
        "{} has schema version {found}, but this heaptap supports \
         {SCHEMA_VERSION}", path.display())]
    OtherSchema {
        path: PathBuf,
        /// Schema version of the file.
        found: u32,
    },
}

/// Returns the help for an unusable manifest, which can be next to a trace.
fn without_manifest(path: &Path) -> String {
    let trace = path.with_file_name(RAW_TRACE);
    match trace.is_file() {
        true => format!(
            "the trace next to it is readable; run `heaptap convert {} -o DIR`",
            quoted_path(&trace)
        ),
        false => "copy the directory again from its source".to_owned(),
    }
}

impl Classified for ManifestError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ManifestError::Write { source, .. } => {
                let mend = mend_write(source);
                ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                    .with_help(format!("{mend}, or choose another directory with `-o`"))
            }
            ManifestError::Read { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-unreadable")
                    .with_help("use the directory that `heaptap record` created")
            }
            ManifestError::Parse { path, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-invalid")
                    .with_help(without_manifest(path))
            }
            ManifestError::OtherSchema { found, .. } if *found > SCHEMA_VERSION => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-too-new")
                    .with_help("use the version of heaptap that wrote it")
            }
            ManifestError::OtherSchema { path, .. } => {
                let help = match path.with_file_name(RAW_TRACE).is_file() {
                    true => without_manifest(path),
                    false => "read it with the heaptap that wrote it, or record again".to_owned(),
                };
                ErrorFacts::new(ErrorClass::BadInput, "manifest-too-old").with_help(help)
            }
        }
    }
}
