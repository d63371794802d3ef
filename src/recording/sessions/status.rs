//! `status`: the state of each session, from its journal and its device.

use std::path::PathBuf;

use serde::Serialize;
use time::OffsetDateTime;

use super::phone::{PATIENCE, is_fetched, orphans, reach};
use super::scope::Scope;
use crate::recording::companion;
use crate::recording::plan::Plan;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::session::{
    self, CaptureError, HeapFiles, RemoteTrace, SessionHeader, SessionId, SessionState, Store,
    Unreadable,
};
use heaptap_results::output::is_recorded;

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A heaptap is about to start perfetto.
    Starting,
    /// perfetto runs, and a heaptap follows it.
    Recording,
    /// perfetto runs detached, as requested.
    Detached,
    /// perfetto runs, but the heaptap that followed it has ended.
    Unattended,
    /// perfetto has ended; its trace is on the device.
    Uncollected,
    /// The trace is on this host, but is not converted yet.
    Fetched,
    /// The results are complete, but a copy may still be on the device.
    Finished,
    /// Another heaptap is fetching it.
    Collecting,
    /// The device is not connected.
    Away,
    /// No adb server answers at the session's address, so its device is unknown.
    ServerDown,
    /// A program answers there, but not as an adb server does.
    Unreadable,
    /// Neither perfetto nor a trace exists.
    Lost,
}

impl State {
    /// Returns the class of a check for recordings that are left; `None` if a heaptap finishes it, or
    /// if it runs as asked.
    pub fn class_left(self) -> Option<ErrorClass> {
        match self {
            State::Starting
            | State::Recording
            | State::Detached
            | State::Collecting
            | State::Finished => None,
            State::Unattended | State::Uncollected | State::Fetched | State::Lost => {
                Some(ErrorClass::Budget)
            }
            State::Away | State::ServerDown | State::Unreadable => Some(ErrorClass::Inconclusive),
        }
    }
}

/// A session, as shown by `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStatus {
    pub session: SessionId,
    pub state: State,
    pub serial: String,
    /// Targets: names, then pids; for heap files, the names of their processes. Empty if only the
    /// device knows the session.
    pub targets: Vec<String>,
    /// It records a part of another session, which includes it.
    #[serde(skip)]
    pub is_part: bool,
    /// Apps write heap files, instead of perfetto a trace.
    #[serde(skip)]
    pub is_heap_dump: bool,
    /// Start time by the host clock.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started: Option<OffsetDateTime>,
    /// Size of the trace or the heap files on the device, bytes.
    pub trace_bytes: Option<u64>,
    /// Labels so far.
    pub labels: Vec<String>,
    /// Directory of the results.
    pub output: Option<PathBuf>,
    /// True if the journal of this host contains it.
    pub in_journal: bool,
    /// True if the device has restarted since; false also if that is unknown.
    pub restarted: bool,
    /// SELinux is permissive while it runs.
    pub selinux_relaxed: bool,
    /// Address of its adb server.
    #[serde(skip)]
    pub server: String,
}

/// Sessions, and what could not be looked at.
#[derive(Debug, Default)]
pub struct Statuses {
    pub sessions: Vec<SessionStatus>,
    /// Journals that cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Devices that do not answer, so recordings that were started elsewhere are unknown.
    pub silent: Vec<(String, CaptureError)>,
    /// Failures of adb servers, each with its address.
    pub broken: Vec<(String, Failure)>,
}

/// Returns whether a program answered at the address of an adb server, but not as one does.
fn is_of_broken_server(failure: &Failure) -> bool {
    [
        "adb-server-lost",
        "adb-server-silent",
        "adb-server-refused",
        "not-an-adb-server",
    ]
    .contains(&failure.kind)
}

/// Returns the sessions of all journals within the scope and of `devices`, and what could not be
/// looked at. `broken`: the server of the flags, if it failed.
///
/// # Errors
/// Returns an error if the directory of the journals cannot be read.
pub async fn status(
    store: &Store,
    scope: &Scope,
    devices: &[Device],
    broken: Option<(String, Failure)>,
) -> Result<Statuses, Failure> {
    let (session_states, unreadable) = store.list()?;
    let mut all = Vec::new();
    let mut silent = Vec::new();
    let mut broken: Vec<(String, Failure)> = broken.into_iter().collect();
    for session_state in session_states.iter().filter(|s| scope.holds(&s.header)) {
        let is_its = |device: &&Device| device.serial() == session_state.header.serial;
        let device = devices.iter().find(is_its);
        let mut wholes = session_states.iter();
        let server = &session_state.header.server;
        // Each request to a server that hangs takes seconds.
        let known = broken.iter().find(|(address, _)| address == server);
        let reached = match known {
            Some((_, failure)) => Err(failure.clone()),
            None => reach(&session_state.header, device).await,
        };
        if let (None, Err(failure)) = (known, &reached)
            && is_of_broken_server(failure)
        {
            broken.push((server.clone(), failure.clone()));
        }
        all.push(SessionStatus {
            is_part: wholes.any(|whole| companion::is_part_of(session_state, whole)),
            ..status_on(store, session_state, reached).await
        });
    }
    // The state of a session says that already.
    let is_shown = |address: &String| {
        let mut sessions = all.iter();
        sessions.any(|one| one.state == State::ServerDown && one.server == *address)
    };
    broken.retain(|(address, failure)| is_of_broken_server(failure) || !is_shown(address));
    for device in devices {
        let found = match orphans(device, &session_states).await {
            Ok(found) => found,
            Err(error) => {
                silent.push((device.serial().to_owned(), error));
                continue;
            }
        };
        let unfetched = |trace: &RemoteTrace| !is_fetched(store, device, trace);
        for trace in found.into_iter().filter(unfetched) {
            all.push(SessionStatus {
                state: match trace.writer {
                    Some(_) => State::Detached,
                    None => State::Uncollected,
                },
                session: trace.id,
                serial: device.serial().to_owned(),
                targets: Vec::new(),
                is_part: false,
                is_heap_dump: false,
                started: None,
                trace_bytes: trace.stat.map(|s| s.size),
                labels: Vec::new(),
                output: None,
                in_journal: false,
                restarted: false,
                selinux_relaxed: false,
                server: device.server().address(),
            });
        }
    }
    Ok(Statuses {
        sessions: all,
        unreadable,
        silent,
        broken,
    })
}

/// Returns the state of `session_state`, reading from its device; `device` is a device that is
/// already connected.
pub(super) async fn status_of(
    store: &Store,
    session_state: &SessionState,
    device: Option<&Device>,
) -> SessionStatus {
    let reached = reach(&session_state.header, device).await;
    status_on(store, session_state, reached).await
}

async fn status_on(
    store: &Store,
    session_state: &SessionState,
    reached: Result<Device, Failure>,
) -> SessionStatus {
    let header = &session_state.header;
    let locked = store.is_locked(&header.id);
    let (state, trace_bytes) = match &reached {
        Err(_) if session_state.is_fetched() => (State::Fetched, None),
        Err(failure) if failure.kind == "no-adb-server" => (State::ServerDown, None),
        Err(failure) if is_of_broken_server(failure) => (State::Unreadable, None),
        Err(_) => (State::Away, None),
        Ok(device) => look(device, session_state, locked).await,
    };
    let state = match state {
        State::Fetched if is_recorded(&header.output, &header.id) => State::Finished,
        other => other,
    };
    let restarted = match (&reached, state) {
        (Ok(device), State::Uncollected | State::Lost) => {
            let now = session::moment(device).await;
            now.is_ok_and(|now| now.boot_id != header.boot_id)
        }
        _ => false,
    };
    let runs = matches!(
        state,
        State::Recording | State::Detached | State::Unattended
    );
    SessionStatus {
        session: header.id.clone(),
        state,
        serial: header.serial.clone(),
        targets: targets(header),
        is_part: false,
        is_heap_dump: header.heap_files.is_some(),
        started: Some(header.time),
        trace_bytes,
        labels: session_state
            .labels
            .iter()
            .map(|l| l.label.clone())
            .collect(),
        output: Some(header.output.clone()),
        in_journal: true,
        restarted,
        selinux_relaxed: runs && Plan::read(&header.plan).is_ok_and(|plan| plan.selinux_relaxed),
        server: header.server.clone(),
    }
}

fn targets(header: &SessionHeader) -> Vec<String> {
    let Some(wanted) = &header.heap_files else {
        let pids = header.pids.iter().map(u32::to_string);
        return header.names.iter().cloned().chain(pids).collect();
    };
    let mut names: Vec<String> = Vec::new();
    for file in &wanted.files {
        if !names.contains(&file.process) {
            names.push(file.process.clone());
        }
    }
    names
}

/// Returns the size of heap files on the device; `None` if it is unknown.
async fn heap_bytes(device: &Device, wanted: &HeapFiles) -> Option<u64> {
    let mut sum = 0;
    for file in &wanted.files {
        let stat = device.stat(&file.remote, PATIENCE).await.ok()?;
        sum += stat.map_or(0, |stat| stat.size);
    }
    (sum > 0).then_some(sum)
}

async fn look(device: &Device, session_state: &SessionState, locked: bool) -> (State, Option<u64>) {
    let header = &session_state.header;
    // Another device can have the same serial, as emulators do.
    if !session::is_phone_of(device, header).await.unwrap_or(false) {
        return match session_state.is_fetched() {
            true => (State::Fetched, None),
            false => (State::Away, None),
        };
    }
    let Ok(writer) = session::find_own_writer(device, header).await else {
        return (State::Away, None);
    };
    // A failure does not prove that nothing is left.
    let Ok(stat) = device.stat(&header.remote_path, PATIENCE).await else {
        return (State::Away, None);
    };
    let size = match &header.heap_files {
        Some(wanted) => heap_bytes(device, wanted).await,
        None => stat.map(|stat| stat.size),
    };
    // An app that hangs keeps a part of the script for heap files alive.
    let is_written = writer.is_some() && !session_state.ended;
    let state = match (is_written, stat, locked) {
        (true, _, true) | (false, None, true) if session_state.is_starting() => State::Starting,
        (true, _, true) => State::Recording,
        (true, _, false) if session_state.detached => State::Detached,
        (true, _, false) => State::Unattended,
        (false, _, true) => State::Collecting,
        (false, _, false) if session_state.is_fetched() => State::Fetched,
        (false, Some(_), false) => State::Uncollected,
        (false, None, false) if session_state.has_heap_files() => State::Fetched,
        (false, None, false) => State::Lost,
    };
    (state, size)
}
