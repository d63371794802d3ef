//! Ends a session: sends one TERM to perfetto, then waits for its final dump. perfetto's
//! handler is one-shot, so a second signal would kill it and leave a torn file. Therefore the
//! device itself checks whether the handler is still in place (`SigCgt`), no matter which process
//! signalled before. A process with another boot, start time or command line is never signalled.

use std::time::Duration;

use tokio::time::Instant;

use super::event::{Controls, Events, SessionEvent, stop_asked};
use super::id::SessionId;
use super::journal::{Entry, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use super::store::Store;
use crate::error::CaptureError;
use heaptap_adb::{Command, Device, DeviceError, Lines, ShellEvent};

/// `$1` pid, `$2` start ticks (100 a second), `$3` boot id, `$4` trace file, `$5` `first` if
/// no process has signalled before. SIGTERM is bit 14 of the mask of caught signals: the 4 of its
/// fourth hex digit from the right. A perfetto that started seconds ago might not have set its
/// handler yet, so it gets two more seconds; an older one without a handler was already signalled,
/// and its final dump might take long. If the device cannot start `cat`, the script ends without an
/// answer.
pub(super) const STOP: &str = include_str!("../scripts/stop.sh").trim_ascii_end();

/// Time that a device can take beyond its own timeouts.
const SLACK: Duration = Duration::from_secs(15);

/// Interval for checking whether another process has released a session.
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// Result of ending a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// perfetto has ended, and its file exists.
    Over,
    /// The device restarted, and a file exists.
    Rebooted,
}

impl Session {
    /// Stops perfetto (signalling at most once, across processes) and waits until it has ended.
    ///
    /// # Errors
    /// Returns [`CaptureError::not_fetched`] if it does not end in time, if the device does not come
    /// back, or if a stop is requested again.
    pub async fn stop(&mut self, controls: &mut Controls) -> Result<Ending, CaptureError> {
        let limit = Duration::from_millis(self.header().stop_limit_ms) + SLACK;
        let deadline = Instant::now() + limit;
        let mut asked_before = self.reread()?.stopping();
        if !asked_before {
            // Two processes can get here at the same time: the first line in the journal decides.
            let by = format!("{:016x}", fastrand::u64(..));
            self.append(Entry::Stopping { by: by.clone() })?;
            asked_before = self.state.stopped_by.as_ref() != Some(&by);
        }
        self.note_step("stop-requested");
        self.tell(SessionEvent::Stopping);
        let mut turn = if asked_before { "again" } else { "first" };
        let mut backoff = Duration::from_millis(100);
        loop {
            let attempt = tokio::select! {
                attempt = tokio::time::timeout_at(deadline, self.stop_once(turn)) => attempt,
                () = stop_asked(controls) => return Err(self.not_fetched("interrupted")),
            };
            let error = match attempt {
                Ok(Ok(ending)) => return Ok(ending),
                Ok(Err(error)) if error.is_connection() => error,
                Ok(Err(error)) => return Err(self.not_fetched(error)),
                Err(_) => return Err(self.not_fetched(late(limit))),
            };
            // The signal might have arrived; the device checks that.
            turn = "again";
            self.tell(SessionEvent::ConnectionLost {
                why: error.to_string(),
            });
            let since = Instant::now();
            let back = async {
                tokio::time::sleep(backoff).await;
                self.device.wait_ready(limit).await
            };
            tokio::select! {
                back = tokio::time::timeout_at(deadline, back) => match back {
                    Ok(Ok(())) => self.tell(SessionEvent::Reconnected { after: since.elapsed() }),
                    Ok(Err(error)) if error.is_connection() => {}
                    Ok(Err(error)) => return Err(self.not_fetched(error)),
                    Err(_) => return Err(self.not_fetched(error)),
                },
                () = stop_asked(controls) => return Err(self.not_fetched("interrupted")),
            }
            backoff = (backoff * 2).min(Duration::from_secs(5));
        }
    }

    async fn stop_once(&self, turn: &str) -> Result<Ending, DeviceError> {
        let Some(process) = self.process().cloned() else {
            return Ok(Ending::Over);
        };
        let header = self.header();
        let command = Command::script(STOP)
            .called("stopping the recording")
            .arg(process.pid.to_string())
            .arg(process.start_ticks.to_string())
            .arg(&header.boot_id.0)
            .arg(&header.remote_path)
            .arg(turn);
        let mut shell = self.device.spawn(&command, QUICK).await?;
        let mut lines = Lines::default();
        loop {
            match shell.next().await? {
                ShellEvent::Stdout(bytes) => {
                    for line in lines.push(&bytes) {
                        match line.trim_end() {
                            "over" => return Ok(Ending::Over),
                            "rebooted" => return Ok(Ending::Rebooted),
                            _ => {}
                        }
                    }
                }
                ShellEvent::Stderr(_) => {}
                ShellEvent::Exit(_) => {
                    let what = "waiting for the end of the recording";
                    return Err(probe::lost(&self.device, what));
                }
            }
        }
    }

    /// Finds the session's perfetto process if the journal does not contain it, because the
    /// process that started it was killed in between.
    ///
    /// # Errors
    /// Returns an error if the device cannot be reached.
    pub async fn find_process(&mut self) -> Result<(), CaptureError> {
        if self.process().is_some() || self.state.ended {
            return Ok(());
        }
        let moment = probe::moment(&self.device).await?;
        if moment.boot_id != self.header().boot_id {
            return Ok(());
        }
        if let Some(process) = probe::await_own_writer(&self.device, self.header()).await? {
            let boot_ns = process.started_ns();
            self.append(Entry::Started { process, boot_ns })?;
        }
        Ok(())
    }
}

/// Ends a session that another process records, and waits until that process has finished it
/// or is gone. Returns the last state that it wrote, if any was seen.
///
/// # Errors
/// Returns the errors of [`Session::stop`].
pub async fn stop_for_another(
    device: &Device,
    store: &Store,
    id: &SessionId,
    controls: &mut Controls,
    events: Events,
) -> Result<Option<SessionState>, CaptureError> {
    let mut session = Session::beside(device.clone(), store.clone(), id, events)?;
    session.find_process().await?;
    let mut newest: Option<SessionState> = None;
    let mut is_asked = false;
    while store.is_locked(id) {
        // It might move the results, and forgets the session in the end.
        if let Ok(Ok(state)) = store.open(id).map(|journal| journal.read()) {
            newest = Some(state);
        }
        // A recording that is starting has no process yet.
        let has_process = newest.as_ref().is_some_and(|state| state.process.is_some());
        if !is_asked && has_process {
            is_asked = true;
            session.reread()?;
            if session.is_running().await? {
                session.stop(controls).await?;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_LOOK) => {}
            () = stop_asked(controls) => return Err(session.not_fetched("interrupted")),
        }
    }
    Ok(newest)
}

fn late(limit: Duration) -> String {
    format!(
        "perfetto did not end within {} s after the stop request",
        limit.as_secs()
    )
}
