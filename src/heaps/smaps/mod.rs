//! Memory mappings of a process: read from a device, a file, a trace or a recording directory,
//! summed up as a document, and compared.
//!
//! | file | contents |
//! |---|---|
//! | `fetch` | access methods on a device |
//! | `files` | files, traces, directories: available captures, and their selection |
//! | `document` | sums for tables, JSON and CSV |

mod document;
pub(crate) mod fetch;
mod files;

pub use document::{ChangeRow, ChangesDocument, Document, Row, changes, document};
pub use fetch::{AccessMethod, FetchError};
pub use files::{MappingsError, is_text, load};

use serde::Serialize;

use crate::heaps::moments::Capture;
use android_memory::smaps::{self, Smaps};
use heaptap_adb::Device;
use heaptap_base::bytes::Bytes;
use heaptap_capture::config::Targets;
use heaptap_results::lists::process_name;

/// Source of mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A running process.
    Device,
    /// A text file.
    File,
    /// A recording, captured at a label.
    Recording,
    /// A packet of a trace.
    Trace,
}

/// Facts about a capture of mappings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub origin: Origin,
    /// Process; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// Process ID; 0 if unknown.
    #[serde(skip_serializing_if = "heaptap_base::units::is_zero")]
    pub pid: u64,
    /// BOOTTIME in ns (trace time, for traces), if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
    /// Label of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Position among the captures of the input, from 1; labels of a recording keep their position.
    pub number: u32,
    /// Dump that it belongs to, as in `PATH@N`; the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dump: Option<u32>,
    /// Access method on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<AccessMethod>,
    /// Note about its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl Moment {
    /// The first capture of its input, without a time.
    fn new(origin: Origin, process: String, pid: u64) -> Moment {
        Moment {
            origin,
            process,
            pid,
            time_ns: None,
            label: None,
            number: 1,
            dump: None,
            method: None,
            remark: None,
        }
    }

    /// Returns a description for lists: `@after-login (@2) of com.example.app (2050)`.
    pub fn describe(&self) -> String {
        let who = match (self.process.as_str(), self.pid) {
            ("", 0) => String::new(),
            (process, pid) => format!(" of {}", process_name(pid, process)),
        };
        if self.origin == Origin::File {
            return format!("@{}{who}", self.number);
        }
        let is_recorded = self.origin == Origin::Recording;
        let numbers = self.dump.or((!is_recorded).then_some(self.number));
        let name = self.capture().named(numbers.as_slice());
        format!("{name}{who}")
    }

    /// Converts to a capture of a recording.
    fn capture(&self) -> Capture {
        Capture {
            number: self.number,
            label: self.label.clone(),
            pid: self.pid,
            // Mappings in a trace belong to the dump of their heap.
            dump: self.dump.filter(|_| self.origin == Origin::Trace),
        }
    }
}

/// Memory mappings of a process at one time.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// Time, process and source.
    pub moment: Moment,
    pub smaps: Smaps,
    /// Source text, if there is one.
    pub text: Option<Bytes>,
    /// Other captures of the input.
    pub others: Vec<Moment>,
}

/// Reads the mappings of a running process: `target` is its pid or its name.
///
/// # Errors
/// Returns an error if it is not running, the device denies access or is disconnected, or the
/// output is not a list of mappings.
pub async fn of_phone(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Mapped, FetchError> {
    let (pid, process) = fetch::only_process(device, targets, user).await?;
    let fetched = fetch::proc_file(device, (pid, &process), "smaps").await?;
    let smaps = smaps::parse(&fetched.text).map_err(|error| FetchError::Refused {
        serial: device.serial().to_owned(),
        process: process.clone(),
        pid,
        said: error.to_string(),
    })?;
    Ok(Mapped {
        moment: Moment {
            time_ns: fetched.boot_ns,
            method: Some(fetched.method),
            ..Moment::new(Origin::Device, process, pid.into())
        },
        smaps,
        text: Some(fetched.text.into()),
        others: Vec::new(),
    })
}
