//! The log of the device, line by line from now on.

use std::collections::VecDeque;
use std::time::Duration;

use super::executor::SHELL;
use heaptap_adb::{Command, Device, Lines, Shell, ShellEvent};
use heaptap_base::error::{ErrorClass, Failure};

/// Pause before a log that ended, or could not be read, is read again.
const PAUSE: Duration = Duration::from_millis(500);
/// Time without a line after which the clock of the device is read.
const SILENCE: Duration = Duration::from_secs(10);
/// Number of logs in a row that can end without a line.
const ENDS: u32 = 10;
/// Seconds before the first line, in which there can be earlier lines: logcat begins at a whole
/// second.
const EARLIER: f64 = 2.0;

/// The lines of the log from its begin on.
pub(in crate::lab) struct LogTail {
    device: Device,
    shell: Option<Shell>,
    splitter: Lines,
    lines: VecDeque<String>,
    /// Lines long before `from`, with their times: the clock was set back, or they are old.
    doubtful: Vec<(f64, String)>,
    /// Time of the first line, and of the latest so far: seconds since 1970 by the clock of the
    /// device.
    from: f64,
    latest: f64,
    /// The clock was set back, so that times do not tell new lines from old ones.
    was_set_back: bool,
    is_silent: bool,
    /// The last call failed.
    has_failed: bool,
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
        let from = clock(device).await?;
        Ok(LogTail {
            device: device.clone(),
            shell: None,
            splitter: Lines::default(),
            lines: VecDeque::new(),
            doubtful: Vec::new(),
            from,
            latest: from,
            was_set_back: false,
            is_silent: false,
            has_failed: false,
            ends: 0,
            said: String::new(),
        })
    }

    /// Returns the next line. A lost connection is reopened; after an error, the next call pauses
    /// and reopens it. Cancel-safe.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub(in crate::lab) async fn line(&mut self) -> Result<String, Failure> {
        if self.has_failed {
            tokio::time::sleep(PAUSE).await;
            self.has_failed = false;
        }
        let line = self.next_line().await;
        if line.is_err() {
            self.close();
            self.has_failed = true;
        }
        line
    }

    async fn next_line(&mut self) -> Result<String, Failure> {
        loop {
            if self.is_silent || !self.doubtful.is_empty() {
                self.check_clock().await?;
            }
            if let Some(line) = self.lines.pop_front() {
                return Ok(line);
            }
            let Some(shell) = &mut self.shell else {
                let since = match self.was_set_back {
                    // The last line: a time can be that of many earlier lines.
                    true => "1".to_owned(),
                    // logcat begins at a whole second; earlier lines are of earlier steps.
                    false => format!("{}.000", self.from as u64),
                };
                let read = Command::program("logcat").args(["-v", "epoch", "-T", &since]);
                self.shell = Some(self.device.spawn(&read, SHELL).await?);
                continue;
            };
            let Ok(event) = tokio::time::timeout(SILENCE, shell.next()).await else {
                self.is_silent = true;
                continue;
            };
            match event {
                Ok(ShellEvent::Stdout(bytes)) => {
                    for line in self.splitter.push(&bytes) {
                        self.add(line);
                    }
                }
                Ok(ShellEvent::Stderr(bytes)) => {
                    self.said = heaptap_base::untrusted::sanitize_bytes(bytes.trim_ascii());
                }
                Ok(ShellEvent::Exit(_)) => self.ended().await?,
                Err(error) if error.is_connection() => self.ended().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Continues with the current time of the device if its clock was set back.
    async fn check_clock(&mut self) -> Result<(), Failure> {
        let now = match clock(&self.device).await {
            Ok(now) => now,
            // Silence alone is not an error.
            Err(_) if self.doubtful.is_empty() => f64::INFINITY,
            Err(error) => return Err(error),
        };
        self.is_silent = false;
        let doubtful = std::mem::take(&mut self.doubtful);
        if now >= self.latest - EARLIER {
            return Ok(());
        }
        self.was_set_back = true;
        if doubtful.is_empty() {
            // Some systems do not print new lines before the time of the last one.
            self.close();
            (self.from, self.latest) = (now, now);
            return Ok(());
        }
        let times = doubtful.iter().map(|(time, _)| *time);
        self.from = times.clone().fold(f64::INFINITY, f64::min);
        self.latest = times.fold(self.from, f64::max);
        self.ends = 0;
        self.lines
            .extend(doubtful.into_iter().map(|(_, line)| line));
        Ok(())
    }

    /// Closes the log, to read it again from its last line on.
    fn close(&mut self) {
        self.shell = None;
        self.splitter = Lines::default();
        // Times are in milliseconds: the last line does not come twice.
        self.from = self.latest + 0.0005;
    }

    /// Waits a moment before the log is read again.
    async fn ended(&mut self) -> Result<(), Failure> {
        self.close();
        self.ends += 1;
        if self.ends > ENDS {
            let message = format!("the log of the device cannot be read: {}", self.said);
            return Err(Failure::new(ErrorClass::Device, "command-failed", message));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// Adds a line, unless it is an earlier one or has no time.
    fn add(&mut self, line: String) {
        let time = line.split_whitespace().next();
        match time.and_then(|time| time.parse::<f64>().ok()) {
            Some(time) if time >= self.from => {
                self.latest = self.latest.max(time);
                self.ends = 0;
                self.lines.push_back(line);
            }
            Some(time) if time < self.from - EARLIER => self.doubtful.push((time, line)),
            _ => {}
        }
    }
}

/// Returns the clock of the device, seconds since 1970; 0 if it does not tell.
async fn clock(device: &Device) -> Result<f64, Failure> {
    let clock = Command::program("date").arg("+%s.%N");
    let now = device.text(&clock, SHELL).await?;
    let now = now.trim();
    let (seconds, _) = now.split_once('.').unwrap_or((now, ""));
    Ok(now.parse().or_else(|_| seconds.parse()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_adb::scripted::{Scripted, Step, features, packet, say, service};

    /// The clock of the device.
    fn date(now: &str) -> Vec<Step> {
        let mut script = service("shell,v2,raw:date +%s.%N");
        script.push(Step::Hear(5, None));
        let text = format!("{now}\n");
        script.push(say([packet(1, text.as_bytes()), packet(3, &[0])].concat()));
        script
    }

    fn logcat(since: &str, lines: &str) -> Vec<Step> {
        let mut script = service(&format!("shell,v2,raw:logcat -v epoch -T {since}"));
        script.push(say(packet(1, lines.as_bytes())));
        script.push(Step::Hang);
        script
    }

    async fn tail(scripts: Vec<Vec<Step>>) -> (LogTail, Scripted) {
        let scripts = [vec![features("shell_v2"), date("1000.5")], scripts].concat();
        let scripted = Scripted::new(scripts);
        let log = LogTail::begin(&scripted.phone()).await.unwrap();
        (log, scripted)
    }

    #[tokio::test(start_paused = true)]
    async fn lines_after_the_clock_was_set_back_are_new() {
        let lines = "1000.100 old\n1001.000 one\n500.000 two\n";
        let (mut log, scripted) = tail(vec![
            logcat("1000.000", lines),
            date("500.100"),
            // Without a line for a while: the clock is still the same.
            date("510.100"),
            // It was set back once more.
            date("90.500"),
            logcat("1", "500.000 two\n91.000 three\n"),
        ])
        .await;
        for wanted in ["1001.000 one", "500.000 two"] {
            assert_eq!(log.line().await.unwrap(), wanted);
        }
        // The last line before it cannot be distinguished from a new one.
        assert_eq!(log.line().await.unwrap(), "500.000 two");
        assert_eq!(log.line().await.unwrap(), "91.000 three");
        assert_eq!(scripted.complaints(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_an_earlier_clock_are_old() {
        let lines = "500.000 old\n1001.000 one\n";
        let (mut log, scripted) = tail(vec![logcat("1000.000", lines), date("1001.100")]).await;
        assert_eq!(log.line().await.unwrap(), "1001.000 one");
        assert_eq!(scripted.complaints(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_stays_is_not_repeated_at_once() {
        let refused = |what: &str| {
            let mut script = service(what);
            script.truncate(2);
            script
        };
        let (mut log, _) = tail(vec![refused("shell,v2,raw:logcat"); 3]).await;
        let began = tokio::time::Instant::now();
        for _ in 0..3 {
            log.line().await.unwrap_err();
        }
        assert!(began.elapsed() >= 2 * PAUSE);
    }
}
