//! `heaptap convert`: shows what the conversion of a trace found and wrote.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::missing::Remedy;
use super::names_args::NamesArgs;
use super::{Context, Outcome, blocking, summary};
use crate::app::convert::{self, Input, Request, Selection};
use crate::app::manifest::{Dumps, Manifest};
use crate::app::naming::{Look, Watch};
use crate::app::output::{OutputFolder, default_name};
use crate::app::recorded;
use crate::error::{ErrorClass, Failure};
use crate::export::pprof::{PprofOptions, SampleNames};

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap convert raw-trace -o profiles")]
pub struct Args {
    /// A recording's folder, a trace (also gzip, zstd, in a ZIP or TAR) or - for one on stdin, or
    /// an HPROF
    #[arg(value_name = "INPUT")]
    pub input: PathBuf,
    /// The folder to write to; must be empty or new [default: heaptap-<INPUT>-<time>]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u64>,
    /// Only the dumps with these times, in ns of the trace
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    pub timestamps: Vec<u64>,
    /// Only these heaps; Java heaps are called java
    #[arg(long = "heap", value_name = "NAME", value_delimiter = ',')]
    pub heaps: Vec<String>,
    /// Of Java heaps a second profile, over the dominator tree: what each object keeps alive
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
}

impl From<SampleNamesArg> for SampleNames {
    fn from(names: SampleNamesArg) -> Self {
        match names {
            SampleNamesArg::Heaptap => SampleNames::Pprof,
            SampleNamesArg::Perfetto => SampleNames::Perfetto,
        }
    }
}

/// Whose names the sample types of a pprof carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SampleNamesArg {
    /// objects, space, alloc_objects, alloc_space: what pprof tools know
    #[default]
    Heaptap,
    /// Perfetto's own names
    Perfetto,
}

/// Runs the command.
///
/// # Errors
/// Where the input holds no trace, or the output can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    // The only format so far.
    let Format::Pprof = args.format;
    let input = if args.input == Path::new("-") {
        Input::Stdin
    } else {
        Input::Path(args.input.clone())
    };
    let output = args.output.unwrap_or_else(|| {
        let target = match &input {
            Input::Stdin => "stdin".to_owned(),
            Input::Path(path) => stem(path),
        };
        default_name(&target, OffsetDateTime::now_utc()).into()
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
    let mut manifest = Manifest::default();
    let mut labels = Vec::new();
    if let Input::Path(path) = &input {
        match recorded::beside(path) {
            Ok(Some(recorded)) => {
                labels = recorded.carry_into(&mut manifest);
            }
            Ok(None) => {}
            Err(error) => manifest.warnings.push(recorded::unread(&error)),
        }
    }
    let names = args.names.options(&ctx.console)?;
    let folder = OutputFolder::prepare(&output)?;
    let pprof = PprofOptions {
        sample_names: args.sample_names.into(),
        annotations: !args.no_annotations,
    };
    let request = Request {
        input,
        output: folder.path().to_owned(),
        selection: Selection {
            pids: args.pids,
            heaps: args.heaps,
            timestamps: args.timestamps,
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
    let phone = super::progress::phone_asked(ctx, &args.names).await;
    let converted = blocking::watched(ctx, "converting …", phone, move |watch| {
        convert::convert(&Request { watch, ..request })
    });
    let converted = converted.await;
    let converted = match converted {
        Ok(converted) => converted,
        Err(failure) => {
            folder.discard();
            return Err(failure);
        }
    };
    let class = converted.class();
    manifest.outcome.exit_code = class.map_or(0, ErrorClass::exit_code);
    manifest.outcome.complete = class.is_none();
    manifest.warnings.extend(converted.warnings());
    manifest.dumps = Dumps {
        native: converted.dumps,
        java: converted.java,
    };
    recorded::bind(&mut manifest, &labels);
    manifest.symbolization = Some(converted.symbolization);
    manifest.profiles = Some(pprof.into());
    manifest.write(folder.path())?;
    let again = format!(
        "heaptap convert {}",
        summary::quoted(&args.input.to_string_lossy())
    );
    let heaps = &converted.heaps;
    let remedy = match args.names.no_symbolize {
        true => Remedy::NotAsked,
        false => Remedy::Again(&again),
    };
    summary::show(&ctx.console, folder.path(), &manifest, heaps, remedy);
    Ok(Outcome::from(class))
}

/// What an input is called without its folder and endings; a folder's own name.
fn stem(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty());
    stem.unwrap_or("trace").to_owned()
}
