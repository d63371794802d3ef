//! The log of the device, line by line from now on.

use std::collections::VecDeque;
use std::time::Duration;

use super::SHELL;
use crate::device::{Command, Device, Shell, ShellEvent};
use crate::error::{ErrorClass, Failure};

/// Pause before a log that ended is read again.
const PAUSE: Duration = Duration::from_millis(500);
/// Number of logs in a row that can end without a line.
const ENDS: u32 = 10;
/// Maximum length of a line that is kept, bytes.
const LONGEST: usize = 64 << 10;

/// The lines of the log from its begin on.
pub(in crate::lab) struct LogTail {
    device: Device,
    shell: Option<Shell>,
    /// Bytes after the last line end.
    rest: Vec<u8>,
    lines: VecDeque<String>,
    /// Time of the first line, and of the latest so far: seconds since 1970 by the clock of the
    /// device.
    from: f64,
    latest: f64,
    /// Logs in a row that ended without a line.
    ends: u32,
    /// Output of a logcat that failed.
    said: String,
}

impl LogTail {
    /// Begins at the current time of the device.
    ///
    /// # Errors
    /// Returns an error if the device cannot be reached.
    pub(in crate::lab) async fn begin(device: &Device) -> Result<LogTail, Failure> {
        let clock = Command::program("date").arg("+%s.%N");
        let now = device.run(&clock, SHELL).await?;
        let now = String::from_utf8_lossy(&now.stdout).trim().to_owned();
        let (seconds, _) = now.split_once('.').unwrap_or((&now, ""));
        let from = now.parse().or_else(|_| seconds.parse()).unwrap_or(0.0);
        Ok(LogTail {
            device: device.clone(),
            shell: None,
            rest: Vec::new(),
            lines: VecDeque::new(),
            from,
            latest: from,
            ends: 0,
            said: String::new(),
        })
    }

    /// Returns the next line. A lost connection is reopened. Cancel-safe.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub(in crate::lab) async fn line(&mut self) -> Result<String, Failure> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(line);
            }
            let Some(shell) = &mut self.shell else {
                // logcat begins at a whole second; earlier lines are of earlier steps.
                let since = format!("{}.000", self.from as u64);
                let read = Command::program("logcat").args(["-v", "epoch", "-T", &since]);
                self.shell = Some(self.device.spawn(&read, SHELL).await?);
                continue;
            };
            match shell.next().await {
                Ok(ShellEvent::Stdout(bytes)) => self.take(&bytes),
                Ok(ShellEvent::Stderr(bytes)) => {
                    self.said = crate::untrusted::sanitize_bytes(bytes.trim_ascii());
                }
                Ok(ShellEvent::Exit(_)) => self.ended().await?,
                Err(error) if error.is_connection() => self.ended().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits a moment before the log is read again from its last line on.
    async fn ended(&mut self) -> Result<(), Failure> {
        self.shell = None;
        self.rest.clear();
        // Times are in milliseconds: the last line does not come twice.
        self.from = self.latest + 0.0005;
        self.ends += 1;
        if self.ends > ENDS {
            let message = format!("the log of the device cannot be read: {}", self.said);
            return Err(Failure::new(ErrorClass::Device, "command-failed", message));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (body, is_whole) = match piece.strip_suffix(b"\n") {
                Some(body) => (body, true),
                None => (piece, false),
            };
            let room = LONGEST.saturating_sub(self.rest.len());
            self.rest.extend_from_slice(&body[..body.len().min(room)]);
            if is_whole {
                let line = String::from_utf8_lossy(&self.rest).into_owned();
                self.rest.clear();
                self.add(line);
            }
        }
    }

    /// Adds a line, unless it is an earlier one or has no time.
    fn add(&mut self, line: String) {
        let time = line.split_whitespace().next();
        let time = time.and_then(|time| time.parse::<f64>().ok());
        if let Some(time) = time.filter(|time| *time >= self.from) {
            self.latest = self.latest.max(time);
            self.ends = 0;
            self.lines.push_back(line);
        }
    }
}
