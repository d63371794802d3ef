//! What a process has mapped: read from a phone, a file, a trace or a recording's folder, summed
//! up as a document, and two of them compared.
//!
//! | file | owns |
//! |---|---|
//! | `fetch` | the ways to it on a phone |
//! | `files` | files, traces, folders: which moments there are, and which is meant |
//! | `document` | the sums, ready for a table, JSON and CSV |

mod document;
pub(crate) mod fetch;
mod files;

pub use document::{ChangeRow, ChangesDocument, Document, Row, changes, document};
pub use fetch::{AccessMethod, FetchError};
pub use files::{InputError, is_text, load};

use serde::Serialize;

use crate::bytes::Bytes;
use crate::device::Device;
use crate::heaps::moments::Capture;
use crate::memory::smaps::{self, Smaps};

/// Where mappings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A running process.
    Phone,
    /// A text.
    File,
    /// Kept beside a recording at a label.
    Recording,
    /// A packet of a trace.
    Trace,
}

/// What is known of a moment at which mappings were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Where it comes from.
    pub origin: Origin,
    /// The process; empty where nobody says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// Its id; 0 where nobody says.
    #[serde(skip_serializing_if = "crate::units::is_zero")]
    pub pid: u64,
    /// BOOTTIME ns (of a trace: its time), where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
    /// The label it was taken for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its place among the moments of the input, from 1; labels of a recording count as there.
    pub number: u32,
    /// The dump that it belongs to, as `PATH@N` has it; the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dump: Option<u32>,
    /// How it was read on the phone.
    #[serde(rename = "way", skip_serializing_if = "Option::is_none")]
    pub method: Option<AccessMethod>,
    /// What must be known of its figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl Moment {
    /// In a list of moments: `@after-login (@2) of com.example.app (2050)`.
    pub fn describe(&self) -> String {
        let who = match (self.process.as_str(), self.pid) {
            ("", 0) => String::new(),
            ("", pid) => format!(" of {pid}"),
            (process, pid) => format!(" of {process} ({pid})"),
        };
        let is_recorded = self.origin == Origin::Recording;
        let numbers = self.dump.or((!is_recorded).then_some(self.number));
        let name = self.capture().named(numbers.as_slice());
        format!("{name}{who}")
    }

    /// As what was kept of a recording.
    fn capture(&self) -> Capture {
        Capture {
            number: self.number,
            label: self.label.clone(),
            pid: self.pid,
            // What stands in a trace beside a heap is part of that dump.
            dump: self.dump.filter(|_| self.origin == Origin::Trace),
        }
    }
}

/// Mappings of a process at a moment.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// When, of whom, from where.
    pub moment: Moment,
    /// The mappings.
    pub smaps: Smaps,
    /// The text they were read from, where it was one.
    pub text: Option<Bytes>,
    /// The other moments of the input.
    pub others: Vec<Moment>,
}

/// Reads the mappings of a running process: `target` is its pid or its name.
///
/// # Errors
/// Where it does not run, the phone forbids it, is lost, or what it gave is none.
pub async fn of_phone(
    device: &Device,
    target: &str,
    user: Option<u32>,
) -> Result<Mapped, FetchError> {
    let (pid, process) = fetch::only_process(device, target, user).await?;
    let fetched = fetch::proc_file(device, (pid, &process), "smaps").await?;
    let smaps = smaps::parse(&fetched.text).map_err(|error| FetchError::Refused {
        serial: device.serial().to_owned(),
        process: process.clone(),
        pid,
        said: error.to_string(),
    })?;
    Ok(Mapped {
        moment: Moment {
            origin: Origin::Phone,
            process,
            pid: pid.into(),
            time_ns: fetched.boot_ns,
            label: None,
            number: 1,
            dump: None,
            method: Some(fetched.method),
            remark: None,
        },
        smaps,
        text: Some(fetched.text.into()),
        others: Vec::new(),
    })
}
