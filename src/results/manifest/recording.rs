//! How a recording came about: its session, phone, processes, config, steps, trace, and how its
//! profiles were written.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::export::pprof::{PprofOptions, SampleNames};

/// The recording session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id in the journal and in the name of the remote file.
    pub id: String,
    /// Where the device kept the trace.
    pub remote_path: String,
    /// Boot id of the device.
    pub boot_id: Option<String>,
    /// What made the dumps of snapshots: `signal`, `continuous`, or none.
    pub snapshots_by: Option<String>,
}

/// The phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Serial number.
    pub serial: String,
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.build.fingerprint`.
    pub build_fingerprint: Option<String>,
    /// Release as people say it, such as `14`.
    pub android: Option<String>,
    /// `ro.build.version.sdk`.
    pub sdk: Option<u32>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    /// First of the ABI list.
    pub abi: Option<String>,
}

/// One process that was asked for or matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The name as the process has it, or as it was asked for.
    pub name: String,
    /// Its process id; absent where none ran.
    pub pid: Option<u32>,
    /// What the check said before recording.
    pub eligibility: Option<Eligibility>,
    /// Whether it was hooked at launch; absent where no dump tells.
    pub from_startup: Option<bool>,
}

/// What the check said of a process before recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eligibility {
    /// `yes`, `no`, `only-from-startup`, `unknown`.
    pub verdict: String,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// The config that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// As `perfetto --txt -c -` takes it.
    pub text: String,
    /// SHA-256 of the bytes that were sent, hex.
    pub sha256: String,
}

/// One step of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `checked`, `started`, `launched`, `stop-requested`, `trace-complete`, `received` (the
    /// device's last byte), `pulled` (verified and synced), `converted`.
    pub step: String,
    /// The host's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// The trace as the device wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Name in the folder (`raw-trace`), or the input's name after `convert`.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// A page of `report`'s in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Name in the folder.
    pub file: String,
    /// SHA-256, hex.
    pub sha256: String,
}

/// How profiles were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiles {
    /// Whose names the sample types have: `heaptap` or `perfetto`.
    pub sample_names: String,
    /// Whether ` [jit]` and the like stand behind names.
    pub annotations: bool,
}

impl From<PprofOptions> for Profiles {
    fn from(options: PprofOptions) -> Self {
        Profiles {
            sample_names: match options.sample_names {
                SampleNames::Pprof => "heaptap",
                SampleNames::Perfetto => "perfetto",
            }
            .to_owned(),
            annotations: options.annotations,
        }
    }
}

impl Profiles {
    /// The options, to write them so again.
    pub fn options(&self) -> PprofOptions {
        PprofOptions {
            sample_names: match self.sample_names.as_str() {
                "perfetto" => SampleNames::Perfetto,
                _ => SampleNames::Pprof,
            },
            annotations: self.annotations,
        }
    }
}
