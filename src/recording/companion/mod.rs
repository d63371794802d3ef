//! Companion data (`record --with`): continuous samples of memory and garbage collections, and full
//! captures at each label and at the end. Decides the order of captures, writes the timeline in the
//! recording directory, and ensures that failures here do not affect the recording.
//!
//! | module | contents |
//! |---|---|
//! | `at_label` | a label: its processes, and the names of its files |
//! | `file` | `memory.jsonl`, and line files while they are written |
//! | `logcat` | log output of the targets, line by line |
//! | `collections` | `gc.jsonl`, written at the end |
//! | `allocations`, `java`, `meminfo`, `smaps` | captures at a label |
//! | `watching` | continuous observation of the device, and its messages |
//! | `unobserved` | times without an observer, as far as the log has them |
//! | `leftovers` | remains of a killed recorder |
//! | `summary` | companion data for the manifest |

mod allocations;
mod at_label;
mod collections;
mod file;
mod java;
mod leftovers;
mod logcat;
mod meminfo;
mod smaps;
mod summary;
mod unobserved;
mod watching;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::allocations::Tracking;
use self::at_label::{At, NotTaken};
pub(super) use self::collections::write as write_collections;
pub use self::file::{LinesFile, TimelineFile};
pub(super) use self::java::{
    DumpHeaps, HeapsAtLabel, impossible as java_impossible, put_names as put_java_names,
};
use self::java::{Heaps, SeparateHeaps};
pub(crate) use self::leftovers::is_part_of;
pub(super) use self::leftovers::{
    join as join_part, join_finished, move_along, part_output, parts_of, recording_of,
    remove_empty, remove_unwritten, sweep,
};
pub(super) use self::summary::{section, warnings};
pub(super) use self::unobserved::complete;
pub(crate) use self::watching::Shares;
use self::watching::Watching;
use super::companion_options::{CompanionOptions, Source};
use super::events::{CompanionEvent, EventHandler, RecordEvent, warn};
use super::plan::Plan;
use crate::heaps::java::DIRECTORY;
use heaptap_adb::{Device, RETURN_LIMIT};
use heaptap_base::units::counted;
use heaptap_capture::observe::OurWindows;
use heaptap_capture::provoke::{Cancel, Canceller};
use heaptap_capture::session::{self, Controls, FollowEnd, LabelWatch, Session, SessionState};
use heaptap_model::timeline::{self, Label, Missed, MissedReason, Observation, Unread};

/// Interval of checks for new labels.
const LOOK: Duration = Duration::from_millis(200);
/// Time limit of one attempt to reconnect to the device.
const RETURN_STEP: Duration = Duration::from_secs(30);
/// Pause between two questions whether it is there.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Note for a recording of garbage collections whose data sources did not all start: kernel tracing
/// is the one that other tools might use.
const NOT_STARTED: &str = "some data sources did not start in time, maybe because another tool \
    uses kernel tracing; garbage collections might come only from the log";

/// The recording of companion data. Dropping it stops it; earlier observations are in the file.
pub(super) struct Companion {
    running: Option<Running>,
}

struct Running {
    ask: mpsc::UnboundedSender<()>,
    give_up: Canceller,
    device: Device,
    is_away: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Companion {
    /// Starts recording the companion data of `plan` for `session`, with Java heaps by
    /// `dump_heaps`.
    pub(super) fn begin(
        session: &Session,
        plan: &Plan,
        dump_heaps: DumpHeaps,
        on_event: &EventHandler,
    ) -> Companion {
        if plan.companions.is_empty() {
            return Companion { running: None };
        }
        let timeline = match TimelineFile::timeline_in(&session.header().output) {
            Ok(file) => file,
            Err(error) => {
                warn(on_event, format!("cannot record companion data: {error}"));
                return Companion { running: None };
            }
        };
        if plan.companions.gc && session.is_slow() {
            let at = session.state().started_ns.unwrap_or(0);
            let unread = Unread {
                source: timeline::Source::Ftrace,
                why: NOT_STARTED.to_owned(),
            };
            on_event(RecordEvent::Companion(CompanionEvent::Unreadable {
                why: unread.to_string(),
            }));
            timeline.see(at, 0, Observation::Unreadable(unread));
        }
        let (ask, asked) = mpsc::unbounded_channel();
        let (give_up, given_up) = Cancel::new();
        let is_away = Arc::new(AtomicBool::new(false));
        let spine = Spine {
            shared: Capturing {
                device: session.device().clone(),
                session_state: session.state().clone(),
                companions: plan.companions,
                timeline,
                windows: OurWindows::default(),
                given_up,
                is_away: Arc::clone(&is_away),
                heaps: Arc::new(Heaps::new(session, plan, dump_heaps)),
                on_event: EventHandler::clone(on_event),
                tracking: None,
            },
            labels: session.watch_labels(),
            waiting: VecDeque::new(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(spine.run(asked));
        Companion {
            running: Some(Running {
                ask,
                give_up,
                device: session.device().clone(),
                is_away,
                tasks,
            }),
        }
    }

    /// Begins the captures at the end of the recording.
    pub(super) fn last(&self, followed: FollowEnd) {
        if let Some(running) = &self.running
            && followed != FollowEnd::Rebooted
        {
            // It might have ended by itself.
            let _ = running.ask.send(());
        }
    }

    /// Waits for running captures. A second stop request ends them, or a device that does not return;
    /// the timeline lists them as missed.
    pub(super) async fn end(self, controls: &mut Controls) {
        let Some(mut running) = self.running else {
            return;
        };
        drop(running.ask);
        let away = async {
            while running.device.wait_ready(RETURN_LIMIT).await.is_ok() {
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        tokio::select! {
            _ = running.tasks.join_next() => return,
            () = session::stop_asked(controls) => {}
            () = away => running.is_away.store(true, Ordering::Relaxed),
        }
        running.give_up.cancel();
        running.tasks.join_next().await;
    }
}

/// Works until it is done, or until a second stop request; `None` in the latter case.
async fn until<T>(given_up: &Cancel, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = given_up.wait() => None,
        done = work => Some(done),
    }
}

struct CaptureRequest {
    number: u32,
    /// `None` at the end.
    label: Option<session::Label>,
}

/// What all captures of a recording use.
#[derive(Clone)]
struct Capturing {
    device: Device,
    session_state: SessionState,
    companions: CompanionOptions,
    timeline: TimelineFile,
    windows: OurWindows,
    /// The second stop request, or a device that does not return.
    given_up: Cancel,
    is_away: Arc<AtomicBool>,
    heaps: Arc<Heaps>,
    on_event: EventHandler,
    tracking: Option<Tracking>,
}

impl Capturing {
    fn directory(&self) -> &Path {
        &self.session_state.header.output
    }
}

struct Spine {
    shared: Capturing,
    labels: LabelWatch,
    waiting: VecDeque<CaptureRequest>,
}

impl Spine {
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<()>) {
        let mut taking: JoinSet<()> = JoinSet::new();
        let given_up = self.shared.given_up.clone();
        if self.shared.companions.smaps {
            // Before the first label, so that users know early that nothing will be captured.
            let warning = smaps::warn_of_obstacle(
                self.shared.device.clone(),
                self.shared.session_state.clone(),
                EventHandler::clone(&self.shared.on_event),
            );
            let given_up = given_up.clone();
            taking.spawn(async move {
                until(&given_up, warning).await;
            });
        }
        let mut attaching = JoinSet::new();
        if self.shared.companions.allocations {
            let (device, session_state) = (&self.shared.device, &self.shared.session_state);
            let tracking =
                Tracking::begin(device, session_state, &self.shared.on_event, &mut attaching);
            self.shared.tracking = Some(tracking);
        }
        let watching = self.shared.companions.observes().then(|| {
            Watching::begin(
                &self.shared.device,
                &self.shared.session_state,
                self.shared.companions,
                &self.shared.timeline,
                &self.shared.windows,
                &self.shared.on_event,
            )
        });
        let mut look = tokio::time::interval(LOOK);
        let mut ending = false;
        loop {
            if taking.is_empty() {
                match self.waiting.pop_front() {
                    Some(wish) => self.begin(wish, &mut taking),
                    None if ending => break,
                    None => {}
                }
            }
            tokio::select! {
                _ = look.tick() => self.look(),
                Some(_) = taking.join_next() => {}
                last = asked.recv(), if !ending => {
                    self.look();
                    ending = true;
                    if last.is_some() {
                        let number = u32::try_from(self.labels.count()).unwrap_or(u32::MAX);
                        let number = number.saturating_add(1);
                        self.waiting.push_back(CaptureRequest { number, label: None });
                    }
                }
            }
        }
        attaching.shutdown().await;
        let observers = async {
            if let Some(tracking) = &self.shared.tracking {
                tracking.end().await;
            }
            if let Some(watching) = watching {
                watching.end().await;
            }
        };
        // Without them, the rest of the log is missing.
        until(&given_up, observers).await;
        self.look();
        match self.shared.timeline.finish() {
            Ok(0) => {}
            Ok(lost) => warn(
                &self.shared.on_event,
                format!(
                    "{} did not fit in {}",
                    counted(lost, "entry", "entries"),
                    self.shared.timeline.path().display()
                ),
            ),
            Err(error) => self.not_written(&error),
        }
    }

    /// Handles new labels, and write errors.
    fn look(&mut self) {
        for (number, label) in self.labels.new_labels() {
            let seen = Observation::Label(Label {
                label: label.label.clone(),
            });
            self.shared.timeline.see(label.boot_ns, 0, seen);
            self.waiting.push_back(CaptureRequest {
                number,
                label: Some(label),
            });
        }
        if let Some(error) = self.shared.timeline.failure() {
            self.not_written(&error);
        }
        if self.shared.timeline.is_unlocked() {
            let path = self.shared.timeline.path().display();
            warn(
                &self.shared.on_event,
                format!(
                    "{path} is not locked, because its file system does not support locks; do not \
                     let another heaptap write to it meanwhile"
                ),
            );
        }
    }

    fn not_written(&self, error: &std::io::Error) {
        let path = self.shared.timeline.path().display();
        warn(
            &self.shared.on_event,
            format!("cannot write {path}: {error}"),
        );
    }

    fn begin(&self, wish: CaptureRequest, taking: &mut JoinSet<()>) {
        let taker = Taker {
            shared: self.shared.clone(),
            asked_ns: wish.label.as_ref().map_or(0, |label| label.boot_ns),
            wish,
        };
        taking.spawn(taker.run());
    }
}

/// Performs all captures of one label.
struct Taker {
    shared: Capturing,
    wish: CaptureRequest,
    /// Time of the label, BOOTTIME in ns.
    asked_ns: u64,
}

impl Taker {
    async fn run(mut self) {
        if self.asked_ns == 0 {
            // If this fails, the captures ask the device again.
            let now = until(&self.shared.given_up, session::moment(&self.shared.device)).await;
            if let Some(Ok(now)) = now {
                self.asked_ns = now.boot_ns;
            }
        }
        let companions = self.shared.companions;
        let mut taken = Vec::new();
        let mut missed = Vec::new();
        let label = self.wish.label.as_ref().map_or("", |label| &label.label);
        // Allocations first, because the other captures make the app allocate. Mappings before
        // meminfo, which makes the app collect garbage. The Java heap last, because its dump
        // briefly doubles the process.
        for source in [
            Source::Allocations,
            Source::Smaps,
            Source::Meminfo,
            Source::Java,
        ] {
            if !companions.has(source) {
                continue;
            }
            let captured = match until(&self.shared.given_up, self.take(source)).await {
                Some(Ok(Some(separate))) => separate.merge().await.map_err(|why| (None, why)),
                Some(captured) => captured.map(|_| ()),
                None => Err((None, self.stopped(source, label))),
            };
            match captured {
                Ok(()) => taken.push(source),
                Err((reason, why)) => {
                    self.shared.timeline.see(
                        self.asked_ns,
                        0,
                        Observation::Missed(Missed {
                            what: source.word().to_owned(),
                            label: label.to_owned(),
                            number: self.wish.number,
                            reason,
                            why: why.clone(),
                        }),
                    );
                    missed.push((source, why));
                }
            }
        }
        if taken.is_empty() && missed.is_empty() {
            return;
        }
        (self.shared.on_event)(RecordEvent::Companion(CompanionEvent::Captured {
            label: label.to_owned(),
            taken,
            missed,
        }));
    }

    /// Returns why `source` is missing after a second stop request, or without the device.
    fn stopped(&self, source: Source, label: &str) -> String {
        let why = match self.shared.is_away.load(Ordering::Relaxed) {
            true => "the device did not return",
            false => "you stopped heaptap",
        };
        let own = self.shared.directory().join(DIRECTORY);
        let own = own.join(at_label::name_of(self.wish.number, label));
        let advice = (source == Source::Java).then(|| self.shared.heaps.left_advice(&own));
        match advice.flatten() {
            Some(advice) => format!("{why}; {advice}"),
            None => why.to_owned(),
        }
    }

    /// Captures `source`, waiting for a disconnected device. Returns the reason if it fails, and Java
    /// heaps that are still to be merged.
    async fn take(
        &self,
        source: Source,
    ) -> Result<Option<SeparateHeaps>, (Option<MissedReason>, String)> {
        loop {
            match self.try_to_take(source).await {
                Ok(captured) => return Ok(captured),
                Err(NotTaken::Because(why)) => return Err((None, why)),
                Err(NotTaken::NoTarget) => {
                    let reason = MissedReason::NoTarget;
                    return Err((Some(reason), reason.why().to_owned()));
                }
                Err(NotTaken::Away(error)) => {
                    if self.shared.device.wait_ready(RETURN_STEP).await.is_err() {
                        continue;
                    }
                    match session::moment(&self.shared.device).await {
                        Ok(now) if now.boot_id != self.shared.session_state.header.boot_id => {
                            return Err((None, format!("the device restarted ({error})")));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    async fn try_to_take(&self, source: Source) -> Result<Option<SeparateHeaps>, NotTaken> {
        if !self.shared.heaps.is_in(self.shared.directory()) {
            let directory = self.shared.directory().display();
            return Err(NotTaken::Because(format!(
                "{directory} was moved or removed"
            )));
        }
        let processes =
            session::matching_processes(&self.shared.device, &self.shared.session_state).await?;
        if processes.is_empty() {
            return Err(NotTaken::NoTarget);
        }
        let at = At {
            device: self.shared.device.clone(),
            directory: self.shared.directory().to_owned(),
            number: self.wish.number,
            label: self
                .wish
                .label
                .as_ref()
                .map_or_else(String::new, |label| label.label.clone()),
            boot_ns: self.asked_ns,
            processes,
            timeline: self.shared.timeline.clone(),
            windows: self.shared.windows.clone(),
        };
        match source {
            Source::Java => return java::capture(&at, &self.shared.heaps).await.map(Some),
            Source::Smaps => smaps::capture(&at).await?,
            Source::Meminfo => meminfo::capture(&at).await?,
            Source::Allocations => {
                if let Some(tracking) = &self.shared.tracking {
                    tracking.capture(&at).await?;
                }
            }
            Source::Gc => {}
        }
        Ok(None)
    }
}
