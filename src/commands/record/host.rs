//! `heaptap record --host`: shows the recording of a program of this host. stdin, stdout and the
//! terminal belong to the program, so there are no keys and no status line, and heaptap's text goes
//! to stderr.

use super::args::Args;
use crate::commands::shared::paths::near;
use crate::commands::shared::{page, progress, start};
use crate::console::exit::Outcome;
use crate::console::flags::conflicts;
use crate::console::flags::context::Context;
use crate::names::r8_mappings::R8Mappings;
use crate::recording::host::{HostEvent, HostOptions, HostRecorded, record};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::host::{self, ProgramEnd, Request};
use heaptap_export::pprof::PprofOptions;
use std::path::Path;

const ALL: &str = "the program and all its children are recorded";
const LOADED: &str = "the preload library must be loaded when a program starts";
const ANDROID: &str = "it is for Android";
const STARTED: &str = "heaptap starts the program itself";
const DUMPS: &str = "the heapprofds of this host cannot dump on request; use -c TIME for dumps";

/// Options of a device, and the reasons why they do not apply.
const REFUSED: [(&str, &str); 22] = [
    ("pid", LOADED),
    ("name", ALL),
    ("package", ANDROID),
    ("launch", STARTED),
    ("detach", "heaptap stays with the program until its end"),
    ("with", ANDROID),
    ("java-allocations", ANDROID),
    ("snapshots", DUMPS),
    ("no-snapshots", DUMPS),
    ("disable-selinux", ANDROID),
    ("retry-overrun", "heaptap does not run the program twice"),
    ("no-startup", LOADED),
    ("no-running", LOADED),
    (
        "disable-fork-teardown",
        "a child without exec is not recorded",
    ),
    ("no-versions", ANDROID),
    ("pull-libs", "the libraries are on this host"),
    ("mapping", ANDROID),
    ("idle-allocations", ANDROID),
    ("no-start", ANDROID),
    ("traceconv-binary", ANDROID),
    ("no-android-tree-symbolization", ANDROID),
    ("simpleperf", ANDROID),
];

/// Runs the command.
///
/// # Errors
/// Returns an error if the program cannot be recorded, or its results cannot be written.
pub(super) async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    refuse(ctx)?;
    if let Some(word) = args.target.words.first() {
        let message = format!("unexpected word {}", sanitize(word));
        return Err(Failure::usage(message)
            .with_help("a program and its arguments follow --: heaptap record --host -- PROGRAM"));
    }
    host::supported()?;
    let resolved = args.capture.resolve_for_host(&ctx.console)?;
    if !resolved.spec.targets.is_empty() {
        return Err(conflict("processes in --config", ALL));
    }
    if args.capture.print_config {
        let encoded = resolved.spec.encode_for_host()?;
        return Ok(start::print_config(&ctx.console, &encoded.text));
    }
    if args.program.is_empty() {
        return Err(
            Failure::new(ErrorClass::Usage, "no-target", "no program is named")
                .with_help("heaptap record --host -- PROGRAM ARGUMENTS"),
        );
    }
    let asked = args.names.asked();
    let names = args.names.options(&ctx.console)?;
    R8Mappings::check(&names)?;
    let options = HostOptions {
        spec: resolved.spec,
        request: Request {
            command: args.program,
            library: args.preload_library,
            perfetto_dir: args.perfetto_dir,
            path: std::env::var_os("PATH"),
            home: std::env::var_os("HOME").map(Into::into),
            tmp: std::env::var_os("TMPDIR").map(Into::into),
            force: args.no_check,
        },
        output: args.output,
        pprof: PprofOptions {
            sample_names: args.sample_names.into(),
            annotations: !args.capture.no_annotations,
        },
        names,
    };
    let beside = ctx.beside_program();
    let ctx = &beside;
    let HostRecorded { mut finished, end } =
        record(&options, &|event: HostEvent| show(ctx, &event)).await?;
    let page = page::leave(ctx, args.leave, &mut finished).await;
    let outcome = progress::finished(ctx, &finished, page.as_deref(), asked);
    let name = options.request.command.first();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    Ok(exit(ctx, &name.unwrap_or_default(), end, outcome))
}

/// Returns the outcome: that of the program if it failed, otherwise that of the recording. Both are
/// printed.
fn exit(ctx: &Context, name: &str, end: ProgramEnd, recording: Outcome) -> Outcome {
    let own = match recording {
        Outcome::Ended(class) => format!("the recording's exit code is {}", class.exit_code()),
        Outcome::Done | Outcome::Program(_) => "the recording is complete".to_owned(),
    };
    ctx.console
        .say(format_args!("{} ended with {end}; {own}", sanitize(name)));
    match end.status() {
        0 => recording,
        status => Outcome::Program(status),
    }
}

fn conflict(option: &str, why: &str) -> Failure {
    let message = format!("{option} cannot be combined with --host: {why}");
    conflicts::conflict(message, "leave out the option")
}

/// Refuses options that have no effect on a program of this host.
fn refuse(ctx: &Context) -> Result<(), Failure> {
    let mut refused = REFUSED.iter();
    if let Some((option, why)) = refused.find(|(option, _)| ctx.typed.first_of([*option]).is_some())
    {
        return Err(conflict(&format!("--{option}"), why));
    }
    let globals = &ctx.globals;
    let of_device = [
        (globals.serial.is_some(), "--serial"),
        (globals.adb_server.is_some(), "--adb-server"),
        (globals.user.is_some(), "--user"),
        (globals.virtual_phone.is_some(), "--virtual"),
    ];
    match of_device.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(conflict(option, "the program runs on this host")),
        None => Ok(()),
    }
}

fn show(ctx: &Context, event: &HostEvent) {
    let console = &ctx.console;
    console.event(event);
    match event {
        HostEvent::HostChecked {
            library, cautions, ..
        } => {
            console.detail(format_args!("preload library: {}", sanitize(library)));
            for caution in cautions {
                console.warn(sanitize(caution));
            }
        }
        HostEvent::HostStarted {
            program,
            pid,
            output,
        } => console.say(format_args!(
            "recording {} (pid {pid}) into {}; Ctrl-C goes to the program",
            sanitize(program),
            near(Path::new(output)).display()
        )),
        HostEvent::HostTimeOver => {
            console.say("recording time is over; the program continues without a profile");
        }
        HostEvent::HostServiceLost => {
            console.warn("perfetto or traced ended; the program continues without a profile");
        }
        HostEvent::HostProgramEnded { .. } => {
            console.detail("the program ended; waiting for the final dump");
        }
        HostEvent::Converting => console.detail("converting …"),
    }
}
