//! `status`, `snapshot`, `stop`: operations on sessions started by another process,
//! found in the journal, or by the name of a trace on a device if this host has none.

mod before_start;
mod choice;
mod collect;
mod phone;
mod scope;
mod status;

pub(crate) use before_start::leaves_nothing;
pub(super) use before_start::{abandon, make_way};
pub use choice::{SessionSelector, is_journal_of};
pub use scope::{Scope, at_server};
pub use status::{SessionStatus, State, Statuses, status};

use std::path::{Path, PathBuf};

use self::choice::Purpose;
use self::collect::{How, choose_orphan, collect, collect_alone};
use self::phone::{reach_or_say, require_phone};
use self::status::status_of;
use super::companion_options::Source;
use super::events::{EventHandler, RecordEvent, Step, session_events};
use super::outcome::Finished;
use super::plan::Plan;
use crate::names::options::NameOptions;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::error::kind;
use heaptap_capture::session::{
    self, CaptureError, Controls, SessionHeader, SessionId, SessionState, Snapshot, SnapshotMethod,
    Store, Unreadable,
};
use heaptap_results::manifest::Manifest;
use heaptap_results::output::{is_own, is_recorded};

#[derive(Debug)]
pub struct SnapshotOutcome {
    /// Session of the recording.
    pub session: SessionId,
    /// Result.
    pub snapshot: Snapshot,
    /// True if the recording already had a snapshot with that label.
    pub repeated: bool,
    /// Companion data that is not captured, because no heaptap follows the recording.
    pub untaken: Vec<Source>,
}

/// Takes a snapshot in a running session, or in one that another process starts: `on_wait` is called
/// before waiting for that. `device` might have the trace of an ended session that the journal does
/// not contain.
///
/// # Errors
/// Returns an error if the device does not allow it, or no dump arrived in time.
pub async fn snapshot(
    store: &Store,
    device: impl AsyncFnOnce() -> Option<Device>,
    selector: &SessionSelector,
    label: Option<String>,
    on_wait: impl FnOnce(&SessionId),
) -> Result<SnapshotOutcome, Failure> {
    let chosen = selector.choose(store, Purpose::Snapshot).await;
    let session_state = match chosen {
        Err(none) if none.is(&[kind::NO_SESSION, kind::NO_SUCH_SESSION]) => {
            return Err(of_orphan(store, device().await, selector.id(), none).await);
        }
        chosen => chosen?,
    };
    let session_state = session::await_start(store, session_state, on_wait).await?;
    let header = &session_state.header;
    let plan = Plan::read(&header.plan)?;
    if plan.java.is_some() && header.snapshots == SnapshotMethod::Impossible {
        let message = format!(
            "session {} dumps Java heaps only once and does not support snapshots",
            header.id
        );
        return Err(
            Failure::new(ErrorClass::Device, "snapshot-impossible", message).with_help(
                "run `heaptap dump` again, or use `heaptap dump -c 30s` for periodic dumps",
            ),
        );
    }
    let command = label
        .as_ref()
        .map(|label| format!("snapshot --label {}", quoted(label)));
    let device = reach_or_say(header, command.as_deref().unwrap_or("snapshot")).await?;
    let label = label.unwrap_or_else(|| next_label(&session_state));
    let repeated = session_state
        .labels
        .iter()
        .any(|known| known.label == label);
    let untaken = match store.is_locked(&header.id) {
        true => Vec::new(),
        false => plan.companions.at_labels().collect(),
    };
    let taking = session::take_snapshot(&device, store, &session_state, label, None).await;
    let snapshot = match taking {
        Err(error)
            if error.is(&[kind::NOT_RECORDING])
                && status_of(store, &session_state, Some(&device)).await.state == State::Lost =>
        {
            let (id, serial) = (&header.id, &header.serial);
            let message = format!("session {id} has ended, and no trace of it is left on {serial}");
            return Err(
                Failure::new(ErrorClass::Device, kind::TRACE_GONE, message).with_help(format!(
                    "forget the session with `heaptap stop --forget {id}`"
                )),
            );
        }
        other => other?,
    };
    Ok(SnapshotOutcome {
        session: session_state.header.id,
        snapshot,
        repeated,
        untaken,
    })
}

/// Returns the error of a snapshot without a session in the journal.
async fn of_orphan(
    store: &Store,
    device: Option<Device>,
    wanted: Option<&str>,
    none: CaptureError,
) -> Failure {
    let Some(device) = device else {
        return none.into();
    };
    let known = match store.list() {
        Ok((known, _)) => known,
        Err(error) => return error.into(),
    };
    match choose_orphan(store, &device, &known, wanted, Purpose::Snapshot, none).await {
        Ok(trace) if trace.writer.is_none() => CaptureError::not_recording(&trace.id).into(),
        Ok(trace) => {
            let id = trace.id;
            let message =
                format!("cannot take a snapshot in session {id}: another host started it");
            Failure::new(ErrorClass::Usage, "started-elsewhere", message).with_help(format!(
                "take it on that host, or end the recording with `heaptap stop {id}`"
            ))
        }
        Err(error) => error.into(),
    }
}

/// Returns the default label of a snapshot.
pub fn next_label(session_state: &SessionState) -> String {
    format!("snapshot-{}", session_state.labels.len() + 1)
}

/// Outcome of a stop.
#[derive(Debug)]
pub enum Stopped {
    /// The recording is finished.
    Finished(Box<Finished>),
    /// The recording heaptap finishes it.
    LeftToRecorder {
        session: SessionId,
        /// Directory of the results.
        output: PathBuf,
        /// Exit code class; `None` if the data are complete.
        class: Option<ErrorClass>,
    },
}

impl Stopped {
    /// Forgets the session of a finished recording, for callers without a page.
    ///
    /// # Errors
    /// Returns an error if its journal cannot be removed.
    pub fn forget(self) -> Result<(), CaptureError> {
        match self {
            Stopped::Finished(mut finished) => finished.journal.forget(),
            Stopped::LeftToRecorder { .. } => Ok(()),
        }
    }
}

/// Stops a session and collects it. If another heaptap follows it, that one collects it, and this
/// function waits for it.
///
/// # Errors
/// Returns an error if there is no such session, or if it cannot be stopped, fetched or converted.
pub async fn stop(
    store: &Store,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    selector: &SessionSelector,
    output: Option<&Path>,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Stopped, Failure> {
    let chosen = selector.choose(store, Purpose::Stop).await;
    if let Ok(session_state) = &chosen
        && let state = status_of(store, session_state, None).await.state
        && matches!(
            state,
            State::Starting | State::Recording | State::Collecting
        )
    {
        if output.is_some() {
            let header = &session_state.header;
            let message = format!(
                "the heaptap process that records or fetches session {} writes its results to {}",
                header.id,
                header.output.display()
            );
            return Err(Failure::new(ErrorClass::Usage, "output-taken", message)
                .with_help("leave out `-o`, and copy the directory when it is complete"));
        }
        let session_state = session_state.clone();
        if state == State::Collecting {
            on_event(RecordEvent::Step(Step::WaitingForOther {
                session: session_state.header.id.clone(),
            }));
        }
        return stop_recorder(store, session_state, names, controls, on_event).await;
    }
    let how = How {
        output,
        names,
        wait: true,
    };
    let finished = collect(
        store,
        device,
        chosen,
        selector.id(),
        how,
        controls,
        on_event,
    )
    .await?;
    Ok(Stopped::Finished(Box::new(finished)))
}

/// Returns the sessions of this host within the scope, and the journals that cannot be read. A
/// recording includes its parts.
///
/// # Errors
/// Returns an error if the directory of the journals cannot be read.
pub fn all(
    store: &Store,
    scope: &Scope,
) -> Result<(Vec<SessionState>, Vec<Unreadable>), CaptureError> {
    let (session_states, unreadable) = store.list()?;
    let held = session_states
        .into_iter()
        .filter(|c| scope.holds(&c.header));
    Ok((choice::without_parts(held.collect()), unreadable))
}

/// Returns the results of a session whose recording is complete; only its record is left.
pub fn completed(session_state: &SessionState) -> Option<Stopped> {
    let header = &session_state.header;
    let is_complete = is_recorded(&header.output, &header.id);
    is_complete.then(|| done_by_recorder(session_state).ok())?
}

/// Ends a recording that another process records: that process finishes it. If it dies meanwhile,
/// this one does.
async fn stop_recorder(
    store: &Store,
    mut session_state: SessionState,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Stopped, Failure> {
    let id = session_state.header.id.clone();
    let at_hand = reach_or_say(&session_state.header, "stop").await?;
    require_phone(&at_hand, &session_state.header).await?;
    loop {
        match store.lock(&id) {
            Ok(_) => break,
            Err(error) if error.is(&[kind::SESSION_BUSY]) => {}
            Err(error) if error.is(&[kind::NO_SUCH_SESSION]) => {
                return done_by_recorder(&session_state);
            }
            Err(error) => return Err(error.into()),
        }
        let events = session_events(on_event);
        match session::stop_for_another(&at_hand, store, &id, controls, events).await {
            // After unlocking, the other process has finished the session or died.
            Ok(newest) => session_state = newest.unwrap_or(session_state),
            Err(error) if error.is(&[kind::NO_SUCH_SESSION]) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let how = How {
        output: None,
        names,
        wait: false,
    };
    let finished = collect_alone(store, at_hand, session_state, how, controls, on_event).await?;
    Ok(Stopped::Finished(Box::new(finished)))
}

/// Returns the results of the heaptap that recorded the session.
fn done_by_recorder(session_state: &SessionState) -> Result<Stopped, Failure> {
    let header = &session_state.header;
    // Without a manifest, it has already reported the error to its own user.
    let manifest = Manifest::read(&header.output).ok();
    let manifest = manifest.filter(|_| is_own(&header.output, &header.id));
    let Some(manifest) = manifest else {
        return Err(CaptureError::nothing_left(&header.serial, &header.id, false).into());
    };
    Ok(Stopped::LeftToRecorder {
        session: header.id.clone(),
        output: header.output.clone(),
        class: ErrorClass::of_exit_code(manifest.outcome.exit_code),
    })
}

/// Forgets a session without accessing its device: only the journal is removed. Returns the session
/// header from the journal, and the command that restores SELinux if the recording might still keep
/// it permissive.
///
/// # Errors
/// Returns an error if the session does not exist, or another heaptap is using it.
pub fn forget(
    store: &Store,
    wanted: &str,
) -> Result<(SessionHeader, Option<String>), CaptureError> {
    let state = choice::named(store, wanted)?;
    let lock = store.lock(&state.header.id)?;
    state.release_directories();
    store.forget(&state.header.id, lock)?;
    // The plan of another version does not prevent this.
    let plan = Plan::read(&state.header.plan).ok();
    let relaxed = plan.filter(|plan| plan.selinux_relaxed && !state.ended);
    Ok((state.header, relaxed.map(|plan| plan.selinux_command())))
}
