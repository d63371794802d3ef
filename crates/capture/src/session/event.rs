//! Events of a session for its caller, and requests of the caller.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::id::SessionId;
use heaptap_base::error::ErrorClass;

/// Event of a session, for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SessionEvent {
    /// perfetto is running on the device, or has already ended.
    Started {
        session: SessionId,
        /// PID of perfetto, unless it has ended.
        pid: Option<u32>,
    },
    /// The start is slow: some data source is not ready yet.
    Starting,
    /// Some data source did not start in time; the recording continues.
    SlowStart,
    /// Report of the device, each second.
    Progress(Progress),
    /// The connection is lost; the recording continues on the device.
    ConnectionLost {
        /// The error.
        why: String,
    },
    /// The connection is back.
    Reconnected {
        /// Duration of the interruption.
        #[serde(serialize_with = "seconds")]
        after: Duration,
    },
    /// perfetto was asked to stop; its final dump is pending.
    Stopping,
    /// perfetto has ended.
    Ended {
        /// Size of its file in bytes.
        size: u64,
    },
    /// Progress of fetching the trace.
    Pulling {
        /// Bytes so far.
        bytes: u64,
        /// Total bytes.
        total: u64,
    },
    /// A pull failed and is being retried.
    PullRetry {
        /// The error.
        why: String,
    },
    /// The trace is complete on this host.
    Pulled {
        /// Size in bytes.
        bytes: u64,
    },
    /// A snapshot was requested.
    SnapshotRequested { label: String },
    /// The dump of a snapshot is complete in the device's file.
    SnapshotTaken {
        label: String,
        /// Time from the request to the dump.
        #[serde(serialize_with = "seconds")]
        lag: Duration,
        /// Time from the request until the dump was complete in the device's file.
        #[serde(serialize_with = "seconds")]
        waited: Duration,
        /// Number of dumps, one per process and heap.
        dumps: usize,
        /// Sum of the unreleased bytes of the native dumps.
        unreleased_bytes: u64,
        /// Reason why there is no dump, if the label was set nevertheless.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_dump: Option<String>,
    },
    /// A snapshot failed; the recording continues.
    SnapshotFailed {
        label: String,
        /// Reason.
        why: String,
        /// Kind and class of the error.
        kind: &'static str,
        #[serde(skip)]
        class: ErrorClass,
    },
    /// Warning for the user.
    Warning { text: String },
}

/// One report of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Progress {
    /// Time since the start of the recording, by the device's clock.
    #[serde(serialize_with = "seconds", rename = "elapsed_s")]
    pub elapsed: Duration,
    /// Size of the trace file.
    pub trace_bytes: u64,
    /// Free space in the directory of the trace; `None` if the device does not report it.
    pub free_bytes: Option<u64>,
    /// Running processes that match the targets.
    pub pids: Vec<u32>,
    /// Resident memory of these processes; `None` if the device does not report it.
    pub rss_bytes: Option<u64>,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

/// Request of the caller to a running session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// End the recording and fetch it. A second request stops waiting.
    Stop,
    /// End the recording; without effect if it has ended by itself and is being fetched.
    End,
    /// Take a snapshot.
    Snapshot { label: String },
}

/// Handler of events. It must return immediately, because the session waits for it.
#[derive(Clone)]
pub struct Events(Arc<dyn Fn(SessionEvent) + Send + Sync>);

impl Events {
    /// Creates a handler that calls `take` with every event.
    pub fn new(take: impl Fn(SessionEvent) + Send + Sync + 'static) -> Self {
        Events(Arc::new(take))
    }

    pub(super) fn tell(&self, event: SessionEvent) {
        (self.0)(event);
    }
}

/// Channel of requests.
pub type Controls = tokio::sync::mpsc::UnboundedReceiver<Control>;

/// Returns when a stop is requested; never if the channel is closed.
pub async fn stop_asked(controls: &mut Controls) {
    loop {
        match controls.recv().await {
            Some(Control::Stop) => return,
            Some(Control::End | Control::Snapshot { .. }) => {}
            None => std::future::pending().await,
        }
    }
}
