//! What is recorded beside the native heap (`record --with`): samples of memory and collections
//! all along, and whole captures at each label and at the end. Owns the order in which things
//! are taken, the timeline in the recording's folder, and that the recording suffers from
//! nothing that goes wrong here.
//!
//! | module | owns |
//! |---|---|
//! | `at` | a label's moment: its processes, the names of its files |
//! | `file` | `memory.jsonl`, and files of lines while they are being written |
//! | `logcat` | what the targets wrote into the log, line by line |
//! | `collections` | `gc.jsonl`, once all is known |
//! | `allocations`, `java`, `meminfo`, `smaps` | what is taken at a label, each |
//! | `watching` | the phone observed all along, and what of that is told |
//! | `later` | what nobody observed, as far as the log still has it |
//! | `left` | what a recorder that was killed left behind |
//! | `summary` | all of it as the manifest lists it |

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
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::allocations::Tracking;
use self::at_label::{At, NotTaken};
pub(super) use self::collections::write as write_collections;
pub use self::file::TimelineFile;
use self::java::Heaps;
pub(super) use self::java::{
    DumpHeaps, HeapsAtLabel, impossible as java_impossible, put_names as put_java_names,
};
pub(super) use self::leftovers::{is_part_of, join as join_part, move_along, parts_of};
pub(super) use self::summary::{section, warnings};
pub(super) use self::unobserved::complete;
pub(crate) use self::watching::Shares;
use self::watching::Watching;
use super::companion_options::{CompanionOptions, Source};
use super::events::{CompanionEvent, EventHandler, RecordEvent, warn};
use super::plan::Plan;
use crate::device::Device;
use crate::observe::OurWindows;
use crate::session::{self, Controls, FollowEnd, LabelWatch, Session, SessionState};
use crate::timeline::{self, Label, Missed, MissedReason, Observation, Unread};

/// Between two looks for a new label.
const LOOK: Duration = Duration::from_millis(200);
/// How long one attempt to get the phone back may take.
const RETURN_STEP: Duration = Duration::from_secs(30);

/// Where the phone's data sources did not all start: of those of a recording with collections, the
/// kernel's tracing is the one that other tools may hold.
const NOT_STARTED: &str = "not every data source started in time, and the kernel's tracing is one \
    that another tool may hold: collections may be those of the log alone";

/// What goes on beside a recording. Dropped, it stops where it is: what was seen is in the file.
pub(super) struct Companion {
    running: Option<Running>,
}

struct Running {
    ask: mpsc::UnboundedSender<()>,
    tasks: JoinSet<()>,
}

impl Companion {
    /// Begins to record what `plan` wants beside `session`; its Java heaps by `dump_heaps`.
    pub(super) fn begin(
        session: &Session,
        plan: &Plan,
        dump_heaps: DumpHeaps,
        on_event: &EventHandler,
    ) -> Companion {
        if plan.companions.is_empty() {
            return Companion { running: None };
        }
        let timeline = match TimelineFile::open(&session.header().output) {
            Ok(file) => file,
            Err(error) => {
                warn(on_event, format!("nothing is recorded beside: {error}"));
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
                why: format!("{}: {}", unread.source.word(), unread.why),
            }));
            timeline.see(at, 0, Observation::Unread(unread));
        }
        let (ask, asked) = mpsc::unbounded_channel();
        let spine = Spine {
            device: session.device().clone(),
            session_state: session.state().clone(),
            companions: plan.companions,
            labels: session.watch_labels(),
            timeline,
            windows: OurWindows::default(),
            heaps: Arc::new(Heaps::of(session, plan, dump_heaps)),
            on_event: EventHandler::clone(on_event),
            waiting: VecDeque::new(),
            tracking: None,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(spine.run(asked));
        Companion {
            running: Some(Running { ask, tasks }),
        }
    }

    /// The recording ends: what belongs to its end is taken from now on.
    pub(super) fn last(&self, followed: FollowEnd) {
        if let Some(running) = &self.running
            && followed != FollowEnd::Rebooted
        {
            // It may have ended by itself.
            let _ = running.ask.send(());
        }
    }

    /// Waits for what is still being taken, until a stop is asked for once more.
    pub(super) async fn end(self, controls: &mut Controls) {
        let Some(Running { ask, mut tasks }) = self.running else {
            return;
        };
        drop(ask);
        tokio::select! {
            _ = tasks.join_next() => {}
            () = session::stop_asked(controls) => {}
        }
    }
}

/// What is to be taken.
struct CaptureRequest {
    number: u32,
    /// `None` at the end.
    label: Option<session::Label>,
}

struct Spine {
    device: Device,
    session_state: SessionState,
    companions: CompanionOptions,
    labels: LabelWatch,
    timeline: TimelineFile,
    windows: OurWindows,
    heaps: Arc<Heaps>,
    on_event: EventHandler,
    waiting: VecDeque<CaptureRequest>,
    tracking: Option<Tracking>,
}

impl Spine {
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<()>) {
        let mut taking: JoinSet<()> = JoinSet::new();
        if self.companions.smaps {
            // Before the first label, so that whoever waits for one knows that nothing comes.
            taking.spawn(smaps::warn_of_obstacle(
                self.device.clone(),
                self.session_state.clone(),
                EventHandler::clone(&self.on_event),
            ));
        }
        let mut attaching = JoinSet::new();
        if self.companions.allocations {
            let (device, session_state) = (&self.device, &self.session_state);
            let tracking = Tracking::begin(device, session_state, &self.on_event, &mut attaching);
            self.tracking = Some(tracking);
        }
        let watching = self.companions.observes().then(|| {
            Watching::begin(
                &self.device,
                &self.session_state,
                self.companions,
                &self.timeline,
                &self.windows,
                &self.on_event,
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
        if let Some(tracking) = &self.tracking {
            tracking.end().await;
        }
        if let Some(watching) = watching {
            watching.end().await;
        }
        self.look();
        match self.timeline.finish() {
            Ok(0) => {}
            Ok(lost) => warn(
                &self.on_event,
                format!(
                    "{lost} entries found no room in {}",
                    self.timeline.path().display()
                ),
            ),
            Err(error) => self.not_written(&error),
        }
    }

    /// Takes note of new labels, and of a file that cannot be written.
    fn look(&mut self) {
        for (number, label) in self.labels.new_labels() {
            let seen = Observation::Label(Label {
                label: label.label.clone(),
            });
            self.timeline.see(label.boot_ns, 0, seen);
            self.waiting.push_back(CaptureRequest {
                number,
                label: Some(label),
            });
        }
        if let Some(error) = self.timeline.failure() {
            self.not_written(&error);
        }
        if self.timeline.is_unlocked() {
            let path = self.timeline.path().display();
            warn(
                &self.on_event,
                format!(
                    "{path} is written without a lock, since its folder knows none: let no other \
                     heaptap write to it meanwhile"
                ),
            );
        }
    }

    fn not_written(&self, error: &std::io::Error) {
        let path = self.timeline.path().display();
        warn(
            &self.on_event,
            format!("{path} could not be written: {error}"),
        );
    }

    fn begin(&self, wish: CaptureRequest, taking: &mut JoinSet<()>) {
        let taker = Taker {
            device: self.device.clone(),
            session_state: self.session_state.clone(),
            companions: self.companions,
            folder: self.folder(),
            timeline: self.timeline.clone(),
            windows: self.windows.clone(),
            heaps: Arc::clone(&self.heaps),
            on_event: EventHandler::clone(&self.on_event),
            tracking: self.tracking.clone(),
            asked_ns: wish.label.as_ref().map_or(0, |label| label.boot_ns),
            wish,
        };
        taking.spawn(taker.run());
    }

    fn folder(&self) -> PathBuf {
        self.session_state.header.output.clone()
    }
}

/// Takes everything for one label.
struct Taker {
    device: Device,
    session_state: SessionState,
    companions: CompanionOptions,
    folder: PathBuf,
    timeline: TimelineFile,
    windows: OurWindows,
    heaps: Arc<Heaps>,
    on_event: EventHandler,
    tracking: Option<Tracking>,
    wish: CaptureRequest,
    /// When the label was set, BOOTTIME ns.
    asked_ns: u64,
}

impl Taker {
    async fn run(mut self) {
        if self.asked_ns == 0 {
            // A phone that cannot say is asked again by whatever is taken.
            if let Ok(now) = session::moment(&self.device).await {
                self.asked_ns = now.boot_ns;
            }
        }
        let companions = self.companions;
        let mut taken = Vec::new();
        let mut missed = Vec::new();
        let label = self.wish.label.as_ref().map_or("", |label| &label.label);
        // Allocations first, since taking the others has the app allocate. Mappings before meminfo, which has the app collect its garbage; the Java heap last,
        // since its dump doubles the process for a moment.
        for source in [
            Source::Allocations,
            Source::Smaps,
            Source::Meminfo,
            Source::Java,
        ] {
            if !companions.has(source) {
                continue;
            }
            match self.take(source).await {
                Ok(()) => taken.push(source),
                Err((reason, why)) => {
                    self.timeline.see(
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
        (self.on_event)(RecordEvent::Companion(CompanionEvent::Captured {
            label: label.to_owned(),
            taken,
            missed,
        }));
    }

    /// Takes `source`, waiting for a phone that is away. Why not, where it fails.
    async fn take(&self, source: Source) -> Result<(), (Option<MissedReason>, String)> {
        loop {
            match self.try_to_take(source).await {
                Ok(()) => return Ok(()),
                Err(NotTaken::Because(why)) => return Err((None, why)),
                Err(NotTaken::NoTarget) => {
                    let reason = MissedReason::NoTarget;
                    return Err((Some(reason), reason.why().to_owned()));
                }
                Err(NotTaken::Away(error)) => {
                    if self.device.wait_ready(RETURN_STEP).await.is_err() {
                        continue;
                    }
                    match session::moment(&self.device).await {
                        Ok(now) if now.boot_id != self.session_state.header.boot_id => {
                            return Err((None, format!("the phone was restarted ({error})")));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    async fn try_to_take(&self, source: Source) -> Result<(), NotTaken> {
        let processes = session::matching_processes(&self.device, &self.session_state).await?;
        if processes.is_empty() {
            return Err(NotTaken::NoTarget);
        }
        let at = At {
            device: self.device.clone(),
            folder: self.folder.clone(),
            number: self.wish.number,
            label: self
                .wish
                .label
                .as_ref()
                .map_or_else(String::new, |label| label.label.clone()),
            boot_ns: self.asked_ns,
            processes,
            timeline: self.timeline.clone(),
            windows: self.windows.clone(),
        };
        match source {
            Source::Java => java::capture(&at, &self.heaps).await,
            Source::Smaps => smaps::capture(&at).await,
            Source::Meminfo => meminfo::capture(&at).await,
            Source::Allocations => match &self.tracking {
                Some(tracking) => tracking.capture(&at).await,
                None => Ok(()),
            },
            Source::Gc => Ok(()),
        }
    }
}
