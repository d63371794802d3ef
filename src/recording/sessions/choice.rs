//! Selection of a session: by its ID, or, without an ID, by the device flags and by the possible
//! operations. Does not change anything.

use super::scope::Scope;
use super::status::{State, status_of};
use crate::recording::companion;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::error::kind;
use heaptap_capture::session::{CaptureError, SessionState, Store};
use std::path::Path;

/// Selection of a session by a command.
#[derive(Debug, Clone)]
pub enum SessionSelector {
    /// The session with this ID or ID prefix.
    Id(String),
    /// The only suitable session within the scope.
    Only(Scope),
}

impl SessionSelector {
    pub(super) async fn choose(
        &self,
        store: &Store,
        purpose: Purpose,
    ) -> Result<SessionState, CaptureError> {
        match self {
            SessionSelector::Id(id) => named(store, id),
            SessionSelector::Only(scope) => unnamed(store, scope, purpose).await,
        }
    }

    pub(super) fn id(&self) -> Option<&str> {
        match self {
            SessionSelector::Id(id) => Some(id),
            SessionSelector::Only(_) => None,
        }
    }
}

/// Intended operation on the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Snapshot,
    /// Its end and its trace.
    Stop,
}

impl Purpose {
    pub(super) fn words(self) -> &'static str {
        match self {
            Purpose::Snapshot => "take a snapshot of",
            Purpose::Stop => "stop",
        }
    }

    /// Returns the suitable states in groups, best first: a group counts only if no session is in
    /// an earlier one.
    fn states(self) -> &'static [&'static [State]] {
        const RUNNING: &[State] = &[
            State::Starting,
            State::Recording,
            State::Detached,
            State::Unattended,
        ];
        const ENDED: &[State] = &[State::Uncollected, State::Fetched];
        match self {
            Purpose::Snapshot => &[RUNNING],
            Purpose::Stop => &[RUNNING, ENDED, &[State::Collecting, State::Finished]],
        }
    }
}

/// Returns the session whose ID is `wanted` or begins with it.
///
/// # Errors
/// Returns an error if there is no such session, or several.
pub fn named(store: &Store, wanted: &str) -> Result<SessionState, CaptureError> {
    let (mut session_states, unreadable) = store.list()?;
    session_states.retain(|c| c.header.id.as_str().starts_with(wanted));
    match session_states.len() {
        0 => Err(
            match unreadable
                .into_iter()
                .find(|(path, _)| is_journal_of(path, wanted))
            {
                Some((path, source)) => CaptureError::state(&path, source),
                None => CaptureError::no_such_session(wanted),
            },
        ),
        1 => Ok(session_states.remove(0)),
        _ => Err(several(&session_states)),
    }
}

/// Returns whether a file is the journal of a session whose ID begins with `wanted`.
pub fn is_journal_of(path: &Path, wanted: &str) -> bool {
    let id = path.file_stem().unwrap_or_default();
    id.to_string_lossy().starts_with(wanted)
}

/// Returns the session for a command without an ID: the only one, or the only suitable one.
/// Sessions of disconnected devices are ignored if there are others.
///
/// # Errors
/// Returns an error if there is no such session, or several.
pub async fn unnamed(
    store: &Store,
    scope: &Scope,
    purpose: Purpose,
) -> Result<SessionState, CaptureError> {
    let what = purpose.words();
    let (session_states, unreadable) = store.list()?;
    let (mut session_states, others): (Vec<_>, Vec<_>) = session_states
        .into_iter()
        .partition(|c| scope.holds(&c.header));
    session_states = without_parts(session_states);
    if session_states.len() == 1 {
        // Trying the operation gives a more precise error.
        return Ok(session_states.remove(0));
    }
    if session_states.is_empty() {
        return Err(match unreadable.into_iter().next() {
            Some((path, source)) => CaptureError::state(&path, source),
            None => no_session(what, &others).into(),
        });
    }
    let mut standing = Vec::new();
    for session_state in session_states {
        let state = status_of(store, &session_state, None).await.state;
        standing.push((state, session_state));
    }
    for states in purpose.states() {
        let serves = |(state, _): &(State, SessionState)| states.contains(state);
        match standing.iter().filter(|s| serves(s)).count() {
            0 => {}
            1 => {
                standing.retain(serves);
                return Ok(standing.remove(0).1);
            }
            _ => {
                standing.retain(serves);
                let fitting: Vec<SessionState> = standing.into_iter().map(|(_, c)| c).collect();
                return Err(several(&fitting));
            }
        }
    }
    let states: Vec<String> = standing.iter().map(|(s, c)| in_words(*s, c)).collect();
    let message = format!("there is no session to {what}: {}", states.join(", "));
    Err(Failure::new(ErrorClass::Usage, kind::NONE_SERVES, message)
        .with_help("run `heaptap status` for the state and next step of each session")
        .into())
}

/// Returns the error if a device has no session to `what`, given those of others.
fn no_session(what: &str, elsewhere: &[SessionState]) -> Failure {
    let mut message = format!("there is no session to {what}");
    let each = elsewhere.iter().map(|other| &other.header);
    let each = each.map(|other| format!("session {} is on device {}", other.id, other.serial));
    let each: Vec<String> = each.collect();
    let mut help = "start one with `heaptap record`";
    if !each.is_empty() {
        message += &format!(" on this device; {}", each.join(", "));
        help = "connect the device of a session, then run `heaptap status`";
    }
    Failure::new(ErrorClass::Usage, kind::NO_SESSION, message).with_help(help)
}

/// Returns the sessions without those that record a part of another one.
pub(super) fn without_parts(session_states: Vec<SessionState>) -> Vec<SessionState> {
    let is_part = |part: &SessionState| {
        let mut wholes = session_states.iter();
        wholes.any(|whole| companion::is_part_of(part, whole))
    };
    let are_parts: Vec<bool> = session_states.iter().map(is_part).collect();
    let both = std::iter::zip(session_states, are_parts);
    both.filter_map(|(one, is_part)| (!is_part).then_some(one))
        .collect()
}

/// Describes the state of an unsuitable session.
fn in_words(state: State, session_state: &SessionState) -> String {
    let (id, serial) = (&session_state.header.id, &session_state.header.serial);
    match state {
        State::Away => format!("session {id} is on device {serial}, which is not connected"),
        State::ServerDown => {
            format!("session {id} is on device {serial}, whose adb server is not running")
        }
        State::Unreadable => {
            format!("session {id} is on device {serial}, whose adb server does not answer")
        }
        State::Lost => format!("session {id} on device {serial} is lost"),
        State::Starting => format!("session {id} is starting on device {serial}"),
        State::Recording | State::Detached | State::Unattended => {
            format!("session {id} is recording on device {serial}")
        }
        State::Uncollected | State::Fetched => format!("session {id} has ended"),
        State::Finished => format!("session {id} is finished"),
        State::Collecting => format!("another heaptap process is fetching session {id}"),
    }
}

fn several(session_states: &[SessionState]) -> CaptureError {
    CaptureError::several_sessions(&ids(session_states))
}

fn ids<'a>(session_states: impl IntoIterator<Item = &'a SessionState>) -> Vec<String> {
    let id = |c: &SessionState| c.header.id.to_string();
    session_states.into_iter().map(id).collect()
}
