//! The connection: the loop on the phone, followed until somebody asks for the end or the phone
//! is restarted. A lost connection is made again for as long as it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::collections::Collections;
use super::lines::Lines;
use super::log::{self, Position, Said, SharedPosition};
use super::ours::OurWindows;
use super::rounds::{Rounds, Step};
use super::{Event, Options, script};
use android_memory::gc::{self, Stamp};
use heaptap_adb::{Device, DeviceError, Shell, ShellEvent};
use heaptap_model::timeline::Source;

/// Time allowed for the loop to start.
const QUICK: Duration = Duration::from_secs(15);
/// A silence of the loop, beside the time it sleeps, after which the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(15);
/// How long one attempt to get the phone back may take.
const RETURN_STEP: Duration = Duration::from_secs(30);
/// So many logs are followed, each over a connection.
const LOGS: usize = 8;
/// The log of a process that is gone is followed for so many rounds more.
const LAST_ROUNDS: u32 = 5;
/// A loop that ends so often without a word will not do better.
const DUMB: u32 = 3;
/// How long the end waits for what is left in the log.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Why observing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was asked for.
    Asked,
    /// The phone was restarted.
    Rebooted,
    /// The phone's shell does not run the loop.
    Refused {
        /// What it says.
        why: String,
    },
}

/// Observes until `stop` is ready. `boot` is the boot id that the phone should have; the one it
/// has where `None`.
///
/// # Errors
/// Where the phone refuses the connection; one that is lost is made again.
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
                Ok(Watched::Ended { spoke: false }) => {
                    dumb += 1;
                    if dumb >= DUMB {
                        return Ok(End::Refused { why: words });
                    }
                    "the loop on the phone ended".to_owned()
                }
                Ok(Watched::Ended { spoke: true }) => {
                    dumb = 0;
                    "the loop on the phone ended".to_owned()
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
            // Whether it is back, the next attempt tells.
            let _ = self.device.wait_ready(RETURN_STEP).await;
            backoff = (backoff * 2).min(Duration::from_secs(5));
        }
    }

    /// One connection's worth of it.
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

    /// A round is over: logs follow the processes.
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
                let why = format!("the logs of {LOGS} processes are followed already");
                self.rounds.unread(pid, Source::Log, why, tell);
                continue;
            }
            // From before the process was first seen: it may have collected by then.
            let begin = self.rounds.first_ns();
            let epoch = self.rounds.clock.epoch_ns(begin);
            let position = Position::from(epoch.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0));
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
                let why = "logcat keeps ending: it is started again each 5 s, and what the \
                           phone's ring of the log lost by then is missing";
                self.rounds.unread(pid, Source::Log, why.to_owned(), tell);
            }
            Said::Refused { pid, why } => {
                let why = format!("its log cannot be followed: {why}");
                self.rounds.unread(pid, Source::Log, why, tell);
            }
            Said::Line {
                pid,
                text,
                is_local,
            } => {
                let rounds = &self.rounds;
                let at = |stamp: Stamp| match (is_local, stamp) {
                    (false, Stamp::Epoch(ns)) => {
                        rounds.clock.boot_ns(i64::try_from(ns).unwrap_or(i64::MAX))
                    }
                    _ => rounds.local_ns(stamp),
                };
                // Old logcats give the whole ring.
                let first = rounds.first_ns();
                let stamp = || gc::parse_line(&text)?.time;
                let is_old = is_local && stamp().and_then(at).is_some_and(|ns| ns < first);
                if is_old {
                    return;
                }
                let entry = self.collections.line(pid, &text, at);
                tell(Event::Line(text));
                if let Some(entry) = entry.filter(|entry| entry.boot_ns >= first) {
                    tell(Event::Seen(entry));
                }
            }
        }
    }

    /// What the log still holds, and what all of it cost.
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
                    // A phone that is away by now has told all it could.
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
        /// Whether a round of it came.
        spoke: bool,
    },
}
