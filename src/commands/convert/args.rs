//! The flags of `heaptap convert`.

use crate::flags::names::NamesArgs;
use crate::flags::sample_names::SampleNamesArg;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap convert raw-trace -o profiles              gzipped pprofs\n  \
    heaptap convert rec --format speedscope            rec.speedscope.json\n  \
    heaptap convert rec@last --format folded -o - | flamegraph.pl > flame.svg\n  \
    heaptap convert rec --format parquet -o tables     for DuckDB: views.sql is with them\n\n\
    docs/export.md describes every format.")]
pub struct Args {
    /// A recording's folder, a trace (also gzip, zstd, xz, in a ZIP or TAR), a pprof of any tool, an
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
    #[cfg(feature = "parquet")]
    Parquet,
    /// A flamegraph as a picture, one file a dump and view
    Svg,
}
