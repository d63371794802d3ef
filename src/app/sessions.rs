//! `status`, `snapshot`, `stop`, `collect`: go on with sessions that another process began,
//! from the journal, or from the name of a trace on a device where this host has none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use super::beside::With;
use super::choice::{self, Purpose, Scope};
use super::finish::{self, EndedBy, Finished};
use super::manifest::Manifest;
use super::names::NameOptions;
use super::output::{OutputFolder, default_name};
use super::plan::{self, Plan};
use super::record::{RecordEvent, Step, Tell, session_events};
use crate::device::{Address, Device, Selector, Server};
use crate::eligibility::{self, Root};
use crate::error::{ErrorClass, Failure};
use crate::session::{
    self, BootId, Chronicle, Controls, Ending, Events, FollowEnd, JOURNAL_VERSION, Opening,
    RemoteTrace, Session, SessionError, SessionId, Snapshot, SnapshotWay, Store,
};

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

/// How `chronicle` stands, asking its device; `device` is one that has been reached already.
pub(super) async fn status_of(
    store: &Store,
    chronicle: &Chronicle,
    device: Option<&Device>,
) -> SessionStatus {
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
        (true, _, false) if chronicle.detached => State::Detached,
        (true, _, false) => State::Unattended,
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

/// Which session a command is about.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// The one with this id, or whose id starts so.
    Id(String),
    /// The only one that serves, of those that the flags allow.
    Only(Scope),
}

impl Wanted {
    async fn choose(&self, store: &Store, purpose: Purpose) -> Result<Chronicle, SessionError> {
        match self {
            Wanted::Id(id) => choice::named(store, id),
            Wanted::Only(scope) => choice::unnamed(store, scope, purpose).await,
        }
    }

    fn id(&self) -> Option<&str> {
        match self {
            Wanted::Id(id) => Some(id),
            Wanted::Only(_) => None,
        }
    }
}

/// Takes a snapshot in a session that runs.
///
/// # Errors
/// Where the phone does not allow it, or no dump came in time.
pub async fn snapshot(
    store: &Store,
    wanted: &Wanted,
    label: Option<String>,
) -> Result<(SessionId, Snapshot), Failure> {
    let chronicle = wanted.choose(store, Purpose::Snapshot).await?;
    let opening = &chronicle.opening;
    let java = Plan::read(&opening.plan)?.java.is_some();
    if java && opening.snapshots == SnapshotWay::Impossible {
        let id = opening.id.clone();
        return Err(SessionError::OneDump { id }.into());
    }
    let device = reach(&chronicle.opening, None).await?;
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
        /// Where the results are.
        output: PathBuf,
        /// What its exit code tells of; `None` where nothing is missing.
        class: Option<ErrorClass>,
    },
}

/// Stops a session and collects it. Where another heaptap follows it, that one collects; this
/// returns once it is done.
///
/// # Errors
/// As [`collect`].
pub async fn stop(
    store: &Store,
    wanted: &Wanted,
    output: Option<&Path>,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Stopped, Failure> {
    let chronicle = wanted.choose(store, Purpose::Stop).await?;
    let id = chronicle.opening.id.clone();
    let at_hand = reach(&chronicle.opening, None).await?;
    require_phone(&at_hand, &chronicle.opening).await?;
    let mut left = false;
    loop {
        match store.lock(&id) {
            Ok(_) => break,
            Err(SessionError::Busy { .. }) => left = true,
            Err(SessionError::NoSuchSession { .. }) if left => return done_by_recorder(&chronicle),
            Err(error) => return Err(error.into()),
        }
        let events = session_events(tell);
        match session::stop_for_another(&at_hand, store, &id, controls, events).await {
            // Whoever has let go has finished it, or has died.
            Ok(()) | Err(SessionError::NoSuchSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let how = How {
        output,
        names,
        wait: false,
    };
    let finished = collect_known(store, at_hand, chronicle, how, controls, tell).await?;
    Ok(Stopped::Finished(Box::new(finished)))
}

/// What the heaptap that recorded it has left.
fn done_by_recorder(chronicle: &Chronicle) -> Result<Stopped, Failure> {
    let opening = &chronicle.opening;
    // Without a manifest it has told its own user what was wrong.
    let Ok(manifest) = Manifest::read(&opening.output) else {
        return Err(SessionError::NothingLeft {
            serial: opening.serial.clone(),
            id: opening.id.clone(),
        }
        .into());
    };
    let code = manifest.outcome.exit_code;
    Ok(Stopped::LeftToRecorder {
        session: opening.id.clone(),
        output: opening.output.clone(),
        class: ErrorClass::BY_PRECEDENCE
            .into_iter()
            .find(|class| class.exit_code() == code),
    })
}

/// Nothing is taken from another phone, and nothing is forgotten because another does not have
/// it.
async fn require_phone(device: &Device, opening: &Opening) -> Result<(), SessionError> {
    if session::is_phone_of(device, opening).await? {
        Ok(())
    } else {
        Err(SessionError::OtherPhone {
            serial: device.serial().to_owned(),
            id: opening.id.clone(),
        })
    }
}

/// Collects a session: ends it where it still runs, fetches and converts it, leaves nothing
/// behind. Where the journal does not know it, the device is asked.
///
/// # Errors
/// [`SessionError::NotFetched`] where the device does not hand it over; it stays there.
pub async fn collect(
    store: &Store,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    wanted: &Wanted,
    output: Option<&Path>,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    let none = match wanted.choose(store, Purpose::Collect).await {
        Ok(chronicle) => {
            let at_hand = match reach(&chronicle.opening, None).await {
                Ok(at_hand) => at_hand,
                Err(failure) => reach_elsewhere(&chronicle.opening, device, failure).await?,
            };
            let how = How {
                output,
                names,
                wait: true,
            };
            return collect_known(store, at_hand, chronicle, how, controls, tell).await;
        }
        Err(
            error @ (SessionError::NoSession { .. }
            | SessionError::NoSuchSession { .. }
            | SessionError::NoneServes { .. }),
        ) => error,
        Err(error) => return Err(error.into()),
    };
    let device = match device().await {
        Ok(device) => device,
        Err(_) if matches!(none, SessionError::NoneServes { .. }) => return Err(none.into()),
        Err(failure) => return Err(failure),
    };
    let known = store.list()?.0;
    let trace = choose_orphan(&device, &known, wanted.id(), none).await?;
    let id = trace.id.clone();
    adopt(store, &device, trace, output, true).await?;
    let chronicle = choice::named(store, id.as_str())?;
    let how = How {
        output: None,
        names,
        wait: true,
    };
    collect_known(store, device, chronicle, how, controls, tell).await
}

/// The device of a session that the journal's server does not have, where `device` is that
/// one: reached over another server, or by another serial.
async fn reach_elsewhere(
    opening: &Opening,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    failure: Failure,
) -> Result<Device, Failure> {
    let Ok(device) = device().await else {
        return Err(failure);
    };
    // A file with the session's name is that device's alone. Where all recordings have one
    // name, at least the boot must be the session's.
    let same = match opening.removable {
        true => device.stat(&opening.remote_path, PATIENCE).await?.is_some(),
        false => session::moment(&device).await?.boot_id == opening.boot_id,
    };
    if same {
        return Ok(device);
    }
    let why = format!(
        "{}; and {} at {} is another device, or holds nothing of it",
        failure.message,
        device.serial(),
        device.server().address()
    );
    Err(SessionError::NotFetched {
        serial: opening.serial.clone(),
        id: opening.id.clone(),
        why,
    }
    .into())
}

/// Forgets a session without touching its device: only the journal goes. What the journal
/// said of it.
///
/// # Errors
/// Where there is none, or another heaptap is at it.
pub fn forget(store: &Store, wanted: &str) -> Result<Opening, SessionError> {
    let opening = choice::named(store, wanted)?.opening;
    let lock = store.lock(&opening.id)?;
    store.forget(&opening.id, lock)?;
    Ok(opening)
}

async fn choose_orphan(
    device: &Device,
    known: &[Chronicle],
    wanted: Option<&str>,
    none: SessionError,
) -> Result<RemoteTrace, SessionError> {
    let mut found = orphans(device, known).await?;
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
    let asking = async {
        let facts = eligibility::facts(device).await?;
        let boot_id = match &facts.boot_id {
            Some(boot_id) => BootId(boot_id.clone()),
            None => session::moment(device).await?.boot_id,
        };
        Ok::<_, Failure>((facts, boot_id))
    };
    let (facts, boot_id) = match asking.await {
        Ok(known) => known,
        Err(failure) => {
            folder.discard();
            return Err(failure);
        }
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
        names: NameOptions::default(),
        java: None,
        with: With::default(),
    };
    let opening = Opening {
        version: JOURNAL_VERSION,
        id: trace.id,
        serial: device.serial().to_owned(),
        hardware_serial: facts.hardware_serial.clone(),
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
        labels_without_dumps: false,
        config: String::new(),
        output: folder.path().to_owned(),
        heap_files: None,
        plan: plan.to_value(),
    };
    drop(store.create(opening)?);
    Ok(())
}

/// How a session is collected.
#[derive(Debug, Clone, Copy, Default)]
struct How<'a> {
    /// Another folder for the results.
    output: Option<&'a Path>,
    /// What adds to the names it was begun with.
    names: Option<&'a NameOptions>,
    /// A dump that ends by itself is waited for, not ended.
    wait: bool,
}

async fn collect_known(
    store: &Store,
    device: Device,
    chronicle: Chronicle,
    how: How<'_>,
    controls: &mut Controls,
    tell: &Tell,
) -> Result<Finished, Failure> {
    let id = chronicle.opening.id.clone();
    let mut session = Session::resume(device, store.clone(), &id, session_events(tell))?;
    require_phone(session.device(), &chronicle.opening).await?;
    if let Some(output) = how.output {
        session.move_output(OutputFolder::prepare(output)?.path(), finish::RAW_TRACE)?;
    }
    let ended_by = end(&mut session, how.wait, controls).await?;
    finish::finish(session, ended_by, how.names, controls, tell).await
}

/// Makes sure that perfetto has ended, however far whoever began it came.
async fn end(
    session: &mut Session,
    wait: bool,
    controls: &mut Controls,
) -> Result<EndedBy, Failure> {
    if session.chronicle().pulled.is_some() {
        return Ok(EndedBy::Unknown);
    }
    if session.chronicle().ended {
        return Ok(EndedBy::Unknown);
    }
    let now = session::moment(session.device()).await?;
    if now.boot_id != session.opening().boot_id {
        return Ok(if ended_before(session.opening(), now.boot_ns)? {
            EndedBy::Unknown
        } else {
            EndedBy::Reboot
        });
    }
    session.find_process().await?;
    let was_running = session.is_running().await?;
    if !was_running {
        let opening = session.opening();
        // Android 10 has one file for all.
        if !opening.removable
            && session::writer_of(session.device(), &opening.remote_path)
                .await?
                .is_some()
        {
            let serial = opening.serial.clone();
            return Err(SessionError::OneAtATime { serial, id: None }.into());
        }
        return Ok(EndedBy::Unknown);
    }
    session.note_targets().await?;
    let mut ended_by = EndedBy::Stopped;
    if wait && let Some(followed) = await_dumps(session, controls).await? {
        match followed {
            FollowEnd::Over => return Ok(EndedBy::Itself),
            FollowEnd::Rebooted => return Ok(EndedBy::Reboot),
            FollowEnd::Complete => ended_by = EndedBy::Complete,
            FollowEnd::StopAsked => ended_by = EndedBy::Interrupted,
        }
    }
    Ok(match session.stop(controls).await? {
        Ending::Over => ended_by,
        Ending::Rebooted => EndedBy::Reboot,
    })
}

/// Follows dumps that end by themselves; `None` for what goes on until it is ended.
async fn await_dumps(
    session: &mut Session,
    controls: &mut Controls,
) -> Result<Option<FollowEnd>, Failure> {
    let java = Plan::read(&session.opening().plan)?.java;
    let ends = java.filter(|java| java.oom_wait_s.is_none() && (java.ends_when_done || java.watch));
    let Some(java) = ends.filter(|_| !session.chronicle().stopping()) else {
        return Ok(None);
    };
    let scan = finish::new_scan();
    if java.watch {
        session.end_with_dumps(&scan);
    }
    Ok(Some(session.follow(controls, &scan).await?))
}

/// Whether the duration of a session was over when the phone was restarted, `up_ns` ago.
fn ended_before(opening: &Opening, up_ns: u64) -> Result<bool, SessionError> {
    let Some(duration_ms) = Plan::read(&opening.plan)?.duration_ms else {
        return Ok(false);
    };
    let since = OffsetDateTime::now_utc() - opening.time;
    let recorded = since - Duration::from_nanos(up_ns);
    Ok(recorded > Duration::from_millis(duration_ms))
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
        running = asking => running.map_err(|error| SessionError::NotFetched {
            serial: device.serial().to_owned(),
            id: id.clone(),
            why: format!("it could not be undone ({error})"),
        })?,
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

/// Kinds of failures after which nothing of a session is left to be collected.
const LEFT_NOTHING: [&str; 3] = ["trace-gone", "device-rebooted", "session-rejected"];

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
    let earlier: Vec<Chronicle> = chronicles
        .into_iter()
        .filter(|c| c.opening.serial == device.serial() && c.opening.remote_path == path)
        .collect();
    let writer = session::writer_of(device, path).await?;
    let ours = |c: &&Chronicle| c.process.is_some() && c.process == writer;
    let running = earlier
        .iter()
        .find(ours)
        .or_else(|| earlier.iter().find(|c| store.is_locked(&c.opening.id)));
    if writer.is_some() || running.is_some() {
        return Err(SessionError::OneAtATime {
            serial: device.serial().to_owned(),
            id: running.map(|c| c.opening.id.clone()),
        }
        .into());
    }
    for chronicle in earlier {
        tell(RecordEvent::Step(Step::CollectingFirst {
            session: Some(chronicle.opening.id.clone()),
        }));
        match collect_known(
            store,
            device.clone(),
            chronicle,
            How::default(),
            controls,
            tell,
        )
        .await
        {
            // A journal of which nothing is left is forgotten by now.
            Err(failure) if !LEFT_NOTHING.contains(&failure.kind) => return Err(failure),
            _ => {}
        }
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
    let chronicle = choice::named(store, id.as_str())?;
    match collect_known(
        store,
        device.clone(),
        chronicle,
        How::default(),
        controls,
        tell,
    )
    .await
    {
        Ok(_) => Ok(()),
        // Whatever it is, it is kept on this host now; no recording fails for it.
        Err(failure) if failure.class == ErrorClass::BadInput => Ok(()),
        Err(failure) => Err(failure),
    }
}
