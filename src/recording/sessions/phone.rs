//! The phone of a session: how it is reached, whether it is the right one, and which traces of
//! ours are on it.

use std::time::Duration;

use crate::device::{Address, Device, Selector, Server};
use crate::error::Failure;
use crate::recording::advice::trace_is_here;
use crate::session::{self, RemoteTrace, SessionError, SessionHeader, SessionState};

/// Time allowed for one small question.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The device of a session: the one at hand where it is that one, else by the journal.
pub(super) async fn reach(
    opening: &SessionHeader,
    at_hand: Option<&Device>,
) -> Result<Device, Failure> {
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

/// The device of a session; if it is away, the error names the session that waits for it.
pub(super) async fn reach_or_say(
    opening: &SessionHeader,
    command: &str,
) -> Result<Device, Failure> {
    let reached = reach(opening, None).await;
    reached.map_err(|failure| waits_for(opening, failure, command))
}

/// The failure to reach the device of a session, with the command that is meant.
pub(super) fn waits_for(opening: &SessionHeader, mut failure: Failure, command: &str) -> Failure {
    let (id, serial) = (&opening.id, &opening.serial);
    failure.message = format!("session {id} is on device {serial}: {}", failure.message);
    failure.hints.extend(failure.help.take());
    failure.hints.extend(trace_is_here(&opening.output, id));
    failure.with_help(format!(
        "connect the device, then: heaptap {command} {id} (or forget it: heaptap collect {id} \
         --forget)"
    ))
}

/// Traces of ours on `device` that the journal does not know.
pub(super) async fn orphans(
    device: &Device,
    chronicles: &[SessionState],
) -> Result<Vec<RemoteTrace>, SessionError> {
    let mut traces = session::remote_traces(device).await?;
    traces.retain(|t| chronicles.iter().all(|c| c.opening.id != t.id));
    Ok(traces)
}

/// Nothing is taken from another phone, and nothing is forgotten because another does not have
/// it.
pub(super) async fn require_phone(
    device: &Device,
    opening: &SessionHeader,
) -> Result<(), SessionError> {
    if session::is_phone_of(device, opening).await? {
        Ok(())
    } else {
        Err(SessionError::OtherPhone {
            serial: device.serial().to_owned(),
            id: opening.id.clone(),
        })
    }
}
