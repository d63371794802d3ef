//! `heaptap demo`: the main use case on the virtual phone, with the same code as `record`. Records
//! with memory over time, takes a labeled snapshot per iteration, stops, fetches, symbolizes and
//! converts. Then dumps the app's Java heap and shows the result: the leaks with their certainty
//! and source lines, and the next commands. The symbols and the R8 mapping of the app's build are
//! put into a directory, as Gradle does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;

mod leaks;
use super::args::Args;
use crate::commands::shared::page;
use crate::commands::shared::paths::near;
use crate::commands::shared::progress::{self, Show};
use crate::console::Style;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::signals::{Signal, watch_signals};
use crate::heaps::java::DIRECTORY;
use crate::names::options::{MappingOption, NameOptions};
use crate::recording::capture_kind::CaptureKind;
use crate::recording::companion_options::CompanionOptions;
use crate::recording::events::{EventHandler, RecordEvent};
use crate::recording::heap_files::{self, HeapFileOptions};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::{Finished, Recorded};
use crate::recording::record;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_base::units::counted;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::config::{self, Options, Snapshots, Targets};
use heaptap_capture::session::{Control, SessionEvent, Store};
use heaptap_results::manifest::Manifest;
use heaptap_results::output::OutputDirectory;
use virtual_phone::Abi;

/// Leaking app on the virtual phone.
const APP: &str = "com.example.app";
/// Specification of a device on which the shell can request snapshots. Its clock is 8 times faster
/// than the host clock.
const PHONE: &str = "android=14,build=userdebug,speed=8,obfuscated=yes";

/// Actions, by the device time since the start of the recording.
const SCRIPT: [(Duration, Act); 7] = [
    (Duration::from_millis(3_000), Act::Snapshot("before")),
    (Duration::from_millis(4_500), Act::Snapshot("round-1")),
    (Duration::from_millis(6_000), Act::Snapshot("round-2")),
    (Duration::from_millis(7_500), Act::Snapshot("round-3")),
    (Duration::from_millis(9_000), Act::Snapshot("round-4")),
    (Duration::from_millis(10_500), Act::Snapshot("after")),
    (Duration::from_millis(12_000), Act::Stop),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Snapshot(&'static str),
    Stop,
}

/// Simulated user that follows the script as the recording proceeds.
#[derive(Debug, Default)]
struct StepExecutor {
    done: usize,
    waiting: bool,
}

impl StepExecutor {
    /// Returns the next action after `event`.
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
/// Returns the errors of `record`.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let mut globals = ctx.globals.clone();
    globals
        .virtual_phone
        .get_or_insert_with(|| PHONE.to_owned());
    let ctx = &Context::new(ctx.console.clone(), globals, ctx.typed.clone());
    let done = show(ctx, args).await;
    done.map_err(|failure| ctx.without_collect(failure))
}

async fn show(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if let Some(output) = &args.output {
        // Nothing is announced that cannot begin.
        OutputDirectory::hold(output)?.discard();
    }
    ctx.console.say(format_args!(
        "{} an app that leaks on purpose, on a virtual phone",
        ctx.console.on_stderr(Style::Strong, "heaptap demo:")
    ));
    // A demo leaves nothing in the user's journal and cache.
    let own = tempfile::tempdir().map_err(|error| no_directory(&error))?;
    let build = Build::in_directory(own.path()).map_err(|error| no_directory(&error))?;
    let options = options(args.output, build.names(own.path()))?;
    let mut signals = watch_signals()?;
    // The recording ends at an interrupt, but the demo must not go on.
    let mut interrupts = watch_signals()?;
    let store = Store::in_directory(&own.path().join("journal"))?;
    let device = ctx.device_or_interrupt(&mut signals).await?;
    let mut show = Show::of_demo(ctx);
    let recorded = show
        .during(signals, async |controls, on_event| {
            let (ask, mut asked) = mpsc::unbounded_channel();
            let hands = Arc::new(Mutex::new(StepExecutor::default()));
            let on_event: EventHandler = {
                let (on_event, ask) = (on_event.clone(), ask.clone());
                Arc::new(move |event| {
                    if let RecordEvent::Session(event) = &event {
                        let mut hands = lock(&hands);
                        if let Some(control) = hands.react(event) {
                            // The receiver lives as long as the recording.
                            let _ = ask.send(control);
                        }
                    }
                    on_event(event);
                })
            };
            let pass_on = async {
                while let Some(control) = controls.recv().await {
                    let _ = ask.send(control);
                }
                std::future::pending().await
            };
            tokio::select! {
                recorded = record::record(device, &store, &options, &mut asked, &on_event) => recorded,
                never = pass_on => never,
            }
        })
        .await?;
    let Recorded::Finished(mut finished) = recorded else {
        return Ok(Outcome::Done);
    };
    go_on(ctx, &mut interrupts, &mut finished)?;
    let java = finished.output.join(DIRECTORY);
    // Problems are reported as in `record`. In JSON there is one document.
    let is_whole = finished.class.is_none() && finished.manifest.warnings.is_empty();
    let outcome = match is_whole && !ctx.console.is_json() {
        true => Outcome::Done,
        false => {
            let page = page::leave(ctx, args.leave, &mut finished).await;
            progress::finished(ctx, &finished, page.as_deref(), progress::Asked::Demo)
        }
    };
    let dumped = dump_java(ctx, device, &store, &java, &options.names).await;
    go_on(ctx, &mut interrupts, &mut finished)?;
    let page = page::leave(ctx, args.leave, &mut finished).await;
    go_on(ctx, &mut interrupts, &mut finished)?;
    dumped?;
    if !ctx.console.is_json() {
        let output = finished.output.clone();
        let directory = near(&output);
        say_written(ctx, directory, &finished.manifest, page.is_some());
        let answered = leaks::answer(ctx, directory, near(&java)).await;
        go_on(ctx, &mut interrupts, &mut finished)?;
        answered?;
        say_next(ctx, directory, page.as_deref());
    }
    Ok(outcome)
}

/// Returns the failure of an interrupted demo, which names the results so far.
fn go_on(
    ctx: &Context,
    interrupts: &mut mpsc::UnboundedReceiver<Signal>,
    finished: &mut Finished,
) -> Result<(), Failure> {
    if interrupts.try_recv().is_err() {
        return Ok(());
    }
    page::end_session(ctx, finished);
    let directory = near(&finished.output);
    let java = match finished.output.join(DIRECTORY).is_dir() {
        true => " and a Java heap",
        false => "",
    };
    let (kept, help) = match finished.manifest.dumps.native.len() as u64 {
        0 => (
            format!("{} has no dump", directory.display()),
            "run `heaptap demo` again".to_owned(),
        ),
        dumps => (
            format!(
                "kept {}: {}{java}",
                directory.display(),
                counted(dumps, "dump", "dumps")
            ),
            format!(
                "look at it with `heaptap top {}`, or run `heaptap demo` again",
                quoted_path(directory)
            ),
        ),
    };
    let message = format!("interrupted before the demo was complete; {kept}");
    Err(Failure::new(ErrorClass::Interrupted, "interrupted", message).with_help(help))
}

/// Prints the contents of the directory in one line.
fn say_written(ctx: &Context, directory: &Path, manifest: &Manifest, has_page: bool) {
    let page = match has_page {
        true => format!(", {}", crate::page::report::PAGE),
        false => String::new(),
    };
    ctx.console.say(format_args!(
        "wrote {}: {} dumps, a Java heap{page}",
        directory.display(),
        manifest.dumps.native.len(),
    ));
}

/// Prints the next commands, for this recording and for the user's own device.
fn say_next(ctx: &Context, directory: &Path, page: Option<&Path>) {
    let recording = quoted_path(directory);
    let java = quoted_path(directory.join(DIRECTORY));
    let mut commands = vec![
        (format!("leaks {recording}"), "everything that grows"),
        (format!("explore {java}"), "the Java heap and its leaks"),
    ];
    match page.map(|page| quoted_path(near(page))) {
        Some(page) => commands.insert(0, (format!("open {page}"), "the report")),
        None => commands.push((
            format!("top {recording}"),
            "functions with the most native memory",
        )),
    }
    say_commands(ctx, "next:", &commands);
    ctx.console.say(format_args!(
        "{} `heaptap doctor`, then `heaptap record -n {APP}`",
        ctx.console.on_stderr(Style::Strong, "on your own device:")
    ));
}

fn say_commands(ctx: &Context, heading: &str, commands: &[(String, &str)]) {
    let console = &ctx.console;
    let widest = commands.iter().map(|(command, _)| command.chars().count());
    // One long path would push all descriptions out of the terminal.
    let width = widest
        .filter(|width| *width <= MAX_COMMAND_LENGTH)
        .max()
        .unwrap_or(0);
    console.say("");
    console.say(console.on_stderr(Style::Strong, heading));
    for (command, what) in commands {
        let command = console.on_stderr(Style::Help, format!("heaptap {command:<width$}"));
        console.say(format_args!("  {command}  {what}"));
    }
}

/// Longer commands, in characters, are not aligned in the column.
const MAX_COMMAND_LENGTH: usize = 40;

/// Dumps the app's Java heap into its own directory.
async fn dump_java(
    ctx: &Context,
    device: &Device,
    store: &Store,
    output: &Path,
    names: &NameOptions,
) -> Result<(), Failure> {
    let options = HeapFileOptions::hprof(targets(), output.to_owned(), names.clone());
    ctx.console.say("dumping the Java heap of the app …");
    // The properties of the device and the app were printed before.
    let quiet: EventHandler = Arc::new(|_| {});
    let mut show = Show::of_dump(ctx, false, false);
    let dumped = show
        .during(watch_signals()?, async |controls, _| {
            heap_files::dump(device, store, &options, controls, &quiet).await
        })
        .await?;
    if let Recorded::Finished(finished) = dumped {
        for warning in &finished.manifest.warnings {
            ctx.console
                .warn_with_help(&warning.message, warning.help.as_deref());
        }
    }
    Ok(())
}

/// Returns the companion data to record: all except Java heap graphs, because the HPROF that
/// follows contains more.
fn beside() -> CompanionOptions {
    CompanionOptions {
        java: false,
        meminfo: true,
        smaps: true,
        gc: true,
        allocations: false,
    }
}

fn targets() -> Targets {
    Targets {
        names: vec![APP.to_owned()],
        ..Targets::default()
    }
}

fn no_directory(error: &std::io::Error) -> Failure {
    Failure::new(
        ErrorClass::HostWrite,
        "host-write",
        format!("cannot write to a temporary directory: {error}"),
    )
    .with_help("free disk space, or set TMPDIR to a writable directory")
}

/// Output of the app's build.
struct Build {
    /// Libraries with DWARF, in a directory for each ABI.
    symbols: PathBuf,
    /// R8 mapping.
    mapping: PathBuf,
}

impl Build {
    fn in_directory(directory: &Path) -> std::io::Result<Build> {
        let symbols = directory.join("symbols");
        for abi in Abi::ALL {
            let directory = symbols.join(abi.name());
            std::fs::create_dir_all(&directory)?;
            for (name, bytes) in virtual_phone::unstripped_libraries(abi) {
                std::fs::write(directory.join(name), bytes)?;
            }
        }
        let mapping = directory.join("mapping.txt");
        std::fs::write(&mapping, virtual_phone::MAPPING)?;
        Ok(Build { symbols, mapping })
    }

    /// Returns the options that `--symbols` and `--mapping` would give; no other place is searched.
    fn names(self, directory: &Path) -> NameOptions {
        NameOptions {
            symbols: vec![self.symbols],
            mappings: vec![MappingOption {
                package: Some(APP.to_owned()),
                path: self.mapping,
            }],
            discover: false,
            cache: Some(directory.join("cache")),
            ..NameOptions::default()
        }
    }
}

fn options(output: Option<PathBuf>, names: NameOptions) -> Result<RecordOptions, Failure> {
    let asked = Options {
        targets: targets(),
        ..Options::default()
    };
    let kind = CaptureKind::Native(Box::new(config::resolve(None, &asked)?.spec));
    Ok(RecordOptions {
        companions: beside(),
        output,
        stem: Some("demo".to_owned()),
        snapshots: Snapshots::Every(Duration::from_secs(1)),
        ..RecordOptions::new(kind, names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_capture::session::Progress;

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
            unreleased_bytes: 0,
            no_dump: None,
        };
        let snapshot = |label: &str| {
            Some(Control::Snapshot {
                label: label.to_owned(),
            })
        };
        let mut hands = StepExecutor::default();
        let mut say = |event: &SessionEvent| hands.react(event);
        assert_eq!(say(&at(2)), None);
        assert_eq!(say(&at(3)), snapshot("before"));
        assert_eq!(say(&at(20)), None, "still waiting for the first");
        assert_eq!(say(&taken), None);
        for label in ["round-1", "round-2", "round-3", "round-4", "after"] {
            assert_eq!(say(&at(21)), snapshot(label));
            assert_eq!(say(&taken), None);
        }
        assert_eq!(say(&at(22)), Some(Control::Stop));
        assert_eq!(say(&at(23)), None, "asked once");
    }
}
