//! Follows a running session with one shell loop on the device over one connection. The loop
//! reports each second and ends with perfetto. A lost connection is reopened for as long as the
//! caller is willing to wait; it never counts as the end of the recording.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::completion::Completion;
use super::event::{Control, Controls, Progress, SessionEvent};
use super::probe::{self, QUICK};
use super::session::Session;
use super::snapshot::{Asked, Taken};
use super::targets;
use crate::eligibility::free_bytes;
use crate::error::CaptureError;
use android_memory::status::{kilobytes, uptime_ns};
use heaptap_adb::{Command, DeviceError, Lines, Shell, ShellEvent};

/// Reports once a second and checks perfetto five times as often.
/// `$1` pid, `$2` the files that grow, `$3` pids of targets, the rest: names of targets.
const LOOP: &str = include_str!("../scripts/follow.sh").trim_ascii_end();

/// Maximum silence of the loop; after it the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(15);
/// Timeout of one attempt to reconnect to the device.
const RETURN_STEP: Duration = Duration::from_secs(30);

/// Maximum number of processes whose names are read between two reports.
const NAMES_AT_ONCE: usize = 16;
/// Maximum time that the end of a recording waits for names.
const LAST_NAMES: Duration = Duration::from_secs(2);

/// Reason why following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    /// perfetto is not running any more.
    Over,
    /// The device restarted.
    Rebooted,
    /// The caller requested the end.
    StopAsked,
    /// Every expected dump is complete.
    Complete,
}

/// Snapshots of the followed session, which are reported in the order of their requests.
struct Snapshots {
    done: mpsc::UnboundedSender<Taken>,
    taken: mpsc::UnboundedReceiver<Taken>,
    /// Those that wait for the next report of the device.
    asked: Vec<Asked>,
    /// Number of requests so far.
    requests: usize,
    /// Number of reported results.
    reported: usize,
    /// Results that wait for those of earlier requests.
    early: BTreeMap<usize, Taken>,
}

impl Snapshots {
    fn new() -> Self {
        let (done, taken) = mpsc::unbounded_channel();
        Self {
            done,
            taken,
            asked: Vec::new(),
            requests: 0,
            reported: 0,
            early: BTreeMap::new(),
        }
    }

    fn ask(&mut self, label: String) -> Asked {
        let asked = Asked::new(label, self.requests);
        self.requests += 1;
        asked
    }

    fn begin(&self, session: &Session, asked: Asked) {
        session.begin_snapshot(asked, self.done.clone());
    }
}

enum Line {
    Over,
    Rebooted,
    Report,
    Other,
}

impl Session {
    /// Follows the session until perfetto ends or the caller requests a stop. Survives any number
    /// of lost connections.
    ///
    /// # Errors
    /// Returns [`CaptureError::not_fetched`] if the device sends an unexpected answer or refuses the
    /// loop.
    pub async fn follow(&mut self, controls: &mut Controls) -> Result<FollowEnd, CaptureError> {
        if self.process().is_none() {
            return Ok(FollowEnd::Over);
        }
        let mut snapshots = Snapshots::new();
        let end = self.follow_to_end(controls, &mut snapshots).await;
        while let Ok(taken) = snapshots.taken.try_recv() {
            snapshots.early.insert(taken.number(), taken);
        }
        let mut early = snapshots.early.into_values();
        let reported = early.try_for_each(|taken| -> Result<(), CaptureError> {
            snapshots.asked.extend(self.end_snapshot(taken)?);
            Ok(())
        });
        for asked in snapshots.asked {
            self.miss_snapshot(asked, end.as_ref().err());
        }
        let end = end?;
        reported?;
        Ok(end)
    }

    async fn follow_to_end(
        &mut self,
        controls: &mut Controls,
        snapshots: &mut Snapshots,
    ) -> Result<FollowEnd, CaptureError> {
        let mut lost_at: Option<Instant> = None;
        let mut backoff = Duration::from_millis(100);
        let mut completion = std::mem::take(&mut self.completion);
        loop {
            let error = match self
                .watch(controls, snapshots, &mut lost_at, &mut completion)
                .await
            {
                Ok(end) => return Ok(end),
                Err(CaptureError::Device(error)) if error.is_connection() => error,
                Err(CaptureError::Device(error)) => {
                    return Err(self.not_fetched(error));
                }
                Err(other) => return Err(other),
            };
            if lost_at.is_none() {
                lost_at = Some(Instant::now());
                backoff = Duration::from_millis(100);
                self.tell(SessionEvent::ConnectionLost {
                    why: error.to_string(),
                });
            }
            let pause = tokio::time::sleep(backoff);
            let back = async {
                pause.await;
                self.device.wait_ready(RETURN_STEP).await
            };
            let mut back = std::pin::pin!(back);
            loop {
                tokio::select! {
                    // If it is not back, the next connection fails.
                    _ = &mut back => break,
                    control = controls.recv(), if !controls.is_closed() || !controls.is_empty() => {
                        match control {
                            Some(Control::Stop | Control::End) => return Ok(FollowEnd::StopAsked),
                            Some(Control::Snapshot { label }) => {
                                let asked = snapshots.ask(label);
                                snapshots.asked.push(asked);
                            }
                            None => {}
                        }
                    }
                }
            }
            backoff = (backoff * 2).min(Duration::from_secs(5));
        }
    }

    /// Follows the session over one connection.
    async fn watch(
        &mut self,
        controls: &mut Controls,
        snapshots: &mut Snapshots,
        lost_at: &mut Option<Instant>,
        completion: &mut Completion,
    ) -> Result<FollowEnd, CaptureError> {
        let mut shell = self.start_loop().await?;
        let mut lines = Lines::default();
        let mut report = Progress::default();
        // Runs concurrently, so that a slow device does not delay controls.
        let mut naming = JoinSet::new();
        loop {
            tokio::select! {
                event = tokio::time::timeout(SILENCE, shell.next()) => {
                    let event = event.unwrap_or_else(|_| Err(DeviceError::Deadline {
                        serial: self.device.serial().to_owned(),
                        what: "following the recording".to_owned(),
                        after: SILENCE,
                    }))?;
                    let bytes = match event {
                        ShellEvent::Stdout(bytes) => bytes,
                        ShellEvent::Stderr(_) => continue,
                        // The loop prints a line before its regular end; otherwise it was killed.
                        ShellEvent::Exit(_) => {
                            return Err(probe::lost(&self.device, "following the recording").into());
                        }
                    };
                    for line in lines.push(&bytes) {
                        match self.take_line(line.trim_end(), &mut report, lost_at) {
                            Line::Over => {
                                self.note_last_names(&mut naming).await?;
                                return Ok(FollowEnd::Over);
                            }
                            Line::Rebooted => return Ok(FollowEnd::Rebooted),
                            Line::Report => {
                                self.ask_new_names(&mut naming);
                                for asked in std::mem::take(&mut snapshots.asked) {
                                    snapshots.begin(self, asked);
                                }
                            }
                            Line::Other => {}
                        }
                    }
                }
                control = controls.recv(), if !controls.is_closed() || !controls.is_empty() => {
                    match control {
                        Some(Control::Stop | Control::End) => {
                            self.note_last_names(&mut naming).await?;
                            return Ok(FollowEnd::StopAsked);
                        }
                        Some(Control::Snapshot { label }) => {
                            let asked = snapshots.ask(label);
                            snapshots.begin(self, asked);
                        }
                        None => {}
                    }
                }
                () = completion.reached() => {
                    self.note_last_names(&mut naming).await?;
                    return Ok(FollowEnd::Complete);
                }
                Some(taken) = snapshots.taken.recv() => {
                    snapshots.early.insert(taken.number(), taken);
                    while let Some(taken) = snapshots.early.remove(&snapshots.reported) {
                        match self.end_snapshot(taken)? {
                            Some(again) => snapshots.asked.push(again),
                            None => snapshots.reported += 1,
                        }
                    }
                }
                Some(named) = naming.join_next() => self.note_named(named.unwrap_or_default())?,
            }
        }
    }

    /// Requests the names of processes in the last report that do not have one yet.
    fn ask_new_names(&self, naming: &mut JoinSet<Vec<(u32, String)>>) {
        if !naming.is_empty() {
            return;
        }
        let pids = self.last.iter().flat_map(|p| &p.pids).copied();
        let new: Vec<u32> = pids
            .filter(|pid| !self.state.seen.contains_key(pid))
            .take(NAMES_AT_ONCE)
            .collect();
        if !new.is_empty() {
            let device = self.device.clone();
            naming.spawn(async move { targets::names(&device, new).await });
        }
    }

    /// Processes the outstanding name requests, with a short timeout.
    async fn note_last_names(
        &mut self,
        naming: &mut JoinSet<Vec<(u32, String)>>,
    ) -> Result<(), CaptureError> {
        match tokio::time::timeout(LAST_NAMES, naming.join_next()).await {
            Ok(Some(named)) => self.note_named(named.unwrap_or_default()),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    async fn start_loop(&self) -> Result<Shell, CaptureError> {
        let header = self.header();
        let pid = self.process().map_or(0, |p| p.pid);
        // None of these paths contains blanks.
        let growing: Vec<&str> = match &header.heap_files {
            Some(heaps) => heaps.files.iter().map(|f| f.remote.as_str()).collect(),
            None => vec![&header.remote_path],
        };
        let targets: Vec<String> = header.pids.iter().map(u32::to_string).collect();
        let command = Command::script(LOOP)
            .called("following the recording")
            .arg(pid.to_string())
            .arg(growing.join(" "))
            .arg(targets.join(" "))
            .args(&header.names);
        Ok(self.device.spawn(&command, QUICK).await?)
    }

    fn take_line(
        &mut self,
        line: &str,
        report: &mut Progress,
        lost_at: &mut Option<Instant>,
    ) -> Line {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "boot" => {
                // A missing ID does not prove a restart: the device might be unable to start `cat`.
                let boot_id = probe::parse_boot_id(rest);
                if boot_id.is_some_and(|boot_id| boot_id != self.header().boot_id) {
                    return Line::Rebooted;
                }
                if let Some(since) = lost_at.take() {
                    self.tell(SessionEvent::Reconnected {
                        after: since.elapsed(),
                    });
                }
            }
            "up" => {
                let now = uptime_ns(rest).unwrap_or(0);
                self.up_ns = now;
                let began = self.state.started_ns.unwrap_or(now);
                report.elapsed = Duration::from_nanos(now.saturating_sub(began));
            }
            // Another process that got the PID after ours had ended.
            "stat" => {
                let now = probe::start_ticks(rest);
                let ours = self.process().map(|p| p.start_ticks);
                if now.is_some() && now != ours {
                    return self.found_over();
                }
            }
            "size" => {
                let bytes = rest.parse::<u64>().unwrap_or(0);
                report.trace_bytes = report.trace_bytes.saturating_add(bytes);
            }
            "free" => report.free_bytes = free_bytes(&[rest]),
            "pids" => report.pids.extend(probe::parse_pids(rest)),
            "VmRSS:\t" => {
                let bytes = kilobytes(rest.trim()).unwrap_or(0);
                let sum = report.rss_bytes.get_or_insert_default();
                *sum = sum.saturating_add(bytes);
            }
            "report" => {
                report.pids.sort_unstable();
                report.pids.dedup();
                let report = std::mem::take(report);
                self.last = Some(report.clone());
                self.tell(SessionEvent::Progress(report));
                return Line::Report;
            }
            "over" => return self.found_over(),
            _ => {}
        }
        Line::Other
    }

    fn found_over(&mut self) -> Line {
        // The start is noted slightly after it happened, so the process is older than that.
        let started_ns = self.process().map(|process| process.started_ns());
        let age = started_ns.and_then(|started_ns| self.up_ns.checked_sub(started_ns));
        self.over_after = age.map(Duration::from_nanos);
        Line::Over
    }
}
