//! `status`, `snapshot`, `stop`, `collect`: go on with sessions that another process began,
//! from the journal, or from the name of a trace on a device where this host has none.

mod before_start;
mod choice;
mod collect;
mod phone;
mod status;

pub(super) use before_start::{abandon, make_way};
pub use choice::{Scope, SessionSelector, at_server};
pub use collect::collect;
pub use status::{SessionStatus, State, status};

use std::path::{Path, PathBuf};

use self::choice::Purpose;
use self::collect::{How, collect_known};
use self::phone::{reach_or_say, require_phone};
use self::status::status_of;
use super::companion_options::Source;
use super::events::{EventHandler, session_events};
use super::finish;
use super::outcome::Finished;
use super::plan::Plan;
use crate::error::{ErrorClass, Failure};
use crate::naming::names::NameOptions;
use crate::results::manifest::Manifest;
use crate::results::output::is_own;
use crate::session::{
    self, Controls, Owner, SessionError, SessionHeader, SessionId, SessionState, Snapshot,
    SnapshotMethod, Store,
};

/// A snapshot that was taken.
#[derive(Debug)]
pub struct SnapshotOutcome {
    /// Of which recording.
    pub session: SessionId,
    /// What it came to.
    pub snapshot: Snapshot,
    /// Whether the recording had a snapshot of that label before.
    pub repeated: bool,
    /// What was to be taken beside the dump, and is not, because no heaptap follows the recording.
    pub untaken: Vec<Source>,
}

/// Takes a snapshot in a session that runs.
///
/// # Errors
/// Where the phone does not allow it, or no dump came in time.
pub async fn snapshot(
    store: &Store,
    selector: &SessionSelector,
    label: Option<String>,
) -> Result<SnapshotOutcome, Failure> {
    let session_state = selector.choose(store, Purpose::Snapshot).await?;
    let header = &session_state.header;
    let plan = Plan::read(&header.plan)?;
    if plan.java.is_some() && header.snapshots == SnapshotMethod::Impossible {
        let id = header.id.clone();
        return Err(SessionError::OneDump { id }.into());
    }
    let device = reach_or_say(header, "snapshot").await?;
    let label = label.unwrap_or_else(|| next_label(&session_state));
    let repeated = session_state
        .labels
        .iter()
        .any(|known| known.label == label);
    let scan = finish::new_scan();
    let untaken = match store.is_locked(&header.id) {
        true => Vec::new(),
        false => plan.companions.at_labels().collect(),
    };
    let taking = session::take_snapshot(&device, store, &session_state, label, &scan).await;
    let snapshot = match taking {
        Err(SessionError::NotRecording { id })
            if status_of(store, &session_state, Some(&device)).await.state == State::Lost =>
        {
            let serial = header.serial.clone();
            return Err(SessionError::Lost { serial, id }.into());
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

/// A name for a snapshot that was given none.
pub fn next_label(session_state: &SessionState) -> String {
    format!("snapshot-{}", session_state.labels.len() + 1)
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
    selector: &SessionSelector,
    output: Option<&Path>,
    names: Option<&NameOptions>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Stopped, Failure> {
    let session_state = selector.choose(store, Purpose::Stop).await?;
    let id = session_state.header.id.clone();
    let at_hand = reach_or_say(&session_state.header, "stop").await?;
    require_phone(&at_hand, &session_state.header).await?;
    let mut left = false;
    loop {
        match store.lock(&id) {
            Ok(_) => break,
            Err(SessionError::Busy { .. }) => left = true,
            Err(SessionError::NoSuchSession { .. }) if left => {
                return done_by_recorder(&session_state);
            }
            Err(error) => return Err(error.into()),
        }
        let events = session_events(on_event);
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
    let finished = collect_known(store, at_hand, session_state, how, controls, on_event).await?;
    Ok(Stopped::Finished(Box::new(finished)))
}

/// What the heaptap that recorded it has left.
fn done_by_recorder(session_state: &SessionState) -> Result<Stopped, Failure> {
    let header = &session_state.header;
    // Without a manifest it has told its own user what was wrong.
    let manifest = Manifest::read(&header.output).ok();
    let manifest = manifest.filter(|_| is_own(&header.output, &header.id));
    let Some(manifest) = manifest else {
        return Err(SessionError::NothingLeft {
            serial: header.serial.clone(),
            id: header.id.clone(),
        }
        .into());
    };
    let code = manifest.outcome.exit_code;
    Ok(Stopped::LeftToRecorder {
        session: header.id.clone(),
        output: header.output.clone(),
        class: ErrorClass::BY_PRECEDENCE
            .into_iter()
            .find(|class| class.exit_code() == code),
    })
}

/// Forgets a session without touching its device: only the journal goes. What the journal
/// said of it.
///
/// # Errors
/// Where there is none, or another heaptap is at it.
pub fn forget(store: &Store, wanted: &str) -> Result<SessionHeader, SessionError> {
    let header = choice::named(store, wanted)?.header;
    let lock = store.lock(&header.id)?;
    session::release(&header.output, &Owner::Session(header.id.clone()));
    store.forget(&header.id, lock)?;
    Ok(header)
}
