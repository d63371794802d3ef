//! Ending a session: one TERM to perfetto, then the wait for its final dump. perfetto's
//! handler is one-shot, so a second signal would kill it with a torn file: the device itself
//! is asked whether the handler is still in place (`SigCgt`), whoever may have signalled
//! before. Nothing is signalled whose boot, start time or command line differs.

use std::time::Duration;

use tokio::time::Instant;

use super::error::SessionError;
use super::event::{Controls, Events, SessionEvent, stop_asked};
use super::follow::LineReader;
use super::id::SessionId;
use super::journal::Entry;
use super::probe::{self, QUICK};
use super::session::Session;
use super::store::Store;
use heaptap_adb::{Command, Device, DeviceError, ShellEvent};

/// `$1` pid, `$2` start ticks (100 a second), `$3` boot id, `$4` trace file, `$5` whether
/// nobody has signalled before. SIGTERM is bit 14 of the mask of caught signals: the 4 of its
/// fourth hex digit from the right. A perfetto of a few seconds may not have set its handler
/// yet, so it is given two more; an older one without it has been signalled, and its final
/// dump may take its time.
const STOP: &str = r#"case "$(cat /proc/sys/kernel/random/boot_id)" in "$3") ;; *) echo rebooted; exit 0;; esac
case "$(cat /proc/$1/stat 2>/dev/null)" in *" $2 "*) ;; *) echo over; exit 0;; esac
case "$(cat /proc/$1/cmdline 2>/dev/null)" in *"$4"*) ;; *) echo over; exit 0;; esac
n=0
while [ $n -lt 20 ]; do
  case "$(grep SigCgt /proc/$1/status 2>/dev/null)" in
    *[4567cdef]???) kill -TERM $1 && echo sent; n=99;;
    "") n=100;;
    *) up=$(cat /proc/uptime); up=${up%%.*}
      if [ $((up - $2 / 100)) -lt 5 ]; then n=$((n+1)); sleep 0.1; else n=99; fi;;
  esac
done
if [ $n = 20 ] && [ "$5" = first ]; then kill -TERM $1 && echo sent; fi
while [ -d /proc/$1 ]; do sleep 0.02; done
echo over"#;

/// What a device may take beyond its own timeouts.
const SLACK: Duration = Duration::from_secs(15);

/// How often to look whether another process has let go of a session.
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// perfetto has ended and its file stands.
    Over,
    /// The phone was restarted; a file stands.
    Rebooted,
}

impl Session {
    /// Tells perfetto to stop (once, whoever else did) and waits until it has ended.
    ///
    /// # Errors
    /// [`SessionError::NotFetched`] where it does not end in time, the device does not come
    /// back, or a stop is asked for once more.
    pub async fn stop(&mut self, controls: &mut Controls) -> Result<Ending, SessionError> {
        let limit = Duration::from_millis(self.header().stop_limit_ms) + SLACK;
        let deadline = Instant::now() + limit;
        let mut asked_before = self.reread()?.stopping();
        if !asked_before {
            // Two processes may get here at once: the journal says whose line came first.
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
                () = stop_asked(controls) => return Err(self.not_fetched("it was interrupted")),
            };
            let error = match attempt {
                Ok(Ok(ending)) => return Ok(ending),
                Ok(Err(error)) if error.is_connection() => error,
                Ok(Err(error)) => return Err(self.not_fetched(&error.to_string())),
                Err(_) => return Err(self.not_fetched(&late(limit))),
            };
            // The signal may have arrived; the device knows.
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
                    Ok(Err(error)) => return Err(self.not_fetched(&error.to_string())),
                    Err(_) => return Err(self.not_fetched(&error.to_string())),
                },
                () = stop_asked(controls) => return Err(self.not_fetched("it was interrupted")),
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
        let mut reader = LineReader::default();
        loop {
            match shell.next().await? {
                ShellEvent::Stdout(bytes) => {
                    for line in reader.push(&bytes) {
                        match line.as_str() {
                            "over" => return Ok(Ending::Over),
                            "rebooted" => return Ok(Ending::Rebooted),
                            _ => {}
                        }
                    }
                }
                ShellEvent::Stderr(_) => {}
                ShellEvent::Exit(_) => {
                    return Err(DeviceError::Lost {
                        serial: self.device.serial().to_owned(),
                        what: "waiting for the end of the recording".to_owned(),
                        source: None,
                    });
                }
            }
        }
    }

    /// Learns which perfetto is ours where the journal does not say: whoever started it died
    /// in between.
    ///
    /// # Errors
    /// Where the device cannot be asked.
    pub async fn find_process(&mut self) -> Result<(), SessionError> {
        if self.process().is_some() || self.state.ended {
            return Ok(());
        }
        let moment = probe::moment(&self.device).await?;
        if moment.boot_id != self.header().boot_id {
            return Ok(());
        }
        if let Some(facts) = probe::await_writer(&self.device, &self.header().remote_path).await? {
            let boot_ns = facts.key.started_ns();
            self.append(Entry::Started {
                process: facts.key,
                boot_ns,
            })?;
        }
        Ok(())
    }
}

/// Ends a session that another process records, and waits until that process has taken it to
/// its end, or has gone.
///
/// # Errors
/// As [`Session::stop`].
pub async fn stop_for_another(
    device: &Device,
    store: &Store,
    id: &SessionId,
    controls: &mut Controls,
    events: Events,
) -> Result<(), SessionError> {
    let mut session = Session::beside(device.clone(), store.clone(), id, events)?;
    session.find_process().await?;
    if session.is_running().await? {
        session.stop(controls).await?;
    }
    let over = async {
        while store.is_locked(id) {
            tokio::time::sleep(LOCK_LOOK).await;
        }
    };
    tokio::select! {
        () = over => Ok(()),
        () = stop_asked(controls) => Err(session.not_fetched("it was interrupted")),
    }
}

fn late(limit: Duration) -> String {
    format!(
        "perfetto did not end within {} s after it was told to",
        limit.as_secs()
    )
}
