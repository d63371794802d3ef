//! A recording as it goes, on the console: the status line, what happens as lines, keys and
//! signals as requests. Shared by `record`, `stop` and `collect`.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::json;
use tokio::sync::mpsc;

use super::missing::Remedy;
use super::paths::near;
use super::summary::Wrote;
use super::{java_summary, summary};
use crate::console::Console;
use crate::console::Style;
use crate::console::keys::{Keys, Pressed, Typing};
use crate::console::signals::Signal;
use crate::eligibility::{Finding, Severity};
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::names::NamesArgs;
use crate::heaps::selector::check_label;
use crate::names::module;
use crate::naming::device_libs::{DeviceLibs, PullEvent, PullLibs};
use crate::naming::frames::LookupControl;
use crate::recording::companion_options::Source;
use crate::recording::events::{Checked, CompanionEvent, EventHandler, RecordEvent, Step};
use crate::recording::outcome::Finished;
use crate::session::{Control, Controls, Progress, SessionEvent, SnapshotMethod};
use crate::units::{ByteSize, HumanDuration};
use crate::untrusted::sanitize;
use crate::untrusted::shell::quoted_path;

/// Shows what happens, and passes on what is asked for.
pub(crate) struct Show {
    console: Console,
    /// Whether the recording is followed to its end.
    follows: bool,
    subject: Subject,
    bar: ProgressBar,
    keys: Option<Keys>,
    typing: Typing,
    last: Progress,
    snapshots: usize,
    /// Labels that were asked for here.
    labels: BTreeSet<String>,
    can_snapshot: bool,
    recording: bool,
    /// When its time is over, as far as it has one and that is not said yet.
    ends_after: Option<Duration>,
    stopping: bool,
    pulling: Option<ProgressBar>,
}

/// The usual time of a last dump: only a longer one is reported.
const LAST_DUMP_TAKES: Duration = Duration::from_secs(3);

/// Why a recording takes no labels.
const NO_SNAPSHOTS: &str = "none in this recording, because this build cannot dump on request and \
                            no dumps are armed (--no-snapshots or --dump-at-max)";

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Recording,
    /// A recording of which only what goes wrong is told step by step.
    Demo,
    Dump {
        waits_for_oom: bool,
    },
}

impl Show {
    /// A console for a recording; `follows` where keys may be pressed meanwhile.
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
            snapshots: 0,
            labels: BTreeSet::new(),
            can_snapshot: false,
            recording: false,
            ends_after: None,
            stopping: false,
            pulling: None,
        }
    }

    /// The same for the demo.
    #[cfg(feature = "virtual-phone")]
    pub(crate) fn of_demo(ctx: &Context) -> Show {
        Show {
            subject: Subject::Demo,
            ..Show::new(ctx, false)
        }
    }

    /// The same for a dump of Java heaps.
    pub(crate) fn of_dump(ctx: &Context, follows: bool, waits_for_oom: bool) -> Show {
        Show {
            subject: Subject::Dump { waits_for_oom },
            ..Show::new(ctx, follows)
        }
    }

    /// Does `work`, showing its events and giving it what signals and keys ask for.
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
                        self.console.say("no snapshot taken; Ctrl-C again ends the recording");
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
                                Err(why) => self.console.say(why),
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

    /// Why a label would come to nothing now, if so.
    fn takes_labels(&self) -> Result<(), &'static str> {
        match self.subject {
            Subject::Dump { .. } => Err("a dump of a Java heap takes no snapshots"),
            Subject::Recording | Subject::Demo if !self.can_snapshot => Err(NO_SNAPSHOTS),
            Subject::Recording | Subject::Demo if self.stopping => {
                Err("the recording is ending: no more snapshots")
            }
            Subject::Recording | Subject::Demo if !self.recording => {
                Err("no snapshot taken: nothing is recorded now")
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
            self.console.say("not waiting any longer");
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
        // The duration of a dump is heaptap's own.
        self.ends_after = lasts.filter(|_| self.subject == Subject::Recording);
        self.console.say(&checked.device);
        for (who, finding) in by_cause(&checked.findings) {
            if self.subject == Subject::Demo && finding.severity == Severity::Note {
                continue;
            }
            let style = match finding.severity {
                Severity::Blocks | Severity::Warning => Style::Warn,
                Severity::Note => Style::Dim,
            };
            let word = match finding.severity {
                Severity::Blocks | Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let label = self.console.on_stderr(style, word);
            self.console
                .say(format_args!("{label}: {who} ({})", finding.why));
            if let Some(fix) = &finding.fix {
                let label = self.console.on_stderr(Style::Help, "help");
                self.console.say(format_args!("{label}: {fix}"));
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
                         request; --no-snapshots turns them off"
                    )),
                    false => self.console.say(format_args!(
                        "snapshots: a label waits for the next dump, at most {period}"
                    )),
                }
            }
            // Its notice says what a label has.
            SnapshotMethod::Impossible if checked.with.contains(&Source::Allocations) => {}
            SnapshotMethod::Impossible if !checked.with.is_empty() => {
                let words: Vec<&str> = checked.with.iter().map(|source| source.word()).collect();
                self.console.say(format_args!(
                    "snapshots: a label takes {} but no native dump, because this build cannot \
                     dump on request and no dumps are armed",
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
            Step::Converting => self.console.set_status(&self.bar, "converting …"),
            Step::Again { interval_bytes } => self.console.say(format_args!(
                "the buffer overran: recording again, sampling every {}",
                ByteSize(*interval_bytes)
            )),
            Step::DumpAgain { why, kept } => {
                self.recording = false;
                self.console.say(why.describe());
                if let Some(kept) = kept {
                    self.console.say(format_args!(
                        "the incomplete one is kept in {}",
                        near(kept).display()
                    ));
                }
            }
            Step::CollectingFirst { session } => self.console.say(match session {
                Some(session) => format!("fetching the earlier recording {session} first"),
                None => "fetching an earlier recording first".to_owned(),
            }),
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
            // Which files a phone lets nobody read is of no use to who only looks.
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
                        .say(format_args!("{at}: {} taken", words.join(", ")));
                }
                // What is missing of the end, the summary that follows says.
                for (source, why) in missed.iter().filter(|_| !label.is_empty()) {
                    self.console
                        .warn(format_args!("{at}: no {source}: {}", sanitize(why)));
                }
            }
            CompanionEvent::Unreadable { why } => {
                self.console
                    .say(format_args!("not readable: {}", sanitize(why)));
            }
            CompanionEvent::Restarted { name, pid } => {
                self.console.say(format_args!(
                    "{} was started again: pid {pid}",
                    sanitize(name)
                ));
            }
            CompanionEvent::Observed {
                samples,
                collections,
                core,
                services,
                bytes_per_s,
            } => {
                let mut text = format!("observed: {samples} samples, {collections} collections");
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
                console.say("recording, with a snapshot after each round …");
            }
            SessionEvent::Stopping if is_demo => self.stopping = true,
            SessionEvent::SnapshotRequested { .. } if is_demo => self.snapshots += 1,
            SessionEvent::SnapshotTaken { no_dump: None, .. } if is_demo => {}
            // Its dump may still come: a label that has none in the end is told then.
            SessionEvent::SnapshotFailed { .. } if is_demo => {}
            SessionEvent::Started { session, .. } => {
                self.recording = true;
                let keys = match (self.keys.is_some(), self.can_snapshot) {
                    _ if !self.follows => "",
                    (true, true) => "; s, a label, Enter: snapshot; Ctrl-C ends it",
                    _ => "; Ctrl-C ends it",
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
                "the phone is slow to start the recording: its data sources are awaited for 30 s",
            ),
            SessionEvent::SlowStart => console.warn(
                "a data source of the phone is slow to start; the recording goes on without \
                 waiting for it",
            ),
            SessionEvent::Progress(progress) => {
                self.last = progress.clone();
                let is_over = |ends: Duration| progress.elapsed > ends + LAST_DUMP_TAKES;
                if !self.stopping && self.ends_after.is_some_and(is_over) {
                    self.ends_after = None;
                    console.say(
                        "its time is over: waiting for the phone to write the last dump (Ctrl-C \
                         twice leaves it there)",
                    );
                }
            }
            SessionEvent::ConnectionLost { why } => console.say(format_args!(
                "{why}; the recording goes on on the phone, waiting for it to come back"
            )),
            SessionEvent::Reconnected { after } => {
                console.say(format_args!(
                    "connected again after {}",
                    HumanDuration(*after)
                ));
            }
            SessionEvent::Stopping => {
                self.stopping = true;
                console.say("ending: waiting for the last dump (Ctrl-C again to leave it there)");
            }
            SessionEvent::Ended { size } => {
                self.recording = false;
                console.detail(format_args!("ended on the phone: {}", ByteSize(*size)));
            }
            SessionEvent::Pulling { bytes, total } => {
                let bar = self
                    .pulling
                    .get_or_insert_with(|| console.bytes_bar(*total, "fetching"));
                bar.set_position(*bytes);
            }
            SessionEvent::PullRetry { why } => {
                console.say(format_args!("fetching broke off ({why}); trying again"));
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
                console.say(format_args!("snapshot {label}: asked for"));
            }
            SessionEvent::SnapshotTaken {
                label,
                lag,
                waited,
                dumps,
                no_dump,
            } => console.say(format_args!(
                "snapshot {label}: {}",
                match no_dump {
                    Some(why) => without_dump(why),
                    None => snapshot_times(*lag, *waited, *dumps),
                }
            )),
            SessionEvent::SnapshotFailed { label, why } => {
                console.warn(format_args!("snapshot {label}: {why}"));
            }
            SessionEvent::Warning { text } => console.warn(text),
        }
    }

    fn draw(&self) {
        let text = match &self.typing {
            Typing::Label(text) => format!("label: {text}▏  Enter: take it  Esc: not"),
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
                1 => "1 process".to_owned(),
                n => format!("{n} processes"),
            },
            format!("trace {}", ByteSize(last.trace_bytes)),
        ];
        if let Some(free) = last.free_bytes {
            parts.push(format!("{} free", ByteSize(free)));
        }
        match self.snapshots {
            0 => {}
            1 => parts.push("1 snapshot".to_owned()),
            n => parts.push(format!("{n} snapshots")),
        }
        if self.stopping {
            parts.push("ending …".to_owned());
        }
        parts.join("  ")
    }
}

/// When a snapshot was made, and how long its way into the file took: perfetto writes there
/// once in a while.
pub(crate) fn snapshot_times(lag: Duration, waited: Duration, dumps: usize) -> String {
    let what = match dumps {
        1 => "dump taken".to_owned(),
        n => format!("{n} dumps taken"),
    };
    format!(
        "{what} {} after the request, in the file after {}",
        HumanDuration(lag),
        HumanDuration(waited)
    )
}

/// A label that nothing dumped.
pub(crate) fn without_dump(why: &str) -> String {
    format!("no native dump: {why}; what is recorded beside is taken")
}

/// Findings that differ in the name of the process alone, as one: what is said, and one of
/// them.
fn by_cause(findings: &[Finding]) -> Vec<(String, &Finding)> {
    let mut groups: Vec<(Vec<&str>, &str, &Finding)> = Vec::new();
    for finding in findings {
        let (who, what) = finding.what.split_once(' ').unwrap_or(("", &finding.what));
        let same = groups.iter_mut().find(|(_, said, first)| {
            first.id == finding.id
                && first.why == finding.why
                && first.fix == finding.fix
                && *said == what
        });
        match same {
            Some((names, _, _)) => names.push(who),
            None => groups.push((vec![who], what, finding)),
        }
    }
    groups
        .into_iter()
        .map(|(names, what, finding)| match names.as_slice() {
            [_] => (finding.what.clone(), finding),
            names => (format!("{}: each {what}", names.join(", ")), finding),
        })
        .collect()
}

/// The phone that is to be asked for libraries; none unless that was asked for. A phone that
/// is not there costs names, no more.
pub(crate) async fn phone_asked(ctx: &Context, names: &NamesArgs) -> Option<Arc<DeviceLibs>> {
    if !names.pull_libs || names.no_symbolize {
        return None;
    }
    match ctx.device().await {
        Ok(device) => Some(Arc::new(DeviceLibs::new(device.clone(), PullLibs::Always))),
        Err(failure) => {
            let why = failure.message;
            ctx.console
                .warn(format_args!("no libraries are fetched from a phone: {why}"));
            None
        }
    }
}

/// A watch on names that are looked up, which shows how far that is in a status line, and
/// `after` once that is done.
pub(super) fn names_on(console: &Console, status: &ProgressBar, after: &str) -> LookupControl {
    let (console, status, after) = (console.clone(), status.clone(), after.to_owned());
    LookupControl::telling(move |progress| {
        if progress.done == progress.libraries {
            console.set_status(&status, &after);
            return;
        }
        let (done, all) = (progress.done, progress.libraries);
        console.set_status(&status, format_args!("names: {done} of {all} libraries"));
    })
}

/// Shows a finished recording; the outcome is its exit code.
/// `page`: where the page is that was written.
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
        console.json(&json!({
            "event": "finished",
            "session": finished.session,
            "output": output,
            "report": page,
            "manifest": manifest,
            "java_heaps": java_heaps,
        }));
        summary::tell(console, output, manifest, &wrote, heaps, remedy);
    } else {
        java_summary::show(console, java_heaps);
        summary::show(console, output, manifest, &wrote, heaps, remedy);
    }
    Outcome::from(finished.class)
}

/// Whether names were to be looked up, which decides what is said of those that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// In every place there is.
    Names,
    /// Nowhere: `--no-symbolize`.
    NoNames,
    /// In the build that comes with the demo.
    #[cfg_attr(
        not(feature = "virtual-phone"),
        expect(dead_code, reason = "of the demo")
    )]
    Demo,
}

impl NamesArgs {
    /// What these flags ask for.
    pub(crate) fn asked(&self) -> Asked {
        match self.no_symbolize {
            true => Asked::NoNames,
            false => Asked::Names,
        }
    }
}

/// What observing takes of a phone.
pub(crate) fn cost(core: f64, services: f64, bytes_per_s: f64) -> String {
    let bytes = ByteSize(bytes_per_s.max(0.0) as u64);
    format!(
        "it took {:.1}% of one core, services at most {:.1}% more, and {bytes}/s",
        core * 100.0,
        services * 100.0
    )
}

/// Says that a label was given before, and what it means now.
pub(crate) fn warn_of_repeated(console: &Console, label: &str) {
    let label = sanitize(label);
    console.warn_with_help(
        format_args!("the recording has a snapshot {label} already"),
        Some(&format!(
            "@{label} means the last of them; the others go by the number of their dump, @N"
        )),
    );
}

/// The command that names a recording's frames anew.
pub(crate) fn again(folder: &Path) -> String {
    format!("heaptap symbolize {}", quoted_path(near(folder)))
}
