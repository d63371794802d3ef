//! `heaptap demo`: the main job on the virtual phone, through the very code that `record` runs:
//! record, two labelled snapshots, stop, fetch, convert, summary.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::mpsc;

use super::progress::{self, Show};
use super::signals::watch_signals;
use super::{Context, Outcome, Style};
use crate::app::names::NameOptions;
use crate::app::output::default_name;
use crate::app::record::{self, RecordEvent, RecordOptions, Recorded, Tell};
use crate::config::{self, Options, Targets};
use crate::error::{ErrorClass, Failure};
use crate::export::pprof::PprofOptions;
use crate::session::{Control, SessionEvent, Store};

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap demo -o out")]
pub struct Args {
    /// The folder to write to; must be empty or new [default: heaptap-demo-TIME]
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
}

/// The app on the virtual phone that leaks.
const APP: &str = "com.example.app";
/// A phone on which the shell may ask for snapshots; its clock runs faster than ours.
const PHONE: &str = "android=14,build=userdebug,speed=8,stripped=no";

/// What is done, by the phone's clock since the start of the recording.
const SCRIPT: [(Duration, Act); 3] = [
    (Duration::from_secs(3), Act::Snapshot("before")),
    (Duration::from_secs(9), Act::Snapshot("after")),
    (Duration::from_secs(12), Act::Stop),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Snapshot(&'static str),
    Stop,
}

/// The hands at the keyboard: does what the script says as the recording goes on.
#[derive(Debug, Default)]
struct Hands {
    done: usize,
    waiting: bool,
}

impl Hands {
    /// What to do now that `event` has happened.
    fn react(&mut self, event: &SessionEvent) -> Option<Control> {
        match event {
            SessionEvent::SnapshotTaken { .. } | SessionEvent::SnapshotFailed { .. } => {
                self.waiting = false;
                None
            }
            SessionEvent::Progress(progress) if !self.waiting => {
                let (at, act) = *SCRIPT.get(self.done)?;
                if progress.elapsed < at {
                    return None;
                }
                self.done += 1;
                Some(match act {
                    Act::Stop => Control::Stop,
                    Act::Snapshot(label) => {
                        self.waiting = true;
                        Control::Snapshot {
                            label: label.to_owned(),
                        }
                    }
                })
            }
            _ => None,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// As `record`.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let mut globals = ctx.globals.clone();
    globals
        .virtual_phone
        .get_or_insert_with(|| PHONE.to_owned());
    let ctx = &Context::new(ctx.console.clone(), globals);
    ctx.console.say(format_args!(
        "{} a virtual phone; the app on it leaks on purpose",
        ctx.console.on_stderr(Style::Strong, "heaptap demo:")
    ));
    let options = options(args.output)?;
    let mut signals = watch_signals()?;
    // A demo leaves nothing in the user's journal.
    let journal = tempfile::tempdir().map_err(|error| {
        Failure::new(
            ErrorClass::HostWrite,
            "host-write",
            format!("could not make a temporary folder: {error}"),
        )
        .with_help("free some space, or set TMPDIR to a folder that can be written")
    })?;
    let store = Store::in_folder(journal.path())?;
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(crate::session::SessionError::Interrupted.into()),
    };
    let mut show = Show::new(ctx, false);
    let recorded = show
        .during(signals, async |controls, tell| {
            let (ask, mut asked) = mpsc::unbounded_channel();
            let hands = Arc::new(Mutex::new(Hands::default()));
            let tell: Tell = {
                let (tell, ask) = (tell.clone(), ask.clone());
                Arc::new(move |event| {
                    if let RecordEvent::Session(event) = &event {
                        let mut hands = hands.lock().unwrap_or_else(|e| e.into_inner());
                        if let Some(control) = hands.react(event) {
                            // The receiver lives as long as the recording.
                            let _ = ask.send(control);
                        }
                    }
                    tell(event);
                })
            };
            let pass_on = async {
                while let Some(control) = controls.recv().await {
                    let _ = ask.send(control);
                }
                std::future::pending().await
            };
            tokio::select! {
                recorded = record::record(device, &store, &options, &mut asked, &tell) => recorded,
                never = pass_on => never,
            }
        })
        .await?;
    match recorded {
        Recorded::Finished(finished) => {
            let outcome = progress::finished(ctx, &finished);
            for line in [
                "",
                "the same on your own phone",
                "  heaptap doctor                       is it ready?",
                "  heaptap apps                         what may be profiled?",
                "  heaptap record -n com.example.app    record; s takes a snapshot, Ctrl-C ends it",
            ] {
                ctx.console.say(line);
            }
            Ok(outcome)
        }
        Recorded::Detached { .. } => Ok(Outcome::Done),
    }
}

fn options(output: Option<PathBuf>) -> Result<RecordOptions, Failure> {
    let asked = Options {
        targets: Targets {
            names: vec![APP.to_owned()],
            ..Targets::default()
        },
        ..Options::default()
    };
    Ok(RecordOptions {
        spec: config::resolve(None, &asked)?.spec,
        output: Some(
            output.unwrap_or_else(|| default_name("demo", OffsetDateTime::now_utc()).into()),
        ),
        force: false,
        launch: false,
        snapshots: Some(Duration::from_secs(1)),
        detach: false,
        retry_overrun: false,
        disable_selinux: false,
        user: None,
        pprof: PprofOptions::default(),
        names: NameOptions::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Progress;

    #[test]
    fn the_hands_wait_for_each_snapshot_before_they_go_on() {
        let at = |seconds| {
            SessionEvent::Progress(Progress {
                elapsed: Duration::from_secs(seconds),
                ..Progress::default()
            })
        };
        let taken = SessionEvent::SnapshotTaken {
            label: "before".to_owned(),
            lag: Duration::ZERO,
            waited: Duration::ZERO,
            dumps: 1,
        };
        let snapshot = |label: &str| {
            Some(Control::Snapshot {
                label: label.to_owned(),
            })
        };
        let mut hands = Hands::default();
        let mut say = |event: &SessionEvent| hands.react(event);
        assert_eq!(say(&at(2)), None);
        assert_eq!(say(&at(3)), snapshot("before"));
        assert_eq!(say(&at(20)), None, "still waiting for the first");
        assert_eq!(say(&taken), None);
        assert_eq!(say(&at(21)), snapshot("after"));
        assert_eq!(say(&taken), None);
        assert_eq!(say(&at(22)), Some(Control::Stop));
        assert_eq!(say(&at(23)), None, "asked once");
    }
}
