//! Mappings of a process at one time, and the facts of their capture.

use serde::Serialize;

use super::fetch::AccessMethod;
use crate::heaps::moments::Capture;
use android_memory::smaps::Smaps;
use heaptap_base::bytes::Bytes;
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
    pub(super) fn new(origin: Origin, process: String, pid: u64) -> Moment {
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
    pub(super) fn capture(&self) -> Capture {
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
