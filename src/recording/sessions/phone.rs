//! The device of a session: connecting to it, verifying it, and finding heaptap's traces on it.

use std::time::Duration;

use crate::recording::advice::trace_is_here;
use heaptap_adb::{Address, Device, Selector, Server};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::session::{
    self, CaptureError, RemoteTrace, SessionHeader, SessionState, Store,
};

/// Time limit of a small request.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the device of a session: the connected one if it matches, otherwise the one in the
/// journal.
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

/// Returns the device of a session; if it is disconnected, the error names the session.
pub(super) async fn reach_or_say(header: &SessionHeader, command: &str) -> Result<Device, Failure> {
    let reached = reach(header, None).await;
    reached.map_err(|failure| waits_for(header, failure, command))
}

/// Returns the failure to reach the device of a session, with the intended command.
pub(super) fn waits_for(header: &SessionHeader, mut failure: Failure, command: &str) -> Failure {
    let (id, serial) = (&header.id, &header.serial);
    failure.message = format!("session {id} is on device {serial}: {}", failure.message);
    let fetched: Vec<String> = trace_is_here(&header.output, id).into_iter().collect();
    if command == "stop" && fetched.is_empty() {
        // The trace is safe, whatever keeps heaptap from the device.
        (failure.class, failure.kind) = (ErrorClass::NotFetched, "not-fetched");
    }
    failure.hints.extend(failure.help.take());
    failure.hints.extend(fetched);
    failure.with_help(format!(
        "connect the device and run `heaptap {command} {id}`, or discard the session with `heaptap \
         stop --forget {id}`"
    ))
}

/// Returns heaptap's traces on `device` that are missing from the journal.
pub(super) async fn orphans(
    device: &Device,
    session_states: &[SessionState],
) -> Result<Vec<RemoteTrace>, CaptureError> {
    let mut traces = session::remote_traces(device).await?;
    traces.retain(|t| session_states.iter().all(|c| c.header.id != t.id));
    Ok(traces)
}

/// Returns whether this host has fetched a trace before: a device can refuse to remove it.
pub(super) fn is_fetched(store: &Store, device: &Device, trace: &RemoteTrace) -> bool {
    let stat = trace.stat.filter(|_| trace.writer.is_none());
    stat.is_some_and(|stat| store.is_collected(device.serial(), &trace.path, stat))
}

/// Rejects another device: nothing is fetched from it, and its missing data do not remove a
/// session.
pub(super) async fn require_phone(
    device: &Device,
    header: &SessionHeader,
) -> Result<(), CaptureError> {
    if session::is_phone_of(device, header).await? {
        Ok(())
    } else {
        let (serial, id) = (device.serial(), &header.id);
        let message = format!("{serial} is not the device that recorded session {id}");
        let failure = Failure::new(ErrorClass::NoDevice, "other-device", message);
        Err(failure
            .with_help(format!(
                "connect the device that recorded it, then run `heaptap stop {id}`"
            ))
            .into())
    }
}
