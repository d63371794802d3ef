//! `status`: how each session stands, by its journal and by what its device says.

use std::path::PathBuf;

use serde::Serialize;
use time::OffsetDateTime;

use super::phone::{PATIENCE, orphans, reach};
use crate::device::Device;
use crate::error::Failure;
use crate::session::{self, SessionId, SessionState, Store};

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// perfetto runs, and a heaptap follows it.
    Recording,
    /// perfetto runs by itself, as it was asked to.
    Detached,
    /// perfetto runs, but the heaptap that followed it is gone.
    Unattended,
    /// perfetto has ended; its trace stands on the device.
    Uncollected,
    /// The trace is on this host; the rest is to be done.
    Fetched,
    /// Another heaptap is fetching it.
    Collecting,
    /// The device is not connected.
    Away,
    /// Neither perfetto nor a trace is left.
    Lost,
}

/// A session, as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStatus {
    /// Its id.
    pub session: SessionId,
    /// How it stands.
    pub state: State,
    /// The device.
    pub serial: String,
    /// What it records: names, then pids. Empty where only the device knows of it.
    pub targets: Vec<String>,
    /// When it began, by this host's clock.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started: Option<OffsetDateTime>,
    /// Size of the trace on the device, bytes.
    pub trace_bytes: Option<u64>,
    /// Labels so far.
    pub labels: Vec<String>,
    /// Where the results will be.
    pub output: Option<PathBuf>,
    /// Whether this host's journal knows it.
    pub in_journal: bool,
}

/// Every session of the journal, and those that `device` holds beside.
///
/// # Errors
/// Where the journal cannot be read.
pub async fn status(store: &Store, device: Option<&Device>) -> Result<Vec<SessionStatus>, Failure> {
    let (session_states, _) = store.list()?;
    let mut all = Vec::new();
    for session_state in &session_states {
        all.push(status_of(store, session_state, device).await);
    }
    if let Some(device) = device {
        for trace in orphans(device, &session_states).await? {
            all.push(SessionStatus {
                state: match trace.writer {
                    Some(_) => State::Detached,
                    None => State::Uncollected,
                },
                session: trace.id,
                serial: device.serial().to_owned(),
                targets: Vec::new(),
                started: None,
                trace_bytes: trace.stat.map(|s| s.size),
                labels: Vec::new(),
                output: None,
                in_journal: false,
            });
        }
    }
    Ok(all)
}

/// How `session_state` stands, asking its device; `device` is one that has been reached already.
pub(super) async fn status_of(
    store: &Store,
    session_state: &SessionState,
    device: Option<&Device>,
) -> SessionStatus {
    let header = &session_state.header;
    let locked = store.is_locked(&header.id);
    let reached = reach(header, device).await;
    let (state, trace_bytes) = match &reached {
        Err(_) if session_state.pulled.is_some() => (State::Fetched, None),
        Err(_) => (State::Away, None),
        Ok(device) => look(device, session_state, locked).await,
    };
    let pids = header.pids.iter().map(u32::to_string);
    SessionStatus {
        session: header.id.clone(),
        state,
        serial: header.serial.clone(),
        targets: header.names.iter().cloned().chain(pids).collect(),
        started: Some(header.time),
        trace_bytes,
        labels: session_state
            .labels
            .iter()
            .map(|l| l.label.clone())
            .collect(),
        output: Some(header.output.clone()),
        in_journal: true,
    }
}

async fn look(device: &Device, session_state: &SessionState, locked: bool) -> (State, Option<u64>) {
    let header = &session_state.header;
    // Another device may have the serial, as emulators do.
    if !session::is_phone_of(device, header).await.unwrap_or(false) {
        return (State::Away, None);
    }
    let Ok(writer) = session::writer_of(device, &header.remote_path).await else {
        return (State::Away, None);
    };
    let stat = device.stat(&header.remote_path, PATIENCE).await;
    let size = stat.ok().flatten().map(|s| s.size);
    let state = match (writer.is_some(), size, locked) {
        (true, _, true) => State::Recording,
        (true, _, false) if session_state.detached => State::Detached,
        (true, _, false) => State::Unattended,
        (false, _, true) => State::Collecting,
        (false, _, false) if session_state.pulled.is_some() => State::Fetched,
        (false, Some(_), false) => State::Uncollected,
        (false, None, false) => State::Lost,
    };
    (state, size)
}
