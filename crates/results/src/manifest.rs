//! `manifest.json`: the facts of a recording, next to the files it names. Owns the schema
//! (`docs/reference/formats.md` documents every field; a test keeps the two in sync) and atomic writing.
//! Contains plain values only.

mod companion;
mod file;
mod host;
mod java;
mod native;
mod recording;
mod symbolization;

pub use companion::{
    CompanionCost, CompanionFile, CompanionGap, CompanionMissed, CompanionTimeline,
    CompanionUnread, Companions,
};
pub use file::{FILE_NAME, ManifestError};
pub use host::HostProgram;
pub use java::{
    DumpKey, Dumps, JAVA_HEAP, JavaAllocations, JavaDump, JavaFlags, JavaKind, JavaSums,
    JavaTotals, Original, TrackedDump,
};
pub use native::{BoundLabel, Dump, DumpId, Flags, Label, LabelledDump, Totals};
pub use recording::{
    Config, Device, Eligibility, Page, Profiles, Session, Step, Target, TraceFile,
};
pub use symbolization::{
    CutLibrary, LookedIn, MappingFile, MissingLibrary, NamedLibrary, NearestFile, SymbolFile,
    Symbolization,
};

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use heaptap_base::error::ErrorClass;

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
    pub fn of(class: Option<ErrorClass>, ended_by: Option<&str>) -> Outcome {
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

#[cfg(test)]
pub mod tests;
