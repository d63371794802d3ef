//! Starts perfetto in the background of the device, and verifies that it is running: even if
//! the service rejects a session, perfetto prints a process ID and exits with 0.

use std::time::Duration;

use super::event::SessionEvent;
use super::id::SessionId;
use super::journal::{Entry, ProcessKey, SessionState};
use super::probe::{self, QUICK};
use super::session::Session;
use super::store::Store;
use crate::eligibility::sections::text_lines;
use crate::error::{CaptureError, kind};
use heaptap_adb::{Command, DeviceError, Output, RETURN_LIMIT};
use heaptap_base::error::ErrorClass;

/// Facts known about a start when the connection is lost.
pub(super) enum Unseen {
    /// Nothing.
    Perhaps(DeviceError),
    /// perfetto has printed its process ID.
    Pid,
}

/// Method to move perfetto to the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// `--background-wait` (Android 13 and later): returns when every data source has started.
    Wait,
    /// `-d`: returns immediately.
    Now,
}

/// Timeout of a start, which waits up to 30 s for data sources on the device.
const START_LIMIT: Duration = Duration::from_secs(45);
/// Delay before a slow start is reported.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval for reading the journal of a session that another process starts.
const JOURNAL_LOOK: Duration = Duration::from_millis(50);

/// `$1` pid, `$2` trace file. With a write period of 5 s the service starts the file late.
const CONFIRM: &str = include_str!("../scripts/confirm.sh").trim_ascii_end();

/// Android 10 has one file for all recordings, of all hosts. `$1` trace file, `$2` flag, `$3`
/// session. Each start is in the list of processes before it reads the list, so of two at the same
/// time at least one sees the other. The session tells its own shells from others. `$4` is the
/// variable that tells perfetto's processes apart. A single line, so that it is one line in the
/// output of `ps`, too.
const START_ALONE: &str = include_str!("../scripts/start_alone.sh").trim_ascii_end();

impl Session {
    /// Starts perfetto with `config` (a serialized TraceConfig).
    ///
    /// # Errors
    /// Returns the cause of a failed start; then neither a journal nor a file is left. If the
    /// connection is lost permanently, the journal stays and the error is
    /// [`CaptureError::not_fetched`].
    pub async fn start(
        mut self,
        config: &[u8],
        background: Background,
    ) -> Result<Session, CaptureError> {
        let before = probe::moment(&self.device).await;
        match self.launch(config, background).await {
            Ok(Some(process)) => {
                self.note_started(process).await?;
                Ok(self)
            }
            Ok(None) => {
                // It ran for less than this: a short recording, or one that was lost at once.
                if let (Ok(before), Ok(now)) = (before, probe::moment(&self.device).await)
                    && before.boot_id == now.boot_id
                {
                    let most_ns = now.boot_ns.saturating_sub(before.boot_ns);
                    self.over_after = Some(Duration::from_nanos(most_ns));
                    self.note_over()?;
                }
                self.append(Entry::Ended)?;
                self.tell_started();
                Ok(self)
            }
            Err(error) if error.is(&[kind::NOT_FETCHED]) => Err(error),
            Err(error) => {
                if self.remove_new_remote().await {
                    self.forget()?;
                }
                Err(error)
            }
        }
    }

    /// Returns `None` if perfetto has already ended with a trace.
    async fn launch(
        &mut self,
        config: &[u8],
        background: Background,
    ) -> Result<Option<ProcessKey>, CaptureError> {
        let remote = self.header().remote_path.clone();
        let flag = match background {
            Background::Wait => "-D",
            Background::Now => "-d",
        };
        let command = match self.header().removable {
            true => Command::program("perfetto").args(["-c", "-", "-o", &remote, flag]),
            false => Command::script(START_ALONE)
                .called("starting perfetto")
                .args([&remote, flag, self.id().as_str()])
                .arg(probe::session_variable(self.id())),
        };
        let result = {
            let starting = self.device.run_with_stdin(&command, config, START_LIMIT);
            tokio::pin!(starting);
            match tokio::time::timeout(PATIENCE, &mut starting).await {
                Ok(result) => result,
                Err(_) => {
                    self.tell(SessionEvent::Starting);
                    starting.await
                }
            }
        };
        let output = match result {
            Ok(output) => output,
            // Nothing was executed.
            Err(error @ DeviceError::Refused { .. }) => return Err(error.into()),
            Err(error) => return self.started_unseen(Unseen::Perhaps(error)).await,
        };
        if output.stdout.trim_ascii() == b"busy" {
            return Err(CaptureError::one_at_a_time(self.device.serial(), None));
        }
        let Some(pid) = parse_pid(&output) else {
            return Err(self.start_failure(&output));
        };
        match output.exit {
            0 => {}
            // The wait for data sources timed out, but the session is running.
            2 if background == Background::Wait => {
                self.slow = true;
                self.tell(SessionEvent::SlowStart);
            }
            _ => return Err(self.start_failure(&output)),
        }
        let seen = async {
            if let Some(facts) = probe::process(&self.device, pid).await?
                && facts.writes_to(&remote)
            {
                return Ok((Some(facts.key), true));
            }
            let stat = self.device.stat(&remote, QUICK).await?;
            Ok::<_, DeviceError>((None, stat.is_some()))
        };
        match seen.await {
            Ok((process, true)) => Ok(process),
            // A rejected session does not leave a file; a short recording does.
            Ok((_, false)) => Err(self.rejection().await),
            Err(_) => self.started_unseen(Unseen::Pid).await,
        }
    }

    /// Determines whether perfetto started before the connection was lost. Only a device without
    /// perfetto and without its file proves that it did not.
    pub(super) async fn started_unseen(
        &mut self,
        unseen: Unseen,
    ) -> Result<Option<ProcessKey>, CaptureError> {
        let remote = &self.header().remote_path;
        let looking = async {
            self.device.wait_ready(RETURN_LIMIT).await?;
            let process = probe::await_own_writer(&self.device, self.header()).await?;
            if process.is_some() {
                return Ok((process, true));
            }
            let stat = self.device.stat(remote, QUICK).await?;
            Ok::<_, DeviceError>((None, stat.is_some()))
        };
        match (looking.await, unseen) {
            (Ok((process, true)), _) => Ok(process),
            (Ok((_, false)), Unseen::Perhaps(error)) => Err(error.into()),
            (Ok((_, false)), Unseen::Pid) => Err(self.rejection().await),
            (Err(error), _) => Err(self.not_fetched(format!(
                "the connection was lost during the start ({error})"
            ))),
        }
    }

    pub(super) async fn note_started(&mut self, process: ProcessKey) -> Result<(), CaptureError> {
        let moment = probe::moment(&self.device).await;
        let boot_ns = match moment {
            Ok(moment) => moment.boot_ns,
            Err(_) => process.started_ns(),
        };
        self.append(Entry::Started { process, boot_ns })?;
        self.note_step("started");
        self.tell_started();
        Ok(())
    }

    pub(super) fn tell_started(&self) {
        self.tell(SessionEvent::Started {
            session: self.header().id.clone(),
            pid: self.process().map(|process| process.pid),
        });
    }

    fn start_failure(&self, output: &Output) -> CaptureError {
        let serial = self.device.serial();
        let text = complaint(output);
        let lower = text.to_lowercase();
        if output.exit == 127 {
            let message = format!("perfetto is not installed on {serial}");
            CaptureError::new(ErrorClass::Device, "no-perfetto", message)
                .with_help("use a device with Android 10 or newer")
        } else if lower.contains("traced") && lower.contains("connect") {
            let message = format!("tracing is disabled on {serial}: {text}");
            CaptureError::new(ErrorClass::Device, "tracing-off", message)
                .with_help("run `adb shell setprop persist.traced.enable 1`")
        } else {
            CaptureError::start_failed(serial, output.exit, &text)
        }
    }

    /// Verifies that the service accepted the session: a rejected one looks alive for a
    /// moment. Waits until the trace begins, perfetto ends, or a few seconds are over.
    ///
    /// # Errors
    /// Returns an error, with nothing left, or [`CaptureError::not_fetched`] if
    /// the device cannot be reached.
    pub async fn confirm(&mut self) -> Result<(), CaptureError> {
        let Some(process) = self.process() else {
            return Ok(());
        };
        let command = Command::script(CONFIRM)
            .called("confirming the start")
            .arg(process.pid.to_string())
            .arg(&self.header().remote_path);
        let output = self.device.run(&command, START_LIMIT).await;
        let output = output.map_err(|e| self.not_fetched(e))?;
        if output.stdout.trim_ascii() != b"gone" {
            return Ok(());
        }
        let rejection = self.rejection().await;
        // perfetto is gone, and its file is empty: otherwise `status` would list a trace to fetch.
        let _ = self.remove_new_remote().await;
        Err(rejection)
    }

    /// Removes the trace of a failed start, except Android 10's single file, which existed before.
    /// Returns false if the device could not be reached.
    async fn remove_new_remote(&self) -> bool {
        !self.header().removable || self.remove_remote().await
    }

    /// Returns the reason why the service rejected the session, from the device log.
    pub(super) async fn rejection(&self) -> CaptureError {
        let log = probe::log_of_perfetto(&self.device).await;
        let telling = [
            "reject", "error", "fail", "already", "limit", "invalid", "too many",
        ];
        let is_reason = |message: &String| {
            let lower = message.to_lowercase();
            telling.iter().any(|word| lower.contains(word))
        };
        let reason = log.into_iter().rfind(is_reason).unwrap_or_else(|| {
            "it ended immediately, and the device log does not contain a reason".to_owned()
        });
        let serial = self.device.serial();
        let help = match reason.contains("No space left on device") {
            true => "free storage on the device, then record again",
            false => {
                "stop other sessions (listed by `adb shell perfetto --query`) or restart the device"
            }
        };
        let message = format!("the tracing service on {serial} rejected the recording: {reason}");
        CaptureError::new(ErrorClass::Device, kind::REJECTED, message).with_help(help)
    }
}

/// Waits while another process starts the session; `on_wait` is called once if it does. Returns its
/// state then.
///
/// # Errors
/// Returns an error if the start fails, or takes longer than a start may.
pub async fn await_start(
    store: &Store,
    mut state: SessionState,
    on_wait: impl FnOnce(&SessionId),
) -> Result<SessionState, CaptureError> {
    let id = state.header.id.clone();
    let is_starting = |state: &SessionState| state.is_starting() && store.is_locked(&id);
    let mut on_wait = Some(on_wait);
    let waiting = async {
        while is_starting(&state) {
            if let Some(on_wait) = on_wait.take() {
                on_wait(&id);
            }
            tokio::time::sleep(JOURNAL_LOOK).await;
            state = store.state(&id)?;
        }
        Ok::<_, CaptureError>(state)
    };
    let not_started = |what: &str, help: &str| {
        let message = format!("session {id} {what}");
        CaptureError::new(ErrorClass::Device, "not-started", message).with_help(help)
    };
    match tokio::time::timeout(START_LIMIT + RETURN_LIMIT, waiting).await {
        Ok(Err(error)) if error.is(&[kind::NO_SUCH_SESSION]) => Err(not_started(
            "did not start",
            "see the output of the command that started it, then record again",
        )),
        Ok(started) => started,
        Err(_) => Err(not_started(
            "has not started yet",
            "wait until `heaptap status` lists it as recording, then try again",
        )),
    }
}

/// Finds the line that is only a number: linker warnings might surround it.
fn parse_pid(output: &Output) -> Option<u32> {
    let mut streams = [&output.stdout, &output.stderr].into_iter();
    streams.find_map(|bytes| {
        let lines = text_lines(bytes).into_iter();
        lines
            .filter(|line| is_number(line))
            .rev()
            .find_map(|line| line.parse().ok())
    })
}

fn is_number(line: &str) -> bool {
    line.bytes().all(|b| b.is_ascii_digit())
}

/// Returns perfetto's error: the end of its output, without linker warnings.
fn complaint(output: &Output) -> String {
    let lines = [&output.stderr, &output.stdout]
        .into_iter()
        .flat_map(|bytes| text_lines(bytes));
    let is_warning = |line: &str| line.to_lowercase().contains("linker: warning");
    let said = lines.filter(|line| !is_warning(line) && !is_number(line));
    match said.take(4).collect::<Vec<_>>().join("; ").as_str() {
        "" => "no output".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_found_among_warnings() {
        let warning = "WARNING: linker: Warning: \"/system/lib64/x\" unused DT entry 7\n";
        assert_eq!(parse_pid(&Output::said("4711\n", "")), Some(4711));
        assert_eq!(
            parse_pid(&Output::said(&format!("{warning}4711\r\n"), "")),
            Some(4711)
        );
        assert_eq!(
            parse_pid(&Output::said("", &format!("{warning}4711\n{warning}"))),
            Some(4711)
        );
        assert_eq!(parse_pid(&Output::said(warning, "")), None);
        assert_eq!(parse_pid(&Output::said("99999999999\n", "")), None);
    }

    #[test]
    fn complaints_come_without_noise() {
        let out = Output::said(
            "12\n",
            "WARNING: linker: Warning: x\nfailed to parse config\n",
        );
        assert_eq!(complaint(&out), "failed to parse config");
    }
}
