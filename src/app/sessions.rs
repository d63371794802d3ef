//! `status`, `snapshot`, `stop`, `collect`: go on with sessions that another process began,
//! from the journal, or from the name of a trace on a device where this host has none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use super::finish::{self, EndedBy, Finished};
use super::output::{OutputFolder, default_name};
use super::plan::{self, Plan};
use super::record::{RecordEvent, Step, Tell, session_events};
use crate::device::{Address, Device, Selector, Server};
use crate::eligibility::{self, Root};
use crate::error::{ErrorClass, Failure};
use crate::session::{
    self, BootId, Chronicle, Controls, Ending, Events, JOURNAL_VERSION, Opening, RemoteTrace,
    Session, SessionError, SessionId, Snapshot, SnapshotWay, Store,
};

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// perfetto runs, and a heaptap follows it.
    Recording,
    /// perfetto runs by itself: detached, or its heaptap is gone.
    Detached,
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
    let (chronicles, _) = store.list()?;
    let mut all = Vec::new();
    for chronicle in &chronicles {
        all.push(status_of(store, chronicle, device).await);
    }
    if let Some(device) = device {
        for trace in orphans(device, &chronicles).await? {
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

async fn status_of(store: &Store, chronicle: &Chronicle, device: Option<&Device>) -> SessionStatus {
    let opening = &chronicle.opening;
    let locked = store.is_locked(&opening.id);
    let reached = reach(opening, device).await;
    let (state, trace_bytes) = match &reached {
        Err(_) if chronicle.pulled.is_some() => (State::Fetched, None),
        Err(_) => (State::Away, None),
        Ok(device) => look(device, chronicle, locked).await,
    };
    let pids = opening.pids.iter().map(u32::to_string);
    SessionStatus {
        session: opening.id.clone(),
        state,
        serial: opening.serial.clone(),
        targets: opening.names.iter().cloned().chain(pids).collect(),
        started: Some(opening.time),
        trace_bytes,
        labels: chronicle.labels.iter().map(|l| l.label.clone()).collect(),
        output: Some(opening.output.clone()),
        in_journal: true,
    }
}

async fn look(device: &Device, chronicle: &Chronicle, locked: bool) -> (State, Option<u64>) {
    let opening = &chronicle.opening;
    let Ok(writer) = session::writer_of(device, &opening.remote_path).await else {
        return (State::Away, None);
    };
    let stat = device.stat(&opening.remote_path, PATIENCE).await;
    let size = stat.ok().flatten().map(|s| s.size);
    let state = match (writer.is_some(), size, locked) {
        (true, _, true) => State::Recording,
        (true, _, false) => State::Detached,
        (false, _, true) => State::Collecting,
        (false, _, false) if chronicle.pulled.is_some() => State::Fetched,
        (false, Some(_), false) => State::Uncollected,
        (false, None, false) => State::Lost,
    };
    (state, size)
}

/// Time allowed for one small question.
const PATIENCE: Duration = Duration::from_secs(10);

/// The device of a session: the one at hand where it is that one, else by the journal.
async fn reach(opening: &Opening, at_hand: Option<&Device>) -> Result<Device, Failure> {
    if let Some(device) = at_hand
        && device.serial() == opening.serial
        && device.server().address() == opening.server
    {
        return Ok(device.clone());
    }
    let address = Address::parse(&opening.server, "the session journal")?;
    let server = Server::at(address);
    Ok(server
        .select(&Selector::Serial(opening.serial.clone()))
        .await?)
}

/// Traces of ours on `device` that the journal does not know.
async fn orphans(
    device: &Device,
    chronicles: &[Chronicle],
) -> Result<Vec<RemoteTrace>, SessionError> {
    let mut traces = session::remote_traces(device).await?;
    traces.retain(|t| chronicles.iter().all(|c| c.opening.id != t.id));
    Ok(traces)
}

/// The session that is meant: named by its id or the start of it, or the only one.
///
/// # Errors
/// Where there is none, or several.
pub fn choose(
    store: &Store,
    wanted: Option<&str>,
    what: &'static str,
) -> Result<Chronicle, SessionError> {
    let (mut chronicles, unreadable) = store.list()?;
    if let Some(wanted) = wanted {
        chronicles.retain(|c| c.opening.id.as_str().starts_with(wanted));
    }
    match (chronicles.len(), wanted) {
        (1, _) => Ok(chronicles.remove(0)),
        (0, None) => match unreadable.into_iter().next() {
            Some((path, source)) => Err(SessionError::State { path, source }),
            None => Err(SessionError::NoSession { what }),
        },
        (0, Some(wanted)) => Err(SessionError::NoSuchSession {
            id: wanted.to_owned(),
        }),
        _ => Err(SessionError::SeveralSessions {
            ids: chronicles
                .iter()
                .map(|c| c.opening.id.to_string())
                .collect(),
        }),
    }
}

/// Takes a snapshot in a session that runs.
///
/// # Errors
/// Where the phone does not allow it, or no dump came in time.
pub async fn snapshot(
    store: &Store,
    device: Option<&Device>,
    wanted: Option<&str>,
    label: Option<String>,
) -> Result<(SessionId, Snapshot), Failure> {
    let chronicle = choose(store, wanted, "take a snapshot of")?;
    let device = reach(&chronicle.opening, device).await?;
    let label = label.unwrap_or_else(|| next_label(&chronicle));
    let scan = finish::new_scan();
    let snapshot = session::take_snapshot(&device, store, &chronicle, label, &scan).await?;
    Ok((chronicle.opening.id, snapshot))
}

/// A name for a snapshot that was given none.
pub fn next_label(chronicle: &Chronicle) -> String {
    format!("snapshot-{}", chronicle.labels.len() + 1)
}

/// What a stop came to.
#[derive(Debug)]
pub enum Stopped {
    /// It is finished.
    Finished(Box<Finished>),
    /// The heaptap that records it has been left to finish it.
    LeftToRecorder {
        /// The session.
        session: SessionId,
        /// Where the results will be.
        output: PathBuf,
    },
}

/// Stops a session and collects it. Where another heaptap follows it, that one collects; this
/// returns once it is done.
///
/// # Errors
/// As [`collect`].
pub async fn stop(
    store: &Store,
    device: Option<&Device>,
    wanted: Option<&str>,
    output: Option<&Path>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Stopped, Failure> {
    let chronicle = choose(store, wanted, "stop")?;
    let id = chronicle.opening.id.clone();
    let at_hand = reach(&chronicle.opening, device).await?;
    let lock = match store.lock(&id) {
        Ok(lock) => Some(lock),
        Err(SessionError::Busy { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(lock) = lock else {
        session::stop_for_another(&at_hand, store, &id, controls, session_events(tell)).await?;
        return Ok(Stopped::LeftToRecorder {
            session: id,
            output: chronicle.opening.output,
        });
    };
    drop(lock);
    let finished = collect_known(store, at_hand, chronicle, output, controls, tell).await?;
    Ok(Stopped::Finished(Box::new(finished)))
}

/// Collects a session: ends it where it still runs, fetches and converts it, leaves nothing
/// behind. Where the journal does not know it, the device is asked.
///
/// # Errors
/// [`SessionError::NotFetched`] where the device does not hand it over; it stays there.
pub async fn collect(
    store: &Store,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    wanted: Option<&str>,
    output: Option<&Path>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    match choose(store, wanted, "collect") {
        Ok(chronicle) => {
            let at_hand = match reach(&chronicle.opening, None).await {
                Ok(at_hand) => at_hand,
                // The journal's server or serial may have changed; whoever calls knows better.
                Err(_) => device().await?,
            };
            collect_known(store, at_hand, chronicle, output, controls, tell).await
        }
        Err(error @ (SessionError::NoSession { .. } | SessionError::NoSuchSession { .. })) => {
            let device = device().await?;
            let trace = choose_orphan(&device, wanted, error).await?;
            let id = trace.id.clone();
            adopt(store, &device, trace, output, true).await?;
            let chronicle = choose(store, Some(id.as_str()), "collect")?;
            collect_known(store, device, chronicle, None, controls, tell).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn choose_orphan(
    device: &Device,
    wanted: Option<&str>,
    none: SessionError,
) -> Result<RemoteTrace, SessionError> {
    let mut found = orphans(device, &[]).await?;
    match wanted {
        Some(wanted) => found.retain(|t| t.id.as_str().starts_with(wanted)),
        // Another host may be recording right now: it is taken only where it is named.
        None => found.retain(|t| t.writer.is_none()),
    }
    match found.len() {
        0 => Err(none),
        1 => Ok(found.remove(0)),
        _ => Err(SessionError::SeveralSessions {
            ids: found.iter().map(|t| t.id.to_string()).collect(),
        }),
    }
}

/// Writes a journal for a trace that another host recorded.
async fn adopt(
    store: &Store,
    device: &Device,
    trace: RemoteTrace,
    output: Option<&Path>,
    removable: bool,
) -> Result<(), Failure> {
    let now = OffsetDateTime::now_utc();
    let wanted = output.map_or_else(
        || PathBuf::from(default_name(trace.id.as_str(), now)),
        Path::to_owned,
    );
    let folder = OutputFolder::prepare(&wanted)?;
    let facts = eligibility::facts(device).await?;
    let boot_id = match &facts.boot_id {
        Some(boot_id) => BootId(boot_id.clone()),
        None => session::moment(device).await?.boot_id,
    };
    let plan = Plan {
        device: plan::manifest_device(&facts),
        targets: Vec::new(),
        steps: Vec::new(),
        config_sha256: String::new(),
        duration_ms: None,
        size_limit: None,
        selinux_relaxed: false,
        shell_is_root: facts.root == Some(Root::Shell),
        known: eligibility::Known::default(),
        heaps: Vec::new(),
        perfetto_names: false,
        annotations: true,
    };
    let opening = Opening {
        version: JOURNAL_VERSION,
        id: trace.id,
        serial: device.serial().to_owned(),
        server: device.server().address(),
        boot_id,
        remote_path: trace.path,
        removable,
        time: now,
        names: Vec::new(),
        pids: Vec::new(),
        // As heaptap's own configs have it.
        stop_limit_ms: 90_000,
        write_period_ms: 5000,
        snapshots: SnapshotWay::Impossible,
        config: String::new(),
        output: folder.path().to_owned(),
        plan: plan.to_value(),
    };
    drop(store.create(opening)?);
    Ok(())
}

async fn collect_known(
    store: &Store,
    device: Device,
    chronicle: Chronicle,
    output: Option<&Path>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    let id = chronicle.opening.id;
    let mut session = Session::resume(device, store.clone(), &id, session_events(tell))?;
    if let Some(output) = output {
        session.move_output(OutputFolder::prepare(output)?.path())?;
    }
    let ended_by = end(&mut session, controls).await?;
    finish::finish(session, ended_by, controls, tell).await
}

/// Makes sure that perfetto has ended, however far whoever began it came.
async fn end(session: &mut Session, controls: &mut Controls) -> Result<EndedBy, Failure> {
    if session.chronicle().pulled.is_some() {
        return Ok(EndedBy::Unknown);
    }
    session.find_process().await?;
    let was_running = session.is_running().await?;
    if !was_running {
        return Ok(EndedBy::Unknown);
    }
    session.note_targets().await?;
    Ok(match session.stop(controls).await? {
        Ending::Over => EndedBy::Stopped,
        Ending::Rebooted => EndedBy::Reboot,
    })
}

/// Undoes a session that was interrupted while it was being started.
///
/// # Errors
/// Where the device cannot be tidied up; the journal then stays for `collect`.
pub(super) async fn abandon(
    device: &Device,
    store: &Store,
    id: &SessionId,
    controls: &mut Controls,
    events: Events,
) -> Result<(), SessionError> {
    let mut session = match Session::resume(device.clone(), store.clone(), id, events) {
        Ok(session) => session,
        // It came no further than to ask questions.
        Err(SessionError::NoSuchSession { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let asking = async {
        session.find_process().await?;
        session.is_running().await
    };
    let running = tokio::select! {
        running = asking => running?,
        () = session::stop_asked(controls) => {
            return Err(SessionError::NotFetched {
                serial: device.serial().to_owned(),
                id: id.clone(),
                why: "it was interrupted while it was started".to_owned(),
            });
        }
    };
    if running {
        session.stop(controls).await?;
    }
    session.remove_remote().await;
    session.forget()
}

/// Fetches what stands in Android 10's one file before it is written again.
///
/// # Errors
/// Where another recording is writing to it, or it cannot be fetched.
pub(super) async fn make_way(
    device: &Device,
    store: &Store,
    path: &str,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<(), Failure> {
    let (chronicles, _) = store.list()?;
    let earlier = chronicles
        .into_iter()
        .find(|c| c.opening.serial == device.serial() && c.opening.remote_path == path);
    if let Some(earlier) = &earlier
        && (store.is_locked(&earlier.opening.id)
            || session::writer_of(device, path).await?.is_some())
    {
        return Err(SessionError::OneAtATime {
            serial: device.serial().to_owned(),
            id: Some(earlier.opening.id.clone()),
        }
        .into());
    }
    if let Some(earlier) = earlier {
        tell(RecordEvent::Step(Step::CollectingFirst {
            session: Some(earlier.opening.id.clone()),
        }));
        collect_known(store, device.clone(), earlier, None, controls, tell).await?;
        return Ok(());
    }
    if session::writer_of(device, path).await?.is_some() {
        return Err(SessionError::OneAtATime {
            serial: device.serial().to_owned(),
            id: None,
        }
        .into());
    }
    let Some(stat) = device.stat(path, PATIENCE).await? else {
        return Ok(());
    };
    if stat.size == 0 || store.is_collected(device.serial(), path, stat) {
        return Ok(());
    }
    // Another host, or a heaptap without this journal, left it there.
    tell(RecordEvent::Step(Step::CollectingFirst { session: None }));
    let trace = RemoteTrace {
        id: SessionId::random(),
        path: path.to_owned(),
        stat: Some(stat),
        writer: None,
    };
    let id = trace.id.clone();
    adopt(store, device, trace, None, false).await?;
    let chronicle = choose(store, Some(id.as_str()), "collect")?;
    match collect_known(store, device.clone(), chronicle, None, controls, tell).await {
        Ok(_) => Ok(()),
        // Whatever it is, it is kept on this host now; no recording fails for it.
        Err(failure) if failure.class == ErrorClass::BadInput => Ok(()),
        Err(failure) => Err(failure),
    }
}
