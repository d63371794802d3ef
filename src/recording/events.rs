//! Events of a recording, for display.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::companion_options::Source;
use crate::names::device_libs::PullEvent;
use heaptap_base::units::ByteSize;
use heaptap_capture::eligibility::Finding;
use heaptap_capture::session::{Events, SessionEvent, SessionId, SnapshotMethod};

/// An event of a recording, for display.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RecordEvent {
    /// The check is done; severe findings come first.
    Checked(Checked),
    Session(SessionEvent),
    /// A library is fetched from the device.
    Library(PullEvent),
    /// An event of the companion data.
    Companion(CompanionEvent),
    /// Another step.
    Step(Step),
}

/// Results of the check.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename = "checked")]
pub struct Checked {
    /// Description of the device: `Pixel 8, Android 14 (SDK 34, user)`.
    pub device: String,
    /// Warnings, and notes about the selected processes; blocking findings are errors.
    pub findings: Vec<Finding>,
    /// Config options that the Android version does not support.
    pub notices: Vec<String>,
    pub snapshots: SnapshotMethod,
    /// Companion data: captured at labels even without a dump.
    pub with: Vec<Source>,
    /// Directory of the results.
    pub output: PathBuf,
    /// Duration in ms; `None` if the recording ends by other means.
    pub duration_ms: Option<u64>,
}

/// Steps outside of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// The app was restarted.
    Launched { package: String },
    /// heaptap made SELinux permissive, or the guard on the device has restored it.
    Selinux { enforcing: bool },
    /// The trace is being converted.
    Converting,
    /// The buffer overran, so the recording is repeated.
    #[serde(rename = "record-again")]
    Again {
        /// New sampling interval, in bytes.
        interval_bytes: u64,
        /// Directory of the overrun recording.
        #[serde(rename = "previous_recording")]
        kept: PathBuf,
    },
    /// A Java heap dump is repeated.
    DumpAgain {
        /// Reason and remedy.
        why: RetryReason,
        /// Directory of the incomplete dump, if it has one.
        #[serde(rename = "previous_dump")]
        kept: Option<PathBuf>,
    },
    /// An earlier session blocks the way, and is fetched first.
    CollectingFirst {
        /// The earlier session, if known.
        session: Option<SessionId>,
        /// Directory of its results.
        output: PathBuf,
    },
    /// `stop` waits, because another heaptap is starting or fetching the session.
    WaitingForOther { session: SessionId },
}

/// Handles the events of a recording; must return immediately.
pub type EventHandler = std::sync::Arc<dyn Fn(RecordEvent) + Send + Sync>;

/// Reason for repeating a dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryReason {
    /// The buffer could not hold the data between two writes into the file.
    LargerBuffer {
        /// New size, in bytes.
        buffer_bytes: u64,
    },
    /// The dump was not complete when the session ended.
    MoreTime {
        /// Multiple of java_heap_dump's own time limit.
        times: u32,
    },
    /// Nothing arrived, although the process was running: the dump started late.
    NothingCame,
}

impl RetryReason {
    /// Returns a message.
    pub fn describe(&self) -> String {
        match self {
            RetryReason::LargerBuffer { buffer_bytes } => format!(
                "the dump did not fit in the buffer; dumping again with a buffer of {}",
                ByteSize(*buffer_bytes)
            ),
            RetryReason::MoreTime { times } => {
                format!(
                    "the dump did not finish in time; dumping again with {times} times as much time"
                )
            }
            RetryReason::NothingCame => {
                "no dump came before the session ended; dumping again, with more time".to_owned()
            }
        }
    }
}

/// An event of the companion data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompanionEvent {
    /// The captures of a label are done or have failed.
    Captured {
        /// Label; empty at the end of the recording.
        label: String,
        /// Successful captures.
        #[serde(rename = "captured")]
        taken: Vec<Source>,
        /// Missing captures, with reasons.
        missed: Vec<(Source, String)>,
    },
    /// A continuously observed source cannot be read on this device.
    Unreadable {
        /// Source and reason.
        why: String,
    },
    /// A process restarted.
    Restarted {
        name: String,
        /// New process ID.
        pid: u32,
    },
    /// Observing is over.
    Observed {
        /// Samples of processes.
        samples: u64,
        /// Collections of the apps themselves.
        collections: u64,
        /// Share of one core used by the loop on the device.
        #[serde(skip_serializing_if = "Option::is_none")]
        core: Option<f64>,
        /// Upper bound of the share of one core used by services that answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        services: Option<f64>,
        /// Bytes a second over the connection.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_per_s: Option<f64>,
    },
}

/// Returns a handler that forwards the events of a session.
pub(super) fn session_events(on_event: &EventHandler) -> Events {
    let on_event = Arc::clone(on_event);
    Events::new(move |event| on_event(RecordEvent::Session(event)))
}

/// Emits a warning.
pub(super) fn warn(on_event: &EventHandler, text: impl Into<String>) {
    let text = text.into();
    on_event(RecordEvent::Session(SessionEvent::Warning { text }));
}
