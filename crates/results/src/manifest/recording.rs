//! Circumstances of a recording: session, device, processes, config, steps, trace, and profile
//! options.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use heaptap_base::directory::RAW_TRACE;
use heaptap_export::pprof::{PprofOptions, SampleNames};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// ID in the journal and in the name of the remote file.
    pub id: String,
    /// Path of the trace on the device.
    pub remote_path: String,
    /// Boot id of the device.
    pub boot_id: Option<String>,
    /// Trigger of snapshot dumps: `signal`, `continuous`, or none.
    pub snapshots_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Serial number.
    pub serial: String,
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.build.fingerprint`.
    pub build_fingerprint: Option<String>,
    /// Android release, such as `14`.
    pub android: Option<String>,
    /// `ro.build.version.sdk`.
    pub sdk: Option<u32>,
    /// `user`, `userdebug`, `eng`.
    pub build_type: Option<String>,
    /// First of the ABI list.
    pub abi: Option<String>,
}

/// A requested or matched process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Process name, or the requested name.
    pub name: String,
    /// Process ID; absent if none was running.
    pub pid: Option<u32>,
    /// Result of the check before recording.
    pub eligibility: Option<Eligibility>,
    /// Whether profiling began at process start; absent if no dump has this information.
    pub from_startup: Option<bool>,
}

/// Result of the check of a process before recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eligibility {
    /// `yes`, `no`, `only-from-startup`, `unknown`.
    pub verdict: String,
    /// Reasons, one sentence each.
    pub reasons: Vec<String>,
}

/// The config sent to perfetto.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Text format, as accepted by `perfetto --txt -c -`.
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
    /// Host time.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Name in the directory (`raw-trace`), or the name of the input after `convert`.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

impl TraceFile {
    /// Returns the trace of a recording.
    pub fn raw(size: u64, sha256: String) -> TraceFile {
        TraceFile {
            file: RAW_TRACE.to_owned(),
            size,
            sha256,
        }
    }
}

/// A page in the directory, written by `report`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub file: String,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Profile options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiles {
    /// Naming scheme of the sample types: `heaptap` or `perfetto`.
    pub sample_names: String,
    /// True if names have suffixes such as ` [jit]`.
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
    /// Returns the options for writing such profiles again.
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
