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
    header: &SessionHeader,
    at_hand: Option<&Device>,
) -> Result<Device, Failure> {
    if let Some(device) = at_hand
        && device.serial() == header.serial
        && device.server().address() == header.server
    {
        return Ok(device.clone());
    }
    let address = Address::parse(&header.server, "the session journal")?;
    let server = Server::at(address);
    Ok(server
        .select(&Selector::Serial(header.serial.clone()))
        .await?)
}

/// The device of a session; if it is away, the error names the session that waits for it.
pub(super) async fn reach_or_say(header: &SessionHeader, command: &str) -> Result<Device, Failure> {
    let reached = reach(header, None).await;
    reached.map_err(|failure| waits_for(header, failure, command))
}

/// The failure to reach the device of a session, with the command that is meant.
pub(super) fn waits_for(header: &SessionHeader, mut failure: Failure, command: &str) -> Failure {
    let (id, serial) = (&header.id, &header.serial);
    failure.message = format!("session {id} is on device {serial}: {}", failure.message);
    failure.hints.extend(failure.help.take());
    failure.hints.extend(trace_is_here(&header.output, id));
    failure.with_help(format!(
        "connect the device, then: heaptap {command} {id} (or forget it: heaptap collect {id} \
         --forget)"
    ))
}

/// Traces of ours on `device` that the journal does not know.
pub(super) async fn orphans(
    device: &Device,
    session_states: &[SessionState],
) -> Result<Vec<RemoteTrace>, SessionError> {
    let mut traces = session::remote_traces(device).await?;
    traces.retain(|t| session_states.iter().all(|c| c.header.id != t.id));
    Ok(traces)
}

/// Nothing is taken from another phone, and nothing is forgotten because another does not have
/// it.
pub(super) async fn require_phone(
    device: &Device,
    header: &SessionHeader,
) -> Result<(), SessionError> {
    if session::is_phone_of(device, header).await? {
        Ok(())
    } else {
        Err(SessionError::OtherPhone {
            serial: device.serial().to_owned(),
            id: header.id.clone(),
        })
    }
}
