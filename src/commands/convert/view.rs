//! `heaptap convert`: shows what the conversion of a trace to pprofs found and wrote; other
//! formats are `export`'s.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::export::run::stem;
use super::export::view as export;
use crate::conversion::convert::{self, ConvertError, Input, Request, Selection};
use crate::conversion::tracked::Again;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::export::pprof::PprofOptions;
use crate::flags::context::Context;
use crate::flags::names::NamesArgs;
use crate::flags::sample_names::SampleNamesArg;
use crate::heaps::java::{JavaInput, Which};
use crate::naming::frames::{Look, Watch};
use crate::results::manifest::{Dumps, Manifest};
use crate::results::output::{OutputFolder, Unpublished, default_name};
use crate::results::recorded;
use crate::session::SessionId;
use crate::untrusted::shell::quoted_path;
use crate::views::missing::Remedy;
use crate::views::summary::Wrote;
use crate::views::{blocking, summary};

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap convert raw-trace -o profiles              gzipped pprofs\n  \
    heaptap convert rec --format speedscope            rec.speedscope.json\n  \
    heaptap convert rec@last --format folded -o - | flamegraph.pl > flame.svg\n  \
    heaptap convert rec --format parquet -o tables     for DuckDB: views.sql is with them\n\n\
    docs/export.md describes every format.")]
pub struct Args {
    /// A recording's folder, a trace (also gzip, zstd, in a ZIP or TAR), a pprof of any tool, an
    /// HPROF, or - for one on stdin; PATH@LABEL, PATH@N or PATH@last for one dump
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// A folder, which must be empty or new; of other formats than pprof also a file, or - for
    /// stdout [default: heaptap-<INPUT>-<time>-<id>, of other formats with the format behind it, or
    /// a file called after INPUT]
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Only these views: space, objects, alloc_space, alloc_objects, or what another tool calls
    /// its own
    #[arg(long = "view", value_name = "VIEW", value_delimiter = ',')]
    pub views: Vec<String>,
    /// Only this dump, by its number or label, or `last`; may be repeated
    #[arg(long = "dump", value_name = "N|LABEL|last")]
    pub dumps: Vec<String>,
    /// Overwrite a file that is there
    #[arg(long)]
    pub force: bool,
    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u64>,
    /// Only the dumps with these times, in ns of the trace
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    pub timestamps: Vec<u64>,
    /// Only these heaps; Java heaps are called java
    #[arg(long = "heap", value_name = "NAME", value_delimiter = ',')]
    pub heaps: Vec<String>,
    /// Of Java heaps a second profile, over the dominator tree: what each object keeps alive; of
    /// other formats than pprof, that tree in place of shortest paths
    #[arg(long)]
    pub dominators: bool,
    /// No [jit], [interp] and the like behind function names
    #[arg(long)]
    pub no_annotations: bool,
    /// Names of the sample types
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t)]
    pub sample_names: SampleNamesArg,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Gzipped pprof, one file a dump
    #[default]
    Pprof,
    /// Folded stacks, one file a dump and view: flamegraph.pl, inferno
    Folded,
    /// speedscope, all dumps and views in one file
    Speedscope,
    /// All that is known, in one document
    Json,
    /// One table, a row a callsite and dump
    Csv,
    /// The page of `heaptap report`
    Html,
    /// A folder of tables: DuckDB, pandas
    Parquet,
    /// A flamegraph as a picture, one file a dump and view
    Svg,
}

/// Runs the command.
///
/// # Errors
/// Where the input holds no trace, or the output can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if let Some(format) = export::format(args.format) {
        return export::run(ctx, args, format).await;
    }
    if args.format == Format::Html {
        return export::page(ctx, args).await;
    }
    if !args.views.is_empty() {
        let message = "a pprof has all views: --view is of other formats";
        return Err(Failure::new(ErrorClass::Usage, "usage", message));
    }
    let typed = JavaInput::parse(&args.input);
    let mut dumps: Vec<Which> = typed.which.into_iter().collect();
    dumps.extend(args.dumps.iter().map(|dump| Which::parse(dump)));
    let input = match typed.path == Path::new("-") {
        true => Input::Stdin,
        false => Input::Path(typed.path),
    };
    let output = args.output.unwrap_or_else(|| {
        let target = match &input {
            Input::Stdin => "stdin".to_owned(),
            Input::Path(path) => stem(path),
        };
        default_name(&target, OffsetDateTime::now_utc(), &SessionId::random()).into()
    });
    if let Input::Path(path) = &input
        && !path.exists()
    {
        return Err(Failure::new(
            ErrorClass::BadInput,
            "input-unreadable",
            format!("there is no {}", path.display()),
        ));
    }
    let named = match (&input, dumps.is_empty()) {
        (_, true) => None,
        (Input::Stdin, false) => {
            let message = "a dump of standard input cannot be named for pprofs";
            let failure = Failure::new(ErrorClass::Usage, "usage", message);
            return Err(failure.with_help("choose with --pid, --heap and --timestamps"));
        }
        (Input::Path(path), false) => Some(export::named(ctx, path, dumps).await?),
    };
    let mut manifest = Manifest::default();
    let mut labels = Vec::new();
    let mut again = None;
    if let Input::Path(path) = &input {
        match recorded::beside(path) {
            Ok(Some(recorded)) => {
                again = Again::of(path, &recorded);
                labels = recorded.carry_into(&mut manifest);
            }
            Ok(None) => {}
            Err(error) => manifest.warnings.push(recorded::unread(&error)),
        }
    }
    let names = args.names.options(&ctx.console)?;
    let folder = OutputFolder::hold(&output)?;
    let staging = folder.stage()?;
    let pprof = PprofOptions {
        sample_names: args.sample_names.into(),
        annotations: !args.no_annotations,
    };
    let request = Request {
        input,
        output: staging.path().to_owned(),
        selection: Selection {
            pids: args.pids,
            heaps: args.heaps,
            timestamps: args.timestamps,
            named,
        },
        pprof,
        dominators: args.dominators,
        java_summaries: false,
        names,
        watch: Watch::default(),
        bad_maps_fail: true,
        look: Look::Missing,
        packets_for: None,
        process_names: recorded::process_names(&manifest),
        only_process: None,
    };
    let phone = crate::views::progress::phone_asked(ctx, &args.names).await;
    let converted = blocking::watched(ctx, "converting …", phone, move |watch| {
        let request = Request { watch, ..request };
        let maps = request.maps()?;
        let converted = convert::convert_with(&request, &maps)?;
        let is_all = converted.dumps.is_empty() && converted.java.is_empty();
        let again =
            again.map(|again| again.write(is_all, &request.output, &request.selection, &maps));
        Ok::<_, ConvertError>((converted, again.transpose()?))
    });
    let converted = converted.await;
    let (converted, tracked) = match converted {
        Ok(converted) => converted,
        Err(failure) => {
            drop(staging);
            folder.discard();
            return Err(failure);
        }
    };
    let class = converted.class();
    manifest.warnings.extend(converted.warnings());
    let class = match tracked {
        Some(tracked) => tracked.enter(&mut manifest, class),
        None => class,
    };
    manifest.outcome.exit_code = class.map_or(0, ErrorClass::exit_code);
    manifest.outcome.complete = class.is_none();
    manifest.dumps = Dumps {
        native: converted.dumps,
        java: converted.java,
    };
    recorded::bind(&mut manifest, &labels);
    manifest.symbolization = Some(converted.symbolization);
    manifest.profiles = Some(pprof.into());
    manifest.write(staging.path())?;
    staging.publish(false).map_err(Unpublished::of_command)?;
    let again = format!("heaptap convert {}", quoted_path(&args.input));
    let heaps = &converted.heaps;
    let remedy = match args.names.no_symbolize {
        true => Remedy::NotAsked,
        false => Remedy::Again(&again),
    };
    let wrote = Wrote::profiles();
    summary::show(
        &ctx.console,
        folder.path(),
        &manifest,
        &wrote,
        heaps,
        remedy,
    );
    Ok(Outcome::from(class))
}
