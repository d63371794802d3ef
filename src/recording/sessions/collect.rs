//! Ends a running session, fetches and converts it, wherever it was started. Also adopts
//! traces that only the device knows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use time::OffsetDateTime;

use super::choice::{self, Purpose};
use super::phone::{PATIENCE, is_fetched, orphans, reach, require_phone, waits_for};
use crate::heaps::java::DIRECTORY;
use crate::names::options::NameOptions;
use crate::recording::blocking::blocking;
use crate::recording::companion;
use crate::recording::events::{EventHandler, session_events, warn};
use crate::recording::finish;
use crate::recording::outcome::{EndedBy, Finished, LastJournal};
use crate::recording::plan::{self, Plan};
use heaptap_adb::Device;
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::eligibility;
use heaptap_capture::error::kind;
use heaptap_capture::session::{
    self, CaptureError, Controls, Ending, FollowEnd, Owner, RemoteTrace, Session, SessionHeader,
    SessionState, Store,
};
use heaptap_results::file_names::default_name;
use heaptap_results::manifest::FILE_NAME;
use heaptap_results::output::{OutputDirectory, is_own, own};

/// Collects a session: ends it if it is still running, fetches and converts it, and cleans up. Asks
/// the device for `wanted`, an ID or its beginning, if the journal does not contain the session.
///
/// # Errors
/// Returns [`CaptureError::not_fetched`] if the trace cannot be fetched; it remains on the device.
pub(super) async fn collect(
    store: &Store,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    chosen: Result<SessionState, CaptureError>,
    wanted: Option<&str>,
    how: How<'_>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let none = match chosen {
        Ok(session_state) => {
            let at_hand = match reach(&session_state.header, None).await {
                Ok(at_hand) => at_hand,
                Err(failure) => reach_elsewhere(&session_state.header, device, failure).await?,
            };
            return collect_alone(store, at_hand, session_state, how, controls, on_event).await;
        }
        Err(none) if none.is(&[kind::NO_SESSION, kind::NO_SUCH_SESSION, kind::NONE_SERVES]) => none,
        Err(error) => return Err(error.into()),
    };
    let device = match device().await {
        Ok(device) => device,
        Err(_) if none.is(&[kind::NONE_SERVES]) => return Err(none.into()),
        // Devices can have sessions that this host does not know.
        Err(mut failure) => {
            failure.message = format!("{none}, and {}", failure.message);
            return Err(failure);
        }
    };
    let known = store.list()?.0;
    let trace = choose_orphan(store, &device, &known, wanted, Purpose::Stop, none).await?;
    let id = trace.id.clone();
    adopt(store, &device, trace, how.output, true).await?;
    let session_state = choice::named(store, id.as_str())?;
    let how = How {
        output: None,
        ..how
    };
    collect_known(store, device, session_state, how, controls, on_event).await
}

/// Collects a session that the user named. A Java heap is merged into its recording.
pub(super) async fn collect_alone(
    store: &Store,
    device: Device,
    session_state: SessionState,
    how: How<'_>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let collecting = collect_known(
        store,
        device.clone(),
        session_state,
        how,
        controls,
        on_event,
    );
    let finished = collecting.await?;
    Ok(add_to_whole(store, device, finished, on_event).await)
}

/// Merges a Java heap that was collected alone into its recording. While that is not finished, or
/// if it fails, the session stays: a later `stop` merges it.
async fn add_to_whole(
    store: &Store,
    device: Device,
    mut part: Finished,
    on_event: &EventHandler,
) -> Finished {
    let Some(recording) = companion::recording_of(&part) else {
        return part;
    };
    let id = part.session.clone();
    let joined = match store.list() {
        Err(error) => Err(error.to_string()),
        Ok((all, _)) if all.iter().any(|one| one.header.output == recording) => {
            Err("the recording is not finished".to_owned())
        }
        Ok(_) => {
            let store = store.clone();
            let joining = blocking(move || {
                let joined = companion::join_finished(&store, &device, &recording, &mut part);
                (part, joined)
            });
            let joined;
            (part, joined) = joining.await;
            joined
        }
    };
    if let Err(why) = joined {
        part.journal = LastJournal::default();
        let what = format!("cannot add the Java heap of session {id} to its recording");
        let then = format!("run `heaptap stop {id}` again later");
        warn(on_event, format!("{what}: {why}; {then}"));
    }
    part
}

/// Returns the device of a session that is not at the journal's server, if `device` is the right
/// one: reached over another server, or with another serial.
async fn reach_elsewhere(
    header: &SessionHeader,
    device: impl AsyncFnOnce() -> Result<Device, Failure>,
    failure: Failure,
) -> Result<Device, Failure> {
    let Ok(device) = device().await else {
        return Err(waits_for(header, failure, "stop"));
    };
    // A file with the session's name identifies its device. If all recordings have the same name,
    // at least the boot ID must match.
    let same = match header.removable {
        true => device.stat(&header.remote_path, PATIENCE).await?.is_some(),
        false => session::moment(&device).await?.boot_id == header.boot_id,
    };
    if same {
        return Ok(device);
    }
    let why = format!(
        "{}; {} at {} is another device or does not have its data",
        failure.message,
        device.serial(),
        device.server().address()
    );
    Err(CaptureError::not_fetched(&header.serial, &header.id, why).into())
}

pub(super) async fn choose_orphan(
    store: &Store,
    device: &Device,
    known: &[SessionState],
    wanted: Option<&str>,
    purpose: Purpose,
    none: CaptureError,
) -> Result<RemoteTrace, CaptureError> {
    let mut found = orphans(device, known).await?;
    let mut running = Vec::new();
    match wanted {
        Some(wanted) => found.retain(|t| t.id.as_str().starts_with(wanted)),
        // Another host might be recording right now: select it only by its name.
        None => {
            found.retain(|t| !is_fetched(store, device, t));
            (running, found) = found.into_iter().partition(|t| t.writer.is_some());
        }
    }
    match found.len() {
        0 if none.is(&[kind::NO_SESSION]) && !running.is_empty() => {
            let ids: Vec<String> = running.iter().map(|t| t.id.to_string()).collect();
            let message = format!(
                "there is no session of this host to {}; {} is recording {}, started elsewhere",
                purpose.words(),
                device.serial(),
                ids.join(", ")
            );
            Err(Failure::new(ErrorClass::Usage, kind::NO_SESSION, message)
                .with_help("`heaptap status` has the command that ends it from here")
                .into())
        }
        0 => Err(none),
        1 => Ok(found.remove(0)),
        _ => Err(CaptureError::several_sessions(
            &found
                .iter()
                .map(|trace| trace.id.to_string())
                .collect::<Vec<_>>(),
        )),
    }
}

/// Writes a journal for a trace that another host recorded.
pub(super) async fn adopt(
    store: &Store,
    device: &Device,
    trace: RemoteTrace,
    output: Option<&Path>,
    removable: bool,
) -> Result<(), Failure> {
    let now = OffsetDateTime::now_utc();
    let wanted = output.map_or_else(
        || PathBuf::from(default_name("recording", now, &trace.id)),
        Path::to_owned,
    );
    let directory = OutputDirectory::prepare(&wanted)?;
    let adopted = async {
        let facts = eligibility::facts(device).await?;
        let header = SessionHeader {
            removable,
            time: now,
            ..SessionHeader::on(
                device,
                trace.id,
                facts.hardware_serial.clone(),
                plan::boot_id(device, &facts).await?,
                trace.path,
                directory.path(),
                Plan::on(&facts).to_value(),
            )
        };
        let (id, output) = (header.id.clone(), header.output.clone());
        let (journal, lock) = store.create(header)?;
        drop(journal);
        // After the journal, as at the start of a session.
        if let Err(error) = session::claim_for(&id, &output) {
            store.forget(&id, lock)?;
            return Err(error.into());
        }
        Ok(())
    };
    let adopted: Result<(), Failure> = adopted.await;
    if adopted.is_err() {
        directory.discard();
    }
    adopted
}

/// Options of collecting a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How<'a> {
    /// Another directory for the results.
    pub(super) output: Option<&'a Path>,
    /// Additional symbol sources.
    pub(super) names: Option<&'a NameOptions>,
    /// Wait for a dump that ends by itself, instead of ending it.
    pub(super) wait: bool,
}

pub(super) async fn collect_known(
    store: &Store,
    device: Device,
    session_state: SessionState,
    how: How<'_>,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Finished, Failure> {
    let id = session_state.header.id.clone();
    let mut session = Session::resume(device, store.clone(), &id, session_events(on_event))?;
    require_phone(session.device(), &session_state.header).await?;
    let from = session_state.header.output.clone();
    let other = how.output.map(std::path::absolute).transpose();
    let other = other.map_err(|source| CaptureError::output(&from, source))?;
    let other = other.filter(|output| *output != from && !directory::is_same(output, &from));
    // Before fetching, and before data of another session could be mistaken for this one.
    if other.is_none() {
        own(&from, &id)?;
    }
    let is_here = is_own(&from, &id);
    if is_here {
        collect_parts(
            store,
            session.device(),
            &session_state,
            None,
            controls,
            on_event,
        )
        .await;
    }
    // Finishes a move that a killed process began.
    finish_move(&session, on_event).await;
    if let Some(output) = other {
        let is_claimed = is_own(&output, &id);
        if is_claimed {
            // A process that was killed while it copied has claimed it, or it was moved by hand,
            // perhaps with results whose publication is to be continued.
            own(&output, &id)?;
            session::remove_parts(&output, &id)
                .map_err(|source| CaptureError::output(&output, source))?;
        } else {
            let directory = OutputDirectory::prepare(&output)?;
            if let Err(error) = session.claim_output(directory.path()) {
                directory.discard();
                return Err(error.into());
            }
        }
        // This copies gigabytes if it is another disk.
        let moved = blocking(move || match session.move_output(&output) {
            Ok(()) => Ok(session),
            Err(error) => {
                if !is_claimed {
                    session::release(&output, &Owner::Session(id));
                    // Removed if it is empty.
                    let _ = std::fs::remove_dir(&output);
                }
                Err(error)
            }
        });
        session = moved.await?;
        finish_move(&session, on_event).await;
        if !is_here {
            let moved = Some(session.state());
            collect_parts(
                store,
                session.device(),
                &session_state,
                moved,
                controls,
                on_event,
            )
            .await;
        }
    }
    let ended_by = end(&mut session, how.wait, controls).await?;
    finish::finish(session, ended_by, how.names, controls, on_event).await
}

/// Moves the companion files from the previous output directory, if it still belongs to the
/// session. If some cannot be moved, warns about the first. While the session exists, `stop` tries
/// again.
async fn finish_move(session: &Session, on_event: &EventHandler) {
    let (id, output) = (session.id().clone(), session.header().output.clone());
    let state = session.state().clone();
    let Some(from) = state.moved_from.clone() else {
        return;
    };
    if !is_own(&from, &id) {
        return;
    }
    let moved = blocking(move || {
        session::remove_parts(&from, &id).map_err(|error| error.to_string())?;
        companion::sweep(&from);
        companion::move_along(&from, &output, &id)?;
        // Complete results need their trace.
        if !from.join(FILE_NAME).exists() {
            state.remove_moved();
        }
        // From now on, the remaining files do not belong to a session.
        let owner = Owner::Session(id);
        session::release(&from.join(DIRECTORY), &owner);
        companion::remove_empty(&from);
        session::release(&from, &owner);
        // Removed if it is empty.
        let _ = std::fs::remove_dir(&from);
        Ok::<_, String>(())
    });
    if let Err(text) = moved.await {
        warn(on_event, text);
    }
}

/// Collects unfinished companion data of a killed recorder. If its directory is gone, `moved` is
/// the recording in another one. Failures are reported and ignored, because the recording does not
/// depend on them.
async fn collect_parts(
    store: &Store,
    device: &Device,
    whole: &SessionState,
    moved: Option<&SessionState>,
    controls: &mut Controls,
    on_event: &EventHandler,
) {
    for part in companion::parts_of(store, whole) {
        let id = part.header.id.clone();
        let goal = moved.map(|moved| companion::part_output(&part, moved));
        let how = How {
            output: goal.as_deref(),
            ..How::default()
        };
        let collecting = collect_known(store, device.clone(), part, how, controls, on_event);
        let joined = match Box::pin(collecting).await {
            Ok(mut finished) => {
                let (device, whole) = (device.clone(), moved.unwrap_or(whole).clone());
                blocking(move || companion::join_part(&device, &whole, &mut finished)).await
            }
            Err(failure) => Err(failure.message),
        };
        if let Err(why) = joined {
            let mut text = format!("cannot fetch the Java heap of session {id}: {why}");
            if choice::named(store, id.as_str()).is_ok() {
                text.push_str(&format!("; run `heaptap stop {id}`"));
            }
            warn(on_event, text);
        }
    }
}

/// Ensures that perfetto has ended, at any stage of the session.
async fn end(
    session: &mut Session,
    wait: bool,
    controls: &mut Controls,
) -> Result<EndedBy, Failure> {
    let rebooted = session.state().rebooted;
    let seen = match session.state().over {
        _ if rebooted => EndedBy::Reboot,
        Some(_) => EndedBy::Itself,
        None => EndedBy::Unknown,
    };
    if session.state().is_fetched() {
        return Ok(seen);
    }
    // An answer that was lost can have been taken for the end.
    if session.state().ended && !session.is_running().await? {
        return Ok(seen);
    }
    let now = session::moment(session.device()).await?;
    if now.boot_id != session.header().boot_id {
        return Ok(
            if !rebooted && ended_before(session.header(), now.boot_ns)? {
                EndedBy::Unknown
            } else {
                EndedBy::Reboot
            },
        );
    }
    // If a restart was noted nevertheless, another device had the serial then.
    session.find_process().await?;
    let was_running = session.is_running().await?;
    if !was_running {
        let header = session.header();
        // Android 10 has one file for all recordings.
        if !header.removable
            && session::find_writer(session.device(), &header.remote_path)
                .await?
                .is_some()
        {
            return Err(CaptureError::one_at_a_time(&header.serial, None).into());
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

/// Waits for dumps that end by themselves; returns `None` for recordings that do not.
async fn await_dumps(
    session: &mut Session,
    controls: &mut Controls,
) -> Result<Option<FollowEnd>, Failure> {
    let java = Plan::read(&session.header().plan)?.java;
    let ends = java.filter(|java| java.oom_wait_s.is_none() && (java.ends_when_done || java.watch));
    let Some(java) = ends.filter(|_| !session.state().stopping()) else {
        return Ok(None);
    };
    if java.watch {
        session.end_with_dumps();
    }
    Ok(Some(session.follow(controls).await?))
}

/// Returns whether the duration of a session was over when the device restarted, `up_ns` ago.
fn ended_before(header: &SessionHeader, up_ns: u64) -> Result<bool, CaptureError> {
    let Some(duration_ms) = Plan::read(&header.plan)?.duration_ms else {
        return Ok(false);
    };
    let since = OffsetDateTime::now_utc() - header.time;
    let recorded = since - Duration::from_nanos(up_ns);
    Ok(recorded > Duration::from_millis(duration_ms))
}
