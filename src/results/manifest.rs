//! `manifest.json`: what was recorded, when, where and how, beside the files it names. Owns
//! the schema (`docs/manifest.md` documents every field; a test holds the two together) and
//! the atomic writing. Plain values only: whoever fills it knows where they come from.

mod companion;
mod file;
mod java;
mod native;
mod recording;
mod symbolization;

pub use companion::{
    CompanionCost, CompanionFile, CompanionGap, CompanionMissed, CompanionTimeline,
    CompanionUnread, Companions,
};
pub use file::{FILE_NAME, ManifestError};
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

/// The version of the schema. A new field leaves it; a changed meaning raises it.
pub const SCHEMA_VERSION: u32 = 3;

/// All of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// How the recording ended.
    pub outcome: Outcome,
    /// The recording session; absent after `convert` of a trace alone.
    pub session: Option<Session>,
    /// The phone; absent after `convert` of a trace alone.
    pub device: Option<Device>,
    /// What was to be recorded, and what was matched.
    pub targets: Vec<Target>,
    /// The config that was sent.
    pub config: Option<Config>,
    /// What happened when, in order.
    pub steps: Vec<Step>,
    /// The trace as the device wrote it.
    pub trace: Option<TraceFile>,
    /// How the profiles were written; absent in manifests of earlier versions.
    #[serde(default)]
    pub profiles: Option<Profiles>,
    /// Every dump found, in order of time; `<n>` in file names is its number.
    pub dumps: Dumps,
    /// How Java allocations were recorded, where any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java_allocations: Option<JavaAllocations>,
    /// Every label asked for, bound to dumps or not.
    pub labels: Vec<Label>,
    /// What was recorded beside the native heap; absent where nothing was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Companions>,
    /// How many frames carry names, and whose libraries do not.
    pub symbolization: Option<Symbolization>,
    /// The page in the folder; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Page>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// Who wrote the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `heaptap`.
    pub name: String,
    /// Its version, with the commit where known.
    pub version: String,
}

/// How the recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The exit code of the command that wrote the manifest.
    pub exit_code: u8,
    /// Whether nothing is missing.
    pub complete: bool,
    /// What ended the recording: `duration`, `done`, `interrupted`, `stopped`, `target-exited`,
    /// `size-limit`, `lost`; absent where unknown.
    pub ended_by: Option<String>,
}

/// What the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable word.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The process it is about.
    pub pid: Option<u64>,
    /// The dumps it is about.
    pub dumps: Vec<DumpId>,
}

/// The version of heaptap, with the commit where the build was told it (`HEAPTAP_COMMIT`).
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
    /// An empty manifest of this version of heaptap.
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
            targets: Vec::new(),
            config: None,
            steps: Vec::new(),
            trace: None,
            profiles: None,
            dumps: Dumps::default(),
            java_allocations: None,
            labels: Vec::new(),
            beside: None,
            symbolization: None,
            page: None,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
