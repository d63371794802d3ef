//! `heaptap convert --format` of everything but pprof: shows which files were written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use time::OffsetDateTime;

use super::run::{self, ExportError, ExportRequest, Exported, OutputDestination, Spooled};
use crate::commands::convert::args::{Args, Format};
use crate::console::Console;
use crate::conversion::selection::{DumpName, Selection};
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::java::JavaArgs;
use crate::heap_graph::Follow;
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::{JavaOptions, ProgressReporter};
use crate::heaps::selector::{DumpSelector, JavaInput};
use crate::pages::{PagePlace, ReportInput, ReportRequest};
use crate::results::output::{OutputFolder, Unpublished, default_name};
use crate::session::SessionId;
use crate::units::ByteSize;
use crate::views::page;
use crate::views::paths::near;
use crate::views::{blocking, progress};

/// The format, where it is one of these.
pub(crate) fn format(format: Format) -> Option<run::Format> {
    match format {
        Format::Pprof | Format::Html => None,
        Format::Folded => Some(run::Format::Folded),
        Format::Speedscope => Some(run::Format::Speedscope),
        Format::Json => Some(run::Format::Json),
        Format::Csv => Some(run::Format::Csv),
        #[cfg(feature = "parquet")]
        Format::Parquet => Some(run::Format::Parquet),
        Format::Svg => Some(run::Format::Svg),
    }
}

/// Writes an input in a format.
///
/// # Errors
/// Where the input holds no heap, or none that was asked for, or a file can't be written.
pub(crate) async fn run(
    ctx: &Context,
    args: Args,
    format: run::Format,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let input = JavaInput::parse(&args.input);
    let is_stdin = input.path == Path::new("-");
    let stem = match is_stdin {
        true => "stdin".to_owned(),
        false => run::stem(&input.path),
    };
    let goal = goal(&args, format, &stem);
    if format == run::Format::Parquet && !matches!(goal, OutputDestination::Folder(_)) {
        return Err(ExportError::TablesToFile.into());
    }
    if goal == OutputDestination::Stdout && console.is_json() {
        return Err(both_to_stdout());
    }
    goal.check(&input.path, args.force)?;
    let names = args.names.options(console)?;
    let spooled = match is_stdin {
        true => Some(tokio::task::block_in_place(|| {
            Spooled::read(io::stdin().lock())
        })?),
        false => None,
    };
    let (goal, folder) = match goal {
        OutputDestination::Folder(typed) => {
            let folder = OutputFolder::hold(&typed)?;
            let staging = folder.stage()?;
            let inner = OutputDestination::Folder(staging.path().to_owned());
            (inner, Some((typed, folder, staging)))
        }
        other => (other, None),
    };
    let mut dumps: Vec<DumpSelector> = input.which.into_iter().collect();
    dumps.extend(args.dumps.iter().map(|dump| DumpSelector::parse(dump)));
    let request = ExportRequest {
        input: spooled.as_ref().map_or(input.path, |s| s.path().to_owned()),
        name: stem,
        format,
        chosen: run::DumpSelection { dumps },
        selection: Selection {
            pids: args.pids,
            heaps: args.heaps,
            timestamps: args.timestamps,
            named: None,
        },
        views: args.views,
        dominators: args.dominators,
        look: LookOptions {
            names: names.clone(),
            no_annotations: args.no_annotations,
            ..LookOptions::default()
        },
        java: JavaOptions {
            names,
            ..JavaOptions::default()
        },
    };
    let phone = progress::phone_asked(ctx, &args.names).await;
    let mut stdout = Stdout(console.clone());
    let exported = blocking::watched(ctx, "converting …", phone, move |control| {
        let look = LookOptions {
            control,
            ..request.look.clone()
        };
        let request = ExportRequest { look, ..request };
        run::export(&request, &goal, &mut stdout, &ProgressReporter::default())
    });
    match (exported.await, folder) {
        (Ok(mut exported), Some((typed, _folder, staging))) => {
            for file in &mut exported.files {
                file.path = typed.join(file.path.file_name().unwrap_or_default());
            }
            staging.publish(false).map_err(Unpublished::of_command)?;
            Ok(show(console, &exported))
        }
        (Ok(exported), None) => Ok(show(console, &exported)),
        (Err(failure), folder) => {
            if let Some((_, folder, staging)) = folder {
                drop(staging);
                folder.discard();
            }
            Err(failure)
        }
    }
}

/// Writes the page of `heaptap report`, with the names that `convert` finds.
///
/// # Errors
/// Where the input holds no heap, or none that was asked for, or the page can't be written.
pub(crate) async fn page(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let unfit = [
        ("--view", !args.views.is_empty()),
        ("--timestamps", !args.timestamps.is_empty()),
        ("--dominators", args.dominators),
        ("--pid with several", args.pids.len() > 1),
        ("--heap with several", args.heaps.len() > 1),
    ];
    if let Some((flag, _)) = unfit.iter().find(|flag| flag.1) {
        let message = format!("{flag} does not go with --format html");
        return Err(Failure::new(ErrorClass::Usage, "usage", message));
    }
    let input = JavaInput::parse(&args.input);
    let mut dumps: Vec<DumpSelector> = input.which.into_iter().collect();
    dumps.extend(args.dumps.iter().map(|dump| DumpSelector::parse(dump)));
    let goal = match (args.output, input.path.as_path()) {
        (Some(folder), path) if folder.is_dir() => {
            PagePlace::Named(folder.join(format!("{}.html", run::stem(path))))
        }
        (Some(output), _) => PagePlace::Typed(output),
        (None, path) if path == Path::new("-") => PagePlace::Named("stdin.html".into()),
        (None, path) => PagePlace::Named(format!("{}.html", run::stem(path)).into()),
    };
    if page::is_stdout(&goal) && console.is_json() {
        return Err(both_to_stdout());
    }
    let names = args.names.options(console)?;
    let java = JavaArgs {
        process: args.pids.first().map(u64::to_string),
        ..JavaArgs::default()
    };
    let request = ReportRequest {
        inputs: vec![ReportInput {
            path: input.path,
            wanted: match dumps.is_empty() {
                true => DumpScope::All,
                false => DumpScope::These(dumps),
            },
            mappings: Vec::new(),
        }],
        base: None,
        per: None,
        look: LookOptions {
            process: java.process.clone(),
            heap: args.heaps.first().cloned(),
            names: names.clone(),
            no_annotations: args.no_annotations,
            ..LookOptions::default()
        },
        java: JavaOptions {
            names,
            ..java.options(Follow::default())
        },
        java_only: false,
        full: false,
        contents: false,
    };
    let told = page::write(ctx, request, goal.clone(), args.force).await?;
    for finding in &told.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    page::show(ctx, goal.path(), &told);
    Ok(told.class.into())
}

fn both_to_stdout() -> Failure {
    let message = "--json and the output cannot both go to standard output";
    let failure = Failure::new(ErrorClass::Usage, "usage", message);
    failure.with_help("name a file or a folder with -o")
}

/// The dumps of an input that were named, for pprofs of those alone.
///
/// # Errors
/// Where there is no such dump, or the input can't be read.
pub(crate) async fn named(
    ctx: &Context,
    input: &Path,
    dumps: Vec<DumpSelector>,
) -> Result<Vec<DumpName>, Failure> {
    let input = input.to_owned();
    let selection = run::DumpSelection { dumps };
    // Names of frames do not matter here.
    let java = JavaOptions::default();
    blocking::stepwise(ctx, move |progress| {
        progress.begin("finding the dump");
        run::names(&input, &selection, &LookOptions::default(), &java)
    })
    .await
}

/// Where the files go: as `-o` says, else a new folder, or a file called after the input.
fn goal(args: &Args, format: run::Format, stem: &str) -> OutputDestination {
    let has_folder = format.has_many_files() || format == run::Format::Parquet;
    let file = format!("{stem}.{}", format.ending());
    match (&args.output, has_folder) {
        (Some(output), true) => OutputDestination::of(output, format),
        (Some(output), false) => OutputDestination::of(output, format).into_file(&file),
        (None, true) => {
            let name = default_name(stem, OffsetDateTime::now_utc(), &SessionId::random());
            OutputDestination::Folder(format!("{name}-{}", format.ending()).into())
        }
        (None, false) => OutputDestination::Named(PathBuf::from(file)),
    }
}

fn show(console: &Console, exported: &Exported) -> Outcome {
    for finding in &exported.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    let files: Vec<_> = exported
        .files
        .iter()
        .map(|file| {
            json!({
                "path": file.path,
                "dump": file.dump,
                "view": file.view,
                "bytes": file.bytes,
            })
        })
        .collect();
    if console.is_json() {
        console.json(&json!({ "files": files, "dumps": exported.dumps }));
    }
    let dumps = match exported.dumps {
        1 => "1 dump".to_owned(),
        n => format!("{n} dumps"),
    };
    match &exported.files[..] {
        [] => {}
        [only] if only.path == Path::new("-") => {}
        [only] => console.say(format_args!(
            "wrote {} ({}, {dumps})",
            near(&only.path).display(),
            ByteSize(only.bytes)
        )),
        [first, ..] => {
            let folder = first.path.parent().unwrap_or(&first.path);
            let bytes = exported.files.iter().map(|file| file.bytes).sum();
            console.say(format_args!(
                "wrote {} files of {dumps} to {} ({})",
                exported.files.len(),
                near(folder).display(),
                ByteSize(bytes)
            ));
        }
    }
    exported.class.into()
}

/// Standard output as the console keeps it.
struct Stdout(Console);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whoever left does not want the rest; it is no failure.
        self.0.raw(bytes);
        match self.0.stdout_is_closed() {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
