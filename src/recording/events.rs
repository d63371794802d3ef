//! What happens in a recording, as it is told to whoever shows it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::companion_options::Source;
use crate::eligibility::Finding;
use crate::naming::device_libs::PullEvent;
use crate::session::{Events, SessionEvent, SessionId, SnapshotMethod};
use crate::units::ByteSize;

/// What happens in a recording, for whoever shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum RecordEvent {
    /// The check is done; graver findings first.
    Checked(Checked),
    /// In the session.
    Session(SessionEvent),
    /// A library of the phone is fetched.
    Library(PullEvent),
    /// Beside the recording.
    Companion(CompanionEvent),
    /// Another step.
    Step(Step),
}

/// What the check found.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename = "checked")]
pub struct Checked {
    /// The phone: `Pixel 8, Android 14 (SDK 34, user)`.
    pub device: String,
    /// Warnings, and notes on which processes are meant; what blocks is an error.
    pub findings: Vec<Finding>,
    /// What the phone's version leaves out of the config.
    pub notices: Vec<String>,
    /// What snapshots will need.
    pub snapshots: SnapshotMethod,
    /// Recorded beside: taken at labels, too, whatever becomes of a dump.
    pub with: Vec<Source>,
    /// Where the results will be.
    pub output: PathBuf,
    /// How long it will last, ms; `None` where it ends by other means.
    pub duration_ms: Option<u64>,
}

/// Steps beside the session's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// The app was stopped and started again.
    Launched {
        /// Its package.
        package: String,
    },
    /// The trace is being converted.
    Converting,
    /// The buffer overran; it is recorded again.
    Again {
        /// The new interval, bytes.
        interval_bytes: u64,
    },
    /// A Java heap is dumped again.
    DumpAgain {
        /// Why, and how.
        why: RetryReason,
        /// Where what came so far is kept, where something came.
        kept: Option<PathBuf>,
    },
    /// An earlier recording stood in the way, and is fetched first.
    CollectingFirst {
        /// The earlier session, where it is known.
        session: Option<SessionId>,
    },
}

/// Takes the events of a recording; must return at once.
pub type EventHandler = std::sync::Arc<dyn Fn(RecordEvent) + Send + Sync>;

/// Why a dump is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryReason {
    /// The buffer could not hold what came between two writes into the file.
    LargerBuffer {
        /// Its new size, bytes.
        buffer_bytes: u64,
    },
    /// It was not done when the session ended.
    MoreTime {
        /// As many times java_heap_dump's own.
        times: u32,
    },
    /// Nothing came, though the process was there: whoever starts dumps was late.
    NothingCame,
}

impl RetryReason {
    /// In words, as the end of `dumping again …`.
    pub fn describe(&self) -> String {
        match self {
            RetryReason::LargerBuffer { buffer_bytes } => format!(
                "the dump did not fit the buffer: dumping again with one of {}",
                ByteSize(*buffer_bytes)
            ),
            RetryReason::MoreTime { times } => {
                format!("the dump was not done in time: dumping again with {times} times as much")
            }
            RetryReason::NothingCame => {
                "no dump came before the session ended: dumping again, for longer".to_owned()
            }
        }
    }
}

/// What happens beside a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompanionEvent {
    /// What a label asked for has been taken, or has not.
    Captured {
        /// The label; empty at the end of the recording.
        label: String,
        /// What was taken.
        taken: Vec<Source>,
        /// What was not, and why.
        missed: Vec<(Source, String)>,
    },
    /// Something that is observed all along cannot be read on this phone.
    Unreadable {
        /// What, and why.
        why: String,
    },
    /// A process was started again.
    Restarted {
        /// Its name.
        name: String,
        /// Its new id.
        pid: u32,
    },
    /// Observing is over.
    Observed {
        /// Samples of processes.
        samples: u64,
        /// Collections of the apps themselves.
        collections: u64,
        /// Of one core: what the loop on the phone took of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        core: Option<f64>,
        /// Of one core: what services took at most to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        services: Option<f64>,
        /// Bytes a second over the connection.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_per_s: Option<f64>,
    },
}

/// The session's events as ours.
pub(super) fn session_events(on_event: &EventHandler) -> Events {
    let on_event = Arc::clone(on_event);
    Events::new(move |event| on_event(RecordEvent::Session(event)))
}

/// Tells a warning.
pub(super) fn warn(on_event: &EventHandler, text: impl Into<String>) {
    let text = text.into();
    on_event(RecordEvent::Session(SessionEvent::Warning { text }));
}
