//! A running recording on the console: status line, events as lines, keys and signals as requests.
//! Shared by `record` and `stop`.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::missing::Remedy;
use super::paths::near;
use super::summary::Wrote;
use super::{java_summary, summary};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::names::NamesArgs;
use crate::console::keys::{Keys, Pressed, Typing};
use crate::console::signals::Signal;
use crate::console::{Console, Style};
use crate::heaps::selector::check_label;
use crate::names::device_libs::PullEvent;
use crate::recording::companion_options::Source;
use crate::recording::events::{Checked, CompanionEvent, EventHandler, RecordEvent, Step};
use crate::recording::outcome::Finished;
use heaptap_base::error::Failure;
use heaptap_base::units::{ByteSize, HumanDuration, counted};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::eligibility::{Finding, FindingId, Severity};
use heaptap_capture::session::{Control, Controls, Progress, SessionEvent, SnapshotMethod};
use heaptap_model::names::module;

/// Shows events, and forwards requests.
pub(crate) struct Show {
    console: Console,
    /// True if the recording is followed to its end.
    follows: bool,
    subject: Subject,
    bar: ProgressBar,
    keys: Option<Keys>,
    typing: Typing,
    last: Progress,
    /// The first processes that were seen, and their resident memory then.
    first_rss: Option<(Vec<u32>, u64)>,
    snapshots: usize,
    /// Unreleased bytes in the dumps of the last snapshot.
    unreleased: Option<u64>,
    /// Labels requested here.
    labels: BTreeSet<String>,
    can_snapshot: bool,
    recording: bool,
    /// End of the recording time, if it has one and its end was not yet reported.
    ends_after: Option<Duration>,
    stopping: bool,
    pulling: Option<ProgressBar>,
}

/// Usual duration of a final dump: only a longer one is reported.
const LAST_DUMP_TAKES: Duration = Duration::from_secs(3);

/// Free space on the device that is shown, because it might end the recording.
const LITTLE_SPACE: u64 = 1 << 30;

/// Reason for a recording without snapshots.
const NO_SNAPSHOTS: &str = "none in this recording, because this build cannot dump on request and \
    periodic dumps are off (--no-snapshots or --dump-at-max)";

/// The displayed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Recording,
    /// A recording that only reports problems step by step.
    Demo,
    Dump {
        waits_for_oom: bool,
    },
}

impl Show {
    /// Creates a console for a recording; `follows` accepts keys.
    pub(crate) fn new(ctx: &Context, follows: bool) -> Show {
        Show {
            follows,
            subject: Subject::Recording,
            bar: ctx.console.status(),
            keys: (follows && ctx.console.shows_progress())
                .then(Keys::read)
                .flatten(),
            console: ctx.console.clone(),
            typing: Typing::default(),
            last: Progress::default(),
            first_rss: None,
            snapshots: 0,
            unreleased: None,
            labels: BTreeSet::new(),
            can_snapshot: false,
            recording: false,
            ends_after: None,
            stopping: false,
            pulling: None,
        }
    }

    /// Creates a console for the demo.
    #[cfg(feature = "virtual-phone")]
    pub(crate) fn of_demo(ctx: &Context) -> Show {
        Show {
            subject: Subject::Demo,
            ..Show::new(ctx, false)
        }
    }

    /// Creates a console for a Java heap dump.
    pub(crate) fn of_dump(ctx: &Context, follows: bool, waits_for_oom: bool) -> Show {
        Show {
            subject: Subject::Dump { waits_for_oom },
            ..Show::new(ctx, follows)
        }
    }

    /// Runs `work`, shows its events, and forwards requests by signals and keys.
    pub(crate) async fn during<T>(
        &mut self,
        mut signals: mpsc::UnboundedReceiver<Signal>,
        work: impl AsyncFnOnce(&mut Controls, &EventHandler) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (ask, mut controls) = mpsc::unbounded_channel();
        let (happened, mut events) = mpsc::unbounded_channel();
        let on_event: EventHandler = Arc::new(move |event| {
            // The receiver lives as long as the work.
            let _ = happened.send(event);
        });
        let mut work = pin!(work(&mut controls, &on_event));
        let result = loop {
            let keys = self.keys.as_mut();
            let key = async {
                match keys {
                    Some(keys) => keys.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(event) = events.recv() => self.event(&event),
                Some(signal) = signals.recv() => {
                    if signal == Signal::Interrupt && self.typing.cancel() {
                        self.console.say(
                            "snapshot canceled; press Ctrl-C again to end the recording",
                        );
                        self.draw();
                    } else {
                        self.asked_to_stop();
                        let _ = ask.send(Control::Stop);
                    }
                }
                key = key => {
                    let takes = self.takes_labels();
                    match self.typing.take(key, takes) {
                        Pressed::Nothing => {}
                        Pressed::Refused(why) => self.console.say(why),
                        Pressed::Label(label) => {
                            let label = self.label_or_default(label);
                            match check_label(&label) {
                                Ok(()) => drop(ask.send(Control::Snapshot { label })),
                                Err(why) => {
                                    self.console.say(format_args!("{why}; no snapshot was taken"));
                                }
                            }
                        }
                    }
                    self.draw();
                }
                result = &mut work => break result,
            }
        };
        while let Ok(event) = events.try_recv() {
            self.event(&event);
        }
        self.keys = None;
        self.bar.finish_and_clear();
        if let Some(bar) = self.pulling.take() {
            bar.finish_and_clear();
        }
        result
    }

    /// Returns an error if a label would have no effect now.
    fn takes_labels(&self) -> Result<(), &'static str> {
        match self.subject {
            Subject::Dump { .. } => Err("a Java heap dump does not support snapshots"),
            Subject::Recording | Subject::Demo if !self.can_snapshot => Err(NO_SNAPSHOTS),
            Subject::Recording | Subject::Demo if self.stopping => {
                Err("the recording is ending; snapshots are not possible any more")
            }
            Subject::Recording | Subject::Demo if !self.recording => {
                Err("no snapshot taken: the device is not recording now")
            }
            Subject::Recording | Subject::Demo => Ok(()),
        }
    }

    fn label_or_default(&self, label: String) -> String {
        if label.is_empty() {
            format!("snapshot-{}", self.snapshots + 1)
        } else {
            label
        }
    }

    fn asked_to_stop(&mut self) {
        if self.recording && self.stopping {
            self.console.say("stopped waiting for the final dump");
        }
        self.stopping = true;
    }

    fn event(&mut self, event: &RecordEvent) {
        self.console.event(event);
        match event {
            RecordEvent::Checked(checked) => self.checked(checked),
            RecordEvent::Session(event) => self.session(event),
            RecordEvent::Library(event) => self.library(event),
            RecordEvent::Companion(event) => self.beside(event),
            RecordEvent::Step(step) => self.step(step),
        }
        self.draw();
    }

    fn checked(&mut self, checked: &Checked) {
        self.can_snapshot =
            checked.snapshots != SnapshotMethod::Impossible || !checked.with.is_empty();
        let lasts = checked.duration_ms.map(Duration::from_millis);
        // heaptap itself limits the duration of a dump.
        self.ends_after = lasts.filter(|_| self.subject == Subject::Recording);
        self.console.say(&checked.device);
        for (who, finding) in by_cause(&checked.findings) {
            if self.subject == Subject::Demo && finding.severity == Severity::Note {
                continue;
            }
            let is_note = finding.severity == Severity::Note;
            let (style, word) = match is_note {
                true => (Style::Dim, "note"),
                false => (Style::Warn, "warning"),
            };
            let label = self.console.on_stderr(style, word);
            let text = match finding.id {
                FindingId::NotRunning if is_note => format!("{who}; waiting for it to start"),
                _ => format!("{who} ({})", finding.why),
            };
            let mut lines = vec![format!("{label}: {text}")];
            if let Some(fix) = &finding.fix {
                let label = self.console.on_stderr(Style::Help, "help");
                lines.push(format!("{label}: {fix}"));
            }
            for line in lines {
                // Quiet mode leaves out only notes.
                match is_note {
                    true => self.console.say(line),
                    false => self.console.complain(line),
                }
            }
        }
        for notice in &checked.notices {
            self.console.warn(notice);
        }
        if self.subject != Subject::Recording {
            return;
        }
        match &checked.snapshots {
            SnapshotMethod::Signal { .. } => {}
            SnapshotMethod::Continuous { period_ms, armed } => {
                let period = HumanDuration(Duration::from_millis(*period_ms));
                match armed {
                    true => self.console.say(format_args!(
                        "snapshots: a dump every {period}, because this build cannot dump on \
                         request; `--no-snapshots` turns them off"
                    )),
                    false => self.console.say(format_args!(
                        "snapshots: a label waits up to {period} for the next dump"
                    )),
                }
            }
            // Its notice describes the contents of a label.
            SnapshotMethod::Impossible if checked.with.contains(&Source::Allocations) => {}
            SnapshotMethod::Impossible if !checked.with.is_empty() => {
                let words: Vec<&str> = checked.with.iter().map(|source| source.word()).collect();
                self.console.say(format_args!(
                    "snapshots: a label captures {} but no native dump, because this build cannot \
                     dump on request and periodic dumps are off",
                    words.join(", ")
                ));
            }
            SnapshotMethod::Impossible => {
                self.console.say(format_args!("snapshots: {NO_SNAPSHOTS}"))
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Launched { package } => self.console.say(format_args!("started {package}")),
            Step::Selinux { enforcing } => self.console.say(match enforcing {
                true => "SELinux is enforcing again",
                false => "SELinux is permissive until the recording ends",
            }),
            Step::Converting => self.console.set_status(&self.bar, "converting …"),
            Step::Again {
                interval_bytes,
                kept,
            } => {
                let kept = near(kept);
                self.console.say(format_args!(
                    "the buffer overran (kept in {}); recording again, sampling every {}",
                    kept.display(),
                    ByteSize(*interval_bytes)
                ));
            }
            Step::DumpAgain { why, kept } => {
                self.recording = false;
                self.console.say(why.describe());
                if let Some(kept) = kept {
                    self.console.say(format_args!(
                        "kept the incomplete dump in {}",
                        near(kept).display()
                    ));
                }
            }
            Step::CollectingFirst { session, output } => {
                let which = match session {
                    Some(session) => format!("the earlier session {session}"),
                    None => "an earlier recording".to_owned(),
                };
                let output = near(output);
                self.console.say(format_args!(
                    "fetching {which} first, into {}",
                    output.display()
                ));
            }
            Step::WaitingForOther { session } => self.console.say(format_args!(
                "another heaptap is busy with session {session}; waiting for it"
            )),
        }
    }

    fn library(&mut self, event: &PullEvent) {
        if let PullEvent::Asking { path, done, of } = event {
            self.console.set_status(
                &self.bar,
                format!(
                    "fetching {} for its symbols ({} of {of}) …",
                    module(path),
                    done + 1
                ),
            );
        }
    }

    fn beside(&self, event: &CompanionEvent) {
        let is_demo = self.subject == Subject::Demo;
        match event {
            CompanionEvent::Captured { missed, .. } if is_demo && missed.is_empty() => {}
            // The demo does not report unreadable files of the device.
            CompanionEvent::Unreadable { .. } if is_demo => {}
            CompanionEvent::Captured {
                label,
                taken,
                missed,
            } => {
                let at = match label.as_str() {
                    "" => "at the end".to_owned(),
                    label => format!("snapshot {}", sanitize(label)),
                };
                let words: Vec<&str> = taken.iter().map(|source| source.word()).collect();
                if !words.is_empty() {
                    self.console
                        .say(format_args!("{at}: captured {}", words.join(", ")));
                }
                // The summary that follows reports missing captures of the end.
                for (source, why) in missed.iter().filter(|_| !label.is_empty()) {
                    self.console
                        .warn(format_args!("{at}: no {source}: {}", sanitize(why)));
                }
            }
            CompanionEvent::Unreadable { why } => {
                self.console
                    .note(format_args!("cannot read {}", sanitize(why)));
            }
            CompanionEvent::Restarted { name, pid } => {
                self.console
                    .say(format_args!("{} restarted as pid {pid}", sanitize(name)));
            }
            CompanionEvent::Observed {
                samples,
                collections,
                core,
                services,
                bytes_per_s,
            } => {
                let mut text = format!(
                    "observed: {}, {}",
                    counted(*samples, "sample", "samples"),
                    counted(*collections, "collection", "collections")
                );
                if let (Some(core), Some(services), Some(bytes)) = (core, services, bytes_per_s) {
                    text.push_str(&format!("; {}", cost(*core, *services, *bytes)));
                }
                self.console.detail(text);
            }
        }
    }

    fn session(&mut self, event: &SessionEvent) {
        let console = &self.console;
        let is_demo = self.subject == Subject::Demo;
        match event {
            SessionEvent::Started { .. } if is_demo => {
                self.recording = true;
                console.say("recording, with a snapshot after each iteration …");
            }
            SessionEvent::Stopping if is_demo => self.stopping = true,
            SessionEvent::SnapshotRequested { .. } if is_demo => self.snapshots += 1,
            SessionEvent::SnapshotTaken { no_dump: None, .. } if is_demo => {}
            // Its dump might still arrive: labels without a dump are reported at the end.
            SessionEvent::SnapshotFailed { .. } if is_demo => {}
            SessionEvent::Started { session, .. } => {
                self.recording = true;
                let keys = match (self.keys.is_some(), self.can_snapshot) {
                    _ if !self.follows => "",
                    (true, true) => "; s, label, Enter: take snapshot; Ctrl-C: end",
                    _ => "; Ctrl-C: end",
                };
                console.say(match self.subject {
                    Subject::Recording | Subject::Demo => format!("recording {session}{keys}"),
                    Subject::Dump {
                        waits_for_oom: false,
                    } => format!("dumping, session {session}{keys}"),
                    Subject::Dump {
                        waits_for_oom: true,
                    } => format!("waiting for an OutOfMemoryError, session {session}{keys}"),
                });
            }
            SessionEvent::Starting => console.say(
                "the device is slow to start the recording; waiting up to 30 s for its data \
                 sources",
            ),
            SessionEvent::SlowStart => console.warn(
                "a data source of the device is slow to start; the recording continues without it \
                 for now",
            ),
            SessionEvent::Progress(progress) => {
                self.last = progress.clone();
                if let (None, Some(rss)) = (&self.first_rss, progress.rss_bytes) {
                    self.first_rss = Some((progress.pids.clone(), rss));
                }
                let is_over = |ends: Duration| progress.elapsed > ends + LAST_DUMP_TAKES;
                if !self.stopping && self.ends_after.is_some_and(is_over) {
                    self.ends_after = None;
                    console.say(
                        "recording time is over; waiting for the device to write the final dump \
                         (press Ctrl-C twice to leave it there)",
                    );
                }
            }
            // While a recording ends, the wait has a limit.
            SessionEvent::ConnectionLost { why } if self.stopping => console.say(format_args!(
                "{why}; waiting up to two minutes for it to reconnect"
            )),
            SessionEvent::ConnectionLost { why } => console.say(format_args!(
                "{why}; waiting for it to reconnect: it keeps recording unless it restarted"
            )),
            SessionEvent::Reconnected { after } => {
                console.say(format_args!("reconnected after {}", HumanDuration(*after)));
            }
            SessionEvent::Stopping => {
                self.stopping = true;
                console.say("ending; waiting for the final dump (Ctrl-C leaves it on the device)");
            }
            SessionEvent::Ended { size } => {
                self.recording = false;
                console.detail(format_args!(
                    "recording ended on the device: {}",
                    ByteSize(*size)
                ));
            }
            SessionEvent::Pulling { bytes, total } => {
                let bar = self
                    .pulling
                    .get_or_insert_with(|| console.bytes_bar(*total, "fetching"));
                bar.set_position(*bytes);
            }
            SessionEvent::PullRetry { why } => {
                console.say(format_args!(
                    "fetching was interrupted ({why}); trying again"
                ));
            }
            SessionEvent::Pulled { bytes } => {
                if let Some(bar) = self.pulling.take() {
                    bar.finish_and_clear();
                }
                console.detail(format_args!("fetched {}", ByteSize(*bytes)));
            }
            SessionEvent::SnapshotRequested { label } => {
                self.snapshots += 1;
                if !self.labels.insert(label.clone()) {
                    warn_of_repeated(console, label);
                }
                console.say(format_args!("requested snapshot {label}"));
            }
            SessionEvent::SnapshotTaken {
                label,
                lag,
                waited,
                dumps,
                unreleased_bytes,
                no_dump,
            } => {
                if *unreleased_bytes > 0 {
                    self.unreleased = Some(*unreleased_bytes);
                }
                console.say(format_args!(
                    "snapshot {label}: {}",
                    match no_dump {
                        Some(why) => without_dump(why),
                        None => snapshot_times(*lag, *waited, *dumps, *unreleased_bytes),
                    }
                ));
            }
            SessionEvent::SnapshotFailed { label, why, .. } => {
                console.warn(format_args!("snapshot {label}: {why}"));
            }
            SessionEvent::Warning { text } => console.warn(text),
        }
    }

    fn draw(&self) {
        let text = match &self.typing {
            Typing::Label(text) => format!("label: {text}▏  Enter: take snapshot  Esc: cancel"),
            Typing::Idle if !self.recording => return,
            Typing::Idle => self.status_line(),
        };
        self.console.set_status(&self.bar, text);
    }

    fn status_line(&self) -> String {
        let last = &self.last;
        let mut parts = vec![
            HumanDuration(last.elapsed).to_string(),
            match last.pids.len() {
                0 => "no process".to_owned(),
                n => counted(n as u64, "process", "processes"),
            },
        ];
        if let Some(rss) = last.rss_bytes {
            parts.push(match self.growth(rss) {
                Some(growth) => format!("RSS {} ({growth})", ByteSize(rss)),
                None => format!("RSS {}", ByteSize(rss)),
            });
        }
        if let Some(bytes) = self.unreleased {
            parts.push(format!("last snapshot {} unreleased", ByteSize(bytes)));
        }
        parts.push(format!("trace {}", ByteSize(last.trace_bytes)));
        if let Some(free) = last.free_bytes.filter(|&free| free < LITTLE_SPACE) {
            parts.push(format!("{} free", ByteSize(free)));
        }
        match self.snapshots {
            0 => {}
            n => parts.push(counted(n as u64, "snapshot", "snapshots")),
        }
        if self.stopping {
            parts.push("ending …".to_owned());
        } else if self.keys.is_some() {
            parts.push("?: keys".to_owned());
        }
        parts.join("  ")
    }

    /// Growth of the resident memory since the first report of the same processes.
    fn growth(&self, rss: u64) -> Option<String> {
        let (pids, first) = self.first_rss.as_ref()?;
        let is_same = *pids == self.last.pids && *first > 0;
        let size = ByteSize(rss.abs_diff(*first));
        let sign = if rss < *first { '-' } else { '+' };
        is_same.then(|| format!("{sign}{size} since the start"))
    }
}

/// Returns the time of a snapshot and its delay until it reached the file: perfetto writes the file
/// periodically.
pub(crate) fn snapshot_times(
    lag: Duration,
    waited: Duration,
    dumps: usize,
    unreleased_bytes: u64,
) -> String {
    let what = match dumps {
        1 => "dump taken".to_owned(),
        n => format!("{n} dumps taken"),
    };
    let unreleased = match unreleased_bytes {
        0 => String::new(),
        bytes => format!("{} unreleased, ", ByteSize(bytes)),
    };
    format!(
        "{unreleased}{what} {} after the request, in the file after {}",
        HumanDuration(lag),
        HumanDuration(waited)
    )
}

/// Message for a label without a dump.
pub(crate) fn without_dump(why: &str) -> String {
    format!("no native dump: {why}; companion data is captured")
}

/// Groups findings that differ only in the name of the process. Returns the message of each group,
/// and one of its findings.
fn by_cause<'f>(findings: &'f [Finding]) -> Vec<(String, &'f Finding)> {
    let parts = |finding: &'f Finding| finding.what.split_once(' ').unwrap_or(("", &finding.what));
    let is_same = |a: &Finding, b: &Finding| (a.id, &a.why, &a.fix) == (b.id, &b.why, &b.fix);
    let groups = summary::by_cause(findings, parts, is_same).into_iter();
    groups
        .map(|(names, what, finding)| match names.as_slice() {
            [_] => (finding.what.clone(), finding),
            names => (format!("{}: each {what}", names.join(", ")), finding),
        })
        .collect()
}

/// Returns a finished recording as the document of `--json`.
pub(crate) fn document(finished: &Finished, page: Option<&Path>) -> Value {
    json!({
        "event": "finished",
        "session": finished.session,
        "output": finished.output.to_string_lossy(),
        "report": page.map(Path::to_string_lossy),
        "manifest": finished.manifest,
        "java_heaps": finished.java_heaps,
    })
}

/// Shows a finished recording, and returns its exit code. `page` is the path of the written page.
pub(crate) fn finished(
    ctx: &Context,
    finished: &Finished,
    page: Option<&Path>,
    asked: Asked,
) -> Outcome {
    let console = &ctx.console;
    let Finished {
        output,
        manifest,
        heaps,
        java_heaps,
        ..
    } = finished;
    let wrote = Wrote::recording(&finished.packets, page.is_some());
    let again = again(output);
    let remedy = match asked {
        Asked::Names => Remedy::Again(&again),
        Asked::NoNames => Remedy::NotAsked,
        Asked::Demo => Remedy::Demo,
    };
    if console.is_json() {
        console.json(&document(finished, page));
        summary::tell(console, output, manifest, &wrote, heaps, remedy);
    } else {
        java_summary::show(console, java_heaps);
        summary::show(console, output, manifest, &wrote, heaps, remedy);
    }
    Outcome::from(finished.class)
}

/// Requested symbolization, which decides the message about missing symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// In all places.
    Names,
    /// Nowhere: `--no-symbolize`.
    NoNames,
    /// In the build that is part of the demo.
    #[cfg_attr(
        not(feature = "virtual-phone"),
        expect(dead_code, reason = "only the demo uses it")
    )]
    Demo,
}

impl NamesArgs {
    /// Returns what these flags request.
    pub(crate) fn asked(&self) -> Asked {
        match self.no_symbolize {
            true => Asked::NoNames,
            false => Asked::Names,
        }
    }
}

/// Formats the cost of observing a device.
pub(crate) fn cost(core: f64, services: f64, bytes_per_s: f64) -> String {
    let bytes = ByteSize(bytes_per_s.max(0.0) as u64);
    format!(
        "observing took {:.1}% of one core, services up to {:.1}% more, and {bytes}/s",
        core * 100.0,
        services * 100.0
    )
}

/// Warns about a repeated label, and explains its meaning.
pub(crate) fn warn_of_repeated(console: &Console, label: &str) {
    let label = sanitize(label);
    console.warn_with_help(
        format_args!("the recording already has a snapshot `{label}`"),
        Some(&format!(
            "@{label} selects the last one; select earlier ones by the number of their dump, @N"
        )),
    );
}

/// Returns the command that symbolizes a recording again.
pub(crate) fn again(directory: &Path) -> String {
    format!("heaptap symbolize {}", quoted_path(near(directory)))
}
