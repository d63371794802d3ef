//! `heaptap convert --format` of all formats except pprof: shows the files that were written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use time::OffsetDateTime;

use super::run::{self, ExportRequest, Exported, OutputDestination, tables_to_file};
use crate::commands::convert::args::Args;
use crate::commands::shared::paths::near;
use crate::commands::shared::{blocking, lookup, page};
use crate::console::Console;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::{JavaOptions, ProgressReporter};
use crate::heaps::selector::{DumpSelector, JavaInput};
use crate::page::report::{PagePlace, ReportInput, ReportRequest};
use crate::recording::conversion::selection::{DumpName, Selection};
use heaptap_base::error::Failure;
use heaptap_base::units::{ByteSize, counted};
use heaptap_capture::session::SessionId;
use heaptap_input::STDIN;
use heaptap_results::file_names::default_name;
use heaptap_results::output::OutputDirectory;

/// Writes an input in `format`.
///
/// # Errors
/// Returns an error if the input does not contain a selected heap or a file cannot be written.
pub(crate) async fn run(
    ctx: &Context,
    args: Args,
    format: run::Format,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let input = JavaInput::parse(&args.input);
    let stem = match input.path == Path::new(STDIN) {
        true => "stdin".to_owned(),
        false => run::stem(&input.path),
    };
    let goal = goal(&args, format, &stem);
    if format == run::Format::Parquet && !matches!(goal, OutputDestination::Directory(_)) {
        return Err(tables_to_file());
    }
    if format == run::Format::Hprof {
        refuse_unfit(&args, "hprof")?;
    }
    if goal == OutputDestination::Stdout && console.is_json() {
        return Err(both_to_stdout());
    }
    goal.check(&input.path, args.force)?;
    let names = args.names.options(console)?;
    let (goal, directory) = match goal {
        OutputDestination::Directory(typed) => {
            let directory = OutputDirectory::hold(&typed)?;
            let staging = directory.stage()?;
            let inner = OutputDestination::Directory(staging.path().to_owned());
            (inner, Some((typed, directory, staging)))
        }
        other => (other, None),
    };
    let dumps = args.moment.dumps(&input);
    let java_only = args.heap.is_java_only();
    let request = ExportRequest {
        input: input.path,
        name: stem,
        format,
        chosen: dumps,
        selection: Selection {
            processes: args.target.filter(),
            heaps: args.heap.heaps,
            timestamps: args.timestamps,
            named: None,
        },
        java_only,
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
    let phone = lookup::phone_asked(ctx, &args.names).await;
    let mut stdout = Stdout::new(console.clone(), format);
    let exported = blocking::watched(ctx, "converting …", phone, move |control| {
        let look = LookOptions {
            control,
            ..request.look.clone()
        };
        let request = ExportRequest { look, ..request };
        run::export(&request, &goal, &mut stdout, &ProgressReporter::default())
    });
    match (exported.await, directory) {
        (Ok(mut exported), Some((typed, directory, staging))) => {
            for file in &mut exported.files {
                file.path = typed.join(file.path.file_name().unwrap_or_default());
            }
            directory.publish(staging)?;
            Ok(show(console, &exported))
        }
        (Ok(exported), None) => Ok(show(console, &exported)),
        (Err(failure), directory) => {
            if let Some((_, directory, staging)) = directory {
                drop(staging);
                directory.discard();
            }
            Err(failure)
        }
    }
}

/// Writes the page of `heaptap report`, with the names that `convert` finds.
///
/// # Errors
/// Returns an error if the input does not contain a selected heap or the page cannot be written.
pub(crate) async fn page(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    refuse_unfit(&args, "html")?;
    let input = JavaInput::parse(&args.input);
    let dumps = args.moment.dumps(&input);
    let goal = match (args.output, input.path.as_path()) {
        (Some(directory), path) if directory.is_dir() => {
            PagePlace::Named(directory.join(format!("{}.html", run::stem(path))))
        }
        (Some(output), _) => PagePlace::Typed(output),
        (None, path) if path == Path::new("-") => PagePlace::Named("stdin.html".into()),
        (None, path) => PagePlace::Named(format!("{}.html", run::stem(path)).into()),
    };
    if page::is_stdout(&goal) && console.is_json() {
        return Err(both_to_stdout());
    }
    let names = args.names.options(console)?;
    let processes = args.target.filter();
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
            processes: processes.clone(),
            heaps: args.heap.native_names(),
            names: names.clone(),
            no_annotations: args.no_annotations,
            ..LookOptions::default()
        },
        java: JavaOptions {
            names,
            processes,
            ..JavaOptions::default()
        },
        java_only: args.heap.is_java_only(),
        native_only: args.heap.is_native_only(),
        limit: None,
        contents: false,
    };
    let told = page::write(ctx, request, goal.clone(), args.force).await?;
    console.findings(&told.findings);
    page::show(ctx, goal.path(), &told);
    Ok(told.class.into())
}

/// Refuses the flags of formats that consist of values by callsite.
fn refuse_unfit(args: &Args, format: &str) -> Result<(), Failure> {
    let unfit = [
        ("`--view`", !args.views.is_empty()),
        ("`--timestamps`", !args.timestamps.is_empty()),
        ("`--dominators`", args.dominators),
    ];
    match unfit.iter().find(|flag| flag.1) {
        Some((flag, _)) => {
            let message = format!("`--format {format}` does not support {flag}");
            Err(Failure::usage(message))
        }
        None => Ok(()),
    }
}

fn both_to_stdout() -> Failure {
    let message = "cannot write both `--json` and the output to standard output";
    let failure = Failure::usage(message);
    failure.with_help("name a file or directory with `-o`")
}

/// Returns the names of the selected dumps of an input, to convert only those to pprofs.
///
/// # Errors
/// Returns an error if there is no such dump or the input cannot be read.
pub(crate) async fn named(
    ctx: &Context,
    input: &Path,
    dumps: Vec<DumpSelector>,
    java_only: bool,
) -> Result<Vec<DumpName>, Failure> {
    let input = input.to_owned();
    // Names of frames do not matter here.
    let java = JavaOptions::default();
    blocking::stepwise(ctx, move |progress| {
        progress.begin("finding the dump");
        run::names(&input, &dumps, java_only, &LookOptions::default(), &java)
    })
    .await
}

/// Returns the destination: `-o`, or else a new directory or a file named after the input.
fn goal(args: &Args, format: run::Format, stem: &str) -> OutputDestination {
    let has_directory = format.has_many_files() || format == run::Format::Parquet;
    let file = format!("{stem}.{}", format.ending());
    match (&args.output, has_directory) {
        (Some(output), true) => OutputDestination::new(output, format),
        (Some(output), false) => OutputDestination::new(output, format).into_file(&file),
        (None, true) => {
            let name = default_name(stem, OffsetDateTime::now_utc(), &SessionId::random());
            OutputDestination::Directory(format!("{name}-{}", format.ending()).into())
        }
        (None, false) => OutputDestination::Named(PathBuf::from(file)),
    }
}

fn show(console: &Console, exported: &Exported) -> Outcome {
    console.findings(&exported.findings);
    if console.is_json() {
        console.json(&json!({ "files": exported.files, "dumps": exported.dumps }));
    }
    let dumps = counted(exported.dumps as u64, "dump", "dumps");
    match &exported.files[..] {
        [] => {}
        [only] if only.path == Path::new("-") => {}
        [only] => console.say(format_args!(
            "wrote {} ({}, {dumps})",
            near(&only.path).display(),
            ByteSize(only.bytes)
        )),
        [first, ..] => {
            let directory = first.path.parent().unwrap_or(&first.path);
            let bytes = exported.files.iter().map(|file| file.bytes).sum();
            console.say(format_args!(
                "wrote {} files of {dumps} to {} ({})",
                exported.files.len(),
                near(directory).display(),
                ByteSize(bytes)
            ));
        }
    }
    exported.class.into()
}

/// Standard output through the console, as text where the format is one.
struct Stdout {
    console: Console,
    format: run::Format,
    /// Beginning of a line of text.
    rest: Vec<u8>,
}

impl Stdout {
    fn new(console: Console, format: run::Format) -> Stdout {
        Stdout {
            console,
            format,
            rest: Vec::new(),
        }
    }

    fn put(&self, bytes: &[u8]) {
        use run::Format::{Csv, Folded, Hprof, Json, Parquet, Speedscope, Svg};
        match (self.format, std::str::from_utf8(bytes)) {
            (Folded | Csv | Svg, Ok(text)) => self.console.text(text),
            (Speedscope | Json, Ok(text)) => self.console.json_text(text),
            (Parquet | Hprof, _) | (_, Err(_)) => self.console.raw(bytes),
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        use run::Format::{Json, Parquet, Speedscope};
        // A command is within a line of a text, and within a string of JSON, which is one line.
        let is_end = |byte: &u8| match self.format {
            Parquet => true,
            Speedscope | Json => matches!(byte, b'"' | b','),
            _ => *byte == b'\n',
        };
        let whole = bytes.iter().rposition(is_end).map_or(0, |at| at + 1);
        if whole > 0 {
            let mut part = std::mem::take(&mut self.rest);
            part.extend_from_slice(&bytes[..whole]);
            self.put(&part);
        }
        self.rest.extend_from_slice(&bytes[whole..]);
        // A reader that closed the pipe does not need the rest. That is not a failure.
        match self.console.stdout_is_closed() {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        self.put(&self.rest);
    }
}
