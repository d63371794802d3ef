//! Continuous observation of the device: observations go into the timeline immediately, and
//! important ones are reported to the user.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::file::TimelineFile;
use super::logcat::LogcatFile;
use crate::recording::companion_options::CompanionOptions;
use crate::recording::events::{CompanionEvent, EventHandler, RecordEvent, warn};
use heaptap_adb::Device;
use heaptap_capture::observe::{self, End, Event, Options, OurWindows, PARTS_EVERY, PartsOptions};
use heaptap_capture::session::SessionState;
use heaptap_model::timeline::{Observation, ObservationCost};

/// Interval of samples of resident memory.
const EVERY: Duration = Duration::from_secs(1);

/// A running observation. Dropping it stops it.
pub(super) struct Watching {
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

impl Watching {
    /// Begins to observe the targets of `session_state`.
    pub(super) fn begin(
        device: &Device,
        session_state: &SessionState,
        companions: CompanionOptions,
        timeline: &TimelineFile,
        windows: &OurWindows,
        on_event: &EventHandler,
    ) -> Watching {
        let options = options(session_state, companions);
        let boot = session_state.header.boot_id.0.clone();
        let (stop, stopped) = oneshot::channel();
        let device = device.clone();
        let windows = windows.clone();
        let mut seeing = Seeing {
            timeline: timeline.clone(),
            logcat: companions
                .gc
                .then(|| logcat(&session_state.header.output, on_event))
                .flatten(),
            logcat_is_full: false,
            on_event: EventHandler::clone(on_event),
            tally: Tally::default(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let stop = async move {
                // Dropping it also stops observation.
                let _ = stopped.await;
            };
            let end = observe::observe(&device, Some(boot), &options, windows, stop, |event| {
                seeing.event(event);
            })
            .await;
            match end {
                Ok(End::Asked | End::Rebooted) => {}
                Ok(End::Refused { why }) => warn(
                    &seeing.on_event,
                    format!("cannot observe the device: its shell reported {why}"),
                ),
                Err(error) => warn(
                    &seeing.on_event,
                    format!("cannot observe the device: {error}"),
                ),
            }
            seeing.tell_all();
        });
        Watching { stop, tasks }
    }

    /// Ends observation, after reading the rest of the log.
    pub(super) async fn end(mut self) {
        // It might have ended by itself.
        let _ = self.stop.send(());
        self.tasks.join_next().await;
    }
}

fn logcat(directory: &Path, on_event: &EventHandler) -> Option<LogcatFile> {
    let opened = LogcatFile::open(directory);
    if let Err(error) = &opened {
        warn(on_event, format!("cannot save the log: {error}"));
    }
    opened.ok()
}

fn options(session_state: &SessionState, companions: CompanionOptions) -> Options {
    let header = &session_state.header;
    // pidof does not support patterns: their processes are those that were observed.
    let (patterns, names): (Vec<_>, Vec<_>) = header
        .names
        .iter()
        .cloned()
        .partition(|name| name.contains('*'));
    let mut pids: BTreeMap<u32, String> = header
        .pids
        .iter()
        .map(|pid| {
            (
                *pid,
                session_state.seen.get(pid).cloned().unwrap_or_default(),
            )
        })
        .collect();
    if !patterns.is_empty() {
        let seen = session_state.seen.iter();
        pids.extend(
            seen.filter(|(_, name)| !names.contains(name))
                .map(|(pid, name)| (*pid, name.clone())),
        );
    }
    Options {
        names,
        pids: pids.into_iter().collect(),
        every: EVERY,
        parts: companions.meminfo.then_some(PartsOptions {
            every: PARTS_EVERY,
            allow_gc: false,
        }),
        graphics: companions.meminfo,
        log: companions.gc,
    }
}

/// Counters of observations.
#[derive(Default)]
struct Tally {
    samples: u64,
    collections: u64,
    spent: Option<(u64, ObservationCost)>,
}

struct Seeing {
    timeline: TimelineFile,
    logcat: Option<LogcatFile>,
    logcat_is_full: bool,
    on_event: EventHandler,
    tally: Tally,
}

impl Seeing {
    fn event(&mut self, event: Event) {
        let entry = match event {
            Event::Seen(entry) => entry,
            Event::Line(line) => {
                self.line(&line);
                return;
            }
            Event::Round { boot_ns, spent } => {
                self.tally.spent = Some((boot_ns, spent));
                return;
            }
            // The recording itself reports these.
            Event::Lost { .. } | Event::Back { .. } => return,
        };
        match &entry.seen {
            Observation::Resident(_) | Observation::Parts(_) | Observation::Graphics(_) => {
                self.tally.samples += 1
            }
            Observation::Collection(collection) if !collection.ours => self.tally.collections += 1,
            Observation::Process(process) if process.restarted => {
                (self.on_event)(RecordEvent::Companion(CompanionEvent::Restarted {
                    name: process.name.clone(),
                    pid: entry.pid,
                }));
            }
            Observation::Unreadable(unread) => {
                (self.on_event)(RecordEvent::Companion(CompanionEvent::Unreadable {
                    why: unread.to_string(),
                }))
            }
            _ => {}
        }
        self.timeline.add(&entry);
    }

    fn line(&mut self, line: &str) {
        let Some(logcat) = &self.logcat else {
            return;
        };
        if !logcat.add(line) && !self.logcat_is_full {
            self.logcat_is_full = true;
            let file = super::logcat::FILE;
            warn(
                &self.on_event,
                format!("{file} is full; later lines are left out"),
            );
        }
    }

    fn tell_all(&self) {
        if let Some(Err(why)) = self.logcat.as_ref().map(LogcatFile::finish) {
            warn(&self.on_event, why);
        }
        let shares = self
            .tally
            .spent
            .map(|(until, spent)| Shares::new(&spent, until));
        let shares = shares.flatten();
        (self.on_event)(RecordEvent::Companion(CompanionEvent::Observed {
            samples: self.tally.samples,
            collections: self.tally.collections,
            core: shares.map(|shares| shares.core),
            services: shares.map(|shares| shares.services),
            bytes_per_s: shares.map(|shares| shares.bytes_per_s),
        }));
    }
}

/// Cost of observing, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares {
    /// Share of one core used by the loop on the device.
    pub(crate) core: f64,
    /// Upper bound of the share of one core used by services that answered.
    pub(crate) services: f64,
    /// Bytes a second over the connection.
    pub(crate) bytes_per_s: f64,
}

impl Shares {
    /// Returns the shares until `until_ns`; `None` if no time has passed.
    #[expect(
        clippy::cast_precision_loss,
        reason = "shares are shown with two digits"
    )]
    pub(crate) fn new(spent: &ObservationCost, until_ns: u64) -> Option<Shares> {
        let time = until_ns.checked_sub(spent.since_ns).filter(|ns| *ns > 0)? as f64;
        Some(Shares {
            core: spent.cpu_ns as f64 / time,
            services: spent.waited_ns as f64 / time,
            bytes_per_s: spent.bytes as f64 / (time / 1e9),
        })
    }
}
