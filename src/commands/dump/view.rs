//! `heaptap dump`: options and progress of a dump of Java heaps.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use super::args::Args;
use crate::config::{BitmapFormat, DeviceLimits, HeapFileSpec, JavaSpec};
use crate::console::signals::watch_signals;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::export::pprof::PprofOptions;
use crate::flags::context::Context;
use crate::flags::names::{NamesArgs, PullLibsArg};
use crate::naming::names::NameOptions;
use crate::naming::r8_mappings::R8Mappings;
use crate::recording::capture_kind::{CaptureKind, JavaResults};
use crate::recording::dump;
use crate::recording::heap_files::{self, HeapFileOptions};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::Recorded;
use crate::session::{SessionError, SessionId, Store};
use crate::views::page;
use crate::views::progress::{self, Show};

/// Runs the command.
///
/// # Errors
/// Returns an error if the dump or its transfer fails.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    ctx.check_detach(args.detach)?;
    if args.file.hprof || args.file.malloc_info {
        return run_files(ctx, args).await;
    }
    if args.file.timeout.is_some() {
        return Err(Failure::usage(
            "`--timeout` requires `--hprof` or `--malloc-info`",
        ));
    }
    let spec = args.capture.spec(&args.target);
    spec.validate()?;
    if args.print_config {
        return print_config(ctx, &spec);
    }
    let names = java_names(ctx, args.mappings)?;
    // From here on, a signal ends the dump gracefully.
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let results = JavaResults {
        dominators: args.dominators,
    };
    let options = RecordOptions {
        output: args.output,
        force: args.no_check,
        detach: args.detach,
        user: ctx.globals.user,
        pprof: PprofOptions {
            sample_names: args.sample_names.into(),
            ..PprofOptions::default()
        },
        ..RecordOptions::new(CaptureKind::Java(spec, results), names)
    };
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(SessionError::Interrupted.into()),
    };
    let waits = args.capture.wait_for_oom;
    let mut show = Show::of_dump(ctx, !options.detach, waits);
    let recorded = show
        .during(signals, async |controls, on_event| {
            dump::dump(device, &store, &options, controls, on_event).await
        })
        .await?;
    show_recorded(ctx, recorded)
}

/// Runs `--hprof` and `--malloc-info`.
async fn run_files(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let spec = HeapFileSpec {
        targets: args.target.targets(),
        hprof: args.file.hprof,
        malloc_info: args.file.malloc_info,
        gc: !args.file.no_gc,
        bitmaps: args.file.bitmaps.map(BitmapFormat::from),
        user: ctx.globals.user,
    };
    spec.validate()?;
    let names = java_names(ctx, args.mappings)?;
    // From here on, a signal ends the dump gracefully.
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let options = HeapFileOptions {
        spec,
        output: args.output,
        force: args.no_check,
        detach: args.detach,
        silence: args.file.timeout.unwrap_or(heap_files::SILENCE),
        names,
    };
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(SessionError::Interrupted.into()),
    };
    let mut show = Show::of_dump(ctx, !options.detach, false);
    let recorded = show
        .during(signals, async |controls, on_event| {
            heap_files::dump(device, &store, &options, controls, on_event).await
        })
        .await?;
    show_recorded(ctx, recorded)
}

/// Returns the sources of class names. Java heaps contain their names, so no symbols are searched.
fn java_names(ctx: &Context, mappings: Vec<OsString>) -> Result<NameOptions, Failure> {
    let names = NamesArgs {
        mappings,
        no_symbolize: true,
        pull_libs: PullLibsArg::Never,
        ..NamesArgs::default()
    };
    let names = names.options(&ctx.console)?;
    // Report an unusable R8 mapping before anything is recorded.
    R8Mappings::check(&names)?;
    Ok(names)
}

fn show_recorded(ctx: &Context, recorded: Recorded) -> Result<Outcome, Failure> {
    match recorded {
        Recorded::Detached {
            session, output, ..
        } => {
            detached(ctx, &session, &output);
            Ok(Outcome::Done)
        }
        Recorded::Finished(mut finished) => {
            page::end_session(ctx, &mut finished);
            let asked = progress::Asked::NoNames;
            Ok(progress::finished(ctx, &finished, None, asked))
        }
    }
}

/// Prints the config that would be sent (`--print-config`), without a device.
fn print_config(ctx: &Context, spec: &JavaSpec) -> Result<Outcome, Failure> {
    let encoded = spec.encode(&DeviceLimits::default())?;
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "config": encoded.text }));
    } else {
        ctx.console.raw(encoded.text.as_bytes());
    }
    Ok(Outcome::Done)
}

fn detached(ctx: &Context, session: &SessionId, output: &Path) {
    let console = &ctx.console;
    if console.is_json() {
        console.json(
            &json!({ "session": session, "output": output.to_string_lossy(), "detached": true }),
        );
        return;
    }
    console.data(session);
    console.say("dumping in the background; continue with:");
    console.say(format_args!("  heaptap status {session}"));
    console.say(format_args!(
        "  heaptap stop {session}   writes {}",
        output.display()
    ));
}
