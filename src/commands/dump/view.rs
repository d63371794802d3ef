//! `heaptap dump`: options and progress of a dump of Java heaps.

use std::ffi::OsString;
use std::path::Path;

use super::args::Args;
use crate::commands::shared::paths::near;
use crate::commands::shared::progress::{self, Show};
use crate::commands::shared::single_file::SingleFile;
use crate::commands::shared::{page, start};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::names::{NamesArgs, PullLibsArg};
use crate::console::signals::watch_signals;
use crate::names::options::NameOptions;
use crate::names::r8_mappings::R8Mappings;
use crate::recording::capture_kind::{CaptureKind, JavaResults};
use crate::recording::dump;
use crate::recording::heap_files::{self, HeapFileOptions};
use crate::recording::options::RecordOptions;
use crate::recording::outcome::Recorded;
use heaptap_base::error::Failure;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::config::{BitmapFormat, DeviceLimits, HeapFileSpec};
use heaptap_capture::session::Store;
use heaptap_export::pprof::PprofOptions;
use heaptap_results::destination::unwritable;
use heaptap_results::overwrite::{self, Replace};

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
    let spec = args.capture.spec(&args.target.target());
    spec.validate()?;
    if args.print_config {
        let config = spec.encode(&DeviceLimits::default())?;
        return Ok(start::print_config(&ctx.console, &config.text));
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
    let device = ctx.device_or_interrupt(&mut signals).await?;
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
    let file = match &args.output {
        Some(output) if is_hprof(output) => Some(hprof_file(&args, output)?),
        _ => None,
    };
    let spec = HeapFileSpec {
        targets: args.target.target().targets(),
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
        // The results are complete in a directory before the file gets its name.
        output: match &file {
            Some(file) => Some(file.directory()),
            None => args.output,
        },
        force: args.no_check,
        detach: args.detach,
        silence: args.file.timeout.unwrap_or(heap_files::SILENCE),
        names,
    };
    let device = ctx.device_or_interrupt(&mut signals).await?;
    let mut show = Show::of_dump(ctx, !options.detach, false);
    let recorded = show
        .during(signals, async |controls, on_event| {
            heap_files::dump(device, &store, &options, controls, on_event).await
        })
        .await?;
    match (file, recorded) {
        (Some(file), Recorded::Finished(mut finished)) if finished.class.is_none() => {
            page::end_session(ctx, &mut finished);
            let directory = &finished.output;
            file.write(&ctx.console, &finished.manifest.dumps, directory, || {
                format!("they are in {}", quoted_path(near(directory)))
            })?;
            std::fs::remove_dir_all(directory)
                .map_err(|source| unwritable(directory.display(), &source))?;
            let typed = quoted_path(&file.path);
            ctx.console.say(format_args!(
                "next: heaptap leaks {typed} · heaptap top {typed}"
            ));
            Ok(Outcome::Done)
        }
        (_, recorded) => show_recorded(ctx, recorded),
    }
}

/// Returns whether an output has the name of one HPROF.
fn is_hprof(output: &Path) -> bool {
    let ends_so = output
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("hprof"));
    ends_so && !output.is_dir()
}

/// Checks the file that gets the HPROF.
fn hprof_file(args: &Args, output: &Path) -> Result<SingleFile, Failure> {
    let flags = [
        (args.file.malloc_info, "`--malloc-info`"),
        (args.detach, "`--detach`"),
    ];
    if let Some((_, flag)) = flags.iter().find(|flag| flag.0) {
        let message = format!(
            "{flag} needs a directory, and {} is a file",
            output.display()
        );
        return Err(Failure::usage(message).with_help("name a directory with `-o`"));
    }
    let existing = overwrite::check(output, [], Replace::Nothing);
    let existing = existing.map_err(|error| Failure::from(error).with_help("name another file"))?;
    Ok(SingleFile {
        path: output.to_owned(),
        existing,
    })
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
            let output = output.to_string_lossy();
            let commands = [
                format!("status {session}"),
                format!("stop {session}   writes {output}"),
            ];
            start::detached(&ctx.console, "dumping", &session, &output, &commands);
            Ok(Outcome::Done)
        }
        Recorded::Finished(mut finished) => {
            page::end_session(ctx, &mut finished);
            let asked = progress::Asked::NoNames;
            Ok(progress::finished(ctx, &finished, None, asked))
        }
    }
}
