//! The connection: follows the loop on the device until the caller requests the end or the device
//! restarts. A lost connection is reopened without a time limit.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::collections::Collections;
use super::event::Event;
use super::log::{self, Position, Said, SharedPosition};
use super::options::Options;
use super::own_collections::OurWindows;
use super::rounds::{Rounds, Step};
use super::script;
use heaptap_adb::{Device, DeviceError, Lines, Shell, ShellEvent};
use heaptap_model::timeline::Source;

/// Timeout for starting the loop.
const QUICK: Duration = Duration::from_secs(15);
/// Maximum silence of the loop, in addition to its pause; after it the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(15);
/// Timeout of one attempt to reconnect to the device.
const RETURN_STEP: Duration = Duration::from_secs(30);
/// Maximum number of followed logs, each over its own connection.
const LOGS: usize = 8;
/// Number of rounds for which the log of a process that is gone is still followed.
const LAST_ROUNDS: u32 = 5;
/// Maximum number of loops in a row that end without output.
const DUMB: u32 = 3;
/// Maximum time that the end waits for the rest of the log.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Reason why an observation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The caller requested it.
    Asked,
    /// The device restarted.
    Rebooted,
    /// The device's shell cannot run the loop.
    Refused {
        /// Output of the shell.
        why: String,
    },
}

/// Observes until `stop` is ready. `boot` is the expected boot ID of the device; `None` accepts
/// any.
///
/// # Errors
/// Returns an error if the device refuses the connection; a lost one is reopened.
pub async fn observe(
    device: &Device,
    boot: Option<String>,
    options: &Options,
    windows: OurWindows,
    stop: impl Future<Output = ()>,
    mut tell: impl FnMut(Event),
) -> Result<End, DeviceError> {
    let (said, heard) = mpsc::channel(256);
    let mut observer = Observer {
        device: device.clone(),
        rounds: Rounds::new(options, boot, windows.clone()),
        collections: Collections::new(windows),
        wants_log: options.log,
        logs: BTreeMap::new(),
        followers: JoinSet::new(),
        said,
        heard,
    };
    let end = {
        let observing = observer.observe(options, &mut tell);
        tokio::pin!(stop, observing);
        tokio::select! {
            biased;
            end = &mut observing => end,
            () = stop => Ok(End::Asked),
        }
    };
    observer
        .finish(matches!(end, Ok(End::Asked)), &mut tell)
        .await;
    end
}

struct Observer {
    device: Device,
    rounds: Rounds,
    collections: Collections,
    wants_log: bool,
    logs: BTreeMap<u32, Log>,
    followers: JoinSet<()>,
    said: mpsc::Sender<Said>,
    heard: mpsc::Receiver<Said>,
}

struct Log {
    position: SharedPosition,
    follower: AbortHandle,
    rounds_without: u32,
}

impl Observer {
    async fn observe(
        &mut self,
        options: &Options,
        tell: &mut impl FnMut(Event),
    ) -> Result<End, DeviceError> {
        let mut lost_at: Option<Instant> = None;
        let mut backoff = Duration::from_millis(100);
        let mut dumb = 0;
        loop {
            let mut words = String::new();
            let why = match self.watch(options, &mut lost_at, &mut words, tell).await {
                Ok(Watched::Rebooted) => return Ok(End::Rebooted),
                Ok(Watched::Ended { spoke }) => {
                    dumb = if spoke { 0 } else { dumb + 1 };
                    if dumb >= DUMB {
                        return Ok(End::Refused { why: words });
                    }
                    "the loop on the device ended".to_owned()
                }
                Err(error) if error.is_connection() => error.to_string(),
                Err(error) => return Err(error),
            };
            self.rounds.lost(&why);
            if lost_at.is_none() {
                lost_at = Some(Instant::now());
                backoff = Duration::from_millis(100);
                tell(Event::Lost { why });
            }
            tokio::time::sleep(backoff).await;
            // The next attempt shows whether it is back.
            let _ = self.device.wait_ready(RETURN_STEP).await;
            backoff = (backoff * 2).min(Duration::from_secs(5));
        }
    }

    /// Observes over one connection.
    async fn watch(
        &mut self,
        options: &Options,
        lost_at: &mut Option<Instant>,
        words: &mut String,
        tell: &mut impl FnMut(Event),
    ) -> Result<Watched, DeviceError> {
        let mut shell: Shell = self.device.spawn(&script::command(options), QUICK).await?;
        self.rounds.sent();
        let mut lines = Lines::default();
        let mut spoke = false;
        let silence = SILENCE + options.every;
        loop {
            tokio::select! {
                event = tokio::time::timeout(silence, shell.next()) => {
                    let event = event.unwrap_or_else(|_| Err(DeviceError::Deadline {
                        serial: self.device.serial().to_owned(),
                        what: "observing memory".to_owned(),
                        after: silence,
                    }))?;
                    let bytes = match event {
                        ShellEvent::Stdout(bytes) => bytes,
                        ShellEvent::Stderr(bytes) => {
                            if words.is_empty() {
                                words.extend(String::from_utf8_lossy(&bytes).chars().take(200));
                            }
                            continue;
                        }
                        ShellEvent::Exit(_) => return Ok(Watched::Ended { spoke }),
                    };
                    for line in lines.push(&bytes) {
                        if self.rounds.line(&line, tell) == Step::Rebooted {
                            return Ok(Watched::Rebooted);
                        }
                        if line.starts_with("t ") {
                            spoke = true;
                            if let Some(since) = lost_at.take() {
                                tell(Event::Back { after: since.elapsed() });
                            }
                        } else if line.starts_with("e ") {
                            self.round(tell);
                        }
                    }
                }
                Some(said) = self.heard.recv() => self.take(said, tell),
            }
        }
    }

    /// Handles the end of a round: starts and stops following logs.
    fn round(&mut self, tell: &mut impl FnMut(Event)) {
        for entry in self.collections.settle(Some(self.rounds.boot_ns())) {
            tell(Event::Seen(entry));
        }
        if !self.wants_log {
            return;
        }
        let pids = self.rounds.pids();
        for (pid, log) in &mut self.logs {
            match pids.contains(pid) {
                true => log.rounds_without = 0,
                false => log.rounds_without += 1,
            }
            if log.rounds_without == LAST_ROUNDS {
                log.follower.abort();
            }
        }
        self.logs.retain(|_, log| log.rounds_without < LAST_ROUNDS);
        for pid in pids {
            if self.logs.contains_key(&pid) {
                continue;
            }
            if self.logs.len() >= LOGS {
                let why = format!("heaptap already follows the logs of {LOGS} processes");
                self.rounds.unread(pid, Source::Log, why, tell);
                continue;
            }
            // Starts before the process was first seen, because it might have collected by then.
            let begin = self.rounds.first_ns();
            let position = Position::from(self.rounds.clock.epoch_ns(begin));
            let follower = self.followers.spawn(log::follow(
                self.device.clone(),
                pid,
                SharedPosition::clone(&position),
                self.said.clone(),
            ));
            let log = Log {
                position,
                follower,
                rounds_without: 0,
            };
            self.logs.insert(pid, log);
        }
    }

    fn take(&mut self, said: Said, tell: &mut impl FnMut(Event)) {
        match said {
            Said::Sent => self.rounds.sent(),
            Said::Bytes(bytes) => self.rounds.received(bytes),
            Said::Restless { pid } => {
                let why = "logcat keeps ending; it is restarted every 5 s, and lines that the \
                           device's log buffer drops meanwhile are missing";
                self.rounds.unread(pid, Source::Log, why.to_owned(), tell);
            }
            Said::Refused { pid, why } => {
                let why = format!("cannot follow the log: {why}");
                self.rounds.unread(pid, Source::Log, why, tell);
            }
            Said::Line { pid, text } => {
                let first = self.rounds.first_ns();
                let entry = self.collections.line(pid, &text, &self.rounds.clock);
                tell(Event::Line(text));
                if let Some(entry) = entry.filter(|entry| entry.boot_ns >= first) {
                    tell(Event::Seen(entry));
                }
            }
        }
    }

    /// Reads the rest of the log, and reports the total cost.
    async fn finish(mut self, reachable: bool, tell: &mut impl FnMut(Event)) {
        self.followers.shutdown().await;
        while let Ok(said) = self.heard.try_recv() {
            self.take(said, tell);
        }
        if reachable && self.wants_log {
            let logs = std::mem::take(&mut self.logs);
            let (device, said) = (self.device.clone(), self.said.clone());
            let mut reading = JoinSet::new();
            reading.spawn(async move {
                for (pid, log) in logs {
                    // A device that is disconnected by now cannot add anything.
                    let _ = log::read_rest(&device, pid, &log.position, &said).await;
                }
            });
            let end = Instant::now() + LAST_LINES;
            loop {
                tokio::select! {
                    biased;
                    Some(said) = self.heard.recv() => self.take(said, tell),
                    _ = reading.join_next() => break,
                    () = tokio::time::sleep_until(end) => break,
                }
            }
            while let Ok(said) = self.heard.try_recv() {
                self.take(said, tell);
            }
        }
        for entry in self.collections.settle(None) {
            tell(Event::Seen(entry));
        }
        if let Some(entry) = self.rounds.last() {
            tell(Event::Seen(entry));
        }
    }
}

enum Watched {
    Rebooted,
    /// The loop ended by itself.
    Ended {
        /// It completed a round.
        spoke: bool,
    },
}
