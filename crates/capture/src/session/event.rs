//! What a session tells its caller as it goes, and what the caller may ask of it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::id::SessionId;

/// What happens in a session, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SessionEvent {
    /// perfetto runs on the device.
    Started {
        /// The session.
        session: SessionId,
        /// Its process.
        pid: u32,
    },
    /// Starting takes its time: some data source is awaited.
    Starting,
    /// Some data source did not come up in time; the recording goes on.
    SlowStart,
    /// What the device reports each second.
    Progress(Progress),
    /// The connection is gone; the recording goes on on the device.
    ConnectionLost {
        /// What was lost.
        why: String,
    },
    /// The connection is back.
    Reconnected {
        /// How long it was away.
        #[serde(serialize_with = "seconds")]
        after: Duration,
    },
    /// perfetto was told to stop; its final dump is awaited.
    Stopping,
    /// perfetto has ended.
    Ended {
        /// Size of its file in bytes.
        size: u64,
    },
    /// Bytes of the trace that are on this host now.
    Pulling {
        /// So far.
        bytes: u64,
        /// Of these.
        total: u64,
    },
    /// A pull broke off and is tried again.
    PullRetry {
        /// What went wrong.
        why: String,
    },
    /// The trace is on this host, whole.
    Pulled {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A snapshot was asked for.
    SnapshotRequested {
        /// Its label.
        label: String,
    },
    /// Its dump is complete in the device's file.
    SnapshotTaken {
        /// Its label.
        label: String,
        /// From the request to the dump.
        #[serde(serialize_with = "seconds")]
        lag: Duration,
        /// From the request until it was seen complete in the device's file.
        #[serde(serialize_with = "seconds")]
        waited: Duration,
        /// Dumps that came, one a process and heap.
        dumps: usize,
        /// Why none could be caused, where the label was set all the same.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_dump: Option<String>,
    },
    /// It failed; the recording goes on.
    SnapshotFailed {
        /// Its label.
        label: String,
        /// Why.
        why: String,
    },
    /// Something that the user should know.
    Warning {
        /// What.
        text: String,
    },
}

/// One report of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Progress {
    /// Time since the start of the recording, by the device's clock.
    #[serde(serialize_with = "seconds", rename = "elapsed_s")]
    pub elapsed: Duration,
    /// Size of the trace file.
    pub trace_bytes: u64,
    /// Free space where it stands; `None` where the device does not say.
    pub free_bytes: Option<u64>,
    /// Processes that match the targets now.
    pub pids: Vec<u32>,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

/// What the caller asks of a running session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// End the recording and fetch it. Asked a second time: give up waiting.
    Stop,
    /// Take a snapshot.
    Snapshot {
        /// Its label.
        label: String,
    },
}

/// Where events go. Must return at once: the session waits for it.
#[derive(Clone)]
pub struct Events(Arc<dyn Fn(SessionEvent) + Send + Sync>);

impl Events {
    /// Calls `take` with every event.
    pub fn new(take: impl Fn(SessionEvent) + Send + Sync + 'static) -> Self {
        Events(Arc::new(take))
    }

    /// Nobody listens.
    pub fn ignored() -> Self {
        Events::new(|_| {})
    }

    pub(super) fn tell(&self, event: SessionEvent) {
        (self.0)(event);
    }
}

/// Where requests come from.
pub type Controls = tokio::sync::mpsc::UnboundedReceiver<Control>;

/// Ready when a stop is asked for; never where nobody can ask any more.
pub async fn stop_asked(controls: &mut Controls) {
    loop {
        match controls.recv().await {
            Some(Control::Stop) => return,
            Some(Control::Snapshot { .. }) => {}
            None => std::future::pending().await,
        }
    }
}
