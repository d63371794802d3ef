//! Preparations for a recording: undoes an interrupted start, and fetches the trace in the single
//! file of Android 10 before it is overwritten.

use super::choice;
use super::collect::{How, adopt, collect_known};
use super::phone::PATIENCE;
use crate::recording::events::{EventHandler, RecordEvent, Step};
use heaptap_adb::Device;
use heaptap_base::error::Failure;
use heaptap_capture::error::kind;
use heaptap_capture::session::{
    self, CaptureError, Controls, Events, RemoteTrace, Session, SessionId, SessionState, Store,
    TraceWriter,
};

/// Undoes a session that was interrupted during its start.
///
/// # Errors
/// Returns an error if the device cannot be cleaned up; the journal is then kept for `stop`.
pub(crate) async fn abandon(
    device: &Device,
    store: &Store,
    id: &SessionId,
    controls: &mut Controls,
    events: Events,
) -> Result<(), CaptureError> {
    let mut session = match Session::resume(device.clone(), store.clone(), id, events) {
        Ok(session) => session,
        // It had not changed anything yet.
        Err(error) if error.is(&[kind::NO_SUCH_SESSION]) => return Ok(()),
        Err(error) => return Err(error),
    };
    let asking = async {
        session.find_process().await?;
        session.is_running().await
    };
    let running = tokio::select! {
        running = asking => running.map_err(|error| {
            session.not_fetched(format!("cannot undo it ({error})"))
        })?,
        () = session::stop_asked(controls) => {
            return Err(session.not_fetched("the start was interrupted"));
        }
    };
    if running {
        session.stop(controls).await?;
    }
    if !session.remove_remote().await {
        return Err(session.not_fetched("cannot undo it (the device could not be reached)"));
    }
    session.forget()
}

/// Returns whether nothing of a session is left to be collected after such a failure.
pub(crate) fn leaves_nothing(failure: &Failure) -> bool {
    ["trace-gone", "device-rebooted", "session-rejected"].contains(&failure.kind)
}

/// Fetches the trace in the single file of Android 10 before it is overwritten.
///
/// # Errors
/// Returns an error if another recording is writing to it, or if it cannot be fetched.
pub(crate) async fn make_way(
    device: &Device,
    store: &Store,
    path: &str,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<(), Failure> {
    let (mut earlier, _) = store.list()?;
    earlier.retain(|c| c.header.remote_path == path);
    session::retain_of(device, &mut earlier).await?;
    let writer = session::find_writer(device, path).await?;
    let is_ours = |c: &&SessionState| {
        let own = c.process.clone().map(TraceWriter::Perfetto);
        own.is_some() && own == writer
    };
    let running = earlier
        .iter()
        .find(is_ours)
        .or_else(|| earlier.iter().find(|c| store.is_locked(&c.header.id)));
    if writer.is_some() || running.is_some() {
        let id = running.map(|c| &c.header.id);
        return Err(CaptureError::one_at_a_time(device.serial(), id).into());
    }
    let mut fetch = async |session_state: SessionState| {
        let device = device.clone();
        collect_known(
            store,
            device,
            session_state,
            How::default(),
            controls,
            on_event,
        )
        .await
    };
    for session_state in earlier {
        on_event(RecordEvent::Step(Step::CollectingFirst {
            session: Some(session_state.header.id.clone()),
            output: session_state.header.output.clone(),
        }));
        match fetch(session_state).await {
            Err(failure) if !leaves_nothing(&failure) => return Err(failure),
            // Nothing on the device is lost.
            Err(_) => {}
            Ok(mut finished) => finished.journal.forget()?,
        }
    }
    let Some(stat) = device.stat(path, PATIENCE).await? else {
        return Ok(());
    };
    if stat.size == 0 || store.is_collected(device.serial(), path, stat) {
        return Ok(());
    }
    // Another host, or a heaptap without this journal, left it there.
    let trace = RemoteTrace {
        id: SessionId::random(),
        path: path.to_owned(),
        stat: Some(stat),
        writer: None,
    };
    let id = trace.id.clone();
    adopt(store, device, trace, None, false).await?;
    let session_state = choice::named(store, id.as_str())?;
    on_event(RecordEvent::Step(Step::CollectingFirst {
        session: None,
        output: session_state.header.output.clone(),
    }));
    let mut finished = fetch(session_state).await?;
    Ok(finished.journal.forget()?)
}
